import { ServerError, UnreachableError, type Api } from "../../lib/api";
import type { Body, Code, ErrorResponse, SaveResponse } from "../../lib/api-types";
import { Journal, type JournalEntry } from "./journal";
import {
  startNextAttempt,
  dropChange,
  EMPTY_OUTBOX,
  enqueue,
  resendRefused,
  recoverChange,
  markRefused,
  confirmSaved,
  dropRefused,
  type QueuedChange,
} from "./outbox";
import type { Store } from "./store";

/** Save state for the top bar and the notes. */
export interface SavingStatus {
  readonly state: "saved" | "saving" | "queued" | "offline" | "unreachable" | "refused";
  /** Number of changes that the server does not have. */
  readonly unsentCount: number;
  /** Time of the next attempt, in the units of `Date.now()`. */
  readonly retryAt: number | undefined;
  readonly refusedChanges: readonly RefusedChange[];
  /** Reason why one task, or all of them, cannot be saved. */
  readonly haltCodeByTask: Readonly<Record<string, Code>>;
  readonly isPersistent: boolean;
}
export interface RefusedChange {
  readonly task: string;
  readonly key: QueuedChange["key"];
  readonly problem: ErrorResponse;
}
export interface SenderListener {
  setSaving(saving: SavingStatus): void;
  /** Called when the server has stored a change. */
  onSaved(task: string, key: string): void;
  /** Called when a task was submitted, or was rejected because answers are missing. */
  onFinished(task: string): void;
  onIncomplete(task: string, missing: readonly string[]): void;
}

const TYPING_DELAY = 400;
const MIN_RETRY_DELAY = 1000;
const MAX_RETRY_DELAY = 60_000;
const MIN_FAILURES_UNREACHABLE = 3; // consecutive failed attempts
const ENTRY_CODES: readonly Code[] = ["conflict", "refused", "too-large"];
const TASK_CODES: readonly Code[] = ["lease-over", "not-found", "finished", "closed"];

/** Return the pause before the next attempt after that many failures. */
export const retryDelay = (failures: number, random: number): number =>
  Math.min(MAX_RETRY_DELAY, MIN_RETRY_DELAY * 2 ** (failures - 1)) * (0.8 + 0.4 * random);

/** Sender of changes, one at a time, until the server has them all. */
export class Sender {
  private failures = 0;
  private isRunning = false;
  private isRequested = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private retryAt: number | undefined;
  private haltCodeByTask: Record<string, Code> = {};
  private disallowedChanges = new Set<string>(); // changes rejected once, possibly because the token expired
  private unstoredCount = 0; // changes that could not be stored; the journal keeps them for the next page
  private lastChangeTime = 0;

  constructor(
    private readonly store: Store,
    private readonly api: Pick<Api, "put">,
    private readonly listener: SenderListener,
    /** Sign in again and return a new token. */
    private readonly refreshToken: () => Promise<void>,
    private readonly makeId: () => string,
    private readonly journal = new Journal(undefined),
  ) {}

