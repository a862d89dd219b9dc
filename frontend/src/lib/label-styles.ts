import type { Guide, LabelLook } from "./api-types";

const NO_LABEL_LOOK: LabelLook = { label: "", title: "", slot: "none", flag: "??", key: "" };

/** The one function from label to look: legend, palette, flag, underline, list and bar all ask it. */
export const findLabelLook = (looks: readonly LabelLook[], label: string | null): LabelLook =>
  looks.find((look) => look.label === (label ?? "")) ?? NO_LABEL_LOOK;

/** Custom properties of a slot, for the `style:` of an element or `paint`. */
export const slotVariables = (slot: string) => ({
  c: `var(--c-${slot})`,
  k: `var(--k-${slot})`,
  ln: `var(--ln-${slot})`,
});

/** Labels in the order of the palette, under their groups; labels without a group come last, under none. */
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
