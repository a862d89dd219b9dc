import { lookOf } from "../lib/label-looks";
import { offsets } from "../lib/text/offsets";
import type { Drawing, Span } from "../lib/text/pieces";
import type { AdjudicatePage, AlternativeMark, GoldMark, NewRuling, PlaceCard } from "../lib/schema";
import type { Answers, WireSpan } from "../lib/api-types";

/** A gold mark while it is being edited; its spans count UTF-16 units. */
export interface Draft {
  readonly spans: readonly Span[];
  readonly label: string | null;
  readonly answers: Answers;
  readonly antecedents: GoldMark["antecedents"];
  /** The same mistake, read otherwise; as they came, in code points. */
  readonly alternatives?: GoldMark["alternatives"];
}
type Texts = Pick<AdjudicatePage, "text" | "context">;

/** The text of a part by name. */
export const partOf = (page: Texts, part: string): string => (part === "text" ? page.text : (page.context[part] ?? ""));

/** A span as it came, in UTF-16 units. */
export function fromWire(page: Texts, span: WireSpan): Span {
  const [part, start, end] = span.length === 2 ? (["text", ...span] as const) : span;
  const { toUtf16 } = offsets(partOf(page, part));
  return { part, start: toUtf16(start), end: toUtf16(end) };
}

export const draftOf = (page: Texts, mark: GoldMark): Draft => ({
  spans: mark.spans.map((span) => fromWire(page, span)),
  label: mark.label,
  answers: mark.answers,
  antecedents: mark.antecedents ?? null,
  alternatives: mark.alternatives ?? [],
});

/** A draft as it is sent, in code points; spans in the order of the text, answers only to what is asked. */
export function toWire(page: AdjudicatePage, draft: Draft): GoldMark {
  const spans = [...draft.spans].sort((a, b) => a.start - b.start || a.end - b.end);
  const asked = new Set(questionsFor(page, draft.label).map(({ name }) => name));
  return {
    spans: spans.map(({ part, start, end }): WireSpan => {
      const { toCodePoints } = offsets(partOf(page, part));
      return part === "text"
        ? [toCodePoints(start), toCodePoints(end)]
        : [part, toCodePoints(start), toCodePoints(end)];
    }),
    quotes: spans.map(({ part, start, end }) => partOf(page, part).slice(start, end)),
    label: draft.label,
    answers: Object.fromEntries(Object.entries(draft.answers).filter(([name]) => asked.has(name))),
    antecedents: draft.antecedents ?? null,
    alternatives: draft.alternatives ?? [],
  };
}

/** Other places as another reading of a mark: what gold has there or would have, without answers. */
export const readingOf = (places: readonly PlaceCard[], keys: readonly string[]): AlternativeMark[] =>
  places
    .filter(({ key }) => keys.includes(key))
    .map(shownMark)
    .filter((mark) => mark !== null && mark.spans.length > 0)
    .map((mark) => ({ spans: mark!.spans, quotes: mark!.quotes, label: mark!.label }));

/** The other places of a text with words on it, nearest first. */
export function nearestPlaces(places: readonly PlaceCard[], chosen: PlaceCard): PlaceCard[] {
  const at = startOf(chosen) ?? 0;
  const distance = (place: PlaceCard) => Math.abs((startOf(place) ?? Infinity) - at);
  return places
    .filter((place) => place.key !== chosen.key && (shownMark(place)?.spans.length ?? 0) > 0)
    .sort((one, other) => distance(one) - distance(other));
}

/** What is asked of a mark with that label. */
export const questionsFor = (page: Pick<AdjudicatePage, "questions" | "labels">, label: string | null) => [
  ...page.questions,
  ...(page.labels.find(({ name }) => name === label)?.questions ?? []),
];

// --- words ----------------------------------------------------------------------------------------------------------

