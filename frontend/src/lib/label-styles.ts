import type { Guide, LabelLook } from "./api-types";

const NO_LABEL_LOOK: LabelLook = { label: "", title: "", slot: "none", flag: "??", key: "" };

/** Return the look of a label. Legend, palette, flag, underline, list and bar all use this function. */
export const findLabelLook = (looks: readonly LabelLook[], label: string | null): LabelLook =>
  looks.find((look) => look.label === (label ?? "")) ?? NO_LABEL_LOOK;

/** Return the custom properties of a slot, for the `style:` of an element or `paint`. */
export const slotVariables = (slot: string) => ({
  c: `var(--c-${slot})`,
  k: `var(--k-${slot})`,
  ln: `var(--ln-${slot})`,
});

/** Return labels in palette order by group; labels without a group come last. */
export function groupLabels(guide: Pick<Guide, "groups" | "labels" | "looks">) {
  const labelsOfGroup = (group: string | null) =>
    guide.labels
      .filter((label) => (label.group ?? null) === group)
      .map((label) => ({ label, look: findLabelLook(guide.looks, label.name) }));
  return [
    ...guide.groups.map((group) => ({ group, labels: labelsOfGroup(group.name) })),
    { group: null, labels: labelsOfGroup(null) },
  ].filter(({ labels }) => labels.length > 0);
}
