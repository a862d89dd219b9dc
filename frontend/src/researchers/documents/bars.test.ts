import { describe, expect, test } from "vitest";
import type { LabelLook } from "../../lib/api-types";
import type { DocumentPage, AnnotationBars } from "../api-types";
import { at, counts, labelCounts, moved, rowsOf, saidOf } from "./bars";

const looks: LabelLook[] = [
  { label: "redundant", title: "Redundant", slot: "A3", flag: "RD", key: "r" },
  { label: "", title: "No type", slot: "none", flag: "??", key: "" },
];

const reader = (name: string, spans: [number, number][], more: Partial<AnnotationBars> = {}): AnnotationBars => ({
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
    placed: "",
  })),
  ...more,
});

const page = (readers: AnnotationBars[], text = "0123456789"): DocumentPage => ({
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
