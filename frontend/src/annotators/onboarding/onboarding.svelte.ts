import { ServerError, UnreachableError, type Api } from "../../lib/api";
import type { Answer, Answers, Page, ErrorResponse, Question, SaveResponse } from "../../lib/api-types";
import { isApplicable, applicableAnswers, unansweredQuestions } from "../../lib/questions/questions";
import { Drafts, type Draft } from "./drafts";
import { deviceStorage } from "../../lib/device-storage";
import { t } from "../../lib/catalogue";
import { newId } from "../sync/ids";
import { retryDelay } from "../sync/sender";

/** Owner of the pages. */
export interface OnboardingHost {
  readonly api: Api;
  activeSeconds(): number;
  /** Called when the server has accepted the page, or reports that it is no longer current. */
  onStepDone(): Promise<void>;
}

const EMPTY_DRAFT: Draft = { answers: {}, active: 0 };
/** Called when the page is no longer current, to load the current one. */
const OUTDATED_PAGE_CODES = ["not-found", "conflict", "finished"];

/** Onboarding page. Its answers are stored in the browser until the server has them. */
export class Onboarding {
  page = $state.raw<Page>();
  draft = $state.raw<Draft>(EMPTY_DRAFT);
  /** True after submission, until the server has accepted the page. */
  isSending = $state(false);
  /** Time of the next attempt, in the units of `Date.now()`. */
  retryAt = $state<number>();
  /** Reason given by the server for a rejection. */
  problem = $state.raw<ErrorResponse>();
  /** Question that should get attention. */
  highlightedQuestion = $state<string>();
  /** True if the draft survives closing the page. */
  isPersistent = $state(true);

  readonly questions: readonly Question[] = $derived.by(() =>
    (this.page?.questions ?? []).filter((question) => isApplicable(question, this.draft.answers)),
  );
  readonly missingQuestions: readonly Question[] = $derived.by(() =>
    unansweredQuestions(this.questions, this.draft.answers),
  );

  private readonly drafts = new Drafts(deviceStorage());
  private annotator = "";
  private failures = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly host: OnboardingHost) {}

  /** Show a page with its draft answers and the active seconds spent on it before. */
  showPage(page: Page, annotator: string): number {
    clearTimeout(this.timer);
    this.annotator = annotator;
    this.failures = 0;
    this.isSending = false;
    this.retryAt = this.problem = this.highlightedQuestion = undefined;
    this.draft = this.drafts.read(annotator, page.step) ?? { ...EMPTY_DRAFT, answers: page.answers };
    this.page = page;
    return this.draft.active;
  }

  /** Send a page that was submitted before the window was closed. */
  async resumeSending(): Promise<void> {
    if (this.draft.change !== undefined) await this.sendPage();
  }

  setAnswer(question: string, value: Answer | undefined): void {
    const { [question]: _, ...others } = this.draft.answers;
    const answers: Answers = value === undefined ? others : { ...others, [question]: value };
    if (this.highlightedQuestion === question) this.highlightedQuestion = undefined;
    this.saveDraft({ ...this.draft, answers });
  }

  /** Send a guess and show the returned page with the answer. */
  async sendGuess(guess: Answer | undefined): Promise<void> {
    if (this.isSending || !this.page) return;
    const step = this.page.step;
    this.isSending = true;
    this.problem = undefined;
    try {
      const body = { change: newId(), guess: guess ?? null, active: this.host.activeSeconds() };
      const page = await this.host.api.put<Page>(`/api/steps/${encodeURIComponent(step)}/guess`, body);
      if (this.page?.step === step) this.page = page;
    } catch (error) {
      if (error instanceof ServerError) this.problem = error.problem;
      else if (!(error instanceof UnreachableError)) throw error;
      else this.problem = { code: "failed", say: t("guessNotSent"), missing: [] };
    } finally {
      this.isSending = false;
    }
  }

  /** Submit the page, or go to the first missing answer. */
  async finishPage(): Promise<void> {
    if (this.isSending || !this.page) return;
    this.highlightedQuestion = this.missingQuestions[0]?.name;
    if (this.highlightedQuestion !== undefined) return;
    this.saveDraft({ ...this.draft, change: newId() });
    await this.sendPage();
  }

  /** Retry now. */
  retryNow(): void {
    if (this.retryAt !== undefined) void this.sendPage();
  }

  private saveDraft(draft: Draft): void {
    this.draft = { ...draft, active: this.host.activeSeconds() };
    this.isPersistent = this.drafts.write(this.annotator, this.page!.step, this.draft);
  }

  private async sendPage(): Promise<void> {
    clearTimeout(this.timer);
    const { step, questions } = this.page!;
    const { change, active } = this.draft;
    this.isSending = true;
    this.retryAt = this.problem = undefined;
    try {
      const answers = applicableAnswers(this.draft.answers, questions);
      await this.host.api.put<SaveResponse>(`/api/steps/${encodeURIComponent(step)}`, { change, answers, active });
      await this.leavePage(step);
    } catch (error) {
      if (error instanceof UnreachableError) return this.scheduleRetry();
      if (!(error instanceof ServerError)) throw error;
      if (OUTDATED_PAGE_CODES.includes(error.problem.code)) return this.leavePage(step);
      this.isSending = false;
      this.problem = error.problem;
    }
  }

  private async leavePage(step: string): Promise<void> {
    this.drafts.remove(this.annotator, step);
    await this.host.onStepDone();
    if (this.page?.step === step) this.isSending = false; // the server sent no other page, so that this one can be retried
  }

  private scheduleRetry(): void {
    this.failures += 1;
    const wait = retryDelay(this.failures, Math.random());
    this.retryAt = Date.now() + wait;
    this.timer = setTimeout(() => void this.sendPage(), wait);
  }
}
