import { t } from "../../lib/catalogue";
import type { Guide } from "../../lib/api-types";
import { findLabelLook } from "../../lib/label-styles";
import { findLabel } from "../../lib/questions/questions";

export const labelTitle = (guide: Guide, label: string | null): string =>
  findLabelLook(guide.looks, label).title || t("noLabel");

/** Return the verb that connects a mark with its antecedent. */
export const labelVerb = (guide: Guide, label: string | null): string => findLabel(guide, label)?.verb || t("verb");
