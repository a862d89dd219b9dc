import { findLabelLook } from "../lib/label-styles";
import { createOffsetConverter } from "../lib/text/offsets";
import type { Drawing, Span } from "../lib/text/pieces";
import type { AdjudicatePage, AlternativeMark, AdjudicatedMark, NewRuling, DisputeCard } from "../lib/schema";
import type { Answers, WireSpan } from "../lib/api-types";

/** Gold mark that is being edited. Its spans count UTF-16 units. */
export interface Draft {
  readonly spans: readonly Span[];
  readonly label: string | null;
  readonly answers: Answers;
  readonly antecedents: AdjudicatedMark["antecedents"];
  /** Alternative ways to mark the same error, in code points as received. */
  readonly alternatives?: AdjudicatedMark["alternatives"];
}
type PageTexts = Pick<AdjudicatePage, "text" | "context">;

/** Return the text of a part by name. */
export const partText = (page: PageTexts, part: string): string =>
  part === "text" ? page.text : (page.context[part] ?? "");

/** Convert a received span to UTF-16 units. */
export function spanFromWire(page: PageTexts, span: WireSpan): Span {
  const [part, start, end] = span.length === 2 ? (["text", ...span] as const) : span;
  const { toUtf16 } = createOffsetConverter(partText(page, part));
  return { part, start: toUtf16(start), end: toUtf16(end) };
}

export const draftFromMark = (page: PageTexts, mark: AdjudicatedMark): Draft => ({
  spans: mark.spans.map((span) => spanFromWire(page, span)),
  label: mark.label,
  answers: mark.answers,
  antecedents: mark.antecedents ?? null,
  alternatives: mark.alternatives ?? [],
});

/** Convert a draft to a request: code points, spans in text order, answers only to questions of the label. */
export function draftToWire(page: AdjudicatePage, draft: Draft): AdjudicatedMark {
  const spans = [...draft.spans].sort((a, b) => a.start - b.start || a.end - b.end);
  const asked = new Set(labelQuestions(page, draft.label).map(({ name }) => name));
  return {
    spans: spans.map(({ part, start, end }): WireSpan => {
      const { toCodePoints } = createOffsetConverter(partText(page, part));
      return part === "text"
        ? [toCodePoints(start), toCodePoints(end)]
        : [part, toCodePoints(start), toCodePoints(end)];
    }),
    quotes: spans.map(({ part, start, end }) => partText(page, part).slice(start, end)),
    label: draft.label,
    answers: Object.fromEntries(Object.entries(draft.answers).filter(([name]) => asked.has(name))),
    antecedents: draft.antecedents ?? null,
    alternatives: draft.alternatives ?? [],
  };
}

/** Return other disputes as an alternative for a mark: their gold marks or merged marks, without answers. */
export const alternativeFromDisputes = (disputes: readonly DisputeCard[], keys: readonly string[]): AlternativeMark[] =>
  disputes
    .filter(({ key }) => keys.includes(key))
    .map(proposedMark)
    .filter((mark) => mark !== null && mark.spans.length > 0)
    .map((mark) => ({ spans: mark!.spans, quotes: mark!.quotes, label: mark!.label }));

/** Return the other disputes with words on the text, nearest first. */
export function nearbyDisputes(disputes: readonly DisputeCard[], chosen: DisputeCard): DisputeCard[] {
  const at = disputeStart(chosen) ?? 0;
  const distance = (dispute: DisputeCard) => Math.abs((disputeStart(dispute) ?? Infinity) - at);
  return disputes
    .filter((dispute) => dispute.key !== chosen.key && (proposedMark(dispute)?.spans.length ?? 0) > 0)
    .sort((one, other) => distance(one) - distance(other));
}

/** Return the questions for a mark with that label. */
export const labelQuestions = (page: Pick<AdjudicatePage, "questions" | "labels">, label: string | null) => [
  ...page.questions,
  ...(page.labels.find(({ name }) => name === label)?.questions ?? []),
];

// --- words ----------------------------------------------------------------------------------------------------------

