import { ServerError, type Api } from "../lib/api";
import { t } from "../lib/catalogue/adjudication.en";
import type { AdjudicatePage, DisputeCard } from "../lib/schema";
import { errorText as sayOf } from "../researchers/session.svelte";
import {
  draftFromMark,
  findDispute,
  splitInHalves,
  moveEdge,
  partText,
  decisionFromMarks,
  proposedMark,
  hasNoMajorityLabel,
  disputeStart,
  draftToWire,
  wordBounds,
} from "./disputes";
import type { Draft, UnversionedDecision } from "./disputes";
import type { Span } from "../lib/text/pieces";

const EDIT_DELAY = 500; // ms without edits before the draft is sent
const RETRY_DELAY = 4000; // ms before a failed request is repeated

/** State of the adjudication of one text: disputes, gold draft of the selected one, and requests in flight. */
export class Decisions {
  page = $state.raw<AdjudicatePage | null>(null);
  /** Key of the selected dispute. */
  chosenKey = $state("");
  /** Gold marks shown in the editor. */
  drafts = $state.raw<readonly Draft[]>([]);
  /** Index of the draft that keys change. */
  activeDraft = $state(0);
  /** True while an edit waits to be sent. */
  hasUnsentEdit = $state(false);
  state = $state<"idle" | "saving" | "waiting" | "refused">("idle");
  /** Message for the last failure. */
  problem = $state("");
  /** Message for screen readers, announced politely. */
  announcement = $state("");
  /** Dispute that the adjudicator added. It is not sent until it has a label. */
  #newDispute = $state.raw<DisputeCard | null>(null);
  #takenReading: number | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #queue: Promise<void> = Promise.resolve();
  #sendingCount = 0;

  constructor(
    private readonly api: Api,
    readonly id: string,
  ) {}

  disputes = $derived.by<readonly DisputeCard[]>(() => {
    const own = this.page?.places ?? [];
    const local = this.#newDispute;
    return local && !own.some(({ key }) => key === local.key) ? [...own, local] : own;
  });
  dispute = $derived(this.disputes.find(({ key }) => key === this.chosenKey));
  disputeIndex = $derived(this.disputes.findIndex(({ key }) => key === this.chosenKey));
  /** True while the server lacks a change made here. */
  isPending = $derived(this.hasUnsentEdit || this.state === "saving" || this.state === "waiting");

