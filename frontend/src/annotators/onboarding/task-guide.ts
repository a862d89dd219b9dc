import type { Guide, Task } from "../../lib/api-types";
import { isNamedByPosition, renameByPosition } from "../../lib/questions/options";

/** What is asked of a text: what the protocol asks, or only the question of its own that a multiple-choice text has. */
export function taskGuide(guide: Guide, task: Task | undefined): Guide {
  const question = task?.practice?.question;
  if (!question)
    return task && guide.work.unit === "pair" && isNamedByPosition(task.context ?? {}) ? pairGuide(guide) : guide;
  const nothing = { labels: [], unlabelled: false, questions: [], unit_questions: [] };
  return { ...guide, ...nothing, document_questions: [{ ...question, name: "answer" }] };
}

/** What is asked of a pair whose texts are called by their places. */
const pairGuide = (guide: Guide): Guide => ({
  ...guide,
  document_questions: guide.document_questions.map(renameByPosition),
  marks_on: guide.marks_on?.map((part) => ({ a: "first", b: "second" })[part] ?? part) ?? null,
});
