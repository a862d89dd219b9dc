import { expect, test } from "vitest";
import { platformName } from "./platforms";

test.each([
  ["https://app.prolific.com/submissions/complete?cc=X", "Prolific"],
  ["https://workersandbox.mturk.com/mturk/externalSubmit", "Mechanical Turk"],
  ["https://panel.example/x", "panel.example"],
  ["https://notprolific.com/", "notprolific.com"],
  ["javascript:alert(1)", undefined],
  ["", undefined],
])("%s leads to %s", (back, name) => {
  expect(platformName(back)).toBe(name);
});
