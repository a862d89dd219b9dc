import { expect, test } from "vitest";
import { indexOfNth } from "./examples";

test("indexOfNth returns the nth occurrence of a quote", () => {
  expect([indexOfNth("banana", "an", 1), indexOfNth("banana", "an", 2), indexOfNth("banana", "an", 3)]).toEqual([
    1, 3, -1,
  ]);
});
