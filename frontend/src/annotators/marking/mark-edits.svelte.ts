import { t, type Key as Word } from "../../lib/catalogue";
import type { Span } from "../../lib/text/pieces";
import type { Question } from "../../lib/api-types";
import { findLabel, markQuestions } from "../../lib/questions/questions";
import type { Range } from "./text-segments";
import {
  markKey,
  quoteSpan,
  spanFromWire,
  mergeSpans,
  quoteSpans,
  type DecisionKey,
  type Mark,
  type MarkKey,
} from "../work/work";
import { newId } from "../sync/ids";

import { TextSelection } from "./text-selection.svelte";

/** Something that is open beside or above the text. */
export type Panel = "guide" | "settings" | "texts" | "cannot" | "list" | "palette";

/** Changes to marks: make, label, answer, resize, join, accept, delete, undo. */
export class MarkEdits extends TextSelection {
  panel = $state<Panel>();
  /** "No errors" was pressed once and waits for a second time. */
  pendingConfirmation = $state<"no-errors" | "offers">();
  /** Where the corrections of marks were found in the data. */
  sourceByMark = $state.raw<Readonly<Record<string, string>>>({});
  /** Which other reading of the chosen mark is being made. */
  protected alternativeIndex = 0;

  /** Give the selected words a label, or the chosen mark another one. */
  applyLabel(name: string): void {
    if (this.session.isReadOnly || this.mode === "pick" || this.mode === "add") return;
    if (this.mode === "gap") return this.addGapMark(name);
    if (this.mode === "otherwise") return this.addAlternative(name);
    const label = findLabel(this.session.guide, name);
    const spans = [...this.otherSpans, ...(this.span ? [this.unsnappedSelection()!] : [])].map((span) =>
      this.snapSpan(span, label?.snap ?? "word"),
    );
    if (spans.length > 0) return this.addMark(mergeSpans(spans), name);
    if (this.chosenKey && this.chosenMark?.label !== name) {
      this.relabelMark(this.chosenKey, name);
      this.announceMark(this.chosenKey);
    } else if (!this.chosenKey) this.announce(t(this.isMarkingForbidden() ? "notMarkedHere" : "selectFirst"));
  }

  /** Give a mark another label; it becomes as wide as that one asks for. */
  relabelMark(key: MarkKey, name: string | null): void {
    const snap = findLabel(this.session.guide, name)?.snap ?? "word";
    const widenSpan = (span: Span) => (span.start === span.end || name === null ? span : this.snapSpan(span, snap));
    const spans = mergeSpans((this.work[key]?.spans ?? []).map(widenSpan));
    this.session.dispatch({ type: "relabel", key, label: name, spans });
  }

  protected addGapMark(label: string): void {
    const { part, focus } = this.selection!;
    this.mode = "read";
    this.addMark([{ part, start: focus, end: focus }], label);
  }

  protected addMark(spans: readonly Span[], label: string | null): void {
    const id = newId();
    this.session.dispatch({ type: "mark", id, mark: { spans, label, answers: {}, antecedent: [], madeFrom: [] } });
    const last = spans.at(-1)!;
    this.otherSpans = [];
    this.selection = { part: last.part, anchor: last.end, focus: last.end };
    this.chosenKey = markKey(id);
    this.chosenOffer = undefined;
    this.pendingConfirmation = undefined;
    this.announceMark(this.chosenKey);
  }

  /** Words are missing at the caret: the label that comes next goes there. */
  startGap(): void {
    if (!this.selection || this.mode !== "read" || this.session.isReadOnly) return;
    if (this.isMarkingForbidden()) return this.showToast(t("notMarkedHere"));
    this.clearSelection();
    this.mode = "gap";
    this.announce(t("gapBanner"));
  }

  setAnswer(question: Question, value: string | number | boolean | string[] | undefined): void {
    if (this.chosenKey) this.session.dispatch({ type: "answer", key: this.chosenKey, question: question.name, value });
  }

