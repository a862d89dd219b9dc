import { describe, expect, test } from "vitest";
import { guide, label, question } from "./fixtures";
import { missingItems } from "./missing-items";
import { type Mark } from "./work";

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

describe("missing items", () => {
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
  const found = (work: Parameters<typeof missingItems>[0], parts: `units/${string}`[] = []) =>
    missingItems(work, asking, parts).map(({ key, kind, question }) =>
      [key, kind, question?.name].filter(Boolean).join(" "),
    );

  test("come in text order, then parts, then the whole text", () => {
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
  test("a question is missing only if it is asked", () => {
    expect(found({ answers: { answers: { quality: "good" }, noErrors: false } })).toEqual([]);
    expect(found({ answers: { answers: { quality: "bad" }, noErrors: false } })).toEqual(["answers answer why"]);
  });
  test("a text that cannot be judged needs no answers, but complete marks", () => {
    const answers = { answers: { cannot_judge: "cut off" }, noErrors: false };
    expect(found({ answers })).toEqual([]);
    expect(found({ "marks/a": marked("30-20", "word"), answers })).toEqual(["marks/a answer severity"]);
  });
  test("an empty answer counts as missing", () => {
    expect(found({ answers: { answers: { quality: "  " }, noErrors: false } })).toEqual(["answers answer quality"]);
  });
});
