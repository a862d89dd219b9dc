import { describe, expect, test } from "vitest";
import { updateWork, type WorkEvent, type WorkState } from "./update-work";
import type { Mark } from "./work";

const NEW: WorkState = { work: {}, past: [], future: [] };
const span = (start: number, end: number) => ({ part: "text", start, end });
const mark = (start: number, end: number, madeFrom: string[] = []): Mark => ({
  spans: [span(start, end)],
  label: "word",
  answers: {},
  antecedent: [],
  madeFrom,
});
const after = (...events: WorkEvent[]): WorkState => events.reduce(updateWork, NEW);
const EVENTS: WorkEvent[] = [
  { type: "mark", id: "m", mark: mark(0, 5) },
  { type: "answer", key: "marks/m", question: "severity", value: 2 },
  { type: "answer", key: "marks/m", question: "why", value: "It is" },
  { type: "resize", key: "marks/m", spans: [span(0, 9)] },
  { type: "relabel", key: "marks/m", label: "name" },
  { type: "antecedent", key: "marks/m", spans: [span(20, 25)] },
  { type: "mark", id: "n", mark: mark(7, 8) },
  { type: "split", key: "marks/n", ids: ["n2"], spans: [span(7, 8), span(9, 10)] },
  { type: "answer", key: "answers", question: "quality", value: 7 },
  { type: "judge", key: "units/0-30", seconds: 4 },
  { type: "reject", key: "decisions/o" },
  { type: "remove", key: "marks/m" },
  { type: "noErrors", value: true },
];

describe("undo and redo", () => {
  test("every step can be undone and redone", () => {
    const states = EVENTS.reduce<WorkState[]>((states, event) => [...states, updateWork(states.at(-1)!, event)], [NEW]);
    let state = states.at(-1)!;
    for (const expected of states.slice(0, -1).reverse()) {
      state = updateWork(state, { type: "undo" });
      expect(state.work).toEqual(expected.work);
    }
    for (const expected of states.slice(1)) {
      state = updateWork(state, { type: "redo" });
      expect(state.work).toEqual(expected.work);
    }
    expect(state.future).toEqual([]);
  });

  test("survives serialisation", () => {
    const state = structuredClone(after(...EVENTS));
    expect(updateWork(state, { type: "undo" }).work).toEqual(after(...EVENTS.slice(0, -1)).work);
  });

  test("undo without steps does nothing", () => {
    expect(updateWork(NEW, { type: "undo" })).toEqual(NEW);
    expect(updateWork(NEW, { type: "redo" })).toEqual(NEW);
  });

  test("a new step clears the redo steps", () => {
    const state = after(EVENTS[0]!, { type: "undo" }, { type: "mark", id: "x", mark: mark(1, 2) });
    expect(state.future).toEqual([]);
  });

  test("typing into one field is one step", () => {
    const typed = ["I", "It", "It i", "It is"].map((value): WorkEvent => ({
      type: "answer",
      key: "marks/m",
      question: "why",
      value,
    }));
    const state = after(EVENTS[0]!, ...typed);
    expect(state.past).toHaveLength(2);
    expect(updateWork(state, { type: "undo" }).work["marks/m"]).toEqual(mark(0, 5));
  });

  test("changes from another window are shown but are not steps", () => {
    const state = updateWork(after(EVENTS[0]!), { type: "received", patch: { "marks/other": mark(3, 4) } });
    expect(state.past).toHaveLength(1);
    expect(Object.keys(updateWork(state, { type: "undo" }).work)).toEqual(["marks/other"]);
  });

  test("an event without effect leaves no step", () => {
    expect(after({ type: "relabel", key: "marks/none", label: "word" })).toEqual(NEW);
  });
});

test("adding a mark clears noErrors in one step", () => {
  const said = after({ type: "noErrors", value: true });
  const marked = updateWork(said, EVENTS[0]!);
  expect(marked.work.answers).toEqual({ answers: {}, noErrors: false });
  expect(updateWork(marked, { type: "undo" }).work).toEqual(said.work);
});

test("changing the rating keeps both answers typed so far", () => {
  const answer = (question: string, value: string | number): WorkEvent => ({
    type: "answer",
    key: "answers",
    question,
    value,
  });
  const state = after(answer("rating", 1), answer("why", "old"), answer("rating", 3), answer("change", "new"));
  expect(state.work.answers?.answers).toEqual({ rating: 3, why: "old", change: "new" });
});

describe("offered marks", () => {
  const accepted = after({ type: "mark", id: "m", mark: mark(0, 5, ["o"]), offer: "decisions/o" });

  test("accepting creates a mark and a decision", () => {
    expect(accepted.work["decisions/o"]).toEqual({ decision: "accepted", mark: "m" });
  });
  test("a later change makes it edited", () => {
    const state = updateWork(accepted, { type: "relabel", key: "marks/m", label: "name" });
    expect(state.work["decisions/o"]).toEqual({ decision: "edited", mark: "m" });
  });
  test("a later deletion makes it rejected", () => {
    const state = updateWork(accepted, { type: "remove", key: "marks/m" });
    expect(state.work).toEqual({ "decisions/o": { decision: "rejected", mark: null } });
  });
});

test("an answer about a part can include the time spent on it", () => {
  const key = "units/0-4" as const;
  const event = { type: "answer", key, question: "kind", value: "result" } as const;
  const once = updateWork({ work: {}, past: [], future: [] }, { ...event, seconds: 3 });
  expect(once.work[key]).toEqual({ answers: { kind: "result" }, seconds: 3 });
  expect(updateWork(once, { ...event, value: "other" }).work[key]).toEqual({ answers: { kind: "other" }, seconds: 3 });
});
