import { expect, test } from "vitest";
import { guide, practice, question, task } from "../work/fixtures";
import { taskGuide } from "./task-guide";

test("a multiple-choice text has only its own question", () => {
  const usual = guide({ document_questions: [question("quality")] });
  expect(taskGuide(usual, task("x", { practice: practice() }))).toBe(usual);
  const asked = taskGuide(usual, task("x", { practice: practice({ question: question("answer") }) }));
  expect([asked.labels, asked.document_questions.map(({ name }) => name)]).toEqual([[], ["answer"]]);
});
