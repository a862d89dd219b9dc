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
  readonly marks = $derived.by(() => this.session.guide.labels.length > 0 || this.session.guide.unlabelled);
  readonly isLastPart = $derived.by(() => this.session.partAt >= this.session.parts.length - 1);
  /** The part that is judged now, where errors are looked for part by part. */
  readonly part = $derived.by(() => (this.marks ? this.session.parts[this.session.partAt] : undefined));
  /** Why the part or the text cannot be judged, when that was said. */
  readonly cannot: string | undefined = $derived.by(() => {
    const { state, whole } = this.session;
    const answers = this.part ? (state.work[this.part.key]?.answers ?? {}) : whole.answers;
    return answers.cannot_judge as string | undefined;
  });
  /** What one presses to say it, or to change what was said. */
  readonly cannotWords: string = $derived(t(this.cannot ? "cannotSaid" : this.part ? "cannotPart" : "cannotText"));
  readonly cannotAsk: string = $derived.by(() => {
    const { guide } = this.session;
    const questions = this.part ? guide.unit_questions : guide.document_questions;
    return questions.find((question) => question.name === "cannot_judge")?.ask ?? t("cannotWhy");
  });
  readonly hasOffers = $derived.by(() => this.marking.offers.length > 0);
  readonly hasNoMarks = $derived.by(() => this.marks && this.session.marks.length === 0);
  private readonly isLastText = $derived.by(() => {
    const { me, task } = this.session;
    return me !== undefined && (task?.number ?? 0) >= me.of;
  });

  readonly nextWords: string = $derived.by(() => {
    if (this.session.handingIn) return t("handingIn");
    if (this.session.awaited !== undefined) return t("partComes", { n: this.session.awaited + 1 });
    if (this.part && !this.isLastPart) return t(this.marks ? "noMorePart" : "nextPart", { n: this.session.partAt + 2 });
    const { practice } = this.session.task ?? {};
    if (practice) return this.practiceWords(practice);
    if (!this.marks) return t(this.isLastText ? "finishLast" : "nextText");
    const where = this.isLastText ? t("toEnd") : t("toText", { n: (this.session.task?.number ?? 0) + 1 });
    return t(this.hasNoMarks && !this.hasOffers && !this.part && !this.cannot ? "noErrorsNext" : "finishNext", {
      where,
    });
  });
  readonly nextWordsShort: string = $derived.by(() => {
    if (this.session.awaited !== undefined) return t("partComes", { n: this.session.awaited + 1 });
    if (this.part && !this.isLastPart) return t("partN", { n: this.session.partAt + 2 });
    const { practice } = this.session.task ?? {};
    if (practice) return this.practiceWords(practice, true);
    if (!this.marks) return t(this.isLastText ? "finishText" : "nextText");
    return t(this.hasNoMarks && !this.hasOffers && !this.cannot ? "noErrors" : "finishText");
  });
  /** What is missing now; a part that one has yet to come to is not, but a section on the same page is. */
  readonly lacking = $derived.by(() => this.session.missing.filter((each) => each.what !== "part" || !this.marks));
  readonly missingWords: string = $derived.by(() => {
    const found = this.lacking;
    const explanations = found.filter((each) => each.question?.name === "explanation").length;
    return explanations === found.length
      ? t("explanationsMissing", { n: found.length })
      : t("answersMissing", { n: found.length });
  });

  private practiceWords({ number, of, question, verify }: Practice, brief = false): string {
    if (verify && !this.answerCheck.isOver) return t("verify");
    if (this.session.task!.phase === "training" && !verify) return t(brief ? "showAnswer" : "doneSee");
    if (number >= of) return t(brief ? "goOn" : "doneOn");
    const n = number + 1;
    if (brief) return t(question ? "questionN" : "exerciseN", { n });
    return t(question ? "doneQuestion" : "doneExercise", { n });
  }

  /** Go on; if something is missing, go there instead. */
  async forward(): Promise<void> {
    const { session, marking } = this;
    if (session.readOnly || session.handingIn || session.awaited !== undefined) return;
    if (this.part && !(await this.leavePart())) return;
    if (this.part && !this.isLastPart) return this.toPart(session.partAt + 1);
    const [refused] = session.refused;
    if (refused) return this.toRefused(refused.key);
    const [first] = session.missing;
    if (first) return marking.show(first);
    if (session.task?.practice?.verify && !this.answerCheck.isOver) return this.answerCheck.compare(marking);
    if (
      !this.cannot &&
      marking.offers.length > 0 &&
      !this.sureOf("offers", t("sureOffers", { n: marking.offers.length }))
    )
      return;
    if (this.hasNoMarks && !this.cannot && !this.part && !this.sureOfNoErrors()) return;
    marking.reset();
    session.finish();
  }

  setCannot(reason: string | undefined): void {
    const key = this.part?.key ?? "answers";
    this.session.dispatch({ type: "answer", key, question: "cannot_judge", value: reason });
  }

  async toPart(index: number): Promise<void> {
    this.marking.reset();
    await this.session.reach(index);
    this.marking.focusText();
  }

  /** Judge the present part, unless something in it is missing. */
  private async leavePart(): Promise<boolean> {
    const { key, end } = this.part!;
    this.session.judge(key);
    const lack = this.session.missing.find((each) => {
      const mark = this.session.state.work[each.key as `marks/${string}`];
      return each.key === key || (each.key.startsWith("marks/") && mark?.spans[0] && mark.spans[0].start < end);
    });
    if (lack) await this.marking.show(lack);
    return lack === undefined;
  }

  /** "No errors" is asked once more, since nothing else shows that the text was read. */
  private sureOfNoErrors(): boolean {
    if (this.session.whole.noErrors) return true;
    // whoever left suggestions undecided was asked already
    if (this.marking.asking !== "offers" && !this.sureOf("no-errors", t("sureNoErrors"))) return false;
    this.session.dispatch({ type: "noErrors", value: true });
    return true;
  }

  /** Whether something was asked before and is confirmed now; else it is asked. */
  private sureOf(what: NonNullable<Marking["asking"]>, words: string): boolean {
    if (this.marking.asking === what) return true;
    this.marking.asking = what;
    this.marking.say(words);
    return false;
  }

  private toRefused(key: string): void {
    if (key.startsWith("marks/")) this.marking.choose(key as `marks/${string}`, true);
    this.marking.alert(t("refusedCount", { n: this.session.refused.length }));
  }
}
