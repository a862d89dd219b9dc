import { describe, expect, test } from "vitest";
import type { ErrorResponse, UnitBody } from "../../lib/api-types";
import {
  startNextAttempt,
  dropChange,
  EMPTY_OUTBOX,
  enqueue,
  resendRefused,
  mergeVersions,
  recoverChange,
  markRefused,
  confirmSaved,
  dropRefused,
  unsentBodies,
  type Change,
  type Outbox,
} from "./outbox";

const body = (seconds: number): UnitBody => ({ answers: {}, seconds });
const problem = (code: ErrorResponse["code"], version = 0): ErrorResponse => ({
  code,
  say: "",
  missing: [],
  stored: version ? { id: "a", version, body: body(99) } : null,
});
const add = (outbox: Outbox, key: "units/a" | "units/b" | "finish", seconds: number | null, change: string) =>
  enqueue(outbox, made(key, seconds, change));
const made = (key: Change["key"], seconds: number | null, change: string, at = 1): Change => ({
  key,
  body: seconds === null ? null : body(seconds),
  active: 0,
  change,
  at,
});
const bodies = (outbox: Outbox) =>
  outbox.changes.map(({ key, body, change, state }) => [key, (body as UnitBody | null)?.seconds, change, state]);

test("a later change of an entry replaces one that was not sent", () => {
  expect(bodies(add(add(EMPTY_OUTBOX, "units/a", 1, "c1"), "units/a", 2, "c2"))).toEqual([
    ["units/a", 2, "c1", "waiting"],
  ]);
});

test("an attempted change is never altered; later ones wait behind it and merge", () => {
  const [tried, sent] = startNextAttempt(add(EMPTY_OUTBOX, "units/a", 1, "c1"));
  expect(sent).toMatchObject({ change: "c1", base: 0, state: "tried" });
  const later = add(add(tried, "units/a", 2, "c2"), "units/a", 3, "c3");
  expect(bodies(later)).toEqual([
    ["units/a", 1, "c1", "tried"],
    ["units/a", 3, "c2", "waiting"],
  ]);
  expect(startNextAttempt(later)[1]).toBe(later.changes[0]); // same again, with the same ID
});

test("the next change builds on the returned version", () => {
  const [tried] = startNextAttempt(add(EMPTY_OUTBOX, "units/a", 1, "c1"));
  const done = confirmSaved(add(tried, "units/a", 2, "c2"), { change: "c1", version: 5 });
  expect(startNextAttempt(done)[1]).toMatchObject({ change: "c2", base: 5 });
  expect(confirmSaved(done, { change: "c1", version: 5 })).toBe(done); // answered twice
});

test("deleting an entry that the server never saw needs no change", () => {
  expect(add(add(EMPTY_OUTBOX, "units/a", 1, "c1"), "units/a", null, "c2").changes).toEqual([]);
  const seen = mergeVersions(EMPTY_OUTBOX, { "units/a": 2 });
  expect(startNextAttempt(add(seen, "units/a", null, "c2"))[1]).toMatchObject({ body: null, base: 2 });
});

test("a submission waits for all other changes, including rejected ones", () => {
  const both = add(add(EMPTY_OUTBOX, "finish", null, "f"), "units/a", 1, "c1");
  const [tried, first] = startNextAttempt(both);
  expect(first?.key).toBe("units/a");
  expect(startNextAttempt(confirmSaved(tried, { change: "c1", version: 1 }))[1]?.key).toBe("finish");
  expect(startNextAttempt(markRefused(tried, "c1", problem("refused")))[1]).toBeUndefined();
});

describe("rejections", () => {
  const [tried] = startNextAttempt(add(mergeVersions(EMPTY_OUTBOX, { "units/a": 1 }), "units/a", 1, "c1"));

  test("a rejected change stays until it is changed, dropped or resent", () => {
    const refused = markRefused(tried, "c1", problem("refused"));
    expect(bodies(refused)).toEqual([["units/a", 1, "c1", "refused"]]);
    expect(startNextAttempt(refused)[1]).toBeUndefined();
    expect(bodies(add(refused, "units/a", 2, "c2"))).toEqual([["units/a", 2, "c2", "waiting"]]);
    expect(dropChange(refused, "units/a").changes).toEqual([]);
    expect(bodies(resendRefused(refused, "units/a", "c3"))).toEqual([["units/a", 1, "c3", "waiting"]]);
  });
  test("a later change replaces a rejected one", () => {
    expect(bodies(markRefused(add(tried, "units/a", 2, "c2"), "c1", problem("refused")))).toEqual([
      ["units/a", 2, "c2", "waiting"],
    ]);
  });
  test("but not after a conflict, which the annotator must see", () => {
    const conflict = markRefused(add(tried, "units/a", 2, "c2"), "c1", problem("conflict", 7));
    expect(bodies(conflict)).toEqual([["units/a", 2, "c2", "refused"]]);
    expect(startNextAttempt(resendRefused(conflict, "units/a", "c3"))[1]).toMatchObject({ change: "c3", base: 7 });
  });
});

