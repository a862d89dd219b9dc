import type { TaskState } from "../session/task-state.svelte";
import type { Mark, MarkKey } from "../work/work";

/** Selected mark or suggestion. */
export class ChosenMark {
  key = $state<MarkKey>();
  /** ID of the selected suggestion. */
  offer = $state<string>();

  constructor(private readonly current: TaskState) {}

  get mark(): Mark | undefined {
    return this.key && this.current.work[this.key];
  }
}
