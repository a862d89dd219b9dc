import { expect, test } from "vitest";
import { pauseActivity, recordActivity, type Activity } from "./activity";

const NEW: Activity = { seconds: 0, last: undefined };
const at = (...times: number[]) => times.reduce((activity, now) => recordActivity(activity, now * 1000), NEW);

test("time counts between two activities", () => {
  expect(at(0, 10, 40).seconds).toBe(40);
});
test("but stops after a minute of inactivity", () => {
  expect(at(0, 10, 400, 410).seconds).toBe(10 + 60 + 10);
});
test("and while the page is hidden", () => {
  const hidden = pauseActivity(at(0, 10), 15_000);
  expect(recordActivity(hidden, 600_000).seconds).toBe(15);
});
test("a clock that goes backwards subtracts nothing", () => {
  expect(at(100, 50, 60).seconds).toBe(10);
});
