import type { Code, Guide, Me, Task } from "../../lib/api-types";
import { missingItems, type MissingItem } from "../work/missing-items";
import { taskGuide } from "../onboarding/task-guide";
import { TextSegments, type Range } from "../marking/text-segments";
import { type WorkState } from "../work/update-work";
import { sortedMarks, NO_ANSWERS, taskSources, type Sources } from "../work/work";
import { type RefusedChange, type SavingStatus } from "../sync/sender";

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

/** The text before an annotator, what they did with it so far, and how saving stands. */
export class TaskState {
  me = $state.raw<Me>();
  task = $state.raw<Task>();
  state = $state.raw<WorkState>(EMPTY_STATE);
  saving = $state.raw<SavingStatus>(ALL_SAVED);
  refusedHints = $state.raw<readonly string[]>([]);
  /** The text was handed in here and waits for the server. */
  isSubmitting = $state(false);
  /** What the server missed when the text was to be handed in, as `kind/id: what`. */
  missingOnServer = $state.raw<readonly string[]>();
  partIndex = $state(0);
  /** The part that is waited for: the server sends it once those before it are saved. */
  awaitedPart = $state<number>();
  /** What is asked of the present text: by the protocol, or by a question of its own. */
  readonly guide: Guide = $derived(taskGuide(this.me!.guide, this.task));
  readonly sources: Sources = $derived(this.task ? taskSources(this.task) : {});
  readonly marks = $derived(sortedMarks(this.state.work));
  readonly textAnswers = $derived(this.state.work.answers ?? NO_ANSWERS);
  readonly parts: readonly TaskPart[] = $derived(this.task ? taskParts(this.task, this.sources) : []);
  readonly missingItems: readonly MissingItem[] = $derived(
    this.me
      ? missingItems(
          this.state.work,
          this.guide,
          this.parts.map((part) => part.key),
        )
      : [],
  );
  /** The text is out of this annotator's hands. */
  readonly isOver = $derived(
    this.task?.status === "submitted" ||
      this.haltCode === "lease-over" ||
      this.haltCode === "not-found" ||
      this.haltCode === "closed",
  );
  readonly isReadOnly = $derived(this.isOver || this.isSubmitting);
  readonly refusedChanges: readonly RefusedChange[] = $derived.by(() => {
    const changes = this.saving.refusedChanges.filter((each) => each.task === this.task?.id);
    return changes.length > 0 ? changes : NO_REFUSALS; // the same each time, so that nothing is drawn again
  });
  protected readonly segmentsByPart = new Map<string, TextSegments>();

  /** Why the present text cannot be saved, if so. */
  get haltCode(): Code | undefined {
    return this.saving.haltCodeByTask[this.task?.id ?? ""] ?? this.saving.haltCodeByTask["*"];
  }

  /** Words, sentences and characters of a part. */
  partSegments(part: string): TextSegments {
    const segments =
      this.segmentsByPart.get(part) ??
      new TextSegments(this.sources[part]?.text ?? "", this.guide.language, this.sentences(part));
    this.segmentsByPart.set(part, segments);
    return segments;
  }

  /** The sentences that the server goes by. */
  private sentences(part: string): Range[] | undefined {
    const { toUtf16 } = this.sources[part]?.offsets ?? { toUtf16: (at: number) => at };
    return this.task?.sentences?.[part]?.map(([start, end]) => ({ start: toUtf16(start), end: toUtf16(end) }));
  }

  /** Whether words of a part may be marked. */
  canMark(part: string): boolean {
    return this.guide.marks_on?.includes(part) ?? true;
  }

  /** Whether the words of a part of the text are on this device; a later one comes once those before it are saved. */
  hasPart(index: number): boolean {
    const part = this.task?.parts?.[index];
    return !part || this.sources.text!.offsets.toUtf16(part.end) <= this.task!.text.length;
  }
}
