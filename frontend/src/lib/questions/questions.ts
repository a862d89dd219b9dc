import type { Answer, Answers, Guide, Label, Question } from "../api-types";
import { questionScale } from "./scales";

export const findLabel = (guide: Guide, name: string | null): Label | undefined =>
  guide.labels.find((label) => label.name === name);

/** Return the questions for a mark with that label. */
export const markQuestions = (guide: Guide, label: string | null): Question[] => [
  ...guide.questions,
  ...(findLabel(guide, label)?.questions ?? []),
];

/** Return the questions about the whole text, except the reason why it cannot be judged. */
export const textQuestions = (guide: Guide): Question[] =>
  guide.document_questions.filter((question) => question.name !== "cannot_judge");

/** Return true if a question is asked, given the other answers. */
export function isApplicable(question: Question, answers: Answers): boolean {
  if (!question.when) return true;
  const given = answers[question.when.question];
  return (Array.isArray(given) ? given : [given]).some((each) => question.when!.among.includes(each as string));
}

export const isAnswered = (answer: Answer | undefined): boolean =>
  answer !== undefined &&
  (typeof answer === "string" ? answer.trim() !== "" : !Array.isArray(answer) || answer.length > 0);

/** Return the answers to questions that are asked. `cannot_judge` is always allowed. */
export const applicableAnswers = (answers: Answers, questions: readonly Question[]): Answers =>
  Object.fromEntries(
    Object.entries(answers).filter(
      ([name, answer]) =>
        isAnswered(answer) &&
        (name === "cannot_judge" || questions.some((each) => each.name === name && isApplicable(each, answers))),
    ),
  );

/** Return required questions without an answer. */
export const unansweredQuestions = (questions: readonly Question[], answers: Answers): Question[] =>
  questions.filter(
    (question) => question.required && isApplicable(question, answers) && !isAnswered(answers[question.name]),
  );

/** Return the question that digits answer: severity, or else the first with options. */
export const digitQuestion = (questions: readonly Question[], answers: Answers): Question | undefined => {
  const choices = questions.filter(
    (each) => each.options.length > 0 && !questionScale(each).allowsSeveral && isApplicable(each, answers),
  );
  return choices.find((each) => each.name === "severity") ?? choices[0];
};
