import type en from "./annotators.en";
import { t } from ".";
import { t as questions, type questions as english } from "./questions.en";
import type { Message } from "./translator";

/** One language of the annotators' pages: a file of `languages/`, named by its code. What it lacks is said in English. */
export interface Language {
  /** What speakers call it. */
  readonly name: string;
  readonly annotators: Readonly<Partial<Record<keyof typeof en, Message>>>;
  readonly questions: Readonly<Partial<Record<keyof typeof english, Message>>>;
}

const LANGUAGE_FILES = import.meta.glob<Language>("./languages/*.ts", { import: "default" });
const languageCode = (path: string) => /([\w-]+)\.ts$/.exec(path)![1]!;

/** Codes of all languages that the pages speak. */
export const LANGUAGES: readonly string[] = ["en", ...Object.keys(LANGUAGE_FILES).map(languageCode)].sort();

/** The code of the language to speak for one such as `de-AT`; English where there is none. */
export const resolveLanguage = (wanted: string): string =>
  LANGUAGES.find((code) => code === wanted) ?? LANGUAGES.find((code) => code === wanted.split("-")[0]) ?? "en";

/** Speak a language on this page, once its file is there. */
export async function loadLanguage(wanted: string): Promise<void> {
  const code = resolveLanguage(wanted);
  const load = LANGUAGE_FILES[`./languages/${code}.ts`];
  const language = await load?.().catch(() => undefined); // without its file the page speaks English
  document.documentElement.lang = language ? code : "en";
  if (!language) return;
  t.speak(language.annotators, code);
  questions.speak(language.questions, code);
}
