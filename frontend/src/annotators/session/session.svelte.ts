import { Api, ServerError } from "../../lib/api";
import type {
  Code,
  Ending,
  Entry,
  Feedback,
  NextResponse,
  ErrorResponse,
  SaveResponse,
  Task,
  Welcome,
} from "../../lib/api-types";
import { entryFromWire, applyPatch, taskSources, workFromWire, type EntryKey, type Patch } from "../work/work";
import { type TabMessage } from "../sync/tab-channel";
import { newId } from "../sync/ids";
import { EMPTY_OUTBOX, mergeVersions, unsentBodies, type Outbox } from "../sync/outbox";
import { deviceStorage } from "../../lib/device-storage";
import { Onboarding } from "../onboarding/onboarding.svelte";
import { SolutionBookmark } from "../onboarding/solution-bookmark";

import { Account } from "./account.svelte";
import { ActivityClock } from "./activity-clock";
import { PartNavigation } from "./part-navigation.svelte";
import { SyncConnection } from "./sync-connection";
import { TaskChanges } from "./task-changes";
import { taskEntries, taskVersions } from "./task-entries";
import { TaskState } from "./task-state.svelte";

/** Current screen: consent, onboarding, work, or the reason why there is nothing to do. */
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

/** Submitted exercise with its solution. */
export interface GradedExercise {
  readonly task: Task;
  readonly feedback: Feedback;
}

const RETRY_DELAY = 4000; // ms
/** Problems that are temporary. */
const TEMPORARY_CODES: readonly Code[] = ["failed", "too-many"];
/** Screens that stay visible while the server cannot be reached. */
const SCREENS_USABLE_OFFLINE: readonly Screen[] = ["task", "step", "feedback"];

/** Session of an annotator: the current page, and how to get from one page to the next. */
export class Session {
  page = $state<Screen>("loading");
  welcome = $state.raw<Welcome>();
  /** Problem that concerns the whole page, in the words of the server. */
  problem = $state.raw<ErrorResponse>();
  /** Ending shown to a person who declined to take part. */
  ending = $state.raw<Ending>();
  /** Submitted exercise that is being reviewed. */
  gradedExercise = $state.raw<GradedExercise>();
  /** True while the server is not responding; it is polled every few seconds. */
  isStalled = $state(false);
  /** True while another tab shows the same study. */
  isOpenElsewhere = $state(false);

  private readonly api = new Api();
  private readonly clock = new ActivityClock();
  private readonly connection = new SyncConnection(this.api);
  readonly account = new Account(this.api);
  readonly current = new TaskState(this.account);
  readonly changes = new TaskChanges(this.current, this.connection, this.clock);
  readonly navigation = new PartNavigation(this.api, this.current, this.changes, this.clock);
  readonly onboarding = new Onboarding({
    api: this.api,
    activeSeconds: () => this.clock.read(),
    onStepDone: () => this.onStepDone(),
  });
  private readonly bookmark = new SolutionBookmark(deviceStorage());
  private submittedTask: string | undefined;

  /** Open the store, sign in, and show the current text. */
  async start(): Promise<void> {
    const { connection } = this;
    await connection.open(
      {
        setSaving: (saving) => (this.current.saving = saving),
        onSaved: (task, key) => this.navigation.onSaved(task, key),
        onFinished: (task) => this.onFinished(task),
        onIncomplete: (task, missing) => this.changes.onIncomplete(task, missing),
      },
      () => this.account.signIn(),
      (message) => this.receiveMessage(message),
    );
    connection.broadcast({ type: "hello" });
    addEventListener("online", () => (connection.sender.sendNow(), this.onboarding.retryNow()));
    addEventListener("offline", () => void connection.sender.reportStatus());
    addEventListener("pageshow", (event) => event.persisted && this.page !== "join" && void this.resumeWork());
    this.clock.watch(() => this.changes.saveLocalState());
    if (location.pathname.startsWith("/join/")) await this.showWelcome();
    else await this.resumeWork();
  }

  /** Show the first page of the link. */
  async showWelcome(): Promise<void> {
    await this.runRequest(async () => {
      this.welcome = await this.api.get<Welcome>(joinPath());
      this.page = "join";
    });
    if (this.problem) this.page = "join";
  }

