import { describe, expect, test } from "vitest";
import type { Look } from "../../lib/api-types";
import { nth } from "../guide/examples";
import { globalCommand, textCommand, type Press } from "../marking/keys";
import { blocks, runs } from "../guide/markdown";
import { rowNamed, tabs, title } from "../../lib/data-tables";

const press = (key: string, more: Partial<Press> = {}): Press => ({
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  shiftKey: false,
  isComposing: false,
  ...more,
});
const LOOKS: Look[] = [{ label: "redundant", title: "Redundant", slot: "A3", flag: "RD", key: "r" }];

describe("keys", () => {
  test.each([
    [press("r"), { do: "label", label: "redundant" }],
    [press("R", { shiftKey: true }), { do: "define", label: "redundant" }],
    [press("2"), { do: "digit", digit: 2 }],
    [press("a"), { do: "antecedent" }],
    [press("["), { do: "resize", edge: "end", way: -1 }],
    [press("}", { shiftKey: true }), { do: "resize", edge: "start", way: 1 }],
    [press("[", { ctrlKey: true, altKey: true }), { do: "resize", edge: "end", way: -1 }], // AltGr
    [press("ArrowLeft"), { do: "move", by: "character", way: -1, extend: false }],
    [press("ArrowRight", { ctrlKey: true, shiftKey: true }), { do: "move", by: "word", way: 1, extend: true }],
    [press("ArrowRight", { altKey: true }), { do: "move", by: "word", way: 1, extend: false }],
    [press("ArrowDown", { altKey: true }), { do: "step", way: 1 }],
    [press("Home", { ctrlKey: true }), { do: "move", by: "all", way: -1, extend: false }],
    [press("Tab", { shiftKey: true }), { do: "cycle", way: -1 }],
    [press("z", { ctrlKey: true }), { do: "undo" }],
    [press("Z", { metaKey: true, shiftKey: true }), { do: "redo" }],
    [press("Enter", { ctrlKey: true }), { do: "finish" }],
  ])("%j", (pressed, command) => {
    expect(textCommand(pressed, LOOKS)).toEqual(command);
  });

  test.each([
    press("r", { ctrlKey: true }),
    press("r", { altKey: true }),
    press("r", { isComposing: true }),
    press("q"),
  ])("%j does nothing", (pressed) => {
    expect(textCommand(pressed, LOOKS)).toBeUndefined();
  });

  test("left is onward where the text runs from right to left", () => {
    expect(textCommand(press("ArrowLeft"), LOOKS, true)).toMatchObject({ way: 1 });
  });
  test("letters mean nothing outside the text", () => {
    expect(globalCommand(press("r"))).toBeUndefined();
  });
});

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

describe("markdown", () => {
  test("headings, paragraphs, lists and tables", () => {
    const found = blocks("## What\nYou **read** it.\n\n1. One\n2. Two\n   more\n\n| a | b |\n|---|---|\n| 1 | `2` |");
    expect(found.map((block) => block.type)).toEqual(["heading", "paragraph", "list", "table"]);
    expect(found[2]).toMatchObject({
      ordered: true,
      items: [{ runs: [{ text: "One" }] }, { runs: [{ text: "Two more" }] }],
    });
    expect(found[3]).toMatchObject({
      rows: [
        [[{ text: "a" }], [{ text: "b" }]],
        [[{ text: "1" }], [{ text: "2", style: "code" }]],
      ],
    });
  });
  test("a list within a list", () => {
    expect(blocks("1. One\n   - a\n     more\n   - b\n2. Two")).toMatchObject([
      {
        ordered: true,
        items: [
          { runs: [{ text: "One" }], inner: { ordered: false, items: [{ runs: [{ text: "a more" }] }, {}] } },
          { runs: [{ text: "Two" }] },
        ],
      },
    ]);
  });
  test("what looks like HTML stays text", () => {
    expect(runs("x<y and <b>bold</b>")).toEqual([{ text: "x<y and <b>bold</b>", style: "plain" }]);
  });
});

test("the nth occurrence of a quote", () => {
  expect([nth("banana", "an", 1), nth("banana", "an", 2), nth("banana", "an", 3)]).toEqual([1, 3, -1]);
});
