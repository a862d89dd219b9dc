import { Api } from "../../lib/api";
import type { Answer, Body } from "../../lib/api-types";
import { update, type Event } from "../work/update";
import { difference, toWire, type Key, type Patch, type UnitKey } from "../work/work";
import { type Message } from "../sync/channel";
import { Sender, type Saving } from "../sync/sender";
import { type Store } from "../sync/store";

import { ActivityClock } from "./activity-clock";
import { TaskState } from "./task-state.svelte";

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

  goToPart(index: number): void {
    this.partAt = index;
    this.partBegan = this.active();
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
