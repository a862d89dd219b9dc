import { describe, expect, test } from "vitest";
import type { MarkBody } from "../../lib/api-types";
import { guide, question, task } from "./fixtures";
import {
  diffWork,
  entryFromWire,
  sortedMarks,
  applyPatch,
  taskSources,
  entryToWire,
  mergeSpans,
  workFromWire,
  type Mark,
  type Patch,
} from "./work";

const TEXT = "A 👩‍👩‍👧 family 𝒜 said.";
const body = (more: Partial<MarkBody> = {}): MarkBody => ({
  spans: [[8, 14]],
  quotes: ["family"],
  label: "word",
  answers: {},
  antecedent: null,
  made_from: [],
  alternatives: [],
  ...more,
});
const mark = (...ranges: [number, number][]): Mark => ({
  spans: ranges.map(([start, end]) => ({ part: "text", start, end })),
  label: "word",
  answers: {},
  antecedent: [],
  madeFrom: [],
});

describe("conversion between code points and UTF-16", () => {
  const sources = taskSources(task(TEXT, { context: { prompt: "😀 first" } }));

  test("a mark survives the round trip, with the quotes of its text", () => {
    const found = entryFromWire("marks/m", body(), sources) as Mark;
    expect(TEXT.slice(found.spans[0]!.start, found.spans[0]!.end)).toBe("family");
    expect(entryToWire("marks/m", found, sources, guide())).toEqual(body());
  });

  test("also on a context, with an antecedent there", () => {
    const sent = body({
      spans: [["prompt", 2, 7]],
      quotes: ["first"],
      antecedent: { spans: [["prompt", 0, 1]], quotes: ["😀"] },
    });
    expect(entryToWire("marks/m", entryFromWire("marks/m", sent, sources), sources, guide())).toEqual(sent);
  });

  test("with alternatives", () => {
    const reading = [{ spans: [[2, 3]] as [number, number][], quotes: ["👩"], label: "number" }];
    const sent = body({ alternatives: [reading] });
    expect(entryToWire("marks/m", entryFromWire("marks/m", sent, sources), sources, guide())).toEqual(sent);
  });

  test("offset 0 is valid, and an empty span is an omission", () => {
    const sent = body({ spans: [[0, 0]], quotes: [""] });
    expect(entryToWire("marks/m", entryFromWire("marks/m", sent, sources), sources, guide())).toEqual(sent);
  });

  test("a deleted entry is null", () => {
    expect(entryFromWire("marks/m", null, sources)).toBeUndefined();
    expect(entryToWire("marks/m", undefined, sources, guide())).toBeNull();
  });

  test("only non-empty answers to questions that are asked are sent", () => {
    const asking = guide({
      questions: [
        question("severity"),
        question("why", { when: { question: "severity", among: ["bad"] } }),
        question("comment"),
      ],
    });
    const answered = { ...mark([0, 1]), answers: { severity: "good", why: "typed before", comment: " ", other: "x" } };
    expect(entryToWire("marks/m", answered, sources, asking)).toMatchObject({ answers: { severity: "good" } });
    const whole = { answers: { cannot_judge: "cut off", other: "x" }, noErrors: true };
    expect(entryToWire("answers", whole, sources, asking)).toEqual({
      answers: { cannot_judge: "cut off" },
      no_errors: true,
    });
  });
});

test("a task is converted to entries", () => {
  const found = workFromWire(
    task(TEXT, {
      marks: [{ id: "m", version: 3, body: body() }],
      units: [{ id: "0-5", version: 1, body: { answers: {}, seconds: 2 } }],
      answers: { id: "text", version: 1, body: { answers: { a: 1 }, no_errors: false } },
      decisions: [{ id: "o", version: 1, body: { decision: "rejected", mark: null } }],
    }),
    taskSources(task(TEXT)),
  );
  expect(Object.keys(found).sort()).toEqual(["answers", "decisions/o", "marks/m", "units/0-5"]);
});

test("marks come in text order, those on contexts first", () => {
  const onPrompt = { ...mark([9, 10]), spans: [{ part: "prompt", start: 9, end: 10 }] };
  const found = sortedMarks({
    "marks/b": mark([5, 9]),
    "marks/a": mark([5, 7]),
    "marks/c": mark([0, 2]),
    "marks/d": onPrompt,
  });
  expect(found.map(([key]) => key)).toEqual(["marks/d", "marks/c", "marks/a", "marks/b"]);
});

test("a patch leads from one work to another, and its reverse leads back", () => {
  const from = { "marks/a": mark([0, 1]), "marks/b": mark([1, 2]) };
  const to = { "marks/b": from["marks/b"], "marks/c": mark([2, 3]) };
  const patch: Patch = diffWork(from, to);
  expect(Object.keys(patch).sort()).toEqual(["marks/a", "marks/c"]);
  expect(applyPatch(from, patch)).toEqual(to);
  expect(applyPatch(to, diffWork(to, from))).toEqual(from);
});

test("union joins adjacent spans and orders the rest", () => {
  const span = (start: number, end: number) => ({ part: "text", start, end });
  expect(mergeSpans([span(8, 9), span(3, 6), span(0, 4)])).toEqual([span(0, 6), span(8, 9)]);
});
