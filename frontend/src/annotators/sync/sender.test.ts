import "fake-indexeddb/auto";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ServerError, UnreachableError } from "../../lib/api";
import type { ErrorResponse, UnitBody } from "../../lib/api-types";
import { Journal } from "./journal";
import { retryDelay, Sender, type SavingStatus } from "./sender";
import { openStore, type Store } from "./store";

const body = (seconds: number): UnitBody => ({ answers: {}, seconds });
const refusal = (code: ErrorResponse["code"], more: Partial<ErrorResponse> = {}) =>
  new ServerError({ code, say: code, missing: [], ...more });

/** Mock server that keeps versions, can be down, and can reject. */
class Server {
  readonly entries = new Map<string, { version: number; body: unknown }>();
  readonly answered = new Map<string, number>();
  readonly log: string[] = [];
  fault: (path: string) => Error | undefined = () => undefined;
  /** Stores changes but loses its responses. */
  mute = false;

  put = <T>(path: string, sent: unknown): Promise<T> => {
    const { change, base = 0, body } = sent as { change: string; base?: number; body?: unknown };
    this.log.push(`${path.split("/").slice(4).join("/")} ${change}`);
    const fault = this.fault(path);
    if (fault) return Promise.reject(fault);
    if (!this.answered.has(change)) {
      const old = this.entries.get(path);
      if ((old?.version ?? 0) !== base) return Promise.reject(refusal("conflict"));
      this.entries.set(path, { version: base + 1, body });
      this.answered.set(change, base + 1);
    }
    if (this.mute) return Promise.reject(new UnreachableError("gone"));
    return Promise.resolve({ change, version: this.answered.get(change)! } as T);
  };
}

let number = 0;
async function desk(server = new Server(), name = `test-${number++}`, store?: Store, journal?: Journal) {
  let told: SavingStatus | undefined;
  const events: string[] = [];
  let id = 0;
  const listener = {
    setSaving: (saving: SavingStatus) => (told = saving),
    onSaved: () => undefined,
    onFinished: (task: string) => void events.push(`finished ${task}`),
    onIncomplete: (task: string) => void events.push(`incomplete ${task}`),
  };
  const refresh = vi.fn(() => Promise.resolve());
  const sender = new Sender(
    store ?? (await openStore(name)),
    server,
    listener,
    refresh,
    () => `${name}-c${++id}-${number++}`,
    journal,
  );
  return { server, sender, events, refresh, name, saving: () => told! };
}

beforeEach(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] }));
afterEach(() => vi.useRealTimers());
const settled = async (check: () => void) => vi.waitFor(check, { timeout: 2000, interval: 5 });

test("everything counts as saved only after the change arrives", async () => {
  const { server, sender, saving } = await desk();
  const done = sender.saveChange("t", "units/a", body(1), 1);
  await settled(() => expect(saving().state).toBe("saved"));
  await done;
  expect(server.entries.get("/api/tasks/t/units/a")).toEqual({ version: 1, body: body(1) });
});

test("a dead server is retried with growing pauses and the same change", async () => {
  const { server, sender, saving } = await desk();
  server.fault = () => new UnreachableError("dead");
  await sender.saveChange("t", "units/a", body(1), 1);
  await settled(() => expect(saving().state).toBe("queued"));
  await sender.saveChange("t", "units/a", body(2), 1); // a manual retry is immediate
  await settled(() => expect(saving().retryAt).toBeDefined());
  while (saving().state === "queued") await vi.advanceTimersByTimeAsync(1000);
  expect(saving().state).toBe("unreachable");
  vi.stubGlobal("navigator", { onLine: false });
  await sender.reportStatus();
  expect(saving().state).toBe("offline"); // the browser reports that it is offline
  vi.unstubAllGlobals();
  server.fault = () => undefined;
  await vi.advanceTimersByTimeAsync(70_000);
  await settled(() => expect(saving()).toMatchObject({ state: "saved", unsentCount: 0 }));
  expect(server.entries.get("/api/tasks/t/units/a")).toEqual({ version: 2, body: body(2) });
  expect(new Set(server.log).size).toBe(2); // two changes, however often they were sent
});

