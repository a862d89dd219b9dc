import { t } from "../../lib/catalogue";
import { isAnswered } from "../../lib/questions/questions";
import type { TaskState } from "../session/task-state.svelte";
import { missingInMark } from "../work/missing-items";
import { quoteSpans, spanFromWire, wordBefore, type MarkKey } from "../work/work";

import type { Announcements } from "./announcements.svelte";
import type { ChosenMark } from "./chosen-mark.svelte";
import { labelTitle } from "./label-texts";
import type { TextSelection } from "./text-selection.svelte";

/** Selection of marks and suggestions by click, key or list, each announced to screen readers. */
export class MarkNavigation {
  constructor(
    private readonly current: TaskState,
    private readonly chosen: ChosenMark,
    private readonly selection: TextSelection,
    private readonly announcements: Announcements,
  ) {}

  choose(key: MarkKey | undefined, reveal = false): void {
    const { chosen, selection } = this;
    if (selection.mode !== "read" && key !== chosen.key) selection.cancelMode();
    chosen.key = key;
    chosen.offer = undefined;
    const first = key && this.current.work[key]?.spans[0];
    if (!first) return;
    selection.clear();
    if (!selection.caret || !selection.marksAtCaret.includes(key)) selection.select(first.part, first.start);
    if (reveal) void selection.scrollToSpan(first);
  }

  chooseOffer(id: string, reveal = false): void {
    this.chosen.key = undefined;
    this.chosen.offer = id;
    const offered = this.current.offers.find((each) => each.id === id);
    if (reveal && offered) void this.selection.scrollToSpan(spanFromWire(offered.spans[0]!, this.current.sources));
  }

  /** Select the marks at a clicked position in turn, shortest first. */
  handleClick(part: string, offset: number, offered?: string): void {
    const keys = this.selection.marksAt(part, offset);
    this.selection.select(part, offset);
    if (this.selection.mode !== "read") return;
    const at = this.chosen.key ? keys.indexOf(this.chosen.key) : -1;
    const next = keys[(at + 1) % Math.max(1, keys.length)];
    if (offered) this.chooseOffer(offered);
    else this.choose(next);
    if (next) this.announceMark(next, keys);
  }

  /** Select the next or previous of the marks at the caret. */
  cycle(way: -1 | 1): void {
    const { marksAtCaret } = this.selection;
    const at = this.chosen.key ? marksAtCaret.indexOf(this.chosen.key) : -1;
    const next = marksAtCaret[(at + way + marksAtCaret.length) % marksAtCaret.length]!;
    this.chosen.key = next;
    this.announceMark(next, marksAtCaret);
  }

  /** Select the next or previous mark of the text. */
  step(way: -1 | 1): void {
    const keys = this.current.marks.map(([key]) => key);
    if (keys.length === 0) return this.announcements.announce(t("noMarks"));
    const at = this.chosen.key ? keys.indexOf(this.chosen.key) : way > 0 ? -1 : keys.length;
    const next = keys[Math.max(0, Math.min(keys.length - 1, at + way))]!;
    this.selection.caret = undefined;
    this.choose(next, true);
    this.announceMark(next);
  }

  /** Announce a mark: label, words, its number, and the next question. */
  announceMark(key: MarkKey, among: readonly MarkKey[] = []): void {
    const { marks, guide, sources, work } = this.current;
    const mark = work[key];
    if (!mark) return;
    const n = marks.findIndex(([each]) => each === key) + 1;
    const words = mark.spans.every(({ start, end }) => start === end)
      ? t("gapAfter", { words: wordBefore(mark.spans[0]!, sources) })
      : quoteSpans(mark.spans, sources);
    const parts = [t("markSpoken", { name: labelTitle(guide, mark.label), words, n, of: marks.length })];
    const next = missingInMark(key, mark, guide)[0];
    if (next?.question) parts.push(t("answerNext", { question: next.question.ask }));
    if (among.length > 1) parts.push(t("hereOf", { n: among.indexOf(key) + 1, of: among.length }));
    if (isAnswered(mark.answers.explanation)) parts.push(String(mark.answers.explanation));
    this.announcements.announce(parts.join(" "));
  }
}
