import { createOffsetConverter, type OffsetConverter } from "../../lib/text/offsets";
import type { Span } from "../../lib/text/pieces";
import type {
  AnswersBody,
  Answers,
  Body,
  Guide,
  MarkBody,
  SuggestionBody,
  Task,
  UnitBody,
  WireSpan,
} from "../../lib/api-types";
import { applicableAnswers, markQuestions } from "../../lib/questions/questions";

/** Mark of an alternative. */
export interface AlternativeMark {
  readonly spans: readonly Span[];
  readonly label: string | null;
}
/** One marked error, in page offsets. */
export interface Mark {
  readonly spans: readonly Span[];
  readonly label: string | null;
  readonly answers: Answers;
  readonly antecedent: readonly Span[];
  readonly madeFrom: readonly string[];
  /** Alternative ways to mark the same error, each a complete set of marks. */
  readonly alternatives?: readonly (readonly AlternativeMark[])[];
}
/** Judged part. */
export interface PartJudgement {
  readonly answers: Answers;
  readonly seconds: number;
}
/** Answers about the whole text. */
export interface TextAnswers {
  readonly answers: Answers;
  readonly noErrors: boolean;
}
/** Decision about an offered mark. */
export interface OfferDecision {
  readonly decision: SuggestionBody["decision"];
  readonly mark: string | null;
}

export type MarkKey = `marks/${string}`;
export type UnitKey = `units/${string}`;
export type DecisionKey = `decisions/${string}`;
/** Key of an entry in a task, also the end of its URL on the server. */
export type EntryKey = MarkKey | UnitKey | DecisionKey | "answers";

/** All work of an annotator on one task, by entry. */
export interface Work {
  readonly [key: MarkKey]: Mark;
  readonly [key: UnitKey]: PartJudgement;
  readonly [key: DecisionKey]: OfferDecision;
  readonly answers?: TextAnswers;
}
/** Entries to set; undefined removes an entry. */
export type Patch = { readonly [key in EntryKey]?: Mark | PartJudgement | OfferDecision | TextAnswers | undefined };

export const NO_ANSWERS: TextAnswers = { answers: {}, noErrors: false };
export const markKey = (id: string): MarkKey => `marks/${id}`;
export const entryId = (key: MarkKey | DecisionKey): string => key.slice(key.indexOf("/") + 1);
const isMarkKey = (key: string): key is MarkKey => key.startsWith("marks/");

const KEYED_MARKS = new WeakMap<Mark, [MarkKey, Mark]>();

/** Return a mark with its key. The object is stable per mark, so that a long list redraws only changes. */
function keyedMark(key: MarkKey, mark: Mark): [MarkKey, Mark] {
  const cached = KEYED_MARKS.get(mark);
  if (cached?.[0] === key) return cached;
  const entry: [MarkKey, Mark] = [key, mark];
  KEYED_MARKS.set(mark, entry);
  return entry;
}

/** Return marks with their keys in text order; those on contexts come first, as on the page. */
export function sortedMarks(work: Work): [MarkKey, Mark][] {
  const marks = Object.keys(work)
    .filter(isMarkKey)
    .map((key) => keyedMark(key, work[key]!));
  const firstSpan = ([, { spans }]: [MarkKey, Mark]) => spans[0]!;
  return marks.sort((a, b) => compareSpans(firstSpan(a), firstSpan(b)) || (a[0] < b[0] ? -1 : 1));
}

const compareSpans = (a: Span, b: Span): number =>
  Number(a.part === "text") - Number(b.part === "text") ||
  (a.part < b.part ? -1 : a.part > b.part ? 1 : a.start - b.start || a.end - b.end);

/** Return the union of spans in text order, with adjacent spans joined. */
export function mergeSpans(spans: readonly Span[]): Span[] {
  const merged: Span[] = [];
  for (const span of [...spans].sort(compareSpans)) {
    const last = merged.at(-1);
    if (last?.part === span.part && span.start <= last.end)
      merged[merged.length - 1] = { ...last, end: Math.max(last.end, span.end) };
    else merged.push(span);
  }
  return merged;
}

// --- the seam: wire offsets count code points, ours count UTF-16 units -----------------------------------------------

/** Text of a part with the conversion of its offsets. */
export interface Source {
  readonly text: string;
  readonly offsets: OffsetConverter;
}
export type Sources = Readonly<Record<string, Source>>;

export const taskSources = (task: Pick<Task, "text" | "context">): Sources =>
  Object.fromEntries(
    Object.entries({ ...task.context, text: task.text }).map(([part, text]) => [
      part,
      { text, offsets: createOffsetConverter(text) },
    ]),
  );

export const quoteSpan = (span: Span, sources: Sources): string =>
  sources[span.part]?.text.slice(span.start, span.end) ?? "";

/** Return the words of a mark as one string. */
export const quoteSpans = (spans: readonly Span[], sources: Sources): string =>
  spans.map((span) => quoteSpan(span, sources)).join(" … ");

