import type { Recruitment } from "../api-types";

/** MTurk sites that embed a HIT. */
export const MTURK_PAGES = ["https://worker.mturk.com", "https://workersandbox.mturk.com"] as const;
const PROLIFIC_PARAMETERS = ["PROLIFIC_PID", "STUDY_ID", "SESSION_ID"] as const;

/** Return the study URL for a platform: Prolific fills in placeholders, MTurk adds its IDs without them. */
export function recruitmentUrl(platform: Recruitment["platform"], link: string): string {
  if (platform !== "prolific" || !link) return link;
  return `${link}?${PROLIFIC_PARAMETERS.map((name) => `${name}={{%${name}%}}`).join("&")}`;
}

/** Return the non-empty lines of a field. */
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

/** Bin scores into bars of equal width from 0 to `of`. A score on an edge belongs to the upper bar, the maximum to the last. */
export function buildHistogram(scores: readonly number[], of: number, bars = 20): HistogramBar[] {
  const width = of / bars;
  const counts = new Array<number>(bars).fill(0);
  for (const score of scores) {
    const at = Math.floor(score / width + 1e-9);
    counts[Math.min(Math.max(at, 0), bars - 1)]! += 1;
  }
  return counts.map((count, at) => ({ from: at * width, to: (at + 1) * width, count }));
}
