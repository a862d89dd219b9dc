import { ServerError } from "../../lib/api";
import type {
  TaskSummary,
  Code,
  Ending,
  Entry,
  Feedback,
  Me,
  NextResponse,
  ErrorResponse,
  SaveResponse,
  Task,
  Welcome,
} from "../../lib/api-types";
import { updateWork } from "../work/update-work";
import { entryFromWire, applyPatch, taskSources, workFromWire, type EntryKey, type Patch } from "../work/work";
import { openTabChannel, type TabMessage } from "../sync/tab-channel";
import { newId } from "../sync/ids";
import { Journal } from "../sync/journal";
import { EMPTY_OUTBOX, mergeVersions, unsentBodies, type Outbox } from "../sync/outbox";
import { Sender } from "../sync/sender";
import { openStore } from "../sync/store";
import { deviceStorage } from "../../lib/device-storage";
import { Onboarding } from "../onboarding/onboarding.svelte";
import { SolutionBookmark } from "../onboarding/solution-bookmark";

import { taskEntries, taskVersions } from "./task-entries";
import { TaskSaving } from "./task-saving.svelte";

const VISITED_STORAGE_KEY = "finecomb-visited";

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

const RETRY_DELAY = 4000; // ms
/** Problems that pass by themselves. */
const TEMPORARY_CODES: readonly Code[] = ["failed", "too-many"];
/** Screens that stay while the server cannot be reached. */
const SCREENS_USABLE_OFFLINE: readonly Screen[] = ["task", "step", "feedback"];

/** Who is signed in, and which page they are at. */
export class Session extends TaskSaving {
  page = $state<Screen>("loading");
  welcome = $state.raw<Welcome>();
  /** A problem that is about the whole page, in the server's words. */
  problem = $state.raw<ErrorResponse>();
  /** How somebody's part ended who does not agree to take part. */
  ending = $state.raw<Ending>();
  /** An exercise that is looked at after it was handed in. */
  gradedExercise = $state.raw<GradedExercise>();
  /** The server does not answer for the moment; it is asked again every few seconds. */
  isStalled = $state(false);
  readonly onboarding = new Onboarding(this);
  private readonly bookmark = new SolutionBookmark(deviceStorage());
  private submittedTask: string | undefined;

  /** Begin: open the store, see who is signed in, show the text they are at. */
  async start(): Promise<void> {
    this.store = await openStore();
    this.sender = new Sender(this.store, this.api, this, () => this.signIn(), newId, new Journal(deviceStorage()));
    await this.sender.recoverJournal();
    this.broadcast = openTabChannel((message) => this.receiveMessage(message));
    this.broadcast({ type: "hello" });
    addEventListener("online", () => (this.sender.sendNow(), this.onboarding.retryNow()));
    addEventListener("offline", () => void this.sender.reportStatus());
    addEventListener("pageshow", (event) => event.persisted && this.page !== "join" && void this.resumeWork());
    this.clock.watch(() => this.saveLocalState());
    if (location.pathname.startsWith("/join/")) await this.showWelcome();
    else await this.resumeWork();
  }

  /** Show what the link opens. */
  async showWelcome(): Promise<void> {
    await this.runRequest(async () => {
      this.welcome = await this.api.get<Welcome>(joinPath());
      this.page = "join";
    });
    if (this.problem) this.page = "join";
  }

  /** Follow the link that was opened; `code` is the one shown in the browser in which somebody began. */
  async joinStudy(code = ""): Promise<void> {
    await this.runRequest(async () => {
      await this.api.post(joinPath("", code));
      history.replaceState(null, "", "/");
      await this.resumeWork();
    });
  }

  /** Do not take part: nothing is kept. */
  async declineStudy(): Promise<void> {
    await this.runRequest(async () => {
      this.ending = await this.api.post<Ending>(joinPath("/decline"));
      this.page = "declined";
    });
  }

  /** Show what somebody is at, or why there is nothing. */
  async resumeWork(): Promise<void> {
    await this.runRequest(async () => {
      await this.signIn();
      this.sender.sendNow();
      const solutionTask = this.bookmark.read(this.me!.annotator);
      if (solutionTask) await this.showSolution(solutionTask);
      else await this.showNext();
    });
  }

  /** The next page or text. */
  async showNext(): Promise<void> {
    await this.runRequest(async () => {
      const before = await this.store.readOutboxes();
      const { task, page, why } = await this.api.post<NextResponse>("/api/next");
      if (task) return this.showTask(task, before.get(task.id));
      await this.signIn();
      this.task = this.gradedExercise = undefined;
      if (page) return this.showStep(page);
      if (this.me?.ending || why === "all-done" || why === "screened-out") this.page = "end";
      else this.page = why === "paused" || why === "closed" || why === "ended" ? why : "none-now";
    });
  }

