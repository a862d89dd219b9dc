import type { Option, Question } from "../api-types";
import { t } from "../catalogue/questions.en";

/** An option to choose, as it is shown. */
export type Choice = Pick<Option, "value" | "title" | "gloss" | "group">;

/** What answering on a scale takes. */
export interface Scale {
  /** What an answer is given with. */
  readonly field: "options" | "number" | "text";
  /** Several options may be chosen. */
  readonly many: boolean;
  /** The field begins with the text under judgement, and may be emptied. */
  readonly rewrites: boolean;
  /** There is room for its options as cards under a text. */
  readonly cards: boolean;
  /** Lines that a field for a long answer begins with. */
  readonly rows: number;
}

const OPTIONS: Scale = { field: "options", many: false, rewrites: false, cards: true, rows: 3 };
const TEXT: Scale = { ...OPTIONS, field: "text" };

/** Every scale by its name: whatever depends on a scale asks this table. */
const SCALES: Readonly<Record<Question["scale"], Scale>> = {
  nominal: OPTIONS,
  ordinal: OPTIONS,
  "yes-no": OPTIONS,
  several: { ...OPTIONS, many: true, cards: false },
  number: { ...TEXT, field: "number", cards: false },
  text: TEXT,
  rewrite: { ...TEXT, rewrites: true, rows: 8 },
};

export const scaleOf = ({ scale }: Pick<Question, "scale">): Scale => SCALES[scale];

/** What can be chosen; yes and no are options, too. */
export const choicesOf = ({ scale, options }: Pick<Question, "scale" | "options">): readonly Choice[] =>
  scale === "yes-no"
    ? [
        { value: true, title: t("yes"), gloss: "", group: "" },
        { value: false, title: t("no"), gloss: "", group: "" },
      ]
    : options;

/** Whether there is something to choose among. */
export const hasChoices = (question: Question): boolean => choicesOf(question).length > 0;

/** Whether exactly one option is the answer. */
export const hasOneChoice = (question: Question): boolean => hasChoices(question) && !scaleOf(question).many;

type Range = Pick<Question, "low" | "high">;

/** The number that was typed: null when the field is empty, undefined when it is no answer to the question. */
export function numberIn({ low, high }: Range, text: string): number | null | undefined {
  const typed = text.trim().replace(/^(-?\d*),(\d+)$/, "$1.$2");
  if (typed === "") return null;
  const number = Number(typed);
  const isOutside = (low ?? -Infinity) > number || (high ?? Infinity) < number;
  return Number.isFinite(number) && !isOutside ? number : undefined;
}

/** The numbers that answer a question, in words; empty where any number does. */
export function rangeInWords({ low, high }: Range): string {
  const [least, most] = [low ?? undefined, high ?? undefined];
  if (least !== undefined && most !== undefined) return t("fromTo", { low: String(least), high: String(most) });
  if (least !== undefined) return t("atLeast", { low: String(least) });
  return most !== undefined ? t("atMost", { high: String(most) }) : "";
}