  removeMark(key = this.chosenKey): void {
    if (!key || this.session.isReadOnly) return;
    this.session.dispatch({ type: "remove", key });
    if (this.chosenKey === key) this.chosenKey = undefined;
    this.mode = "read";
    this.showToast(t("markDeleted"), true);
    this.announce(t("deletedUndo"));
  }

  resizeMark(edge: "start" | "end", way: -1 | 1): void {
    const mark = this.chosenMark;
    if (!this.chosenKey || !mark) return;
    const at = this.spanIndexAtCaret(mark);
    const old = mark.spans[at]!;
    const snap = findLabel(this.session.guide, mark.label)?.snap ?? "word";
    const range = this.session.partSegments(old.part).moveEdge(old, edge, way, snap);
    this.setSpan(at, { ...old, ...this.clampRange(range, old.part) });
  }

  protected clampRange({ start, end }: Range, part: string): Range {
    return { start, end: Math.min(end, this.partLimit(part)) };
  }

  /** Drag an edge of the chosen mark to an offset. */
  dragEdge(old: { start: number; end: number }, edge: "start" | "end", offset: number): void {
    const mark = this.chosenMark;
    const at = mark?.spans.findIndex((span) => span.start === old.start && span.end === old.end) ?? -1;
    if (!mark || at < 0) return;
    const span = mark.spans[at]!;
    const [a, b] =
      edge === "start" ? [Math.min(offset, span.end - 1), span.end] : [span.start, Math.max(offset, span.start + 1)];
    this.setSpan(
      at,
      this.snapSpan({ part: span.part, start: a, end: b }, findLabel(this.session.guide, mark.label)?.snap ?? "word"),
    );
  }

  protected spanIndexAtCaret(mark: Mark): number {
    const at = mark.spans.findIndex(
      ({ part, start, end }) =>
        part === this.selection?.part && start <= this.selection.focus && this.selection.focus <= end,
    );
    return at < 0 ? mark.spans.length - 1 : at;
  }

  protected setSpan(at: number, span: Span): void {
    if (span.start >= span.end) return;
    const spans = mergeSpans(this.chosenMark!.spans.map((each, index) => (index === at ? span : each)));
    this.session.dispatch({ type: "resize", key: this.chosenKey!, spans });
    this.announce(quoteSpans(spans, this.session.sources));
  }

  /** Ask for earlier words, or for more words. */
  startPicking(mode: "pick" | "add"): void {
    if (!this.chosenMark || this.session.isReadOnly) return;
    if (mode === "pick" && (findLabel(this.session.guide, this.chosenMark.label)?.antecedent ?? "none") === "none")
      return;
    this.clearSelection();
    this.mode = mode;
    this.panel = undefined;
    this.announce(
      mode === "pick" ? t("pickBanner", { verb: this.labelVerb(this.chosenMark?.label ?? null) }) : t("addBanner"),
    );
    this.focusText();
  }

  /** Ask for another way to read the chosen mark: other words, each with its label. */
  startAlternative(): void {
    if (!this.chosenMark || this.session.isReadOnly) return;
    this.clearSelection();
    this.mode = "otherwise";
    this.alternativeIndex = this.chosenMark.alternatives?.length ?? 0;
    this.panel = undefined;
    this.announce(t("otherwiseBanner"));
    this.focusText();
  }

  /** Selected words and their label become part of the other reading. */
  protected addAlternative(label: string): void {
    const mark = this.chosenMark;
    if (!this.span || !mark || !this.chosenKey) return this.announce(t("selectFirst"));
    const snap = findLabel(this.session.guide, label)?.snap ?? "word";
    const spans = mergeSpans([...this.otherSpans, this.unsnappedSelection()!].map((span) => this.snapSpan(span, snap)));
    const sets = [...(mark.alternatives ?? [])];
    sets[this.alternativeIndex] = [...(sets[this.alternativeIndex] ?? []), { spans, label }];
    this.session.dispatch({ type: "alternatives", key: this.chosenKey, alternatives: sets });
    this.clearSelection();
    this.announce(t("readingAdded", { n: sets[this.alternativeIndex]!.length }));
  }

