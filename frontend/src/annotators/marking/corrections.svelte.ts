import type { Question } from "../../lib/api-types";
import { markQuestions } from "../../lib/questions/questions";
import type { TaskState } from "../session/task-state.svelte";

import type { ChosenMark } from "./chosen-mark.svelte";
import type { MarkEdits } from "./mark-edits";

/** Corrections copied from the data of a text, with their sources. */
export class Corrections {
  /** Sources of corrections in the data, by mark. */
  sourceByMark = $state.raw<Readonly<Record<string, string>>>({});

  constructor(
    private readonly current: TaskState,
    private readonly chosen: ChosenMark,
    private readonly edits: MarkEdits,
  ) {}

  /** Copy a value from the data into the correction, and its source into the comment if that is empty. */
  fill(correction: Question, value: string, source: string): void {
    const { key, mark } = this.chosen;
    if (!key || !mark) return;
    this.edits.setAnswer(correction, value);
    const comment = markQuestions(this.current.guide, mark.label).find(({ name }) => name === "comment");
    const isCommentFree = !mark.answers.comment || mark.answers.comment === this.sourceByMark[key];
    this.sourceByMark = { ...this.sourceByMark, [key]: source };
    if (comment && isCommentFree) this.edits.setAnswer(comment, source || undefined);
  }

  /** Remove the source of the correction. */
  removeSource(): void {
    const { key, mark } = this.chosen;
    if (!key || !mark) return;
    const comment = markQuestions(this.current.guide, mark.label).find(({ name }) => name === "comment");
    if (comment && mark.answers.comment === this.sourceByMark[key]) this.edits.setAnswer(comment, undefined);
    this.sourceByMark = Object.fromEntries(Object.entries(this.sourceByMark).filter(([each]) => each !== key));
  }
}
