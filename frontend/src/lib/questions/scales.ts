import type { Option, Question } from "../api-types";
import { t } from "../catalogue/questions.en";

/** Option as shown. */
export type Choice = Pick<Option, "value" | "title" | "gloss" | "group">;

/** Input requirements of a scale. */
export interface Scale {
  /** Input element. */
  readonly field: "options" | "number" | "text";
  /** True if several options can be selected. */
  readonly allowsSeveral: boolean;
  /** True if the field starts with the text to judge and may be emptied. */
  readonly isRewrite: boolean;
  /** True if options fit as cards under a text. */
  readonly hasCards: boolean;
  /** Initial number of lines of a long-answer field. */
  readonly rows: number;
}

const OPTIONS_SCALE: Scale = { field: "options", allowsSeveral: false, isRewrite: false, hasCards: true, rows: 3 };
const TEXT_SCALE: Scale = { ...OPTIONS_SCALE, field: "text" };

/** All scales by name. Code that depends on a scale must use this table. */
const SCALES: Readonly<Record<Question["scale"], Scale>> = {
  nominal: OPTIONS_SCALE,
  ordinal: OPTIONS_SCALE,
  "yes-no": OPTIONS_SCALE,
  several: { ...OPTIONS_SCALE, allowsSeveral: true, hasCards: false },
  number: { ...TEXT_SCALE, field: "number", hasCards: false },
  text: TEXT_SCALE,
  rewrite: { ...TEXT_SCALE, isRewrite: true, rows: 8 },
};

export const questionScale = ({ scale }: Pick<Question, "scale">): Scale => SCALES[scale];

/** Return the options of a question, including yes and no. */
export const questionChoices = ({ scale, options }: Pick<Question, "scale" | "options">): readonly Choice[] =>
  scale === "yes-no"
    ? [
        { value: true, title: t("yes"), gloss: "", group: "" },
        { value: false, title: t("no"), gloss: "", group: "" },
      ]
    : options;

/** Return true if the question has options. */
export const hasChoices = (question: Question): boolean => questionChoices(question).length > 0;

/** Return true if the answer is exactly one option. */
export const isSingleChoice = (question: Question): boolean =>
  hasChoices(question) && !questionScale(question).allowsSeveral;

type Range = Pick<Question, "low" | "high">;

/** Parse a typed number: null if the field is empty, undefined if the number is not a valid answer. */
export function parseNumber({ low, high }: Range, text: string): number | null | undefined {
  const typed = text.trim().replace(/^(-?\d*),(\d+)$/, "$1.$2");
  if (typed === "") return null;
  const number = Number(typed);
  const isOutside = (low ?? -Infinity) > number || (high ?? Infinity) < number;
  return Number.isFinite(number) && !isOutside ? number : undefined;
}

/** Return the range of valid numbers in words; empty if any number is valid. */
export function rangeText({ low, high }: Range): string {
  const [minimum, maximum] = [low ?? undefined, high ?? undefined];
  if (minimum !== undefined && maximum !== undefined)
    return t("fromTo", { low: String(minimum), high: String(maximum) });
  if (minimum !== undefined) return t("atLeast", { low: String(minimum) });
  return maximum !== undefined ? t("atMost", { high: String(maximum) }) : "";
}