test("a lost response does not count a change twice", async () => {
  const { server, sender, saving } = await desk();
  server.mute = true;
  await sender.saveChange("t", "units/a", body(1), 1);
  await settled(() => expect(saving().state).toBe("queued"));
  server.mute = false;
  await sender.saveChange("t", "units/a", body(2), 1);
  await settled(() => expect(saving().state).toBe("saved"));
  expect(server.entries.get("/api/tasks/t/units/a")).toEqual({ version: 2, body: body(2) });
});

test("another page sends what this one could not", async () => {
  const first = await desk();
  first.server.fault = () => new UnreachableError("dead");
  await first.sender.saveChange("t", "units/a", body(1), 1);
  await settled(() => expect(first.saving().unsentCount).toBe(1));
  first.server.fault = () => undefined;
  const second = await desk(first.server, first.name);
  second.sender.sendNow();
  await settled(() => expect(second.saving()).toMatchObject({ state: "saved", unsentCount: 0 }));
  expect(first.server.entries.get("/api/tasks/t/units/a")).toEqual({ version: 1, body: body(1) });
});

test("many simultaneous changes arrive, and the last one of each entry wins", async () => {
  const { server, sender, saving } = await desk();
  await Promise.all(Array.from({ length: 60 }, (_, at) => sender.saveChange("t", `units/${at % 7}`, body(at), 1)));
  await settled(() => expect(saving()).toMatchObject({ state: "saved", unsentCount: 0 }));
  for (let key = 0; key < 7; key++) {
    const last = 59 - ((59 - key) % 7);
    expect(server.entries.get(`/api/tasks/t/units/${key}`)?.body).toEqual(body(last));
  }
});

test("a submission is sent last and reported", async () => {
  const { server, sender, events } = await desk();
  server.fault = () => new UnreachableError("dead");
  await sender.saveChange("t", "finish", null, 1);
  await sender.saveChange("t", "units/a", body(1), 1);
  server.fault = () => undefined;
  sender.sendNow();
  await settled(() => expect(events).toEqual(["finished t"]));
  expect(server.log.at(-1)).toMatch(/^finish/);
});

describe("responses of the server", () => {
  test("a rejected change stays with its reason and can be resent or dropped", async () => {
    const { server, sender, saving } = await desk();
    server.fault = () => refusal("refused");
    await sender.saveChange("t", "units/a", body(1), 1);
    await settled(() => expect(saving().state).toBe("refused"));
    expect(saving().refusedChanges).toMatchObject([{ task: "t", key: "units/a", problem: { code: "refused" } }]);
    server.fault = () => undefined;
    await sender.resendRefused("t", "units/a");
    await settled(() => expect(saving().state).toBe("saved"));
  });
  test("an expired lease stops only its task", async () => {
    const { server, sender, saving } = await desk();
    server.fault = () => refusal("lease-over");
    await sender.saveChange("t", "units/a", body(1), 1);
    await settled(() => expect(saving().haltCodeByTask).toEqual({ t: "lease-over" }));
    expect(saving()).toMatchObject({ state: "queued", unsentCount: 1 });
    await sender.abandonTask("t");
    await settled(() => expect(saving()).toMatchObject({ state: "saved", haltCodeByTask: {} }));
  });
  test("signed-out changes are kept and sent after the next sign-in", async () => {
    const { server, sender, saving, refresh } = await desk();
    server.fault = () => refusal("signed-out");
    await sender.saveChange("t", "units/a", body(1), 1);
    await settled(() => expect(saving().haltCodeByTask).toEqual({ "*": "signed-out" }));
    expect(refresh).toHaveBeenCalled();
    server.fault = () => undefined;
    await vi.advanceTimersByTimeAsync(2000);
    await settled(() => expect(saving()).toMatchObject({ state: "saved", haltCodeByTask: {} }));
  });
  test("an expired token is renewed once; a second failure is a rejection", async () => {
    const { server, sender, saving, refresh } = await desk();
    server.fault = () => refusal("not-allowed");
    await sender.saveChange("t", "units/a", body(1), 1);
    await settled(() => expect(refresh).toHaveBeenCalledTimes(1));
    await vi.advanceTimersByTimeAsync(2000);
    await settled(() => expect(saving().state).toBe("refused"));
  });
  test("a submission with missing answers is cancelled", async () => {
    const { server, sender, events, saving } = await desk();
    server.fault = () => refusal("incomplete", { missing: ["marks/m: severity"] });
    await sender.saveChange("t", "finish", null, 1);
    await settled(() => expect(events).toEqual(["incomplete t"]));
    await settled(() => expect(saving().unsentCount).toBe(0));
  });
});

