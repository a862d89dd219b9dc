import { describe, expect, test } from "vitest";
import type { DesignCellRow, Recruit } from "../api-types";
import {
  arrivalsByDay,
  buildBudgetBar,
  exclusionsByReason,
  countFilled,
  completionDays,
  buildMatrix,
  neededPeople,
  buildPayDots,
  pluralize,
  projectFilling,
  cellBars,
} from "./design-matrix";

const cell = (
  condition: string,
  domain: string,
  model: string,
  change: Partial<DesignCellRow> = {},
): DesignCellRow => ({
  cell: `${condition}/${domain}/${model}`,
  factors: { condition, domain, model },
  people: 8,
  accepted: 2,
  working: 1,
  gone: 0,
  excluded: 0,
  closed: 0,
  open: 5,
  pay: 2,
  texts: 5,
  ...change,
});
const person = (change: Partial<Recruit>): Recruit =>
  ({
    id: "a",
    name: "a",
    cell: "",
    came: null,
    why: "",
    excluded: false,
    stage: "done",
    per_hour: null,
    ...change,
  }) as Recruit;

describe("a design as a matrix", () => {
  test("conditions are blocks, models columns, the rest rows; missing cells stay empty", () => {
    const cells = [cell("none", "news", "gpt2"), cell("none", "news", "gpt3"), cell("examples", "news", "gpt3")];
    const { columns, blocks } = buildMatrix(cells);
    expect(columns).toEqual(["gpt2", "gpt3"]);
    expect(blocks.map(({ title, rows }) => [title, rows.map((row) => row.title)])).toEqual([
      ["none", ["news"]],
      ["examples", ["news"]],
    ]);
    expect(blocks[1]!.rows[0]!.cells[0]).toBeUndefined();
    expect(countFilled(blocks.flatMap(({ rows }) => rows.flatMap((row) => row.cells)))).toEqual({
      accepted: 6,
      people: 24,
    });
  });
  test("a single factor has columns only", () => {
    const one = { ...cell("none", "", ""), factors: { condition: "none" } };
    expect(buildMatrix([one])).toMatchObject({ columns: ["none"], blocks: [{ title: "", rows: [{ title: "" }] }] });
  });
  test("one bar per person or per several people; full only when all are accepted", () => {
    expect(
      cellBars(cell("", "", ""))
        .map((bar) => bar[0])
        .join(""),
    ).toBe("aawnnnnn");
    const large = cellBars(cell("", "", "", { people: 130, accepted: 129, working: 0 }));
    expect([large.length, large.filter((bar) => bar === "accepted").length]).toEqual([13, 12]);
    expect(cellBars(cell("", "", "", { people: 130, accepted: 0, working: 1 }))[0]).toBe("working");
    expect(neededPeople(cell("", "", "", { accepted: 9 }))).toBe(0);
  });
  test("closed slots are not needed", () => {
    expect(neededPeople(cell("", "", "", { accepted: 5, excluded: 2, closed: 2 }))).toBe(1);
  });
});

describe("projection", () => {
  const now = "2026-11-10T12:00:00Z";
  const came = (day: number) => person({ came: `2026-11-${String(day).padStart(2, "0")}T09:00:00Z` });
  test("days without arrivals count", () => {
    expect(arrivalsByDay([came(8), came(10), came(10)], now).map((day) => day.count)).toEqual([1, 0, 2]);
  });
  test("the pace of the last week, with lost arrivals", () => {
    const people = Array.from({ length: 14 }, (_, at) => came(4 + (at % 7)));
    const cells = [cell("a", "b", "c", { people: 20, accepted: 7, working: 0 })];
    const plan = projectFilling(cells, people, now, 28)!;
    expect([plan.lossRate, plan.arrivals, plan.perDay]).toEqual([0.5, 26, 2]);
    expect((plan.doneDay - Date.parse("2026-11-10")) / 86_400_000).toBe(13);
    expect([plan.expectedCost, plan.maxCost]).toEqual([28 + 26, 28 + 52]);
    expect(plan.earliestDay).toBeLessThan(plan.doneDay);
    expect(plan.latestDay).toBeGreaterThan(plan.doneDay);
  });
  test("no projection before the first acceptance, nor after the last", () => {
    expect(projectFilling([cell("a", "b", "c", { accepted: 0 })], [came(9)], now, 0)).toBeUndefined();
    expect(projectFilling([cell("a", "b", "c", { accepted: 8 })], [came(9)], now, 0)).toBeUndefined();
  });
  test("the emptiest cell fills first, so that cells finish close together", () => {
    const [empty, half, done] = [
      cell("", "", "", { cell: "empty", people: 4, accepted: 0 }),
      cell("", "", "", { cell: "half", people: 4, accepted: 2 }),
      cell("", "", "", { cell: "done", people: 4, accepted: 4 }),
    ];
    const days = completionDays([empty, half, done], 2, now);
    const after = (name: string) => (days.get(name)! - Date.parse("2026-11-10")) / 86_400_000;
    expect([...days.keys()].sort()).toEqual(["empty", "half"]);
    expect([after("empty"), after("half")].sort()).toEqual([3, 3]);
    expect(after("half")).toBeGreaterThan(1); // two of four people are still needed, but those of the empty cell come first
  });
  test("the budget bar is as long as its largest value", () => {
    const plan = { expectedCost: 60, maxCost: 80 } as ReturnType<typeof projectFilling>;
    expect(buildBudgetBar(100, 40, plan)).toEqual({ spent: 0.4, expected: 0.6, most: 0.8, budget: 1 });
    expect(buildBudgetBar(50, 40, plan)).toMatchObject({ spent: 0.5, budget: 0.625, most: 1 });
    expect(buildBudgetBar(50, 100, undefined)).toMatchObject({ spent: 1, budget: 0.5, expected: undefined });
  });
  test("people who are out, by reason", () => {
    const people = [
      person({ excluded: true, why: "too fast" }),
      person({ stage: "screened-out" }),
      person({ stage: "screened-out" }),
    ];
    expect(exclusionsByReason(people, "Not qualified").map(([why, who]) => [why, who.length])).toEqual([
      ["Not qualified", 2],
      ["too fast", 1],
    ]);
  });
});

describe("pay per cell", () => {
  test("the minimum has a position on the axis, and cells below it are marked", () => {
    const { dots, floor, ticks } = buildPayDots([15.2, 14.3], 15)!;
    expect(dots.map(({ below }) => below)).toEqual([true, false]);
    expect(ticks.map(({ value }) => value)).toEqual([14, 15, 16]);
    expect(floor).toBe(0.5);
    expect(buildPayDots([15.2])!.floor).toBeUndefined();
  });
  test("close dots are stacked, between whole numbers", () => {
    const { dots, high, ticks } = buildPayDots([15, 15.01, 16.2, 17.9])!;
    expect(dots.map(({ level }) => level)).toEqual([0, 1, 0, 0]);
    expect(high).toBe(2);
    expect(ticks.map(({ value }) => value)).toEqual([15, 16, 17, 18]);
    expect([ticks[0]!.position, ticks.at(-1)!.position]).toEqual([0, 1]);
  });
  test("no cells, no dots", () => expect(buildPayDots([])).toBeUndefined());
  test("factors are counted in words", () => {
    expect([pluralize(2, "condition"), pluralize(1, "topic"), pluralize(3, "category"), pluralize(2, "day")]).toEqual([
      "2 conditions",
      "1 topic",
      "3 categories",
      "2 days",
    ]);
  });
});
