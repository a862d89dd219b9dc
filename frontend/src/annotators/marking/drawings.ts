import { t } from "../../lib/catalogue";
import { findLabelLook } from "../../lib/label-styles";
import type { Drawing } from "../../lib/text/pieces";
import type { LabelLook, OfferedMark } from "../../lib/api-types";
import { entryId, spanFromWire, type Mark, type MarkKey, type Sources } from "../work/work";

/** Return drawings of the marks. Marks of earlier parts are faint; in pick mode, all but the selected mark are. */
export const markDrawings = (
  marks: readonly (readonly [MarkKey, Mark])[],
  looks: readonly LabelLook[],
  chosen: MarkKey | undefined,
  from: number,
  picking: boolean,
): Drawing[] =>
  marks.map(([key, mark]): Drawing => {
    const { slot, flag } = findLabelLook(looks, mark.label);
    const isChosen = key === chosen;
    const isFaint = picking || (mark.spans[0]?.start ?? 0) < from;
    return {
      id: entryId(key),
      spans: mark.spans,
      slot,
      flag: picking && !isChosen ? "" : flag,
      kind: "mark",
      tone: isChosen ? "chosen" : isFaint ? "faint" : "rest",
    };
  });

/** Return drawings of the antecedent of the selected mark. */
export function antecedentDrawings(key: MarkKey, mark: Mark, looks: readonly LabelLook[], verb: string): Drawing[] {
  if (mark.antecedent.length === 0) return [];
  const { slot, flag } = findLabelLook(looks, mark.label);
  const says = t("refersToThis", { flag, verb });
  return [
    { id: `${entryId(key)}-earlier`, spans: mark.antecedent, slot, flag: says, kind: "antecedent", tone: "rest" },
  ];
}

/** Return drawings of the alternatives of the selected mark. */
export const alternativeDrawings = (key: MarkKey, mark: Mark, looks: readonly LabelLook[]): Drawing[] =>
  (mark.alternatives ?? []).flatMap((members, at) =>
    members.map(({ spans, label }, number): Drawing => {
      const { slot, flag } = findLabelLook(looks, label);
      const says = t("orFlag", { flag });
      return { id: `${entryId(key)}-or-${at}-${number}`, spans, slot, flag: says, kind: "antecedent", tone: "rest" };
    }),
  );

/** Return drawings of offered marks that are still undecided. */
export const offerDrawings = (
  offers: readonly OfferedMark[],
  looks: readonly LabelLook[],
  chosen: string | undefined,
  sources: Sources,
): Drawing[] =>
  offers.map(({ id, spans, label }): Drawing => {
    const { slot, flag } = findLabelLook(looks, label);
    const own = spans.map((span) => spanFromWire(span, sources));
    const tone = id === chosen ? "chosen" : "rest";
    return { id: `offer-${id}`, spans: own, slot, flag: `${flag}?`, kind: "offered", tone };
  });
