import { describe, expect, test } from "vitest";
import type { Settings } from "../api-types";
import { changedSettings, draftFromSettings } from "./settings";

describe("settings", () => {
  const settings: Settings = {
    title: "Harbour",
    protocols: ["scarecrow@2"],
    annotators: null,
    strata: ["model"],
    quotas: { a: 3 },
    attention_checks: ["d1"],
    models: {},
    design: null,
    offer: null,
    allocation: null,
    skip: ["training"],
    round: 0,
    recruitment: {
      platform: "",
      completed: "",
      screened_out: "",
      no_consent: "",
      back: "",
      frame: [],
      batch: null,
      reward: null,
    },
    mode: "",
    planned: [],
    audit: null,
    lease: 120,
    pilot: 5,
    price: null,
    base_pay: 0,
    pay_floor: null,
    budget: null,
    fees: 0,
    staff_minutes: 0,
    staff_rate: 0,
    currency: "USD",
    seed: 0,
    meta: {},
  };
  test("an untouched form sends nothing", () =>
    expect(changedSettings(settings, draftFromSettings(settings))).toEqual({}));
  test("only changed fields are sent", () =>
    expect(
      changedSettings(settings, {
        ...draftFromSettings(settings),
        price: 0.5,
        checks: " d1 \n\nd2",
        quotas: [{ name: " ", most: 1 }],
        offer: "m",
      }),
    ).toEqual({ price: 0.5, attention_checks: ["d1", "d2"], quotas: {}, offer: { annotator: "m", blind: 0.2 } }));
  test("skipped phases keep the order of the steps", () =>
    expect(changedSettings(settings, { ...draftFromSettings(settings), skip: ["training", "consent"] })).toEqual({
      skip: ["consent", "training"],
    }));
  test("an emptied number is null", () =>
    expect(changedSettings({ ...settings, annotators: 3 }, draftFromSettings(settings))).toEqual({ annotators: null }));
});
