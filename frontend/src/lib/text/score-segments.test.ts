import { describe, expect, test } from "vitest";
import { splitAtScores, unsplitSegment } from "./score-segments";

const TEXT = "The Otters (31-20) won 104-98 on Thursday.";
const cut = (start: number, end: number) =>
  splitAtScores(TEXT, start, end).map(
    ({ start, end, isUnbroken, isJoinedToNext }) =>
      `${TEXT.slice(start, end)}${isUnbroken ? "!" : ""}${isJoinedToNext ? "+" : ""}`,
  );
const at = TEXT.indexOf("104-98");

describe("scores do not break across lines", () => {
  test("a piece is cut at the edges of its scores", () =>
    expect(cut(0, TEXT.length)).toEqual(["The Otters ", "(31-20)!", " won ", "104-98!", " on Thursday."]));
  test("a score that is cut by a mark stays on one line", () => {
    expect(cut(at - 4, at + 4)).toEqual(["won ", "104-!+"]);
    expect(cut(at + 4, at + 6)).toEqual(["98!"]);
    expect(cut(at, at + 1)).toEqual(["1!+"]);
  });
  test("a framed piece is one stretch", () => {
    expect(unsplitSegment(TEXT, at, at + 4)).toEqual([
      { start: at, end: at + 4, isUnbroken: true, isJoinedToNext: true },
    ]);
    expect(unsplitSegment(TEXT, 0, at)).toEqual([{ start: 0, end: at, isUnbroken: false, isJoinedToNext: false }]);
  });
  test("text without scores is one stretch, as is empty text", () => {
    expect(cut(0, 10)).toEqual(["The Otters"]);
    expect(splitAtScores(TEXT, 3, 3)).toEqual([{ start: 3, end: 3, isUnbroken: false, isJoinedToNext: false }]);
  });
  test("the pieces always rebuild the text", () => {
    for (let start = 0; start <= TEXT.length; start++)
      for (let end = start; end <= TEXT.length; end++)
        expect(
          splitAtScores(TEXT, start, end)
            .map((each) => TEXT.slice(each.start, each.end))
            .join(""),
        ).toBe(TEXT.slice(start, end));
  });
});
