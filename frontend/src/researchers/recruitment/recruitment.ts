import type { Recruitment } from "../api-types";

/** Whose pages show a HIT inside them. */
export const MTURK_PAGES = ["https://worker.mturk.com", "https://workersandbox.mturk.com"] as const;
const PROLIFIC_PARAMETERS = ["PROLIFIC_PID", "STUDY_ID", "SESSION_ID"] as const;

/** The address to paste on a platform: Prolific replaces its placeholders, MTurk adds its ids without being asked. */
export function recruitmentUrl(platform: Recruitment["platform"], link: string): string {
  if (platform !== "prolific" || !link) return link;
  return `${link}?${PROLIFIC_PARAMETERS.map((name) => `${name}={{%${name}%}}`).join("&")}`;
}

/** Lines of a field as a list. */
export const nonEmptyLines = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

export interface HistogramBar {
  readonly from: number;
  readonly to: number;
  readonly count: number;
}

/** Scores in bars of equal width from 0 to `of`; a score on an edge belongs to the bar above it, the best to the last. */
export function buildHistogram(scores: readonly number[], of: number, bars = 20): HistogramBar[] {
  const width = of / bars;
  const counts = new Array<number>(bars).fill(0);
  for (const score of scores) {
    const at = Math.floor(score / width + 1e-9);
    counts[Math.min(Math.max(at, 0), bars - 1)]! += 1;
  }
  return counts.map((count, at) => ({ from: at * width, to: (at + 1) * width, count }));
}
