import { describe, expect, test } from "vitest";
import type { Look } from "../lib/api-types";
import type { DocumentPage, Reader, Settings } from "./api-types";
import { at, counts, labelCounts, moved, rowsOf, saidOf } from "./documents/bars";
import { clipped, depth, union, type Extent } from "./documents/depth";
import { clock, decimal, money } from "./shared/format";
import { address, parse } from "./route";
import { changes, draftOf } from "./settings/settings";
import { fields } from "./shared/signature";
import { steady } from "./shared/stable-order";
import { roundUp, teeth } from "./overview/progress-comb";

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
    const stretches = depth(10, people);
    for (let at = 0; at < 10; at++) {
      const expected = people.filter((own) => own.some(([start, end]) => start <= at && at < end)).length;
      expect(stretches.find(({ start, end }) => start <= at && at < end)?.count).toBe(expected);
    }
  });
  test("covers the text without a gap, and neighbours differ", () => {
    const stretches = depth(10, people);
    expect(stretches[0]!.start).toBe(0);
    expect(stretches.at(-1)!.end).toBe(10);
    stretches.slice(1).forEach((each, index) => {
      expect(each.start).toBe(stretches[index]!.end);
      expect(each.count).not.toBe(stretches[index]!.count);
    });
  });
  test("an empty text has no stretches", () => expect(depth(0, [])).toEqual([]));
  test("the union of what touches is one", () =>
    expect(
      union([
        [4, 6],
        [0, 2],
        [2, 5],
        [9, 9],
      ]),
    ).toEqual([[0, 6]]));
  test("clipping cuts at the frame and keeps every character", () => {
    const cut = clipped(depth(10, people), 1, 7, [3, 4]);
    expect(cut.map(({ start, end }) => [start, end])).toEqual([
      [1, 2],
      [2, 3],
      [3, 4],
      [4, 7],
    ]);
  });
});

const looks: Look[] = [
  { label: "redundant", title: "Redundant", slot: "A3", flag: "RD", key: "r" },
  { label: "", title: "No type", slot: "none", flag: "??", key: "" },
];
const reader = (name: string, spans: [number, number][], more: Partial<Reader> = {}): Reader => ({
  annotation: `d/${name}`,
  annotator: name,
  name,
  kind: "human",
  protocol: "p@1",
  round: 0,
  phase: "work",
  status: "submitted",
  excluded: null,
  seconds: null,
  answers: {},
  marks: spans.map(([start, end], index) => ({
    id: `${name}/${index}`,
    spans: [[start, end]],
    quotes: [""],
    label: "redundant",
    answers: {},
    antecedents: [],
    votes: null,
    unlocated: "",
  })),
  ...more,
});
const page = (readers: Reader[], text = "0123456789"): DocumentPage => ({
  id: "d",
  text,
  context: {},
  references: [],
  segments: [],
  meta: {},
  progress: { done: 1, of: 1 },
  alpha: null,
  looks,
  answers: {},
  readers,
});

