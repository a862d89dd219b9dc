import { describe, expect, test } from "vitest";
import type { Feedback, MarkBody, Solved } from "../../lib/api-types";
import { earlierDrawings, markDrawings, offerDrawings } from "../marking/drawings";
import { guide, page, practice, question, task } from "../work/fixtures";
import { choicesOf, chosen, isEven, keyed, OPTION_KEYS, turned } from "../../lib/questions/options";
import { agrees, answerWords, compared, graded, gradedDrawings } from "./outcome";
import { guideOf } from "./practice";
import { Drafts, placeOf, type Draft } from "./drafts";
import { sourcesOf, type Mark } from "../work/work";

const LOOKS = [
  { label: "word", title: "Word", slot: "A1", flag: "WO", key: "w" },
  { label: "name", title: "Name", slot: "B1", flag: "NA", key: "n" },
];
const body = (start: number, end: number, quote: string, label = "word"): MarkBody => ({
  spans: [[start, end]],
  quotes: [quote],
  label,
  answers: {},
  made_from: [],
});
const solved = (start: number, end: number, more: Partial<Solved> = {}): Solved => ({
  spans: [[start, end]],
  quotes: [""],
  label: "word",
  answers: {},
  antecedent: "",
  why: "",
  mark: null,
  points: 0,
  ...more,
});
const feedback = (more: Partial<Feedback> = {}): Feedback => ({
  points: 0,
  of: 0,
  solutions: [],
  extra: [],
  answers: {},
  units: {},
  right: true,
  say: "",
  ...more,
});

describe("how an exercise went", () => {
  const TEXT = "😀 one two three";
  const done = task(TEXT, {
    marks: [
      { id: "m", version: 1, body: body(2, 5, "one") },
      { id: "x", version: 1, body: body(10, 15, "three", "name") },
    ],
  });
  const found = graded(
    done,
    feedback({ solutions: [solved(2, 9, { mark: "m", points: 4, why: "Yes." }), solved(6, 9)], extra: ["x", "gone"] }),
    LOOKS,
  );

  test("found is where it was marked, missed where it lies, extra what found nothing", () => {
    expect(found.map(({ kind, words, points }) => [kind, words, points])).toEqual([
      ["found", "one", 4],
      ["missed", "two", 0],
      ["extra", "three", 0],
    ]);
    expect(found[0]).toMatchObject({ why: "Yes.", look: { flag: "WO" }, spans: [{ start: 3, end: 6 }] });
  });
  test("each kind is drawn in its own way", () => {
    const flags = { found: (f: string) => `✓ ${f}`, missed: (f: string) => `- ${f}`, extra: (f: string) => `+ ${f}` };
    expect(gradedDrawings(found, found[0]!.id, flags).map(({ kind, flag, tone }) => [kind, flag, tone])).toEqual([
      ["mark", "✓ WO", "chosen"],
      ["missed", "- WO", "rest"],
      ["extra", "+ NA", "rest"],
    ]);
  });
  test("known answers stand beside those given", () => {
    const kind = question("kind", { options: [{ value: 1, title: "One", gloss: "", group: "", aliases: [] }] });
    expect(compared([kind, question("other")], { kind: 2 }, { kind: 1 })).toEqual([
      { ask: "kind?", given: "2", right: "One", same: false },
    ]);
    expect(answerWords(question("q"), undefined)).toBe("");
    expect(answerWords(question("q"), false)).toBe("No");
    expect([agrees({ a: ["x", "y"] }, { a: ["y", "x"] }), agrees({}, {}), agrees({}, { a: false })]).toEqual([
      true,
      true,
      false,
    ]);
  });
});

describe("keys of options", () => {
  const option = (value: string | number) => ({ value, title: "", gloss: "", group: "", aliases: [] });
  const rating = question("rating", { scale: "ordinal", options: [option(1), option(2)] });
  const codes = question("codes", { scale: "several", options: [option("a"), option("b")] });
  const free = question("why");

  test.each([
    [[rating, free], {}, undefined, undefined, "rating"],
    [[rating, codes], { rating: 1 }, undefined, "rating", "rating"],
    [[rating, codes], { rating: 1 }, "codes", "rating", "codes"],
    [[codes, free], {}, undefined, undefined, "codes"],
    [[question("first", { scale: "yes-no" }), rating], { first: true }, undefined, "first", "rating"],
    [[free], {}, "why", undefined, undefined],
  ])("%#", (questions, answers, focused, last, name) => {
    expect(keyed(questions, answers as never, focused, last)?.name).toBe(name);
  });
  test("one of several is taken and taken back", () => {
    expect(chosen(codes, undefined, codes.options[0]!)).toEqual(["a"]);
    expect(chosen(codes, ["a", "b"], codes.options[0]!)).toEqual(["b"]);
    expect(chosen(codes, ["a"], codes.options[0]!)).toBeUndefined();
    expect(chosen(rating, 1, rating.options[1]!)).toBe(2);
  });
  test("yes and no can be chosen by key, and eleven codes have eleven keys", () => {
    expect(choicesOf(question("q", { scale: "yes-no" })).map(({ value }) => value)).toEqual([true, false]);
    expect(new Set(OPTION_KEYS.slice(0, 11)).size).toBe(11);
  });
  test("the letters of a pair go by the screen, and what is chosen by the texts", () => {
    const titled = ["a", "b", "neither"].map((value) => ({ ...option(value), title: value.toUpperCase() }));
    const prefer = turned(question("prefer", { scale: "nominal", options: titled }));
    expect(prefer.options.map(({ title, value }) => [title, value])).toEqual([
      ["A", "b"],
      ["B", "a"],
      ["NEITHER", "neither"],
    ]);
    const asked = (among: string[]) => question("why", { when: { question: "prefer", among } });
    expect([asked(["a", "b"]), asked(["neither"]), asked(["a"]), free].map((each) => isEven([each]))).toEqual([
      true,
      true,
      false,
      true,
    ]);
  });
});

