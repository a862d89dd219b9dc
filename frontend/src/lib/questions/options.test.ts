import { describe, expect, test } from "vitest";
import { question } from "../../annotators/work/fixtures";
import { answerAfterChoice, isNamedByPosition, keyboardQuestion, OPTION_KEYS, renameByPosition } from "./options";
import { questionChoices } from "./scales";

describe("keys of options", () => {
  const option = (value: string | number) => ({ value, title: "", gloss: "", group: "", aliases: [] });
  const rating = question("rating", { scale: "ordinal", options: [option(1), option(2)] });
  const codes = question("codes", { scale: "several", options: [option("a"), option("b")] });
  const free = question("why");

  test.each([
    [[rating, free], {}, undefined, undefined, "rating"],
    [[rating, codes], { rating: 1 }, undefined, "rating", "rating"],
    [[rating, codes], { rating: 1 }, "codes", "rating", "codes"],
    [[codes, free], {}, undefined, undefined, "codes"],
    [[question("first", { scale: "yes-no" }), rating], { first: true }, undefined, "first", "rating"],
    [[free], {}, "why", undefined, undefined],
  ])("%#", (questions, answers, focused, last, name) => {
    expect(keyboardQuestion(questions, answers as never, focused, last)?.name).toBe(name);
  });
  test("an option of several can be selected and deselected", () => {
    expect(answerAfterChoice(codes, undefined, codes.options[0]!)).toEqual(["a"]);
    expect(answerAfterChoice(codes, ["a", "b"], codes.options[0]!)).toEqual(["b"]);
    expect(answerAfterChoice(codes, ["a"], codes.options[0]!)).toBeUndefined();
    expect(answerAfterChoice(rating, 1, rating.options[1]!)).toBe(2);
  });
  test("yes and no have keys, and eleven codes have eleven keys", () => {
    expect(questionChoices(question("q", { scale: "yes-no" })).map(({ value }) => value)).toEqual([true, false]);
    expect(new Set(OPTION_KEYS.slice(0, 11)).size).toBe(11);
  });
  test("texts of a pair are named by position, in options and in conditions", () => {
    const titled = ["a", "b", "neither"].map((value) => ({ ...option(value), title: value.toUpperCase() }));
    const prefer = renameByPosition(question("prefer", { scale: "nominal", options: titled }));
    expect(prefer.options.map(({ title, value }) => [title, value])).toEqual([
      ["A", "first"],
      ["B", "second"],
      ["NEITHER", "neither"],
    ]);
    const asked = renameByPosition(question("why", { when: { question: "prefer", among: ["a", "b", "neither"] } }));
    expect(asked.when?.among).toEqual(["first", "second", "neither"]);
    expect(
      [
        { first: "x", second: "y" },
        { a: "x", b: "y" },
      ].map(isNamedByPosition),
    ).toEqual([true, false]);
  });
});
