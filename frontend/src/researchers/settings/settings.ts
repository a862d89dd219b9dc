import type { Settings } from "../api-types";

/** Settings in a form: an empty number is null, lists are lines or rows. */
export interface SettingsDraft {
  title: string;
  annotators: number | null;
  lease: number;
  pilot: number;
  price: number | null;
  base_pay: number;
  pay_floor: number | null;
  budget: number | null;
  fees: number;
  staff_minutes: number;
  staff_rate: number;
  currency: string;
  checks: string;
  strata: string[];
  quotas: { name: string; most: number }[];
  offer: string;
  blind: number;
  skip: Settings["skip"];
}
const MONEY_FIELDS = [
  "price",
  "base_pay",
  "pay_floor",
  "budget",
  "fees",
  "staff_minutes",
  "staff_rate",
  "currency",
] as const;
const SIMPLE_FIELDS = ["title", "annotators", "lease", "pilot", ...MONEY_FIELDS] as const;
/** Steps before the texts, in order. */
export const PHASES = ["consent", "survey", "instructions", "training", "qualification"] as const;
const DEFAULT_BLIND_SHARE = 0.2;

/** Return the initial values of the form. */
export const draftFromSettings = (settings: Settings): SettingsDraft => ({
  title: settings.title,
  annotators: settings.annotators,
  lease: settings.lease,
  pilot: settings.pilot,
  price: settings.price,
  base_pay: settings.base_pay,
  pay_floor: settings.pay_floor,
  budget: settings.budget,
  fees: settings.fees,
  staff_minutes: settings.staff_minutes,
  staff_rate: settings.staff_rate,
  currency: settings.currency,
  checks: settings.attention_checks.join("\n"),
  strata: [...settings.strata],
  quotas: Object.entries(settings.quotas).map(([name, most]) => ({ name, most })),
  offer: settings.offer?.annotator ?? "",
  blind: settings.offer?.blind ?? DEFAULT_BLIND_SHARE,
  skip: [...settings.skip],
});

/** Return the settings that a form would change, as a request. */
export function changedSettings(settings: Settings, draft: SettingsDraft): Partial<Settings> {
  const edited: Partial<Settings> = {
    ...Object.fromEntries(SIMPLE_FIELDS.map((name) => [name, draft[name] ?? null])),
    attention_checks: draft.checks
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean),
    strata: [...draft.strata],
    quotas: Object.fromEntries(
      draft.quotas.filter(({ name }) => name.trim()).map(({ name, most }) => [name.trim(), most]),
    ),
    offer: draft.offer ? { annotator: draft.offer, blind: draft.blind } : null,
    skip: PHASES.filter((phase) => draft.skip.includes(phase)),
  };
  const isUnchanged = (name: string) =>
    JSON.stringify(edited[name as keyof Settings]) === JSON.stringify(settings[name as keyof Settings]);
  return Object.fromEntries(Object.entries(edited).filter(([name]) => !isUnchanged(name)));
}
