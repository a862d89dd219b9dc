import type { Code, Guide, Me, Task } from "../../lib/api-types";
import { missing, type Missing } from "../work/missing";
import { guideOf } from "../onboarding/practice";
import { Segmented, type Range } from "../marking/snap";
import { type State } from "../work/update";
import { marksOf, NOTHING_SAID, sourcesOf, type Sources } from "../work/work";
import { type Refused, type Saving } from "../sync/sender";

import { partPlaces, type PartPlace } from "./task-entries";

const NONE: readonly Refused[] = [];
const NOTHING: State = { work: {}, past: [], future: [] };
const ALL_SAVED: Saving = { state: "saved", unsent: 0, retryAt: undefined, refused: [], halted: {}, lasting: true };

/** The text before an annotator, what they did with it so far, and how saving stands. */
export class TaskState {
  me = $state.raw<Me>();
  task = $state.raw<Task>();
  state = $state.raw<State>(NOTHING);
  saving = $state.raw<Saving>(ALL_SAVED);
  refusedHints = $state.raw<readonly string[]>([]);
  /** The text was handed in here and waits for the server. */
  handingIn = $state(false);
  /** What the server missed when the text was to be handed in, as `kind/id: what`. */
  declined = $state.raw<readonly string[]>();
  partAt = $state(0);
  /** The part that is waited for: the server sends it once those before it are saved. */
  awaited = $state<number>();
  /** What is asked of the present text: by the protocol, or by a question of its own. */
  readonly guide: Guide = $derived(guideOf(this.me!.guide, this.task));
  readonly sources: Sources = $derived(this.task ? sourcesOf(this.task) : {});
  readonly marks = $derived(marksOf(this.state.work));
  readonly whole = $derived(this.state.work.answers ?? NOTHING_SAID);
  readonly parts: readonly PartPlace[] = $derived(this.task ? partPlaces(this.task, this.sources) : []);
  readonly missing: readonly Missing[] = $derived(
    this.me
      ? missing(
          this.state.work,
          this.guide,
          this.parts.map((part) => part.key),
        )
      : [],
  );
  /** The text is out of this annotator's hands. */
  readonly isOver = $derived(
    this.task?.status === "submitted" ||
      this.halt === "lease-over" ||
      this.halt === "not-found" ||
      this.halt === "closed",
  );
  readonly readOnly = $derived(this.isOver || this.handingIn);
  readonly refused: readonly Refused[] = $derived.by(() => {
    const own = this.saving.refused.filter((each) => each.task === this.task?.id);
    return own.length > 0 ? own : NONE; // the same each time, so that nothing is drawn again
  });
  protected readonly segmented = new Map<string, Segmented>();

  /** Why the present text cannot be saved, if so. */
  get halt(): Code | undefined {
    return this.saving.halted[this.task?.id ?? ""] ?? this.saving.halted["*"];
  }

  /** Words, sentences and characters of a part. */
  segments(part: string): Segmented {
    const found =
      this.segmented.get(part) ??
      new Segmented(this.sources[part]?.text ?? "", this.guide.language, this.sentences(part));
    this.segmented.set(part, found);
    return found;
  }

  /** The sentences that the server goes by. */
  private sentences(part: string): Range[] | undefined {
    const { toUtf16 } = this.sources[part]?.offsets ?? { toUtf16: (at: number) => at };
    return this.task?.sentences?.[part]?.map(([start, end]) => ({ start: toUtf16(start), end: toUtf16(end) }));
  }

  /** Whether words of a part may be marked. */
  mayMark(part: string): boolean {
    return this.guide.marks_on?.includes(part) ?? true;
  }

  /** Whether the words of a part of the text are on this device; a later one comes once those before it are saved. */
  hasPart(index: number): boolean {
    const part = this.task?.parts?.[index];
    return !part || this.sources.text!.offsets.toUtf16(part.end) <= this.task!.text.length;
  }
}