describe("bars", () => {
  const rows = rowsOf(
    page([
      reader("a", [
        [6, 9],
        [0, 2],
      ]),
      reader("b", []),
      reader("c", [
        [7, 8],
        [1, 3],
      ]),
    ]),
  );

  test("code points become UTF-16 units", () => {
    const [row] = rowsOf(page([reader("a", [[1, 2]])], "😀x"));
    expect(row!.places[0]!.whole).toEqual([2, 3]);
  });
  test("places come in text order", () => expect(rows[0]!.places.map(({ whole }) => whole[0])).toEqual([0, 6]));
  test("marks on a context are counted, not drawn", () => {
    const own = reader("a", [[0, 2]]);
    own.marks[0]!.spans = [["prompt", 0, 2]];
    const [row] = rowsOf(page([own]));
    expect([row!.places.length, row!.elsewhere.length]).toEqual([0, 1]);
  });
  test("what is said about a frame is what meets it", () =>
    expect(saidOf(rows, [1, 2]).map(({ place }) => place.mark.id)).toEqual(["a/1", "c/1"]));
  test("labels are counted by people, without drafts, excluded work and machines", () => {
    const readers = [
      reader("a", [
        [0, 4],
        [1, 2],
      ]),
      reader("b", [[0, 4]], { status: "draft" }),
      reader("c", [[0, 4]], { excluded: { by: "x", reason: "y" } }),
      reader("m", [[0, 4]], { kind: "llm" }),
    ];
    expect(labelCounts(rowsOf(page(readers)), [1, 2])).toEqual([{ look: looks[0], count: 1 }]);
    expect(rowsOf(page(readers)).map(counts)).toEqual([true, false, false, false]);
  });
  test("pointing at the text takes the shortest mark there", () => {
    expect(at(rows, 7)).toEqual([7, 8]);
    expect(at(rows, 5)).toBeNull();
  });
  test.each([
    [null, "ArrowDown", { row: 0, place: 0 }],
    [{ row: 0, place: 0 }, "ArrowRight", { row: 0, place: 1 }],
    [{ row: 0, place: 1 }, "ArrowRight", { row: 0, place: 1 }],
    [{ row: 0, place: 1 }, "ArrowDown", { row: 2, place: 1 }], // past b, who marked nothing
    [{ row: 2, place: 0 }, "ArrowUp", { row: 0, place: 0 }],
    [{ row: 2, place: 0 }, "ArrowDown", { row: 2, place: 0 }],
    [{ row: 0, place: 0 }, "End", { row: 0, place: 1 }],
  ])("from %o %s leads to %o", (from, key, to) => expect(moved(rows, from, key)).toEqual(to));
  test("nothing marked, nowhere to go", () =>
    expect(moved(rowsOf(page([reader("a", [])])), null, "ArrowDown")).toBeNull());
});

describe("teeth", () => {
  test("one for each document where there is room", () => expect(teeth([3, 2, 0], 3, 9)).toEqual([1, 2 / 3, 0]));
  test("several documents share one where there is not", () => expect(teeth([4, 4, 2, 0], 4, 2)).toEqual([1, 0.25]));
  test("more annotations than planned make no longer tooth", () => expect(teeth([9], 3, 9)).toEqual([1]));
  test("none without documents", () => expect(teeth([], 3, 9)).toEqual([]));
  test.each([
    [0, 1],
    [0.3, 0.5],
    [1, 1],
    [7.9, 10],
    [11, 20],
    [21, 50],
  ])("%f fits a scale to %f", (value, end) => expect(roundUp(value)).toBeCloseTo(end));
});

describe("small things", () => {
  test("rows stay where they are, new ones come last", () =>
    expect(steady(["b", "a"], ["a", "new", "b"], (each) => each)).toEqual(["b", "a", "new"]));
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
  test("fields of a signature", () =>
    expect(fields("statistic:alpha|of:model=a:b|version:1")).toEqual([
      ["statistic", "alpha"],
      ["of", "model=a:b"],
      ["version", "1"],
    ]));
});

describe("settings", () => {
  const settings: Settings = {
    title: "Harbour",
    protocols: ["scarecrow@1"],
    annotators: null,
    strata: ["model"],
    quotas: { a: 3 },
    attention_checks: ["d1"],
    offer: null,
    skip: ["training"],
    round: 0,
    recruitment: {
      platform: "",
      completed: "",
      screened_out: "",
      no_consent: "",
      back: "",
      frame: [],
    },
    lease: 120,
    pilot: 5,
    price: null,
    base_pay: 0,
    fees: 0,
    staff_minutes: 0,
    staff_rate: 0,
    currency: "USD",
    seed: 0,
    meta: {},
  };
  test("an untouched form changes nothing", () => expect(changes(settings, draftOf(settings))).toEqual({}));
  test("only what was changed is sent", () =>
    expect(
      changes(settings, {
        ...draftOf(settings),
        price: 0.5,
        checks: " d1 \n\nd2",
        quotas: [{ name: " ", most: 1 }],
        offer: "m",
      }),
    ).toEqual({ price: 0.5, attention_checks: ["d1", "d2"], quotas: {}, offer: { annotator: "m", blind: 0.2 } }));
  test("phases are left out in the order of the way", () =>
    expect(changes(settings, { ...draftOf(settings), skip: ["training", "consent"] })).toEqual({
      skip: ["consent", "training"],
    }));
  test("an emptied number is null", () =>
    expect(changes({ ...settings, annotators: 3 }, draftOf(settings))).toEqual({ annotators: null }));
});
