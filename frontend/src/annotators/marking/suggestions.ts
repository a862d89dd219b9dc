import { t } from "../../lib/catalogue";
import type { TaskChanges } from "../session/task-changes";
import type { TaskState } from "../session/task-state.svelte";
import { newId } from "../sync/ids";
import { markKey, spanFromWire, type DecisionKey, type Mark } from "../work/work";

import type { Announcements } from "./announcements.svelte";
import type { ChosenMark } from "./chosen-mark.svelte";
import type { MarkNavigation } from "./mark-navigation";

/** Decisions about suggested marks. */
export class Suggestions {
  constructor(
    private readonly current: TaskState,
    private readonly changes: TaskChanges,
    private readonly chosen: ChosenMark,
    private readonly marks: MarkNavigation,
    private readonly announcements: Announcements,
  ) {}

  accept(id: string): void {
    const offered = this.current.offers.find((each) => each.id === id);
    if (!offered) return;
    const markId = newId();
    const spans = offered.spans.map((span) => spanFromWire(span, this.current.sources));
    const mark: Mark = { spans, label: offered.label, answers: offered.answers, antecedent: [], madeFrom: [id] };
    this.changes.dispatch({ type: "mark", id: markId, mark, offer: `decisions/${id}` });
    this.marks.choose(markKey(markId));
  }

  reject(id: string): void {
    const key: DecisionKey = `decisions/${id}`;
    this.changes.dispatch({ type: "reject", key });
    this.chosen.offer = undefined;
    const isSecondPass = (this.current.task?.round ?? 0) > 0;
    this.announcements.showToast(t(isSecondPass ? "othersLeft" : "suggestionRejected"), true);
  }
}
