/** Return bar lengths from 0 to 1 from the number of annotations per document, at most `maxBars`. */
export function barLengths(done: readonly number[], full: number, maxBars: number): number[] {
  const shares = done.map((count) => Math.min(1, count / full));
  const count = Math.min(maxBars, shares.length);
  return Array.from({ length: count }, (_, index) => {
    const group = shares.slice(
      Math.floor((index * shares.length) / count),
      Math.floor(((index + 1) * shares.length) / count),
    );
    return group.reduce((sum, each) => sum + each, 0) / group.length;
  });
}

/** Return the end of a scale from 0 for values up to `value`: 1, 2 or 5 times a power of ten. */
export function roundUp(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 5].find((step) => step * power >= value) ?? 10);
}
