import { describe, expect, test } from "vitest";
import { rowNamed, tabs, title } from "./data-tables";

describe("data as tables", () => {
  test("names become tabs, deeper ones captions, lists of objects rows", () => {
    const found = tabs(
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
    expect(tabs(data as never, "Data")).toHaveLength(count);
  });
  test("only web addresses are links", () => {
    expect(tabs("javascript:alert(1)", "Data")[0]!.tables[0]!.rows[0]![0]!.href).toBeUndefined();
  });
  test("a row is named by its name, not by its numbers", () => {
    const row = [
      { text: "Dana Okafor", number: false },
      { text: "24", number: true },
    ];
    expect([rowNamed(row, "Okafor led"), rowNamed(row, "24"), rowNamed(row, "Dan")]).toEqual([true, false, false]);
  });
  test("titles", () => {
    expect(["home_team", "FG%", "Gulls 4-1"].map(title)).toEqual(["Home team", "FG%", "Gulls 4-1"]);
  });
});
