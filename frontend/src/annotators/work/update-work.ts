import type { Span } from "../../lib/text/pieces";
import type { Answer, Answers } from "../../lib/api-types";
import {
  diffWork,
  entryId,
  markKey,
  NO_ANSWERS,
  applyPatch,
  type AlternativeMark,
  type DecisionKey,
  type OfferDecision,
  type EntryKey,
  type Mark,
  type MarkKey,
  type Patch,
  type UnitKey,
  type Work,
} from "./work";

/** Events of the annotator. Every event that changes the work can be undone, except those from elsewhere. */
export type WorkEvent =
  | { readonly type: "mark"; readonly id: string; readonly mark: Mark; readonly offer?: DecisionKey }
  | {
      readonly type: "relabel";
      readonly key: MarkKey;
      readonly label: string | null;
      /** Wider spans, if the new label requires them. */
      readonly spans?: readonly Span[];
    }
  | { readonly type: "resize"; readonly key: MarkKey; readonly spans: readonly Span[] }
  | { readonly type: "antecedent"; readonly key: MarkKey; readonly spans: readonly Span[] }
  | {
      readonly type: "alternatives";
      readonly key: MarkKey;
      readonly alternatives: readonly (readonly AlternativeMark[])[];
    }
  | { readonly type: "remove"; readonly key: MarkKey }
  | { readonly type: "split"; readonly key: MarkKey; readonly ids: readonly string[]; readonly spans: readonly Span[] }
  | {
      readonly type: "answer";
      readonly key: EntryKey;
      readonly question: string;
      readonly value: Answer | undefined;
      /** Time spent on a part so far, if answering alone judges it. */
      readonly seconds?: number;
    }
  | { readonly type: "noErrors"; readonly value: boolean }
  | { readonly type: "judge"; readonly key: UnitKey; readonly seconds: number }
  | { readonly type: "reject"; readonly key: DecisionKey }
  | { readonly type: "undo" | "redo" }
  | { readonly type: "received"; readonly patch: Patch };

/** Undoable step. Typing into one field, identified by `tag`, is one step. */
export interface HistoryStep {
  readonly name: Exclude<WorkEvent["type"], "undo" | "redo" | "received">;
  readonly tag: string;
  readonly before: Patch;
  readonly after: Patch;
}
export interface WorkState {
  readonly work: Work;
  readonly past: readonly HistoryStep[];
  readonly future: readonly HistoryStep[];
}

const MAX_STEPS = 200;

/** Return the next state. No other function changes the work. */
export function updateWork(state: WorkState, event: WorkEvent): WorkState {
  switch (event.type) {
    case "undo":
      return applyUndo(state);
    case "redo":
      return applyRedo(state);
    case "received":
      return { ...state, work: applyPatch(state.work, event.patch) };
    default:
      return recordStep(state, event, applyPatch(state.work, patchForEvent(state.work, event)));
  }
}

/** Return the patch of an event. */
function patchForEvent(work: Work, event: Exclude<WorkEvent, { type: "undo" | "redo" | "received" }>): Patch {
  switch (event.type) {
    case "mark":
      return { [markKey(event.id)]: event.mark, ...acceptOffer(work, event), ...clearNoErrors(work) };
    case "relabel":
      return patchMark(work, event.key, { label: event.label, ...(event.spans ? { spans: event.spans } : {}) });
    case "resize":
      return patchMark(work, event.key, { spans: event.spans });
    case "antecedent":
      return patchMark(work, event.key, { antecedent: event.spans });
    case "alternatives":
      return patchMark(work, event.key, { alternatives: event.alternatives.filter((members) => members.length > 0) });
    case "remove":
      return { [event.key]: undefined, ...setOffersRejected(work, event.key) };
    case "split":
      return splitMark(work, event);
    case "answer":
      return patchAnswer(work, event);
    case "noErrors":
      return { answers: { ...(work.answers ?? NO_ANSWERS), noErrors: event.value } };
    case "judge":
      return { [event.key]: { answers: work[event.key]?.answers ?? {}, seconds: event.seconds } };
    case "reject":
      return { [event.key]: { decision: "rejected", mark: null } satisfies OfferDecision };
  }
}

