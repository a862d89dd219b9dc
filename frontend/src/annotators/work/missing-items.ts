import type { Guide, Question } from "../../lib/api-types";
import { findLabel, markQuestions, unansweredQuestions, textQuestions } from "../../lib/questions/questions";
import { sortedMarks, NO_ANSWERS, type EntryKey, type Mark, type MarkKey, type UnitKey, type Work } from "./work";

/** Something required that is not there yet: an answer, earlier words, a label, or a part not judged. */
export interface MissingItem {
  readonly key: EntryKey;
  readonly kind: "answer" | "antecedent" | "label" | "part";
  readonly question?: Question;
}

/**
 * All that is missing, in the order of the text, then of the parts, then about the whole text. Marks must be whole even
 * where the text cannot be judged, since the server takes no half ones.
 */
export function missingItems(work: Work, guide: Guide, parts: readonly UnitKey[] = []): MissingItem[] {
  const textAnswers = work.answers ?? NO_ANSWERS;
  const inMarks = sortedMarks(work).flatMap(([key, mark]) => missingInMark(key, mark, guide));
  if (textAnswers.answers.cannot_judge !== undefined) return inMarks;
  return [
    ...inMarks,
    ...parts.flatMap((key) => missingInPart(work, key, guide)),
    ...unansweredQuestions(textQuestions(guide), textAnswers.answers).map((question) => ({
      key: "answers" as const,
      kind: "answer" as const,
      question,
    })),
  ];
}

/** What one mark lacks. */
export function missingInMark(key: MarkKey, mark: Mark, guide: Guide): MissingItem[] {
  const items: MissingItem[] = [];
  if (mark.label === null && !guide.unlabelled) items.push({ key, kind: "label" });
  items.push(
    ...unansweredQuestions(markQuestions(guide, mark.label), mark.answers).map((question) => ({
      key,
      kind: "answer" as const,
      question,
    })),
  );
  if (findLabel(guide, mark.label)?.antecedent === "required" && mark.antecedent.length === 0)
    items.push({ key, kind: "antecedent" });
  return items;
}

function missingInPart(work: Work, key: UnitKey, guide: Guide): MissingItem[] {
  const judgement = work[key];
  if (!judgement) return [{ key, kind: "part" }];
  if (judgement.answers.cannot_judge !== undefined) return [];
  return unansweredQuestions(guide.unit_questions, judgement.answers).map((question) => ({
    key,
    kind: "answer",
    question,
  }));
}
