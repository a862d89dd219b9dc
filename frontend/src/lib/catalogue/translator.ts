/** A message: plain, or one for each plural form of `n`. `{name}` is replaced by the value of that name. */
export type Message = string | { one: string; other: string };
export type Values = Record<string, string | number>;

/** A function from the keys of one catalogue to its messages in a locale. */
export function translator<C extends Record<string, Message>>(catalogue: C, locale = "en") {
  const plural = new Intl.PluralRules(locale);
  const number = new Intl.NumberFormat(locale);
  return (key: keyof C & string, values: Values = {}): string => {
    const message = catalogue[key]!;
    const form = plural.select(Number(values.n)) === "one" ? "one" : "other";
    return fill(typeof message === "string" ? message : message[form], values, number);
  };
}

const fill = (message: string, values: Values, number: Intl.NumberFormat): string =>
  message.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name];
    return value === undefined ? whole : typeof value === "number" ? number.format(value) : value;
  });
