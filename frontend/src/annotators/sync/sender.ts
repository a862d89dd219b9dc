import { Refusal, Unreachable, type Api } from "../../lib/api";
import type { Body, Code, ErrorResponse, Saved } from "../../lib/api-types";
import { Journal, type JournalEntry } from "./journal";
import { attempt, drop, EMPTY, enqueue, insist, recover, refuse, settle, take, type QueuedChange } from "./outbox";
import type { Store } from "./store";

/** How saving stands, for the top bar and the notes. */
export interface Saving {
  readonly state: "saved" | "saving" | "queued" | "offline" | "unreachable" | "refused";
  /** Changes the server does not have. */
  readonly unsent: number;
  /** When the next attempt is made, as `Date.now()` has it. */
  readonly retryAt: number | undefined;
  readonly refused: readonly Refused[];
  /** Why a task, or all of them, cannot be saved at the moment. */
  readonly halted: Readonly<Record<string, Code>>;
  readonly lasting: boolean;
}
export interface Refused {
  readonly task: string;
  readonly key: QueuedChange["key"];
  readonly problem: ErrorResponse;
}
export interface Listener {
  setSaving(saving: Saving): void;
  /** A change is on the server's disk. */
  saved(task: string, key: string): void;
  /** A task was handed in, or could not be because something is missing. */
  finished(task: string): void;
  incomplete(task: string, missing: readonly string[]): void;
}

const TYPING_REST = 400;
const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 60_000;
const UNREACHABLE_AFTER = 3; // failed attempts in a row
const ENTRY_CODES: readonly Code[] = ["conflict", "refused", "too-large"];
const TASK_CODES: readonly Code[] = ["lease-over", "not-found", "finished", "closed"];

/** The pause before the next attempt after that many failures. */
export const pause = (failures: number, random: number): number =>
  Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (failures - 1)) * (0.8 + 0.4 * random);

/** Brings changes to the server one by one, until it has them all. */
export class Sender {
  private failures = 0;
  private running = false;
  private wanted = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private retryAt: number | undefined;
  private halted: Record<string, Code> = {};
  private suspects = new Set<string>(); // changes that were not allowed once: perhaps the token was old
  private unkept = 0; // changes that could not even be kept; the journal has them for the next page
  private at = 0;

  constructor(
    private readonly store: Store,
    private readonly api: Pick<Api, "put">,
    private readonly listener: Listener,
    /** Signs in again, quietly: a new token. */
    private readonly refresh: () => Promise<void>,
    private readonly makeId: () => string,
    private readonly journal = new Journal(undefined),
  ) {}