const acceptOffer = (work: Work, event: { id: string; offer?: DecisionKey }): Patch =>
  event.offer === undefined || work[event.offer] !== undefined
    ? {}
    : { [event.offer]: { decision: "accepted", mark: event.id } };

/** Return the patch that removes "no errors", which a mark contradicts. */
const clearNoErrors = (work: Work): Patch =>
  work.answers?.noErrors ? { answers: { ...work.answers, noErrors: false } } : {};

/** Return a changed mark; an accepted suggestion becomes an edited one. */
function patchMark(work: Work, key: MarkKey, change: Partial<Mark>): Patch {
  const mark = work[key];
  return mark ? { [key]: { ...mark, ...change }, ...setOffersEdited(work, key) } : {};
}

const acceptedOffers = (work: Work, key: MarkKey): DecisionKey[] =>
  (work[key]?.madeFrom ?? [])
    .map((id): DecisionKey => `decisions/${id}`)
    .filter((decision) => work[decision]?.mark === entryId(key));

const setOffersEdited = (work: Work, key: MarkKey): Patch =>
  Object.fromEntries(acceptedOffers(work, key).map((offer) => [offer, { decision: "edited", mark: entryId(key) }]));

const setOffersRejected = (work: Work, key: MarkKey): Patch =>
  Object.fromEntries(acceptedOffers(work, key).map((offer) => [offer, { decision: "rejected", mark: null }]));

/** Split a mark: the first keeps its ID and answers, the others start with the same answers. */
function splitMark(
  work: Work,
  { key, ids, spans }: { key: MarkKey; ids: readonly string[]; spans: readonly Span[] },
): Patch {
  const mark = work[key];
  if (!mark) return {};
  const keys = [key, ...ids.map(markKey)];
  return Object.fromEntries(
    spans.map((span, index) => [keys[index]!, { ...mark, spans: [span], answers: index === 0 ? mark.answers : {} }]),
  );
}

function patchAnswer(work: Work, { key, question, value, seconds }: Extract<WorkEvent, { type: "answer" }>): Patch {
  const entry = (work[key] ?? (key === "answers" ? NO_ANSWERS : { answers: {}, seconds: 0 })) as { answers: Answers };
  const { [question]: _, ...others } = entry.answers;
  const answers = value === undefined ? others : { ...others, [question]: value };
  const offerPatch = key.startsWith("marks/") ? setOffersEdited(work, key as MarkKey) : {};
  const time = seconds === undefined ? {} : { seconds };
  return { [key]: { ...entry, ...time, answers }, ...offerPatch };
}

/** Merge typing into one step until another event happens. */
const stepTag = (event: WorkEvent): string =>
  event.type === "answer" && typeof event.value !== "number" ? `${event.key} ${event.question}` : "";

function recordStep(
  state: WorkState,
  event: Exclude<WorkEvent, { type: "undo" | "redo" | "received" }>,
  work: Work,
): WorkState {
  const after = diffWork(state.work, work);
  if (Object.keys(after).length === 0) return state;
  const tag = stepTag(event);
  const last = state.past.at(-1);
  if (tag !== "" && last?.tag === tag)
    return { work, past: [...state.past.slice(0, -1), { ...last, after: { ...last.after, ...after } }], future: [] };
  const step: HistoryStep = { name: event.type, tag, before: diffWork(work, state.work), after };
  return { work, past: [...state.past, step].slice(-MAX_STEPS), future: [] };
}

function applyUndo({ work, past, future }: WorkState): WorkState {
  const step = past.at(-1);
  if (!step) return { work, past, future };
  return { work: applyPatch(work, step.before), past: past.slice(0, -1), future: [...future, { ...step, tag: "" }] };
}

function applyRedo({ work, past, future }: WorkState): WorkState {
  const step = future.at(-1);
  if (!step) return { work, past, future };
  return { work: applyPatch(work, step.after), past: [...past, step], future: future.slice(0, -1) };
}