/** Where the words of a text lie; punctuation at the end of one is a word of its own, so that it can be left out. */
export function wordsOf(text: string): (readonly [start: number, end: number])[] {
  return [...text.matchAll(/[\p{L}\p{N}\p{M}]+(?:[’'.,:-][\p{L}\p{N}\p{M}]+)*|[^\s\p{L}\p{N}\p{M}]+/gu)].map(
    (found) => [found.index, found.index + found[0].length] as const,
  );
}

/** Move one edge of a span by a word; never past the other, nor out of the text. An omission grows into a word. */
export function moveEdge(text: string, span: Span, edge: "start" | "end", by: 1 | -1): Span {
  const words = wordsOf(text);
  const edges = words.map(([start, end]) => (edge === "start" ? start : end));
  const at = span[edge];
  const to = by > 0 ? edges.find((each) => each > at) : edges.findLast((each) => each < at);
  if (to === undefined) return span;
  const moved = { ...span, [edge]: to };
  return moved.start < moved.end ? moved : span;
}

/** Move a whole span to the next or previous word, keeping how many words it has. */
export function moveSpan(text: string, span: Span, by: 1 | -1): Span {
  const words = wordsOf(text);
  const first = words.findIndex(([, end]) => end > span.start);
  const inside = words.filter(([start, end]) => start < span.end && end > span.start).length || 1;
  const [from, to] = [first + by, first + by + inside - 1];
  const [one, last] = [words[from], words[to]];
  return one && last ? { ...span, start: one[0], end: last[1] } : span;
}

/** A selection widened to whole words; null where it has none. */
export function snapped(text: string, start: number, end: number): readonly [number, number] | null {
  const inside = wordsOf(text).filter(([from, to]) => from < end && to > start);
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
  const which = edge ?? (start >= span.end ? "end" : end <= span.start ? "start" : nearer(span, start, end));
  if (which === null) return { span, edge: null };
  const moved = { ...span, [which]: which === "start" ? start : end };
  return { span: moved.start < moved.end ? moved : span, edge: which };
}
export type Edge = "start" | "end";

function nearer(span: Span, start: number, end: number): Edge | null {
  const [before, after] = [start - span.start, span.end - end];
  return before === after ? null : before < after ? "start" : "end";
}

/** Two marks out of one: a span each where it has several, else the first and the second half of its words. */
export function halves(page: Texts, draft: Draft): readonly [Draft, Draft] {
  const [first, ...rest] = draft.spans;
  if (first === undefined) return [draft, draft];
  if (rest.length > 0)
    return [
      { ...draft, spans: [first] },
      { ...draft, spans: rest },
    ];
  const words = wordsOf(partOf(page, first.part)).filter(([start, end]) => start < first.end && end > first.start);
  if (words.length < 2) return [draft, draft];
  const half = Math.ceil(words.length / 2);
  return [
    { ...draft, spans: [{ ...first, end: words[half - 1]![1] }] },
    { ...draft, spans: [{ ...first, start: words[half]![0] }] },
  ];
}

// --- places ---------------------------------------------------------------------------------------------------------

/** What gold has at a place, or would have. */
export const shownMark = (place: PlaceCard): GoldMark | null =>
  place.gold[0] ?? place.merged ?? place.readings[0] ?? null;

/** The words a place is called by in the list. */
export const quoteOf = (place: PlaceCard): string => shownMark(place)?.quotes.join(" … ") ?? "";

/** The label that the list shows: of gold, else the one most gave. */
export function labelOf(place: PlaceCard): string | null {
  if (place.gold.length > 0) return place.gold[0]!.label;
  if (place.merged?.label) return place.merged.label;
  return place.readings[0]?.label ?? null;
}

/** Whether merging finds no label that most gave. */
export const split = ({ merged, readings }: PlaceCard): boolean =>
  merged !== null && merged.label === null && readings.some(({ label }) => label !== null);

/** Whether readings differ in words or label. */
export const differ = ({ readings }: PlaceCard): boolean =>
  new Set(readings.map(({ spans, label }) => JSON.stringify([spans, label]))).size > 1;

/** The place after `key` that is not decided yet, else the first such; undefined when all are. */
export function nextOpen(places: readonly PlaceCard[], key: string): PlaceCard | undefined {
  const at = places.findIndex((place) => place.key === key);
  const open = (place: PlaceCard) => place.decision === null && place.key !== key;
  return places.slice(at + 1).find(open) ?? places.find(open);
}

/** Where a place lies after its key changed, or another was decided: the same key, else the nearest by position. */
export function findAgain(places: readonly PlaceCard[], key: string, start: number): PlaceCard | undefined {
  const at = (place: PlaceCard) => startOf(place) ?? Infinity;
  return (
    places.find((place) => place.key === key) ??
    [...places].sort((a, b) => Math.abs(at(a) - start) - Math.abs(at(b) - start))[0]
  );
}

/** First code point of a place on the text. */
export const startOf = (place: PlaceCard): number | undefined =>
  [shownMark(place), ...place.readings]
    .flatMap((mark) => mark?.spans ?? [])
    .filter((span) => span.length === 2)
    .map(([start]) => start as number)[0];

/** What is drawn into the text: the readings of the chosen place with their numbers, elsewhere gold or what may be. */
export function drawings(page: AdjudicatePage, chosen: string, drafts: readonly Draft[]): Drawing[] {
  const drawn = (id: string, spans: readonly Span[], label: string | null, flag: string, tone: Drawing["tone"]) => {
    const look = lookOf(page.looks, label);
    return { id, spans, slot: look.slot, flag: flag && `${flag} ${look.flag}`, kind: "mark" as const, tone };
  };
  return page.places.flatMap((place) => {
    const spansOf = (mark: GoldMark) => mark.spans.map((span) => fromWire(page, span));
    if (place.key === chosen && place.readings.length > 0)
      return place.readings.map((reading, index) =>
        drawn(`${place.key} ${index + 1}`, spansOf(reading), reading.label, String(index + 1), "rest"),
      );
    if (place.key === chosen)
      return drafts.map((draft, index) => drawn(`${place.key} ${index + 1}`, draft.spans, draft.label, "+", "chosen"));
    if (place.decision !== null)
      return place.gold.map((mark, index) =>
        drawn(`${place.key} ${index + 1}`, spansOf(mark), mark.label, "✓", "rest"),
      );
    const may = place.merged ?? place.readings[0];
    return may ? [drawn(`${place.key} 1`, spansOf(may), labelOf(place), "", "faint")] : [];
  });
}

/** A decision without the version it is about. */
export type Ruling = Pick<NewRuling, "what"> & Partial<Pick<NewRuling, "reading" | "marks">>;

/** The decision that a set of edited marks amounts to. */
export function ruling(place: PlaceCard, marks: readonly GoldMark[], reading: number | null): Ruling {
  if (place.readings.length === 0 && place.key.startsWith("new-"))
    return { what: marks.length > 1 ? "split" : "added", marks: [...marks] };
  if (marks.length > 1) return { what: "split", marks: [...marks] };
  return { what: "changed", marks: [...marks], ...(reading === null ? {} : { reading }) };
}
