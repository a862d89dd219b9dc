import type { Drawing } from "../../lib/text/pieces";
import { digitQuestion, markQuestions } from "../../lib/questions/questions";
import type { PartNavigation } from "../session/part-navigation.svelte";
import type { TaskChanges } from "../session/task-changes";
import type { TaskState } from "../session/task-state.svelte";
import type { MarkKey } from "../work/work";

import { Announcements } from "./announcements.svelte";
import { CaretMovement } from "./caret-movement";
import { ChosenMark } from "./chosen-mark.svelte";
import { Corrections } from "./corrections.svelte";
import { alternativeDrawings, antecedentDrawings, markDrawings, offerDrawings } from "./drawings";
import { FormFocus } from "./form-focus";
import { textCommand, type Command } from "./keys";
import { labelVerb } from "./label-texts";
import { MarkEdits } from "./mark-edits";
import { MarkNavigation } from "./mark-navigation";
import { Panels } from "./panels.svelte";
import { Suggestions } from "./suggestions";
import { TextSelection } from "./text-selection.svelte";
import { WordPicking } from "./word-picking";

/** Commands that apply to a mark whose row in the list has the focus. */
const LIST_COMMANDS: readonly Command["do"][] = ["label", "define", "digit", "resize", "antecedent", "add", "remove"];

/** Objects of a session that marking depends on. */
interface MarkedSession {
  readonly current: TaskState;
  readonly changes: TaskChanges;
  readonly navigation: PartNavigation;
}

/** Page with a text to mark: its parts, and the commands of keys and buttons. */
export class Marking {
  readonly announcements = new Announcements();
  readonly panels = new Panels();
  readonly chosen: ChosenMark;
  readonly selection: TextSelection;
  readonly marks: MarkNavigation;
  readonly picking: WordPicking;
  readonly edits: MarkEdits;
  readonly suggestions: Suggestions;
  readonly corrections: Corrections;
  readonly form: FormFocus;
  private readonly caretMovement: CaretMovement;
  /** Escape was pressed with nothing left to close, so that the next Tab leaves the text. */
  private isEscaped = false;

  constructor(private readonly session: MarkedSession) {
    const { current, changes, navigation } = session;
    const { announcements, panels } = this;
    this.chosen = new ChosenMark(current);
    this.selection = new TextSelection(current, navigation, this.chosen);
    const { chosen, selection } = this;
    this.marks = new MarkNavigation(current, chosen, selection, announcements);
    this.picking = new WordPicking(current, changes, chosen, selection, panels, announcements);
    const { marks, picking } = this;
    this.edits = new MarkEdits(current, changes, chosen, selection, marks, picking, panels, announcements);
    this.suggestions = new Suggestions(current, changes, chosen, marks, announcements);
    this.corrections = new Corrections(current, chosen, this.edits);
    this.form = new FormFocus(current, navigation, chosen, marks, panels, announcements);
    this.caretMovement = new CaretMovement(current, selection, panels, announcements);
  }

  /** Positions of marks, suggestions and antecedents in the text. */
  readonly drawings: readonly Drawing[] = $derived.by(() => {
    const { marks, guide, sources, parts, offers } = this.session.current;
    const { key, mark, offer } = this.chosen;
    const from = parts[this.session.navigation.partIndex]?.start ?? 0;
    return [
      ...markDrawings(marks, guide.looks, key, from, this.selection.mode === "pick"),
      ...(key && mark ? antecedentDrawings(key, mark, guide.looks, labelVerb(guide, mark.label)) : []),
      ...(key && mark ? alternativeDrawings(key, mark, guide.looks) : []),
      ...offerDrawings(offers, guide.looks, offer, sources),
    ];
  });

  /** Run the command of a key. Return false to keep the browser's default. */
  handleCommand(command: Command): boolean {
    if (command.do !== "move") this.panels.hoverCard = undefined;
    switch (command.do) {
      case "move":
        this.isEscaped = false;
        this.caretMovement.move(command);
        return true;
      case "label":
        this.edits.applyLabel(command.label);
        return true;
      case "define":
        this.panels.openGuide(command.label);
        return true;
      case "digit":
        return this.answerWithDigit(command.digit);
      case "resize":
        this.edits.resizeMark(command.edge, command.way);
        return true;
      case "cycle":
        return this.cycleMarks(command.way);
      case "step":
        this.marks.step(command.way);
        return true;
      case "antecedent":
        this.picking.start("pick");
        return true;
      case "add":
        this.picking.start("add");
        return true;
      case "gap":
        this.edits.startGap();
        return true;
      case "remove":
        this.edits.removeMark();
        return true;
      case "undo":
      case "redo":
        this.edits.undo(command.do === "redo");
        return true;
      case "guide":
        this.panels.openGuide(undefined);
        return true;
      case "enter":
        return this.handleEnter();
      case "escape":
        return this.handleEscape();
      default:
        return false;
    }
  }

  /** Handle keys of the selected mark in the list. Keys that move the focus or the caret keep their default. */
  handleListKey(event: KeyboardEvent, key: MarkKey): void {
    const command = textCommand(event, this.session.current.guide.looks);
    if (!command || !LIST_COMMANDS.includes(command.do)) return;
    if (this.chosen.key !== key) this.marks.choose(key);
    if (this.handleCommand(command)) event.preventDefault();
  }

  /** Reset for another text. */
  reset(): void {
    this.selection.reset();
    this.chosen.key = this.chosen.offer = this.announcements.toast = undefined;
    this.panels.closeAll();
  }

  private answerWithDigit(digit: number): boolean {
    const { mark } = this.chosen;
    if (!mark || this.selection.mode !== "read") return false;
    const question = digitQuestion(markQuestions(this.session.current.guide, mark.label), mark.answers);
    const option = question?.options?.[digit - 1];
    if (!question || !option) return false;
    this.edits.setAnswer(question, option.value);
    this.announcements.announce(`${question.ask} ${option.title || option.value}`);
    return true;
  }

  private handleEnter(): boolean {
    if (this.selection.mode !== "read") {
      this.picking.useSelection();
      return true;
    }
    const [first] = this.selection.marksAtCaret;
    if (!this.chosen.key && first) this.marks.choose(first);
    if (this.chosen.key) void this.form.focusQuestion();
    return this.chosen.key !== undefined;
  }

  private handleEscape(): boolean {
    const { chosen, panels, selection } = this;
    if (panels.open) panels.open = undefined;
    else if (selection.mode !== "read") selection.cancelMode();
    else if (selection.span || selection.otherSpans.length > 0) selection.clear();
    else if (chosen.key || chosen.offer) this.marks.choose(undefined);
    else this.isEscaped = true;
    return true;
  }

  /** Cycle through the marks at the caret. With fewer than two, Tab leaves the text. */
  private cycleMarks(way: -1 | 1): boolean {
    const { marksAtCaret, mode } = this.selection;
    if (marksAtCaret.length < 2 || this.isEscaped || mode !== "read") return (this.isEscaped = false);
    this.marks.cycle(way);
    return true;
  }
}
