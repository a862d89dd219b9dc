import { lookOf } from "../../lib/label-looks";
import { offsets } from "../../lib/text/offsets";
import type { LabelLook, WireSpan } from "../../lib/api-types";
import type { DocumentPage, AnnotationBars, ReaderMark } from "../api-types";
import type { Extent } from "./depth";

/** One mark of a row, with where it lies on the text in UTF-16 units. */
export interface Place {
  readonly mark: ReaderMark;
  readonly look: LabelLook;
  readonly extents: readonly Extent[];
  /** From its first word to its last. */
  readonly whole: Extent;
}

/** What one annotator marked in a text; marks elsewhere (in the prompt, or nowhere) are listed, and have no bar. */
export interface Row {
  readonly reader: AnnotationBars;
  readonly group: Group;
  readonly places: readonly Place[];
  readonly elsewhere: readonly ReaderMark[];
}
export type Group = "people" | "machines" | "gold";

export const groupOf = (reader: AnnotationBars): Group =>
  reader.kind === "human" ? "people" : reader.kind === "gold" ? "gold" : "machines";

/** Whether a row enters the depth of grey: people's work that is handed in and not set aside. */
export const counts = (row: Row): boolean =>
  row.group === "people" && row.reader.status === "submitted" && row.reader.excluded === null;

/** Every reader of a document as a row of places in text order. */
export function rowsOf(page: DocumentPage): Row[] {
  const { toUtf16 } = offsets(page.text);
  const onText = (spans: readonly WireSpan[]) =>
    spans.filter((span) => span.length === 2).map(([start, end]): Extent => [toUtf16(start), toUtf16(end)]);
  return page.readers.map((reader) => {
    const all = reader.marks.map((mark) => ({ mark, extents: onText(mark.spans) }));
    const places = all
      .filter(({ extents }) => extents.length > 0)
      .map(({ mark, extents }) => ({ mark, extents, look: lookOf(page.looks, mark.label), whole: whole(extents) }))
      .sort((a, b) => a.whole[0] - b.whole[0] || b.whole[1] - a.whole[1]);
    const elsewhere = all.filter(({ extents }) => extents.length === 0).map(({ mark }) => mark);
    return { reader, group: groupOf(reader), places, elsewhere };
  });
}

/** Where each row's marks lie on a context, in UTF-16 units. */
export function besideText(page: DocumentPage, rows: readonly Row[], part: string): Extent[][] {
  const { toUtf16 } = offsets(page.context[part] ?? "");
  const onPart = ({ spans }: ReaderMark): Extent[] =>
    spans.flatMap((span) =>
      span.length === 3 && span[0] === part ? [[toUtf16(span[1]), toUtf16(span[2])] as const] : [],
    );
  return rows.map(({ reader }) => reader.marks.flatMap(onPart));
}

/** Where a mark that has no place on the text lies: the name of a context, or nowhere. */
export const partsOf = ({ spans }: ReaderMark): string[] => [
  ...new Set(spans.flatMap((span) => (span.length === 3 ? [span[0]] : []))),
];

const whole = (extents: readonly Extent[]): Extent => [
  Math.min(...extents.map(([start]) => start)),
  Math.max(...extents.map(([, end]) => end)),
];

/** Whether two places have words in common; an omission meets what it lies in or touches. */
export const meets = ([a, b]: Extent, [c, d]: Extent): boolean => (a < b && c < d ? a < d && c < b : a <= d && c <= b);

/** Everything that was said about the words in `frame`, row by row. */
export const saidOf = (rows: readonly Row[], frame: Extent): { row: Row; place: Place }[] =>
  rows.flatMap((row) =>
    row.places.filter(({ extents }) => extents.some((extent) => meets(extent, frame))).map((place) => ({ row, place })),
  );

/** How many people gave each label to the words in `frame`, most first. */
export function labelCounts(rows: readonly Row[], frame: Extent): { look: LabelLook; count: number }[] {
  const found = new Map<LabelLook, Set<string>>();
  for (const { row, place } of saidOf(rows.filter(counts), frame)) {
    found.set(place.look, (found.get(place.look) ?? new Set()).add(row.reader.annotator));
  }
  return [...found].map(([look, who]) => ({ look, count: who.size })).sort((a, b) => b.count - a.count);
}

/** The shortest mark over a position of the text, whoever made it. */
export function at(rows: readonly Row[], position: number): Extent | null {
  const over = rows
    .flatMap(({ places }) => places.flatMap(({ extents }) => extents))
    .filter((extent) => meets(extent, [position, position + 1]));
  return over.sort(([a, b], [c, d]) => b - a - (d - c))[0] ?? null;
}

/** Which mark of which row has the keyboard. */
export interface Cursor {
  readonly row: number;
  readonly place: number;
}

/** Where an arrow leads: along a bar, or to the nearest mark of the next row that has any. */
export function moved(rows: readonly Row[], from: Cursor | null, key: string): Cursor | null {
  const first = rows.findIndex(({ places }) => places.length > 0);
  if (first < 0) return null;
  if (from === null) return { row: first, place: 0 };
  const own = rows[from.row]!.places;
  const along = { ArrowRight: from.place + 1, ArrowLeft: from.place - 1, Home: 0, End: own.length - 1 }[key];
  if (along !== undefined) return { row: from.row, place: Math.min(Math.max(along, 0), own.length - 1) };
  const by = key === "ArrowDown" ? 1 : -1;
  for (let row = from.row + by; row >= 0 && row < rows.length; row += by) {
    if (rows[row]!.places.length > 0) return { row, place: nearest(rows[row]!.places, own[from.place]!) };
  }
  return from;
}

function nearest(places: readonly Place[], to: Place): number {
  const distance = ({ whole: [start, end] }: Place) => Math.abs(start + end - to.whole[0] - to.whole[1]);
  return places.reduce((best, place, index) => (distance(place) < distance(places[best]!) ? index : best), 0);
}