describe("a change is based on the version that was visible when it was made", () => {
  const v1 = mergeVersions(EMPTY_OUTBOX, { "units/a": 1 });

  test("also if a newer version is reported before it is sent", () => {
    const heard = mergeVersions(add(v1, "units/a", 1, "c1"), { "units/a": 2 });
    expect(startNextAttempt(heard)[1]).toMatchObject({ change: "c1", base: 1 });
    expect(startNextAttempt(add(heard, "units/a", 2, "c2"))[1]).toMatchObject({ base: 1 }); // still based on the first change
  });
  test("or while an earlier change is in flight, on which it builds", () => {
    const [tried] = startNextAttempt(add(v1, "units/a", 1, "c1"));
    const heard = mergeVersions(add(tried, "units/a", 2, "c2"), { "units/a": 3 });
    const done = confirmSaved(heard, { change: "c1", version: 2 });
    expect(startNextAttempt(done)[1]).toMatchObject({ change: "c2", base: 2 });
    expect(startNextAttempt(markRefused(heard, "c1", problem("refused")))[1]).toMatchObject({ change: "c2", base: 1 });
  });
  test("and after a late response", () => {
    const [tried] = startNextAttempt(add(v1, "units/a", 1, "c1"));
    const done = confirmSaved(mergeVersions(tried, { "units/a": 3 }), { change: "c1", version: 2 });
    expect(startNextAttempt(add(done, "units/a", 2, "c2"))[1]).toMatchObject({ base: 2 });
  });
  test("and after a conflict, until it is resolved", () => {
    const conflict = markRefused(startNextAttempt(add(v1, "units/a", 1, "c1"))[0], "c1", problem("conflict", 2));
    expect(startNextAttempt(add(conflict, "units/a", 2, "c2"))[1]).toMatchObject({ base: 1 });
    const heard = mergeVersions(conflict, { "units/a": 3 });
    expect(startNextAttempt(resendRefused(heard, "units/a", "c3"))[1]).toMatchObject({ base: 2 }); // version 3 was not shown
    const [taken, was] = dropRefused(heard, "units/a", 2);
    expect([taken.changes, taken.versions, was]).toEqual([[], { "units/a": 2 }, true]);
  });
});

test("the server's version does not replace a change made since the rejection", () => {
  const waiting = add(EMPTY_OUTBOX, "units/a", 1, "c1");
  expect(dropRefused(waiting, "units/a", 2)).toEqual([waiting, false]);
});

test("a noted change is recovered once, and never over a later one", () => {
  const note = made("units/a", 1, "c1", 10);
  const recovered = recoverChange(EMPTY_OUTBOX, note);
  expect(bodies(recovered)).toEqual([["units/a", 1, "c1", "waiting"]]);
  expect(recoverChange(recovered, note)).toBe(recovered);
  const later = enqueue(EMPTY_OUTBOX, made("units/a", 2, "c2", 20));
  expect(recoverChange(later, note)).toBe(later);
  const sent = confirmSaved(startNextAttempt(later)[0], { change: "c2", version: 1 });
  expect(recoverChange(sent, note)).toBe(sent);
  expect(bodies(recoverChange(sent, made("units/a", 3, "c3", 30)))).toEqual([["units/a", 3, "c3", "waiting"]]);
});

test("versions only increase", () => {
  expect(mergeVersions(mergeVersions(EMPTY_OUTBOX, { "units/a": 4 }), { "units/a": 2 }).versions).toEqual({
    "units/a": 4,
  });
});

test("unsent bodies, latest last", () => {
  const [tried] = startNextAttempt(add(EMPTY_OUTBOX, "units/a", 1, "c1"));
  const all = add(add(add(tried, "units/a", 2, "c2"), "units/b", 3, "c3"), "finish", null, "f");
  expect([...unsentBodies(all)]).toEqual([
    ["units/a", body(2)],
    ["units/b", body(3)],
  ]);
});
