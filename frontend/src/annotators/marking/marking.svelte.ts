import { tick } from "svelte";
import { t } from "../../lib/catalogue";
import { surfaceBounds, adjacentPosition, surfaceAt, visualPosition, type TextPosition } from "./caret";
import { textCommand, type Command } from "./keys";
import { missingInMark, type MissingItem } from "../work/missing-items";
import { digitQuestion, markQuestions } from "../../lib/questions/questions";
import { quoteSpan, type MarkKey } from "../work/work";

import { MarkEdits } from "./mark-edits.svelte";

/** What a key may do to a mark whose row in the list has the focus. */
const LIST_COMMANDS: readonly Command["do"][] = ["label", "define", "digit", "resize", "antecedent", "add", "remove"];

/** What keys and buttons do on a page with a text to mark, and where the focus goes. */
export class Marking extends MarkEdits {
  definedLabel = $state<string>();
  /** The label in the palette that the pointer or the focus is on. */
  pointedLabel = $state<string>();
  /** A field that should be looked at. */
  highlightedItem = $state.raw<MissingItem>();
  /** Esc was pressed with nothing left to close: the next Tab leaves the text in any case. */
  protected isEscaped = false;

  /** Carry out what a key asks for; false when the key should do what it does elsewhere. */
  handleCommand(command: Command): boolean {
    if (command.do !== "move") this.hoverCard = undefined;
    switch (command.do) {
      case "move":
        this.moveCaret(command);
        return true;
      case "label":
        this.applyLabel(command.label);
        return true;
      case "define":
        this.openGuide(command.label);
        return true;
      case "digit":
        return this.answerWithDigit(command.digit);
      case "resize":
        this.resizeMark(command.edge, command.way);
        return true;
      case "cycle":
        return this.cycleMarks(command.way);
      case "step":
        this.stepMarks(command.way);
        return true;
      case "antecedent":
        this.startPicking("pick");
        return true;
      case "add":
        this.startPicking("add");
        return true;
      case "gap":
        this.startGap();
        return true;
      case "remove":
        this.removeMark();
        return true;
      case "undo":
      case "redo":
        this.undo(command.do === "redo");
        return true;
      case "guide":
        this.openGuide(undefined);
        return true;
      case "enter":
        return this.handleEnter();
      case "escape":
        return this.handleEscape();
      default:
        return false;
    }
  }

  /** Keys of the chosen mark while the focus is on its row in the list: what moves the focus or the caret stays as it is. */
  handleListKey(event: KeyboardEvent, key: MarkKey): void {
    const command = textCommand(event, this.session.guide.looks);
    if (!command || !LIST_COMMANDS.includes(command.do)) return;
    if (this.chosenKey !== key) this.chooseMark(key);
    if (this.handleCommand(command)) event.preventDefault();
  }

  openGuide(label: string | undefined): void {
    this.definedLabel = label;
    this.panel = "guide";
  }

  protected answerWithDigit(digit: number): boolean {
    if (!this.chosenMark || this.mode !== "read") return false;
    const question = digitQuestion(markQuestions(this.session.guide, this.chosenMark.label), this.chosenMark.answers);
    const option = question?.options?.[digit - 1];
    if (!question || !option) return false;
    this.setAnswer(question, option.value);
    this.announce(`${question.ask} ${option.title || option.value}`);
    return true;
  }

  protected handleEnter(): boolean {
    if (this.mode !== "read") {
      this.useSelection();
      return true;
    }
    if (!this.chosenKey && this.marksAtCaret[0]) this.chooseMark(this.marksAtCaret[0]);
    if (this.chosenKey) void this.focusForm();
    return this.chosenKey !== undefined;
  }

  protected handleEscape(): boolean {
    if (this.panel) this.panel = undefined;
    else if (this.mode !== "read") this.cancelMode();
    else if (this.span || this.otherSpans.length > 0) this.clearSelection();
    else if (this.chosenKey || this.chosenOffer) this.chooseMark(undefined);
    else this.isEscaped = true;
    return true;
  }

  /** Through the marks at the caret; with fewer than two, Tab leaves the text. */
  protected cycleMarks(way: -1 | 1): boolean {
    const { marksAtCaret } = this;
    if (marksAtCaret.length < 2 || this.isEscaped || this.mode !== "read") return (this.isEscaped = false);
    const at = this.chosenKey ? marksAtCaret.indexOf(this.chosenKey) : -1;
    const next = marksAtCaret[(at + way + marksAtCaret.length) % marksAtCaret.length]!;
    this.chosenKey = next;
    this.announceMark(next, marksAtCaret);
    return true;
  }

  /** To the next or previous mark of the text. */
  stepMarks(way: -1 | 1): void {
    const keys = this.session.marks.map(([key]) => key);
    if (keys.length === 0) return this.announce(t("noMarks"));
    const at = this.chosenKey ? keys.indexOf(this.chosenKey) : way > 0 ? -1 : keys.length;
    const next = keys[Math.max(0, Math.min(keys.length - 1, at + way))]!;
    this.selection = undefined;
    this.chooseMark(next, true);
    this.announceMark(next);
  }