/** Return the last word before a position, with attached punctuation. */
export function wordBefore({ part, start }: Span, sources: Sources): string {
  const before = sources[part]!.text.slice(Math.max(0, start - 24), start);
  return before.trim().split(/\s+/).at(-1)!;
}

/** Convert a received span. */
export function spanFromWire(span: WireSpan, sources: Sources): Span {
  const [part, start, end] = span.length === 2 ? (["text", ...span] as const) : span;
  const { toUtf16 } = sources[part]!.offsets;
  return { part, start: toUtf16(start), end: toUtf16(end) };
}

function spanToWire({ part, start, end }: Span, sources: Sources): WireSpan {
  const { toCodePoints } = sources[part]!.offsets;
  const range: [number, number] = [toCodePoints(start), toCodePoints(end)];
  return part === "text" ? range : [part, ...range];
}

/** Convert a received task to work. */
export function workFromWire(task: Task, sources: Sources): Work {
  const entries: [EntryKey, Body | null][] = [
    ...task.marks.map(({ id, body }): [EntryKey, Body | null] => [markKey(id), body]),
    ...task.units.map(({ id, body }): [EntryKey, Body | null] => [`units/${id}`, body]),
    ...task.decisions.map(({ id, body }): [EntryKey, Body | null] => [`decisions/${id}`, body]),
    ...(task.answers ? [["answers", task.answers.body] as [EntryKey, Body | null]] : []),
  ];
  return applyPatch(
    {},
    Object.fromEntries(entries.map(([key, body]) => [key, entryFromWire(key, body, sources)])) as Patch,
  );
}

/** Convert a received entry, or return undefined if it was deleted. */
export function entryFromWire(key: EntryKey, body: Body | null, sources: Sources): Patch[EntryKey] {
  if (body === null) return undefined;
  if (key.startsWith("marks/")) return markFromWire(body as MarkBody, sources);
  if (key.startsWith("units/")) return { answers: (body as UnitBody).answers, seconds: (body as UnitBody).seconds };
  if (key.startsWith("decisions/"))
    return { decision: (body as SuggestionBody).decision, mark: (body as SuggestionBody).mark ?? null };
  return { answers: (body as AnswersBody).answers, noErrors: (body as AnswersBody).no_errors };
}

const markFromWire = (body: MarkBody, sources: Sources): Mark => ({
  spans: body.spans.map((span) => spanFromWire(span, sources)),
  label: body.label,
  answers: body.answers,
  antecedent: (body.antecedent?.spans ?? []).map((span) => spanFromWire(span, sources)),
  madeFrom: body.made_from,
  ...((body.alternatives ?? []).length > 0
    ? {
        alternatives: body.alternatives!.map((members) =>
          members.map(({ spans, label }) => ({ spans: spans.map((span) => spanFromWire(span, sources)), label })),
        ),
      }
    : {}),
});

/** Convert an entry to a request, with its quotes and only answers to questions that are asked. */
export function entryToWire(key: EntryKey, entry: Patch[EntryKey], sources: Sources, guide: Guide): Body | null {
  if (entry === undefined) return null;
  if (key.startsWith("marks/")) return markToWire(entry as Mark, sources, guide);
  if (key.startsWith("units/"))
    return {
      answers: applicableAnswers((entry as PartJudgement).answers, guide.unit_questions),
      seconds: (entry as PartJudgement).seconds,
    };
  if (key.startsWith("decisions/")) return entry as OfferDecision;
  const { answers, noErrors } = entry as TextAnswers;
  return { answers: applicableAnswers(answers, guide.document_questions), no_errors: noErrors };
}

function markToWire(mark: Mark, sources: Sources, guide: Guide): MarkBody {
  const toQuotedSpans = (spans: readonly Span[]) => ({
    spans: spans.map((span) => spanToWire(span, sources)),
    quotes: spans.map((span) => quoteSpan(span, sources)),
  });
  return {
    ...toQuotedSpans(mark.spans),
    label: mark.label,
    answers: applicableAnswers(mark.answers, markQuestions(guide, mark.label)),
    antecedent: mark.antecedent.length > 0 ? toQuotedSpans(mark.antecedent) : null,
    made_from: [...mark.madeFrom],
    alternatives: (mark.alternatives ?? []).map((members) =>
      members.map(({ spans, label }) => ({ ...toQuotedSpans(spans), label })),
    ),
  };
}

/** Return `work` with the entries of `patch`. */
export function applyPatch(work: Work, patch: Patch): Work {
  const result: Record<string, unknown> = { ...work };
  for (const [key, entry] of Object.entries(patch)) {
    if (entry === undefined) delete result[key];
    else result[key] = entry;
  }
  return result as Work;
}

/** Return the patch between two works. Entries are compared by identity, because they are immutable. */
export function diffWork(from: Work, to: Work): Patch {
  const keys = new Set([...Object.keys(from), ...Object.keys(to)]) as Set<EntryKey>;
  return Object.fromEntries([...keys].filter((key) => from[key] !== to[key]).map((key) => [key, to[key]])) as Patch;
}
