import type { Api } from "../../lib/api";
import type { Answer, Task } from "../../lib/api-types";
import type { UnitKey } from "../work/work";

import type { ActivityClock } from "./activity-clock";
import type { TaskChanges } from "./task-changes";
import type { TaskState } from "./task-state.svelte";

const PART_RETRY_DELAY = 3000; // ms before the next part is requested again

/** Current part of a text that is judged part by part, and the time spent on it. */
export class PartNavigation {
  partIndex = $state(0);
  /** Part that the server sends once the earlier parts are saved. */
  awaitedPart = $state<number>();
  private partStartSeconds = 0;
  private partTimer: ReturnType<typeof setTimeout> | undefined;
  private onPartArrived: () => void = () => undefined;

  constructor(
    private readonly api: Api,
    private readonly current: TaskState,
    private readonly changes: TaskChanges,
    private readonly clock: ActivityClock,
  ) {}

  /** Open the first part that is not judged, or the last one whose text is available. Its time counts from `seconds`. */
  openFirstUnjudged(seconds: number): void {
    const { parts, work } = this.current;
    const first = parts.findIndex((part) => work[part.key] === undefined);
    const at = first < 0 ? Math.max(0, parts.length - 1) : first;
    const ahead = parts.findIndex((_, index) => !this.hasPart(index));
    const last = Math.max(0, ahead < 0 ? parts.length - 1 : ahead - 1);
    this.partStartSeconds = seconds;
    this.awaitedPart = undefined;
    this.partIndex = Math.min(at, last);
    if (at > this.partIndex) void this.awaitPart(at); // judged here but not yet saved on the server
  }

  /** Return true if the text of a part is available; later parts arrive once the earlier ones are saved. */
  hasPart(index: number): boolean {
    const { task, sources } = this.current;
    const part = task?.parts?.[index];
    return !part || sources.text!.offsets.toUtf16(part.end) <= task!.text.length;
  }

  /** Go to a part, or wait for it to arrive. */
  goToPart(index: number): void {
    if (!this.hasPart(index)) return void this.awaitPart(index);
    this.awaitedPart = undefined;
    this.partIndex = index;
    this.partStartSeconds = this.clock.read();
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

  /** Judge a part; its time is counted since it was opened. */
  judgePart(key: UnitKey): void {
    this.changes.dispatch({ type: "judge", key, seconds: this.countSeconds(key) });
  }

  /** Answer about a part; its time is counted since the last answer. */
  answerPart(key: UnitKey, question: string, value: Answer | undefined): void {
    this.changes.dispatch({ type: "answer", key, question, value, seconds: this.countSeconds(key) });
  }

  /** Handle a change that the server has stored. */
  onSaved(task: string, key: string): void {
    if (task === this.current.task?.id && key.startsWith("units/") && this.awaitedPart !== undefined)
      void this.fetchParts();
  }

  /** Return the seconds spent on a part, and count from now on. */
  private countSeconds(key: UnitKey): number {
    const seconds = (this.current.work[key]?.seconds ?? 0) + this.clock.read() - this.partStartSeconds;
    this.partStartSeconds = this.clock.seconds;
    return Math.round(seconds * 10) / 10;
  }

  /** Poll the server until the awaited part is available. */
  private async fetchParts(): Promise<void> {
    clearTimeout(this.partTimer);
    const { current } = this;
    const before = current.task!;
    const fetched = await this.api.get<Task>(`/api/tasks/${before.id}`).catch(() => undefined);
    if (fetched && current.saving.retryAt !== undefined) this.changes.retryNow(); // the server responds again, so waiting changes are sent now
    if (this.awaitedPart === undefined || current.task?.id !== before.id) return;
    if (fetched && fetched.text.length > current.task.text.length) {
      const { text, parts, offered, sentences } = fetched;
      current.setTask({ ...current.task, text, parts, offered, sentences });
    }
    if (!this.hasPart(this.awaitedPart)) {
      clearTimeout(this.partTimer);
      this.partTimer = setTimeout(() => void this.fetchParts(), PART_RETRY_DELAY);
      return;
    }
    this.goToPart(this.awaitedPart);
    this.onPartArrived();
  }
}
