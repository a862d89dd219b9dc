import { beforeEach, expect, test, vi } from "vitest";
import { ServerError, UnreachableError, type Api } from "../../lib/api";
import type { ErrorResponse } from "../../lib/api-types";
import { page, question } from "../work/fixtures";
import { Onboarding, type OnboardingHost } from "./onboarding.svelte";
import { SolutionBookmark } from "./solution-bookmark";

/** Browser storage, a server and an annotator. */
const kept = new Map<string, string>();
const device = {
  getItem: (name: string) => kept.get(name) ?? null,
  setItem: (name: string, value: string) => void kept.set(name, value),
  removeItem: (name: string) => void kept.delete(name),
} as unknown as Storage;
const SURVEY = page("survey", { kind: "survey", phase: "survey", questions: [question("age"), question("sport")] });

class Server implements OnboardingHost {
  answers: (() => unknown)[] = [];
  readonly got: [string, { change: string; answers: unknown }][] = [];
  readonly onStepDone = vi.fn(() => Promise.resolve());
  readonly api = {
    put: (path: string, body: { change: string; answers: unknown }) => {
      this.got.push([path, body]);
      return Promise.resolve().then(this.answers.shift() ?? (() => ({ change: body.change, version: 1 })));
    },
  } as unknown as Api;
  activeSeconds = () => 7;
}
const refuse = (code: ErrorResponse["code"]) => () => {
  throw new ServerError({ code, say: "No.", missing: [] });
};
const gone = () => {
  throw new UnreachableError("away");
};

let server: Server;
beforeEach(() => {
  kept.clear();
  server = new Server();
  vi.stubGlobal("localStorage", device);
});
function at(survey = SURVEY): Onboarding {
  const onboarding = new Onboarding(server);
  onboarding.showPage(survey, "a");
  return onboarding;
}

test("a missing answer gets the focus and prevents sending", async () => {
  const onboarding = at();
  onboarding.setAnswer("age", "30");
  await onboarding.finishPage();
  expect([onboarding.highlightedQuestion, server.got.length]).toEqual(["sport", 0]);
  onboarding.setAnswer("sport", "chess");
  expect(onboarding.highlightedQuestion).toBeUndefined();
});

test("answers are stored until the server has them, then deleted", async () => {
  at().setAnswer("age", "30");
  const onboarding = at(); // after a reload
  expect(onboarding.draft).toMatchObject({ answers: { age: "30" }, active: 7 });
  onboarding.setAnswer("sport", "chess");
  await onboarding.finishPage();
  expect(server.got[0]).toMatchObject(["/api/steps/survey", { answers: { age: "30", sport: "chess" } }]);
  expect([server.onStepDone.mock.calls.length, kept.size]).toEqual([1, 0]);
});

test("a page that could not be sent is retried with the same ID, also by the next window", async () => {
  server.answers = [gone];
  const onboarding = at(page("intro", { kind: "intro" }));
  await onboarding.finishPage();
  expect([onboarding.isSending, onboarding.retryAt !== undefined, server.onStepDone.mock.calls.length]).toEqual([
    true,
    true,
    0,
  ]);
  const again = at(page("intro", { kind: "intro" }));
  await again.resumeSending();
  expect(new Set(server.got.map(([, { change }]) => change)).size).toBe(1);
  expect(server.onStepDone).toHaveBeenCalledOnce();
  onboarding.showPage(page("other"), "a"); // clears the timer
});

test("a page submitted elsewhere is skipped; other rejections are shown and can be retried", async () => {
  server.answers = [refuse("refused"), refuse("not-found")];
  const onboarding = at(page("intro", { kind: "intro" }));
  await onboarding.finishPage();
  expect([onboarding.problem?.say, onboarding.isSending, server.onStepDone.mock.calls.length]).toEqual([
    "No.",
    false,
    0,
  ]);
  await onboarding.finishPage();
  expect([onboarding.problem, server.onStepDone.mock.calls.length]).toEqual([undefined, 1]);
});

test("a guess is sent before the answer arrives, and a rejection is shown", async () => {
  const answered = page("examples-1", { kind: "examples", is_open: true, guess: 4 });
  server.answers = [refuse("refused"), () => answered];
  const onboarding = at(page("examples-1", { kind: "examples" }));
  await onboarding.sendGuess(undefined);
  expect([onboarding.problem?.say, onboarding.page?.is_open]).toEqual(["No.", false]);
  await onboarding.sendGuess(4);
  expect([onboarding.problem, onboarding.page]).toEqual([undefined, answered]);
});

test("the solution bookmark is stored per annotator", () => {
  new SolutionBookmark(device).write("a", "t1");
  expect([
    new SolutionBookmark(device).read("a"),
    new SolutionBookmark(device).read("b"),
    new SolutionBookmark(undefined).read("a"),
  ]).toEqual(["t1", undefined, undefined]);
});
