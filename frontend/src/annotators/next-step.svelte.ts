import { t } from "../lib/catalogue";
import type { Practice } from "../lib/api-types";
import type { Marking } from "./marking/marking.svelte";
import type { Session } from "./session/session.svelte";
import { AnswerCheck } from "./onboarding/answer-check.svelte";

/** What comes next: the following part, handing in, or first what is missing. */
export class NextStep {
  readonly answerCheck: AnswerCheck;

  constructor(
    private readonly session: Session,
    private readonly marking: Marking,
  ) {
    this.answerCheck = new AnswerCheck(session);
  }

  /** Whether errors are looked for at all. */
  readonly hasMarking = $derived.by(() => this.session.guide.labels.length > 0 || this.session.guide.unlabelled);
  readonly isLastPart = $derived.by(() => this.session.partIndex >= this.session.parts.length - 1);
  /** The part that is judged now, where errors are looked for part by part. */
  readonly part = $derived.by(() => (this.hasMarking ? this.session.parts[this.session.partIndex] : undefined));
  /** Why the part or the text cannot be judged, when that was said. */
  readonly cannotJudgeReason: string | undefined = $derived.by(() => {
    const { state, textAnswers } = this.session;
    const answers = this.part ? (state.work[this.part.key]?.answers ?? {}) : textAnswers.answers;
    return answers.cannot_judge as string | undefined;
  });
  /** What one presses to say it, or to change what was said. */
  readonly cannotJudgeLabel: string = $derived(
    t(this.cannotJudgeReason ? "cannotSaid" : this.part ? "cannotPart" : "cannotText"),
  );
  readonly cannotJudgeQuestion: string = $derived.by(() => {
    const { guide } = this.session;
    const questions = this.part ? guide.unit_questions : guide.document_questions;
    return questions.find((question) => question.name === "cannot_judge")?.ask ?? t("cannotWhy");
  });
  readonly hasOffers = $derived.by(() => this.marking.offers.length > 0);
  readonly hasNoMarks = $derived.by(() => this.hasMarking && this.session.marks.length === 0);
  private readonly isLastText = $derived.by(() => {
    const { me, task } = this.session;
    return me !== undefined && (task?.number ?? 0) >= me.of;
  });

  readonly nextLabel: string = $derived.by(() => {
    if (this.session.isSubmitting) return t("handingIn");
    if (this.session.awaitedPart !== undefined) return t("partComes", { n: this.session.awaitedPart + 1 });
    if (this.part && !this.isLastPart)
      return t(this.hasMarking ? "noMorePart" : "nextPart", { n: this.session.partIndex + 2 });
    const { practice } = this.session.task ?? {};
    if (practice) return this.practiceLabel(practice);
    if (!this.hasMarking) return t(this.isLastText ? "finishLast" : "nextText");
    const where = this.isLastText ? t("toEnd") : t("toText", { n: (this.session.task?.number ?? 0) + 1 });
    return t(
      this.hasNoMarks && !this.hasOffers && !this.part && !this.cannotJudgeReason ? "noErrorsNext" : "finishNext",
      {
        where,
      },
    );
  });
  readonly shortNextLabel: string = $derived.by(() => {
    if (this.session.awaitedPart !== undefined) return t("partComes", { n: this.session.awaitedPart + 1 });
    if (this.part && !this.isLastPart) return t("partN", { n: this.session.partIndex + 2 });
    const { practice } = this.session.task ?? {};
    if (practice) return this.practiceLabel(practice, true);
    if (!this.hasMarking) return t(this.isLastText ? "finishText" : "nextText");
    return t(this.hasNoMarks && !this.hasOffers && !this.cannotJudgeReason ? "noErrors" : "finishText");
  });
  /** What is missing now; a part that one has yet to come to is not, but a section on the same page is. */
  readonly missingNow = $derived.by(() =>
    this.session.missingItems.filter((each) => each.kind !== "part" || !this.hasMarking),
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
    if (this.session.task!.phase === "training" && !verify) return t(brief ? "showAnswer" : "doneSee");
    if (number >= of) return t(brief ? "goOn" : "doneOn");
    const n = number + 1;
    if (brief) return t(question ? "questionN" : "exerciseN", { n });
    return t(question ? "doneQuestion" : "doneExercise", { n });
  }

  /** Go on; if something is missing, go there instead. */
  async goForward(): Promise<void> {
    const { session, marking } = this;
    if (session.isReadOnly || session.isSubmitting || session.awaitedPart !== undefined) return;
    if (this.part && !(await this.leavePart())) return;
    if (this.part && !this.isLastPart) return this.goToPart(session.partIndex + 1);
    const [refused] = session.refusedChanges;
    if (refused) return this.goToRefused(refused.key);
    const [first] = session.missingItems;
    if (first) return marking.showMissing(first);
    if (session.task?.practice?.verify && !this.answerCheck.canContinue)
      return this.answerCheck.compareAnswers(marking);
    if (
      !this.cannotJudgeReason &&
      marking.offers.length > 0 &&
      !this.confirm("offers", t("sureOffers", { n: marking.offers.length }))
    )
      return;
    if (this.hasNoMarks && !this.cannotJudgeReason && !this.part && !this.confirmNoErrors()) return;
    marking.reset();
    session.submitTask();
  }

  setCannotJudge(reason: string | undefined): void {
    const key = this.part?.key ?? "answers";
    this.session.dispatch({ type: "answer", key, question: "cannot_judge", value: reason });
  }

  async goToPart(index: number): Promise<void> {
    this.marking.reset();
    await this.session.awaitPart(index);
    this.marking.focusText();
  }

  /** Judge the present part, unless something in it is missing. */
  private async leavePart(): Promise<boolean> {
    const { key, end } = this.part!;
    this.session.judgePart(key);
    const item = this.session.missingItems.find((each) => {
      const mark = this.session.state.work[each.key as `marks/${string}`];
      return each.key === key || (each.key.startsWith("marks/") && mark?.spans[0] && mark.spans[0].start < end);
    });
    if (item) await this.marking.showMissing(item);
    return item === undefined;
  }

  /** "No errors" is asked once more, since nothing else shows that the text was read. */
  private confirmNoErrors(): boolean {
    if (this.session.textAnswers.noErrors) return true;
    // whoever left suggestions undecided was asked already
    if (this.marking.pendingConfirmation !== "offers" && !this.confirm("no-errors", t("sureNoErrors"))) return false;
    this.session.dispatch({ type: "noErrors", value: true });
    return true;
  }

  /** Whether something was asked before and is confirmed now; else it is asked. */
  private confirm(what: NonNullable<Marking["pendingConfirmation"]>, words: string): boolean {
    if (this.marking.pendingConfirmation === what) return true;
    this.marking.pendingConfirmation = what;
    this.marking.announce(words);
    return false;
  }

  private goToRefused(key: string): void {
    if (key.startsWith("marks/")) this.marking.chooseMark(key as `marks/${string}`, true);
    this.marking.announceAlert(t("refusedCount", { n: this.session.refusedChanges.length }));
  }
}
