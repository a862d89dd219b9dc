import { describe, expect, test } from "vitest";
import { buildLayers, layOutText, splitIntoBlocks, splitIntoPieces, type Drawing } from "./pieces";

const drawing = (id: string, ...ranges: [number, number][]): Drawing => ({
  id,
  spans: ranges.map(([start, end]) => ({ part: "text", start, end })),
  slot: "A1",
  flag: "GU",
  kind: "mark",
  tone: "rest",
});
const TEXT = "The bridge was built in 1932 and opened in 1929.";

/** Deterministic pseudo-random numbers. */
function* numbers(seed: number): Generator<number> {
  for (let state = seed; ;) yield (state = (state * 48271) % 2147483647);
}
const random = numbers(7);
const upTo = (most: number) => random.next().value! % (most + 1);

describe("pieces", () => {
  test("are cut at every edge and list their layers", () => {
    const found = splitIntoPieces(
      0,
      TEXT.length,
      buildLayers([drawing("a", [11, 28]), drawing("b", [24, 39])], "text"),
    );
    expect(
      found.map((piece) => [TEXT.slice(piece.start, piece.end), piece.layers.map((each) => each.drawing.id)]),
    ).toEqual([
      ["The bridge ", []],
      ["was built in ", ["a"]],
      ["1932", ["a", "b"]],
      [" and opened", ["b"]],
      [" in 1929.", []],
    ]);
  });

  test("an omission is an empty piece between two others", () => {
    const found = splitIntoPieces(0, TEXT.length, buildLayers([drawing("gap", [28, 28])], "text"));
    expect(found.map(({ start, end }) => [start, end])).toEqual([
      [0, 28],
      [28, 28],
      [28, TEXT.length],
    ]);
  });

  test("always rebuild the text and match the definition of coverage", () => {
    for (let round = 0; round < 300; round++) {
      const drawings = Array.from({ length: upTo(6) }, (_, index) => {
        const start = upTo(TEXT.length);
        return drawing(String(index), [start, Math.min(TEXT.length, start + upTo(20))]);
      });
      const found = splitIntoPieces(0, TEXT.length, buildLayers(drawings, "text"));
      expect(found.map(({ start, end }) => TEXT.slice(start, end)).join("")).toBe(TEXT);
      for (const piece of found.filter(({ start, end }) => start < end)) {
        const covering = drawings.filter(({ spans: [span] }) => span!.start < piece.end && piece.start < span!.end);
        expect(new Set(piece.layers.map((each) => each.drawing.id))).toEqual(new Set(covering.map(({ id }) => id)));
      }
    }
  });
});

describe("paragraphs", () => {
  test.each([
    ["", [""]],
    ["one", ["one"]],
    ["one\n\ntwo\n", ["one\n", "\n", "two\n"]],
    ["\none", ["\n", "one"]],
  ])("of %j are %j", (text, expected) => {
    expect(splitIntoBlocks(text).map(({ start, end }) => text.slice(start, end))).toEqual(expected);
  });

  test("a very long line is split into blocks that end with a sentence and lose nothing", () => {
    const text = "A sentence of some words. ".repeat(2000).trim();
    const found = splitIntoBlocks(text);
    expect(found.length).toBeGreaterThan(5);
    expect(found.map(({ start, end }) => text.slice(start, end)).join("")).toBe(text);
    expect(found.slice(0, -1).every(({ end }) => text.slice(0, end).endsWith(". "))).toBe(true);
  });

  test("a line without spaces is split between characters and keeps one direction", () => {
    const text = "א" + "😀".repeat(5000);
    const found = splitIntoBlocks(text);
    expect(found.every(({ start }) => !/^[\udc00-\udfff]/.test(text.slice(start)))).toBe(true);
    expect(new Set(found.map((each) => each.direction))).toEqual(new Set(["rtl"]));
  });
});

describe("layOut", () => {
  const text = "first line\nsecond line\nthird line";

  test("returns the same object for an unchanged paragraph", () => {
    const before = layOutText(text, [drawing("a", [0, 5])], "text", 0, text.length);
    const after = layOutText(text, [drawing("a", [0, 5]), drawing("b", [11, 17])], "text", 0, text.length, before);
    expect(after.map((paragraph, index) => paragraph === before[index])).toEqual([true, false, true]);
  });

  test("a mark over several paragraphs appears in each of them and keeps its level", () => {
    const found = layOutText(text, [drawing("long", [6, 30]), drawing("short", [11, 17])], "text", 0, text.length);
    const levelsOf = (id: string) =>
      found.flatMap(({ pieces }) =>
        pieces.flatMap(({ layers }) => layers.filter((each) => each.drawing.id === id).map((each) => each.level)),
      );
    expect(new Set(levelsOf("long"))).toEqual(new Set([0]));
    expect(new Set(levelsOf("short"))).toEqual(new Set([1]));
  });

  test("shows only a stretch of the text", () => {
    const found = layOutText(text, [], "text", 11, 22);
    expect(found.map(({ start, end }) => text.slice(start, end))).toEqual(["second line"]);
  });
});
