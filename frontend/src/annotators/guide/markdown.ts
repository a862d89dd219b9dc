/** The little Markdown that guides are written in, as data: text reaches the page as text nodes only. */
export interface Run {
  readonly text: string;
  readonly style: "plain" | "strong" | "emphasis" | "code";
}
export interface List {
  readonly type: "list";
  readonly ordered: boolean;
  readonly items: readonly Item[];
}
/** One item of a list, with the list that it may hold. */
export interface Item {
  readonly runs: readonly Run[];
  readonly inner?: List;
}
export type Block =
  | { readonly type: "heading" | "paragraph"; readonly runs: readonly Run[] }
  | List
  | { readonly type: "quote"; readonly paragraphs: readonly (readonly Run[])[] }
  | { readonly type: "table"; readonly rows: readonly (readonly (readonly Run[])[])[] };

const ITEM = /^\s*(?:[-*]|(\d+)\.)\s+/;

/** Headings, paragraphs, lists, quotes and tables; anything else is a paragraph. */
export const blocks = (markdown: string): Block[] =>
  markdown
    .split(/\n\s*\n/)
    .flatMap((chunk) => chunk.split(/\n(?=#)|(?<=^#.*)\n/m))
    .map((chunk) => chunk.trim())
    .filter((chunk) => chunk !== "")
    .map(block);

function block(chunk: string): Block {
  const lines = chunk.split("\n");
  if (/^#{1,6}\s/.test(chunk)) return { type: "heading", runs: runs(chunk.replace(/^#+\s*/, "")) };
  if (lines.every((line) => line.trim().startsWith("|")))
    return { type: "table", rows: lines.filter(isRow).map(cells) };
  if (lines.every((line) => line.trim().startsWith(">"))) return { type: "quote", paragraphs: quoted(lines) };
  if (ITEM.test(chunk)) return list(lines);
  return { type: "paragraph", runs: runs(lines.join(" ")) };
}

const quoted = (lines: readonly string[]) =>
  lines
    .map((line) => line.trim().replace(/^>\s?/, ""))
    .join("\n")
    .split(/\n\s*\n/)
    .map((paragraph) => runs(paragraph.replaceAll("\n", " ")));

const isRow = (line: string): boolean => !/^[\s|:-]+$/.test(line);
const cells = (line: string) =>
  line
    .trim()
    .replace(/^\||\|$/g, "")
    .split("|")
    .map((cell) => runs(cell.trim()));

/** A list; a line without a bullet continues the item before it, deeper bullets are a list within it. */
function list(lines: readonly string[]): List {
  const depth = indent(lines[0]!);
  const own: string[][] = [];
  for (const line of lines) {
    if (ITEM.test(line) && indent(line) <= depth) own.push([line]);
    else own.at(-1)!.push(line);
  }
  return { type: "list", ordered: /^\s*\d/.test(lines[0]!), items: own.map(item) };
}

function item(lines: readonly string[]): Item {
  const inner = lines.findIndex((line, index) => index > 0 && ITEM.test(line));
  const words = lines.slice(0, inner < 0 ? undefined : inner).map((line) => line.replace(ITEM, "").trim());
  const held = inner < 0 ? {} : { inner: list(lines.slice(inner)) };
  return { runs: runs(words.join(" ")), ...held };
}

const indent = (line: string): number => line.search(/\S/);

/** Words in bold, italics and code. */
export function runs(line: string): Run[] {
  const parts = line.split(/(\*\*[^*]+\*\*|\*[^*\s][^*]*\*|`[^`]+`)/).filter((part) => part !== "");
  return parts.map((part): Run => {
    if (/^\*\*.+\*\*$/.test(part)) return { text: part.slice(2, -2), style: "strong" };
    if (/^\*.+\*$/.test(part)) return { text: part.slice(1, -1), style: "emphasis" };
    if (/^`.+`$/.test(part)) return { text: part.slice(1, -1), style: "code" };
    return { text: part, style: "plain" };
  });
}
