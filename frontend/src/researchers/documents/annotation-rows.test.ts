import { describe, expect, test } from "vitest";
import type { LabelLook } from "../../lib/api-types";
import type { DocumentPage, AnnotationBars } from "../api-types";
import {
  shortestMarkAt,
  contextExtents,
  isCounted,
  labelCounts,
  moveCursor,
  contextNames,
  buildRows,
  marksInFrame,
} from "./annotation-rows";

const looks: LabelLook[] = [
  { label: "redundant", title: "Redundant", slot: "A3", flag: "RD", key: "r" },
  { label: "", title: "No type", slot: "none", flag: "??", key: "" },
];

const annotation = (name: string, spans: [number, number][], more: Partial<AnnotationBars> = {}): AnnotationBars => ({
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
  const rows = buildRows(
    page([
      annotation("a", [
        [6, 9],
        [0, 2],
      ]),
      annotation("b", []),
      annotation("c", [
        [7, 8],
        [1, 3],
      ]),
    ]),
  );

  test("code points are converted to UTF-16 units", () => {
    const [row] = buildRows(page([annotation("a", [[1, 2]])], "😀x"));
    expect(row!.bars[0]!.outerExtent).toEqual([2, 3]);
  });
  test("bars come in text order", () => expect(rows[0]!.bars.map(({ outerExtent }) => outerExtent[0])).toEqual([0, 6]));
  test("marks on a context have no bar, but a position on their context", () => {
    const own = annotation("a", [[0, 2]]);
    own.marks[0]!.spans = [["prompt", 1, 3]];
    const document = { ...page([own, annotation("b", [[0, 2]])]), context: { prompt: "😀xyz" } };
    const all = buildRows(document);
    expect([all[0]!.bars.length, all[0]!.otherMarks.length]).toEqual([0, 1]);
    expect(contextExtents(document, all, "prompt")).toEqual([[[2, 4]], []]);
    expect(contextExtents(document, all, "source")).toEqual([[], []]);
    expect(all[0]!.otherMarks.map(contextNames)).toEqual([["prompt"]]);
  });
  test("marks that overlap the frame are listed", () =>
    expect(marksInFrame(rows, [1, 2]).map(({ bar }) => bar.mark.id)).toEqual(["a/1", "c/1"]));
  test("labels are counted by people, without drafts, excluded work and machines", () => {
    const readers = [
      annotation("a", [
        [0, 4],
        [1, 2],
      ]),
      annotation("b", [[0, 4]], { status: "draft" }),
      annotation("c", [[0, 4]], { excluded: { by: "x", reason: "y" } }),
      annotation("m", [[0, 4]], { kind: "llm" }),
    ];
    expect(labelCounts(buildRows(page(readers)), [1, 2])).toEqual([{ look: looks[0], count: 1 }]);
    expect(buildRows(page(readers)).map(isCounted)).toEqual([true, false, false, false]);
  });
  test("pointing at the text selects the shortest mark there", () => {
    expect(shortestMarkAt(rows, 7)).toEqual([7, 8]);
    expect(shortestMarkAt(rows, 5)).toBeNull();
  });
  test.each([
    [null, "ArrowDown", { row: 0, bar: 0 }],
    [{ row: 0, bar: 0 }, "ArrowRight", { row: 0, bar: 1 }],
    [{ row: 0, bar: 1 }, "ArrowRight", { row: 0, bar: 1 }],
    [{ row: 0, bar: 1 }, "ArrowDown", { row: 2, bar: 1 }], // past b, who marked nothing
    [{ row: 2, bar: 0 }, "ArrowUp", { row: 0, bar: 0 }],
    [{ row: 2, bar: 0 }, "ArrowDown", { row: 2, bar: 0 }],
    [{ row: 0, bar: 0 }, "End", { row: 0, bar: 1 }],
  ])("from %o %s leads to %o", (from, key, to) => expect(moveCursor(rows, from, key)).toEqual(to));
  test("no marks, no movement", () =>
    expect(moveCursor(buildRows(page([annotation("a", [])])), null, "ArrowDown")).toBeNull());
});
