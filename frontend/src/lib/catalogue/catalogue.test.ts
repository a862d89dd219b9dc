import { expect, test } from "vitest";
import { t } from ".";
import { createTranslator, type Message } from "./translator";
import en from "./annotators.en";
import { LANGUAGES, resolveLanguage, type Language } from "./language";
import { questions } from "./questions.en";

test("plural forms and values", () => {
  expect(t("marks", { n: 1 })).toBe("1 mark");
  expect(t("marks", { n: 12 })).toBe("12 marks");
  expect(t("textOf", { n: 7, of: 20 })).toBe("Text 7 of 20");
});

test("numbers follow the locale", () => {
  expect(createTranslator({ n: "{n}" }, "de")("n", { n: 12345 })).toBe("12.345");
});

test("singular and plural forms have the same placeholders", () => {
  const values = (message: string) => new Set(message.match(/\{\w+\}/g));
  for (const message of Object.values(en))
    if (typeof message !== "string")
      expect(new Set([...values(message.one), "{n}"])).toEqual(new Set([...values(message.other), "{n}"]));
});

test("messages avoid exclamation marks, pleading and blame", () => {
  for (const message of Object.values(en)) {
    const words = typeof message === "string" ? message : message.one + message.other;
    expect(words).not.toMatch(/!|please|oops|invalid|error \d/i);
  }
});

const files = import.meta.glob<Language>("./languages/*.ts", { import: "default", eager: true });
const forms = (message: Message) => (typeof message === "string" ? [message] : Object.values(message));
const placeholders = (message: Message) =>
  new Set([...forms(message).flatMap((form) => form.match(/\{\w+\}/g) ?? []), "{n}"]);

test.each(Object.entries(files))("%s has the placeholders of the English messages", (_, language) => {
  for (const [own, english] of [
    [language.annotators, en],
    [language.questions, questions],
  ] as [Record<string, Message>, Record<string, Message>][])
    for (const [key, message] of Object.entries(own))
      expect([key, placeholders(message)]).toEqual([key, placeholders(english[key]!)]);
});

test("the German translation is complete", () => {
  const german = files["./languages/de.ts"]!;
  expect(Object.keys(en).filter((key) => !(key in german.annotators))).toEqual([]);
  expect(Object.keys(questions).filter((key) => !(key in german.questions))).toEqual([]);
});

test("German uses Sie, German quotes, capitals after colons and short buttons", () => {
  const { annotators, questions: asked } = files["./languages/de.ts"]! as unknown as Record<
    string,
    Record<string, Message>
  >;
  for (const message of Object.values({ ...annotators, ...asked }).flatMap(forms)) {
    expect(message).not.toMatch(/\b(du|dein\w*|dir|dich|bitte)\b|!|"/i);
    expect(message).not.toMatch(/: (es|er|sie|dies|nehmen|wählen) [^:]*\.$/);
  }
  const BUTTONS = ["agree", "disagree", "start", "continue", "pick", "pickAgain", "useThese", "keep", "done", "again"];
  for (const key of [...BUTTONS, "lookAgain", "tryNow", "showAnswers", "openGuide", "noErrorsHere", "readOtherwise"])
    expect([key, forms(annotators![key]!).every((words) => words.length <= 34)]).toEqual([key, true]);
});

test("languages resolve by code or primary subtag and fall back to English", () => {
  expect(LANGUAGES).toContain("de");
  expect([resolveLanguage("de"), resolveLanguage("de-AT"), resolveLanguage("xx"), resolveLanguage("")]).toEqual([
    "de",
    "de",
    "en",
    "en",
  ]);
});

test("untranslated messages fall back to English", () => {
  const say = createTranslator({ a: "one", b: { one: "{n} thing", other: "{n} things" } });
  say.speak({ b: { few: "{n} veci", other: "{n} vecí" } }, "sk");
  expect([say("a"), say("b", { n: 2 }), say("b", { n: 9 })]).toEqual(["one", "2 veci", "9 vecí"]);
});

const catalogues = import.meta.glob<Record<string, Record<string, Message>>>("./*.en.ts", { eager: true });
const sources = Object.entries(
  import.meta.glob<string>("../../**/*.{svelte,ts}", { query: "?raw", import: "default", eager: true }),
)
  .filter(([name]) => !name.startsWith("./") && !/schema\.d|\.test\.ts$/.test(name))
  .map(([, text]) => text)
  .join("\n");
/** Patterns of keys built from template literals, such as `noted-${kind}`. */
const built = [...sources.matchAll(/`([^`\n]*\$\{[^`\n]*)`/g)]
  .map(([, text]) => text!.split(/\$\{[^}]*\}/))
  .filter((parts) => /[a-z]/i.test(parts.join("")))
  .map((parts) => new RegExp(`^${parts.map((part) => part.replace(/[^\w-]/g, "\\$&")).join(".+")}$`));
/** Keys from `${edge}-${way}`, and reasons named by the server. */
const BY_VALUE = /^(?:(?:start|end)-(?:back|on)|fast|few)$/;

test.each(Object.entries(catalogues))("every message of %s is used", (_, module) => {
  const keys = Object.values(module).flatMap((part) => (typeof part === "object" ? Object.keys(part) : []));
  const isUsed = (key: string) =>
    BY_VALUE.test(key) ||
    [`"${key}"`, `'${key}'`, `\`${key}\``].some((word) => sources.includes(word)) ||
    built.some((pattern) => pattern.test(key));
  expect(keys.filter((key) => !isUsed(key))).toEqual([]);
});
