import { describe, expect, test } from "vitest";
import type { DesignCellRow, Recruit } from "../api-types";
import {
  arrivals,
  exclusions,
  filled,
  hourly,
  matrix,
  median,
  needed,
  payDots,
  plural,
  projection,
  teeth,
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
  test("conditions are blocks, models columns, the rest rows; a hole stays a hole", () => {
    const cells = [cell("none", "news", "gpt2"), cell("none", "news", "gpt3"), cell("examples", "news", "gpt3")];
    const { columns, blocks } = matrix(cells);
    expect(columns).toEqual(["gpt2", "gpt3"]);
    expect(blocks.map(({ title, rows }) => [title, rows.map((row) => row.title)])).toEqual([
      ["none", ["news"]],
      ["examples", ["news"]],
    ]);
    expect(blocks[1]!.rows[0]!.cells[0]).toBeUndefined();
    expect(filled(blocks.flatMap(({ rows }) => rows.flatMap((row) => row.cells)))).toEqual({ accepted: 6, people: 24 });
  });
  test("one factor alone has columns only", () => {
    const one = { ...cell("none", "", ""), factors: { condition: "none" } };
    expect(matrix([one])).toMatchObject({ columns: ["none"], blocks: [{ title: "", rows: [{ title: "" }] }] });
  });
  test("teeth: each a person, or several; full only when full", () => {
    expect(
      teeth(cell("", "", ""))
        .map((tooth) => tooth[0])
        .join(""),
    ).toBe("aawnnnnn");
    const large = teeth(cell("", "", "", { people: 130, accepted: 129, working: 0 }));
    expect([large.length, large.filter((tooth) => tooth === "accepted").length]).toEqual([13, 12]);
    expect(teeth(cell("", "", "", { people: 130, accepted: 0, working: 1 }))[0]).toBe("working");
    expect(needed(cell("", "", "", { accepted: 9 }))).toBe(0);
  });
  test("pay per hour is the median of those who stay", () => {
    expect([median([]), median([3, 1, 2]), median([1, 2])]).toEqual([undefined, 2, 1.5]);
    const people = [10, 30].map((per_hour) => person({ cell: "c", per_hour }));
    expect(hourly([...people, person({ cell: "c", per_hour: 99, excluded: true })], "c")).toBe(20);
  });
});

describe("what is to come", () => {
  const now = "2026-11-10T12:00:00Z";
  const came = (day: number) => person({ came: `2026-11-${String(day).padStart(2, "0")}T09:00:00Z` });
  test("days without arrivals are days, too", () => {
    expect(arrivals([came(8), came(10), came(10)], now).map((day) => day.count)).toEqual([1, 0, 2]);
  });
  test("the pace of the last week, with those who are lost", () => {
    const people = Array.from({ length: 14 }, (_, at) => came(4 + (at % 7)));
    const cells = [cell("a", "b", "c", { people: 20, accepted: 7, working: 0 })];
    const plan = projection(cells, people, now, 28)!;
    expect([plan.lost, plan.arrivals, plan.perDay]).toEqual([0.5, 26, 2]);
    expect((plan.done - Date.parse("2026-11-10")) / 86_400_000).toBe(13);
    expect([plan.cost, plan.most]).toEqual([28 + 26, 28 + 52]);
    expect(plan.soonest).toBeLessThan(plan.done);
    expect(plan.latest).toBeGreaterThan(plan.done);
  });
  test("nothing is foretold before anybody was accepted, nor after all were", () => {
    expect(projection([cell("a", "b", "c", { accepted: 0 })], [came(9)], now, 0)).toBeUndefined();
    expect(projection([cell("a", "b", "c", { accepted: 8 })], [came(9)], now, 0)).toBeUndefined();
  });
  test("who is out, by reason", () => {
    const people = [
      person({ excluded: true, why: "too fast" }),
      person({ stage: "screened-out" }),
      person({ stage: "screened-out" }),
    ];
    expect(exclusions(people, "Not qualified").map(([why, who]) => [why, who.length])).toEqual([
      ["Not qualified", 2],
      ["too fast", 1],
    ]);
  });
});

describe("pay per cell", () => {
  test("close dots stand on top of each other, between whole numbers", () => {
    const { dots, high, ticks } = payDots([15, 15.01, 16.2, 17.9])!;
    expect(dots.map(({ level }) => level)).toEqual([0, 1, 0, 0]);
    expect(high).toBe(2);
    expect(ticks.map(({ value }) => value)).toEqual([15, 16, 17, 18]);
    expect([ticks[0]!.place, ticks.at(-1)!.place]).toEqual([0, 1]);
  });
  test("nothing is drawn of nothing", () => expect(payDots([])).toBeUndefined());
  test("factors are counted in words", () => {
    expect([plural(2, "condition"), plural(1, "topic"), plural(3, "category"), plural(2, "day")]).toEqual([
      "2 conditions",
      "1 topic",
      "3 categories",
      "2 days",
    ]);
  });
});
