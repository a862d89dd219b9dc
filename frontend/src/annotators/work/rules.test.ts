import { describe, expect, test } from "vitest";
import type { Guideline } from "../../lib/api-types";
import { guide, label, question, task } from "./fixtures";
import { expression, hint } from "../marking/hints";
import { missing } from "./missing";
import { sourcesOf, type Mark } from "./work";

const TEXT = "It was 30-20 on Saturday. It was Saturday.";
const marked = (words: string, name: string): Mark => {
  const start = TEXT.indexOf(words);
  return {
    spans: [{ part: "text", start, end: start + words.length }],
    label: name,
    answers: {},
    antecedent: [],
    madeFrom: [],
  };
};
const RULES: Guideline[] = [
  {
    name: "weekday",
    say: "A weekday is a Name.",
    quote: "(?:[Oo]n )?(?:Satur|Sun)day",
    labels: ["word"],
    action: "relabel",
    to: "name",
  },
  { name: "two", say: "Two numbers?", quote: "([0-9]+)-([0-9]+)", labels: ["number"], action: "split", to: null },
];
const GUIDE = guide({ guidelines: RULES });
const SOURCES = sourcesOf(task(TEXT));

describe("hints", () => {
  test.each([
    ["Saturday", "word", { label: "name" }],
    ["on Saturday", "word", { label: "name" }],
    [
      "30-20",
      "number",
      {
        spans: [
          { part: "text", start: 7, end: 9 },
          { part: "text", start: 10, end: 12 },
        ],
      },
    ],
  ])("%s marked as %s", (words, name, change) => {
    expect(hint(marked(words, name), GUIDE, SOURCES, [])?.change).toEqual(change);
  });

  test.each([
    ["Saturday", "name", []], // as the guide says already
    ["Saturday", "number", []], // the rule is about other labels
    ["was 30-20", "number", []], // only a whole quote
    ["Saturday", "word", ["weekday"]], // refused before
  ])("%s as %s with %j refused gives none", (words, name, refused) => {
    expect(hint(marked(words, name), GUIDE, SOURCES, refused)).toBeUndefined();
  });

  test("expressions are Python's, as far as browsers understand them", () => {
    expect(expression("(?i)monday")?.test("MONDAY")).toBe(true);
    expect(expression("(?P<n>[0-9]+)")?.exec("12")?.groups?.n).toBe("12");
    expect(expression("(?>atomic)")).toBeUndefined();
  });
});

describe("what is missing", () => {
  const asking = guide({
    labels: [label("again", { antecedent: "required" }), label("word")],
    questions: [question("severity"), question("comment", { required: false })],
    document_questions: [
      question("quality"),
      question("why", { when: { question: "quality", among: ["bad"] } }),
      question("cannot_judge", { required: false }),
    ],
    unit_questions: [question("kind")],
  });
  const found = (work: Parameters<typeof missing>[0], parts: `units/${string}`[] = []) =>
    missing(work, asking, parts).map(({ key, what, question }) =>
      [key, what, question?.name].filter(Boolean).join(" "),
    );

  test("in the order of the text, then the parts, then the whole", () => {
    const work = {
      "marks/b": { ...marked("Saturday", "again") },
      "marks/a": marked("30-20", "word"),
      "units/0-5": { answers: {}, seconds: 1 },
    };
    expect(found(work, ["units/0-5", "units/5-9"])).toEqual([
      "marks/a answer severity",
      "marks/b answer severity",
      "marks/b antecedent",
      "units/0-5 answer kind",
      "units/5-9 part",
      "answers answer quality",
    ]);
  });
  test("a question is missing only where it is asked", () => {
    expect(found({ answers: { answers: { quality: "good" }, noErrors: false } })).toEqual([]);
    expect(found({ answers: { answers: { quality: "bad" }, noErrors: false } })).toEqual(["answers answer why"]);
  });
  test("nothing is missing in a text that cannot be judged", () => {
    expect(
      found({ "marks/a": marked("30-20", "word"), answers: { answers: { cannot_judge: "cut off" }, noErrors: false } }),
    ).toEqual([]);
  });
  test("an empty answer is none", () => {
    expect(found({ answers: { answers: { quality: "  " }, noErrors: false } })).toEqual(["answers answer quality"]);
  });
});
