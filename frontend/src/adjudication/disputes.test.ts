import { describe, expect, test } from "vitest";
import type { AdjudicatePage, AdjudicatedMark, DisputeCard } from "../lib/schema";
import { adjudicate } from "../lib/catalogue/adjudication.en";
import * as model from "./disputes";

const TEXT = "And 🎉 Luis Prado added 18, off the bench.";
const at = (words: string) => ({ part: "text", start: TEXT.indexOf(words), end: TEXT.indexOf(words) + words.length });
const words = (span: { start: number; end: number }) => TEXT.slice(span.start, span.end);
const mark = (label: string | null, ...spans: [number, number][]): AdjudicatedMark => ({
  ...{ label, spans, quotes: spans.map(() => "words"), answers: {}, antecedents: null, alternatives: [] },
});
const dispute = (more: Partial<DisputeCard>): DisputeCard => ({
  ...{ key: "k", version: 0, readings: [], votes: 1, readers: 3, agreed: false, kept: false, merged: null },
  ...{ decision: null, gold: [], later: 0, ...more },
});
const read = (label: string | null, ...spans: [number, number][]) => ({
  ...mark(label, ...spans),
  ...{ annotator: 1, unlocated: "" },
});
const ruled = { what: "merged", by: "ann", when: "2026-01-01T00:00:00Z", reading: null } as const;
const page = (disputes: DisputeCard[] = []): AdjudicatePage => ({
  ...{ id: "d", text: TEXT, context: { prompt: "A prompt" }, data: null, looks: [], questions: [], labels: [] },
  ...{ unlabelled: false, readers: 3, places: disputes, state: "untouched" },
});

describe("words", () => {
  test("edges move by one word, and punctuation is a word of its own", () => {
    expect(
      model.wordBounds("He's off-beat, 1,000.5 (so).").map(([a, b]) => "He's off-beat, 1,000.5 (so).".slice(a, b)),
    ).toEqual(["He's", "off-beat", ",", "1,000.5", "(", "so", ")."]);
  });
  test.each([
    ["end", 1, "Luis Prado added"],
    ["end", -1, "Luis"],
    ["start", -1, "🎉 Luis Prado"],
    ["start", 1, "Prado"],
  ] as const)("%s by %i", (edge, by, found) => {
    expect(words(model.moveEdge(TEXT, at("Luis Prado"), edge, by))).toBe(found);
  });
  test("an edge stops at the other edge and at the ends of the text", () => {
    expect(words(model.moveEdge(TEXT, at("Luis"), "end", -1))).toBe("Luis");
    expect(words(model.moveEdge(TEXT, at("And"), "start", -1))).toBe("And");
    expect(words(model.moveEdge(TEXT, at("."), "end", 1))).toBe(".");
  });
  test("moving a span keeps its number of words", () => {
    expect(words(model.moveSpan(TEXT, at("Luis Prado"), 1))).toBe("Prado added");
    expect(words(model.moveSpan(TEXT, at("And"), -1))).toBe("And");
  });
  test("a selection expands to whole words", () => {
    expect(model.snapToWords(TEXT, TEXT.indexOf("rado"), TEXT.indexOf("dded"))).toEqual([
      at("Prado").start,
      at("added").end,
    ]);
    expect(model.snapToWords(TEXT, 3, 4)).toBeNull();
  });
  test("a drag moves the edge on its side", () => {
    const to = (word: string) => [at(word).start, at(word).end] as const;
    const onward = model.dragEdge(at("added"), to("added"), null);
    expect(onward.edge).toBeNull(); // equally close to both ends
    expect(words(model.dragEdge(at("added"), to("bench"), null).span)).toBe("added 18, off the bench");
    expect(words(model.dragEdge(at("added"), to("Luis"), null).span)).toBe("Luis Prado added");
    expect(words(model.dragEdge(at("Luis Prado added"), to("Prado"), "end").span)).toBe("Luis Prado");
    expect(words(model.dragEdge(at("Luis Prado"), to("bench"), "start").span)).toBe("Luis Prado");
  });
});

