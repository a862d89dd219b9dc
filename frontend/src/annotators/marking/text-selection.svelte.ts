import { tick } from "svelte";
import type { Span } from "../../lib/text/pieces";
import { findLabel } from "../../lib/questions/questions";
import type { PartNavigation } from "../session/part-navigation.svelte";
import type { TaskState } from "../session/task-state.svelte";
import type { Mark, MarkKey } from "../work/work";

import { surfaceAt, type CaretSelection } from "./caret";
import type { ChosenMark } from "./chosen-mark.svelte";
import type { Snap } from "./text-segments";

/**
 * `pick`: antecedent of a mark; `add`: more words for a mark; `gap`: label for missing words;
 * `otherwise`: alternative words for a mark.
 */
export type Mode = "read" | "pick" | "add" | "gap" | "otherwise";

const SNAPS_FINEST_FIRST: readonly Snap[] = ["character", "word", "sentence"];

/** Caret and selected words, and their use in the current mode. */
export class TextSelection {
  caret = $state.raw<CaretSelection>();
  /** Earlier selections that will be marked together with the current one. */
  otherSpans = $state.raw<readonly Span[]>([]);
  mode = $state<Mode>("read");
  /** True while the text has the focus and shows the caret. */
  isFocused = $state(false);
  /** True while a finger or mouse button is down; trays wait. */
  isPressing = $state(false);

  constructor(
    private readonly current: TaskState,
    private readonly navigation: PartNavigation,
    private readonly chosen: ChosenMark,
  ) {}

  /** Words that a label would mark now. */
  readonly span: Span | undefined = $derived.by(() => {
    const words = this.unsnappedSpan();
    if (!words || words.start === words.end || this.isMarkingForbidden()) return undefined;
    return this.snapSpan(words, this.selectionSnap());
  });
  /** Marks at the caret, shortest first. */
  readonly marksAtCaret: readonly MarkKey[] = $derived(
    this.caret ? this.marksAt(this.caret.part, this.caret.focus) : [],
  );

  marksAt(part: string, offset: number): MarkKey[] {
    const covers = (span: Span) =>
      span.part === part &&
      span.start <= offset &&
      (offset < span.end || span.start === span.end || offset === span.end);
    const length = (mark: Mark) => mark.spans.reduce((sum, { start, end }) => sum + end - start, 0);
    return this.current.marks
      .filter(([, mark]) => mark.spans.some(covers))
      .sort(([, a], [, b]) => length(a) - length(b))
      .map(([key]) => key);
  }

  /** True if the selection lies where marking is not allowed. Antecedents can be anywhere. */
  isMarkingForbidden(): boolean {
    return this.caret !== undefined && this.mode !== "pick" && !this.current.canMark(this.caret.part);
  }

  /** Return the selected words as they were selected, before they expand to whole units. */
  unsnappedSpan(): Span | undefined {
    if (!this.caret) return undefined;
    const { part, anchor, focus } = this.caret;
    return { part, start: Math.min(anchor, focus), end: Math.max(anchor, focus) };
  }

  snapSpan(span: Span, snap: Snap): Span {
    const limit = this.partLimit(span.part);
    const { start, end } = this.current.partSegments(span.part).snap(span, snap);
    return { part: span.part, start: Math.min(start, limit), end: Math.min(end, limit) };
  }

  /** Return the end of the visible text; later parts are not rendered yet. */
  partLimit(part: string): number {
    const shown = part === "text" ? this.current.parts[this.navigation.partIndex] : undefined;
    return shown?.end ?? this.current.sources[part]?.text.length ?? 0;
  }

  /** Select words or place the caret. */
  select(part: string, anchor: number, focus = anchor, adding = false): void {
    const before = this.span;
    if (adding && before) this.otherSpans = [...this.otherSpans, before];
    else if (!adding) this.otherSpans = [];
    const segments = this.current.partSegments(part);
    const at = (offset: number) => Math.min(segments.snapCaret(offset).start, this.partLimit(part));
    this.caret = { part, anchor: at(anchor), focus: at(focus) };
    if (anchor !== focus) this.chosen.offer = undefined;
  }

  selectAround(part: string, offset: number, what: Snap): void {
    const segments = this.current.partSegments(part);
    const { start, end } = segments.snap(segments.segmentAt(offset, what), what);
    this.select(part, start, end);
  }

  clear(): void {
    this.otherSpans = [];
    if (this.caret) this.caret = { ...this.caret, anchor: this.caret.focus };
  }

  cancelMode(): void {
    this.mode = "read";
    this.clear();
  }

  /** Forget caret, words and mode. */
  reset(): void {
    this.caret = undefined;
    this.otherSpans = [];
    this.mode = "read";
  }

  firstPosition(): CaretSelection {
    const start = this.current.parts[this.navigation.partIndex]?.start ?? 0;
    return { part: "text", anchor: start, focus: start };
  }

  focusText(): void {
    void tick().then(() => {
      if (this.isPressing) return; // moving the focus would end the selection that the annotator has begun
      const { part, focus } = this.caret ?? this.firstPosition();
      surfaceAt(part, focus)?.focus({ preventScroll: true });
    });
  }

  /** Scroll to a range. */
  async scrollToSpan(span: Span): Promise<void> {
    const part = this.current.parts.findIndex(
      (each) => span.part === "text" && span.start >= each.start && span.start < each.end,
    );
    if (part > this.navigation.partIndex) this.navigation.goToPart(part);
    await tick();
    const piece = [
      ...document.querySelectorAll<HTMLElement>(`[data-part="${CSS.escape(span.part)}"] [data-at]`),
    ].findLast((each) => Number(each.dataset.at) <= span.start);
    piece?.scrollIntoView({ block: "nearest" });
  }

  /** Unit to which a selection expands before a label is selected: the finest of all labels. */
  private selectionSnap(): Snap {
    const { guide } = this.current;
    if (this.mode === "pick") return "word";
    if (this.mode === "add") return findLabel(guide, this.chosen.mark?.label ?? null)?.snap ?? "word";
    return SNAPS_FINEST_FIRST.find((snap) => guide.labels.some((label) => (label.snap ?? "word") === snap)) ?? "word";
  }
}
