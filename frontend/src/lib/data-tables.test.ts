import { describe, expect, test } from "vitest";
import { isRowNamed, buildTabs, readableName } from "./data-tables";

describe("data as tables", () => {
  test("names become tabs, deeper ones captions, lists of objects rows", () => {
    const found = buildTabs(
      {
        city: "Saltby",
        box_score: {
          home: [
            { player: "Ann", pts: 3 },
            { player: "Bo", ast: "1-2" },
          ],
        },
        links: ["https://a.example/x"],
      },
      "Data",
    );
    expect(found.map((tab) => tab.title)).toEqual(["Data", "Box score", "Links"]);
    const [table] = found[1]!.tables;
    expect(table!.caption).toBe("Home");
    expect(table!.columns).toEqual(["Player", "Pts", "Ast"]);
    expect(table!.rows.map((row) => row.map((cell) => cell.text))).toEqual([
      ["Ann", "3", ""],
      ["Bo", "", "1-2"],
    ]);
    expect(found[2]!.tables[0]!.rows[0]![0]!.href).toBe("https://a.example/x");
  });
  test.each([
    [null, 0],
    ["text", 1],
    [[1, 2], 1],
    [{}, 0],
    [[], 1],
  ] as const)("%j makes %i tabs", (data, count) => {
    expect(buildTabs(data as never, "Data")).toHaveLength(count);
  });
  test("columns with the same numbers, and lists of equal length, become rows", () => {
    const [byNumber, byPlace] = buildTabs(
      { box: { NAME: { "10": "Bo", "2": "Ann" }, PTS: { "2": 3, "10": 4 } }, lists: { a: [1, 2], b: [3, 4] } },
      "Data",
    );
    expect(byNumber!.tables[0]!.columns).toEqual(["NAME", "PTS"]);
    expect(byNumber!.tables[0]!.rows.map((row) => row.map((cell) => cell.text))).toEqual([
      ["Ann", "3"],
      ["Bo", "4"],
    ]);
    expect(byPlace!.tables[0]!.rows.map((row) => row.map((cell) => cell.text))).toEqual([
      ["1", "3"],
      ["2", "4"],
    ]);
  });
  test("columns that do not match stay separate", () => {
    const [tab] = buildTabs({ box: { NAME: { "0": "Ann", "1": "Bo" }, PTS: { "0": 3 } } }, "Data");
    expect(tab!.tables.flatMap((table) => table.rows).length).toBe(2);
    expect(tab!.tables[0]!.columns).toEqual(["", "0", "1"]); // one row per field: no value moves to another name
  });
  test("objects that share names become rows; deeper objects nest", () => {
    const [tab] = buildTabs({ teams: { gulls: { won: 4, lost: 1 }, millers: { won: 2 } } }, "Data");
    expect(tab!.tables[0]!.rows.map((row) => row.map((cell) => cell.text))).toEqual([
      ["Gulls", "4", "1"],
      ["Millers", "2", ""],
    ]);
    const deep = buildTabs({ a: { b: { c: { d: 1, e: [2] } }, f: 3 } }, "Data")[0]!.tables;
    expect(deep.map(({ caption, depth }) => [caption, depth])).toEqual([
      ["", 0],
      ["B · C", 2],
      ["B · C · E", 3],
    ]);
  });
  test("a view names, orders and hides fields", () => {
    const view = { titles: { q1: "First quarter" }, order: ["q2", "q1"], hidden: ["secret"] };
    const [tab] = buildTabs({ q1: 1, secret: 9, q2: 2 }, "Data", view);
    expect(tab!.tables[0]!.rows.map((row) => row.map((cell) => cell.text))).toEqual([
      ["Q2", "2"],
      ["First quarter", "1"],
    ]);
  });
  test("only web addresses are links", () => {
    expect(buildTabs("javascript:alert(1)", "Data")[0]!.tables[0]!.rows[0]![0]!.href).toBeUndefined();
  });
  test("a row is named by its name, not by its numbers", () => {
    const row = [
      { text: "Dana Okafor", isNumber: false },
      { text: "24", isNumber: true },
    ];
    expect([isRowNamed(row, "Okafor led"), isRowNamed(row, "24"), isRowNamed(row, "Dan")]).toEqual([
      true,
      false,
      false,
    ]);
  });
  test("titles", () => {
    expect(["home_team", "FG%", "Gulls 4-1"].map(readableName)).toEqual(["Home team", "FG%", "Gulls 4-1"]);
  });
});
