/** Keep the current order of rows, so that nothing moves under the pointer; new rows come last. */
export function keepOrder<T>(previousIds: readonly string[], rows: readonly T[], id: (row: T) => string): T[] {
  const rankById = new Map(previousIds.map((each, index) => [each, index]));
  const rank = (row: T) => rankById.get(id(row)) ?? previousIds.length;
  return [...rows].sort((a, b) => rank(a) - rank(b));
}
