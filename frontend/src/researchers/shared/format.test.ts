import { describe, expect, test } from "vitest";
import { clock, day, decimal, moment, money } from "./format";
import { address, parse } from "../route";
import { fields } from "./signature";
import { stableOrder } from "./stable-order";

describe("small things", () => {
  test("rows stay where they are, new ones come last", () =>
    expect(stableOrder(["b", "a"], ["a", "new", "b"], (each) => each)).toEqual(["b", "a", "new"]));
  test.each([
    ["", { page: "overview", id: "", query: {} }],
    ["#/documents/a%2Fb?show=disputed", { page: "documents", id: "a/b", query: { show: "disputed" } }],
    ["#/elsewhere/x", { page: "overview", id: "", query: {} }],
    ["#/documents/50%", { page: "documents", id: "50%", query: {} }],
  ])("%s is a route", (hash, route) => expect(parse(hash)).toEqual(route));
  test("an address leads back to its route", () =>
    expect(parse(address("annotators", "a/b c?", { show: "all", empty: "" }))).toEqual({
      page: "annotators",
      id: "a/b c?",
      query: { show: "all" },
    }));
  test.each([
    [41.4, "0:41"],
    [252, "4:12"],
    [3661, "1:01:01"],
    [59.6, "1:00"],
  ])("%f s is %s", (seconds, shown) => expect(clock(seconds)).toBe(shown));
  test("money", () => {
    expect(money(16.1, "USD")).toBe("$16.10");
    expect(money(1214.4, "USD")).toBe("$1,214");
    expect(decimal(-0.001, 2)).toBe("0.00");
    expect(money(3, "pebbles")).toBe("3.00 pebbles");
  });
  test("a minus is as wide as a digit, and the day comes before the month", () => {
    expect(decimal(-0.014, 2)).toBe("−0.01");
    expect(day(Date.UTC(2026, 10, 17))).toBe("17 Nov");
    expect(moment("2026-11-17T05:12:00")).toBe("17 Nov, 05:12");
  });
  test("fields of a signature", () =>
    expect(fields("statistic:alpha|of:model=a:b|version:1")).toEqual([
      ["statistic", "alpha"],
      ["of", "model=a:b"],
      ["version", "1"],
    ]));
});