  /** Store a change and send it: immediately, or after a pause in typing. */
  async saveChange(
    task: string,
    key: QueuedChange["key"],
    body: Body | null,
    active: number,
    typing = false,
  ): Promise<void> {
    this.lastChangeTime = Math.max(Date.now(), this.lastChangeTime + 1);
    await this.storeChange({ task, key, body, active, change: this.makeId(), at: this.lastChangeTime }, enqueue);
    if (!typing) return this.sendNow();
    await this.reportStatus();
    if (this.retryAt !== undefined) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.sendNow(), TYPING_DELAY);
  }

  /** Recover changes that an earlier page noted but could not store before it was closed. */
  async recoverJournal(): Promise<void> {
    for (const [entry, remove] of this.journal.pendingEntries()) {
      remove();
      await this.storeChange(entry, recoverChange);
    }
  }

  private async storeChange(entry: JournalEntry, add: typeof enqueue): Promise<void> {
    const { task, ...change } = entry;
    const remove = this.journal.add(entry);
    try {
      await this.store.updateOutbox(task, (outbox) => [add(outbox, change), undefined]);
      remove();
    } catch (error) {
      this.unstoredCount += 1;
      console.error(error);
    }
  }

  /** Resend a rejected change on top of the server's version. */
  async resendRefused(task: string, key: string): Promise<void> {
    await this.store.updateOutbox(task, (outbox) => [resendRefused(outbox, key, this.makeId()), undefined]);
    this.sendNow();
  }

  /** Drop a change that was not sent or was rejected. */
  async dropChange(task: string, key: string): Promise<void> {
    await this.store.updateOutbox(task, (outbox) => [dropChange(outbox, key), undefined]);
    this.sendNow();
  }

  /** Drop a rejected change in favour of the server's version. Return false if it has changed. */
  async dropRefused(task: string, key: string, version: number | undefined): Promise<boolean> {
    const isDropped = await this.store.updateOutbox(task, (outbox) => dropRefused(outbox, key, version));
    this.sendNow();
    return isDropped;
  }

  /** Drop unsent changes of a reassigned task, after the annotator was told. */
  async abandonTask(task: string): Promise<void> {
    await this.store.updateOutbox(task, () => [EMPTY_OUTBOX, undefined]);
    this.resumeTask(task);
  }

  /** Resume a task, for example after it was reopened. */
  resumeTask(task: string): void {
    delete this.haltCodeByTask[task];
    this.sendNow();
  }

  /** Send waiting changes now. */
  sendNow(): void {
    clearTimeout(this.timer);
    this.retryAt = undefined;
    void this.sendAll();
  }

  /** Report the save state to the listener. */
  async reportStatus(): Promise<void> {
    const outboxes = [...(await this.store.readOutboxes())];
    const changes = outboxes.flatMap(([task, outbox]) => outbox.changes.map((change) => ({ task, ...change })));
    const refusedChanges = changes.flatMap(({ task, key, problem }) => (problem ? [{ task, key, problem }] : []));
    const unsentCount = changes.length - refusedChanges.length + this.unstoredCount;
    const strandedCount = changes.filter(({ task }) => this.haltCodeByTask[task]).length + this.unstoredCount;
    this.listener.setSaving({
      state: this.statusName(refusedChanges.length, unsentCount, strandedCount),
      unsentCount: unsentCount,
      retryAt: this.retryAt,
      refusedChanges: refusedChanges,
      haltCodeByTask: { ...this.haltCodeByTask },
      isPersistent: this.store.isPersistent && this.unstoredCount === 0,
    });
  }

  private statusName(refusedCount: number, unsentCount: number, strandedCount: number): SavingStatus["state"] {
    if (refusedCount > 0) return "refused";
    if (unsentCount === 0) return "saved";
    if (this.failures === 0) return strandedCount > 0 ? "queued" : "saving";
    if (globalThis.navigator?.onLine === false) return "offline";
    return this.failures >= MIN_FAILURES_UNREACHABLE ? "unreachable" : "queued";
  }

  private async sendAll(): Promise<void> {
    this.isRequested = true;
    if (this.isRunning) return;
    this.isRunning = true;
    try {
      while (this.isRequested) {
        this.isRequested = false; // set again by a caller that adds a change in the meantime
        while (await this.sendNext()) await this.reportStatus();
      }
    } catch (error) {
      console.error(error); // unexpected error; the change is still stored
      this.scheduleRetry();
    } finally {
      this.isRunning = false;
      await this.reportStatus();
    }
  }

  /**
   * Send one change. Return true if there may be more to send. Changes of another annotator in this browser stay
   * stored, because the server knows no such task for the signed-in annotator.
   */
  private async sendNext(): Promise<boolean> {
    if (this.retryAt !== undefined) return false;
    for (const [task] of await this.store.readOutboxes()) {
      if (this.haltCodeByTask[task]) continue;
      const queued = await this.store.updateOutbox(task, startNextAttempt);
      if (queued) return this.sendChange(task, queued);
    }
    return false;
  }

  private async sendChange(task: string, queued: QueuedChange): Promise<boolean> {
    const { key, change, base, body, active } = queued;
    const content = key === "finish" ? { change, active } : { change, base, body, active };
    await this.reportStatus();
    try {
      const saved = await this.api.put<SaveResponse>(`/api/tasks/${task}/${key}`, content);
      await this.store.updateOutbox(task, (outbox) => [confirmSaved(outbox, saved), undefined]);
      this.failures = 0;
      this.haltCodeByTask = Object.fromEntries(Object.entries(this.haltCodeByTask).filter(([where]) => where !== "*"));
      if (key === "finish") this.listener.onFinished(task);
      else this.listener.onSaved(task, key);
      return true;
    } catch (error) {
      if (error instanceof ServerError) return this.handleRefusal(task, queued, error.problem);
      if (error instanceof UnreachableError) return this.scheduleRetry();
      throw error;
    }
  }

  private async handleRefusal(task: string, queued: QueuedChange, problem: ErrorResponse): Promise<boolean> {
    const { code } = problem;
    if (ENTRY_CODES.includes(code)) return this.storeRefusal(task, queued, problem);
    if (code === "incomplete") {
      await this.store.updateOutbox(task, (outbox) => [dropChange(outbox, "finish"), undefined]);
      this.listener.onIncomplete(task, problem.missing ?? []);
      return true;
    }
    if (TASK_CODES.includes(code)) {
      this.haltCodeByTask[task] = code;
      return true;
    }
    if (code === "not-allowed" && this.disallowedChanges.has(queued.change))
      return this.storeRefusal(task, queued, problem);
    if (code === "not-allowed") this.disallowedChanges.add(queued.change);
    if (code === "signed-out" || code === "paused") this.haltCodeByTask["*"] = code;
    if (code === "signed-out" || code === "not-allowed") await this.refreshToken().catch(() => undefined);
    return this.scheduleRetry();
  }

  private async storeRefusal(task: string, queued: QueuedChange, problem: ErrorResponse): Promise<boolean> {
    await this.store.updateOutbox(task, (outbox) => [markRefused(outbox, queued.change, problem), undefined]);
    return true;
  }

  private scheduleRetry(): false {
    this.failures += 1;
    const wait = retryDelay(this.failures, Math.random());
    this.retryAt = Date.now() + wait;
    this.timer = setTimeout(() => this.sendNow(), wait);
    return false;
  }
}
