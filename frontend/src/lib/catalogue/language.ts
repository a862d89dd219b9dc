import type en from "./annotators.en";
import { t } from ".";
import { t as questions, type questions as english } from "./questions.en";
import type { Message } from "./translator";

/** Translation of the annotator pages, one file of `languages/` per code. Missing messages fall back to English. */
export interface Language {
  /** Name of the language in the language itself. */
  readonly name: string;
  readonly annotators: Readonly<Partial<Record<keyof typeof en, Message>>>;
  readonly questions: Readonly<Partial<Record<keyof typeof english, Message>>>;
}

const LANGUAGE_FILES = import.meta.glob<Language>("./languages/*.ts", { import: "default" });
const languageCode = (path: string) => /([\w-]+)\.ts$/.exec(path)![1]!;

/** Codes of all available languages. */
export const LANGUAGES: readonly string[] = ["en", ...Object.keys(LANGUAGE_FILES).map(languageCode)].sort();

/** Return the available language for a code such as `de-AT`, or English. */
export const resolveLanguage = (wanted: string): string =>
  LANGUAGES.find((code) => code === wanted) ?? LANGUAGES.find((code) => code === wanted.split("-")[0]) ?? "en";

/** Load a language and use it on this page. */
export async function loadLanguage(wanted: string): Promise<void> {
  const code = resolveLanguage(wanted);
  const load = LANGUAGE_FILES[`./languages/${code}.ts`];
  const language = await load?.().catch(() => undefined); // without its file the page stays in English
  document.documentElement.lang = language ? code : "en";
  if (!language) return;
  t.speak(language.annotators, code);
  questions.speak(language.questions, code);
}
