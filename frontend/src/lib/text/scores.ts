/** A stretch of a piece: a score such as 104-98 in one, whose characters stay as they are, or what lies between. */
export interface Stretch {
  readonly start: number;
  readonly end: number;
  /** Whether no line may end inside it. */
  readonly unbroken: boolean;
  /** Whether no line may end after it: its score goes on in the next piece. */
  readonly joined: boolean;
}

const SCORE = /\(?\d+[-–]\d+\)?/g;
const PART_OF_SCORE = /[\d()–-]/;

/** Cut `start` to `end` of a text at the edges of its scores, so that none breaks over a line, however it is marked. */
export function stretches(text: string, start: number, end: number): Stretch[] {
  let [from, to] = [start, end];
  while (from > 0 && PART_OF_SCORE.test(text[from - 1]!)) from--;
  while (to < text.length && PART_OF_SCORE.test(text[to]!)) to++;
  const found: Stretch[] = [];
  let at = start;
  for (const match of text.slice(from, to).matchAll(SCORE)) {
    const first = Math.max(start, from + match.index);
    const last = from + match.index + match[0].length;
    if (last <= start || first >= end) continue;
    if (first > at) found.push({ start: at, end: first, unbroken: false, joined: false });
    at = Math.min(end, last);
    found.push({ start: first, end: at, unbroken: true, joined: last > end });
  }
  if (at < end || found.length === 0) found.push({ start: at, end, unbroken: false, joined: false });
  return found;
}

/** The same as one stretch, which breaks only where it has a space. */
export const wholeStretch = (text: string, start: number, end: number): Stretch[] => [
  { start, end, unbroken: !/\s/.test(text.slice(start, end)), joined: stretches(text, start, end).at(-1)!.joined },
];
