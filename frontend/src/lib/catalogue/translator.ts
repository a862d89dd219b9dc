/** A message: plain, or one for each plural form of `n` that the language has. `{name}` becomes the value of that name. */
export type Message = string | ({ other: string } & Partial<Record<Intl.LDMLPluralRule, string>>);
export type Values = Record<string, string | number>;
export type Messages = Readonly<Record<string, Message>>;

/** A function from the keys of one catalogue to its messages, in English until it is told another language. */
export function createTranslator<C extends Messages>(catalogue: C, locale = "en") {
  let translations: Messages = {};
  let plural = new Intl.PluralRules(locale);
  let number = new Intl.NumberFormat(locale);

  const translate = (key: keyof C & string, values: Values = {}): string => {
    const message: Message = translations[key] ?? catalogue[key]!; // a message that is not translated is said in English
    const form = plural.select(Number(values.n));
    return fillPlaceholders(typeof message === "string" ? message : (message[form] ?? message.other), values, number);
  };
  /** Speak another language from now on; what is not in it stays as it is. */
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
