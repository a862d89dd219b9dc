import { tick } from "svelte";
import { t } from "../../lib/catalogue";
import { lookOf } from "../../lib/label-looks";
import type { Drawing, Span } from "../../lib/text/pieces";
import type { Offered } from "../../lib/api-types";
import { surfaceAt, type Selected } from "./caret";
import { alternativeDrawings, earlierDrawings, markDrawings, offerDrawings } from "./drawings";
import { missingOfMark } from "../work/missing";
import { isGiven, labelOf } from "../../lib/questions/questions";
import type { Snap } from "./snap";
import { spanFromWire, wordsOf, type Mark, type MarkKey } from "../work/work";
import type { Session } from "../session/session.svelte";

import { Announcements } from "./announcements.svelte";

/**
 * `pick`: earlier words for a mark; `add`: more words for a mark; `gap`: a label for words that are missing;
 * `otherwise`: other words that could be called wrong instead of a mark.
 */
export type Mode = "read" | "pick" | "add" | "gap" | "otherwise";

const SNAPS: readonly Snap[] = ["character", "word", "sentence"];

/** Which words are selected, which mark is chosen, and what lies where in the text. */
export abstract class TextSelection extends Announcements {
  selection = $state.raw<Selected>();
  /** Words selected before, to be marked together with the selection. */
  others = $state.raw<readonly Span[]>([]);
  chosen = $state<MarkKey>();
  offer = $state<string>();
  mode = $state<Mode>("read");
  /** Whether the text has the focus, so that the caret is shown. */
  focused = $state(false);
  /** Marks that the hover card tells about, and the place it points to. */
  hover = $state.raw<{ readonly keys: readonly MarkKey[]; readonly x: number; readonly y: number }>();
  /** A finger or the mouse is down: trays wait. */
  pressing = $state(false);

  constructor(protected readonly session: Session) {
    super();
  }

  /** The words that would be marked now. */
  readonly span: Span | undefined = $derived(this.selectedSpan());
  readonly offers: readonly Offered[] = $derived.by(() =>
    (this.session.task?.offered ?? []).filter(({ id }) => this.session.state.work[`decisions/${id}`] === undefined),
  );
  /** Marks at the caret, shortest first. */
  readonly here: readonly MarkKey[] = $derived(
    this.selection ? this.marksAt(this.selection.part, this.selection.focus) : [],
  );
  readonly drawings: readonly Drawing[] = $derived(this.allDrawings());

  get work() {
    return this.session.state.work;
  }

  get mark(): Mark | undefined {
    return this.chosen && this.work[this.chosen];
  }

  look(label: string | null) {
    return lookOf(this.session.guide.looks, label);
  }

  title(label: string | null): string {
    return this.look(label).title || t("noLabel");
  }