/** Return the word boundaries of a text. Final punctuation is a word of its own, so that it can be excluded. */
export function wordBounds(text: string): (readonly [start: number, end: number])[] {
  return [...text.matchAll(/[\p{L}\p{N}\p{M}]+(?:[’'.,:-][\p{L}\p{N}\p{M}]+)*|[^\s\p{L}\p{N}\p{M}]+/gu)].map(
    (found) => [found.index, found.index + found[0].length] as const,
  );
}

/** Move one edge of a span by a word, within the text and not past the other edge. An empty span grows into a word. */
export function moveEdge(text: string, span: Span, edge: "start" | "end", by: 1 | -1): Span {
  const words = wordBounds(text);
  const edges = words.map(([start, end]) => (edge === "start" ? start : end));
  const at = span[edge];
  const to = by > 0 ? edges.find((each) => each > at) : edges.findLast((each) => each < at);
  if (to === undefined) return span;
  const moved = { ...span, [edge]: to };
  return moved.start < moved.end ? moved : span;
}

/** Move a span to the next or previous word and keep its number of words. */
export function moveSpan(text: string, span: Span, by: 1 | -1): Span {
  const words = wordBounds(text);
  const first = words.findIndex(([, end]) => end > span.start);
  const inside = words.filter(([start, end]) => start < span.end && end > span.start).length || 1;
  const [from, to] = [first + by, first + by + inside - 1];
  const [one, last] = [words[from], words[to]];
  return one && last ? { ...span, start: one[0], end: last[1] } : span;
}

/** Expand a selection to whole words, or return null if it contains none. */
export function snapToWords(text: string, start: number, end: number): readonly [number, number] | null {
  const inside = wordBounds(text).filter(([from, to]) => from < end && to > start);
  return inside.length > 0 ? [inside[0]![0], inside.at(-1)![1]] : null;
}

/**
 * Drag an edge of a span to a word. Outside the span the edge on that side moves, inside it the nearer edge. The same
 * edge moves until the drag ends. A word equally close to both edges moves neither.
 */
export function dragEdge(
  span: Span,
  [start, end]: readonly [number, number],
  edge: Edge | null,
): { span: Span; edge: Edge | null } {
  const which = edge ?? (start >= span.end ? "end" : end <= span.start ? "start" : nearerEdge(span, start, end));
  if (which === null) return { span, edge: null };
  const moved = { ...span, [which]: which === "start" ? start : end };
  return { span: moved.start < moved.end ? moved : span, edge: which };
}
export type Edge = "start" | "end";

function nearerEdge(span: Span, start: number, end: number): Edge | null {
  const [before, after] = [start - span.start, span.end - end];
  return before === after ? null : before < after ? "start" : "end";
}

/** Split a mark in two: one span each if it has several, or else the two halves of its words. */
export function splitInHalves(page: PageTexts, draft: Draft): readonly [Draft, Draft] {
  const [first, ...rest] = draft.spans;
  if (first === undefined) return [draft, draft];
  if (rest.length > 0)
    return [
      { ...draft, spans: [first] },
      { ...draft, spans: rest },
    ];
  const words = wordBounds(partText(page, first.part)).filter(([start, end]) => start < first.end && end > first.start);
  if (words.length < 2) return [draft, draft];
  const half = Math.ceil(words.length / 2);
  return [
    { ...draft, spans: [{ ...first, end: words[half - 1]![1] }] },
    { ...draft, spans: [{ ...first, start: words[half]![0] }] },
  ];
}

// --- disputes -------------------------------------------------------------------------------------------------------

/** Return the gold marks of a dispute, or else the merged ones. */
export const proposedMark = (dispute: DisputeCard): AdjudicatedMark | null =>
  dispute.gold[0] ?? dispute.merged ?? dispute.readings[0] ?? null;

/** Return the words that name a dispute in the list. */
export const disputeQuote = (dispute: DisputeCard): string => proposedMark(dispute)?.quotes.join(" … ") ?? "";

/** Return the label shown in the list: the gold label, or else the majority label. */
export function disputeLabel(dispute: DisputeCard): string | null {
  if (dispute.gold.length > 0) return dispute.gold[0]!.label;
  if (dispute.merged?.label) return dispute.merged.label;
  return dispute.readings[0]?.label ?? null;
}

/** Return true if no label has a majority. */
export const hasNoMajorityLabel = ({ merged, readings }: DisputeCard): boolean =>
  merged !== null && merged.label === null && readings.some(({ label }) => label !== null);

/** Return true if the annotations differ in words or label. */
export const hasDifferentReadings = ({ readings }: DisputeCard): boolean =>
  new Set(readings.map(({ spans, label }) => JSON.stringify([spans, label]))).size > 1;

/** Return the next undecided dispute after `key`, wrapping around, or undefined when all are decided. */
export function nextUndecided(disputes: readonly DisputeCard[], key: string): DisputeCard | undefined {
  const at = disputes.findIndex((dispute) => dispute.key === key);
  const open = (dispute: DisputeCard) => dispute.decision === null && dispute.key !== key;
  return disputes.slice(at + 1).find(open) ?? disputes.find(open);
}

/** Find a dispute again after a reload: by key, or else the nearest one by position. */
export function findDispute(disputes: readonly DisputeCard[], key: string, start: number): DisputeCard | undefined {
  const at = (dispute: DisputeCard) => disputeStart(dispute) ?? Infinity;
  return (
    disputes.find((dispute) => dispute.key === key) ??
    [...disputes].sort((a, b) => Math.abs(at(a) - start) - Math.abs(at(b) - start))[0]
  );
}

/** Return the first code point of a dispute on the text. */
export const disputeStart = (dispute: DisputeCard): number | undefined =>
  [proposedMark(dispute), ...dispute.readings]
    .flatMap((mark) => mark?.spans ?? [])
    .filter((span) => span.length === 2)
    .map(([start]) => start as number)[0];

/** Return the marks to draw: numbered annotations of the selected dispute, gold or merged marks elsewhere. */
export function disputeDrawings(page: AdjudicatePage, chosen: string, drafts: readonly Draft[]): Drawing[] {
  const makeDrawing = (
    id: string,
    spans: readonly Span[],
    label: string | null,
    flag: string,
    tone: Drawing["tone"],
  ) => {
    const look = findLabelLook(page.looks, label);
    return { id, spans, slot: look.slot, flag: flag && `${flag} ${look.flag}`, kind: "mark" as const, tone };
  };
  return page.places.flatMap((dispute) => {
    const spansOf = (mark: AdjudicatedMark) => mark.spans.map((span) => spanFromWire(page, span));
    if (dispute.key === chosen && dispute.readings.length > 0)
      return dispute.readings.map((reading, index) =>
        makeDrawing(`${dispute.key} ${index + 1}`, spansOf(reading), reading.label, String(index + 1), "rest"),
      );
    if (dispute.key === chosen)
      return drafts.map((draft, index) =>
        makeDrawing(`${dispute.key} ${index + 1}`, draft.spans, draft.label, "+", "chosen"),
      );
    if (dispute.decision !== null)
      return dispute.gold.map((mark, index) =>
        makeDrawing(`${dispute.key} ${index + 1}`, spansOf(mark), mark.label, "✓", "rest"),
      );
    const mark = dispute.merged ?? dispute.readings[0];
    return mark ? [makeDrawing(`${dispute.key} 1`, spansOf(mark), disputeLabel(dispute), "", "faint")] : [];
  });
}

/** Decision without the version that it applies to. */
export type UnversionedDecision = Pick<NewRuling, "what"> & Partial<Pick<NewRuling, "reading" | "marks">>;

/** Return the decision that corresponds to a set of edited marks. */
export function decisionFromMarks(
  dispute: DisputeCard,
  marks: readonly AdjudicatedMark[],
  reading: number | null,
): UnversionedDecision {
  if (dispute.readings.length === 0 && dispute.key.startsWith("new-"))
    return { what: marks.length > 1 ? "split" : "added", marks: [...marks] };
  if (marks.length > 1) return { what: "split", marks: [...marks] };
  return { what: "changed", marks: [...marks], ...(reading === null ? {} : { reading }) };
}
