import { tick } from "svelte";
import { t } from "../../lib/catalogue";
import type { TaskState } from "../session/task-state.svelte";
import { quoteSpan, type MarkKey } from "../work/work";

import type { Announcements } from "./announcements.svelte";
import { adjacentPosition, surfaceAt, surfaceBounds, visualPosition, type TextPosition } from "./caret";
import type { Command } from "./keys";
import { labelTitle } from "./label-texts";
import type { Panels } from "./panels.svelte";
import type { TextSelection } from "./text-selection.svelte";

type MoveCommand = Extract<Command, { do: "move" }>;

/** Movement of the caret by keys, announced to screen readers. */
export class CaretMovement {
  constructor(
    private readonly current: TaskState,
    private readonly selection: TextSelection,
    private readonly panels: Panels,
    private readonly announcements: Announcements,
  ) {}

  move(command: MoveCommand): void {
    const { selection } = this;
    const { part, focus, anchor } = selection.caret ?? selection.firstPosition();
    const target = this.targetPosition(part, focus, command);
    const before = selection.marksAtCaret;
    if (command.extend && target.part === part) selection.caret = { part, anchor, focus: target.offset };
    else {
      selection.otherSpans = selection.mode === "read" ? [] : selection.otherSpans;
      selection.caret = { part: target.part, anchor: target.offset, focus: target.offset };
    }
    if (target.part !== part) selection.focusText();
    this.announceMove(before, command.by === "word");
    void this.scrollToCaret();
  }

  private targetPosition(part: string, focus: number, { by, way }: MoveCommand): TextPosition {
    const surface = surfaceAt(part, focus);
    if (by === "line" || by === "edge") return visualPosition(surface, { part, offset: focus }, by, way);
    const [low, high] = surface ? surfaceBounds(surface) : [0, this.selection.partLimit(part)];
    if (by === "all") return { part, offset: way < 0 ? low : high };
    if ((way < 0 && focus <= low) || (way > 0 && focus >= high))
      return adjacentPosition(surface, way) ?? { part, offset: focus };
    const segments = this.current.partSegments(part);
    const offset = way < 0 ? segments.previousStop(focus, by) : segments.nextStop(focus, by);
    return { part, offset: Math.max(low, Math.min(high, offset)) };
  }

  private announceMove(before: readonly MarkKey[], byWord: boolean): void {
    const { guide, sources, work } = this.current;
    const { caret, marksAtCaret, span } = this.selection;
    const segments = this.current.partSegments(caret!.part);
    const { start, end } = segments.segmentAt(caret!.focus, byWord ? "word" : "character");
    const enteredMarks = marksAtCaret
      .filter((key) => !before.includes(key))
      .map((key) => t("entered", { name: labelTitle(guide, work[key]!.label) }));
    const leftMarks = before
      .filter((key) => !marksAtCaret.includes(key) && work[key])
      .map((key) => t("left", { name: labelTitle(guide, work[key]!.label) }));
    const words = span ? t("selected", { words: quoteSpan(span, sources) }) : segments.text.slice(start, end);
    this.announcements.announce([words, ...enteredMarks, ...leftMarks].join(", "));
  }

  private async scrollToCaret(): Promise<void> {
    await tick();
    const element = document.querySelector(".caret");
    element?.scrollIntoView({ block: "nearest" });
    const box = element?.getBoundingClientRect();
    const { marksAtCaret, mode, span } = this.selection;
    const isCardShown = marksAtCaret.length > 0 && mode === "read" && !span;
    this.panels.hoverCard = box && isCardShown ? { keys: marksAtCaret, x: box.left, y: box.bottom } : undefined;
  }
}
