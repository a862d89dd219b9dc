import type { Body } from "../../lib/api-types";
import { updateWork, type WorkEvent } from "../work/update-work";
import { diffWork, entryToWire, type EntryKey, type Patch } from "../work/work";

import type { ActivityClock } from "./activity-clock";
import type { SyncConnection } from "./sync-connection";
import type { TaskState } from "./task-state.svelte";

/** Changes to the current text: each is shown, stored in the browser and sent. */
export class TaskChanges {
  constructor(
    private readonly current: TaskState,
    private readonly connection: SyncConnection,
    private readonly clock: ActivityClock,
  ) {}

  /** Apply an event to the text, store it and send it. */
  dispatch(event: WorkEvent): void {
    const { current } = this;
    if (current.isReadOnly) return;
    current.missingOnServer = undefined;
    const before = current.work;
    current.state = updateWork(current.state, event);
    this.savePatch(diffWork(before, current.work), event.type === "answer" && typeof event.value === "string");
    this.saveLocalState();
  }

  /** Submit the text after checking for missing answers. */
  submitTask(): void {
    this.current.missingOnServer = undefined;
    this.current.isSubmitting = true;
    void this.connection.sender.saveChange(this.current.task!.id, "finish", null, this.clock.read());
  }

  /** Cancel a submission that is still waiting. */
  cancelSubmit(): void {
    this.current.isSubmitting = false;
    void this.connection.sender.dropChange(this.current.task!.id, "finish");
  }

  /** Show the items that the server reported missing, where they can be fixed. */
  onIncomplete(task: string, missing: readonly string[]): void {
    if (task !== this.current.task?.id) return;
    this.current.isSubmitting = false;
    this.current.missingOnServer = missing;
  }

  refuseHint(key: EntryKey, rule: string): void {
    this.current.refusedHints = [...this.current.refusedHints, `${key}/${rule}`];
    this.saveLocalState();
  }

  /** Resend a rejected change on top of the server's version. */
  resendRefused(key: EntryKey): void {
    void this.connection.sender.resendRefused(this.current.task!.id, key);
  }

  /** Retry now. */
  retryNow(): void {
    this.connection.sender.sendNow();
  }

  /** Store the undo history, rejected hints and active seconds in the browser. */
  saveLocalState(): void {
    const { task, state, refusedHints } = this.current;
    if (!task) return;
    const { past, future } = state;
    void this.connection.store.saveLocalState(task.id, { past, future, refusedHints, active: this.clock.seconds });
  }

  private savePatch(patch: Patch, typing: boolean): void {
    const { task, sources, guide } = this.current;
    for (const [key, entry] of Object.entries(patch) as [EntryKey, Patch[EntryKey]][]) {
      const body: Body | null = entryToWire(key, entry, sources, guide);
      this.connection.broadcast({ type: "changed", task: task!.id, key, body });
      void this.connection.sender.saveChange(task!.id, key, body, this.clock.read(), typing);
    }
  }
}
