/** A stretch of a piece: a score such as 104-98 in one, whose characters stay as they are, or what lies between. */
export interface ScoreSegment {
  readonly start: number;
  readonly end: number;
  /** Whether no line may end inside it. */
  readonly isUnbroken: boolean;
  /** Whether no line may end after it: its score goes on in the next piece. */
  readonly isJoinedToNext: boolean;
}

const SCORE = /\(?\d+[-–]\d+\)?/g;
const PART_OF_SCORE = /[\d()–-]/;

/** Cut `start` to `end` of a text at the edges of its scores, so that none breaks over a line, however it is marked. */
export function splitAtScores(text: string, start: number, end: number): ScoreSegment[] {
  let [from, to] = [start, end];
  while (from > 0 && PART_OF_SCORE.test(text[from - 1]!)) from--;
  while (to < text.length && PART_OF_SCORE.test(text[to]!)) to++;
  const segments: ScoreSegment[] = [];
  let at = start;
  for (const match of text.slice(from, to).matchAll(SCORE)) {
    const first = Math.max(start, from + match.index);
    const last = from + match.index + match[0].length;
    if (last <= start || first >= end) continue;
    if (first > at) segments.push({ start: at, end: first, isUnbroken: false, isJoinedToNext: false });
    at = Math.min(end, last);
    segments.push({ start: first, end: at, isUnbroken: true, isJoinedToNext: last > end });
  }
  if (at < end || segments.length === 0) segments.push({ start: at, end, isUnbroken: false, isJoinedToNext: false });
  return segments;
}

/** The same as one stretch, which breaks only where it has a space. */
export const unsplitSegment = (text: string, start: number, end: number): ScoreSegment[] => [
  {
    start,
    end,
    isUnbroken: !/\s/.test(text.slice(start, end)),
    isJoinedToNext: splitAtScores(text, start, end).at(-1)!.isJoinedToNext,
  },
];
