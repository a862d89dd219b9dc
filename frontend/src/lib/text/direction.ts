const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const LETTER = /\p{L}/u;

/** Return the direction of a paragraph from its first letter. `dir=auto` resolves before words are drawn. */
export function textDirection(text: string): "ltr" | "rtl" {
  const first = LETTER.exec(text)?.[0] ?? "";
  return RIGHT_TO_LEFT.test(first) ? "rtl" : "ltr";
}