describe("no stored change is skipped", () => {
  test("a change of an unknown task is sent", async () => {
    const { server, sender, saving } = await desk();
    await sender.saveChange("elsewhere", "units/a", body(1), 1);
    await settled(() => expect(saving()).toMatchObject({ state: "saved", unsentCount: 0 }));
    expect(server.entries.get("/api/tasks/elsewhere/units/a")?.body).toEqual(body(1));
  });
  test("changes of another annotator stay unsent and unsaved; own changes continue", async () => {
    const { server, sender, saving } = await desk();
    server.fault = (path) => (path.includes("/theirs/") ? refusal("not-found") : undefined);
    await sender.saveChange("theirs", "units/a", body(1), 1);
    await sender.saveChange("z-own", "units/a", body(2), 1);
    await settled(() =>
      expect(saving()).toMatchObject({ state: "queued", unsentCount: 1, haltCodeByTask: { theirs: "not-found" } }),
    );
    expect([...server.entries.keys()]).toEqual(["/api/tasks/z-own/units/a"]);
  });
  test("a change that cannot be stored does not count as saved", async () => {
    const quiet = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const store = await openStore(`broken-${number++}`);
    store.updateOutbox = () => Promise.reject(new Error("broken"));
    const { sender, saving } = await desk(new Server(), "broken", store);
    await sender.saveChange("t", "units/a", body(1), 1);
    await settled(() => expect(saving()).toMatchObject({ state: "queued", unsentCount: 1, isPersistent: false }));
    expect(quiet).toHaveBeenCalled();
    quiet.mockRestore();
  });
  test("a change whose sending fails unexpectedly does not count as saved and is retried", async () => {
    const quiet = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const { server, sender, saving } = await desk();
    server.fault = () => new TypeError("a mistake");
    await sender.saveChange("t", "units/a", body(1), 1);
    await settled(() => expect(saving()).toMatchObject({ state: "queued", unsentCount: 1 }));
    server.fault = () => undefined;
    await vi.advanceTimersByTimeAsync(2000);
    await settled(() => expect(saving()).toMatchObject({ state: "saved", unsentCount: 0 }));
    quiet.mockRestore();
  });
  test("a change noted by an earlier page is recovered unless the entry has changed since", async () => {
    const notes: Record<string, string> = {};
    const methods = {
      setItem: (name: string, value: string) => void (notes[name] = value),
      getItem: (name: string) => notes[name] ?? null,
      removeItem: (name: string) => void delete notes[name],
    };
    const storage = new Proxy(notes, {
      get: (_, name) => methods[name as keyof typeof methods],
    }) as unknown as Storage;
    const journal = new Journal(storage);
    const { server, sender, saving } = await desk(new Server(), undefined, undefined, journal);
    await sender.saveChange("t", "units/a", body(2), 1);
    await settled(() => expect(saving().state).toBe("saved"));
    const noted = { task: "t", body: body(1), active: 1 } as const;
    journal.add({ ...noted, key: "units/a", change: "old", at: Date.now() - 1000 });
    journal.add({ ...noted, key: "units/b", change: "new", at: Date.now() - 1000 });
    await sender.recoverJournal();
    sender.sendNow();
    await settled(() => expect(server.entries.get("/api/tasks/t/units/b")?.body).toEqual(body(1)));
    expect(server.entries.get("/api/tasks/t/units/a")?.body).toEqual(body(2));
    expect(notes).toEqual({});
  });
});

test("pauses grow to a minute and are randomised", () => {
  expect([1, 2, 3, 10].map((failures) => retryDelay(failures, 0.5))).toEqual([1000, 2000, 4000, 60_000]);
  expect(retryDelay(3, 0)).toBeLessThan(retryDelay(3, 1));
});
