import { expect, test } from "vitest";
import { assignLevels } from "./underline-levels";

test.each([
  [[], []],
  [
    [
      [0, 9],
      [2, 5],
      [6, 8],
      [3, 12],
    ],
    [0, 1, 1, 2],
  ],
  [
    [
      [0, 3],
      [0, 9],
    ],
    [1, 0],
  ], // the longer interval is inside
  [
    [
      [4, 4],
      [4, 8],
    ],
    [1, 0],
  ], // an omission also takes a level
] as [[number, number][], number[]][])("levels of %j are %j, as in Python", (extents, expected) => {
  expect(assignLevels(extents)).toEqual(expected);
});
