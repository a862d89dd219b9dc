import type { RunRow } from "../api-types";

export type TextState = RunRow["teeth"][number];
/** States in the order of a stack; pending texts come last. */
export const TEXT_STATES = [
  "marked",
  "answered",
  "no errors",
  "unreadable",
  "refused",
  "truncated",
  "empty",
  "no reply",
  "",
] as const satisfies readonly TextState[];
/** States in which the text counts as annotated. */
export const ANNOTATED_STATES: ReadonlySet<TextState> = new Set<TextState>(["marked", "answered", "no errors"]);
/** CSS class of the pattern of each state. */
export const STATE_CLASSES: Readonly<Record<TextState, string>> = {
  marked: "state-annotated",
  answered: "state-annotated",
  "no errors": "state-no-errors",
  unreadable: "state-unreadable",
  refused: "state-refused",
  truncated: "state-truncated",
  empty: "state-empty",
  "no reply": "state-empty",
  "": "state-pending",
};

export interface StateCount {
  readonly state: TextState;
  readonly count: number;
}

/** Count the texts per state, in the order of `STATES`, without states that do not occur. */
export const countStates = (states: readonly TextState[]): StateCount[] =>
  TEXT_STATES.map((state) => ({ state, count: states.filter((each) => each === state).length })).filter(
    ({ count }) => count > 0,
  );

/** Maximum number of bars per run, which fit the width of the column. */
export const MAX_BARS = 47;
export type BarState = "read" | "failed" | "part" | "todo";

/** Return at most `maxBars` bars; each stands for some texts and is red if one of them failed. */
export function groupIntoBars(states: readonly TextState[], maxBars: number): BarState[] {
  const count = Math.min(states.length, maxBars);
  return Array.from({ length: count }, (_, index) => {
    const from = Math.floor((index * states.length) / count);
    return barState(states.slice(from, Math.floor(((index + 1) * states.length) / count)));
  });
}

function barState(states: readonly TextState[]): BarState {
  if (states.some((state) => state !== "" && !ANNOTATED_STATES.has(state))) return "failed";
  if (states.every((state) => state === "")) return "todo";
  return states.includes("") ? "part" : "read";
}

/** Return the number of texts with a reply. */
export const countAnswered = (states: readonly TextState[]): number => states.filter((state) => state !== "").length;

/** Format a percentage such as `88%`, never rounded up to 100% or down to 0%. */
export function formatPercent(part: number, whole: number): string {
  const value = Math.round((100 * part) / whole);
  const bounded = part < whole ? Math.min(value, 99) : value;
  return `${part > 0 ? Math.max(bounded, 1) : bounded}%`;
}

/** Format a duration in one unit: `6 minutes`, `40 seconds`, `3 hours`. */
export function formatDuration(seconds: number): string {
  const [value, unit] =
    seconds < 90 ? [seconds, "second"] : seconds < 5400 ? [seconds / 60, "minute"] : [seconds / 3600, "hour"];
  const count = Math.max(1, Math.round(value as number));
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

/** Format dollars, with more digits for small amounts. */
export const formatDollars = (amount: number): string =>
  `$${amount.toFixed(amount === 0 || amount >= 0.01 ? 2 : amount >= 0.0001 ? 4 : 6)}`;
