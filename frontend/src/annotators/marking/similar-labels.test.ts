import { expect, test } from "vitest";
import type { Guide } from "../../lib/api-types";
import { similarLabels } from "./similar-labels";

const label = (name: string, gloss: string, rules: string[] = [], group = "a") => ({ name, gloss, rules, group });
const guide = (labels: ReturnType<typeof label>[]) =>
  ({
    labels,
    looks: labels.map(({ name }) => ({ label: name, title: name[0]!.toUpperCase() + name.slice(1) })),
  }) as unknown as Pick<Guide, "labels" | "looks">;

test("a label that a rule names is nearest, with the rule that distinguishes them", () => {
  const all = guide([
    label("contradiction", "Cannot be true together with earlier words."),
    label("redundant", "Says earlier words again."),
    label("commonsense", "Nobody would believe it.", ["If the text itself denies it, use Contradiction."], "b"),
  ]);
  const [first, second] = similarLabels(all, "contradiction");
  expect(first).toEqual({ label: all.labels[2], differences: ["If the text itself denies it, use Contradiction."] });
  expect(second).toEqual({ label: all.labels[1], differences: ["Says earlier words again."] });
});

test("a title inside another word does not match", () => {
  const all = guide([
    label("word", "One word is wrong."),
    label("number", "A number is wrong.", ["Wordy ones too."]),
    label("name", "A name is wrong."),
  ]);
  expect(similarLabels(all, "word").flatMap(({ differences }) => differences)).not.toContain("Wordy ones too.");
});

test("an unknown label has no similar labels", () => expect(similarLabels(guide([]), "nothing")).toEqual([]));
