import type { CalibrationPage } from "../api-types";

export type Calibration = NonNullable<CalibrationPage["record"]>;
export type Estimate = Calibration["test"]["advantage"];
export type Comparison = Calibration["agreement"][number];

/** Return the rows of the figure: one level, alpha, labels in protocol order, all labels last. */
export function agreementRows(record: Calibration, labels: readonly string[]): Comparison[] {
  const level = record.agreement[0]?.level;
  const rows = record.agreement.filter((row) => row.level === level && row.measure === "alpha");
  return sortByLabel(rows, labels);
}

/** Count the labels by verdict: no less than people, less than people, and undecided. */
export function verdictCounts(record: Calibration): { labels: number; same: number; less: number; open: number } {
  const rows = agreementRows(record, []).filter(({ label }) => label !== "any");
  const same = rows.filter(({ verdict }) => verdict === "no less than people").length;
  const less = rows.filter(({ verdict }) => verdict === "less than people").length;
  return { labels: rows.length, same, less, open: rows.length - same - less };
}

/** Sort rows by label in protocol order; unknown labels follow, `any` comes last. */
export function sortByLabel<T extends { label: string }>(rows: readonly T[], labels: readonly string[]): T[] {
  const rank = ({ label }: T) =>
    label === "any" ? labels.length + 1 : (labels.indexOf(label) + labels.length + 1) % (labels.length + 1);
  return [...rows].sort((a, b) => rank(a) - rank(b));
}

/** Return the end of an axis that starts at 0: 1, or the next round number if every interval ends below 0.7. */
export function axisEnd(estimates: readonly Estimate[]): number {
  const highest = Math.max(0, ...estimates.map(({ value, high }) => high ?? value ?? 0));
  return highest >= 0.7 ? 1 : Math.max(0.2, Math.ceil(highest / 0.2) * 0.2);
}

/** Return round tick values from 0 to `end`. */
export const axisTicks = (end: number): number[] =>
  Array.from({ length: Math.round(end / 0.2) + 1 }, (_, index) => (2 * index) / 10);

/** Return the position of a ratio on a logarithmic axis from ⅛ to `end`, as a share of its width. */
export function ratioPosition(ratio: number, high = 2): number {
  const [low, top] = [Math.log2(1 / 8), Math.log2(high)];
  return Math.min(1, Math.max(0, (Math.log2(Math.max(ratio, 1e-9)) - low) / (top - low)));
}

/** Ticks of the ratio axis: `⅛ ¼ ½ 1 2 4`. */
export const RATIO_TICKS: readonly (readonly [number, string])[] = [
  [1 / 8, "⅛"],
  [1 / 4, "¼"],
  [1 / 2, "½"],
  [1, "1"],
  [2, "2"],
  [4, "4"],
  [8, "8"],
];

/** Return the end of the ratio axis: 2, or the next power of two above the largest ratio, at most 8. */
export const ratioEnd = (ratios: readonly Estimate[]): number => {
  const highest = Math.max(2, ...ratios.map(({ value, high }) => high ?? value ?? 0));
  return highest <= 2 ? 2 : highest <= 4 ? 4 : 8;
};

/** Return true if any condition that ends the validity of the calibration is met. */
export const isStale = (page: CalibrationPage): boolean => page.stale.some(({ state }) => state === "yes");

/** Return the command for a combined estimate of people and a judge, for some labels or for all. */
export const estimateCommand = (judge: string, labels: readonly string[]): string =>
  ["finecomb estimate STUDY --judge", shellQuote(judge), ...labels.map((label) => `--label ${shellQuote(label)}`)].join(
    " ",
  );

const shellQuote = (word: string): string =>
  /^[\w./@:-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** Join names: `OP`, `OP and RD`, `OP, RD and SC`. */
export const joinNames = (names: readonly string[], and: string): string =>
  names.length < 2 ? (names[0] ?? "") : `${names.slice(0, -1).join(", ")} ${and} ${names.at(-1)}`;
