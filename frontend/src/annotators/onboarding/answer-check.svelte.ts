import { t } from "../../lib/catalogue";
import type { Answers, Feedback } from "../../lib/api-types";
import type { Marking } from "../marking/marking.svelte";
import { agrees } from "./outcome";
import type { UnitKey, Work } from "../work/work";
import type { Session } from "../session/session.svelte";

interface Checked {
  readonly task: string;
  /** What was answered when it was compared. */
  readonly work: Work;
  readonly right: Feedback;
}

/** Comparing answers with the solution before they are handed in, as often as somebody likes. */
export class AnswerCheck {
  private last = $state.raw<Checked>();
  private seen = $state<string>();

  constructor(private readonly session: Session) {}

  readonly checked: Checked | undefined = $derived.by(() =>
    this.last?.task === this.session.task?.id ? this.last : undefined,
  );
  /** Whether the right answers were asked for. */
  readonly revealed = $derived.by(() => this.seen !== undefined && this.seen === this.session.task?.id);
  /** Parts, and `answers` for the whole text, that differed and were not changed since. */
  readonly differing: readonly string[] = $derived.by(() => {
    const { checked, session } = this;
    if (!checked) return [];
    const { work } = session.state;
    return [...Object.keys(checked.right.units).map((id) => `units/${id}` as const), "answers" as const].filter(
      (key) => work[key] === checked.work[key] && !agrees(given(work, key), this.right(key)),
    );
  });
  /** All was right when it was compared, or the right answers were looked at: one may go on. */
  readonly isOver = $derived.by(() => {
    const { checked } = this;
    return (
      this.revealed ||
      (checked !== undefined && this.differing.length === 0 && this.session.state.work === checked.work)
    );
  });

  /** Whether a part was right when it was compared, and was not changed since. */
  isRight(key: UnitKey | "answers"): boolean {
    const { checked } = this;
    return (
      checked !== undefined &&
      Object.keys(this.right(key)).length > 0 &&
      this.session.state.work[key] === checked.work[key] &&
      !this.differing.includes(key)
    );
  }

  /** The right answers about a part, or about the whole text. */
  right(key: UnitKey | "answers"): Answers {
    if (!this.checked) return {};
    return key === "answers"
      ? this.checked.right.answers
      : (this.checked.right.units[key.slice("units/".length)] ?? {});
  }

  async compare(marking: Marking): Promise<void> {
    const right = this.checked?.right ?? (await this.session.rightAnswers());
    if (!right) return marking.alert(t("verifyLater"));
    this.last = { task: this.session.task!.id, work: this.session.state.work, right };
    const n = this.differing.length;
    marking.say(n === 0 ? t("allRight") : t("differing", { n }));
  }

  /** Show the right answers. */
  reveal(): void {
    this.seen = this.session.task?.id;
  }
}

const given = (work: Work, key: UnitKey | "answers"): Answers => work[key]?.answers ?? {};