  /** An exercise that was handed in, with its solution. */
  async showSolution(id: string): Promise<void> {
    await this.runRequest(async () => {
      const exercise = await this.fetchSolution(id).catch((error: unknown) => {
        if (error instanceof ServerError) return undefined; // not ours, or of an earlier study on this device
        throw error;
      });
      if (!exercise) return this.leaveSolution();
      this.gradedExercise = exercise;
      this.bookmark.write(this.me!.annotator, id);
      this.page = "feedback";
    });
  }

  /** An exercise with its solution, to be looked at. */
  async fetchSolution(id: string): Promise<GradedExercise> {
    const [task, feedback] = await Promise.all([
      this.api.get<Task>(`/api/tasks/${id}`),
      this.api.get<Feedback>(`/api/tasks/${id}/feedback`),
    ]);
    return { task, feedback };
  }

  /** The right answers of the present exercise, where they may be compared before it is handed in. */
  async fetchRightAnswers(): Promise<Feedback | undefined> {
    let right: Feedback | undefined;
    await this.runRequest(async () => {
      right = await this.api.get<Feedback>(`/api/tasks/${this.task!.id}/feedback`);
    });
    return right;
  }

  /** The solution was looked at. */
  async leaveSolution(): Promise<void> {
    this.bookmark.remove(this.me!.annotator);
    await this.showNext();
  }

  /** A page was done: the server has it on disk. */
  async onStepDone(): Promise<void> {
    this.broadcast({ type: "moved" });
    await this.showNext();
  }

  /** Leave a text that went to somebody else. */
  async leaveTask(): Promise<void> {
    await this.sender.abandonTask(this.task!.id);
    await this.showNext();
  }

  /** A text that was begun or handed in before. */
  async openTask(id: string): Promise<void> {
    await this.runRequest(async () => {
      const before = await this.store.readOutboxes();
      await this.showTask(await this.api.get<Task>(`/api/tasks/${id}`), before.get(id));
    });
  }

  /** Take back that the text was handed in. */
  async reopenTask(): Promise<void> {
    const task = this.task!;
    await this.runRequest(async () => {
      await this.api.put<SaveResponse>(`/api/tasks/${task.id}/reopen`, { change: newId(), active: this.clock.seconds });
      this.sender.resumeTask(task.id);
      await this.signIn();
      await this.openTask(task.id);
    });
  }

  /** After a refusal: what the server has takes the place of the change. Where it did not say what it has, it is asked. */
  async acceptStored(key: EntryKey, reported: Entry | null | undefined): Promise<void> {
    const { id } = this.task!;
    await this.runRequest(async () => {
      const stored = reported ?? taskEntries(await this.api.get<Task>(`/api/tasks/${id}`)).get(key);
      if (!(await this.sender.dropRefused(id, key, stored?.version)) || this.task?.id !== id) return;
      const patch = { [key]: entryFromWire(key, stored?.body ?? null, this.sources) } as Patch;
      this.state = updateWork(this.state, { type: "received", patch });
    });
  }

  onFinished(task: string): void {
    this.broadcast({ type: "sent" });
    this.setTaskStatus(task, "submitted");
    if (task !== this.task?.id || !this.isSubmitting) return;
    this.isSubmitting = false;
    this.submittedTask = task;
    void this.continueAfterSubmit();
  }

  /** After training comes the solution, unless it was seen already; after everything else, what is next. */
  private async continueAfterSubmit(): Promise<void> {
    const { id, phase, practice } = this.task!;
    if (phase === "training" && !practice?.verify) await this.showSolution(id);
    else await this.showNext();
  }

  private async showStep(page: NonNullable<NextResponse["page"]>): Promise<void> {
    const active = this.onboarding.showPage(page, this.me!.annotator);
    this.clock.start(active);
    this.page = "step";
    await this.onboarding.resumeSending();
  }

  private async signIn(): Promise<void> {
    this.me = await this.api.get<Me>("/api/me");
    this.api.token = this.me.csrf;
    deviceStorage()?.setItem(VISITED_STORAGE_KEY, "1");
  }

  /** Whether nobody was ever signed in here: who comes for the first time is not signed out. */
  get isFirstVisit(): boolean {
    return this.saving.unsentCount === 0 && deviceStorage()?.getItem(VISITED_STORAGE_KEY) !== "1";
  }

  private setTaskStatus(id: string, status: TaskSummary["status"]): void {
    if (this.me)
      this.me = { ...this.me, tasks: this.me.tasks.map((task) => (task.id === id ? { ...task, status } : task)) };
  }

