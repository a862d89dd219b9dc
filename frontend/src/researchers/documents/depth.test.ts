import { describe, expect, test } from "vitest";
import { clipSegments, countAnnotators, mergeExtents, type Extent } from "./depth";

describe("depth", () => {
  const people: Extent[][] = [
    [
      [2, 5],
      [4, 8],
    ],
    [[0, 3]],
    [[6, 6]],
    [],
  ];

  test("equals its definition at every character", () => {
    const stretches = countAnnotators(10, people);
    for (let at = 0; at < 10; at++) {
      const expected = people.filter((own) => own.some(([start, end]) => start <= at && at < end)).length;
      expect(stretches.find(({ start, end }) => start <= at && at < end)?.count).toBe(expected);
    }
  });
  test("covers the text without gaps, and adjacent stretches differ", () => {
    const stretches = countAnnotators(10, people);
    expect(stretches[0]!.start).toBe(0);
    expect(stretches.at(-1)!.end).toBe(10);
    stretches.slice(1).forEach((each, index) => {
      expect(each.start).toBe(stretches[index]!.end);
      expect(each.count).not.toBe(stretches[index]!.count);
    });
  });
  test("an empty text has no stretches", () => expect(countAnnotators(0, [])).toEqual([]));
  test("adjacent intervals join into one", () =>
    expect(
      mergeExtents([
        [4, 6],
        [0, 2],
        [2, 5],
        [9, 9],
      ]),
    ).toEqual([[0, 6]]));
  test("clipping cuts at the frame and keeps every character", () => {
    const cut = clipSegments(countAnnotators(10, people), 1, 7, [3, 4]);
    expect(cut.map(({ start, end }) => [start, end])).toEqual([
      [1, 2],
      [2, 3],
      [3, 4],
      [4, 7],
    ]);
  });
});