  /** Keep a change and send it: at once, or after a short rest while somebody is typing. */
  async save(task: string, key: QueuedChange["key"], body: Body | null, active: number, typing = false): Promise<void> {
    this.at = Math.max(Date.now(), this.at + 1);
    await this.keep({ task, key, body, active, change: this.makeId(), at: this.at }, enqueue);
    if (!typing) return this.go();
    await this.tell();
    if (this.retryAt !== undefined) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.go(), TYPING_REST);
  }

  /** Take up what an earlier page noted and could not keep before it was closed. */
  async recover(): Promise<void> {
    for (const [noted, strike] of this.journal.left()) {
      strike();
      await this.keep(noted, recover);
    }
  }

  private async keep(noted: JournalEntry, add: typeof enqueue): Promise<void> {
    const { task, ...made } = noted;
    const strike = this.journal.note(noted);
    try {
      await this.store.change(task, (outbox) => [add(outbox, made), undefined]);
      strike();
    } catch (error) {
      this.unkept += 1;
      console.error(error);
    }
  }

  /** Send a refused change on top of what the server has. */
  async insist(task: string, key: string): Promise<void> {
    await this.store.change(task, (outbox) => [insist(outbox, key, this.makeId()), undefined]);
    this.go();
  }

  /** Forget a change that was not sent or not accepted. */
  async drop(task: string, key: string): Promise<void> {
    await this.store.change(task, (outbox) => [drop(outbox, key), undefined]);
    this.go();
  }

  /** Forget a refused change for what the server has, as long as it is that one; whether it was. */
  async take(task: string, key: string, version: number | undefined): Promise<boolean> {
    const taken = await this.store.change(task, (outbox) => take(outbox, key, version));
    this.go();
    return taken;
  }

  /** Forget what could not be sent of a task that went to somebody else, after that was said. */
  async abandon(task: string): Promise<void> {
    await this.store.change(task, () => [EMPTY, undefined]);
    this.resume(task);
  }

  /** Take up a task again, after it was reopened for example. */
  resume(task: string): void {
    delete this.halted[task];
    this.go();
  }

  /** Send now what there is to send. */
  go(): void {
    clearTimeout(this.timer);
    this.retryAt = undefined;
    void this.run();
  }

  /** Tell the listener how things stand. */
  async tell(): Promise<void> {
    const outboxes = [...(await this.store.outboxes())];
    const changes = outboxes.flatMap(([task, outbox]) => outbox.changes.map((change) => ({ task, ...change })));
    const refused = changes.flatMap(({ task, key, problem }) => (problem ? [{ task, key, problem }] : []));
    const unsent = changes.length - refused.length + this.unkept;
    const stranded = changes.filter(({ task }) => this.halted[task]).length + this.unkept;
    this.listener.setSaving({
      state: this.state(refused.length, unsent, stranded),
      unsent,
      retryAt: this.retryAt,
      refused,
      halted: { ...this.halted },
      lasting: this.store.lasting && this.unkept === 0,
    });
  }

  private state(refused: number, unsent: number, stranded: number): Saving["state"] {
    if (refused > 0) return "refused";
    if (unsent === 0) return "saved";
    if (this.failures === 0) return stranded > 0 ? "queued" : "saving";
    if (globalThis.navigator?.onLine === false) return "offline";
    return this.failures >= UNREACHABLE_AFTER ? "unreachable" : "queued";
  }

  private async run(): Promise<void> {
    this.wanted = true;
    if (this.running) return;
    this.running = true;
    try {
      while (this.wanted) {
        this.wanted = false; // set again by whoever adds a change after it was looked for
        while (await this.step()) await this.tell();
      }
    } catch (error) {
      console.error(error); // nobody foresaw it; the change is still there
      this.later();
    } finally {
      this.running = false;
      await this.tell();
    }
  }

  /**
   * Send one change; whether there may be more to do now. Changes of somebody else who worked in this browser are no
   * exception: the server knows no such task of whoever is signed in, and they stay where they are.
   */
  private async step(): Promise<boolean> {
    if (this.retryAt !== undefined) return false;
    for (const [task] of await this.store.outboxes()) {
      if (this.halted[task]) continue;
      const queued = await this.store.change(task, attempt);
      if (queued) return this.send(task, queued);
    }
    return false;
  }

  private async send(task: string, queued: QueuedChange): Promise<boolean> {
    const { key, change, base, body, active } = queued;
    const content = key === "finish" ? { change, active } : { change, base, body, active };
    await this.tell();
    try {
      const saved = await this.api.put<Saved>(`/api/tasks/${task}/${key}`, content);
      await this.store.change(task, (outbox) => [settle(outbox, saved), undefined]);
      this.failures = 0;
      this.halted = Object.fromEntries(Object.entries(this.halted).filter(([where]) => where !== "*"));
      if (key === "finish") this.listener.finished(task);
      else this.listener.saved(task, key);
      return true;
    } catch (error) {
      if (error instanceof Refusal) return this.refused(task, queued, error.problem);
      if (error instanceof Unreachable) return this.later();
      throw error;
    }
  }

  private async refused(task: string, queued: QueuedChange, problem: ErrorResponse): Promise<boolean> {
    const { code } = problem;
    if (ENTRY_CODES.includes(code)) return this.refuse(task, queued, problem);
    if (code === "incomplete") {
      await this.store.change(task, (outbox) => [drop(outbox, "finish"), undefined]);
      this.listener.incomplete(task, problem.missing ?? []);
      return true;
    }
    if (TASK_CODES.includes(code)) {
      this.halted[task] = code;
      return true;
    }
    if (code === "not-allowed" && this.suspects.has(queued.change)) return this.refuse(task, queued, problem);
    if (code === "not-allowed") this.suspects.add(queued.change);
    if (code === "signed-out" || code === "paused") this.halted["*"] = code;
    if (code === "signed-out" || code === "not-allowed") await this.refresh().catch(() => undefined);
    return this.later();
  }

  private async refuse(task: string, queued: QueuedChange, problem: ErrorResponse): Promise<boolean> {
    await this.store.change(task, (outbox) => [refuse(outbox, queued.change, problem), undefined]);
    return true;
  }

  private later(): false {
    this.failures += 1;
    const wait = pause(this.failures, Math.random());
    this.retryAt = Date.now() + wait;
    this.timer = setTimeout(() => this.go(), wait);
    return false;
  }
}
