import type { Guide, Question } from "../../lib/api-types";
import { labelOf, questionsOf, unanswered, wholeQuestions } from "../../lib/questions/questions";
import { marksOf, NOTHING_SAID, type Key, type Mark, type MarkKey, type UnitKey, type Work } from "./work";

/** Something required that is not there yet: an answer, earlier words, a label, or a part not judged. */
export interface Missing {
  readonly key: Key;
  readonly what: "answer" | "antecedent" | "label" | "part";
  readonly question?: Question;
}

/**
 * All that is missing, in the order of the text, then of the parts, then about the whole text. Marks must be whole even
 * where the text cannot be judged, since the server takes no half ones.
 */
export function missing(work: Work, guide: Guide, parts: readonly UnitKey[] = []): Missing[] {
  const whole = work.answers ?? NOTHING_SAID;
  const inMarks = marksOf(work).flatMap(([key, mark]) => missingOfMark(key, mark, guide));
  if (whole.answers.cannot_judge !== undefined) return inMarks;
  return [
    ...inMarks,
    ...parts.flatMap((key) => missingOfPart(work, key, guide)),
    ...unanswered(wholeQuestions(guide), whole.answers).map((question) => ({
      key: "answers" as const,
      what: "answer" as const,
      question,
    })),
  ];
}

/** What one mark lacks. */
export function missingOfMark(key: MarkKey, mark: Mark, guide: Guide): Missing[] {
  const found: Missing[] = [];
  if (mark.label === null && !guide.unlabelled) found.push({ key, what: "label" });
  found.push(
    ...unanswered(questionsOf(guide, mark.label), mark.answers).map((question) => ({
      key,
      what: "answer" as const,
      question,
    })),
  );
  if (labelOf(guide, mark.label)?.antecedent === "required" && mark.antecedent.length === 0)
    found.push({ key, what: "antecedent" });
  return found;
}

function missingOfPart(work: Work, key: UnitKey, guide: Guide): Missing[] {
  const judged = work[key];
  if (!judged) return [{ key, what: "part" }];
  if (judged.answers.cannot_judge !== undefined) return [];
  return unanswered(guide.unit_questions, judged.answers).map((question) => ({ key, what: "answer", question }));
}
