import type { Json } from "./api-types";

/** Cell: shown text, and a URL if it is a link. */
export interface Cell {
  readonly text: string;
  readonly href?: string;
  readonly isNumber: boolean;
}
export interface Table {
  readonly caption: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
  /** Depth inside its tab; levels below the first are collapsed. */
  readonly depth: number;
}
export interface Tab {
  readonly title: string;
  readonly tables: readonly Table[];
}
/** Titles of fields, fields that come first, and hidden fields. */
export interface View {
  readonly titles: Readonly<Record<string, string>>;
  readonly order: readonly string[];
  readonly hidden: readonly string[];
}
export const DEFAULT_VIEW: View = { titles: {}, order: [], hidden: [] };

type Fields = { [key: string]: Json };
type Simple = string | number | boolean | null;
const isFields = (value: Json | undefined): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isSimple = (value: Json | undefined): value is Simple | undefined =>
  value === undefined || value === null || typeof value !== "object";

/** Convert any JSON to tabs of tables: the outermost names are tabs, deeper ones captions. */
export function buildTabs(data: Json, general: string, view: View = DEFAULT_VIEW): Tab[] {
  if (data === null || data === undefined) return [];
  if (!isFields(data)) return [{ title: general, tables: buildTables("", data, view) }];
  const fields = orderedFields(data, view);
  const simple = fields.filter(([, value]) => isSimple(value));
  const nested = fields.filter(([, value]) => !isSimple(value));
  const first =
    simple.length > 0 ? [{ title: general, tables: buildTables("", Object.fromEntries(simple), view) }] : [];
  return [
    ...first,
    ...nested.map(([name, value]) => ({ title: fieldTitle(name, view), tables: buildTables("", value, view) })),
  ];
}

/** Return the visible fields of an object, those named by the view first. */
function orderedFields(fields: Fields, { order, hidden }: View): [string, Json][] {
  const rank = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length);
  return Object.entries(fields)
    .filter(([name]) => !hidden.includes(name))
    .sort(([one], [other]) => rank(one) - rank(other));
}

const fieldTitle = (name: string, view: View): string => view.titles[name] ?? readableName(name);

/**
 * Return the tables of one value. A list of objects has one row per object, as have objects of simple values; columns
 * with the same numbers become rows. The simple fields of any other object form a table of their own.
 */
export function buildTables(caption: string, value: Json, view: View = DEFAULT_VIEW, depth = 0): Table[] {
  if (Array.isArray(value)) return tableFromList(caption, value, view, depth);
  if (!isFields(value)) return [{ caption, columns: [], rows: [[buildCell(value)]], depth }];
  const table = tableFromColumns(value, view) ?? tableFromRows(value, view);
  if (table) return [{ caption, ...table, depth }];
  const fields = orderedFields(value, view);
  const simple = fields.filter(([, each]) => isSimple(each));
  const nested = fields.filter(([, each]) => !isSimple(each));
  const simpleTable =
    simple.length > 0
      ? [
          {
            caption,
            columns: [],
            rows: simple.map(([name, each]) => [buildCell(fieldTitle(name, view)), buildCell(each)]),
            depth,
          },
        ]
      : [];
  return [
    ...simpleTable,
    ...nested.flatMap(([name, each]) =>
      buildTables([caption, fieldTitle(name, view)].filter(Boolean).join(" · "), each, view, depth + 1),
    ),
  ];
}

type TableContent = Pick<Table, "columns" | "rows">;

/** Return one column per field if all have values under the same numbers, or lists of equal length. */
function tableFromColumns(value: Fields, view: View): TableContent | undefined {
  const columns = orderedFields(value, view);
  const keys = [...new Set(columns.flatMap(([, column]) => (isSimple(column) ? [] : Object.keys(column as object))))];
  const isColumn = ([, column]: [string, Json]) =>
    !isSimple(column) && Object.values(column as object).every((each) => isSimple(each as Json));
  const isAlike = ([, column]: [string, Json]) => Object.keys(column as object).length === keys.length;
  if (columns.length < 2 || keys.length < 2 || !keys.every((key) => /^\d+$/.test(key))) return undefined;
  if (!columns.every(isColumn) || !columns.every(isAlike)) return undefined;
  const rows = keys
    .sort((one, other) => Number(one) - Number(other))
    .map((key) => columns.map(([, column]) => buildCell((column as Fields)[key] ?? null)));
  return { columns: columns.map(([name]) => fieldTitle(name, view)), rows };
}

/** Return one row per field if all are objects of simple values that share a name. */
function tableFromRows(value: Fields, view: View): TableContent | undefined {
  const rows = orderedFields(value, view);
  if (rows.length < 2 || !rows.every(([, row]) => isFields(row) && Object.values(row).every(isSimple)))
    return undefined;
  const names = rows.map(([, row]) => orderedFields(row as Fields, view).map(([name]) => name));
  const columns = [...new Set(names.flat())];
  if (!columns.some((column) => names.every((each) => each.includes(column)))) return undefined;
  return {
    columns: ["", ...columns.map((column) => fieldTitle(column, view))],
    rows: rows.map(([name, row]) => [
      buildCell(fieldTitle(name, view)),
      ...columns.map((column) => buildCell((row as Fields)[column] ?? null)),
    ]),
  };
}

function tableFromList(caption: string, values: Json[], view: View, depth: number): Table[] {
  if (!values.every(isFields))
    return [{ caption, columns: [], rows: values.map((each) => [buildCell(flattenValue(each))]), depth }];
  const columns = [...new Set(values.flatMap((row) => orderedFields(row, view).map(([name]) => name)))];
  const rows = values.map((row) => columns.map((column) => buildCell(flattenValue(row[column] ?? null))));
  return values.length > 0
    ? [{ caption, columns: columns.map((column) => fieldTitle(column, view)), rows, depth }]
    : [];
}

/** Return nested content of a cell on one line. */
function flattenValue(value: Json): Json {
  if (Array.isArray(value)) return value.map((each) => valueText(flattenValue(each))).join(", ");
  if (isFields(value))
    return Object.entries(value)
      .map(([name, each]) => `${readableName(name)}: ${valueText(flattenValue(each))}`)
      .join(", ");
  return value;
}

const valueText = (value: Json): string => (value === null ? "" : String(value));

function buildCell(value: Json): Cell {
  const text = valueText(value);
  const link = /^https?:\/\/\S+$/.test(text) ? { href: text } : {};
  return { text, ...link, isNumber: text !== "" && /^[+−-]?[\d.,:/%-]+$/.test(text) };
}

/** Format `home_team` for reading; names of several words stay as they are. */
export const readableName = (name: string): string =>
  /^[a-z0-9]+([_-][a-z0-9]+)*$/.test(name) ? name.charAt(0).toUpperCase() + name.slice(1).replace(/[_-]/g, " ") : name;

/** Return true if the first cell of a row shares a whole word of at least three letters with the words. */
export function isRowNamed(row: readonly Cell[], words: string): boolean {
  const terms = words.toLowerCase().match(/\p{L}{3,}/gu) ?? [];
  const name = new Set(
    row
      .find((each) => !each.isNumber)
      ?.text.toLowerCase()
      .match(/\p{L}{3,}/gu) ?? [],
  );
  return terms.some((word) => name.has(word));
}
