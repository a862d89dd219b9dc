import { t } from "../../lib/catalogue";
import type { Answers, Feedback } from "../../lib/api-types";
import type { Marking } from "../marking/marking.svelte";
import { hasRightAnswers } from "./graded-marks";
import type { UnitKey, Work } from "../work/work";
import type { Session } from "../session/session.svelte";

interface CheckResult {
  readonly task: string;
  /** Answers at the time of the check. */
  readonly work: Work;
  readonly solution: Feedback;
}

/** Comparison of answers with the solution before submission, any number of times. */
export class AnswerCheck {
  private lastCheck = $state.raw<CheckResult>();
  private revealedTask = $state<string>();

  constructor(private readonly session: Session) {}

  readonly currentCheck: CheckResult | undefined = $derived.by(() =>
    this.lastCheck?.task === this.session.current.task?.id ? this.lastCheck : undefined,
  );
  /** True if the correct answers were requested. */
  readonly isRevealed = $derived.by(
    () => this.revealedTask !== undefined && this.revealedTask === this.session.current.task?.id,
  );
  /** Parts, and `answers` for the whole text, that differed and were not changed since. */
  readonly differingKeys: readonly string[] = $derived.by(() => {
    const { currentCheck, session } = this;
    if (!currentCheck) return [];
    const { work } = session.current.state;
    return [...Object.keys(currentCheck.solution.units).map((id) => `units/${id}` as const), "answers" as const].filter(
      (key) =>
        work[key] === currentCheck.work[key] && !hasRightAnswers(givenAnswers(work, key), this.rightAnswers(key)),
    );
  });
  /** True if all answers were correct or the solution was shown, so that the annotator can continue. */
  readonly canContinue = $derived.by(() => {
    const { currentCheck } = this;
    return (
      this.isRevealed ||
      (currentCheck !== undefined && this.differingKeys.length === 0 && this.session.current.work === currentCheck.work)
    );
  });

  /** Return true if a part was correct when checked and has not changed since. */
  isRight(key: UnitKey | "answers"): boolean {
    const { currentCheck } = this;
    return (
      currentCheck !== undefined &&
      Object.keys(this.rightAnswers(key)).length > 0 &&
      this.session.current.work[key] === currentCheck.work[key] &&
      !this.differingKeys.includes(key)
    );
  }

  /** Return the correct answers for a part or for the whole text. */
  rightAnswers(key: UnitKey | "answers"): Answers {
    if (!this.currentCheck) return {};
    return key === "answers"
      ? this.currentCheck.solution.answers
      : (this.currentCheck.solution.units[key.slice("units/".length)] ?? {});
  }

  async compareAnswers(marking: Marking): Promise<void> {
    const right = this.currentCheck?.solution ?? (await this.session.fetchRightAnswers());
    if (!right) return marking.announcements.announceAlert(t("verifyLater"));
    this.lastCheck = { task: this.session.current.task!.id, work: this.session.current.work, solution: right };
    const n = this.differingKeys.length;
    marking.announcements.announce(n === 0 ? t("allRight") : t("differing", { n }));
  }

  /** Show the correct answers. */
  revealAnswers(): void {
    this.revealedTask = this.session.current.task?.id;
  }
}

const givenAnswers = (work: Work, key: UnitKey | "answers"): Answers => work[key]?.answers ?? {};
