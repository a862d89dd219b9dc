import { expect, test } from "vitest";
import { t } from ".";
import { translator } from "./translator";
import en from "./annotators.en";

test("plural forms and values", () => {
  expect(t("marks", { n: 1 })).toBe("1 mark");
  expect(t("marks", { n: 12 })).toBe("12 marks");
  expect(t("textOf", { n: 7, of: 20 })).toBe("Text 7 of 20");
});

test("numbers are written as the locale does", () => {
  expect(translator({ n: "{n}" }, "de")("n", { n: 12345 })).toBe("12.345");
});

test("both forms of a message ask for the same values", () => {
  const values = (message: string) => new Set(message.match(/\{\w+\}/g));
  for (const message of Object.values(en))
    if (typeof message !== "string")
      expect(new Set([...values(message.one), "{n}"])).toEqual(new Set([...values(message.other), "{n}"]));
});

test("plain words: no exclamation marks, and nobody is begged or scolded", () => {
  for (const message of Object.values(en)) {
    const words = typeof message === "string" ? message : message.one + message.other;
    expect(words).not.toMatch(/!|please|oops|invalid|submit|error \d/i);
  }
});
