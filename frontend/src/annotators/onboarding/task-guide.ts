import type { Guide, Task } from "../../lib/api-types";
import { isNamedByPosition, renameByPosition } from "../../lib/questions/options";

/** Return the guide for a text: that of the protocol, or only its own question for a multiple-choice text. */
export function taskGuide(guide: Guide, task: Task | undefined): Guide {
  const question = task?.practice?.question;
  if (!question)
    return task && guide.work.unit === "pair" && isNamedByPosition(task.context ?? {}) ? pairGuide(guide) : guide;
  const nothing = { labels: [], unlabelled: false, questions: [], unit_questions: [] };
  return { ...guide, ...nothing, document_questions: [{ ...question, name: "answer" }] };
}

/** Return the guide for a pair, with its texts named by position. */
const pairGuide = (guide: Guide): Guide => ({
  ...guide,
  document_questions: guide.document_questions.map(renameByPosition),
  marks_on: guide.marks_on?.map((part) => ({ a: "first", b: "second" })[part] ?? part) ?? null,
});
