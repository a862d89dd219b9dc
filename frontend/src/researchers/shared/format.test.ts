import { describe, expect, test } from "vitest";
import { formatClock, formatDay, formatDecimal, formatMoment, formatMoney } from "./format";
import { routeHash, parseRoute } from "../route";
import { signatureFields } from "./signature";
import { keepOrder } from "./stable-order";

const NAMES = ["overview", "documents", "annotators"];

describe("formats and order", () => {
  test("rows keep their order, and new ones come last", () =>
    expect(keepOrder(["b", "a"], ["a", "new", "b"], (each) => each)).toEqual(["b", "a", "new"]));
  test.each([
    ["", { page: "overview", id: "", query: {} }],
    ["#/documents/a%2Fb?show=disputed", { page: "documents", id: "a/b", query: { show: "disputed" } }],
    ["#/elsewhere/x", { page: "overview", id: "", query: {} }],
    ["#/documents/50%", { page: "documents", id: "50%", query: {} }],
  ])("%s is a route", (hash, route) => expect(parseRoute(hash, NAMES)).toEqual(route));
  test("a fragment leads back to its route", () =>
    expect(parseRoute(routeHash("annotators", "a/b c?", { show: "all", empty: "" }), NAMES)).toEqual({
      page: "annotators",
      id: "a/b c?",
      query: { show: "all" },
    }));
  test.each([
    [41.4, "0:41"],
    [252, "4:12"],
    [3661, "1:01:01"],
    [59.6, "1:00"],
  ])("%f s is %s", (seconds, shown) => expect(formatClock(seconds)).toBe(shown));
  test("money", () => {
    expect(formatMoney(16.1, "USD")).toBe("$16.10");
    expect(formatMoney(1214.4, "USD")).toBe("$1,214");
    expect(formatDecimal(-0.001, 2)).toBe("0.00");
    expect(formatMoney(3, "pebbles")).toBe("3.00 pebbles");
  });
  test("a minus sign has the width of a digit, and the day precedes the month", () => {
    expect(formatDecimal(-0.014, 2)).toBe("−0.01");
    expect(formatDay(Date.UTC(2026, 10, 17))).toBe("17 Nov");
    expect(formatMoment("2026-11-17T05:12:00")).toBe("17 Nov, 05:12");
  });
  test("fields of a signature", () =>
    expect(signatureFields("statistic:alpha|of:model=a:b|version:1")).toEqual([
      ["statistic", "alpha"],
      ["of", "model=a:b"],
      ["version", "1"],
    ]));
});
