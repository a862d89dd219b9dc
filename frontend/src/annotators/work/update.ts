import type { Span } from "../../lib/text/pieces";
import type { Answer, Answers } from "../../lib/api-types";
import {
  difference,
  idOf,
  markKey,
  NOTHING_SAID,
  patched,
  type AlternativeMark,
  type DecisionKey,
  type Decision,
  type Key,
  type Mark,
  type MarkKey,
  type Patch,
  type UnitKey,
  type Work,
} from "./work";

/** What an annotator can do. Every event that changes the work can be undone, but for what came from elsewhere. */
export type Event =
  | { readonly type: "mark"; readonly id: string; readonly mark: Mark; readonly offer?: DecisionKey }
  | {
      readonly type: "relabel";
      readonly key: MarkKey;
      readonly label: string | null;
      /** As wide as the new label asks for, where that is wider. */
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
      readonly key: Key;
      readonly question: string;
      readonly value: Answer | undefined;
      /** Time spent on a part so far, where answering is all that judges it. */
      readonly seconds?: number;
    }
  | { readonly type: "noErrors"; readonly value: boolean }
  | { readonly type: "judge"; readonly key: UnitKey; readonly seconds: number }
  | { readonly type: "reject"; readonly key: DecisionKey }
  | { readonly type: "undo" | "redo" }
  | { readonly type: "received"; readonly patch: Patch };

/** One thing that can be undone. Typing into one field is one step, told by `tag`. */
export interface Step {
  readonly name: Exclude<Event["type"], "undo" | "redo" | "received">;
  readonly tag: string;
  readonly before: Patch;
  readonly after: Patch;
}
export interface State {
  readonly work: Work;
  readonly past: readonly Step[];
  readonly future: readonly Step[];
}

const MOST_STEPS = 200;

/** The next state. Nothing else changes what was marked. */
export function update(state: State, event: Event): State {
  switch (event.type) {
    case "undo":
      return undone(state);
    case "redo":
      return redone(state);
    case "received":
      return { ...state, work: patched(state.work, event.patch) };
    default:
      return recorded(state, event, patched(state.work, patchOf(state.work, event)));
  }
}

/** What an event sets. */
function patchOf(work: Work, event: Exclude<Event, { type: "undo" | "redo" | "received" }>): Patch {
  switch (event.type) {
    case "mark":
      return { [markKey(event.id)]: event.mark, ...decided(work, event), ...withoutNoErrors(work) };
    case "relabel":
      return changed(work, event.key, { label: event.label, ...(event.spans ? { spans: event.spans } : {}) });
    case "resize":
      return changed(work, event.key, { spans: event.spans });
    case "antecedent":
      return changed(work, event.key, { antecedent: event.spans });
    case "alternatives":
      return changed(work, event.key, { alternatives: event.alternatives.filter((members) => members.length > 0) });
    case "remove":
      return { [event.key]: undefined, ...rejectedAgain(work, event.key) };
    case "split":
      return split(work, event);
    case "answer":
      return answered(work, event);
    case "noErrors":
      return { answers: { ...(work.answers ?? NOTHING_SAID), noErrors: event.value } };
    case "judge":
      return { [event.key]: { answers: work[event.key]?.answers ?? {}, seconds: event.seconds } };
    case "reject":
      return { [event.key]: { decision: "rejected", mark: null } satisfies Decision };
  }
}

const decided = (work: Work, event: { id: string; offer?: DecisionKey }): Patch =>
  event.offer === undefined || work[event.offer] !== undefined
    ? {}
    : { [event.offer]: { decision: "accepted", mark: event.id } };

/** A mark on a text contradicts "no errors". */
const withoutNoErrors = (work: Work): Patch =>
  work.answers?.noErrors ? { answers: { ...work.answers, noErrors: false } } : {};

/** A changed mark; one that was accepted from an offer counts as edited from now on. */
function changed(work: Work, key: MarkKey, change: Partial<Mark>): Patch {
  const mark = work[key];
  return mark ? { [key]: { ...mark, ...change }, ...editedOffer(work, key) } : {};
}

const offersOf = (work: Work, key: MarkKey): DecisionKey[] =>
  (work[key]?.madeFrom ?? [])
    .map((id): DecisionKey => `decisions/${id}`)
    .filter((decision) => work[decision]?.mark === idOf(key));

const editedOffer = (work: Work, key: MarkKey): Patch =>
  Object.fromEntries(offersOf(work, key).map((offer) => [offer, { decision: "edited", mark: idOf(key) }]));

const rejectedAgain = (work: Work, key: MarkKey): Patch =>
  Object.fromEntries(offersOf(work, key).map((offer) => [offer, { decision: "rejected", mark: null }]));

/** Several marks in place of one: the first keeps its id and answers, the others begin with the same answers. */
function split(
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

function answered(work: Work, { key, question, value, seconds }: Extract<Event, { type: "answer" }>): Patch {
  const entry = (work[key] ?? (key === "answers" ? NOTHING_SAID : { answers: {}, seconds: 0 })) as { answers: Answers };
  const { [question]: _, ...others } = entry.answers;
  const answers = value === undefined ? others : { ...others, [question]: value };
  const edited = key.startsWith("marks/") ? editedOffer(work, key as MarkKey) : {};
  const timed = seconds === undefined ? {} : { seconds };
  return { [key]: { ...entry, ...timed, answers }, ...edited };
}

/** Typing goes into one step until something else happens. */
const tagOf = (event: Event): string =>
  event.type === "answer" && typeof event.value !== "number" ? `${event.key} ${event.question}` : "";

function recorded(state: State, event: Exclude<Event, { type: "undo" | "redo" | "received" }>, work: Work): State {
  const after = difference(state.work, work);
  if (Object.keys(after).length === 0) return state;
  const tag = tagOf(event);
  const last = state.past.at(-1);
  if (tag !== "" && last?.tag === tag)
    return { work, past: [...state.past.slice(0, -1), { ...last, after: { ...last.after, ...after } }], future: [] };
  const step: Step = { name: event.type, tag, before: difference(work, state.work), after };
  return { work, past: [...state.past, step].slice(-MOST_STEPS), future: [] };
}

function undone({ work, past, future }: State): State {
  const step = past.at(-1);
  if (!step) return { work, past, future };
  return { work: patched(work, step.before), past: past.slice(0, -1), future: [...future, { ...step, tag: "" }] };
}

function redone({ work, past, future }: State): State {
  const step = future.at(-1);
  if (!step) return { work, past, future };
  return { work: patched(work, step.after), past: [...past, step], future: future.slice(0, -1) };
}
