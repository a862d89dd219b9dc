/** Conversion between code points, which requests count as Python does, and UTF-16 units, which the page counts. */
export interface OffsetConverter {
  toCodePoints(utf16: number): number;
  toUtf16(codePoints: number): number;
}

const IDENTITY: OffsetConverter = { toCodePoints: (utf16) => utf16, toUtf16: (codePoints) => codePoints };

/** Conversion for one text, by binary search in an index that is built once. */
export function createOffsetConverter(text: string): OffsetConverter {
  const pairs = surrogatePairs(text); // in UTF-16 units, sorted
  if (pairs.length === 0) return IDENTITY;
  return {
    toCodePoints: (utf16) => utf16 - countBelow(pairs, (at) => at < utf16),
    toUtf16: (codePoints) => codePoints + countBelow(pairs, (at, index) => at - index < codePoints),
  };
}

/** UTF-16 offset of each character of two units. */
function surrogatePairs(text: string): number[] {
  const starts: number[] = [];
  for (const match of text.matchAll(/[\ud800-\udbff][\udc00-\udfff]/g)) starts.push(match.index);
  return starts;
}

/** Return the number of sorted `values` that satisfy `below`, which is true up to some index and false after it. */
function countBelow(values: number[], below: (value: number, index: number) => boolean): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (below(values[middle]!, middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
