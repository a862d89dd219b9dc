import { t } from "../catalogue";
import type { Answer, Answers, Option, Question } from "../api-types";
import { isGiven } from "./questions";

/** An option to choose, as it is shown. */
export type Choice = Pick<Option, "value" | "title" | "gloss" | "group">;

/** Keys of options, in order: digits first, then letters. */
export const OPTION_KEYS: readonly string[] = [..."1234567890abcdefghijklmnopqrstuvwxyz"];

/** What can be chosen; yes and no are options, too. */
export const choicesOf = (question: Question): readonly Choice[] =>
  question.scale === "yes-no"
    ? [
        { value: true, title: t("yes"), gloss: "", group: "" },
        { value: false, title: t("no"), gloss: "", group: "" },
      ]
    : question.options;

/** Whether what is asked never tells one text of a pair from the other. */
export const isEven = (questions: readonly Question[]): boolean =>
  questions.every(({ when }) => !when || when.among.includes("a") === when.among.includes("b"));

/** The question with its letters in the order of the screen, where text `b` comes first: there, A is the first. */
export function turned(question: Question): Question {
  const other = { a: "b", b: "a" };
  const options = question.options.map((option) =>
    option.value === "a" || option.value === "b" ? { ...option, value: other[option.value] } : option,
  );
  return { ...question, options };
}

const chooses = ({ scale, options }: Question): boolean => scale === "yes-no" || options.length > 0;
const choosesOne = (question: Question): boolean => chooses(question) && question.scale !== "several";

/**
 * The question that keys answer at the moment: the one with the focus, else the first that waits for one choice, else
 * the one that was answered last. Where nothing asks for one choice, the first that asks for several.
 */
export function keyed(
  questions: readonly Question[],
  answers: Answers,
  focused: string | undefined,
  last: string | undefined,
): Question | undefined {
  const named = (name: string | undefined) => questions.find((each) => each.name === name && chooses(each));
  const single = questions.filter(choosesOne);
  const waiting = single.find((each) => !isGiven(answers[each.name]));
  return named(focused) ?? waiting ?? single.find((each) => each.name === last) ?? single[0] ?? questions.find(chooses);
}

/** The answer after an option was chosen, or chosen once more among several. */
export function chosen(question: Question, value: Answer | undefined, option: Choice): Answer | undefined {
  if (question.scale !== "several") return option.value;
  const before = Array.isArray(value) ? value : [];
  const name = String(option.value);
  const after = before.includes(name) ? before.filter((each) => each !== name) : [...before, name];
  return after.length > 0 ? after : undefined;
}
