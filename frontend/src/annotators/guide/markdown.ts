/** Parser for the Markdown subset of guides. It returns data, so that text reaches the page only as text nodes. */
export interface TextRun {
  readonly text: string;
  readonly style: "plain" | "strong" | "emphasis" | "code";
}
export interface List {
  readonly type: "list";
  readonly isOrdered: boolean;
  readonly items: readonly ListItem[];
}
/** List item with an optional nested list. */
export interface ListItem {
  readonly runs: readonly TextRun[];
  readonly sublist?: List;
}
export type Block =
  | { readonly type: "heading" | "paragraph"; readonly runs: readonly TextRun[] }
  | List
  | { readonly type: "quote"; readonly paragraphs: readonly (readonly TextRun[])[] }
  | { readonly type: "table"; readonly rows: readonly (readonly (readonly TextRun[])[])[] };

const ITEM_START = /^\s*(?:[-*]|(\d+)\.)\s+/;

/** Parse headings, paragraphs, lists, quotes and tables; anything else is a paragraph. */
export const parseBlocks = (markdown: string): Block[] =>
  markdown
    .split(/\n\s*\n/)
    .flatMap((chunk) => chunk.split(/\n(?=#)|(?<=^#.*)\n/m))
    .map((chunk) => chunk.trim())
    .filter((chunk) => chunk !== "")
    .map(parseBlock);

function parseBlock(chunk: string): Block {
  const lines = chunk.split("\n");
  if (/^#{1,6}\s/.test(chunk)) return { type: "heading", runs: parseRuns(chunk.replace(/^#+\s*/, "")) };
  if (lines.every((line) => line.trim().startsWith("|")))
    return { type: "table", rows: lines.filter(isRow).map(parseCells) };
  if (lines.every((line) => line.trim().startsWith(">"))) return { type: "quote", paragraphs: parseQuote(lines) };
  if (ITEM_START.test(chunk)) return parseList(lines);
  return { type: "paragraph", runs: parseRuns(lines.join(" ")) };
}

const parseQuote = (lines: readonly string[]) =>
  lines
    .map((line) => line.trim().replace(/^>\s?/, ""))
    .join("\n")
    .split(/\n\s*\n/)
    .map((paragraph) => parseRuns(paragraph.replaceAll("\n", " ")));

const isRow = (line: string): boolean => !/^[\s|:-]+$/.test(line);
const parseCells = (line: string) =>
  line
    .trim()
    .replace(/^\||\|$/g, "")
    .split("|")
    .map((cell) => parseRuns(cell.trim()));

/** Parse a list. A line without a bullet continues the previous item; deeper bullets form a nested list. */
function parseList(lines: readonly string[]): List {
  const depth = indentation(lines[0]!);
  const itemLines: string[][] = [];
  for (const line of lines) {
    if (ITEM_START.test(line) && indentation(line) <= depth) itemLines.push([line]);
    else itemLines.at(-1)!.push(line);
  }
  return { type: "list", isOrdered: /^\s*\d/.test(lines[0]!), items: itemLines.map(parseItem) };
}

function parseItem(lines: readonly string[]): ListItem {
  const sublistStart = lines.findIndex((line, index) => index > 0 && ITEM_START.test(line));
  const words = lines
    .slice(0, sublistStart < 0 ? undefined : sublistStart)
    .map((line) => line.replace(ITEM_START, "").trim());
  const nested = sublistStart < 0 ? {} : { sublist: parseList(lines.slice(sublistStart)) };
  return { runs: parseRuns(words.join(" ")), ...nested };
}

const indentation = (line: string): number => line.search(/\S/);

/** Parse bold, italic and code. */
export function parseRuns(line: string): TextRun[] {
  const parts = line.split(/(\*\*[^*]+\*\*|\*[^*\s][^*]*\*|`[^`]+`)/).filter((part) => part !== "");
  return parts.map((part): TextRun => {
    if (/^\*\*.+\*\*$/.test(part)) return { text: part.slice(2, -2), style: "strong" };
    if (/^\*.+\*$/.test(part)) return { text: part.slice(1, -1), style: "emphasis" };
    if (/^`.+`$/.test(part)) return { text: part.slice(1, -1), style: "code" };
    return { text: part, style: "plain" };
  });
}
