import { beforeEach, expect, test, vi } from "vitest";
import { Refusal, Unreachable, type Api } from "../../lib/api";
import type { Problem } from "../../lib/api-types";
import { page, question } from "../work/fixtures";
import { Looking, Way, type Walker } from "./onboarding.svelte";

/** A device, a server, and somebody who walks. */
const kept = new Map<string, string>();
const device = {
  getItem: (name: string) => kept.get(name) ?? null,
  setItem: (name: string, value: string) => void kept.set(name, value),
  removeItem: (name: string) => void kept.delete(name),
} as unknown as Storage;
const SURVEY = page("survey", { kind: "survey", phase: "survey", questions: [question("age"), question("sport")] });

class Server implements Walker {
  answers: (() => unknown)[] = [];
  readonly got: [string, { change: string; answers: unknown }][] = [];
  readonly stepDone = vi.fn(() => Promise.resolve());
  readonly api = {
    put: (path: string, body: { change: string; answers: unknown }) => {
      this.got.push([path, body]);
      return Promise.resolve().then(this.answers.shift() ?? (() => ({ change: body.change, version: 1 })));
    },
  } as unknown as Api;
  active = () => 7;
}
const refuse = (code: Problem["code"]) => () => {
  throw new Refusal({ code, say: "No.", missing: [] });
};
const gone = () => {
  throw new Unreachable("away");
};

let server: Server;
beforeEach(() => {
  kept.clear();
  server = new Server();
  vi.stubGlobal("localStorage", device);
});
function at(survey = SURVEY): Way {
  const way = new Way(server);
  way.show(survey, "a");
  return way;
}

test("what is missing is led to, and nothing is sent", async () => {
  const way = at();
  way.answer("age", "30");
  await way.done();
  expect([way.wanted, server.got.length]).toEqual(["sport", 0]);
  way.answer("sport", "chess");
  expect(way.wanted).toBeUndefined();
});

test("answers are kept on the device until the server has them, and then struck out", async () => {
  at().answer("age", "30");
  const way = at(); // after a reload
  expect(way.draft).toMatchObject({ answers: { age: "30" }, active: 7 });
  way.answer("sport", "chess");
  await way.done();
  expect(server.got[0]).toMatchObject(["/api/steps/survey", { answers: { age: "30", sport: "chess" } }]);
  expect([server.stepDone.mock.calls.length, kept.size]).toEqual([1, 0]);
});

test("a page that could not be sent is sent again, also by the next window, as the same change", async () => {
  server.answers = [gone];
  const way = at(page("intro", { kind: "intro" }));
  await way.done();
  expect([way.sending, way.retryAt !== undefined, server.stepDone.mock.calls.length]).toEqual([true, true, 0]);
  const again = at(page("intro", { kind: "intro" }));
  await again.resume();
  expect(new Set(server.got.map(([, { change }]) => change)).size).toBe(1);
  expect(server.stepDone).toHaveBeenCalledOnce();
  way.show(page("other"), "a"); // lets go of the timer
});

test("a page that was done elsewhere leads on; any other refusal is said and can be tried again", async () => {
  server.answers = [refuse("refused"), refuse("not-found")];
  const way = at(page("intro", { kind: "intro" }));
  await way.done();
  expect([way.problem?.say, way.sending, server.stepDone.mock.calls.length]).toEqual(["No.", false, 0]);
  await way.done();
  expect([way.problem, server.stepDone.mock.calls.length]).toEqual([undefined, 1]);
});

test("examples are turned one by one, also over a reload", () => {
  at().turn(2, true);
  expect(at().draft).toMatchObject({ at: 2, open: true });
});

test("which solution is looked at is one person's own", () => {
  new Looking(device).set("a", "t1");
  expect([new Looking(device).at("a"), new Looking(device).at("b"), new Looking(undefined).at("a")]).toEqual([
    "t1",
    undefined,
    undefined,
  ]);
});
