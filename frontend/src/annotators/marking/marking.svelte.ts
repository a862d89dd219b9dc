import { tick } from "svelte";
import { t, type Key as Word } from "../../lib/catalogue";
import { lookOf } from "../../lib/label-looks";
import type { Drawing, Span } from "../../lib/text/pieces";
import type { Offered, Question } from "../../lib/api-types";
import { boundsOf, neighbour, surfaceAt, visualTarget, type Place, type Selected } from "./caret";
import { earlierDrawings, markDrawings, offerDrawings } from "./drawings";
import type { Command } from "./keys";
import { missingOfMark, type Missing } from "../work/missing";
import { digitQuestion, isGiven, labelOf, questionsOf } from "../../lib/questions/questions";
import type { Range, Snap } from "./snap";
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
import type { Session } from "../session.svelte";

/** `pick`: earlier words for a mark; `add`: more words for a mark; `gap`: a label for words that are missing. */
export type Mode = "read" | "pick" | "add" | "gap";
export type Panel = "guide" | "settings" | "texts" | "cannot" | "list" | "palette";
export interface Toast {
  readonly say: string;
  readonly undo: boolean;
}

const SNAPS: readonly Snap[] = ["character", "word", "sentence"];

/** What is selected, chosen and asked for on the page, and what commands do to it. */
export class Marking {
  selection = $state.raw<Selected>();
  /** Words selected before, to be marked together with the selection. */
  others = $state.raw<readonly Span[]>([]);
  chosen = $state<MarkKey>();
  offer = $state<string>();
  mode = $state<Mode>("read");
  panel = $state<Panel>();
  defined = $state<string>();
  toast = $state.raw<Toast>();
  /** "No errors" was pressed once and waits for a second time. */
  asking = $state(false);
  /** Said to screen readers: politely, and at once. */
  spoken = $state("");
  alerted = $state("");
  /** Whether the text has the focus, so that the caret is shown. */
  focused = $state(false);
  /** A field that should be looked at. */
  wanted = $state.raw<Missing>();
  /** Marks that the hover card tells about, and the place it points to. */
  hover = $state.raw<{ readonly keys: readonly MarkKey[]; readonly x: number; readonly y: number }>();
  /** A finger or the mouse is down: trays wait. */
  pressing = $state(false);

