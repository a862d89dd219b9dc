/** Stretch of a piece: an unbreakable score such as 104-98, or the text between scores. */
export interface ScoreSegment {
  readonly start: number;
  readonly end: number;
  /** True if no line break is allowed inside. */
  readonly isUnbroken: boolean;
  /** True if no line break is allowed after it, because its score continues in the next piece. */
  readonly isJoinedToNext: boolean;
}

const SCORE = /\(?\d+[-–]\d+\)?/g;
const PART_OF_SCORE = /[\d()–-]/;

/** Cut `start` to `end` of a text at the edges of its scores, so that no score breaks across lines, even if marked. */
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

/** Return the same text as one stretch that breaks only at spaces. */
export const unsplitSegment = (text: string, start: number, end: number): ScoreSegment[] => [
  {
    start,
    end,
    isUnbroken: !/\s/.test(text.slice(start, end)),
    isJoinedToNext: splitAtScores(text, start, end).at(-1)!.isJoinedToNext,
  },
];
