/** Offsets on the wire count code points, as Python does; the page counts UTF-16 units. This is where they meet. */
export interface OffsetConverter {
  toCodePoints(utf16: number): number;
  toUtf16(codePoints: number): number;
}

const IDENTITY: OffsetConverter = { toCodePoints: (utf16) => utf16, toUtf16: (codePoints) => codePoints };

/** Conversion for one text: an index is made once, each call is a binary search. */
export function createOffsetConverter(text: string): OffsetConverter {
  const pairs = surrogatePairs(text); // in UTF-16 units, sorted
  if (pairs.length === 0) return IDENTITY;
  return {
    toCodePoints: (utf16) => utf16 - countBelow(pairs, (at) => at < utf16),
    toUtf16: (codePoints) => codePoints + countBelow(pairs, (at, index) => at - index < codePoints),
  };
}

/** Where a character of two units begins. */
function surrogatePairs(text: string): number[] {
  const starts: number[] = [];
  for (const match of text.matchAll(/[\ud800-\udbff][\udc00-\udfff]/g)) starts.push(match.index);
  return starts;
}

/** How many of the sorted `values` satisfy `below`, which holds up to some place and not after it. */
function countBelow(values: number[], below: (value: number, index: number) => boolean): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (below(values[middle]!, middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
