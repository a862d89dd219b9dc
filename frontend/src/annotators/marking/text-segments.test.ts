import { describe, expect, test } from "vitest";
import { TextSegments, type Snap } from "./text-segments";

const TEXT = "The bridge (built 1932) won 44-39. It melts!";
const words = (text: string, selected: string, what: Snap, language = "en") => {
  const start = text.indexOf(selected);
  const { start: from, end } = new TextSegments(text, language).snap({ start, end: start + selected.length }, what);
  return text.slice(from, end);
};

describe("snapping", () => {
  test.each([
    ["ridg", "word", "bridge"],
    ["e (b", "word", "bridge (built"],
    [" won ", "word", "won"],
    ["44", "word", "44"],
    ["4-3", "word", "44-39"],
    ["39.", "word", "39."],
    ["brid", "sentence", "The bridge (built 1932) won 44-39."],
    ["39. It", "sentence", TEXT],
    ["ridg", "character", "ridg"],
  ] as [string, Snap, string][])("%j by %s is %j", (selected, what, expected) => {
    expect(words(TEXT, selected, what)).toBe(expected);
  });

  test("does not cut characters made of several code points", () => {
    const text = "a 👩‍👩‍👧 e\u0301 b";
    const segments = new TextSegments(text, "en");
    for (let start = 0; start < text.length; start++)
      for (let end = start + 1; end <= text.length; end++) {
        const found = segments.snap({ start, end }, "character");
        expect(found.start).toBeLessThanOrEqual(start);
        expect(found.end).toBeGreaterThanOrEqual(end);
        expect([0, 1, 2, 10, 11, 13, 14, 15]).toContain(found.start);
      }
  });

  test("finds words in languages without spaces", () => {
    expect(words("渡轮早上八点离开港口", "轮", "word", "zh")).toBe("渡轮");
    expect(words("ภาษาไทยไม่มีช่องว่าง", "าษ", "word", "th").length).toBeGreaterThan(2);
  });

  test("uses the given sentences", () => {
    const text = "At 5 p.m. Ann left. Ben stayed.";
    const given = new TextSegments(text, "en", [
      { start: 0, end: 19 },
      { start: 20, end: 31 },
    ]);
    expect(given.snap({ start: 10, end: 13 }, "sentence")).toEqual({ start: 0, end: 19 });
    expect(given.snap({ start: 16, end: 22 }, "sentence")).toEqual({ start: 0, end: 31 });
    expect(given.snap({ start: 30, end: 31 }, "sentence")).toEqual({ start: 20, end: 31 });
    expect(new TextSegments("", "en", []).snap({ start: 0, end: 0 }, "sentence")).toEqual({ start: 0, end: 0 });
  });

  test("accepts an unknown language", () => {
    expect(words(TEXT, "ridg", "word", "no such language")).toBe("bridge");
  });

  test("is idempotent", () => {
    const segments = new TextSegments(TEXT, "en");
    for (const what of ["word", "sentence", "character"] as Snap[])
      for (let start = 0; start < TEXT.length; start++)
        for (const length of [1, 4, 9]) {
          const once = segments.snap({ start, end: Math.min(TEXT.length, start + length) }, what);
          expect(segments.snap(once, what)).toEqual(once);
        }
  });
});

describe("moving", () => {
  const segments = new TextSegments(TEXT, "en");
  const bridge = { start: 4, end: 10 };
  const seen = ({ start, end }: { start: number; end: number }) => TEXT.slice(start, end);

  test("the ends of a mark move word by word and back", () => {
    const longer = segments.moveEdge({ start: 0, end: 3 }, "end", 1, "word");
    expect(seen(longer)).toBe("The bridge");
    expect(segments.moveEdge(longer, "end", -1, "word")).toEqual({ start: 0, end: 3 });
    expect(seen(segments.moveEdge(bridge, "start", -1, "word"))).toBe("The bridge");
    expect(seen(segments.moveEdge({ start: 0, end: 10 }, "start", 1, "word"))).toBe("bridge");
  });

  test("a mark never becomes empty or leaves the text", () => {
    expect(segments.moveEdge(bridge, "end", -1, "word")).toEqual(bridge);
    expect(segments.moveEdge({ start: 0, end: 3 }, "start", -1, "word")).toEqual({ start: 0, end: 3 });
    const last = { start: TEXT.length - 1, end: TEXT.length };
    expect(segments.moveEdge(last, "end", 1, "word")).toEqual(last);
  });

  test("the caret stops at every character and at every word", () => {
    const stops = (what: Snap) => {
      const found = [0];
      while (found.at(-1)! < TEXT.length) found.push(segments.nextStop(found.at(-1)!, what));
      return found;
    };
    expect(stops("character")).toHaveLength(TEXT.length + 1);
    expect(stops("word").slice(0, 5)).toEqual([0, 4, 11, 12, 18]);
    expect(segments.previousStop(4, "word")).toBe(0);
    expect(segments.previousStop(0, "character")).toBe(0);
  });
});