  /**
   * Put a text on the page: what the server has, and on top of it what this device has not sent yet. What arrived there
   * after the server had answered is neither in its answer nor unsent any more; `before` still has it.
   */
  private async showTask(task: Task, before: Outbox = EMPTY_OUTBOX): Promise<void> {
    const sources = taskSources(task);
    const versions = taskVersions(task);
    const outbox = await this.store.updateOutbox(task.id, (outbox) => [mergeVersions(outbox, versions), outbox]);
    const local = await this.store.readLocalState(task.id);
    const arrived = [...unsentBodies(before)].filter(([key]) => (versions[key] ?? 0) < (outbox.versions[key] ?? 0));
    const patch = Object.fromEntries(
      [...arrived, ...unsentBodies(outbox)].map(([key, body]) => [key, entryFromWire(key, body, sources)]),
    );
    this.segmentsByPart.clear();
    this.clock.start(Math.max(task.active, local?.active ?? 0));
    this.partStartSeconds = this.clock.seconds;
    this.isSubmitting = outbox.changes.some((change) => change.key === "finish");
    this.missingOnServer = undefined;
    this.refusedHints = local?.refusedHints ?? [];
    this.state = {
      work: applyPatch(workFromWire(task, sources), patch as Patch),
      past: local?.past ?? [],
      future: local?.future ?? [],
    };
    if (this.page === "step" || this.page === "feedback") await this.signIn(); // how many texts are ahead is known now
    this.task = task;
    this.gradedExercise = undefined;
    this.addTask(task);
    const first = this.parts.findIndex((part) => this.state.work[part.key] === undefined);
    const at = first < 0 ? Math.max(0, this.parts.length - 1) : first;
    this.awaitedPart = undefined;
    this.partIndex = Math.min(at, this.lastAvailablePart());
    this.page = "task";
    this.sender.sendNow();
    if (at > this.partIndex) void this.awaitPart(at); // what was judged here has yet to arrive there
  }

  /** The last part whose words are here. */
  private lastAvailablePart(): number {
    const ahead = this.parts.findIndex((_, index) => !this.hasPart(index));
    return Math.max(0, ahead < 0 ? this.parts.length - 1 : ahead - 1);
  }

  /** A new text is in the list of this annotator from now on. */
  private addTask({ id, number, status, phase }: Task): void {
    if (phase === "work" && this.me && !this.me.tasks.some((task) => task.id === id))
      this.me = { ...this.me, tasks: [...this.me.tasks, { id, number, status }] };
  }

  private receiveMessage(message: TabMessage): void {
    if (message.type === "hello") this.broadcast({ type: "here" });
    this.isOpenElsewhere = true;
    if (message.type === "moved" && this.page === "step") void this.showNext();
    if (message.type === "changed" && message.task === this.task?.id) {
      const patch = { [message.key]: entryFromWire(message.key, message.body, this.sources) } as Patch;
      this.state = updateWork(this.state, { type: "received", patch });
    }
    void this.sender.reportStatus();
  }

  /** Ask the server for something; where it cannot be given, the page says why. */
  private async runRequest(request: () => Promise<void>): Promise<void> {
    try {
      this.problem = undefined;
      this.isStalled = false;
      await request();
    } catch (error) {
      const problem = error instanceof ServerError ? error.problem : undefined;
      if (!problem || TEMPORARY_CODES.includes(problem.code)) return this.scheduleRetry();
      this.problem = problem;
      const { code } = problem;
      if (code === "signed-out" || code === "paused" || code === "closed") this.page = code;
    }
  }

  /** The server does not answer for the moment: it is asked again soon. */
  private scheduleRetry(): void {
    this.isStalled = true;
    if (!SCREENS_USABLE_OFFLINE.includes(this.page)) this.page = "unreachable";
    setTimeout(() => void this.retryPage(), RETRY_DELAY);
  }

  private async retryPage(): Promise<void> {
    if (this.page === "unreachable")
      await (location.pathname.startsWith("/join/") ? this.showWelcome() : this.resumeWork());
    else if (this.page === "feedback") await this.leaveSolution();
    else if (this.page === "step") await this.showNext();
    else if (this.task?.id === this.submittedTask) await this.continueAfterSubmit();
  }
}

/** The address behind the link that was opened, with whatever a recruiting platform added to it. */
const joinPath = (more = "", code = ""): string => {
  const path = `/api/join/${encodeURIComponent(location.pathname.slice("/join/".length))}${more}${location.search}`;
  return code === "" ? path : `${path}${location.search === "" ? "?" : "&"}code=${encodeURIComponent(code)}`;
};
