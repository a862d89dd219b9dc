import { expect, test } from "vitest";
import { createOffsetConverter } from "./offsets";

const TEXTS = ["", "plain", "a👩‍👩‍👧b", "🇳🇴𝒜", "e\u0301👍🏽 naïve", "渡轮🛳️早上", "x".repeat(500) + "😀" + "y".repeat(500)];

/** Slow reference implementation: code points before a UTF-16 offset. */
const slow = (text: string, utf16: number) => [...text.slice(0, utf16)].length;
/** Offsets between two code points. */
const edges = (text: string) =>
  [...text].reduce((found, character) => [...found, found.at(-1)! + character.length], [0]);

test.each(TEXTS)("offsets of %j count code points, as Python does", (text) => {
  const { toCodePoints, toUtf16 } = createOffsetConverter(text);
  edges(text).forEach((utf16, codePoints) => {
    expect(toCodePoints(utf16)).toBe(slow(text, utf16));
    expect(toCodePoints(utf16)).toBe(codePoints);
    expect(toUtf16(codePoints)).toBe(utf16);
  });
});

test("a lone surrogate counts as one code point, as in Python", () => {
  const { toCodePoints } = createOffsetConverter("a\ud83db😀c");
  expect([0, 1, 2, 3, 5, 6].map(toCodePoints)).toEqual([0, 1, 2, 3, 4, 5]);
});
