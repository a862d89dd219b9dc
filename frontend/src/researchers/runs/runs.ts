import type { RunRow } from "../api-types";

export type TextState = RunRow["teeth"][number];
/** The states in the order in which a stack shows them; what has not come yet is last. */
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
/** Those that count as having read the text. */
export const ANNOTATED_STATES: ReadonlySet<TextState> = new Set<TextState>(["marked", "answered", "no errors"]);
/** The class of each state's pattern. */
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

/** How many texts are in each state, in the order of `STATES`; states that do not occur are left out. */
export const countStates = (states: readonly TextState[]): StateCount[] =>
  TEXT_STATES.map((state) => ({ state, count: states.filter((each) => each === state).length })).filter(
    ({ count }) => count > 0,
  );

export type BarState = "read" | "failed" | "part" | "todo";

/** At most `maxBars` bars: each stands for some texts and is red as soon as one of them failed. */
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

/** How many texts have got something back. */
export const countAnswered = (states: readonly TextState[]): number => states.filter((state) => state !== "").length;

/** `88%`, never rounded up to all or down to none. */
export function formatPercent(part: number, whole: number): string {
  const value = Math.round((100 * part) / whole);
  const bounded = part < whole ? Math.min(value, 99) : value;
  return `${part > 0 ? Math.max(bounded, 1) : bounded}%`;
}

/** `6 minutes`, `40 seconds`, `3 hours`: one unit is enough. */
export function formatDuration(seconds: number): string {
  const [value, unit] =
    seconds < 90 ? [seconds, "second"] : seconds < 5400 ? [seconds / 60, "minute"] : [seconds / 3600, "hour"];
  const count = Math.max(1, Math.round(value as number));
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

/** Dollars, with as many digits as a small amount needs. */
export const formatDollars = (amount: number): string =>
  `$${amount.toFixed(amount === 0 || amount >= 0.01 ? 2 : amount >= 0.0001 ? 4 : 6)}`;
