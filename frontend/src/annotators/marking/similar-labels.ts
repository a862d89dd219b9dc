import type { Guide, Label } from "../../lib/api-types";

/** Label that is often confused with another, and how they differ. */
export interface SimilarLabel {
  readonly label: Label;
  /** Rules of either label that name the other, or else the definition of the other. */
  readonly differences: readonly string[];
}

/** Return the most similar labels: those that rules connect, then those with similar descriptions. */
export function similarLabels(guide: Pick<Guide, "labels" | "looks">, name: string, maxCount = 2): SimilarLabel[] {
  const label = guide.labels.find((each) => each.name === name);
  if (!label) return [];
  const titles = new Map(guide.looks.map((look) => [look.label, look.title]));
  const rulesNaming = (from: Label, to: Label) =>
    (from.rules ?? []).filter((rule) => isNamedIn(rule, titles.get(to.name)));
  return guide.labels
    .filter((other) => other !== label)
    .map((other) => {
      const rules = [...new Set([...rulesNaming(label, other), ...rulesNaming(other, label)])];
      const groupBonus = other.group === label.group ? 0.05 : 0;
      return { label: other, rules, similarity: rules.length + wordOverlap(label, other) + groupBonus };
    })
    .sort((a, b) => b.similarity - a.similarity)
    .slice(0, maxCount)
    .map(({ label: other, rules }) => ({ label: other, differences: rules.length > 0 ? rules : [other.gloss ?? ""] }));
}

/** Return true if a rule names a label by its title as a whole word. */
function isNamedIn(rule: string, title: string | undefined): boolean {
  if (!title) return false;
  const quoted = title.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`(?<![\\p{L}\\p{N}])${quoted}(?![\\p{L}\\p{N}])`, "u").test(rule);
}

/** Return the share of longer words that two descriptions have in common. */
function wordOverlap(a: Label, b: Label): number {
  const [one, other] = [descriptionWords(a), descriptionWords(b)];
  const shared = [...one].filter((word) => other.has(word)).length;
  return shared / Math.max(1, one.size + other.size - shared);
}

const descriptionWords = ({ gloss = "", rules = [] }: Label): Set<string> =>
  new Set(`${gloss} ${rules.join(" ")}`.toLowerCase().match(/\p{L}{4,}/gu) ?? []);
