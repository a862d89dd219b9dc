import { describe, expect, test } from "vitest";
import type { Feedback, MarkBody, SolutionResult } from "../../lib/api-types";
import { question, task } from "../work/fixtures";
import { hasRightAnswers, compareAnswers, roundPoints, gradeMarks, gradedDrawings } from "./graded-marks";
import { answerText } from "../../lib/questions/options";

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
  alternatives: [],
});

const solved = (start: number, end: number, more: Partial<SolutionResult> = {}): SolutionResult => ({
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

describe("graded exercise", () => {
  const TEXT = "😀 one two three";
  const done = task(TEXT, {
    marks: [
      { id: "m", version: 1, body: body(2, 5, "one") },
      { id: "x", version: 1, body: body(10, 15, "three", "name") },
    ],
  });
  const found = gradeMarks(
    done,
    feedback({ solutions: [solved(2, 9, { mark: "m", points: 4, why: "Yes." }), solved(6, 9)], extra: ["x", "gone"] }),
    LOOKS,
  );

  test("found marks lie at the annotator's span, missed marks at the solution's, and extra marks match no error", () => {
    expect(found.map(({ kind, quote, points }) => [kind, quote, points])).toEqual([
      ["found", "one", 4],
      ["missed", "two", 0],
      ["extra", "three", 0],
    ]);
    expect(found[0]).toMatchObject({ why: "Yes.", look: { flag: "WO" }, spans: [{ start: 3, end: 6 }] });
  });
  test("each outcome has its own drawing", () => {
    const flags = { found: (f: string) => `✓ ${f}`, missed: (f: string) => `- ${f}`, extra: (f: string) => `+ ${f}` };
    expect(gradedDrawings(found, found[0]!.id, flags).map(({ kind, flag, tone }) => [kind, flag, tone])).toEqual([
      ["mark", "✓ WO", "chosen"],
      ["missed", "- WO", "rest"],
      ["extra", "+ NA", "rest"],
    ]);
  });
  test("overlapping flags show the label only", () => {
    const text = "a battle of 15-11 in the second half";
    const solutions = [solved(12, 14), solved(15, 17), solved(25, 31)];
    const missed = gradeMarks(task(text), feedback({ solutions }), LOOKS);
    const same = (flag: string) => flag;
    const flags = { found: same, missed: (flag: string) => `missed · ${flag}`, extra: same };
    expect(gradedDrawings(missed, undefined, flags).map(({ flag }) => flag)).toEqual(["WO", "WO", "missed · WO"]);
  });
  test("points are rounded to a tenth", () => {
    expect([roundPoints(100 / 13), roundPoints(4)]).toEqual([7.7, 4]);
  });
  test("correct answers are paired with given answers", () => {
    const kind = question("kind", { options: [{ value: 1, title: "One", gloss: "", group: "", aliases: [] }] });
    expect(compareAnswers([kind, question("other")], { kind: 2 }, { kind: 1 })).toEqual([
      { ask: "kind?", given: "2", right: "One", isSame: false },
    ]);
    expect(answerText(question("q"), undefined)).toBe("");
    expect(answerText(question("q"), false)).toBe("No");
    expect([
      hasRightAnswers({ a: ["x", "y"] }, { a: ["y", "x"] }),
      hasRightAnswers({}, {}),
      hasRightAnswers({}, { a: false }),
    ]).toEqual([true, true, false]);
  });
});
