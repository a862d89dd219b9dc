import type { DesignCellRow, Recruit } from "../api-types";

/** Cell with its position in the matrix. */
export interface MatrixRow {
  readonly title: string;
  /** One cell per column; undefined if the design has no such cell. */
  readonly cells: readonly (DesignCellRow | undefined)[];
}
export interface MatrixBlock {
  readonly title: string;
  readonly rows: readonly MatrixRow[];
}
export interface Matrix {
  readonly columns: readonly string[];
  readonly blocks: readonly MatrixBlock[];
}
/** Number of accepted people, of the number required. */
export interface FillCount {
  readonly accepted: number;
  readonly people: number;
}

const MAX_BARS = 13;

/** Arrange conditions as blocks, models (or else the last factor) as columns, and the rest as rows. */
export function buildMatrix(cells: readonly DesignCellRow[]): Matrix {
  const factors = Object.keys(cells[0]?.factors ?? {});
  const column = factors.includes("model") ? "model" : factors.at(-1);
  const block = factors.find((factor) => factor === "condition" && factor !== column && factors.length > 1);
  const rest = factors.filter((factor) => factor !== column && factor !== block);
  const valueOf = (cell: DesignCellRow, factor: string | undefined) => (factor ? (cell.factors[factor] ?? "") : "");
  const rowOf = (cell: DesignCellRow) => rest.map((factor) => valueOf(cell, factor)).join(", ");
  const unique = (values: readonly string[]) => [...new Set(values)];
  const columns = unique(cells.map((cell) => valueOf(cell, column)));
  const blocks = unique(cells.map((cell) => valueOf(cell, block))).map((title) => {
    const inside = cells.filter((cell) => valueOf(cell, block) === title);
    const rows = unique(inside.map(rowOf)).map((row) => ({
      title: row,
      cells: columns.map((name) => inside.find((cell) => rowOf(cell) === row && valueOf(cell, column) === name)),
    }));
    return { title, rows };
  });
  return { columns, blocks };
}

export const countFilled = (cells: readonly (DesignCellRow | undefined)[]): FillCount => ({
  accepted: sum(cells.map((cell) => Math.min(cell?.accepted ?? 0, cell?.people ?? 0))),
  people: sum(cells.map((cell) => cell?.people ?? 0)),
});

/** Return the number of people that a cell still needs; people in progress do not count as accepted. */
export const neededPeople = (cell: DesignCellRow): number => Math.max(0, cell.people - cell.accepted - cell.closed);

/** Return the bars of a cell: one per person, or per several people if they do not fit. */
export function cellBars({ people, accepted, working }: DesignCellRow): ("accepted" | "working" | "needed")[] {
  const count = Math.min(people, MAX_BARS);
  const share = (number: number) => (number >= people ? count : Math.floor((number * count) / people));
  const [long, outlined] = [share(accepted), share(accepted + working)];
  const begun = accepted + working > 0 && outlined === 0 && accepted === 0 ? 1 : outlined;
  return Array.from({ length: count }, (_, at) => (at < long ? "accepted" : at < begun ? "working" : "needed"));
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** Return dot positions on one axis, stacked where they are close, from the whole number below the lowest. */
export interface PayDotPlot {
  readonly dots: readonly { readonly position: number; readonly level: number; readonly below: boolean }[];
  /** Height of the tallest stack. */
  readonly high: number;
  readonly ticks: readonly { readonly position: number; readonly value: number }[];
  /** Position of the minimum pay; undefined without one. */
  readonly floor: number | undefined;
}
const BINS = 24;

export function buildPayDots(rates: readonly number[], floor: number | null = null): PayDotPlot | undefined {
  if (rates.length === 0) return undefined;
  const values = floor === null ? rates : [...rates, floor];
  const low = Math.floor(Math.min(...values));
  const high = Math.max(low + 1, Math.ceil(Math.max(...values)));
  const axisPosition = (value: number) => (value - low) / (high - low);
  const stacks = new Map<number, number>();
  const dots = [...rates]
    .sort((one, other) => one - other)
    .map((rate) => {
      const bin = Math.round(axisPosition(rate) * BINS);
      const level = stacks.get(bin) ?? 0;
      stacks.set(bin, level + 1);
      return { position: bin / BINS, level, below: floor !== null && rate < floor };
    });
  const step = Math.ceil((high - low) / 5);
  const ticks = Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, at) => low + at * step);
  return {
    dots,
    high: Math.max(...stacks.values()),
    ticks: ticks.map((value) => ({ value, position: axisPosition(value) })),
    floor: floor === null ? undefined : axisPosition(floor),
  };
}

