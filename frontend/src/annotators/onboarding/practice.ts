import type { Guide, Task } from "../../lib/api-types";

/** What is asked of a text: what the protocol asks, or only the question of its own that a multiple-choice text has. */
export function guideOf(guide: Guide, task: Task | undefined): Guide {
  const question = task?.practice?.question;
  if (!question) return guide;
  const nothing = { labels: [], unlabelled: false, questions: [], unit_questions: [] };
  return { ...guide, ...nothing, document_questions: [{ ...question, name: "answer" }] };
}
