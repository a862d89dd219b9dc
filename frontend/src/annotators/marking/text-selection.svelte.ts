import { tick } from "svelte";
import { t } from "../../lib/catalogue";
import { findLabelLook } from "../../lib/label-styles";
import type { Drawing, Span } from "../../lib/text/pieces";
import type { OfferedMark } from "../../lib/api-types";
import { surfaceAt, type CaretSelection } from "./caret";
import { alternativeDrawings, antecedentDrawings, markDrawings, offerDrawings } from "./drawings";
import { missingInMark } from "../work/missing-items";
import { isAnswered, findLabel } from "../../lib/questions/questions";
import type { Snap } from "./text-segments";
import { spanFromWire, quoteSpans, type Mark, type MarkKey } from "../work/work";
import type { Session } from "../session/session.svelte";

import { Announcements } from "./announcements.svelte";

/**
 * `pick`: earlier words for a mark; `add`: more words for a mark; `gap`: a label for words that are missing;
 * `otherwise`: other words that could be called wrong instead of a mark.
 */
export type Mode = "read" | "pick" | "add" | "gap" | "otherwise";

const SNAPS_FINEST_FIRST: readonly Snap[] = ["character", "word", "sentence"];

/** Which words are selected, which mark is chosen, and what lies where in the text. */
export abstract class TextSelection extends Announcements {
  selection = $state.raw<CaretSelection>();
  /** Words selected before, to be marked together with the selection. */
  otherSpans = $state.raw<readonly Span[]>([]);
  chosenKey = $state<MarkKey>();
  chosenOffer = $state<string>();
  mode = $state<Mode>("read");
  /** Whether the text has the focus, so that the caret is shown. */
  isFocused = $state(false);
  /** Marks that the hover card tells about, and the place it points to. */
  hoverCard = $state.raw<{ readonly keys: readonly MarkKey[]; readonly x: number; readonly y: number }>();
  /** A finger or the mouse is down: trays wait. */
  isPressing = $state(false);

  constructor(protected readonly session: Session) {
    super();
  }

  /** The words that would be marked now. */
  readonly span: Span | undefined = $derived(this.snappedSelection());
  readonly offers: readonly OfferedMark[] = $derived.by(() =>
    (this.session.task?.offered ?? []).filter(({ id }) => this.session.state.work[`decisions/${id}`] === undefined),
  );
  /** Marks at the caret, shortest first. */
  readonly marksAtCaret: readonly MarkKey[] = $derived(
    this.selection ? this.marksAt(this.selection.part, this.selection.focus) : [],
  );
  readonly drawings: readonly Drawing[] = $derived(this.allDrawings());

  get work() {
    return this.session.state.work;
  }

  get chosenMark(): Mark | undefined {
    return this.chosenKey && this.work[this.chosenKey];
  }

  labelLook(label: string | null) {
    return findLabelLook(this.session.guide.looks, label);
  }

  labelTitle(label: string | null): string {
    return this.labelLook(label).title || t("noLabel");
  }

  /** What a mark with this label does to the earlier words it is picked with. */
  labelVerb(label: string | null): string {
    return findLabel(this.session.guide, label)?.verb || t("verb");
  }

  marksAt(part: string, offset: number): MarkKey[] {
    const covers = (span: Span) =>
      span.part === part &&
      span.start <= offset &&
      (offset < span.end || span.start === span.end || offset === span.end);
    const length = (mark: Mark) => mark.spans.reduce((sum, { start, end }) => sum + end - start, 0);
    return this.session.marks
      .filter(([, mark]) => mark.spans.some(covers))
      .sort(([, a], [, b]) => length(a) - length(b))
      .map(([key]) => key);
  }

  protected snappedSelection(): Span | undefined {
    if (!this.selection || !this.session.me || this.selection.anchor === this.selection.focus) return undefined;
    if (this.isMarkingForbidden()) return undefined;
    const { part, anchor, focus } = this.selection;
    return this.snapSpan({ part, start: Math.min(anchor, focus), end: Math.max(anchor, focus) }, this.selectionSnap());
  }

  /** Whether the selection lies where nothing may be marked; earlier words may be picked anywhere. */
  protected isMarkingForbidden(): boolean {
    return this.selection !== undefined && this.mode !== "pick" && !this.session.canMark(this.selection.part);
  }

  /** What a selection widens to before a label is chosen: the finest that any label asks for. */
  protected selectionSnap(): Snap {
    const { labels } = this.session.guide;
    if (this.mode === "pick") return "word";
    if (this.mode === "add") return findLabel(this.session.guide, this.chosenMark?.label ?? null)?.snap ?? "word";
    return SNAPS_FINEST_FIRST.find((snap) => labels.some((label) => (label.snap ?? "word") === snap)) ?? "word";
  }

  protected snapSpan(span: Span, snap: Snap): Span {
    const limit = this.partLimit(span.part);
    const { start, end } = this.session.partSegments(span.part).snap(span, snap);
    return { part: span.part, start: Math.min(start, limit), end: Math.min(end, limit) };
  }

  /** Up to where a part is on the page: later parts are not there yet. */
  protected partLimit(part: string): number {
    const current = part === "text" ? this.session.parts[this.session.partIndex] : undefined;
    return current?.end ?? this.session.sources[part]?.text.length ?? 0;
  }

  protected unsnappedSelection(): Span | undefined {
    if (!this.selection) return undefined;
    const { part, anchor, focus } = this.selection;
    return { part, start: Math.min(anchor, focus), end: Math.max(anchor, focus) };
  }

