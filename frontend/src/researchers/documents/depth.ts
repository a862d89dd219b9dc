/** Stretch of text marked by the same number of people, in UTF-16 units. */
export interface DepthSegment {
  readonly start: number;
  readonly end: number;
  readonly count: number;
}
export type Extent = readonly [start: number, end: number];

/** Count the people who marked each stretch of `[0, length)`. A person counts once per word. */
export function countAnnotators(length: number, people: readonly (readonly Extent[])[]): DepthSegment[] {
  const steps = new Map<number, number>([
    [0, 0],
    [length, 0],
  ]);
  const step = (at: number, by: number) => steps.set(at, (steps.get(at) ?? 0) + by);
  for (const [start, end] of people.flatMap(mergeExtents)) {
    step(start, 1);
    step(end, -1);
  }
  const edges = [...steps].sort(([a], [b]) => a - b);
  const result: DepthSegment[] = [];
  let count = 0;
  edges.forEach(([start, by], index) => {
    count += by;
    const end = edges[index + 1]?.[0];
    if (end === undefined) return;
    const last = result.at(-1);
    if (last?.count === count) result[result.length - 1] = { ...last, end };
    else result.push({ start, end, count });
  });
  return result;
}

/** Merge intervals into disjoint ones in order, without empty ones. */
export function mergeExtents(extents: readonly Extent[]): Extent[] {
  const sorted = extents.filter(([start, end]) => start < end).sort(([a], [b]) => a - b);
  const result: [number, number][] = [];
  for (const [start, end] of sorted) {
    const last = result.at(-1);
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else result.push([start, end]);
  }
  return result;
}

/** Clip stretches to `[start, end)` and cut them at the edges of `frame`. */
export function clipSegments(
  segments: readonly DepthSegment[],
  start: number,
  end: number,
  frame: Extent | null,
): DepthSegment[] {
  const cuts = frame ? frame.filter((cut) => cut > start && cut < end) : [];
  const result: DepthSegment[] = [];
  for (let at = firstEndingAfter(segments, start); at < segments.length && segments[at]!.start < end; at++) {
    const own = segments[at]!;
    let from = Math.max(own.start, start);
    const to = Math.min(own.end, end);
    for (const cut of [...cuts.filter((each) => each > from && each < to), to]) {
      result.push({ start: from, end: cut, count: own.count });
      from = cut;
    }
  }
  return result;
}

function firstEndingAfter(segments: readonly DepthSegment[], position: number): number {
  let [low, high] = [0, segments.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (segments[middle]!.end <= position) low = middle + 1;
    else high = middle;
  }
  return low;
}
