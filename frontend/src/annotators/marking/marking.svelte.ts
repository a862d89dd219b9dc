import { tick } from "svelte";
import { t } from "../../lib/catalogue";
import { boundsOf, neighbour, surfaceAt, visualTarget, type Place } from "./caret";
import { textCommand, type Command } from "./keys";
import { missingOfMark, type Missing } from "../work/missing";
import { digitQuestion, questionsOf } from "../../lib/questions/questions";
import { quoteOf, type MarkKey } from "../work/work";

import { MarkEdits } from "./mark-edits.svelte";

/** What a key may do to a mark whose row in the list has the focus. */
const OUTSIDE: readonly Command["do"][] = ["label", "define", "digit", "resize", "antecedent", "add", "remove"];

/** What keys and buttons do on a page with a text to mark, and where the focus goes. */
export class Marking extends MarkEdits {
  defined = $state<string>();
  /** The label in the palette that the pointer or the focus is on. */
  pointed = $state<string>();
  /** A field that should be looked at. */
  wanted = $state.raw<Missing>();
  /** Esc was pressed with nothing left to close: the next Tab leaves the text in any case. */
  protected escaped = false;

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

  /** Keys of the chosen mark while the focus is on its row in the list: what moves the focus or the caret stays as it is. */
  obeyOutside(event: KeyboardEvent, key: MarkKey): void {
    const command = textCommand(event, this.session.guide.looks);
    if (!command || !OUTSIDE.includes(command.do)) return;
    if (this.chosen !== key) this.choose(key);
    if (this.obey(command)) event.preventDefault();
  }

  define(label: string | undefined): void {
    this.defined = label;
    this.panel = "guide";
  }

  protected digit(digit: number): boolean {
    if (!this.mark || this.mode !== "read") return false;
    const question = digitQuestion(questionsOf(this.session.guide, this.mark.label), this.mark.answers);
    const option = question?.options?.[digit - 1];
    if (!question || !option) return false;
    this.answer(question, option.value);
    this.say(`${question.ask} ${option.title || option.value}`);
    return true;
  }

  protected enter(): boolean {
    if (this.mode !== "read") {
      this.use();
      return true;
    }
    if (!this.chosen && this.here[0]) this.choose(this.here[0]);
    if (this.chosen) void this.focusForm();
    return this.chosen !== undefined;
  }

  protected escape(): boolean {
    if (this.panel) this.panel = undefined;
    else if (this.mode !== "read") this.cancel();
    else if (this.span || this.others.length > 0) this.clear();
    else if (this.chosen || this.offer) this.choose(undefined);
    else this.escaped = true;
    return true;
  }

  /** Through the marks at the caret; with fewer than two, Tab leaves the text. */
  protected cycle(way: -1 | 1): boolean {
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

  protected move(command: Extract<Command, { do: "move" }>): void {
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

  protected target(part: string, focus: number, { by, way }: Extract<Command, { do: "move" }>): Place {
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

  protected speakMove(before: readonly MarkKey[], byWord: boolean): void {
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

  protected async scrollToCaret(): Promise<void> {
    await tick();
    const caret = document.querySelector(".caret");
    caret?.scrollIntoView({ block: "nearest" });
    const box = caret?.getBoundingClientRect();
    const shown = this.here.length > 0 && this.mode === "read" && !this.span;
    this.hover = box && shown ? { keys: this.here, x: box.left, y: box.bottom } : undefined;
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

  protected waiting(): string | undefined {
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

  /** Begin afresh with another text. */
  reset(): void {
    this.selection = undefined;
    this.others = [];
    this.chosen = this.offer = this.panel = this.toast = this.wanted = this.hover = undefined;
    this.mode = "read";
    this.asking = undefined;
  }
}
