import type { Option, Question } from "../api-types";
import { t } from "../catalogue/questions.en";

/** An option to choose, as it is shown. */
export type Choice = Pick<Option, "value" | "title" | "gloss" | "group">;

/** What answering on a scale takes. */
export interface Scale {
  /** What an answer is given with. */
  readonly field: "options" | "number" | "text";
  /** Several options may be chosen. */
  readonly allowsSeveral: boolean;
  /** The field begins with the text under judgement, and may be emptied. */
  readonly isRewrite: boolean;
  /** There is room for its options as cards under a text. */
  readonly hasCards: boolean;
  /** Lines that a field for a long answer begins with. */
  readonly rows: number;
}

const OPTIONS_SCALE: Scale = { field: "options", allowsSeveral: false, isRewrite: false, hasCards: true, rows: 3 };
const TEXT_SCALE: Scale = { ...OPTIONS_SCALE, field: "text" };

/** Every scale by its name: whatever depends on a scale asks this table. */
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

/** What can be chosen; yes and no are options, too. */
export const questionChoices = ({ scale, options }: Pick<Question, "scale" | "options">): readonly Choice[] =>
  scale === "yes-no"
    ? [
        { value: true, title: t("yes"), gloss: "", group: "" },
        { value: false, title: t("no"), gloss: "", group: "" },
      ]
    : options;

/** Whether there is something to choose among. */
export const hasChoices = (question: Question): boolean => questionChoices(question).length > 0;

/** Whether exactly one option is the answer. */
export const isSingleChoice = (question: Question): boolean =>
  hasChoices(question) && !questionScale(question).allowsSeveral;

type Range = Pick<Question, "low" | "high">;

/** The number that was typed: null when the field is empty, undefined when it is no answer to the question. */
export function parseNumber({ low, high }: Range, text: string): number | null | undefined {
  const typed = text.trim().replace(/^(-?\d*),(\d+)$/, "$1.$2");
  if (typed === "") return null;
  const number = Number(typed);
  const isOutside = (low ?? -Infinity) > number || (high ?? Infinity) < number;
  return Number.isFinite(number) && !isOutside ? number : undefined;
}

/** The numbers that answer a question, in words; empty where any number does. */
export function rangeText({ low, high }: Range): string {
  const [minimum, maximum] = [low ?? undefined, high ?? undefined];
  if (minimum !== undefined && maximum !== undefined)
    return t("fromTo", { low: String(minimum), high: String(maximum) });
  if (minimum !== undefined) return t("atLeast", { low: String(minimum) });
  return maximum !== undefined ? t("atMost", { high: String(maximum) }) : "";
}
