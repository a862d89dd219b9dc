import { expect, test } from "vitest";
import { antecedentPath } from "./antecedent-line";

const origin = { left: 100, top: 50 };
const margin = { left: 120, right: 720 };

test("between lines the path runs through the margin", () => {
  const from = { left: 300, right: 380, bottom: 150 };
  const to = { left: 200, right: 260, bottom: 250 };
  expect(antecedentPath(from, to, margin, origin)).toBe("M200 100V103H8V203H100V200");
  expect(antecedentPath(from, to, margin, origin, true)).toBe("M280 100V103H632V203H160V200");
});

test("on one line the path runs below the words", () => {
  const from = { left: 130, right: 160, bottom: 150 };
  expect(antecedentPath(from, { left: 300, right: 350, bottom: 152 }, margin, origin)).toBe("M30 100V105H200V102");
  const underOthers = { left: 300, right: 350, bottom: 162 };
  expect(antecedentPath(from, underOthers, margin, origin)).toBe("M30 100V115H200V112");
});
