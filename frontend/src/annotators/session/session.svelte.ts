import { Refusal } from "../../lib/api";
import type {
  Brief,
  Code,
  Ending,
  Entry,
  Feedback,
  Me,
  NextResponse,
  ErrorResponse,
  Saved,
  Task,
  Welcome,
} from "../../lib/api-types";
import { update } from "../work/update";
import { fromWire, patched, sourcesOf, workFromWire, type Key, type Patch } from "../work/work";
import { channel, type Message } from "../sync/channel";
import { newId } from "../sync/ids";
import { Journal } from "../sync/journal";
import { EMPTY, known, unsent, type Outbox } from "../sync/outbox";
import { Sender } from "../sync/sender";
import { openStore } from "../sync/store";
import { deviceStorage } from "../../lib/device-storage";
import { Onboarding } from "../onboarding/onboarding.svelte";
import { SolutionBookmark } from "../onboarding/solution-bookmark";

import { entriesOf, versionsOf } from "./task-entries";
import { TaskSaving } from "./task-saving.svelte";

const VISITED = "finecomb-visited";

/** What is on the screen: before the study, on the way, at work, or why there is nothing to do. */
export type Screen =
  | "loading"
  | "join"
  | "declined"
  | "step"
  | "task"
  | "feedback"
  | "none-now"
  | "end"
  | "signed-out"
  | "paused"
  | "closed"
  | "ended"
  | "unreachable";

/** An exercise that was handed in, with its solution. */
export interface GradedExercise {
  readonly task: Task;
  readonly feedback: Feedback;
}

const RETRY = 4000; // ms
/** Problems that pass by themselves. */
const PASSING: readonly Code[] = ["failed", "too-many"];
/** Screens that stay while the server cannot be reached. */
const KEPT: readonly Screen[] = ["task", "step", "feedback"];

/** Who is signed in, and which page they are at. */
export class Session extends TaskSaving {
  page = $state<Screen>("loading");
  welcome = $state.raw<Welcome>();
  /** A problem that is about the whole page, in the server's words. */
  problem = $state.raw<ErrorResponse>();
  /** How somebody's part ended who does not agree to take part. */
  ending = $state.raw<Ending>();
  /** An exercise that is looked at after it was handed in. */
  exercise = $state.raw<GradedExercise>();
  /** The server does not answer for the moment; it is asked again every few seconds. */
  stalled = $state(false);
  readonly onboarding = new Onboarding(this);
  private readonly bookmark = new SolutionBookmark(deviceStorage());
  private handedIn: string | undefined;

  /** Begin: open the store, see who is signed in, show the text they are at. */
  async begin(): Promise<void> {
    this.store = await openStore();
    this.sender = new Sender(this.store, this.api, this, () => this.signIn(), newId, new Journal(deviceStorage()));
    await this.sender.recover();
    this.post = channel((message) => this.heard(message));
    this.post({ type: "hello" });
    addEventListener("online", () => (this.sender.go(), this.onboarding.retry()));
    addEventListener("offline", () => void this.sender.tell());
    addEventListener("pageshow", (event) => event.persisted && this.page !== "join" && void this.enter());
    this.clock.watch(() => this.keep());
    if (location.pathname.startsWith("/join/")) await this.greet();
    else await this.enter();
  }

  /** Show what the link opens. */
  async greet(): Promise<void> {
    await this.guarded(async () => {
      this.welcome = await this.api.get<Welcome>(joining());
      this.page = "join";
    });
    if (this.problem) this.page = "join";
  }

  /** Follow the link that was opened; `code` is the one shown in the browser in which somebody began. */
  async join(code = ""): Promise<void> {
    await this.guarded(async () => {
      await this.api.post(joining("", code));
      history.replaceState(null, "", "/");
      await this.enter();
    });
  }

  /** Do not take part: nothing is kept. */
  async decline(): Promise<void> {
    await this.guarded(async () => {
      this.ending = await this.api.post<Ending>(joining("/decline"));
      this.page = "declined";
    });
  }

  /** Show what somebody is at, or why there is nothing. */
  async enter(): Promise<void> {
    await this.guarded(async () => {
      await this.signIn();
      this.sender.go();
      const seen = this.bookmark.at(this.me!.annotator);
      if (seen) await this.look(seen);
      else await this.next();
    });
  }

