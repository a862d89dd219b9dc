/** Message: plain, or one per plural form of `n`. `{name}` is replaced by the value of that name. */
export type Message = string | ({ other: string } & Partial<Record<Intl.LDMLPluralRule, string>>);
export type Values = Record<string, string | number>;
export type Messages = Readonly<Record<string, Message>>;

/** Create a function from keys of a catalogue to messages, in English until another language is set. */
export function createTranslator<C extends Messages>(catalogue: C, locale = "en") {
  let translations: Messages = {};
  let plural = new Intl.PluralRules(locale);
  let number = new Intl.NumberFormat(locale);

  const translate = (key: keyof C & string, values: Values = {}): string => {
    const message: Message = translations[key] ?? catalogue[key]!; // untranslated messages fall back to English
    const form = plural.select(Number(values.n));
    return fillPlaceholders(typeof message === "string" ? message : (message[form] ?? message.other), values, number);
  };
  /** Use another language; missing messages stay in English. */
  const setLanguage = (messages: Messages, language: string): void => {
    translations = messages;
    plural = new Intl.PluralRules(language);
    number = new Intl.NumberFormat(language);
  };
  return Object.assign(translate, { speak: setLanguage });
}

const fillPlaceholders = (message: string, values: Values, number: Intl.NumberFormat): string =>
  message.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name];
    return value === undefined ? whole : typeof value === "number" ? number.format(value) : value;
  });
