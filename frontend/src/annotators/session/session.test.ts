import "fake-indexeddb/auto";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Me, ErrorResponse, SaveResponse, Task } from "../../lib/api-types";
import { guide, question, task } from "../work/fixtures";
import { Session } from "./session.svelte";

const GUIDE = guide({ unit_questions: [question("good")] });
const judged = (good: string, version: number): Task["units"][number] => ({
  id: "0-4",
  version,
  body: { answers: { good }, seconds: 1 },
});

interface Sent {
  readonly change: string;
  /** Absent for a submission. */
  readonly base?: number;
}
/** Mock server with one task. */
class Server {
  text = task("Some text.", { parts: [{ start: 0, end: 4, title: "", role: "" }], units: [judged("yes", 1)] });
  refusal: ErrorResponse | undefined;
  down = false;
  /** Requests received while the server was down. */
  missed = 0;
  /** A delayed response. */
  held: Promise<Task> | undefined;
  readonly bases: unknown[] = [];

  answer = (path: string, { method, body }: RequestInit): Promise<Response> => {
    if (this.down) {
      this.missed += 1;
      return Promise.reject(new TypeError("no network"));
    }
    if (path === "/api/me") return Promise.resolve(Response.json(this.me()));
    if (path === "/api/next") return Promise.resolve(Response.json({ task: this.text, why: "" }));
    if (method === "GET") return Promise.resolve(this.held ?? this.text).then((text) => Response.json(text));
    return Promise.resolve(this.take(JSON.parse(body as string) as Sent));
  };
  private take({ change, base = 0 }: Sent): Response {
    this.bases.push(base);
    const [stored] = this.text.units;
    if (this.refusal) return Response.json(this.refusal, { status: 422 });
    if (base > 0 && stored!.version !== base)
      return Response.json({ code: "conflict", say: "", missing: [], stored }, { status: 409 });
    return Response.json({ change, version: base + 1 } satisfies SaveResponse);
  }
  private me(): Me {
    const tasks = [{ id: "t1", number: 1, status: "draft" as const }];
    return { annotator: "a", title: "", state: "open", guide: GUIDE, tasks, of: 1, way: [], code: "", csrf: "x" };
  }
}

let server: Server;
beforeEach(() => {
  server = new Server();
  vi.stubGlobal("indexedDB", new IDBFactory());
  vi.stubGlobal("fetch", (path: string, init: RequestInit) => server.answer(path, init));
  vi.stubGlobal("location", { pathname: "/" });
  vi.stubGlobal("addEventListener", () => undefined);
  vi.stubGlobal("document", { addEventListener: () => undefined, hidden: false });
  vi.stubGlobal("BroadcastChannel", undefined);
  vi.stubGlobal("localStorage", undefined);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

async function begun(): Promise<Session> {
  const session = new Session();
  await session.start();
  expect(session.page).toBe("task");
  return session;
}
const say = (session: Session, good: string) =>
  session.changes.dispatch({ type: "answer", key: "units/0-4", question: "good", value: good });
const said = (session: Session) => session.current.work["units/0-4"]?.answers["good"];
const settled = (check: () => void) => vi.waitFor(check, { timeout: 3000, interval: 10 });

test("after a rejection, removing the change shows the server's version", async () => {
  const session = await begun();
  server.refusal = { code: "refused", say: "no", missing: [], stored: null };
  say(session, "no");
  await settled(() => expect(session.current.refusedChanges).toHaveLength(1));
  server.down = true; // the server's version is not available, so the change stays
  await session.acceptStored("units/0-4", null);
  expect([said(session), session.current.refusedChanges.length]).toEqual(["no", 1]);
  server.down = false;
  await session.acceptStored("units/0-4", null);
  expect(said(session)).toBe("yes");
  await settled(() => expect(session.current.saving).toMatchObject({ state: "saved", unsentCount: 0 }));
});

test("waiting changes are sent as soon as the server responds", async () => {
  const hidden = { start: 5, end: 40, title: "", role: "" };
  server.text = { ...server.text, parts: [...server.text.parts!, hidden] };
  const session = await begun();
  server.down = true;
  session.navigation.judgePart("units/0-4");
  for (const tries of [1, 2, 3, 4, 5]) {
    await settled(() => expect(server.missed).toBe(tries));
    if (tries < 5) session.changes.retryNow();
  }
  await settled(() => expect(session.current.saving.retryAt).toBeGreaterThan(Date.now() + 10_000)); // longer than this test waits
  server.down = false;
  void session.navigation.awaitPart(1);
  await settled(() => expect(session.current.saving).toMatchObject({ state: "saved", unsentCount: 0 }));
});

test("a change based on one version does not overwrite another that a reload brings", async () => {
  const session = await begun();
  server.refusal = { code: "paused", say: "", missing: [], stored: null };
  say(session, "mine");
  await settled(() => expect(session.current.saving.unsentCount).toBe(1));
  server.refusal = undefined;
  server.text = { ...server.text, units: [judged("theirs", 2)] };
  await session.openTask("t1");
  await settled(() => expect(session.current.refusedChanges).toMatchObject([{ problem: { code: "conflict" } }]));
  expect(new Set(server.bases)).toEqual(new Set([1]));
  expect(said(session)).toBe("mine");
});

test("a change that arrives during a fetch is shown, although it is neither in the response nor unsent", async () => {
  const session = await begun();
  server.down = true;
  say(session, "mine");
  await settled(() => expect(session.current.saving.unsentCount).toBe(1));
  server.down = false;
  const stale = server.text; // the server's version before the change arrives
  server.held = new Promise((resolve) => {
    session.changes.retryNow();
    void settled(() => expect(session.current.saving.unsentCount).toBe(0)).then(() => resolve(stale));
  });
  await session.openTask("t1");
  expect(said(session)).toBe("mine");
});

test("a change that cannot be stored does not count as saved before it is sent", async () => {
  const session = await begun();
  vi.spyOn(IDBDatabase.prototype, "transaction").mockImplementation(() => {
    throw new DOMException("The database connection is closing.", "InvalidStateError");
  });
  server.down = true;
  say(session, "no");
  session.changes.submitTask();
  await settled(() =>
    expect(session.current.saving).toMatchObject({ state: "queued", unsentCount: 2, isPersistent: false }),
  );
  server.down = false;
  session.changes.retryNow();
  await settled(() => expect(session.current.saving).toMatchObject({ state: "saved", unsentCount: 0 }));
  expect(server.bases).toEqual([1, 0]);
});