  /** Follow the opened link. `code` is shown in the browser where the annotator started. */
  async joinStudy(code = ""): Promise<void> {
    await this.runRequest(async () => {
      await this.api.post(joinPath("", code));
      history.replaceState(null, "", "/");
      await this.resumeWork();
    });
  }

  /** Decline to take part; no data is stored. */
  async declineStudy(): Promise<void> {
    await this.runRequest(async () => {
      this.ending = await this.api.post<Ending>(joinPath("/decline"));
      this.page = "declined";
    });
  }

  /** Show the current page or text, or the reason why there is none. */
  async resumeWork(): Promise<void> {
    await this.runRequest(async () => {
      await this.account.signIn();
      this.connection.sender.sendNow();
      const solutionTask = this.bookmark.read(this.account.me!.annotator);
      if (solutionTask) await this.showSolution(solutionTask);
      else await this.showNext();
    });
  }

  /** Load the next page or text. */
  async showNext(): Promise<void> {
    await this.runRequest(async () => {
      const before = await this.connection.store.readOutboxes();
      const { task, page, why } = await this.api.post<NextResponse>("/api/next");
      if (task) return this.showTask(task, before.get(task.id));
      await this.account.signIn();
      this.current.setTask(undefined);
      this.gradedExercise = undefined;
      if (page) return this.showStep(page);
      if (this.account.me?.ending || why === "all-done" || why === "screened-out") this.page = "end";
      else this.page = why === "paused" || why === "closed" || why === "ended" ? why : "none-now";
    });
  }

  /** Return a submitted exercise with its solution. */
  async showSolution(id: string): Promise<void> {
    await this.runRequest(async () => {
      const exercise = await this.fetchSolution(id).catch((error: unknown) => {
        if (error instanceof ServerError) return undefined; // not this annotator's, or from an earlier study on this device
        throw error;
      });
      if (!exercise) return this.leaveSolution();
      this.gradedExercise = exercise;
      this.bookmark.write(this.account.me!.annotator, id);
      this.page = "feedback";
    });
  }

  /** Show an exercise with its solution. */
  async fetchSolution(id: string): Promise<GradedExercise> {
    const [task, feedback] = await Promise.all([
      this.api.get<Task>(`/api/tasks/${id}`),
      this.api.get<Feedback>(`/api/tasks/${id}/feedback`),
    ]);
    return { task, feedback };
  }

  /** Return the correct answers of the current exercise if they may be compared before submission. */
  async fetchRightAnswers(): Promise<Feedback | undefined> {
    let right: Feedback | undefined;
    await this.runRequest(async () => {
      right = await this.api.get<Feedback>(`/api/tasks/${this.current.task!.id}/feedback`);
    });
    return right;
  }

  /** Leave the solution. */
  async leaveSolution(): Promise<void> {
    this.bookmark.remove(this.account.me!.annotator);
    await this.showNext();
  }

  /** Continue after the server has stored the page. */
  private async onStepDone(): Promise<void> {
    this.connection.broadcast({ type: "moved" });
    await this.showNext();
  }

  /** Leave a text that was reassigned. */
  async leaveTask(): Promise<void> {
    await this.connection.sender.abandonTask(this.current.task!.id);
    await this.showNext();
  }

  /** Open a text that is in progress or was submitted. */
  async openTask(id: string): Promise<void> {
    await this.runRequest(async () => {
      const before = await this.connection.store.readOutboxes();
      await this.showTask(await this.api.get<Task>(`/api/tasks/${id}`), before.get(id));
    });
  }

  /** Reopen a submitted text. */
  async reopenTask(): Promise<void> {
    const task = this.current.task!;
    await this.runRequest(async () => {
      await this.api.put<SaveResponse>(`/api/tasks/${task.id}/reopen`, { change: newId(), active: this.clock.seconds });
      this.connection.sender.resumeTask(task.id);
      await this.account.signIn();
      await this.openTask(task.id);
    });
  }

