import { t } from "../../lib/catalogue";
import { findLabel } from "../../lib/questions/questions";
import type { TaskChanges } from "../session/task-changes";
import type { TaskState } from "../session/task-state.svelte";
import { mergeSpans, quoteSpan } from "../work/work";

import type { Announcements } from "./announcements.svelte";
import type { ChosenMark } from "./chosen-mark.svelte";
import { labelVerb } from "./label-texts";
import type { Panels } from "./panels.svelte";
import type { TextSelection } from "./text-selection.svelte";

/** Further words for the selected mark: its antecedent, more words, or alternatives. */
export class WordPicking {
  /** Index of the alternative that is being edited. */
  private alternativeIndex = 0;

  constructor(
    private readonly current: TaskState,
    private readonly changes: TaskChanges,
    private readonly chosen: ChosenMark,
    private readonly selection: TextSelection,
    private readonly panels: Panels,
    private readonly announcements: Announcements,
  ) {}

  /** Start picking an antecedent, or more words. */
  start(mode: "pick" | "add"): void {
    const { mark } = this.chosen;
    const { guide } = this.current;
    if (!mark || this.current.isReadOnly) return;
    if (mode === "pick" && (findLabel(guide, mark.label)?.antecedent ?? "none") === "none") return;
    this.enterMode(mode, mode === "pick" ? t("pickBanner", { verb: labelVerb(guide, mark.label) }) : t("addBanner"));
  }

  /** Start an alternative for the selected mark: other words, each with a label. */
  startAlternative(): void {
    const { mark } = this.chosen;
    if (!mark || this.current.isReadOnly) return;
    this.alternativeIndex = mark.alternatives?.length ?? 0;
    this.enterMode("otherwise", t("otherwiseBanner"));
  }

  /** Add the selected words with a label to the alternative. */
  addAlternative(label: string): void {
    const { selection } = this;
    const { key, mark } = this.chosen;
    if (!selection.span || !mark || !key) return this.announcements.announce(t("selectFirst"));
    const snap = findLabel(this.current.guide, label)?.snap ?? "word";
    const words = [...selection.otherSpans, selection.unsnappedSpan()!];
    const spans = mergeSpans(words.map((span) => selection.snapSpan(span, snap)));
    const sets = [...(mark.alternatives ?? [])];
    sets[this.alternativeIndex] = [...(sets[this.alternativeIndex] ?? []), { spans, label }];
    this.changes.dispatch({ type: "alternatives", key, alternatives: sets });
    selection.clear();
    this.announcements.announce(t("readingAdded", { n: sets[this.alternativeIndex]!.length }));
  }

  removeAlternative(at: number): void {
    const { key, mark } = this.chosen;
    if (!key || !mark) return;
    const alternatives = (mark.alternatives ?? []).filter((_, index) => index !== at);
    this.changes.dispatch({ type: "alternatives", key, alternatives });
    if (this.selection.mode === "otherwise") this.selection.cancelMode();
  }

  /** Select more words. Without words selected before, they are added to the selected mark. */
  selectMore(part: string, anchor: number, focus: number): void {
    const { selection } = this;
    const hadWords = selection.span !== undefined;
    selection.select(part, anchor, focus, true);
    if (!hadWords && this.chosen.mark && selection.span && selection.mode === "read") this.addWords();
  }

  /** Use the selected words for the current mode. */
  useSelection(): void {
    const { selection } = this;
    const { span, mode } = selection;
    const { key } = this.chosen;
    if (mode === "otherwise") return selection.cancelMode();
    if (!span || !key) return;
    if (mode === "pick")
      this.changes.dispatch({ type: "antecedent", key, spans: mergeSpans([...selection.otherSpans, span]) });
    if (mode === "add") this.addWords();
    selection.cancelMode();
    this.announcements.announce(quoteSpan(span, this.current.sources));
  }

  removeAntecedent(): void {
    if (this.chosen.key) this.changes.dispatch({ type: "antecedent", key: this.chosen.key, spans: [] });
    this.selection.cancelMode();
  }

  private enterMode(mode: "pick" | "add" | "otherwise", banner: string): void {
    this.selection.clear();
    this.selection.mode = mode;
    this.panels.open = undefined;
    this.announcements.announce(banner);
    this.selection.focusText();
  }

  /** Add the selected words to the selected mark. */
  private addWords(): void {
    const { selection } = this;
    const mark = this.chosen.mark!;
    const snap = findLabel(this.current.guide, mark.label)?.snap ?? "word";
    const words = selection.snapSpan(selection.unsnappedSpan()!, snap);
    const spans = mergeSpans([...mark.spans, ...selection.otherSpans, words]);
    this.changes.dispatch({ type: "resize", key: this.chosen.key!, spans });
    this.announcements.announce(t("spans", { n: spans.length }));
    selection.clear();
  }
}
