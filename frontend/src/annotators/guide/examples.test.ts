import { expect, test } from "vitest";
import { nth } from "./examples";

test("the nth occurrence of a quote", () => {
  expect([nth("banana", "an", 1), nth("banana", "an", 2), nth("banana", "an", 3)]).toEqual([1, 3, -1]);
});
