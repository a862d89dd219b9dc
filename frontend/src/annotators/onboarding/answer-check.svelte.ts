import { t } from "../../lib/catalogue";
import type { Answers, Feedback } from "../../lib/api-types";
import type { Marking } from "../marking/marking.svelte";
import { hasRightAnswers } from "./graded-marks";
import type { UnitKey, Work } from "../work/work";
import type { Session } from "../session/session.svelte";

interface CheckResult {
  readonly task: string;
  /** What was answered when it was compared. */
  readonly work: Work;
  readonly solution: Feedback;
}

/** Comparing answers with the solution before they are handed in, as often as somebody likes. */
export class AnswerCheck {
  private lastCheck = $state.raw<CheckResult>();
  private revealedTask = $state<string>();

  constructor(private readonly session: Session) {}

  readonly currentCheck: CheckResult | undefined = $derived.by(() =>
    this.lastCheck?.task === this.session.task?.id ? this.lastCheck : undefined,
  );
  /** Whether the right answers were asked for. */
  readonly isRevealed = $derived.by(
    () => this.revealedTask !== undefined && this.revealedTask === this.session.task?.id,
  );
  /** Parts, and `answers` for the whole text, that differed and were not changed since. */
  readonly differingKeys: readonly string[] = $derived.by(() => {
    const { currentCheck, session } = this;
    if (!currentCheck) return [];
    const { work } = session.state;
    return [...Object.keys(currentCheck.solution.units).map((id) => `units/${id}` as const), "answers" as const].filter(
      (key) =>
        work[key] === currentCheck.work[key] && !hasRightAnswers(givenAnswers(work, key), this.rightAnswers(key)),
    );
  });
  /** All was right when it was compared, or the right answers were looked at: one may go on. */
  readonly canContinue = $derived.by(() => {
    const { currentCheck } = this;
    return (
      this.isRevealed ||
      (currentCheck !== undefined && this.differingKeys.length === 0 && this.session.state.work === currentCheck.work)
    );
  });

  /** Whether a part was right when it was compared, and was not changed since. */
  isRight(key: UnitKey | "answers"): boolean {
    const { currentCheck } = this;
    return (
      currentCheck !== undefined &&
      Object.keys(this.rightAnswers(key)).length > 0 &&
      this.session.state.work[key] === currentCheck.work[key] &&
      !this.differingKeys.includes(key)
    );
  }

  /** The right answers about a part, or about the whole text. */
  rightAnswers(key: UnitKey | "answers"): Answers {
    if (!this.currentCheck) return {};
    return key === "answers"
      ? this.currentCheck.solution.answers
      : (this.currentCheck.solution.units[key.slice("units/".length)] ?? {});
  }

  async compareAnswers(marking: Marking): Promise<void> {
    const right = this.currentCheck?.solution ?? (await this.session.fetchRightAnswers());
    if (!right) return marking.announceAlert(t("verifyLater"));
    this.lastCheck = { task: this.session.task!.id, work: this.session.state.work, solution: right };
    const n = this.differingKeys.length;
    marking.announce(n === 0 ? t("allRight") : t("differing", { n }));
  }

  /** Show the right answers. */
  revealAnswers(): void {
    this.revealedTask = this.session.task?.id;
  }
}

const givenAnswers = (work: Work, key: UnitKey | "answers"): Answers => work[key]?.answers ?? {};
