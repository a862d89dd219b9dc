import { expect, test } from "vitest";
import { textDirection } from "./direction";

test.each([
  ["The ferry", "ltr"],
  ["הספינה יצאה", "rtl"],
  ["“١٢ سفينة", "rtl"],
  ["1932: The bridge (הגשר)", "ltr"],
  ["渡轮", "ltr"],
  ["…", "ltr"],
  ["", "ltr"],
])("%s runs %s", (text, expected) => {
  expect(textDirection(text)).toBe(expected);
});