  removeAlternative(at: number): void {
    if (!this.chosenKey || !this.chosenMark) return;
    const alternatives = (this.chosenMark.alternatives ?? []).filter((_, index) => index !== at);
    this.session.dispatch({ type: "alternatives", key: this.chosenKey, alternatives });
    if (this.mode === "otherwise") this.cancelMode();
  }

  /** Put a value of the data into the correction, and where it was found into the comment, where that is free. */
  fillCorrection(correction: Question, value: string, source: string): void {
    const { chosenKey, chosenMark } = this;
    if (!chosenKey || !chosenMark) return;
    this.setAnswer(correction, value);
    const comment = markQuestions(this.session.guide, chosenMark.label).find(({ name }) => name === "comment");
    const isCommentFree = !chosenMark.answers.comment || chosenMark.answers.comment === this.sourceByMark[chosenKey];
    this.sourceByMark = { ...this.sourceByMark, [chosenKey]: source };
    if (comment && isCommentFree) this.setAnswer(comment, source || undefined);
  }

  /** Leave out where the correction was found. */
  removeSource(): void {
    const { chosenKey, chosenMark } = this;
    if (!chosenKey || !chosenMark) return;
    const comment = markQuestions(this.session.guide, chosenMark.label).find(({ name }) => name === "comment");
    if (comment && chosenMark.answers.comment === this.sourceByMark[chosenKey]) this.setAnswer(comment, undefined);
    this.sourceByMark = Object.fromEntries(Object.entries(this.sourceByMark).filter(([key]) => key !== chosenKey));
  }

  /** Use the selected words for what was asked. */
  useSelection(): void {
    if (this.mode === "otherwise") return this.cancelMode();
    const span = this.span;
    if (!span || !this.chosenKey) return;
    if (this.mode === "pick")
      this.session.dispatch({ type: "antecedent", key: this.chosenKey, spans: mergeSpans([...this.otherSpans, span]) });
    if (this.mode === "add") this.addWords();
    this.cancelMode();
    this.announce(quoteSpan(span, this.session.sources));
  }

  protected addWords(): void {
    const snap = findLabel(this.session.guide, this.chosenMark!.label)?.snap ?? "word";
    const spans = mergeSpans([
      ...this.chosenMark!.spans,
      ...this.otherSpans,
      this.snapSpan(this.unsnappedSelection()!, snap),
    ]);
    this.session.dispatch({ type: "resize", key: this.chosenKey!, spans });
    this.announce(t("spans", { n: spans.length }));
    this.clearSelection();
  }

  removeAntecedent(): void {
    if (this.chosenKey) this.session.dispatch({ type: "antecedent", key: this.chosenKey, spans: [] });
    this.cancelMode();
  }

  acceptOffer(id: string): void {
    const offered = this.offers.find((each) => each.id === id);
    if (!offered) return;
    const markId = newId();
    const spans = offered.spans.map((span) => spanFromWire(span, this.session.sources));
    const mark: Mark = { spans, label: offered.label, answers: offered.answers, antecedent: [], madeFrom: [id] };
    this.session.dispatch({ type: "mark", id: markId, mark, offer: `decisions/${id}` });
    this.chooseMark(markKey(markId));
  }

  rejectOffer(id: string): void {
    const key: DecisionKey = `decisions/${id}`;
    this.session.dispatch({ type: "reject", key });
    this.chosenOffer = undefined;
    this.showToast(t((this.session.task?.round ?? 0) > 0 ? "othersLeft" : "suggestionRejected"), true);
  }

  undo(redo = false): void {
    const { past, future } = this.session.state;
    const step = (redo ? future : past).at(-1);
    if (!step) return;
    this.session.dispatch({ type: redo ? "redo" : "undo" });
    const name = t(`step.${step.name}` as Word);
    this.announce(t(redo ? "redone" : "undone", { name }));
    this.toast = undefined;
    if (this.chosenKey && !this.work[this.chosenKey]) this.chosenKey = undefined;
  }
}
