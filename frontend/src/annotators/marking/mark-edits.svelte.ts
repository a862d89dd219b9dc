import { t, type Key as Word } from "../../lib/catalogue";
import type { Span } from "../../lib/text/pieces";
import type { Question } from "../../lib/api-types";
import { labelOf, questionsOf } from "../../lib/questions/questions";
import type { Range } from "./snap";
import {
  markKey,
  quoteOf,
  spanFromWire,
  union,
  wordsOf,
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
  asking = $state<"no-errors" | "offers">();
  /** Where the corrections of marks were found in the data. */
  foundAt = $state.raw<Readonly<Record<string, string>>>({});
  /** Which other reading of the chosen mark is being made. */
  protected reading = 0;

  /** Give the selected words a label, or the chosen mark another one. */
  label(name: string): void {
    if (this.session.readOnly || this.mode === "pick" || this.mode === "add") return;
    if (this.mode === "gap") return this.makeGap(name);
    if (this.mode === "otherwise") return this.addReading(name);
    const label = labelOf(this.session.guide, name);
    const spans = [...this.others, ...(this.span ? [this.rawSpan()!] : [])].map((span) =>
      this.snapped(span, label?.snap ?? "word"),
    );
    if (spans.length > 0) return this.make(union(spans), name);
    if (this.chosen && this.mark?.label !== name) {
      this.relabel(this.chosen, name);
      this.describe(this.chosen);
    } else if (!this.chosen) this.say(t(this.isUnmarked() ? "notMarkedHere" : "selectFirst"));
  }

  /** Give a mark another label; it becomes as wide as that one asks for. */
  relabel(key: MarkKey, name: string | null): void {
    const snap = labelOf(this.session.guide, name)?.snap ?? "word";
    const wide = (span: Span) => (span.start === span.end || name === null ? span : this.snapped(span, snap));
    const spans = union((this.work[key]?.spans ?? []).map(wide));
    this.session.dispatch({ type: "relabel", key, label: name, spans });
  }

  protected makeGap(label: string): void {
    const { part, focus } = this.selection!;
    this.mode = "read";
    this.make([{ part, start: focus, end: focus }], label);
  }

  protected make(spans: readonly Span[], label: string | null): void {
    const id = newId();
    this.session.dispatch({ type: "mark", id, mark: { spans, label, answers: {}, antecedent: [], madeFrom: [] } });
    const last = spans.at(-1)!;
    this.others = [];
    this.selection = { part: last.part, anchor: last.end, focus: last.end };
    this.chosen = markKey(id);
    this.offer = undefined;
    this.asking = undefined;
    this.describe(this.chosen);
  }

  /** Words are missing at the caret: the label that comes next goes there. */
  gap(): void {
    if (!this.selection || this.mode !== "read" || this.session.readOnly) return;
    if (this.isUnmarked()) return this.notify(t("notMarkedHere"));
    this.clear();
    this.mode = "gap";
    this.say(t("gapBanner"));
  }

  answer(question: Question, value: string | number | boolean | string[] | undefined): void {
    if (this.chosen) this.session.dispatch({ type: "answer", key: this.chosen, question: question.name, value });
  }

  remove(key = this.chosen): void {
    if (!key || this.session.readOnly) return;
    this.session.dispatch({ type: "remove", key });
    if (this.chosen === key) this.chosen = undefined;
    this.mode = "read";
    this.notify(t("markDeleted"), true);
    this.say(t("deletedUndo"));
  }

  resize(edge: "start" | "end", way: -1 | 1): void {
    const mark = this.mark;
    if (!this.chosen || !mark) return;
    const at = this.spanAtCaret(mark);
    const old = mark.spans[at]!;
    const snap = labelOf(this.session.guide, mark.label)?.snap ?? "word";
    const range = this.session.segments(old.part).moved(old, edge, way, snap);
    this.setSpan(at, { ...old, ...this.within(range, old.part) });
  }

  protected within({ start, end }: Range, part: string): Range {
    return { start, end: Math.min(end, this.limit(part)) };
  }

  /** Drag an edge of the chosen mark to an offset. */
  drag(old: { start: number; end: number }, edge: "start" | "end", offset: number): void {
    const mark = this.mark;
    const at = mark?.spans.findIndex((span) => span.start === old.start && span.end === old.end) ?? -1;
    if (!mark || at < 0) return;
    const span = mark.spans[at]!;
    const [a, b] =
      edge === "start" ? [Math.min(offset, span.end - 1), span.end] : [span.start, Math.max(offset, span.start + 1)];
    this.setSpan(
      at,
      this.snapped({ part: span.part, start: a, end: b }, labelOf(this.session.guide, mark.label)?.snap ?? "word"),
    );
  }

  protected spanAtCaret(mark: Mark): number {
    const at = mark.spans.findIndex(
      ({ part, start, end }) =>
        part === this.selection?.part && start <= this.selection.focus && this.selection.focus <= end,
    );
    return at < 0 ? mark.spans.length - 1 : at;
  }

  protected setSpan(at: number, span: Span): void {
    if (span.start >= span.end) return;
    const spans = union(this.mark!.spans.map((each, index) => (index === at ? span : each)));
    this.session.dispatch({ type: "resize", key: this.chosen!, spans });
    this.say(wordsOf(spans, this.session.sources));
  }

  /** Ask for earlier words, or for more words. */
  ask(mode: "pick" | "add"): void {
    if (!this.mark || this.session.readOnly) return;
    if (mode === "pick" && (labelOf(this.session.guide, this.mark.label)?.antecedent ?? "none") === "none") return;
    this.clear();
    this.mode = mode;
    this.panel = undefined;
    this.say(mode === "pick" ? t("pickBanner", { verb: this.verb(this.mark?.label ?? null) }) : t("addBanner"));
    this.focusText();
  }

  /** Ask for another way to read the chosen mark: other words, each with its label. */
  askOtherwise(): void {
    if (!this.mark || this.session.readOnly) return;
    this.clear();
    this.mode = "otherwise";
    this.reading = this.mark.alternatives?.length ?? 0;
    this.panel = undefined;
    this.say(t("otherwiseBanner"));
    this.focusText();
  }

  /** Selected words and their label become part of the other reading. */
  protected addReading(label: string): void {
    const mark = this.mark;
    if (!this.span || !mark || !this.chosen) return this.say(t("selectFirst"));
    const snap = labelOf(this.session.guide, label)?.snap ?? "word";
    const spans = union([...this.others, this.rawSpan()!].map((span) => this.snapped(span, snap)));
    const sets = [...(mark.alternatives ?? [])];
    sets[this.reading] = [...(sets[this.reading] ?? []), { spans, label }];
    this.session.dispatch({ type: "alternatives", key: this.chosen, alternatives: sets });
    this.clear();
    this.say(t("readingAdded", { n: sets[this.reading]!.length }));
  }

  removeReading(at: number): void {
    if (!this.chosen || !this.mark) return;
    const alternatives = (this.mark.alternatives ?? []).filter((_, index) => index !== at);
    this.session.dispatch({ type: "alternatives", key: this.chosen, alternatives });
    if (this.mode === "otherwise") this.cancel();
  }

  /** Put a value of the data into the correction, and where it was found into the comment, where that is free. */
  useValue(correction: Question, value: string, source: string): void {
    const { chosen, mark } = this;
    if (!chosen || !mark) return;
    this.answer(correction, value);
    const comment = questionsOf(this.session.guide, mark.label).find(({ name }) => name === "comment");
    const free = !mark.answers.comment || mark.answers.comment === this.foundAt[chosen];
    this.foundAt = { ...this.foundAt, [chosen]: source };
    if (comment && free) this.answer(comment, source || undefined);
  }

  /** Leave out where the correction was found. */
  leaveSource(): void {
    const { chosen, mark } = this;
    if (!chosen || !mark) return;
    const comment = questionsOf(this.session.guide, mark.label).find(({ name }) => name === "comment");
    if (comment && mark.answers.comment === this.foundAt[chosen]) this.answer(comment, undefined);
    this.foundAt = Object.fromEntries(Object.entries(this.foundAt).filter(([key]) => key !== chosen));
  }

  /** Use the selected words for what was asked. */
  use(): void {
    if (this.mode === "otherwise") return this.cancel();
    const span = this.span;
    if (!span || !this.chosen) return;
    if (this.mode === "pick")
      this.session.dispatch({ type: "antecedent", key: this.chosen, spans: union([...this.others, span]) });
    if (this.mode === "add") this.addWords();
    this.cancel();
    this.say(quoteOf(span, this.session.sources));
  }

  protected addWords(): void {
    const snap = labelOf(this.session.guide, this.mark!.label)?.snap ?? "word";
    const spans = union([...this.mark!.spans, ...this.others, this.snapped(this.rawSpan()!, snap)]);
    this.session.dispatch({ type: "resize", key: this.chosen!, spans });
    this.say(t("spans", { n: spans.length }));
    this.clear();
  }

  withoutAntecedent(): void {
    if (this.chosen) this.session.dispatch({ type: "antecedent", key: this.chosen, spans: [] });
    this.cancel();
  }

  accept(id: string): void {
    const offered = this.offers.find((each) => each.id === id);
    if (!offered) return;
    const own = newId();
    const spans = offered.spans.map((span) => spanFromWire(span, this.session.sources));
    const mark: Mark = { spans, label: offered.label, answers: offered.answers, antecedent: [], madeFrom: [id] };
    this.session.dispatch({ type: "mark", id: own, mark, offer: `decisions/${id}` });
    this.choose(markKey(own));
  }

  reject(id: string): void {
    const key: DecisionKey = `decisions/${id}`;
    this.session.dispatch({ type: "reject", key });
    this.offer = undefined;
    this.notify(t((this.session.task?.round ?? 0) > 0 ? "othersLeft" : "suggestionRejected"), true);
  }

  undo(redo = false): void {
    const { past, future } = this.session.state;
    const step = (redo ? future : past).at(-1);
    if (!step) return;
    this.session.dispatch({ type: redo ? "redo" : "undo" });
    const name = t(`step.${step.name}` as Word);
    this.say(t(redo ? "redone" : "undone", { name }));
    this.toast = undefined;
    if (this.chosen && !this.work[this.chosen]) this.chosen = undefined;
  }
}
