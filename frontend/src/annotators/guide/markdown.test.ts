import { describe, expect, test } from "vitest";
import { parseBlocks, parseRuns } from "./markdown";

describe("markdown", () => {
  test("headings, paragraphs, lists and tables", () => {
    const found = parseBlocks(
      "## What\nYou **read** it.\n\n1. One\n2. Two\n   more\n\n| a | b |\n|---|---|\n| 1 | `2` |",
    );
    expect(found.map((block) => block.type)).toEqual(["heading", "paragraph", "list", "table"]);
    expect(found[2]).toMatchObject({
      isOrdered: true,
      items: [{ runs: [{ text: "One" }] }, { runs: [{ text: "Two more" }] }],
    });
    expect(found[3]).toMatchObject({
      rows: [
        [[{ text: "a" }], [{ text: "b" }]],
        [[{ text: "1" }], [{ text: "2", style: "code" }]],
      ],
    });
  });
  test("nested lists", () => {
    expect(parseBlocks("1. One\n   - a\n     more\n   - b\n2. Two")).toMatchObject([
      {
        isOrdered: true,
        items: [
          { runs: [{ text: "One" }], sublist: { isOrdered: false, items: [{ runs: [{ text: "a more" }] }, {}] } },
          { runs: [{ text: "Two" }] },
        ],
      },
    ]);
  });
  test("quote with a line of context above it", () => {
    expect(parseBlocks("> *Prompt*: A ferry.\n>\n> It leaves **60**.\n\nForty are gone.")).toMatchObject([
      {
        type: "quote",
        paragraphs: [
          [{ text: "Prompt", style: "emphasis" }, {}],
          [{}, { text: "60" }, {}],
        ],
      },
      { type: "paragraph" },
    ]);
  });
  test("HTML stays text", () => {
    expect(parseRuns("x<y and <b>bold</b>")).toEqual([{ text: "x<y and <b>bold</b>", style: "plain" }]);
  });
});
