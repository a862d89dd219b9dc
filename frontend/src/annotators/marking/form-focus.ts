import { tick } from "svelte";
import { t } from "../../lib/catalogue";
import type { PartNavigation } from "../session/part-navigation.svelte";
import type { TaskState } from "../session/task-state.svelte";
import { missingInMark, type MissingItem } from "../work/missing-items";
import type { MarkKey } from "../work/work";

import type { Announcements } from "./announcements.svelte";
import type { ChosenMark } from "./chosen-mark.svelte";
import type { MarkNavigation } from "./mark-navigation";
import type { Panels } from "./panels.svelte";

/** Keyboard focus in the questions about marks, parts and texts. */
export class FormFocus {
  constructor(
    private readonly current: TaskState,
    private readonly navigation: PartNavigation,
    private readonly chosen: ChosenMark,
    private readonly marks: MarkNavigation,
    private readonly panels: Panels,
    private readonly announcements: Announcements,
  ) {}

  /** Focus the named question, or else the first unanswered one, or else the words. */
  async focusQuestion(question = this.nextUnanswered(), key?: string): Promise<void> {
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

  /** Go to the missing item. */
  async showMissing(item: MissingItem): Promise<void> {
    this.panels.highlightedItem = item;
    if (item.kind === "part") {
      const at = this.current.parts.findIndex((part) => part.key === item.key);
      if (at >= 0) this.navigation.goToPart(at);
      if (this.current.guide.labels.length === 0) await this.focusQuestion(undefined, item.key);
      return;
    }
    if (item.key.startsWith("marks/")) this.marks.choose(item.key as MarkKey, true);
    if (item.kind === "antecedent") this.announcements.announce(t("antecedentMissing"));
    await this.focusQuestion(item.question?.name, item.key);
    document.activeElement?.closest("[data-question]")?.scrollIntoView({ block: "center" }); // the whole question, not its first field
  }

  private nextUnanswered(): string | undefined {
    const { key, mark } = this.chosen;
    const items = key && mark ? missingInMark(key, mark, this.current.guide) : [];
    return items.find((each) => each.kind === "answer")?.question?.name;
  }
}
