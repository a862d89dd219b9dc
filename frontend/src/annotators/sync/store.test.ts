import "fake-indexeddb/auto";
import { afterEach, describe, expect, test, vi } from "vitest";
import { EMPTY_OUTBOX, enqueue, type Outbox } from "./outbox";
import { openStore, type LocalTaskState, type Store } from "./store";

const LOCAL: LocalTaskState = { past: [], future: [], refusedHints: ["marks/m/rule"], active: 3 };
const add = (store: Store, task: string, key: `units/${string}`) =>
  store.updateOutbox(task, (outbox) => {
    const body = { answers: {}, seconds: 1 };
    return [enqueue(outbox, { key, body, active: 0, change: `c-${key}`, at: 1 }), key];
  });
const kept = async (store: Store) =>
  Object.fromEntries(
    [...(await store.readOutboxes())].map(([task, { changes }]) => [task, changes.map(({ key }) => key)]),
  );

/** Make every put abort, as a full disk does. */
function fill() {
  const put = IDBObjectStore.prototype.put;
  vi.spyOn(IDBObjectStore.prototype, "put").mockImplementation(function (this: IDBObjectStore, value, key) {
    const request = put.call(this, value, key);
    this.transaction.abort();
    return request;
  });
}
/** Close every connection, as browsers do under pressure. */
const lose = () =>
  vi.spyOn(IDBDatabase.prototype, "transaction").mockImplementation(() => {
    throw new DOMException("The database connection is closing.", "InvalidStateError");
  });

let number = 0;
const name = () => `store-${number++}`;
afterEach(() => vi.restoreAllMocks());

test("stored changes are available to the next page", async () => {
  const at = name();
  const store = await openStore(at);
  expect(await Promise.all([add(store, "t", "units/a"), add(store, "t", "units/b")])).toEqual(["units/a", "units/b"]);
  await store.saveLocalState("t", LOCAL);
  const next = await openStore(at);
  expect(await kept(next)).toEqual({ t: ["units/a", "units/b"] });
  expect(await next.readLocalState("t")).toEqual(LOCAL);
  expect(next.isPersistent).toBe(true);
});

describe.each([
  ["a full device", fill],
  ["a lost connection", lose],
])("%s", (_, fail) => {
  test("keeps all simultaneous changes on top of the stored ones", async () => {
    const store = await openStore(name());
    await add(store, "t", "units/a");
    await add(store, "other", "units/z");
    fail();
    const added = await Promise.all((["units/b", "units/c", "units/d"] as const).map((key) => add(store, "t", key)));
    expect(added).toEqual(["units/b", "units/c", "units/d"]);
    expect(store.isPersistent).toBe(false);
    expect(await kept(store)).toEqual({ t: ["units/a", "units/b", "units/c", "units/d"], other: ["units/z"] });
  });
  test("does not affect the other stores", async () => {
    const store = await openStore(name());
    await store.saveLocalState("t", LOCAL);
    fail();
    await store.saveLocalState("u", { ...LOCAL, active: 4 });
    expect(store.isPersistent).toBe(false);
    expect(await store.readLocalState("t")).toEqual(LOCAL);
    expect(await store.readLocalState("u")).toMatchObject({ active: 4 });
  });
});

test("a connection lost during a change loses nothing", async () => {
  const store = await openStore(name());
  await add(store, "t", "units/a");
  const get = IDBObjectStore.prototype.get;
  vi.spyOn(IDBObjectStore.prototype, "get").mockImplementationOnce(function (this: IDBObjectStore, key) {
    const request = get.call(this, key);
    this.transaction.abort();
    return request;
  });
  await add(store, "t", "units/b");
  expect(await kept(store)).toEqual({ t: ["units/a", "units/b"] });
});

test("a write in flight is kept when the database is lost", async () => {
  const store = await openStore(name());
  const first = add(store, "t", "units/a");
  lose();
  await add(store, "t", "units/b");
  expect(await first).toBe("units/a");
  expect(Object.values(await kept(store)).map((keys) => keys.sort())).toEqual([["units/a", "units/b"]]);
});

test("changes left by another page are known after reading", async () => {
  const at = name();
  await add(await openStore(at), "t", "units/a");
  const store = await openStore(at);
  await store.readOutboxes();
  lose();
  expect(await kept(store)).toEqual({ t: ["units/a"] });
  expect(await store.updateOutbox("u", (outbox: Outbox) => [outbox, outbox])).toEqual(EMPTY_OUTBOX);
});
