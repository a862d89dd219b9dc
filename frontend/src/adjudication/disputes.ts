import { findLabelLook } from "../lib/label-styles";
import { createOffsetConverter } from "../lib/text/offsets";
import type { Drawing, Span } from "../lib/text/pieces";
import type { AdjudicatePage, AlternativeMark, AdjudicatedMark, NewRuling, DisputeCard } from "../lib/schema";
import type { Answers, WireSpan } from "../lib/api-types";

/** A gold mark while it is being edited; its spans count UTF-16 units. */
export interface Draft {
  readonly spans: readonly Span[];
  readonly label: string | null;
  readonly answers: Answers;
  readonly antecedents: AdjudicatedMark["antecedents"];
  /** The same mistake, read otherwise; as they came, in code points. */
  readonly alternatives?: AdjudicatedMark["alternatives"];
}
type PageTexts = Pick<AdjudicatePage, "text" | "context">;

/** The text of a part by name. */
export const partText = (page: PageTexts, part: string): string =>
  part === "text" ? page.text : (page.context[part] ?? "");

/** A span as it came, in UTF-16 units. */
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

/** A draft as it is sent, in code points; spans in the order of the text, answers only to what is asked. */
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

/** Other disputes as another reading of a mark: what gold has there or would have, without answers. */
export const alternativeFromDisputes = (disputes: readonly DisputeCard[], keys: readonly string[]): AlternativeMark[] =>
  disputes
    .filter(({ key }) => keys.includes(key))
    .map(proposedMark)
    .filter((mark) => mark !== null && mark.spans.length > 0)
    .map((mark) => ({ spans: mark!.spans, quotes: mark!.quotes, label: mark!.label }));

/** The other disputes of a text with words on it, nearest first. */
export function nearbyDisputes(disputes: readonly DisputeCard[], chosen: DisputeCard): DisputeCard[] {
  const at = disputeStart(chosen) ?? 0;
  const distance = (dispute: DisputeCard) => Math.abs((disputeStart(dispute) ?? Infinity) - at);
  return disputes
    .filter((dispute) => dispute.key !== chosen.key && (proposedMark(dispute)?.spans.length ?? 0) > 0)
    .sort((one, other) => distance(one) - distance(other));
}

/** What is asked of a mark with that label. */
export const labelQuestions = (page: Pick<AdjudicatePage, "questions" | "labels">, label: string | null) => [
  ...page.questions,
  ...(page.labels.find(({ name }) => name === label)?.questions ?? []),
];

// --- words ----------------------------------------------------------------------------------------------------------

/** Where the words of a text lie; punctuation at the end of one is a word of its own, so that it can be left out. */
export function wordBounds(text: string): (readonly [start: number, end: number])[] {
  return [...text.matchAll(/[\p{L}\p{N}\p{M}]+(?:[’'.,:-][\p{L}\p{N}\p{M}]+)*|[^\s\p{L}\p{N}\p{M}]+/gu)].map(
    (found) => [found.index, found.index + found[0].length] as const,
  );
}

/** Move one edge of a span by a word; never past the other, nor out of the text. An omission grows into a word. */
export function moveEdge(text: string, span: Span, edge: "start" | "end", by: 1 | -1): Span {
  const words = wordBounds(text);
  const edges = words.map(([start, end]) => (edge === "start" ? start : end));
  const at = span[edge];
  const to = by > 0 ? edges.find((each) => each > at) : edges.findLast((each) => each < at);
  if (to === undefined) return span;
  const moved = { ...span, [edge]: to };
  return moved.start < moved.end ? moved : span;
}

/** Move a whole span to the next or previous word, keeping how many words it has. */
export function moveSpan(text: string, span: Span, by: 1 | -1): Span {
  const words = wordBounds(text);
  const first = words.findIndex(([, end]) => end > span.start);
  const inside = words.filter(([start, end]) => start < span.end && end > span.start).length || 1;
  const [from, to] = [first + by, first + by + inside - 1];
  const [one, last] = [words[from], words[to]];
  return one && last ? { ...span, start: one[0], end: last[1] } : span;
}

/** A selection widened to whole words; null where it has none. */
export function snapToWords(text: string, start: number, end: number): readonly [number, number] | null {
  const inside = wordBounds(text).filter(([from, to]) => from < end && to > start);
  return inside.length > 0 ? [inside[0]![0], inside.at(-1)![1]] : null;
}

/**
 * Drag an edge of a span to a word: that on whose side the word lies, within the span the nearer one; the same edge as
 * long as the drag lasts. A word that is as near to both says nothing yet.
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

/** Two marks out of one: a span each where it has several, else the first and the second half of its words. */
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

/** What gold has at a dispute, or would have. */
export const proposedMark = (dispute: DisputeCard): AdjudicatedMark | null =>
  dispute.gold[0] ?? dispute.merged ?? dispute.readings[0] ?? null;

/** The words a dispute is called by in the list. */
export const disputeQuote = (dispute: DisputeCard): string => proposedMark(dispute)?.quotes.join(" … ") ?? "";

/** The label that the list shows: of gold, else the one most gave. */
export function disputeLabel(dispute: DisputeCard): string | null {
  if (dispute.gold.length > 0) return dispute.gold[0]!.label;
  if (dispute.merged?.label) return dispute.merged.label;
  return dispute.readings[0]?.label ?? null;
}

/** Whether merging finds no label that most gave. */
export const hasNoMajorityLabel = ({ merged, readings }: DisputeCard): boolean =>
  merged !== null && merged.label === null && readings.some(({ label }) => label !== null);

/** Whether readings differ in words or label. */
export const hasDifferentReadings = ({ readings }: DisputeCard): boolean =>
  new Set(readings.map(({ spans, label }) => JSON.stringify([spans, label]))).size > 1;

/** The dispute after `key` that is not decided yet, else the first such; undefined when all are. */
export function nextUndecided(disputes: readonly DisputeCard[], key: string): DisputeCard | undefined {
  const at = disputes.findIndex((dispute) => dispute.key === key);
  const open = (dispute: DisputeCard) => dispute.decision === null && dispute.key !== key;
  return disputes.slice(at + 1).find(open) ?? disputes.find(open);
}

/** Where a dispute lies after its key changed, or another was decided: the same key, else the nearest by position. */
export function findDispute(disputes: readonly DisputeCard[], key: string, start: number): DisputeCard | undefined {
  const at = (dispute: DisputeCard) => disputeStart(dispute) ?? Infinity;
  return (
    disputes.find((dispute) => dispute.key === key) ??
    [...disputes].sort((a, b) => Math.abs(at(a) - start) - Math.abs(at(b) - start))[0]
  );
}

/** First code point of a dispute on the text. */
export const disputeStart = (dispute: DisputeCard): number | undefined =>
  [proposedMark(dispute), ...dispute.readings]
    .flatMap((mark) => mark?.spans ?? [])
    .filter((span) => span.length === 2)
    .map(([start]) => start as number)[0];

/** What is drawn into the text: the readings of the chosen dispute with their numbers, elsewhere gold or what may be. */
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

/** A decision without the version it is about. */
export type UnversionedDecision = Pick<NewRuling, "what"> & Partial<Pick<NewRuling, "reading" | "marks">>;

/** The decision that a set of edited marks amounts to. */
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
