import { describe, expect, test } from "vitest";
import {
  axisEnd,
  estimateCommand,
  sortByLabel,
  joinNames,
  ratioEnd,
  ratioPosition,
  axisTicks,
  verdictCounts,
  type Calibration,
  type Estimate,
} from "./calibration";

const number = (value: number | null, low: number | null = null, high: number | null = null): Estimate => ({
  value,
  low,
  high,
  why: "",
  signature: "",
});

describe("axes", () => {
  test.each([
    [[number(0.3, 0.2, 0.41)], 0.6],
    [[number(0.3, 0.2, 0.71)], 1],
    [[number(null)], 0.2],
  ])("ends on a round number that every interval fits into", (estimates, end) =>
    expect(axisEnd(estimates)).toBeCloseTo(end),
  );
  test("ticks are round numbers", () => expect(axisTicks(0.6)).toEqual([0, 0.2, 0.4, 0.6]));
  test("ratios are logarithmic and stay on their axis", () => {
    expect(ratioPosition(1 / 8)).toBe(0);
    expect(ratioPosition(2)).toBe(1);
    expect(ratioPosition(1)).toBeCloseTo(0.75);
    expect(ratioPosition(0)).toBe(0);
    expect(ratioPosition(100)).toBe(1);
  });
  test("the axis of ratios extends to the next power of two", () => {
    expect(ratioEnd([number(1, 0.5, 1.9)])).toBe(2);
    expect(ratioEnd([number(1, 0.5, 2.2)])).toBe(4);
    expect(ratioEnd([number(1, 0.5, 20)])).toBe(8);
  });
});

test("labels come in protocol order, all labels last", () => {
  const rows = ["any", "b", "strange", "a"].map((label) => ({ label }));
  expect(sortByLabel(rows, ["a", "b"]).map(({ label }) => label)).toEqual(["a", "b", "strange", "any"]);
});

test("labels are counted by verdict", () => {
  const row = (label: string, verdict: string) => ({ level: "word", measure: "alpha", label, verdict });
  const agreement = [
    row("a", "no less than people"),
    row("b", "less than people"),
    row("c", "cannot tell"),
    row("d", "cannot tell, few marks"),
    row("any", "less than people"),
  ];
  expect(verdictCounts({ agreement } as unknown as Calibration)).toEqual({ labels: 4, same: 1, less: 1, open: 2 });
});

describe("using a judge", () => {
  test("the command quotes judge and labels for the shell", () => {
    expect(estimateCommand("judge-4", [])).toBe("finecomb estimate STUDY --judge judge-4");
    expect(estimateCommand("my judge", ["Off-prompt", "it's"])).toBe(
      String.raw`finecomb estimate STUDY --judge 'my judge' --label Off-prompt --label 'it'\''s'`,
    );
  });
  test("labels as a list in a sentence", () => {
    expect(joinNames(["OP", "RD", "SC"], "and")).toBe("OP, RD and SC");
    expect([joinNames(["OP"], "and"), joinNames([], "and")]).toEqual(["OP", ""]);
  });
});
