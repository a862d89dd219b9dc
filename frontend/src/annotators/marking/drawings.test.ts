import { describe, expect, test } from "vitest";
import { antecedentDrawings, markDrawings, offerDrawings } from "./drawings";
import { task } from "../work/fixtures";
import { taskSources, type Mark } from "../work/work";

const LOOKS = [
  { label: "word", title: "Word", slot: "A1", flag: "WO", key: "w" },
  { label: "name", title: "Name", slot: "B1", flag: "NA", key: "n" },
];

describe("drawings while marking", () => {
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
  test("antecedents and offered marks", () => {
    const spans = [{ part: "text", start: 1, end: 2 }];
    expect(antecedentDrawings("marks/a", mark(5), LOOKS, "repeats")).toEqual([]);
    expect(antecedentDrawings("marks/a", mark(5, spans), LOOKS, "repeats")).toMatchObject([
      { kind: "antecedent", spans, flag: expect.stringMatching(/repeats this$/) },
    ]);
    const offered = [{ id: "o", spans: [[3, 6]] as [number, number][], quotes: ["one"], label: "name", answers: {} }];
    expect(offerDrawings(offered, LOOKS, "o", taskSources(task("😀 one")))).toMatchObject([
      { id: "offer-o", flag: "NA?", tone: "chosen", spans: [{ start: 4, end: 7 }] },
    ]);
  });
});
