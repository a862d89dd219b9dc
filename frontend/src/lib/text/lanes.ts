/** A lane for each interval, none of one lane overlapping: who begins first, then the longer, has the inner lane. */
export function lanes(extents: readonly (readonly [start: number, end: number])[]): number[] {
  const order = extents.map((_, index) => index);
  order.sort((a, b) => extents[a]![0] - extents[b]![0] || extents[b]![1] - extents[a]![1] || a - b);
  const free: number[] = []; // where each lane is free again
  const result = new Array<number>(extents.length).fill(0);
  for (const index of order) {
    const [start, end] = extents[index]!;
    const found = free.findIndex((from) => from <= start);
    const lane = found < 0 ? free.length : found;
    free[lane] = Math.max(end, start + 1);
    result[index] = lane;
  }
  return result;
}
