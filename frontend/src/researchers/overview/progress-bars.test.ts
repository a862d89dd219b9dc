import { describe, expect, test } from "vitest";
import { roundUp, barLengths } from "./progress-bars";

describe("bars", () => {
  test("one bar per document where there is room", () => expect(barLengths([3, 2, 0], 3, 9)).toEqual([1, 2 / 3, 0]));
  test("one bar per several documents where there is not", () =>
    expect(barLengths([4, 4, 2, 0], 4, 2)).toEqual([1, 0.25]));
  test("more annotations than planned do not lengthen a bar", () => expect(barLengths([9], 3, 9)).toEqual([1]));
  test("no documents, no bars", () => expect(barLengths([], 3, 9)).toEqual([]));
  test.each([
    [0, 1],
    [0.3, 0.5],
    [1, 1],
    [7.9, 10],
    [11, 20],
    [21, 50],
  ])("%f fits a scale to %f", (value, end) => expect(roundUp(value)).toBeCloseTo(end));
});
