import type { Guide, Label } from "../../lib/api-types";

/** A kind of error that is easily taken for another, and what tells the two apart. */
export interface NearLabel {
  readonly label: Label;
  /** Rules of either that name the other; what the other means where no rule does. */
  readonly apart: readonly string[];
}

/** The labels nearest to one: first those that its rules name, or that name it, then those described in like words. */
export function nearest(guide: Pick<Guide, "labels" | "looks">, name: string, most = 2): NearLabel[] {
  const label = guide.labels.find((each) => each.name === name);
  if (!label) return [];
  const titles = new Map(guide.looks.map((look) => [look.label, look.title]));
  const naming = (from: Label, to: Label) => (from.rules ?? []).filter((rule) => names(rule, titles.get(to.name)));
  return guide.labels
    .filter((other) => other !== label)
    .map((other) => {
      const rules = [...new Set([...naming(label, other), ...naming(other, label)])];
      const kin = other.group === label.group ? 0.05 : 0;
      return { label: other, rules, near: rules.length + alike(label, other) + kin };
    })
    .sort((a, b) => b.near - a.near)
    .slice(0, most)
    .map(({ label: other, rules }) => ({ label: other, apart: rules.length > 0 ? rules : [other.gloss ?? ""] }));
}

/** Whether a rule names a label by its title, as a word of its own. */
function names(rule: string, title: string | undefined): boolean {
  if (!title) return false;
  const quoted = title.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`(?<![\\p{L}\\p{N}])${quoted}(?![\\p{L}\\p{N}])`, "u").test(rule);
}

/** How many of the longer words two descriptions share, of all they have. */
function alike(a: Label, b: Label): number {
  const [one, other] = [wordsOf(a), wordsOf(b)];
  const shared = [...one].filter((word) => other.has(word)).length;
  return shared / Math.max(1, one.size + other.size - shared);
}

const wordsOf = ({ gloss = "", rules = [] }: Label): Set<string> =>
  new Set(`${gloss} ${rules.join(" ")}`.toLowerCase().match(/\p{L}{4,}/gu) ?? []);