/** Format a count of a factor: `2 conditions`, `4 categories`, `1 topic`. Factors are named in English. */
export const pluralize = (count: number, name: string): string =>
  `${count} ${count === 1 ? name : /[^aeiou]y$/.test(name) ? name.replace(/y$/, "ies") : `${name}s`}`;

// --- arrivals and what is to come -----------------------------------------------------------------------------------

const DAY_MS = 86_400_000;
const dayNumber = (time: string | number): number => Math.floor(new Date(time).getTime() / DAY_MS);

/** Return arrivals per day, from the first until `now`. */
export function arrivalsByDay(
  people: readonly Recruit[],
  now: string,
): { readonly day: number; readonly count: number }[] {
  const days = people.flatMap(({ came }) => (came ? [dayNumber(came)] : []));
  if (days.length === 0) return [];
  const first = Math.min(...days);
  return Array.from({ length: dayNumber(now) - first + 1 }, (_, at) => ({
    day: (first + at) * DAY_MS,
    count: days.filter((day) => day === first + at).length,
  }));
}

/** Project the completion date at the pace of the last week, with its 95% range and the cost. */
export interface Projection {
  readonly arrivals: number;
  /** Share of arrivals, other than people in progress, who were not accepted. */
  readonly lossRate: number;
  readonly perDay: number;
  readonly doneDay: number;
  readonly earliestDay: number;
  readonly latestDay: number | undefined;
  readonly expectedCost: number;
  readonly maxCost: number;
}

export function projectFilling(
  cells: readonly DesignCellRow[],
  people: readonly Recruit[],
  now: string,
  spent: number,
): Projection | undefined {
  const openCount = sum(cells.map(neededPeople));
  const recent = arrivalsByDay(people, now).slice(-7);
  const count = sum(recent.map((day) => day.count));
  const [accepted, working] = [sum(cells.map((cell) => cell.accepted)), sum(cells.map((cell) => cell.working))];
  const finishedCount = people.filter(({ came }) => came).length - working;
  if (openCount === 0 || count === 0 || accepted === 0 || finishedCount <= 0) return undefined;
  const lost = Math.max(0, Math.min(0.95, 1 - accepted / finishedCount));
  const neededArrivals = openCount / (1 - lost);
  const completionDay = (perDay: number) => dayNumber(now) * DAY_MS + Math.ceil(neededArrivals / perDay) * DAY_MS;
  const spread = 1.96 * Math.sqrt(count);
  const pay = sum(cells.map((cell) => neededPeople(cell) * (cell.pay ?? 0)));
  return {
    arrivals: neededArrivals,
    lossRate: lost,
    perDay: count / recent.length,
    doneDay: completionDay(count / recent.length),
    earliestDay: completionDay((count + spread) / recent.length),
    latestDay: count > spread ? completionDay((count - spread) / recent.length) : undefined,
    expectedCost: spent + pay,
    maxCost: spent + pay / (1 - lost),
  };
}

/** Return the completion day of each open cell at a pace of accepted people per day; the emptiest cell fills first. */
export function completionDays(cells: readonly DesignCellRow[], perDay: number, now: string): Map<string, number> {
  const open = cells
    .filter((cell) => neededPeople(cell) > 0)
    .map((cell) => ({ cell: cell.cell, left: neededPeople(cell), of: cell.people }));
  const days = new Map<string, number>();
  for (let come = 1; open.some(({ left }) => left > 0); come++) {
    const next = open.reduce((one, other) => (other.left / other.of > one.left / one.of ? other : one));
    if (--next.left === 0) days.set(next.cell, dayNumber(now) * DAY_MS + Math.ceil(come / perDay) * DAY_MS);
  }
  return days;
}

/** Return the positions of spent, expected, maximum and budget on one bar, as shares of its length. */
export interface BudgetBar {
  readonly spent: number;
  readonly expected: number | undefined;
  readonly most: number | undefined;
  readonly budget: number;
}
export function buildBudgetBar(budget: number, spent: number, plan: Projection | undefined): BudgetBar {
  const length = Math.max(budget, spent, plan?.maxCost ?? 0);
  return {
    spent: spent / length,
    expected: plan && plan.expectedCost / length,
    most: plan && plan.maxCost / length,
    budget: budget / length,
  };
}

/** Group people who are out by reason, most frequent first. */
export function exclusionsByReason(people: readonly Recruit[], notQualified: string): [why: string, who: Recruit[]][] {
  const reasons = new Map<string, Recruit[]>();
  for (const one of people) {
    const why = one.excluded ? one.why : one.stage === "screened-out" ? notQualified : undefined;
    if (why !== undefined) reasons.set(why, [...(reasons.get(why) ?? []), one]);
  }
  return [...reasons].sort(([, one], [, other]) => other.length - one.length);
}