  protected allDrawings(): Drawing[] {
    const { marks, guide, sources, parts, partIndex } = this.session;
    const picking = this.mode === "pick";
    const from = parts[partIndex]?.start ?? 0;
    return [
      ...markDrawings(marks, guide.looks, this.chosenKey, from, picking),
      ...(this.chosenMark
        ? antecedentDrawings(this.chosenKey!, this.chosenMark, guide.looks, this.labelVerb(this.chosenMark.label))
        : []),
      ...(this.chosenMark ? alternativeDrawings(this.chosenKey!, this.chosenMark, guide.looks) : []),
      ...offerDrawings(this.offers, guide.looks, this.chosenOffer, sources),
    ];
  }

  /** Select words, or put the caret somewhere. */
  select(part: string, anchor: number, focus = anchor, adding = false): void {
    const before = this.span;
    if (adding && before) this.otherSpans = [...this.otherSpans, before];
    else if (!adding) this.otherSpans = [];
    const segments = this.session.partSegments(part);
    const at = (offset: number) => Math.min(segments.snapCaret(offset).start, this.partLimit(part));
    this.selection = { part, anchor: at(anchor), focus: at(focus) };
    if (anchor !== focus) this.chosenOffer = undefined;
    if (adding && !before && this.chosenMark && this.span && this.mode === "read") this.addWords();
  }

  selectAround(part: string, offset: number, what: Snap): void {
    const { start, end } = this.session
      .partSegments(part)
      .snap(this.session.partSegments(part).segmentAt(offset, what), what);
    this.select(part, start, end);
  }

  clearSelection(): void {
    this.otherSpans = [];
    if (this.selection) this.selection = { ...this.selection, anchor: this.selection.focus };
  }

  cancelMode(): void {
    this.mode = "read";
    this.clearSelection();
  }

  chooseMark(key: MarkKey | undefined, reveal = false): void {
    if (this.mode !== "read" && key !== this.chosenKey) this.cancelMode();
    this.chosenKey = key;
    this.chosenOffer = undefined;
    const first = key && this.work[key]?.spans[0];
    if (!first) return;
    this.clearSelection();
    if (!this.selection || !this.marksAtCaret.includes(key)) this.select(first.part, first.start);
    if (reveal) void this.scrollToSpan(first);
  }

  chooseOffer(id: string, reveal = false): void {
    this.chosenKey = undefined;
    this.chosenOffer = id;
    const offered = this.offers.find((each) => each.id === id);
    if (reveal && offered) void this.scrollToSpan(spanFromWire(offered.spans[0]!, this.session.sources));
  }

  /** Scroll to words. */
  async scrollToSpan(span: Span): Promise<void> {
    const part = this.session.parts.findIndex(
      (each) => span.part === "text" && span.start >= each.start && span.start < each.end,
    );
    if (part > this.session.partIndex) this.session.goToPart(part);
    await tick();
    const piece = [
      ...document.querySelectorAll<HTMLElement>(`[data-part="${CSS.escape(span.part)}"] [data-at]`),
    ].findLast((each) => Number(each.dataset.at) <= span.start);
    piece?.scrollIntoView({ block: "nearest" });
  }

  /** Click on words: marks there are chosen one after another, shortest first. */
  handleClick(part: string, offset: number, offered?: string): void {
    const keys = this.marksAt(part, offset);
    this.select(part, offset);
    if (this.mode !== "read") return;
    const at = this.chosenKey ? keys.indexOf(this.chosenKey) : -1;
    const next = keys[(at + 1) % Math.max(1, keys.length)];
    if (offered) this.chooseOffer(offered);
    else this.chooseMark(next);
    if (next) this.announceMark(next, keys);
  }

  /** What a screen reader hears of a mark. */
  announceMark(key: MarkKey, among: readonly MarkKey[] = []): void {
    const mark = this.work[key];
    if (!mark) return;
    const { marks, guide, sources } = this.session;
    const n = marks.findIndex(([each]) => each === key) + 1;
    const words = mark.spans.every(({ start, end }) => start === end)
      ? t("gapAfter", { words: this.wordBefore(mark.spans[0]!) })
      : quoteSpans(mark.spans, sources);
    const parts = [t("markSpoken", { name: this.labelTitle(mark.label), words, n, of: marks.length })];
    const next = missingInMark(key, mark, guide)[0];
    if (next?.question) parts.push(t("answerNext", { question: next.question.ask }));
    if (among.length > 1) parts.push(t("hereOf", { n: among.indexOf(key) + 1, of: among.length }));
    if (isAnswered(mark.answers.explanation)) parts.push(String(mark.answers.explanation));
    this.announce(parts.join(" "));
  }

  /** The last word before a place, with what clings to it. */
  wordBefore({ part, start }: Span): string {
    const before = this.session.sources[part]!.text.slice(Math.max(0, start - 24), start);
    return before.trim().split(/\s+/).at(-1)!;
  }

  firstPosition(): CaretSelection {
    const start = this.session.parts[this.session.partIndex]?.start ?? 0;
    return { part: "text", anchor: start, focus: start };
  }

  focusText(): void {
    void tick().then(() => {
      const { part, focus } = this.selection ?? this.firstPosition();
      surfaceAt(part, focus)?.focus({ preventScroll: true });
    });
  }

  /** Make the selected words part of the chosen mark. */
  protected abstract addWords(): void;
}