  /** The next page or text. */
  async next(): Promise<void> {
    await this.guarded(async () => {
      const before = await this.store.outboxes();
      const { task, page, why } = await this.api.post<NextResponse>("/api/next");
      if (task) return this.show(task, before.get(task.id));
      await this.signIn();
      this.task = this.exercise = undefined;
      if (page) return this.showStep(page);
      if (this.me?.ending || why === "all-done" || why === "screened-out") this.page = "end";
      else this.page = why === "paused" || why === "closed" || why === "ended" ? why : "none-now";
    });
  }

  /** An exercise that was handed in, with its solution. */
  async look(id: string): Promise<void> {
    await this.guarded(async () => {
      const looked = await this.solution(id).catch((error: unknown) => {
        if (error instanceof Refusal) return undefined; // not ours, or of an earlier study on this device
        throw error;
      });
      if (!looked) return this.leaveSolution();
      this.exercise = looked;
      this.bookmark.set(this.me!.annotator, id);
      this.page = "feedback";
    });
  }

  /** An exercise with its solution, to be looked at. */
  async solution(id: string): Promise<GradedExercise> {
    const [task, feedback] = await Promise.all([
      this.api.get<Task>(`/api/tasks/${id}`),
      this.api.get<Feedback>(`/api/tasks/${id}/feedback`),
    ]);
    return { task, feedback };
  }

  /** The right answers of the present exercise, where they may be compared before it is handed in. */
  async rightAnswers(): Promise<Feedback | undefined> {
    let right: Feedback | undefined;
    await this.guarded(async () => {
      right = await this.api.get<Feedback>(`/api/tasks/${this.task!.id}/feedback`);
    });
    return right;
  }

  /** The solution was looked at. */
  async leaveSolution(): Promise<void> {
    this.bookmark.strike(this.me!.annotator);
    await this.next();
  }

  /** A page was done: the server has it on disk. */
  async stepDone(): Promise<void> {
    this.post({ type: "moved" });
    await this.next();
  }

  /** Leave a text that went to somebody else. */
  async leave(): Promise<void> {
    await this.sender.abandon(this.task!.id);
    await this.next();
  }

  /** A text that was begun or handed in before. */
  async open(id: string): Promise<void> {
    await this.guarded(async () => {
      const before = await this.store.outboxes();
      await this.show(await this.api.get<Task>(`/api/tasks/${id}`), before.get(id));
    });
  }

  /** Take back that the text was handed in. */
  async reopen(): Promise<void> {
    const task = this.task!;
    await this.guarded(async () => {
      await this.api.put<Saved>(`/api/tasks/${task.id}/reopen`, { change: newId(), active: this.clock.seconds });
      this.sender.resume(task.id);
      await this.signIn();
      await this.open(task.id);
    });
  }

  /** After a refusal: what the server has takes the place of the change. Where it did not say what it has, it is asked. */
  async takeStored(key: Key, said: Entry | null | undefined): Promise<void> {
    const { id } = this.task!;
    await this.guarded(async () => {
      const stored = said ?? entriesOf(await this.api.get<Task>(`/api/tasks/${id}`)).get(key);
      if (!(await this.sender.take(id, key, stored?.version)) || this.task?.id !== id) return;
      const patch = { [key]: fromWire(key, stored?.body ?? null, this.sources) } as Patch;
      this.state = update(this.state, { type: "received", patch });
    });
  }

  finished(task: string): void {
    this.post({ type: "sent" });
    this.setStatus(task, "submitted");
    if (task !== this.task?.id || !this.handingIn) return;
    this.handingIn = false;
    this.handedIn = task;
    void this.afterwards();
  }

  /** After training comes the solution, unless it was seen already; after everything else, what is next. */
  private async afterwards(): Promise<void> {
    const { id, phase, practice } = this.task!;
    if (phase === "training" && !practice?.verify) await this.look(id);
    else await this.next();
  }

  private async showStep(page: NonNullable<NextResponse["page"]>): Promise<void> {
    const active = this.onboarding.show(page, this.me!.annotator);
    this.clock.begin(active);
    this.page = "step";
    await this.onboarding.resume();
  }

  private async signIn(): Promise<void> {
    this.me = await this.api.get<Me>("/api/me");
    this.api.token = this.me.csrf;
    deviceStorage()?.setItem(VISITED, "1");
  }

  /** Whether nobody was ever signed in here: who comes for the first time is not signed out. */
  get isNew(): boolean {
    return this.saving.unsent === 0 && deviceStorage()?.getItem(VISITED) !== "1";
  }