  private toastTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly session: Session) {}

  // --- what is where ---

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

  private selectedSpan(): Span | undefined {
    if (!this.selection || !this.session.me || this.selection.anchor === this.selection.focus) return undefined;
    const { part, anchor, focus } = this.selection;
    return this.snapped({ part, start: Math.min(anchor, focus), end: Math.max(anchor, focus) }, this.snap());
  }

  /** What a selection widens to before a label is chosen: the finest that any label asks for. */
  private snap(): Snap {
    const { labels } = this.session.guide;
    if (this.mode === "pick") return "word";
    if (this.mode === "add") return labelOf(this.session.guide, this.mark?.label ?? null)?.snap ?? "word";
    return SNAPS.find((snap) => labels.some((label) => (label.snap ?? "word") === snap)) ?? "word";
  }

  private snapped(span: Span, snap: Snap): Span {
    const limit = this.limit(span.part);
    const { start, end } = this.session.segments(span.part).snap(span, snap);
    return { part: span.part, start: Math.min(start, limit), end: Math.min(end, limit) };
  }

  /** Up to where a part is on the page: later parts are not there yet. */
  private limit(part: string): number {
    const current = part === "text" ? this.session.parts[this.session.partAt] : undefined;
    return current?.end ?? this.session.sources[part]?.text.length ?? 0;
  }

  private allDrawings(): Drawing[] {
    const { marks, guide, sources, parts, partAt } = this.session;
    const picking = this.mode === "pick";
    const from = parts[partAt]?.start ?? 0;
    return [
      ...markDrawings(marks, guide.looks, this.chosen, from, picking),
      ...(this.mark ? earlierDrawings(this.chosen!, this.mark, guide.looks) : []),
      ...offerDrawings(this.offers, guide.looks, this.offer, sources),
    ];
  }

  // --- selecting ---

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

  // --- doing ---

  /** Give the selected words a label, or the chosen mark another one. */
  label(name: string): void {
    if (this.session.readOnly || this.mode === "pick" || this.mode === "add") return;
    if (this.mode === "gap") return this.makeGap(name);
    const label = labelOf(this.session.guide, name);
    const spans = [...this.others, ...(this.span ? [this.rawSpan()!] : [])].map((span) =>
      this.snapped(span, label?.snap ?? "word"),
    );
    if (spans.length > 0) return this.make(union(spans), name);
    if (this.chosen && this.mark?.label !== name) {
      this.session.dispatch({ type: "relabel", key: this.chosen, label: name });
      this.describe(this.chosen);
    } else if (!this.chosen) this.say(t("selectFirst"));
  }

  private rawSpan(): Span | undefined {
    if (!this.selection) return undefined;
    const { part, anchor, focus } = this.selection;
    return { part, start: Math.min(anchor, focus), end: Math.max(anchor, focus) };
  }

  private makeGap(label: string): void {
    const { part, focus } = this.selection!;
    this.mode = "read";
    this.make([{ part, start: focus, end: focus }], label);
  }

  private make(spans: readonly Span[], label: string | null): void {
    const id = newId();
    this.session.dispatch({ type: "mark", id, mark: { spans, label, answers: {}, antecedent: [], madeFrom: [] } });
    const last = spans.at(-1)!;
    this.others = [];
    this.selection = { part: last.part, anchor: last.end, focus: last.end };
    this.chosen = markKey(id);
    this.offer = undefined;
    this.asking = false;
    this.describe(this.chosen);
  }

  /** Words are missing at the caret: the label that comes next goes there. */
  gap(): void {
    if (!this.selection || this.mode !== "read" || this.session.readOnly) return;
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

  private within({ start, end }: Range, part: string): Range {
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

  private spanAtCaret(mark: Mark): number {
    const at = mark.spans.findIndex(
      ({ part, start, end }) =>
        part === this.selection?.part && start <= this.selection.focus && this.selection.focus <= end,
    );
    return at < 0 ? mark.spans.length - 1 : at;
  }

  private setSpan(at: number, span: Span): void {
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
    this.say(t(mode === "pick" ? "pickBanner" : "addBanner"));
    this.focusText();
  }

  /** Use the selected words for what was asked. */
  use(): void {
    const span = this.span;
    if (!span || !this.chosen) return;
    if (this.mode === "pick")
      this.session.dispatch({ type: "antecedent", key: this.chosen, spans: union([...this.others, span]) });
    if (this.mode === "add") this.addWords();
    this.cancel();
    this.say(quoteOf(span, this.session.sources));
  }

  private addWords(): void {
    const snap = labelOf(this.session.guide, this.mark!.label)?.snap ?? "word";
    const spans = union([...this.mark!.spans, ...this.others, this.snapped(this.rawSpan()!, snap)]);
    this.session.dispatch({ type: "resize", key: this.chosen!, spans });
    this.say(t("spans", { n: spans.length }));
    this.clear();
  }

  cancel(): void {
    this.mode = "read";
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

  // --- moving ---

  /** Carry out what a key asks for; false when the key should do what it does elsewhere. */
  obey(command: Command): boolean {
    if (command.do !== "move") this.hover = undefined;
    switch (command.do) {
      case "move":
        this.move(command);
        return true;
      case "label":
        this.label(command.label);
        return true;
      case "define":
        this.define(command.label);
        return true;
      case "digit":
        return this.digit(command.digit);
      case "resize":
        this.resize(command.edge, command.way);
        return true;
      case "cycle":
        return this.cycle(command.way);
      case "step":
        this.step(command.way);
        return true;
      case "antecedent":
        this.ask("pick");
        return true;
      case "add":
        this.ask("add");
        return true;
      case "gap":
        this.gap();
        return true;
      case "remove":
        this.remove();
        return true;
      case "undo":
      case "redo":
        this.undo(command.do === "redo");
        return true;
      case "guide":
        this.define(undefined);
        return true;
      case "enter":
        return this.enter();
      case "escape":
        return this.escape();
      default:
        return false;
    }
  }

  define(label: string | undefined): void {
    this.defined = label;
    this.panel = "guide";
  }

  private digit(digit: number): boolean {
    if (!this.mark || this.mode !== "read") return false;
    const question = digitQuestion(questionsOf(this.session.guide, this.mark.label), this.mark.answers);
    const option = question?.options?.[digit - 1];
    if (!question || !option) return false;
    this.answer(question, option.value);
    this.say(`${question.ask} ${option.title || option.value}`);
    return true;
  }

  private enter(): boolean {
    if (this.mode !== "read") {
      this.use();
      return true;
    }
    if (!this.chosen && this.here[0]) this.choose(this.here[0]);
    if (this.chosen) void this.focusForm();
    return this.chosen !== undefined;
  }

  private escape(): boolean {
    if (this.panel) this.panel = undefined;
    else if (this.mode !== "read") this.cancel();
    else if (this.span || this.others.length > 0) this.clear();
    else if (this.chosen || this.offer) this.choose(undefined);
    else this.escaped = true;
    return true;
  }
  /** Esc was pressed with nothing left to close: the next Tab leaves the text in any case. */
  private escaped = false;

  /** Through the marks at the caret; with fewer than two, Tab leaves the text. */
  private cycle(way: -1 | 1): boolean {
    const { here } = this;
    if (here.length < 2 || this.escaped || this.mode !== "read") return (this.escaped = false);
    const at = this.chosen ? here.indexOf(this.chosen) : -1;
    const next = here[(at + way + here.length) % here.length]!;
    this.chosen = next;
    this.describe(next, here);
    return true;
  }

  /** To the next or previous mark of the text. */
  step(way: -1 | 1): void {
    const keys = this.session.marks.map(([key]) => key);
    if (keys.length === 0) return this.say(t("noMarks"));
    const at = this.chosen ? keys.indexOf(this.chosen) : way > 0 ? -1 : keys.length;
    const next = keys[Math.max(0, Math.min(keys.length - 1, at + way))]!;
    this.selection = undefined;
    this.choose(next, true);
    this.describe(next);
  }

  private move(command: Extract<Command, { do: "move" }>): void {
    const { part, focus, anchor } = this.selection ?? this.firstPlace();
    const target = this.target(part, focus, command);
    const before = this.here;
    this.escaped = false;
    if (command.extend && target.part === part) this.selection = { part, anchor, focus: target.offset };
    else {
      this.others = this.mode === "read" ? [] : this.others;
      this.selection = { part: target.part, anchor: target.offset, focus: target.offset };
    }
    if (target.part !== part) this.focusText();
    this.speakMove(before, command.by === "word");
    void this.scrollToCaret();
  }

  firstPlace(): Selected {
    const start = this.session.parts[this.session.partAt]?.start ?? 0;
    return { part: "text", anchor: start, focus: start };
  }

  private target(part: string, focus: number, { by, way }: Extract<Command, { do: "move" }>): Place {
    const surface = surfaceAt(part, focus);
    if (by === "line" || by === "edge") return visualTarget(surface, { part, offset: focus }, by, way);
    const [low, high] = surface ? boundsOf(surface) : [0, this.limit(part)];
    if (by === "all") return { part, offset: way < 0 ? low : high };
    if ((way < 0 && focus <= low) || (way > 0 && focus >= high))
      return neighbour(surface, way) ?? { part, offset: focus };
    const segments = this.session.segments(part);
    const offset = way < 0 ? segments.before(focus, by) : segments.after(focus, by);
    return { part, offset: Math.max(low, Math.min(high, offset)) };
  }

  private speakMove(before: readonly MarkKey[], byWord: boolean): void {
    const { part, focus } = this.selection!;
    const segments = this.session.segments(part);
    const { start, end } = segments.at(focus, byWord ? "word" : "character");
    const entered = this.here
      .filter((key) => !before.includes(key))
      .map((key) => t("entered", { name: this.title(this.work[key]!.label) }));
    const leftBehind = before
      .filter((key) => !this.here.includes(key) && this.work[key])
      .map((key) => t("left", { name: this.title(this.work[key]!.label) }));
    const words = this.span
      ? t("selected", { words: quoteOf(this.span, this.session.sources) })
      : segments.text.slice(start, end);
    this.say([words, ...entered, ...leftBehind].join(", "));
  }

  private async scrollToCaret(): Promise<void> {
    await tick();
    const caret = document.querySelector(".caret");
    caret?.scrollIntoView({ block: "nearest" });
    const box = caret?.getBoundingClientRect();
    const shown = this.here.length > 0 && this.mode === "read" && !this.span;
    this.hover = box && shown ? { keys: this.here, x: box.left, y: box.bottom } : undefined;
  }

  // --- focus and words ---

  focusText(): void {
    void tick().then(() => {
      const { part, focus } = this.selection ?? this.firstPlace();
      surfaceAt(part, focus)?.focus({ preventScroll: true });
    });
  }

  /** Into the panel: to the question named, else to the first that still waits for an answer, else to the words. */
  async focusForm(question = this.waiting(), key?: string): Promise<void> {
    await tick();
    const form = document.querySelector<HTMLElement>(key ? `[data-form="${CSS.escape(key)}"]` : "[data-form]");
    const asked = question ? form?.querySelector<HTMLElement>(`[data-question="${CSS.escape(question)}"]`) : undefined;
    const fields = ["input:checked", "textarea, input, select", "button[data-first]"];
    const order = asked ? fields : ["textarea", ...fields];
    const found = order.map((each) => (asked ?? form)?.querySelector<HTMLElement>(each)).find(Boolean);
    found?.focus();
  }

  private waiting(): string | undefined {
    const lacks = this.chosen && this.mark ? missingOfMark(this.chosen, this.mark, this.session.guide) : [];
    return lacks.find((each) => each.what === "answer")?.question?.name;
  }

  /** Go to what is missing. */
  async show(missing: Missing): Promise<void> {
    this.wanted = missing;
    if (missing.what === "part") {
      const at = this.session.parts.findIndex((part) => part.key === missing.key);
      if (at >= 0) this.session.goToPart(at);
      if (this.session.guide.labels.length === 0) await this.focusForm(undefined, missing.key);
      return;
    }
    if (missing.key.startsWith("marks/")) this.choose(missing.key as MarkKey, true);
    if (missing.what === "antecedent") this.say(t("antecedentMissing"));
    await this.focusForm(missing.question?.name, missing.key);
    document.activeElement?.closest("[data-question]")?.scrollIntoView({ block: "center" }); // all of it, not its first field
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

  say(words: string): void {
    this.spoken = words;
  }

  alert(words: string): void {
    this.alerted = words;
  }

  notify(say: string, undo = false): void {
    clearTimeout(this.toastTimer);
    this.toast = { say, undo };
    this.toastTimer = setTimeout(() => (this.toast = undefined), 8000);
  }

  /** Begin afresh with another text. */
  reset(): void {
    this.selection = undefined;
    this.others = [];
    this.chosen = this.offer = this.panel = this.toast = this.wanted = this.hover = undefined;
    this.mode = "read";
    this.asking = false;
  }
}
