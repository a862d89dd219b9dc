/** Teeth of a comb from how many annotations each document has: at most `most` of them, each 0 to 1 long. */
export function toothLengths(done: readonly number[], full: number, most: number): number[] {
  const filled = done.map((count) => Math.min(1, count / full));
  const count = Math.min(most, filled.length);
  return Array.from({ length: count }, (_, index) => {
    const own = filled.slice(
      Math.floor((index * filled.length) / count),
      Math.floor(((index + 1) * filled.length) / count),
    );
    return own.reduce((sum, each) => sum + each, 0) / own.length;
  });
}

/** The end of a scale from 0 for values up to `value`: 1, 2 or 5 times a power of ten. */
export function roundUp(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 5].find((step) => step * power >= value) ?? 10);
}
