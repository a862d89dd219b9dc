import { Api } from "../../lib/api";
import type { Answer, Body, Task } from "../../lib/api-types";
import { updateWork, type WorkEvent } from "../work/update-work";
import { diffWork, entryToWire, type EntryKey, type Patch, type UnitKey } from "../work/work";
import { type TabMessage } from "../sync/tab-channel";
import { Sender, type SavingStatus } from "../sync/sender";
import { type Store } from "../sync/store";

import { ActivityClock } from "./activity-clock";
import { TaskState } from "./task-state.svelte";

const PART_RETRY_DELAY = 3000; // ms until the next part is asked for again

/** Changes to the text before an annotator: each is shown, kept on the device and sent. */
export class TaskSaving extends TaskState {
  /** Another tab shows the same study. */
  isOpenElsewhere = $state(false);
  readonly api = new Api();
  protected store!: Store;
  protected sender!: Sender;
  protected readonly clock = new ActivityClock();
  protected broadcast: (message: TabMessage) => void = () => undefined;
  protected partStartSeconds = 0;
  private partTimer: ReturnType<typeof setTimeout> | undefined;
  private onPartArrived: () => void = () => undefined;

  /** Do something with the text: it is shown, kept on the device and sent. */
  dispatch(event: WorkEvent): void {
    if (this.isReadOnly) return;
    this.missingOnServer = undefined;
    const before = this.state.work;
    this.state = updateWork(this.state, event);
    this.savePatch(diffWork(before, this.state.work), event.type === "answer" && typeof event.value === "string");
    this.saveLocalState();
  }

  /** Hand the text in; what is missing is asked for before. */
  submitTask(): void {
    this.missingOnServer = undefined;
    this.isSubmitting = true;
    void this.sender.saveChange(this.task!.id, "finish", null, this.activeSeconds());
  }

  /** Take back that the text is to be handed in, while it waits. */
  cancelSubmit(): void {
    this.isSubmitting = false;
    void this.sender.dropChange(this.task!.id, "finish");
  }

  /** A part was judged; its time is what passed since it was opened. */
  judgePart(key: UnitKey): void {
    const seconds = (this.state.work[key]?.seconds ?? 0) + this.activeSeconds() - this.partStartSeconds;
    this.partStartSeconds = this.clock.seconds;
    this.dispatch({ type: "judge", key, seconds: Math.round(seconds * 10) / 10 });
  }

  /** Answer about a part; what passed since the last answer is time spent on it. */
  answerPart(key: UnitKey, question: string, value: Answer | undefined): void {
    const seconds = (this.state.work[key]?.seconds ?? 0) + this.activeSeconds() - this.partStartSeconds;
    this.partStartSeconds = this.clock.seconds;
    this.dispatch({ type: "answer", key, question, value, seconds: Math.round(seconds * 10) / 10 });
  }

  /** Go to a part; one that is not on this device yet is waited for. */
  goToPart(index: number): void {
    if (!this.hasPart(index)) return void this.awaitPart(index);
    this.awaitedPart = undefined;
    this.partIndex = index;
    this.partStartSeconds = this.activeSeconds();
  }

  /** Go to a part as soon as the server sends it. */
  async awaitPart(index: number): Promise<void> {
    if (this.hasPart(index)) return this.goToPart(index);
    this.awaitedPart = index;
    await new Promise<void>((done) => {
      this.onPartArrived = done;
      void this.fetchParts();
    });
  }

  /** A change is on the server's disk. */
  onSaved(task: string, key: string): void {
    if (task === this.task?.id && key.startsWith("units/") && this.awaitedPart !== undefined) void this.fetchParts();
  }

  /** Ask the server how far the text may be read by now, until the part that is waited for is there. */
  protected async fetchParts(): Promise<void> {
    clearTimeout(this.partTimer);
    const before = this.task!;
    const fetched = await this.api.get<Task>(`/api/tasks/${before.id}`).catch(() => undefined);
    if (fetched && this.saving.retryAt !== undefined) this.retryNow(); // it answers again: what waits need not wait longer
    if (this.awaitedPart === undefined || this.task?.id !== before.id) return;
    if (fetched && fetched.text.length > this.task.text.length) {
      const { text, parts, offered, sentences } = fetched;
      this.segmentsByPart.clear();
      this.task = { ...this.task, text, parts, offered, sentences };
    }
    if (!this.hasPart(this.awaitedPart)) {
      clearTimeout(this.partTimer);
      this.partTimer = setTimeout(() => void this.fetchParts(), PART_RETRY_DELAY);
      return;
    }
    this.goToPart(this.awaitedPart);
    this.onPartArrived();
  }

  refuseHint(key: EntryKey, rule: string): void {
    this.refusedHints = [...this.refusedHints, `${key}/${rule}`];
    this.saveLocalState();
  }

  /** After a refusal: send the change anyway, on top of what the server has. */
  resendRefused(key: EntryKey): void {
    void this.sender.resendRefused(this.task!.id, key);
  }

  /** Try again now. */
  retryNow(): void {
    this.sender.sendNow();
  }

  /** The sender tells how saving stands. */
  setSaving(saving: SavingStatus): void {
    this.saving = saving;
  }

  /** Handing in was declined: what the server misses is said where it can be mended. */
  onIncomplete(task: string, missing: readonly string[]): void {
    if (task !== this.task?.id) return;
    this.isSubmitting = false;
    this.missingOnServer = missing;
  }

  protected savePatch(patch: Patch, typing: boolean): void {
    const task = this.task!.id;
    for (const [key, entry] of Object.entries(patch) as [EntryKey, Patch[EntryKey]][]) {
      const body: Body | null = entryToWire(key, entry, this.sources, this.guide);
      this.broadcast({ type: "changed", task, key, body });
      void this.sender.saveChange(task, key, body, this.activeSeconds(), typing);
    }
  }

  protected saveLocalState(): void {
    if (!this.task) return;
    const { past, future } = this.state;
    void this.store.saveLocalState(this.task.id, {
      past,
      future,
      refusedHints: this.refusedHints,
      active: this.clock.seconds,
    });
  }

  /** Active seconds with what is shown, so far. */
  activeSeconds(): number {
    return this.clock.read();
  }
}
