import { expect, test } from "vitest";
import { question } from "../../annotators/work/fixtures";
import { questionChoices, isSingleChoice, parseNumber, rangeText, questionScale } from "./scales";

const options = ["a", "b"].map((value) => ({ value, title: "", gloss: "", group: "", aliases: [] }));

test.each([
  ["nominal", "options", true],
  ["ordinal", "options", true],
  ["yes-no", "options", true],
  ["several", "options", false],
  ["number", "number", false],
  ["text", "text", false],
  ["rewrite", "text", false],
] as const)("%s is answered with %s", (scale, field, one) => {
  const asked = question("q", { scale, options: field === "options" && scale !== "yes-no" ? options : [] });
  expect([questionScale(asked).field, isSingleChoice(asked)]).toEqual([field, one]);
  expect(questionChoices(asked).length).toBe(field === "options" ? 2 : 0);
});

test.each([
  ["3", 3],
  [" 4,5 ", 4.5],
  ["", null],
  ["9", undefined],
  ["0", undefined],
  ["many", undefined],
  ["1e999", undefined],
])("%j on a scale from 1 to 5 is %j", (text, number) => {
  expect(parseNumber({ low: 1, high: 5 }, text)).toBe(number);
});

test("rangeText describes the range in words", () => {
  expect(rangeText({ low: 1, high: 5 })).toBe("from 1 to 5");
  expect(rangeText({ low: 0, high: null })).toBe("of at least 0");
  expect(rangeText({ low: null, high: null })).toBe("");
});