  /** After a rejection, replace the change by the server's version, which is requested if unknown. */
  async acceptStored(key: EntryKey, reported: Entry | null | undefined): Promise<void> {
    const { id } = this.current.task!;
    await this.runRequest(async () => {
      const stored = reported ?? taskEntries(await this.api.get<Task>(`/api/tasks/${id}`)).get(key);
      if (!(await this.connection.sender.dropRefused(id, key, stored?.version)) || this.current.task?.id !== id) return;
      this.current.receiveEntry(key, stored?.body ?? null);
    });
  }

  private onFinished(task: string): void {
    this.connection.broadcast({ type: "sent" });
    this.account.setTaskStatus(task, "submitted");
    if (task !== this.current.task?.id || !this.current.isSubmitting) return;
    this.current.isSubmitting = false;
    this.submittedTask = task;
    void this.continueAfterSubmit();
  }

  /** Show the solution after training unless it was seen; otherwise load what comes next. */
  private async continueAfterSubmit(): Promise<void> {
    const { id, phase, practice } = this.current.task!;
    if (phase === "training" && !practice?.verify) await this.showSolution(id);
    else await this.showNext();
  }

  private async showStep(page: NonNullable<NextResponse["page"]>): Promise<void> {
    const active = this.onboarding.showPage(page, this.account.me!.annotator);
    this.clock.start(active);
    this.page = "step";
    await this.onboarding.resumeSending();
  }

  /** Return true if no annotator was ever signed in here, so that a first visit does not say "signed out". */
  get isFirstVisit(): boolean {
    return this.current.saving.unsentCount === 0 && !this.account.hasVisited;
  }

  /**
   * Show a text: the server's version with unsent changes of this browser on top. A change that arrived after the
   * server's response is in neither, so it is taken from `before`.
   */
  private async showTask(task: Task, before: Outbox = EMPTY_OUTBOX): Promise<void> {
    const { current, connection } = this;
    const sources = taskSources(task);
    const versions = taskVersions(task);
    const outbox = await connection.store.updateOutbox(task.id, (outbox) => [mergeVersions(outbox, versions), outbox]);
    const local = await connection.store.readLocalState(task.id);
    const arrived = [...unsentBodies(before)].filter(([key]) => (versions[key] ?? 0) < (outbox.versions[key] ?? 0));
    const patch = Object.fromEntries(
      [...arrived, ...unsentBodies(outbox)].map(([key, body]) => [key, entryFromWire(key, body, sources)]),
    );
    const seconds = Math.max(task.active, local?.active ?? 0);
    this.clock.start(seconds);
    current.isSubmitting = outbox.changes.some((change) => change.key === "finish");
    current.missingOnServer = undefined;
    current.refusedHints = local?.refusedHints ?? [];
    current.state = {
      work: applyPatch(workFromWire(task, sources), patch as Patch),
      past: local?.past ?? [],
      future: local?.future ?? [],
    };
    if (this.page === "step" || this.page === "feedback") await this.account.signIn(); // the number of texts is known now
    current.setTask(task);
    this.gradedExercise = undefined;
    this.account.addTask(task);
    this.page = "task";
    connection.sender.sendNow();
    this.navigation.openFirstUnjudged(seconds);
  }

  private receiveMessage(message: TabMessage): void {
    if (message.type === "hello") this.connection.broadcast({ type: "here" });
    this.isOpenElsewhere = true;
    if (message.type === "moved" && this.page === "step") void this.showNext();
    if (message.type === "changed" && message.task === this.current.task?.id)
      this.current.receiveEntry(message.key, message.body);
    void this.connection.sender.reportStatus();
  }

  /** Request data; on failure, show the reason. */
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

  /** Poll again soon, because the server is not responding. */
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
    else if (this.current.task?.id === this.submittedTask) await this.continueAfterSubmit();
  }
}

/** Path of the opened link, with parameters of the recruitment platform. */
const joinPath = (more = "", code = ""): string => {
  const path = `/api/join/${encodeURIComponent(location.pathname.slice("/join/".length))}${more}${location.search}`;
  return code === "" ? path : `${path}${location.search === "" ? "?" : "&"}code=${encodeURIComponent(code)}`;
};
