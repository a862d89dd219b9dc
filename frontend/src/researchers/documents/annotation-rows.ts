import { findLabelLook } from "../../lib/label-styles";
import { createOffsetConverter } from "../../lib/text/offsets";
import type { LabelLook, WireSpan } from "../../lib/api-types";
import type { DocumentPage, AnnotationBars, AnnotatorMark } from "../api-types";
import type { Extent } from "./depth";

/** Mark of a row, with its position on the text in UTF-16 units. */
export interface MarkBar {
  readonly mark: AnnotatorMark;
  readonly look: LabelLook;
  readonly extents: readonly Extent[];
  /** Extent from its first word to its last. */
  readonly outerExtent: Extent;
}

/** Marks of one annotator in a text; marks elsewhere (in the prompt, or unlocated) are listed and have no bar. */
export interface AnnotationRow {
  readonly annotation: AnnotationBars;
  readonly group: AnnotatorGroup;
  readonly bars: readonly MarkBar[];
  readonly otherMarks: readonly AnnotatorMark[];
}
export type AnnotatorGroup = "people" | "machines" | "gold";

export const annotatorGroup = (annotation: AnnotationBars): AnnotatorGroup =>
  annotation.kind === "human" ? "people" : annotation.kind === "gold" ? "gold" : "machines";

/** Return true if a row counts towards the marking depth: submitted work of people that is not excluded. */
export const isCounted = (row: AnnotationRow): boolean =>
  row.group === "people" && row.annotation.status === "submitted" && row.annotation.excluded === null;

/** Return one row of bars per annotation, in text order. */
export function buildRows(page: DocumentPage): AnnotationRow[] {
  const { toUtf16 } = createOffsetConverter(page.text);
  const onText = (spans: readonly WireSpan[]) =>
    spans.filter((span) => span.length === 2).map(([start, end]): Extent => [toUtf16(start), toUtf16(end)]);
  return page.readers.map((annotation) => {
    const all = annotation.marks.map((mark) => ({ mark, extents: onText(mark.spans) }));
    const bars = all
      .filter(({ extents }) => extents.length > 0)
      .map(({ mark, extents }) => ({
        mark,
        extents,
        look: findLabelLook(page.looks, mark.label),
        outerExtent: outerBounds(extents),
      }))
      .sort((a, b) => a.outerExtent[0] - b.outerExtent[0] || b.outerExtent[1] - a.outerExtent[1]);
    const otherMarks = all.filter(({ extents }) => extents.length === 0).map(({ mark }) => mark);
    return { annotation, group: annotatorGroup(annotation), bars, otherMarks };
  });
}

/** Return the extents of each row's marks on a context, in UTF-16 units. */
export function contextExtents(page: DocumentPage, rows: readonly AnnotationRow[], part: string): Extent[][] {
  const { toUtf16 } = createOffsetConverter(page.context[part] ?? "");
  const onPart = ({ spans }: AnnotatorMark): Extent[] =>
    spans.flatMap((span) =>
      span.length === 3 && span[0] === part ? [[toUtf16(span[1]), toUtf16(span[2])] as const] : [],
    );
  return rows.map(({ annotation }) => annotation.marks.flatMap(onPart));
}

/** Return the contexts of a mark that is not on the text; empty if it is unlocated. */
export const contextNames = ({ spans }: AnnotatorMark): string[] => [
  ...new Set(spans.flatMap((span) => (span.length === 3 ? [span[0]] : []))),
];

const outerBounds = (extents: readonly Extent[]): Extent => [
  Math.min(...extents.map(([start]) => start)),
  Math.max(...extents.map(([, end]) => end)),
];

/** Return true if two extents overlap; an omission overlaps what contains or touches it. */
export const doExtentsMeet = ([a, b]: Extent, [c, d]: Extent): boolean =>
  a < b && c < d ? a < d && c < b : a <= d && c <= b;

/** Return all marks that overlap `frame`, row by row. */
export const marksInFrame = (rows: readonly AnnotationRow[], frame: Extent): { row: AnnotationRow; bar: MarkBar }[] =>
  rows.flatMap((row) =>
    row.bars
      .filter(({ extents }) => extents.some((extent) => doExtentsMeet(extent, frame)))
      .map((bar) => ({ row, bar })),
  );

/** Count the people per label in `frame`, most frequent first. */
export function labelCounts(rows: readonly AnnotationRow[], frame: Extent): { look: LabelLook; count: number }[] {
  const annotatorsByLook = new Map<LabelLook, Set<string>>();
  for (const { row, bar } of marksInFrame(rows.filter(isCounted), frame)) {
    annotatorsByLook.set(bar.look, (annotatorsByLook.get(bar.look) ?? new Set()).add(row.annotation.annotator));
  }
  return [...annotatorsByLook].map(([look, who]) => ({ look, count: who.size })).sort((a, b) => b.count - a.count);
}

/** Return the shortest mark over a position of the text. */
export function shortestMarkAt(rows: readonly AnnotationRow[], position: number): Extent | null {
  const extents = rows
    .flatMap(({ bars }) => bars.flatMap(({ extents }) => extents))
    .filter((extent) => doExtentsMeet(extent, [position, position + 1]));
  return extents.sort(([a, b], [c, d]) => b - a - (d - c))[0] ?? null;
}

/** Row and mark with the keyboard focus. */
export interface Cursor {
  readonly row: number;
  readonly bar: number;
}

/** Return the mark in the direction of an arrow key: in the same row, or the nearest in the next row that has marks. */
export function moveCursor(rows: readonly AnnotationRow[], from: Cursor | null, key: string): Cursor | null {
  const first = rows.findIndex(({ bars }) => bars.length > 0);
  if (first < 0) return null;
  if (from === null) return { row: first, bar: 0 };
  const own = rows[from.row]!.bars;
  const along = { ArrowRight: from.bar + 1, ArrowLeft: from.bar - 1, Home: 0, End: own.length - 1 }[key];
  if (along !== undefined) return { row: from.row, bar: Math.min(Math.max(along, 0), own.length - 1) };
  const by = key === "ArrowDown" ? 1 : -1;
  for (let row = from.row + by; row >= 0 && row < rows.length; row += by) {
    if (rows[row]!.bars.length > 0) return { row, bar: nearestBar(rows[row]!.bars, own[from.bar]!) };
  }
  return from;
}

function nearestBar(bars: readonly MarkBar[], to: MarkBar): number {
  const distance = ({ outerExtent: [start, end] }: MarkBar) =>
    Math.abs(start + end - to.outerExtent[0] - to.outerExtent[1]);
  return bars.reduce((best, bar, index) => (distance(bar) < distance(bars[best]!) ? index : best), 0);
}
