import { Refusal, Unreachable, type Api } from "../../lib/api";
import type { Answer, Answers, Page, ErrorResponse, Question, Saved } from "../../lib/api-types";
import { applies, asked, unanswered } from "../../lib/questions/questions";
import { Drafts, type Draft } from "./drafts";
import { deviceStorage } from "../../lib/device-storage";
import { t } from "../../lib/catalogue";
import { newId } from "../sync/ids";
import { pause } from "../sync/sender";

/** Whoever shows the pages. */
export interface OnboardingHost {
  readonly api: Api;
  active(): number;
  /** The server knows that the page is done, or says that it is no longer the one to do. */
  stepDone(): Promise<void>;
}

const NOTHING: Draft = { answers: {}, active: 0 };
/** The page is not the present one any more: what comes now is asked for instead. */
const PASSED = ["not-found", "conflict", "finished"];

/** A page on the way to the work. What is answered is kept on the device until the server has it. */
export class Onboarding {
  page = $state.raw<Page>();
  draft = $state.raw<Draft>(NOTHING);
  /** Done here, and on its way to the server. */
  sending = $state(false);
  /** When the next attempt is made, as `Date.now()` has it. */
  retryAt = $state<number>();
  /** Why the server did not take it, in its words. */
  problem = $state.raw<ErrorResponse>();
  /** A question that should be looked at. */
  wanted = $state<string>();
  /** Whether the draft survives the page. */
  lasting = $state(true);

  readonly questions: readonly Question[] = $derived.by(() =>
    (this.page?.questions ?? []).filter((question) => applies(question, this.draft.answers)),
  );
  readonly missing: readonly Question[] = $derived.by(() => unanswered(this.questions, this.draft.answers));

  private readonly drafts = new Drafts(deviceStorage());
  private annotator = "";
  private failures = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly host: OnboardingHost) {}

  /** Put a page up with what was answered so far; the active seconds spent on it before. */
  show(page: Page, annotator: string): number {
    clearTimeout(this.timer);
    this.annotator = annotator;
    this.failures = 0;
    this.sending = false;
    this.retryAt = this.problem = this.wanted = undefined;
    this.draft = this.drafts.read(annotator, page.step) ?? { ...NOTHING, answers: page.answers };
    this.page = page;
    return this.draft.active;
  }

  /** Send a page that was done before the window was closed. */
  async resume(): Promise<void> {
    if (this.draft.change !== undefined) await this.send();
  }

  answer(question: string, value: Answer | undefined): void {
    const { [question]: _, ...others } = this.draft.answers;
    const answers: Answers = value === undefined ? others : { ...others, [question]: value };
    if (this.wanted === question) this.wanted = undefined;
    this.keep({ ...this.draft, answers });
  }

  /** Send a guess; the page comes back with the answer. */
  async guess(guess: Answer | undefined): Promise<void> {
    if (this.sending || !this.page) return;
    const step = this.page.step;
    this.sending = true;
    this.problem = undefined;
    try {
      const body = { change: newId(), guess: guess ?? null, active: this.host.active() };
      const page = await this.host.api.put<Page>(`/api/steps/${encodeURIComponent(step)}/guess`, body);
      if (this.page?.step === step) this.page = page;
    } catch (error) {
      if (error instanceof Refusal) this.problem = error.problem;
      else if (!(error instanceof Unreachable)) throw error;
      else this.problem = { code: "failed", say: t("guessNotSent"), missing: [] };
    } finally {
      this.sending = false;
    }
  }

  /** Say that the page is done; if an answer is missing, go there instead. */
  async done(): Promise<void> {
    if (this.sending || !this.page) return;
    this.wanted = this.missing[0]?.name;
    if (this.wanted !== undefined) return;
    this.keep({ ...this.draft, change: newId() });
    await this.send();
  }

  /** Try again now. */
  retry(): void {
    if (this.retryAt !== undefined) void this.send();
  }

  private keep(draft: Draft): void {
    this.draft = { ...draft, active: this.host.active() };
    this.lasting = this.drafts.write(this.annotator, this.page!.step, this.draft);
  }

  private async send(): Promise<void> {
    clearTimeout(this.timer);
    const { step, questions } = this.page!;
    const { change, active } = this.draft;
    this.sending = true;
    this.retryAt = this.problem = undefined;
    try {
      const answers = asked(this.draft.answers, questions);
      await this.host.api.put<Saved>(`/api/steps/${encodeURIComponent(step)}`, { change, answers, active });
      await this.passed(step);
    } catch (error) {
      if (error instanceof Unreachable) return this.later();
      if (!(error instanceof Refusal)) throw error;
      if (PASSED.includes(error.problem.code)) return this.passed(step);
      this.sending = false;
      this.problem = error.problem;
    }
  }

  private async passed(step: string): Promise<void> {
    this.drafts.strike(this.annotator, step);
    await this.host.stepDone();
    if (this.page?.step === step) this.sending = false; // nothing else came: the page may be tried again
  }

  private later(): void {
    this.failures += 1;
    const wait = pause(this.failures, Math.random());
    this.retryAt = Date.now() + wait;
    this.timer = setTimeout(() => void this.send(), wait);
  }
}
