import { Api } from "../../lib/api";
import type { Answer, Body, Task } from "../../lib/api-types";
import { update, type Event } from "../work/update";
import { difference, toWire, type Key, type Patch, type UnitKey } from "../work/work";
import { type Message } from "../sync/channel";
import { Sender, type Saving } from "../sync/sender";
import { type Store } from "../sync/store";

import { ActivityClock } from "./activity-clock";
import { TaskState } from "./task-state.svelte";

const PART_PAUSE = 3000; // ms until the next part is asked for again

/** Changes to the text before an annotator: each is shown, kept on the device and sent. */
export class TaskSaving extends TaskState {
  /** Another tab shows the same study. */
  elsewhere = $state(false);
  readonly api = new Api();
  protected store!: Store;
  protected sender!: Sender;
  protected readonly clock = new ActivityClock();
  protected post: (message: Message) => void = () => undefined;
  protected partBegan = 0;
  private partTimer: ReturnType<typeof setTimeout> | undefined;
  private arrived: () => void = () => undefined;

  /** Do something with the text: it is shown, kept on the device and sent. */
  dispatch(event: Event): void {
    if (this.readOnly) return;
    this.declined = undefined;
    const before = this.state.work;
    this.state = update(this.state, event);
    this.save(difference(before, this.state.work), event.type === "answer" && typeof event.value === "string");
    this.keep();
  }

  /** Hand the text in; what is missing is asked for before. */
  finish(): void {
    this.declined = undefined;
    this.handingIn = true;
    void this.sender.save(this.task!.id, "finish", null, this.active());
  }

  /** Take back that the text is to be handed in, while it waits. */
  takeBack(): void {
    this.handingIn = false;
    void this.sender.drop(this.task!.id, "finish");
  }

  /** A part was judged; its time is what passed since it was opened. */
  judge(key: UnitKey): void {
    const seconds = (this.state.work[key]?.seconds ?? 0) + this.active() - this.partBegan;
    this.partBegan = this.clock.seconds;
    this.dispatch({ type: "judge", key, seconds: Math.round(seconds * 10) / 10 });
  }

  /** Answer about a part; what passed since the last answer is time spent on it. */
  answerPart(key: UnitKey, question: string, value: Answer | undefined): void {
    const seconds = (this.state.work[key]?.seconds ?? 0) + this.active() - this.partBegan;
    this.partBegan = this.clock.seconds;
    this.dispatch({ type: "answer", key, question, value, seconds: Math.round(seconds * 10) / 10 });
  }

  /** Go to a part; one that is not on this device yet is waited for. */
  goToPart(index: number): void {
    if (!this.hasPart(index)) return void this.reach(index);
    this.awaited = undefined;
    this.partAt = index;
    this.partBegan = this.active();
  }

  /** Go to a part as soon as the server sends it. */
  async reach(index: number): Promise<void> {
    if (this.hasPart(index)) return this.goToPart(index);
    this.awaited = index;
    await new Promise<void>((done) => {
      this.arrived = done;
      void this.fetchParts();
    });
  }

  /** A change is on the server's disk. */
  saved(task: string, key: string): void {
    if (task === this.task?.id && key.startsWith("units/") && this.awaited !== undefined) void this.fetchParts();
  }

  /** Ask the server how far the text may be read by now, until the part that is waited for is there. */
  protected async fetchParts(): Promise<void> {
    clearTimeout(this.partTimer);
    const before = this.task!;
    const now = await this.api.get<Task>(`/api/tasks/${before.id}`).catch(() => undefined);
    if (now && this.saving.retryAt !== undefined) this.retry(); // it answers again: what waits need not wait longer
    if (this.awaited === undefined || this.task?.id !== before.id) return;
    if (now && now.text.length > this.task.text.length) {
      const { text, parts, offered, sentences } = now;
      this.segmented.clear();
      this.task = { ...this.task, text, parts, offered, sentences };
    }
    if (!this.hasPart(this.awaited)) {
      clearTimeout(this.partTimer);
      this.partTimer = setTimeout(() => void this.fetchParts(), PART_PAUSE);
      return;
    }
    this.goToPart(this.awaited);
    this.arrived();
  }

  refuseHint(key: Key, rule: string): void {
    this.refusedHints = [...this.refusedHints, `${key}/${rule}`];
    this.keep();
  }

  /** After a refusal: send the change anyway, on top of what the server has. */
  keepMine(key: Key): void {
    void this.sender.insist(this.task!.id, key);
  }

  /** Try again now. */
  retry(): void {
    this.sender.go();
  }

  /** The sender tells how saving stands. */
  setSaving(saving: Saving): void {
    this.saving = saving;
  }

  /** Handing in was declined: what the server misses is said where it can be mended. */
  incomplete(task: string, missing: readonly string[]): void {
    if (task !== this.task?.id) return;
    this.handingIn = false;
    this.declined = missing;
  }

  protected save(patch: Patch, typing: boolean): void {
    const task = this.task!.id;
    for (const [key, entry] of Object.entries(patch) as [Key, Patch[Key]][]) {
      const body: Body | null = toWire(key, entry, this.sources, this.guide);
      this.post({ type: "changed", task, key, body });
      void this.sender.save(task, key, body, this.active(), typing);
    }
  }

  protected keep(): void {
    if (!this.task) return;
    const { past, future } = this.state;
    void this.store.keep(this.task.id, {
      past,
      future,
      refusedHints: this.refusedHints,
      active: this.clock.seconds,
    });
  }

  /** Active seconds with what is shown, so far. */
  active(): number {
    return this.clock.read();
  }
}
