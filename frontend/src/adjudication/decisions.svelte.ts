import { Refusal, type Api } from "../lib/api";
import { t } from "../lib/catalogue/adjudication.en";
import type { AdjudicatePage, PlaceCard } from "../lib/schema";
import { wordsOf as sayOf } from "../researchers/session.svelte";
import {
  draftOf,
  findAgain,
  halves,
  moveEdge,
  partOf,
  ruling,
  shownMark,
  split,
  startOf,
  toWire,
  wordsOf,
} from "./gold";
import type { Draft, Ruling } from "./gold";
import type { Span } from "../lib/text/pieces";

const PAUSE = 500; // ms of quiet before an edit is sent
const AGAIN = 4000; // ms before something that was not sent is sent again

/** One text being adjudicated: its places, the chosen one with what gold is to have there, and what is on its way. */
export class Decisions {
  page = $state.raw<AdjudicatePage | null>(null);
  /** Of the chosen place. */
  key = $state("");
  /** What the editor shows. */
  drafts = $state.raw<readonly Draft[]>([]);
  /** Which of them the keys change. */
  active = $state(0);
  /** Whether an edit waits for a moment of quiet. */
  edited = $state(false);
  state = $state<"idle" | "saving" | "waiting" | "refused">("idle");
  /** Why the last thing did not work, in words. */
  trouble = $state("");
  /** Said politely. */
  said = $state("");
  /** One that nobody marked, as long as it has no label and so is not sent. */
  #local = $state.raw<PlaceCard | null>(null);
  #reading: number | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #queue: Promise<void> = Promise.resolve();
  #sending = 0;

  constructor(
    private readonly api: Api,
    readonly id: string,
  ) {}

  places = $derived.by<readonly PlaceCard[]>(() => {
    const own = this.page?.places ?? [];
    const local = this.#local;
    return local && !own.some(({ key }) => key === local.key) ? [...own, local] : own;
  });
  place = $derived(this.places.find(({ key }) => key === this.key));
  at = $derived(this.places.findIndex(({ key }) => key === this.key));
  /** Whether something was done here that the server does not have yet. */
  pending = $derived(this.edited || this.state === "saving" || this.state === "waiting");

