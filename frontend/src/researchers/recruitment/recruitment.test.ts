import { describe, expect, test } from "vitest";
import { buildHistogram, nonEmptyLines, recruitmentUrl } from "./recruitment";

describe("the study URL", () => {
  const link = "https://study.example/join/abc";
  test("has Prolific's placeholders", () =>
    expect(recruitmentUrl("prolific", link)).toBe(
      `${link}?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}`,
    ));
  test("is unchanged for MTurk, which adds its own parameters", () => expect(recruitmentUrl("mturk", link)).toBe(link));
  test("is empty without an open link", () => expect(recruitmentUrl("prolific", "")).toBe(""));
});

test("lines are trimmed and empty ones dropped", () => expect(nonEmptyLines(" a \n\nb")).toEqual(["a", "b"]));

describe("histogram", () => {
  test("a score on an edge belongs to the bar above, the maximum to the last bar", () => {
    const bars = buildHistogram([0, 4.9, 5, 90, 100], 100);
    expect(bars.map(({ count }) => count).filter(Boolean)).toEqual([2, 1, 1, 1]);
    expect(bars[1]).toEqual({ from: 5, to: 10, count: 1 });
    expect(bars.at(-1)!.count).toBe(1);
  });
  test("counts each person once", () => {
    const scores = Array.from({ length: 200 }, (_, n) => (n * 7.3) % 70);
    expect(buildHistogram(scores, 70).reduce((sum, { count }) => sum + count, 0)).toBe(200);
  });
});
