import type { Body, Code, Guide, OfferedMark, Task } from "../../lib/api-types";
import { missingItems, type MissingItem } from "../work/missing-items";
import { taskGuide } from "../onboarding/task-guide";
import { TextSegments, type Range } from "../marking/text-segments";
import { updateWork, type WorkState } from "../work/update-work";
import {
  entryFromWire,
  sortedMarks,
  NO_ANSWERS,
  taskSources,
  type EntryKey,
  type Patch,
  type Sources,
  type Work,
} from "../work/work";
import { type RefusedChange, type SavingStatus } from "../sync/sender";

import type { Account } from "./account.svelte";
import { taskParts, type TaskPart } from "./task-entries";

const NO_REFUSALS: readonly RefusedChange[] = [];
const EMPTY_STATE: WorkState = { work: {}, past: [], future: [] };
const ALL_SAVED: SavingStatus = {
  state: "saved",
  unsentCount: 0,
  retryAt: undefined,
  refusedChanges: [],
  haltCodeByTask: {},
  isPersistent: true,
};

/** Current text, the work on it, and the save state. */
export class TaskState {
  task = $state.raw<Task>();
  state = $state.raw<WorkState>(EMPTY_STATE);
  saving = $state.raw<SavingStatus>(ALL_SAVED);
  refusedHints = $state.raw<readonly string[]>([]);
  /** True after submission, until the server confirms it. */
  isSubmitting = $state(false);
  /** Items that the server reported missing, as `kind/id: what`. */
  missingOnServer = $state.raw<readonly string[]>();
  private readonly segmentsByPart = new Map<string, TextSegments>();

  constructor(private readonly account: Account) {}

  /** Guide for the current text: that of the protocol, or its own question. */
  readonly guide: Guide = $derived.by(() => taskGuide(this.account.me!.guide, this.task));
  readonly sources: Sources = $derived(this.task ? taskSources(this.task) : {});
  readonly marks = $derived(sortedMarks(this.state.work));
  readonly textAnswers = $derived(this.state.work.answers ?? NO_ANSWERS);
  readonly parts: readonly TaskPart[] = $derived(this.task ? taskParts(this.task, this.sources) : []);
  /** Suggested marks that are neither accepted nor rejected. */
  readonly offers: readonly OfferedMark[] = $derived.by(() =>
    (this.task?.offered ?? []).filter(({ id }) => this.work[`decisions/${id}`] === undefined),
  );
  readonly missingItems: readonly MissingItem[] = $derived.by(() =>
    this.account.me
      ? missingItems(
          this.work,
          this.guide,
          this.parts.map((part) => part.key),
        )
      : [],
  );
  /** True if the annotator can no longer edit the text. */
  readonly isOver = $derived(
    this.task?.status === "submitted" ||
      this.haltCode === "lease-over" ||
      this.haltCode === "not-found" ||
      this.haltCode === "closed",
  );
  readonly isReadOnly = $derived(this.isOver || this.isSubmitting);
  readonly refusedChanges: readonly RefusedChange[] = $derived.by(() => {
    const changes = this.saving.refusedChanges.filter((each) => each.task === this.task?.id);
    return changes.length > 0 ? changes : NO_REFUSALS; // a stable object, so that nothing is redrawn
  });

  /** Marks, answers and decisions, by key. */
  get work(): Work {
    return this.state.work;
  }

  /** Reason why the current text cannot be saved. */
  get haltCode(): Code | undefined {
    return this.saving.haltCodeByTask[this.task?.id ?? ""] ?? this.saving.haltCodeByTask["*"];
  }

  /** Replace the text, or add parts that have arrived. */
  setTask(task: Task | undefined): void {
    this.segmentsByPart.clear();
    this.task = task;
  }

  /** Apply an entry from the server or another tab. */
  receiveEntry(key: EntryKey, body: Body | null): void {
    const patch = { [key]: entryFromWire(key, body, this.sources) } as Patch;
    this.state = updateWork(this.state, { type: "received", patch });
  }

  /** Return words, sentences and characters of a part. */
  partSegments(part: string): TextSegments {
    const segments =
      this.segmentsByPart.get(part) ??
      new TextSegments(this.sources[part]?.text ?? "", this.guide.language, this.sentences(part));
    this.segmentsByPart.set(part, segments);
    return segments;
  }

  /** Return the sentences as split by the server. */
  private sentences(part: string): Range[] | undefined {
    const { toUtf16 } = this.sources[part]?.offsets ?? { toUtf16: (at: number) => at };
    return this.task?.sentences?.[part]?.map(([start, end]) => ({ start: toUtf16(start), end: toUtf16(end) }));
  }

  /** Return true if words of a part may be marked. */
  canMark(part: string): boolean {
    return this.guide.marks_on?.includes(part) ?? true;
  }
}