  /** What a mark with this label does to the earlier words it is picked with. */
  verb(label: string | null): string {
    return labelOf(this.session.guide, label)?.verb || t("verb");
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

  protected selectedSpan(): Span | undefined {
    if (!this.selection || !this.session.me || this.selection.anchor === this.selection.focus) return undefined;
    if (this.isUnmarked()) return undefined;
    const { part, anchor, focus } = this.selection;
    return this.snapped({ part, start: Math.min(anchor, focus), end: Math.max(anchor, focus) }, this.snap());
  }

  /** Whether the selection lies where nothing may be marked; earlier words may be picked anywhere. */
  protected isUnmarked(): boolean {
    return this.selection !== undefined && this.mode !== "pick" && !this.session.mayMark(this.selection.part);
  }

  /** What a selection widens to before a label is chosen: the finest that any label asks for. */
  protected snap(): Snap {
    const { labels } = this.session.guide;
    if (this.mode === "pick") return "word";
    if (this.mode === "add") return labelOf(this.session.guide, this.mark?.label ?? null)?.snap ?? "word";
    return SNAPS.find((snap) => labels.some((label) => (label.snap ?? "word") === snap)) ?? "word";
  }

  protected snapped(span: Span, snap: Snap): Span {
    const limit = this.limit(span.part);
    const { start, end } = this.session.segments(span.part).snap(span, snap);
    return { part: span.part, start: Math.min(start, limit), end: Math.min(end, limit) };
  }

  /** Up to where a part is on the page: later parts are not there yet. */
  protected limit(part: string): number {
    const current = part === "text" ? this.session.parts[this.session.partAt] : undefined;
    return current?.end ?? this.session.sources[part]?.text.length ?? 0;
  }

  protected rawSpan(): Span | undefined {
    if (!this.selection) return undefined;
    const { part, anchor, focus } = this.selection;
    return { part, start: Math.min(anchor, focus), end: Math.max(anchor, focus) };
  }

  protected allDrawings(): Drawing[] {
    const { marks, guide, sources, parts, partAt } = this.session;
    const picking = this.mode === "pick";
    const from = parts[partAt]?.start ?? 0;
    return [
      ...markDrawings(marks, guide.looks, this.chosen, from, picking),
      ...(this.mark ? earlierDrawings(this.chosen!, this.mark, guide.looks, this.verb(this.mark.label)) : []),
      ...(this.mark ? alternativeDrawings(this.chosen!, this.mark, guide.looks) : []),
      ...offerDrawings(this.offers, guide.looks, this.offer, sources),
    ];
  }

  /** Select words, or put the caret somewhere. */
  select(part: string, anchor: number, focus = anchor, adding = false): void {
    const before = this.span;
    if (adding && before) this.others = [...this.others, before];
    else if (!adding) this.others = [];
    const segments = this.session.segments(part);
    const at = (offset: number) => Math.min(segments.place(offset).start, this.limit(part));
    this.selection = { part, anchor: at(anchor), focus: at(focus) };
    if (anchor !== focus) this.offer = undefined;
    if (adding && !before && this.mark && this.span && this.mode === "read") this.addWords();
  }

  selectAround(part: string, offset: number, what: Snap): void {
    const { start, end } = this.session.segments(part).snap(this.session.segments(part).at(offset, what), what);
    this.select(part, start, end);
  }

  clear(): void {
    this.others = [];
    if (this.selection) this.selection = { ...this.selection, anchor: this.selection.focus };
  }

  cancel(): void {
    this.mode = "read";
    this.clear();
  }

  choose(key: MarkKey | undefined, reveal = false): void {
    if (this.mode !== "read" && key !== this.chosen) this.cancel();
    this.chosen = key;
    this.offer = undefined;
    const first = key && this.work[key]?.spans[0];
    if (!first) return;
    this.clear();
    if (!this.selection || !this.here.includes(key)) this.select(first.part, first.start);
    if (reveal) void this.reveal(first);
  }

  chooseOffer(id: string, reveal = false): void {
    this.chosen = undefined;
    this.offer = id;
    const offered = this.offers.find((each) => each.id === id);
    if (reveal && offered) void this.reveal(spanFromWire(offered.spans[0]!, this.session.sources));
  }

  /** Scroll to words. */
  async reveal(span: Span): Promise<void> {
    const part = this.session.parts.findIndex(
      (each) => span.part === "text" && span.start >= each.start && span.start < each.end,
    );
    if (part > this.session.partAt) this.session.goToPart(part);
    await tick();
    const piece = [
      ...document.querySelectorAll<HTMLElement>(`[data-part="${CSS.escape(span.part)}"] [data-at]`),
    ].findLast((each) => Number(each.dataset.at) <= span.start);
    piece?.scrollIntoView({ block: "nearest" });
  }

  /** Click on words: marks there are chosen one after another, shortest first. */
  click(part: string, offset: number, offered?: string): void {
    const under = this.marksAt(part, offset);
    this.select(part, offset);
    if (this.mode !== "read") return;
    const at = this.chosen ? under.indexOf(this.chosen) : -1;
    const next = under[(at + 1) % Math.max(1, under.length)];
    if (offered) this.chooseOffer(offered);
    else this.choose(next);
    if (next) this.describe(next, under);
  }

  /** What a screen reader hears of a mark. */
  describe(key: MarkKey, among: readonly MarkKey[] = []): void {
    const mark = this.work[key];
    if (!mark) return;
    const { marks, guide, sources } = this.session;
    const n = marks.findIndex(([each]) => each === key) + 1;
    const words = mark.spans.every(({ start, end }) => start === end)
      ? t("gapAfter", { words: this.wordBefore(mark.spans[0]!) })
      : wordsOf(mark.spans, sources);
    const parts = [t("markSpoken", { name: this.title(mark.label), words, n, of: marks.length })];
    const next = missingOfMark(key, mark, guide)[0];
    if (next?.question) parts.push(t("answerNext", { question: next.question.ask }));
    if (among.length > 1) parts.push(t("hereOf", { n: among.indexOf(key) + 1, of: among.length }));
    if (isGiven(mark.answers.explanation)) parts.push(String(mark.answers.explanation));
    this.say(parts.join(" "));
  }

  /** The last word before a place, with what clings to it. */
  wordBefore({ part, start }: Span): string {
    const before = this.session.sources[part]!.text.slice(Math.max(0, start - 24), start);
    return before.trim().split(/\s+/).at(-1)!;
  }

  firstPlace(): Selected {
    const start = this.session.parts[this.session.partAt]?.start ?? 0;
    return { part: "text", anchor: start, focus: start };
  }

  focusText(): void {
    void tick().then(() => {
      const { part, focus } = this.selection ?? this.firstPlace();
      surfaceAt(part, focus)?.focus({ preventScroll: true });
    });
  }

  /** Make the selected words part of the chosen mark. */
  protected abstract addWords(): void;
}
