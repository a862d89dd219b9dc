import { expect, test } from "vitest";
import { question } from "../../annotators/work/fixtures";
import { choicesOf, hasOneChoice, scaleOf } from "./scales";

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
  expect([scaleOf(asked).field, hasOneChoice(asked)]).toEqual([field, one]);
  expect(choicesOf(asked).length).toBe(field === "options" ? 2 : 0);
});
