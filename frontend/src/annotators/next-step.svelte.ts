import { t } from "../lib/catalogue";
import type { Practice } from "../lib/api-types";
import type { Marking } from "./marking/marking.svelte";
import type { Panels } from "./marking/panels.svelte";
import type { Session } from "./session/session.svelte";
import { AnswerCheck } from "./onboarding/answer-check.svelte";

/** Next step: the following part, submission, or a missing answer. */
export class NextStep {
  readonly answerCheck: AnswerCheck;

  constructor(
    private readonly session: Session,
    private readonly marking: Marking,
  ) {
    this.answerCheck = new AnswerCheck(session);
  }

  /** True if the protocol has labels to mark. */
  readonly hasMarking = $derived.by(
    () => this.session.current.guide.labels.length > 0 || this.session.current.guide.unlabelled,
  );
  readonly isLastPart = $derived.by(() => this.session.navigation.partIndex >= this.session.current.parts.length - 1);
  /** Current part, if marking proceeds by parts. */
  readonly part = $derived.by(() =>
    this.hasMarking ? this.session.current.parts[this.session.navigation.partIndex] : undefined,
  );
  /** Reason why the part or the text cannot be judged, if given. */
  readonly cannotJudgeReason: string | undefined = $derived.by(() => {
    const { work, textAnswers } = this.session.current;
    const answers = this.part ? (work[this.part.key]?.answers ?? {}) : textAnswers.answers;
    return answers.cannot_judge as string | undefined;
  });
  /** Label of the button that declines to judge, or changes the reason. */
  readonly cannotJudgeLabel: string = $derived(
    t(this.cannotJudgeReason ? "cannotSaid" : this.part ? "cannotPart" : "cannotText"),
  );
  readonly cannotJudgeQuestion: string = $derived.by(() => {
    const { guide } = this.session.current;
    const questions = this.part ? guide.unit_questions : guide.document_questions;
    return questions.find((question) => question.name === "cannot_judge")?.ask ?? t("cannotWhy");
  });
  readonly hasOffers = $derived.by(() => this.session.current.offers.length > 0);
  readonly hasNoMarks = $derived.by(() => this.hasMarking && this.session.current.marks.length === 0);
  private readonly isLastText = $derived.by(() => {
    const { me } = this.session.account;
    const { task } = this.session.current;
    return me !== undefined && (task?.number ?? 0) >= me.of;
  });

  readonly nextLabel: string = $derived.by(() => {
    if (this.session.current.isSubmitting) return t("handingIn");
    if (this.session.navigation.awaitedPart !== undefined)
      return t("partComes", { n: this.session.navigation.awaitedPart + 1 });
    if (this.part && !this.isLastPart)
      return t(this.hasMarking ? "noMorePart" : "nextPart", { n: this.session.navigation.partIndex + 2 });
    const { practice } = this.session.current.task ?? {};
    if (practice) return this.practiceLabel(practice);
    if (!this.hasMarking) return t(this.isLastText ? "finishLast" : "nextText");
    const where = this.isLastText ? t("toEnd") : t("toText", { n: (this.session.current.task?.number ?? 0) + 1 });
    return t(
      this.hasNoMarks && !this.hasOffers && !this.part && !this.cannotJudgeReason ? "noErrorsNext" : "finishNext",
      {
        where,
      },
    );
  });
  readonly shortNextLabel: string = $derived.by(() => {
    if (this.session.navigation.awaitedPart !== undefined)
      return t("partComes", { n: this.session.navigation.awaitedPart + 1 });
    if (this.part && !this.isLastPart) return t("partN", { n: this.session.navigation.partIndex + 2 });
    const { practice } = this.session.current.task ?? {};
    if (practice) return this.practiceLabel(practice, true);
    if (!this.hasMarking) return t(this.isLastText ? "finishText" : "nextText");
    return t(this.hasNoMarks && !this.hasOffers && !this.cannotJudgeReason ? "noErrors" : "finishText");
  });
  /** Missing items. Later parts do not count, but sections on the same page do. */
  readonly missingNow = $derived.by(() =>
    this.session.current.missingItems.filter((each) => each.kind !== "part" || !this.hasMarking),
  );
  readonly missingMessage: string = $derived.by(() => {
    const items = this.missingNow;
    const explanations = items.filter((each) => each.question?.name === "explanation").length;
    return explanations === items.length
      ? t("explanationsMissing", { n: items.length })
      : t("answersMissing", { n: items.length });
  });

