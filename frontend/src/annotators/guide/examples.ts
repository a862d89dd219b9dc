import { findLabelLook } from "../../lib/label-styles";
import type { Drawing } from "../../lib/text/pieces";
import type { Example, LabelLook } from "../../lib/api-types";

/** Locate the marks of an example by their quotes. */
export const exampleDrawings = (example: Example, looks: readonly LabelLook[]): Drawing[] =>
  example.marks
    .filter((mark) => mark.part === "text")
    .flatMap((mark, index): Drawing[] => {
      const start = indexOfNth(example.text, mark.quote || mark.before, mark.nth);
      if (start < 0) return [];
      const { slot, flag } = findLabelLook(looks, mark.label ?? null);
      const span = { part: "text", start, end: start + mark.quote.length };
      return [{ id: String(index), spans: [span], slot, flag, kind: "mark", tone: "rest" }];
    });

/** Return the offset of the nth occurrence, or -1 if there are fewer. */
export function indexOfNth(text: string, quote: string, count: number): number {
  let at = -1;
  for (let occurrence = 0; occurrence < count; occurrence++) {
    at = text.indexOf(quote, at + 1);
    if (at < 0) return -1;
  }
  return at;
}