  /** Load the text and select `key`, or else the first undecided dispute. */
  async load(key = ""): Promise<void> {
    try {
      this.page = await this.api.get<AdjudicatePage>(this.#path("document"));
      this.problem = "";
    } catch (error) {
      this.problem = sayOf(error);
      return;
    }
    const open = this.disputes.find(({ decision }) => decision === null);
    this.chooseDispute(
      this.disputes.some((dispute) => dispute.key === key) ? key : ((open ?? this.disputes[0])?.key ?? ""),
    );
  }

  chooseDispute(key: string): void {
    this.sendEdits();
    if (this.state !== "waiting") [this.state, this.problem] = [this.#sendingCount > 0 ? "saving" : "idle", ""];
    if (this.#newDispute && this.#newDispute.key !== key) this.#newDispute = null; // the added dispute was abandoned before it had a label
    this.chosenKey = key;
    this.#showDrafts();
  }

  /** Show the gold marks of the selected dispute, or else the merged ones. */
  #showDrafts(): void {
    const dispute = this.dispute;
    this.activeDraft = 0;
    this.#takenReading = dispute?.decision?.reading ?? null;
    if (!dispute || !this.page) this.drafts = [];
    else if (dispute.gold.length > 0) this.drafts = dispute.gold.map((mark) => draftFromMark(this.page!, mark));
    else if (dispute.decision === null || dispute.decision.what === "discuss")
      this.drafts = [proposedMark(dispute)]
        .filter((mark) => mark !== null)
        .map((mark) => draftFromMark(this.page!, mark));
    else this.drafts = [];
  }

  // --- decisions ---------------------------------------------------------------------------------------------------

  takeReading(number: number): void {
    const reading = this.dispute?.readings[number - 1];
    if (!reading || !this.page) return;
    this.#takenReading = number;
    this.drafts = [draftFromMark(this.page, reading)];
    this.#decide({ what: "taken", reading: number }, t("said-taken", { n: number }));
  }
  takeMerged(): void {
    if (!this.dispute?.merged || !this.page) return;
    this.#takenReading = null;
    this.drafts = [draftFromMark(this.page, this.dispute.merged)];
    if (hasNoMajorityLabel(this.dispute)) this.problem = t("choose-label");
    else this.#decide({ what: "merged" }, t("said-merged"));
  }
  rejectDispute(): void {
    if (this.dispute?.readings.length === 0) return this.undoDecision(); // rejecting a dispute that the adjudicator added removes it
    this.drafts = [];
    this.#decide({ what: "not-an-error" }, t("said-not-an-error"));
  }
  leaveForDiscussion(): void {
    if (this.dispute?.readings.length === 0) return;
    this.#decide({ what: "discuss" }, t("said-discuss"));
  }
  splitDraft(): void {
    const first = this.drafts[this.activeDraft] ?? (this.dispute && this.page && this.#proposedDraft());
    if (!first || !this.page) return;
    const others = this.drafts.filter((_, index) => index !== this.activeDraft);
    this.setDrafts([...splitInHalves(this.page, first), ...others], t("said-split"));
  }
  undoDecision(): void {
    const [key, dispute] = [this.chosenKey, this.dispute];
    this.#cancelTimer();
    if (this.#newDispute?.key === key) {
      this.#newDispute = null;
      return this.chooseDispute(this.disputes.at(-1)?.key ?? "");
    }
    if (!dispute?.decision) return this.#showDrafts();
    this.#send(key, (version) => this.api.delete(`${this.#path("place", key)}&base=${version}`));
    this.announcement = t("said-undone");
  }
  /** Accept unanimous disputes. */
  async acceptAgreed(keys: readonly string[]): Promise<boolean> {
    this.#send("", () => this.api.put(this.#path("agreed"), { places: keys }));
    await this.#queue;
    return this.state !== "refused";
  }

  /** Wait until no request is in flight. */
  async waitUntilSent(): Promise<void> {
    await this.#queue;
  }

  /** Add a dispute that no annotator marked, after the selected dispute or at `span`. */
  addDispute(span?: Span): void {
    if (!this.page) return;
    const after = this.drafts[0]?.spans[0];
    const words = wordBounds(this.page.text);
    const [start, end] = words.find(([from]) => from >= (after?.part === "text" ? after.end : 0)) ?? words[0] ?? [0, 0];
    const key = `new-${crypto.randomUUID()}`;
    this.sendEdits();
    this.#newDispute = {
      ...{ key, version: 0, readings: [], votes: 0, readers: this.page.readers, agreed: false, kept: false },
      ...{ merged: null, decision: null, gold: [], later: 0 },
    };
    [this.chosenKey, this.activeDraft, this.#takenReading] = [key, 0, null];
    this.drafts = [
      { spans: [span ?? { part: "text", start, end }], label: null, answers: {}, antecedents: null, alternatives: [] },
    ];
    this.announcement = t("said-added");
  }

  // --- edits -------------------------------------------------------------------------------------------------------

  /** Replace the draft of the selected dispute. It is sent after a pause, once each mark has a label. */
  setDrafts(drafts: readonly Draft[], said = ""): void {
    this.drafts = drafts;
    this.activeDraft = Math.min(this.activeDraft, Math.max(drafts.length - 1, 0));
    if (said) this.announcement = said;
    this.#cancelTimer();
    if (drafts.length === 0) return this.rejectDispute();
    if (!this.#isComplete()) return;
    this.hasUnsentEdit = true;
    this.#timer = setTimeout(() => this.sendEdits(), EDIT_DELAY);
  }
  changeDraft(index: number, change: Partial<Draft>): void {
    this.setDrafts(this.drafts.map((draft, at) => (at === index ? { ...draft, ...change } : draft)));
  }
  setSpan(index: number, span: number, to: Span): void {
    const draft = this.drafts[index];
    if (draft) this.changeDraft(index, { spans: draft.spans.map((old, at) => (at === span ? to : old)) });
  }
  /** Move an edge of the last span of the active mark by one word. */
  moveActiveEdge(edge: "start" | "end", by: 1 | -1): void {
    const last = (this.drafts[this.activeDraft]?.spans.length ?? 0) - 1;
    const span = this.drafts[this.activeDraft]?.spans[last];
    if (!span || !this.page) return;
    const moved = moveEdge(partText(this.page, span.part), span, edge, by);
    this.setSpan(this.activeDraft, last, moved);
    this.announcement = partText(this.page, span.part).slice(moved.start, moved.end);
  }

  /** Send pending edits immediately. */
  sendEdits(): void {
    if (!this.hasUnsentEdit) return;
    this.#cancelTimer();
    const dispute = this.dispute;
    if (!dispute || !this.page) return;
    const page = this.page;
    this.#sendDecision(
      decisionFromMarks(
        dispute,
        this.drafts.map((draft) => draftToWire(page, draft)),
        this.#takenReading,
      ),
    );
  }

  #cancelTimer(): void {
    clearTimeout(this.#timer);
    this.hasUnsentEdit = false;
  }
  #isComplete = (): boolean =>
    this.drafts.every(({ label, spans }) => (label !== null || this.page?.unlabelled === true) && spans.length > 0);
  #proposedDraft = (): Draft | null => {
    const mark = this.dispute && proposedMark(this.dispute);
    return mark && this.page ? draftFromMark(this.page, mark) : null;
  };

  // --- sending -----------------------------------------------------------------------------------------------------

  #decide(decision: UnversionedDecision, said: string): void {
    this.#cancelTimer();
    this.activeDraft = 0;
    this.#sendDecision(decision);
    this.announcement = said;
  }

  #sendDecision(decision: UnversionedDecision): void {
    const key = this.chosenKey;
    this.#send(key, (base) => this.api.put(this.#path("place", key), { base, ...decision }));
  }

