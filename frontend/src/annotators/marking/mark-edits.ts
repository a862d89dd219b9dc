import { t, type Key as Word } from "../../lib/catalogue";
import type { Answer, Question } from "../../lib/api-types";
import { findLabel } from "../../lib/questions/questions";
import type { Span } from "../../lib/text/pieces";
import type { TaskChanges } from "../session/task-changes";
import type { TaskState } from "../session/task-state.svelte";
import { newId } from "../sync/ids";
import { markKey, mergeSpans, quoteSpans, type Mark, type MarkKey } from "../work/work";

import type { Announcements } from "./announcements.svelte";
import type { ChosenMark } from "./chosen-mark.svelte";
import type { MarkNavigation } from "./mark-navigation";
import type { Panels } from "./panels.svelte";
import type { TextSelection } from "./text-selection.svelte";
import type { WordPicking } from "./word-picking";

/** Editing of marks: create, label, answer, resize, delete, undo. */
export class MarkEdits {
  constructor(
    private readonly current: TaskState,
    private readonly changes: TaskChanges,
    private readonly chosen: ChosenMark,
    private readonly selection: TextSelection,
    private readonly marks: MarkNavigation,
    private readonly picking: WordPicking,
    private readonly panels: Panels,
    private readonly announcements: Announcements,
  ) {}

  /** Label the selected words, or change the label of the selected mark. */
  applyLabel(name: string): void {
    const { chosen, selection } = this;
    if (this.current.isReadOnly || selection.mode === "pick" || selection.mode === "add") return;
    if (selection.mode === "gap") return this.addGapMark(name);
    if (selection.mode === "otherwise") return this.picking.addAlternative(name);
    const label = findLabel(this.current.guide, name);
    const spans = [...selection.otherSpans, ...(selection.span ? [selection.unsnappedSpan()!] : [])].map((span) =>
      selection.snapSpan(span, label?.snap ?? "word"),
    );
    if (spans.length > 0) return this.addMark(mergeSpans(spans), name);
    if (chosen.key && chosen.mark?.label !== name) {
      this.relabelMark(chosen.key, name);
      this.marks.announceMark(chosen.key);
    } else if (!chosen.key)
      this.announcements.announce(t(selection.isMarkingForbidden() ? "notMarkedHere" : "selectFirst"));
  }

  /** Change the label of a mark. The mark expands to the unit that the label requires. */
  relabelMark(key: MarkKey, name: string | null): void {
    const snap = findLabel(this.current.guide, name)?.snap ?? "word";
    const widenSpan = (span: Span) =>
      span.start === span.end || name === null ? span : this.selection.snapSpan(span, snap);
    const spans = mergeSpans((this.current.work[key]?.spans ?? []).map(widenSpan));
    this.changes.dispatch({ type: "relabel", key, label: name, spans });
  }

  /** Mark missing words at the caret. The next label applies there. */
  startGap(): void {
    const { selection } = this;
    if (!selection.caret || selection.mode !== "read" || this.current.isReadOnly) return;
    if (selection.isMarkingForbidden()) return this.announcements.showToast(t("notMarkedHere"));
    selection.clear();
    selection.mode = "gap";
    this.announcements.announce(t("gapBanner"));
  }

  setAnswer(question: Question, value: Answer | undefined): void {
    const { key } = this.chosen;
    if (key) this.changes.dispatch({ type: "answer", key, question: question.name, value });
  }

  removeMark(key = this.chosen.key): void {
    if (!key || this.current.isReadOnly) return;
    this.changes.dispatch({ type: "remove", key });
    if (this.chosen.key === key) this.chosen.key = undefined;
    this.selection.mode = "read";
    this.announcements.showToast(t("markDeleted"), true);
    this.announcements.announce(t("deletedUndo"));
  }

  resizeMark(edge: "start" | "end", way: -1 | 1): void {
    const { mark } = this.chosen;
    if (!mark) return;
    const at = this.spanIndexAtCaret(mark);
    const old = mark.spans[at]!;
    const snap = findLabel(this.current.guide, mark.label)?.snap ?? "word";
    const { start, end } = this.current.partSegments(old.part).moveEdge(old, edge, way, snap);
    this.setSpan(at, { ...old, start, end: Math.min(end, this.selection.partLimit(old.part)) });
  }

  /** Drag an edge of the selected mark to an offset. */
  dragEdge(old: { start: number; end: number }, edge: "start" | "end", offset: number): void {
    const { mark } = this.chosen;
    const at = mark?.spans.findIndex((span) => span.start === old.start && span.end === old.end) ?? -1;
    if (!mark || at < 0) return;
    const span = mark.spans[at]!;
    const [start, end] =
      edge === "start" ? [Math.min(offset, span.end - 1), span.end] : [span.start, Math.max(offset, span.start + 1)];
    const snap = findLabel(this.current.guide, mark.label)?.snap ?? "word";
    this.setSpan(at, this.selection.snapSpan({ part: span.part, start, end }, snap));
  }

  undo(redo = false): void {
    const { past, future } = this.current.state;
    const step = (redo ? future : past).at(-1);
    if (!step) return;
    this.changes.dispatch({ type: redo ? "redo" : "undo" });
    const name = t(`step.${step.name}` as Word);
    this.announcements.announce(t(redo ? "redone" : "undone", { name }));
    this.announcements.toast = undefined;
    if (!this.chosen.mark) this.chosen.key = undefined;
  }

  private addGapMark(label: string): void {
    const { part, focus } = this.selection.caret!;
    this.selection.mode = "read";
    this.addMark([{ part, start: focus, end: focus }], label);
  }

  private addMark(spans: readonly Span[], label: string | null): void {
    const { chosen, selection } = this;
    const id = newId();
    this.changes.dispatch({ type: "mark", id, mark: { spans, label, answers: {}, antecedent: [], madeFrom: [] } });
    const last = spans.at(-1)!;
    selection.otherSpans = [];
    selection.caret = { part: last.part, anchor: last.end, focus: last.end };
    chosen.key = markKey(id);
    chosen.offer = undefined;
    this.panels.pendingConfirmation = undefined;
    this.marks.announceMark(chosen.key);
  }

  private spanIndexAtCaret(mark: Mark): number {
    const { caret } = this.selection;
    const at = mark.spans.findIndex(
      ({ part, start, end }) => part === caret?.part && start <= caret.focus && caret.focus <= end,
    );
    return at < 0 ? mark.spans.length - 1 : at;
  }

  private setSpan(at: number, span: Span): void {
    if (span.start >= span.end) return;
    const spans = mergeSpans(this.chosen.mark!.spans.map((each, index) => (index === at ? span : each)));
    this.changes.dispatch({ type: "resize", key: this.chosen.key!, spans });
    this.announcements.announce(quoteSpans(spans, this.current.sources));
  }
}
