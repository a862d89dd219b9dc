import type { Json } from "./api-types";

/** One cell: what is shown, and an address when it is a link. */
export interface Cell {
  readonly text: string;
  readonly href?: string;
  readonly number: boolean;
}
export interface Table {
  readonly caption: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}
export interface Tab {
  readonly title: string;
  readonly tables: readonly Table[];
}

type Fields = { [key: string]: Json };
const isFields = (value: Json | undefined): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isSimple = (value: Json | undefined): boolean =>
  value === undefined || value === null || typeof value !== "object";

/** Any JSON as tabs of tables: the outermost names are tabs, deeper ones captions. */
export function tabs(data: Json, general: string): Tab[] {
  if (data === null || data === undefined) return [];
  if (!isFields(data)) return [{ title: general, tables: tables("", data) }];
  const simple = Object.entries(data).filter(([, value]) => isSimple(value));
  const nested = Object.entries(data).filter(([, value]) => !isSimple(value));
  const first = simple.length > 0 ? [{ title: general, tables: tables("", Object.fromEntries(simple)) }] : [];
  return [...first, ...nested.map(([name, value]) => ({ title: title(name), tables: tables("", value) }))];
}

/** Tables of one value: a list of objects has a row for each, an object a row for each field. */
export function tables(caption: string, value: Json): Table[] {
  if (Array.isArray(value)) return listed(caption, value);
  if (!isFields(value)) return [{ caption, columns: [], rows: [[cell(value)]] }];
  const simple = Object.entries(value).filter(([, each]) => isSimple(each));
  const nested = Object.entries(value).filter(([, each]) => !isSimple(each));
  const own =
    simple.length > 0
      ? [{ caption, columns: [], rows: simple.map(([name, each]) => [cell(title(name)), cell(each)]) }]
      : [];
  return [
    ...own,
    ...nested.flatMap(([name, each]) => tables([caption, title(name)].filter(Boolean).join(" · "), each)),
  ];
}

function listed(caption: string, values: Json[]): Table[] {
  if (!values.every(isFields)) return [{ caption, columns: [], rows: values.map((each) => [cell(flat(each))]) }];
  const columns = [...new Set(values.flatMap((row) => Object.keys(row)))];
  const rows = values.map((row) => columns.map((column) => cell(flat(row[column] ?? null))));
  return values.length > 0 ? [{ caption, columns: columns.map(title), rows }] : [];
}

/** What is nested inside a cell, on one line. */
function flat(value: Json): Json {
  if (Array.isArray(value)) return value.map((each) => shown(flat(each))).join(", ");
  if (isFields(value))
    return Object.entries(value)
      .map(([name, each]) => `${title(name)}: ${shown(flat(each))}`)
      .join(", ");
  return value;
}

const shown = (value: Json): string => (value === null ? "" : String(value));

function cell(value: Json): Cell {
  const text = shown(value);
  const link = /^https?:\/\/\S+$/.test(text) ? { href: text } : {};
  return { text, ...link, number: text !== "" && /^[+−-]?[\d.,:/%-]+$/.test(text) };
}

/** `home_team` as people read it; names that are more than one word already stay as they are. */
export const title = (name: string): string =>
  /^[a-z0-9]+([_-][a-z0-9]+)*$/.test(name) ? name.charAt(0).toUpperCase() + name.slice(1).replace(/[_-]/g, " ") : name;

/** Whether a row names something that the words also name: a whole word of at least three letters in its first cell. */
export function rowNamed(row: readonly Cell[], words: string): boolean {
  const wanted = words.toLowerCase().match(/\p{L}{3,}/gu) ?? [];
  const name = new Set(
    row
      .find((each) => !each.number)
      ?.text.toLowerCase()
      .match(/\p{L}{3,}/gu) ?? [],
  );
  return wanted.some((word) => name.has(word));
}
