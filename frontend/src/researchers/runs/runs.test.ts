import { describe, expect, test } from "vitest";
import { countAnswered, groupIntoBars, formatDollars, formatDuration, formatPercent, countStates } from "./runs";

describe("reply states", () => {
  test("states are counted in a fixed order, without those that do not occur", () =>
    expect(countStates(["", "refused", "marked", "marked", "no errors"])).toEqual([
      { state: "marked", count: 2 },
      { state: "no errors", count: 1 },
      { state: "refused", count: 1 },
      { state: "", count: 1 },
    ]));
  test("one bar per text while there is room", () =>
    expect(groupIntoBars(["marked", "refused", ""], 40)).toEqual(["read", "failed", "todo"]));
  test("a bar for several texts is red if one of them failed", () =>
    expect(groupIntoBars(["marked", "empty", "marked", "", "", ""], 3)).toEqual(["failed", "part", "todo"]));
  test("bars cover all texts", () => {
    const bars = Array.from({ length: 101 }, (_, index) =>
      index === 100 ? ("refused" as const) : ("marked" as const),
    );
    expect(groupIntoBars(bars, 47).filter((each) => each === "failed")).toHaveLength(1);
  });
  test("failures count as answered", () => expect(countAnswered(["marked", "refused", ""])).toBe(2));
});

describe("number formats", () => {
  test.each([
    [88, 100, "88%"],
    [999, 1000, "99%"],
    [1, 1000, "1%"],
    [0, 5, "0%"],
    [5, 5, "100%"],
  ])("%d of %d is %s", (part, whole, shown) => expect(formatPercent(part, whole)).toBe(shown));
  test.each([
    [1, "1 second"],
    [60, "60 seconds"],
    [360, "6 minutes"],
    [7300, "2 hours"],
  ])("%d s is %s", (seconds, shown) => expect(formatDuration(seconds)).toBe(shown));
  test.each([
    [0, "$0.00"],
    [4, "$4.00"],
    [0.0031, "$0.0031"],
    [0.00002, "$0.000020"],
  ])("%f is %s", (amount, shown) => expect(formatDollars(amount)).toBe(shown));
});
