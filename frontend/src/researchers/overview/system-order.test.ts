import { expect, test } from "vitest";
import { sortSystems } from "./system-order";

const row = (model: string | null, value: number | null) => ({ model, rate: { value } }) as never;

test("systems are sorted by estimate, then the unknown, then human texts", () => {
  const rows = [row("human", 9), row("small", 4.8), row(null, 7), row("large", 1.7), row("new", null), row("mid", 2.6)];
  expect(sortSystems(rows).map(({ model }) => model)).toEqual(["small", "mid", "large", "new", null, "human"]);
});
