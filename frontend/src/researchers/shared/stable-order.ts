/** Rows in the order in which they are shown already, so that nothing moves under the pointer; new ones come last. */
export function stableOrder<T>(before: readonly string[], now: readonly T[], id: (row: T) => string): T[] {
  const places = new Map(before.map((each, index) => [each, index]));
  const place = (row: T) => places.get(id(row)) ?? before.length;
  return [...now].sort((a, b) => place(a) - place(b));
}
