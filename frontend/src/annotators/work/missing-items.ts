import type { Guide, Question } from "../../lib/api-types";
import { findLabel, markQuestions, unansweredQuestions, textQuestions } from "../../lib/questions/questions";
import { sortedMarks, NO_ANSWERS, type EntryKey, type Mark, type MarkKey, type UnitKey, type Work } from "./work";

/** Required item that is missing: an answer, an antecedent, a label, or an unjudged part. */
export interface MissingItem {
  readonly key: EntryKey;
  readonly kind: "answer" | "antecedent" | "label" | "part";
  readonly question?: Question;
}

/**
 * Return all missing items in text order, then by part, then for the whole text. Marks must be complete even if the
 * text cannot be judged, because the server rejects incomplete ones.
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

/** Return the missing items of one mark. */
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