  /** Send requests one at a time and repeat failed ones until they succeed. */
  #send(key: string, action: (version: number) => Promise<AdjudicatePage>): void {
    this.#sendingCount += 1;
    [this.state, this.problem] = ["saving", ""];
    this.#queue = this.#queue.then(async () => {
      for (;;) {
        try {
          const version = this.disputes.find((dispute) => dispute.key === key)?.version ?? 0;
          this.#handlePage(await action(version), key);
          break;
        } catch (error) {
          if (error instanceof ServerError) {
            await this.#handleRefusal(error);
            break;
          }
          this.state = "waiting";
          await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY));
        }
      }
    });
  }

  #handlePage(page: AdjudicatePage, key: string): void {
    const before = this.page?.state;
    this.page = page;
    if (this.#newDispute && page.places.some((dispute) => dispute.key === this.#newDispute!.key))
      this.#newDispute = null;
    this.#finishSending();
    const dispute = this.dispute;
    if (!dispute) this.chooseDispute(findDispute(this.disputes, this.chosenKey, this.#startOfDispute())?.key ?? "");
    else if (key === "" || (key === this.chosenKey && dispute.decision === null && !this.hasUnsentEdit))
      this.#showDrafts();
    if (page.state === "submitted" && before !== "submitted") this.announcement = t("said-all");
  }

  /** Report the error; after a conflict, show the other researcher's decision. */
  async #handleRefusal(error: ServerError): Promise<void> {
    this.#finishSending();
    [this.state, this.problem] = ["refused", error.problem.say];
    if (error.problem.code !== "conflict") return;
    const start = this.#startOfDispute();
    this.page = await this.api.get<AdjudicatePage>(this.#path("document")).catch(() => this.page);
    this.chosenKey = findDispute(this.disputes, this.chosenKey, start)?.key ?? "";
    this.#showDrafts();
  }

  #finishSending(): void {
    this.#sendingCount -= 1;
    if (this.state !== "refused") this.state = this.#sendingCount > 0 ? "saving" : "idle";
  }
  #startOfDispute = (): number => (this.dispute && disputeStart(this.dispute)) ?? 0;
  #path = (what: string, dispute = ""): string =>
    `/api/admin/adjudicate/${what}?${new URLSearchParams({ id: this.id, ...(dispute ? { place: dispute } : {}) })}`;
}