describe("drafts of pages", () => {
  const draft: Draft = { answers: { age: 30 }, active: 2, at: 0, open: false };
  const storage = () => {
    const kept = new Map<string, string>();
    return {
      getItem: (name: string) => kept.get(name) ?? null,
      setItem: (name: string, value: string) => void kept.set(name, value),
      removeItem: (name: string) => void kept.delete(name),
    } as unknown as Storage;
  };
  test("are kept for one person and one step, until struck out", () => {
    const device = storage();
    expect(new Drafts(device).write("a", "survey", draft)).toBe(true);
    expect(new Drafts(device).read("a", "survey")).toEqual(draft);
    expect([new Drafts(device).read("b", "survey"), new Drafts(device).read("a", "s")]).toEqual([undefined, undefined]);
    new Drafts(device).strike("a", "survey");
    expect(new Drafts(device).read("a", "survey")).toBeUndefined();
  });
  test("stay in memory where the device has no room, and nothing breaks on what is not ours", () => {
    const full = {
      ...storage(),
      setItem: () => {
        throw new DOMException("full", "QuotaExceededError");
      },
    };
    const drafts = new Drafts(full as unknown as Storage);
    expect(drafts.write("a", page("s").step, draft)).toBe(false);
    expect(drafts.read("a", "s")).toEqual(draft);
    const odd = { ...storage(), getItem: () => "{" };
    expect(new Drafts(odd as unknown as Storage).read("a", "s")).toBeUndefined();
  });
});

test.each([
  ["https://app.prolific.com/submissions/complete?cc=X", "Prolific"],
  ["https://workersandbox.mturk.com/mturk/externalSubmit", "Mechanical Turk"],
  ["https://panel.example/x", "panel.example"],
  ["https://notprolific.com/", "notprolific.com"],
  ["javascript:alert(1)", undefined],
  ["", undefined],
])("%s leads to %s", (back, name) => {
  expect(placeOf(back)).toBe(name);
});

test("a question of its own is all that is asked of such a text", () => {
  const usual = guide({ document_questions: [question("quality")] });
  expect(guideOf(usual, task("x", { practice: practice() }))).toBe(usual);
  const asked = guideOf(usual, task("x", { practice: practice({ question: question("answer") }) }));
  expect([asked.labels, asked.document_questions.map(({ name }) => name)]).toEqual([[], ["answer"]]);
});

describe("what is drawn while marking", () => {
  const mark = (start: number, antecedent: Mark["antecedent"] = []): Mark => ({
    spans: [{ part: "text", start, end: start + 2 }],
    label: "word",
    answers: {},
    antecedent,
    madeFrom: [],
  });
  const marks = [["marks/a", mark(0)] as const, ["marks/b", mark(5)] as const];

  test.each([
    [undefined, 0, false, ["rest", "rest"], ["WO", "WO"]],
    ["marks/b", 5, false, ["faint", "chosen"], ["WO", "WO"]],
    ["marks/b", 0, true, ["faint", "chosen"], ["", "WO"]],
  ] as const)("%s, from %i, picking %s", (chosen, from, picking, tones, flags) => {
    const drawn = markDrawings(marks, LOOKS, chosen, from, picking);
    expect(drawn.map(({ tone }) => tone)).toEqual(tones);
    expect(drawn.map(({ flag }) => flag)).toEqual(flags);
  });
  test("earlier words, and marks that are offered", () => {
    const spans = [{ part: "text", start: 1, end: 2 }];
    expect(earlierDrawings("marks/a", mark(5), LOOKS)).toEqual([]);
    expect(earlierDrawings("marks/a", mark(5, spans), LOOKS)).toMatchObject([{ kind: "antecedent", spans }]);
    const offered = [{ id: "o", spans: [[3, 6]] as [number, number][], quotes: ["one"], label: "name", answers: {} }];
    expect(offerDrawings(offered, LOOKS, "o", sourcesOf(task("😀 one")))).toMatchObject([
      { id: "offer-o", flag: "NA?", tone: "chosen", spans: [{ start: 4, end: 7 }] },
    ]);
  });
});
