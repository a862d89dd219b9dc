/** Assign a level to each interval so that no level overlaps: earlier, then longer intervals get the inner level. */
export function assignLevels(extents: readonly (readonly [start: number, end: number])[]): number[] {
  const order = extents.map((_, index) => index);
  order.sort((a, b) => extents[a]![0] - extents[b]![0] || extents[b]![1] - extents[a]![1] || a - b);
  const levelEnds: number[] = []; // offset at which each level is free again
  const result = new Array<number>(extents.length).fill(0);
  for (const index of order) {
    const [start, end] = extents[index]!;
    const freeLevel = levelEnds.findIndex((from) => from <= start);
    const level = freeLevel < 0 ? levelEnds.length : freeLevel;
    levelEnds[level] = Math.max(end, start + 1);
    result[index] = level;
  }
  return result;
}