  private practiceLabel({ number, of, question, verify }: Practice, brief = false): string {
    if (verify && !this.answerCheck.canContinue) return t("verify");
    if (this.session.current.task!.phase === "training" && !verify) return t(brief ? "showAnswer" : "doneSee");
    if (number >= of) return t(brief ? "goOn" : "doneOn");
    const n = number + 1;
    if (brief) return t(question ? "questionN" : "exerciseN", { n });
    return t(question ? "doneQuestion" : "doneExercise", { n });
  }

  /** Go to the next step, or to the first missing item. */
  async goForward(): Promise<void> {
    const { session, marking } = this;
    if (session.current.isReadOnly || session.current.isSubmitting || session.navigation.awaitedPart !== undefined)
      return;
    if (this.part && !(await this.leavePart())) return;
    if (this.part && !this.isLastPart) return this.goToPart(session.navigation.partIndex + 1);
    const [refused] = session.current.refusedChanges;
    if (refused) return this.goToRefused(refused.key);
    const [first] = session.current.missingItems;
    if (first) return marking.form.showMissing(first);
    if (session.current.task?.practice?.verify && !this.answerCheck.canContinue)
      return this.answerCheck.compareAnswers(marking);
    if (
      !this.cannotJudgeReason &&
      session.current.offers.length > 0 &&
      !this.confirm("offers", t("sureOffers", { n: session.current.offers.length }))
    )
      return;
    if (this.hasNoMarks && !this.cannotJudgeReason && !this.part && !this.confirmNoErrors()) return;
    marking.reset();
    session.changes.submitTask();
  }

  setCannotJudge(reason: string | undefined): void {
    const key = this.part?.key ?? "answers";
    this.session.changes.dispatch({ type: "answer", key, question: "cannot_judge", value: reason });
  }

  async goToPart(index: number): Promise<void> {
    this.marking.reset();
    await this.session.navigation.awaitPart(index);
    this.marking.selection.focusText();
  }

  /** Judge the current part unless an answer is missing. */
  private async leavePart(): Promise<boolean> {
    const { key, end } = this.part!;
    this.session.navigation.judgePart(key);
    const item = this.session.current.missingItems.find((each) => {
      const mark = this.session.current.work[each.key as `marks/${string}`];
      return each.key === key || (each.key.startsWith("marks/") && mark?.spans[0] && mark.spans[0].start < end);
    });
    if (item) await this.marking.form.showMissing(item);
    return item === undefined;
  }

  /** Ask to confirm "no errors", because nothing else shows that the text was read. */
  private confirmNoErrors(): boolean {
    if (this.session.current.textAnswers.noErrors) return true;
    // undecided suggestions were already confirmed
    if (this.marking.panels.pendingConfirmation !== "offers" && !this.confirm("no-errors", t("sureNoErrors")))
      return false;
    this.session.changes.dispatch({ type: "noErrors", value: true });
    return true;
  }

  /** Return true if the question was asked before and is now confirmed; otherwise ask it. */
  private confirm(what: NonNullable<Panels["pendingConfirmation"]>, words: string): boolean {
    if (this.marking.panels.pendingConfirmation === what) return true;
    this.marking.panels.pendingConfirmation = what;
    this.marking.announcements.announce(words);
    return false;
  }

  private goToRefused(key: string): void {
    if (key.startsWith("marks/")) this.marking.marks.choose(key as `marks/${string}`, true);
    this.marking.announcements.announceAlert(t("refusedCount", { n: this.session.current.refusedChanges.length }));
  }
}