  protected moveCaret(command: Extract<Command, { do: "move" }>): void {
    const { part, focus, anchor } = this.selection ?? this.firstPosition();
    const target = this.caretTarget(part, focus, command);
    const before = this.marksAtCaret;
    this.isEscaped = false;
    if (command.extend && target.part === part) this.selection = { part, anchor, focus: target.offset };
    else {
      this.otherSpans = this.mode === "read" ? [] : this.otherSpans;
      this.selection = { part: target.part, anchor: target.offset, focus: target.offset };
    }
    if (target.part !== part) this.focusText();
    this.announceMove(before, command.by === "word");
    void this.scrollToCaret();
  }

  protected caretTarget(part: string, focus: number, { by, way }: Extract<Command, { do: "move" }>): TextPosition {
    const surface = surfaceAt(part, focus);
    if (by === "line" || by === "edge") return visualPosition(surface, { part, offset: focus }, by, way);
    const [low, high] = surface ? surfaceBounds(surface) : [0, this.partLimit(part)];
    if (by === "all") return { part, offset: way < 0 ? low : high };
    if ((way < 0 && focus <= low) || (way > 0 && focus >= high))
      return adjacentPosition(surface, way) ?? { part, offset: focus };
    const segments = this.session.partSegments(part);
    const offset = way < 0 ? segments.previousStop(focus, by) : segments.nextStop(focus, by);
    return { part, offset: Math.max(low, Math.min(high, offset)) };
  }

  protected announceMove(before: readonly MarkKey[], byWord: boolean): void {
    const { part, focus } = this.selection!;
    const segments = this.session.partSegments(part);
    const { start, end } = segments.segmentAt(focus, byWord ? "word" : "character");
    const enteredMarks = this.marksAtCaret
      .filter((key) => !before.includes(key))
      .map((key) => t("entered", { name: this.labelTitle(this.work[key]!.label) }));
    const leftMarks = before
      .filter((key) => !this.marksAtCaret.includes(key) && this.work[key])
      .map((key) => t("left", { name: this.labelTitle(this.work[key]!.label) }));
    const words = this.span
      ? t("selected", { words: quoteSpan(this.span, this.session.sources) })
      : segments.text.slice(start, end);
    this.announce([words, ...enteredMarks, ...leftMarks].join(", "));
  }

  protected async scrollToCaret(): Promise<void> {
    await tick();
    const caret = document.querySelector(".caret");
    caret?.scrollIntoView({ block: "nearest" });
    const box = caret?.getBoundingClientRect();
    const isCardShown = this.marksAtCaret.length > 0 && this.mode === "read" && !this.span;
    this.hoverCard = box && isCardShown ? { keys: this.marksAtCaret, x: box.left, y: box.bottom } : undefined;
  }

  /** Into the panel: to the question named, else to the first that still waits for an answer, else to the words. */
  async focusForm(question = this.nextUnanswered(), key?: string): Promise<void> {
    await tick();
    const form = document.querySelector<HTMLElement>(key ? `[data-form="${CSS.escape(key)}"]` : "[data-form]");
    const questionElement = question
      ? form?.querySelector<HTMLElement>(`[data-question="${CSS.escape(question)}"]`)
      : undefined;
    const fields = ["input:checked", "textarea, input, select", "button[data-first]"];
    const order = questionElement ? fields : ["textarea", ...fields];
    const field = order.map((each) => (questionElement ?? form)?.querySelector<HTMLElement>(each)).find(Boolean);
    field?.focus();
  }

  protected nextUnanswered(): string | undefined {
    const items =
      this.chosenKey && this.chosenMark ? missingInMark(this.chosenKey, this.chosenMark, this.session.guide) : [];
    return items.find((each) => each.kind === "answer")?.question?.name;
  }

  /** Go to what is missing. */
  async showMissing(item: MissingItem): Promise<void> {
    this.highlightedItem = item;
    if (item.kind === "part") {
      const at = this.session.parts.findIndex((part) => part.key === item.key);
      if (at >= 0) this.session.goToPart(at);
      if (this.session.guide.labels.length === 0) await this.focusForm(undefined, item.key);
      return;
    }
    if (item.key.startsWith("marks/")) this.chooseMark(item.key as MarkKey, true);
    if (item.kind === "antecedent") this.announce(t("antecedentMissing"));
    await this.focusForm(item.question?.name, item.key);
    document.activeElement?.closest("[data-question]")?.scrollIntoView({ block: "center" }); // all of it, not its first field
  }

  /** Begin afresh with another text. */
  reset(): void {
    this.selection = undefined;
    this.otherSpans = [];
    this.chosenKey = this.chosenOffer = this.panel = this.toast = this.highlightedItem = this.hoverCard = undefined;
    this.mode = "read";
    this.pendingConfirmation = undefined;
  }
}
