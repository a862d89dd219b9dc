import type { Answer, Answers, Question } from "../api-types";
import { t } from "../catalogue/questions.en";
import { isAnswered } from "./questions";
import { hasChoices, isSingleChoice, questionScale, type Choice } from "./scales";

/** Keys of options, in order: digits first, then letters. */
export const OPTION_KEYS: readonly string[] = [..."1234567890abcdefghijklmnopqrstuvwxyz"];

const PAIR_POSITIONS: Readonly<Record<string, string>> = { a: "first", b: "second" };

/** Names of the texts of a pair by position on screen, as on the server. */
export const isNamedByPosition = (context: Readonly<Record<string, unknown>>): boolean =>
  "first" in context && "second" in context;

/** Return the question about a pair with its texts named by position, from left to right. */
export function renameByPosition(question: Question): Question {
  const renameValue = <V>(value: V): V => (typeof value === "string" ? ((PAIR_POSITIONS[value] ?? value) as V) : value);
  const options = question.options.map((option) => ({ ...option, value: renameValue(option.value) }));
  const when = question.when ? { ...question.when, among: question.when.among.map(renameValue) } : null;
  return { ...question, options, when };
}

/**
 * Return the question that keys answer now: the focused one, or else the first unanswered single choice, or else the
 * one answered last. Without single choices, the first multiple choice.
 */
export function keyboardQuestion(
  questions: readonly Question[],
  answers: Answers,
  focused: string | undefined,
  last: string | undefined,
): Question | undefined {
  const findChoiceQuestion = (name: string | undefined) =>
    questions.find((each) => each.name === name && hasChoices(each));
  const single = questions.filter(isSingleChoice);
  const waiting = single.find((each) => !isAnswered(answers[each.name]));
  return (
    findChoiceQuestion(focused) ??
    waiting ??
    single.find((each) => each.name === last) ??
    single[0] ??
    questions.find(hasChoices)
  );
}

/** Return the answer after an option was selected, or deselected among several. */
export function answerAfterChoice(question: Question, value: Answer | undefined, option: Choice): Answer | undefined {
  if (!questionScale(question).allowsSeveral) return option.value;
  const before = Array.isArray(value) ? value : [];
  const name = String(option.value);
  const after = before.includes(name) ? before.filter((each) => each !== name) : [...before, name];
  return after.length > 0 ? after : undefined;
}

/** Return an answer as text; empty if there is none. */
export function answerText(question: Pick<Question, "options">, answer: Answer | undefined): string {
  if (answer === undefined || !isAnswered(answer)) return "";
  if (Array.isArray(answer)) return answer.map((each) => answerText(question, each)).join(", ");
  const option = question.options.find(({ value }) => value === answer);
  if (option) return option.title || String(option.value);
  return typeof answer === "boolean" ? t(answer ? "yes" : "no") : String(answer);
}