  /** Read the text; choose `key`, else the first place that is not decided. */
  async load(key = ""): Promise<void> {
    try {
      this.page = await this.api.get<AdjudicatePage>(this.#path("document"));
      this.trouble = "";
    } catch (error) {
      this.trouble = sayOf(error);
      return;
    }
    const open = this.places.find(({ decision }) => decision === null);
    this.choose(this.places.some((place) => place.key === key) ? key : ((open ?? this.places[0])?.key ?? ""));
  }

  choose(key: string): void {
    this.flush();
    if (this.state !== "waiting") [this.state, this.trouble] = [this.#sending > 0 ? "saving" : "idle", ""];
    if (this.#local && this.#local.key !== key) this.#local = null; // it was given up before it had a label
    this.key = key;
    this.#show();
  }

  /** Show what gold has at the chosen place, or what merging gives. */
  #show(): void {
    const place = this.place;
    this.active = 0;
    this.#reading = place?.decision?.reading ?? null;
    if (!place || !this.page) this.drafts = [];
    else if (place.gold.length > 0) this.drafts = place.gold.map((mark) => draftOf(this.page!, mark));
    else if (place.decision === null || place.decision.what === "discuss")
      this.drafts = [shownMark(place)].filter((mark) => mark !== null).map((mark) => draftOf(this.page!, mark));
    else this.drafts = [];
  }

  // --- decisions ---------------------------------------------------------------------------------------------------

  take(number: number): void {
    const reading = this.place?.readings[number - 1];
    if (!reading || !this.page) return;
    this.#reading = number;
    this.drafts = [draftOf(this.page, reading)];
    this.#decide({ what: "taken", reading: number }, t("said-taken", { n: number }));
  }
  merge(): void {
    if (!this.place?.merged || !this.page) return;
    this.#reading = null;
    this.drafts = [draftOf(this.page, this.place.merged)];
    if (split(this.place)) this.trouble = t("choose-label");
    else this.#decide({ what: "merged" }, t("said-merged"));
  }
  refuse(): void {
    if (this.place?.readings.length === 0) return this.undo(); // what nobody marked is left out
    this.drafts = [];
    this.#decide({ what: "not-an-error" }, t("said-not-an-error"));
  }
  discuss(): void {
    if (this.place?.readings.length === 0) return;
    this.#decide({ what: "discuss" }, t("said-discuss"));
  }
  split(): void {
    const first = this.drafts[this.active] ?? (this.place && this.page && this.#proposal());
    if (!first || !this.page) return;
    const others = this.drafts.filter((_, index) => index !== this.active);
    this.edit([...halves(this.page, first), ...others], t("said-split"));
  }
  undo(): void {
    const [key, place] = [this.key, this.place];
    this.#stop();
    if (this.#local?.key === key) {
      this.#local = null;
      return this.choose(this.places.at(-1)?.key ?? "");
    }
    if (!place?.decision) return this.#show();
    this.#send(key, (version) => this.api.delete(`${this.#path("place", key)}&base=${version}`));
    this.said = t("said-undone");
  }
  /** Take places that all agree on. */
  async agree(keys: readonly string[]): Promise<boolean> {
    this.#send("", () => this.api.put(this.#path("agreed"), { places: keys }));
    await this.#queue;
    return this.state !== "refused";
  }

  /** Until nothing is on its way any more. */
  async settled(): Promise<void> {
    await this.#queue;
  }

  /** One that nobody marked, at the words after the chosen place or at `span`. */
  add(span?: Span): void {
    if (!this.page) return;
    const after = this.drafts[0]?.spans[0];
    const words = wordsOf(this.page.text);
    const [start, end] = words.find(([from]) => from >= (after?.part === "text" ? after.end : 0)) ?? words[0] ?? [0, 0];
    const key = `new-${crypto.randomUUID()}`;
    this.flush();
    this.#local = {
      ...{ key, version: 0, readings: [], votes: 0, readers: this.page.readers, agreed: false, kept: false },
      ...{ merged: null, decision: null, gold: [], later: 0 },
    };
    [this.key, this.active, this.#reading] = [key, 0, null];
    this.drafts = [
      { spans: [span ?? { part: "text", start, end }], label: null, answers: {}, antecedents: null, alternatives: [] },
    ];
    this.said = t("said-added");
  }

  // --- edits -------------------------------------------------------------------------------------------------------

  /** Other marks for the chosen place; sent after a moment of quiet, once each has a label. */
  edit(drafts: readonly Draft[], said = ""): void {
    this.drafts = drafts;
    this.active = Math.min(this.active, Math.max(drafts.length - 1, 0));
    if (said) this.said = said;
    this.#stop();
    if (drafts.length === 0) return this.refuse();
    if (!this.#labelled()) return;
    this.edited = true;
    this.#timer = setTimeout(() => this.flush(), PAUSE);
  }
  change(index: number, change: Partial<Draft>): void {
    this.edit(this.drafts.map((draft, at) => (at === index ? { ...draft, ...change } : draft)));
  }
  setSpan(index: number, span: number, to: Span): void {
    const draft = this.drafts[index];
    if (draft) this.change(index, { spans: draft.spans.map((old, at) => (at === span ? to : old)) });
  }
  /** Move an edge of the last span of the active mark by a word. */
  nudge(edge: "start" | "end", by: 1 | -1): void {
    const last = (this.drafts[this.active]?.spans.length ?? 0) - 1;
    const span = this.drafts[this.active]?.spans[last];
    if (!span || !this.page) return;
    const moved = moveEdge(partOf(this.page, span.part), span, edge, by);
    this.setSpan(this.active, last, moved);
    this.said = partOf(this.page, span.part).slice(moved.start, moved.end);
  }

  /** Send at once what was edited. */
  flush(): void {
    if (!this.edited) return;
    this.#stop();
    const place = this.place;
    if (!place || !this.page) return;
    const page = this.page;
    this.#put(
      ruling(
        place,
        this.drafts.map((draft) => toWire(page, draft)),
        this.#reading,
      ),
    );
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.edited = false;
  }
  #labelled = (): boolean =>
    this.drafts.every(({ label, spans }) => (label !== null || this.page?.unlabelled === true) && spans.length > 0);
  #proposal = (): Draft | null => {
    const mark = this.place && shownMark(this.place);
    return mark && this.page ? draftOf(this.page, mark) : null;
  };

  // --- sending -----------------------------------------------------------------------------------------------------

  #decide(decision: Ruling, said: string): void {
    this.#stop();
    this.active = 0;
    this.#put(decision);
    this.said = said;
  }

  #put(decision: Ruling): void {
    const key = this.key;
    this.#send(key, (base) => this.api.put(this.#path("place", key), { base, ...decision }));
  }

  /** One after the other; what could not be sent is sent again until it arrives. */
  #send(key: string, action: (version: number) => Promise<AdjudicatePage>): void {
    this.#sending += 1;
    [this.state, this.trouble] = ["saving", ""];
    this.#queue = this.#queue.then(async () => {
      for (;;) {
        try {
          const version = this.places.find((place) => place.key === key)?.version ?? 0;
          this.#arrived(await action(version), key);
          break;
        } catch (error) {
          if (error instanceof Refusal) {
            await this.#refused(error);
            break;
          }
          this.state = "waiting";
          await new Promise((resolve) => setTimeout(resolve, AGAIN));
        }
      }
    });
  }

  #arrived(page: AdjudicatePage, key: string): void {
    const before = this.page?.state;
    this.page = page;
    if (this.#local && page.places.some((place) => place.key === this.#local!.key)) this.#local = null;
    this.#settle();
    const place = this.place;
    if (!place) this.choose(findAgain(this.places, this.key, this.#start())?.key ?? "");
    else if (key === "" || (key === this.key && place.decision === null && !this.edited)) this.#show();
    if (page.state === "submitted" && before !== "submitted") this.said = t("said-all");
  }

  /** Say why; after somebody else's decision show theirs. */
  async #refused(error: Refusal): Promise<void> {
    this.#settle();
    [this.state, this.trouble] = ["refused", error.problem.say];
    if (error.problem.code !== "conflict") return;
    const start = this.#start();
    this.page = await this.api.get<AdjudicatePage>(this.#path("document")).catch(() => this.page);
    this.key = findAgain(this.places, this.key, start)?.key ?? "";
    this.#show();
  }

  #settle(): void {
    this.#sending -= 1;
    if (this.state !== "refused") this.state = this.#sending > 0 ? "saving" : "idle";
  }
  #start = (): number => (this.place && startOf(this.place)) ?? 0;
  #path = (what: string, place = ""): string =>
    `/api/admin/adjudicate/${what}?${new URLSearchParams({ id: this.id, ...(place ? { place } : {}) })}`;
}
