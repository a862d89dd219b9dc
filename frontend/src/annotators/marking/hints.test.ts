import { describe, expect, test } from "vitest";
import type { Guideline } from "../../lib/api-types";
import { guide, task } from "../work/fixtures";
import { compileRulePattern, findHint } from "./hints";
import { taskSources, type Mark } from "../work/work";

const TEXT = "It was 30-20 on Saturday. It was Saturday.";

const marked = (words: string, name: string): Mark => {
  const start = TEXT.indexOf(words);
  return {
    spans: [{ part: "text", start, end: start + words.length }],
    label: name,
    answers: {},
    antecedent: [],
    madeFrom: [],
  };
};

const RULES: Guideline[] = [
  {
    name: "weekday",
    say: "A weekday is a Name.",
    quote: "(?:[Oo]n )?(?:Satur|Sun)day",
    labels: ["word"],
    action: "relabel",
    to: "name",
  },
  { name: "two", say: "Two numbers?", quote: "([0-9]+)-([0-9]+)", labels: ["number"], action: "split", to: null },
];

const GUIDE = guide({ guidelines: RULES });

const SOURCES = taskSources(task(TEXT));

describe("hints", () => {
  test.each([
    ["Saturday", "word", { label: "name" }],
    ["on Saturday", "word", { label: "name" }],
    [
      "30-20",
      "number",
      {
        spans: [
          { part: "text", start: 7, end: 9 },
          { part: "text", start: 10, end: 12 },
        ],
      },
    ],
  ])("%s marked as %s", (words, name, change) => {
    expect(findHint(marked(words, name), GUIDE, SOURCES, [])?.change).toEqual(change);
  });

  test.each([
    ["Saturday", "name", []], // already follows the guide
    ["Saturday", "number", []], // the rule applies to other labels
    ["was 30-20", "number", []], // only a whole quote matches
    ["Saturday", "word", ["weekday"]], // dismissed before
  ])("%s as %s with %j refused gives none", (words, name, refused) => {
    expect(findHint(marked(words, name), GUIDE, SOURCES, refused)).toBeUndefined();
  });

  test("Python expressions work where browsers support them", () => {
    expect(compileRulePattern("(?i)monday")?.test("MONDAY")).toBe(true);
    expect(compileRulePattern("(?P<n>[0-9]+)")?.exec("12")?.groups?.n).toBe("12");
    expect(compileRulePattern("(?>atomic)")).toBeUndefined();
  });
});