  private setStatus(id: string, status: Brief["status"]): void {
    if (this.me)
      this.me = { ...this.me, tasks: this.me.tasks.map((task) => (task.id === id ? { ...task, status } : task)) };
  }

  /**
   * Put a text on the page: what the server has, and on top of it what this device has not sent yet. What arrived there
   * after the server had answered is neither in its answer nor unsent any more; `before` still has it.
   */
  private async show(task: Task, before: Outbox = EMPTY): Promise<void> {
    const sources = sourcesOf(task);
    const versions = versionsOf(task);
    const waiting = await this.store.change(task.id, (outbox) => [known(outbox, versions), outbox]);
    const local = await this.store.local(task.id);
    const arrived = [...unsent(before)].filter(([key]) => (versions[key] ?? 0) < (waiting.versions[key] ?? 0));
    const patch = Object.fromEntries(
      [...arrived, ...unsent(waiting)].map(([key, body]) => [key, fromWire(key, body, sources)]),
    );
    this.segmented.clear();
    this.clock.begin(Math.max(task.active, local?.active ?? 0));
    this.partBegan = this.clock.seconds;
    this.handingIn = waiting.changes.some((change) => change.key === "finish");
    this.declined = undefined;
    this.refusedHints = local?.refusedHints ?? [];
    this.state = {
      work: patched(workFromWire(task, sources), patch as Patch),
      past: local?.past ?? [],
      future: local?.future ?? [],
    };
    if (this.page === "step" || this.page === "feedback") await this.signIn(); // how many texts are ahead is known now
    this.task = task;
    this.exercise = undefined;
    this.noteTask(task);
    const first = this.parts.findIndex((part) => this.state.work[part.key] === undefined);
    const at = first < 0 ? Math.max(0, this.parts.length - 1) : first;
    this.awaited = undefined;
    this.partAt = Math.min(at, this.lastPart());
    this.page = "task";
    this.sender.go();
    if (at > this.partAt) void this.reach(at); // what was judged here has yet to arrive there
  }

  /** The last part whose words are here. */
  private lastPart(): number {
    const ahead = this.parts.findIndex((_, index) => !this.hasPart(index));
    return Math.max(0, ahead < 0 ? this.parts.length - 1 : ahead - 1);
  }

  /** A new text is in the list of this annotator from now on. */
  private noteTask({ id, number, status, phase }: Task): void {
    if (phase === "work" && this.me && !this.me.tasks.some((task) => task.id === id))
      this.me = { ...this.me, tasks: [...this.me.tasks, { id, number, status }] };
  }

  private heard(message: Message): void {
    if (message.type === "hello") this.post({ type: "here" });
    this.elsewhere = true;
    if (message.type === "moved" && this.page === "step") void this.next();
    if (message.type === "changed" && message.task === this.task?.id) {
      const patch = { [message.key]: fromWire(message.key, message.body, this.sources) } as Patch;
      this.state = update(this.state, { type: "received", patch });
    }
    void this.sender.tell();
  }

  /** Ask the server for something; where it cannot be given, the page says why. */
  private async guarded(ask: () => Promise<void>): Promise<void> {
    try {
      this.problem = undefined;
      this.stalled = false;
      await ask();
    } catch (error) {
      const problem = error instanceof Refusal ? error.problem : undefined;
      if (!problem || PASSING.includes(problem.code)) return this.stall();
      this.problem = problem;
      const { code } = problem;
      if (code === "signed-out" || code === "paused" || code === "closed") this.page = code;
    }
  }

  /** The server does not answer for the moment: it is asked again soon. */
  private stall(): void {
    this.stalled = true;
    if (!KEPT.includes(this.page)) this.page = "unreachable";
    setTimeout(() => void this.retryPage(), RETRY);
  }

  private async retryPage(): Promise<void> {
    if (this.page === "unreachable") await (location.pathname.startsWith("/join/") ? this.greet() : this.enter());
    else if (this.page === "feedback") await this.leaveSolution();
    else if (this.page === "step") await this.next();
    else if (this.task?.id === this.handedIn) await this.afterwards();
  }
}

/** The address behind the link that was opened, with whatever a recruiting platform added to it. */
const joining = (more = "", code = ""): string => {
  const path = `/api/join/${encodeURIComponent(location.pathname.slice("/join/".length))}${more}${location.search}`;
  return code === "" ? path : `${path}${location.search === "" ? "?" : "&"}code=${encodeURIComponent(code)}`;
};