describe("marks", () => {
  test("spans convert to code points and back, also on a context", () => {
    const wire: AdjudicatedMark = { ...mark("name", [6, 16]), quotes: ["Luis Prado"] };
    const draft = model.draftFromMark(page(), wire);
    expect(words(draft.spans[0]!)).toBe("Luis Prado");
    expect(model.draftToWire(page(), draft)).toEqual(wire);
    const prompt: AdjudicatedMark = { ...wire, spans: [["prompt", 2, 8]], quotes: ["prompt"] };
    expect(model.draftToWire(page(), model.draftFromMark(page(), prompt))).toEqual(prompt);
  });
  test("answers to questions that are not asked are dropped", () => {
    const draft = model.draftFromMark(page(), { ...mark("name", [0, 3]), answers: { why: "so" } });
    expect(model.draftToWire(page(), draft).answers).toEqual({});
  });
  test("a mark splits by spans, or else by words", () => {
    const one = model.draftFromMark(page(), mark("name", [6, 22]));
    expect(model.splitInHalves(page(), one).map(({ spans }) => words(spans[0]!))).toEqual(["Luis Prado", "added"]);
    const two = model.draftFromMark(page(), mark("name", [0, 3], [6, 10]));
    expect(model.splitInHalves(page(), two).map(({ spans }) => words(spans[0]!))).toEqual(["And", "Luis"]);
  });
  test.each([
    [dispute({ readings: [read("a", [0, 3])] }), 1, "changed"],
    [dispute({ readings: [read("a", [0, 3])] }), 2, "split"],
    [dispute({ key: "new-1" }), 1, "added"],
  ])("edits are a decision", (own, count, what) => {
    expect(
      model.decisionFromMarks(
        own,
        Array.from({ length: count }, () => mark("a", [0, 3])),
        null,
      ).what,
    ).toBe(what);
  });
});

describe("disputes", () => {
  const [a, b, c] = ["a", "b", "c"].map((key, n) => dispute({ key, readings: [read("x", [n * 5, n * 5 + 3])] })) as [
    DisputeCard,
    DisputeCard,
    DisputeCard,
  ];
  test("the next open dispute wraps around at the end", () => {
    expect(model.nextUndecided([a, { ...b, decision: ruled }, c], "a")?.key).toBe("c");
    expect(model.nextUndecided([a, b, c], "c")?.key).toBe("a");
    expect(model.nextUndecided([a], "a")).toBeUndefined();
  });
  test("a dispute whose annotations changed is found by position", () => {
    expect(model.findDispute([a, b, c], "gone", 6)?.key).toBe("b");
    expect(model.findDispute([a, b, c], "c", 0)?.key).toBe("c");
  });
  test("a tie has no majority label", () => {
    expect(
      model.hasNoMajorityLabel(
        dispute({ merged: mark(null, [0, 3]), readings: [read("x", [0, 3]), read("y", [0, 3])] }),
      ),
    ).toBe(true);
    expect(model.hasNoMajorityLabel(dispute({ merged: mark(null, [0, 3]), readings: [read(null, [0, 3])] }))).toBe(
      false,
    );
  });
  test("the selected dispute shows numbers, decided ones a tick, others are faint", () => {
    const drawn = model.disputeDrawings(page([a, { ...b, decision: ruled, gold: [mark("x", [5, 8])] }, c]), "a", []);
    expect(drawn.map(({ flag, tone }) => [flag, tone])).toEqual([
      ["1 ??", "rest"],
      ["✓ ??", "rest"],
      ["", "faint"],
    ]);
  });
});

test("messages avoid exclamation marks, pleading and blame", () => {
  for (const message of Object.values(adjudicate)) {
    const said = typeof message === "string" ? message : message.one + message.other;
    expect(said).not.toMatch(/!|please|oops|invalid|error \d/i);
  }
});
