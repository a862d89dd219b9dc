/** Rows in the order in which they are shown already, so that nothing moves under the pointer; new ones come last. */
export function keepOrder<T>(previousIds: readonly string[], rows: readonly T[], id: (row: T) => string): T[] {
  const rankById = new Map(previousIds.map((each, index) => [each, index]));
  const rank = (row: T) => rankById.get(id(row)) ?? previousIds.length;
  return [...rows].sort((a, b) => rank(a) - rank(b));
}
