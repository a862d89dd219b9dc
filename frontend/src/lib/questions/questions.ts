import type { Answer, Answers, Guide, Label, Question } from "../api-types";
import { scaleOf } from "./scales";

export const labelOf = (guide: Guide, name: string | null): Label | undefined =>
  guide.labels.find((label) => label.name === name);

/** What is asked of a mark with that label. */
export const questionsOf = (guide: Guide, label: string | null): Question[] => [
  ...guide.questions,
  ...(labelOf(guide, label)?.questions ?? []),
];

/** What is asked about the whole text, apart from why it cannot be judged. */
export const wholeQuestions = (guide: Guide): Question[] =>
  guide.document_questions.filter((question) => question.name !== "cannot_judge");

/** Whether a question is asked at all, given the other answers. */
export function applies(question: Question, answers: Answers): boolean {
  if (!question.when) return true;
  const given = answers[question.when.question];
  return (Array.isArray(given) ? given : [given]).some((each) => question.when!.among.includes(each as string));
}

export const isGiven = (answer: Answer | undefined): boolean =>
  answer !== undefined &&
  (typeof answer === "string" ? answer.trim() !== "" : !Array.isArray(answer) || answer.length > 0);

/** Those answers that are given to questions that are asked. `cannot_judge` may always be said. */
export const asked = (answers: Answers, questions: readonly Question[]): Answers =>
  Object.fromEntries(
    Object.entries(answers).filter(
      ([name, answer]) =>
        isGiven(answer) &&
        (name === "cannot_judge" || questions.some((each) => each.name === name && applies(each, answers))),
    ),
  );

/** Required questions without an answer. */
export const unanswered = (questions: readonly Question[], answers: Answers): Question[] =>
  questions.filter((question) => question.required && applies(question, answers) && !isGiven(answers[question.name]));

/** The question that digits answer: severity, else the first with options. */
export const digitQuestion = (questions: readonly Question[], answers: Answers): Question | undefined => {
  const choices = questions.filter((each) => each.options.length > 0 && !scaleOf(each).many && applies(each, answers));
  return choices.find((each) => each.name === "severity") ?? choices[0];
};
