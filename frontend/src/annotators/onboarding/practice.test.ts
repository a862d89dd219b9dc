import { expect, test } from "vitest";
import { guide, practice, question, task } from "../work/fixtures";
import { guideOf } from "./practice";

test("a question of its own is all that is asked of such a text", () => {
  const usual = guide({ document_questions: [question("quality")] });
  expect(guideOf(usual, task("x", { practice: practice() }))).toBe(usual);
  const asked = guideOf(usual, task("x", { practice: practice({ question: question("answer") }) }));
  expect([asked.labels, asked.document_questions.map(({ name }) => name)]).toEqual([[], ["answer"]]);
});
