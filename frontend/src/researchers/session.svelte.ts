import { getContext, setContext } from "svelte";
import { Api, Refusal } from "../lib/api";
import { t } from "../lib/catalogue/researchers.en";
import { parse } from "./route";
import type { Me, Role, State } from "./api-types";

const ROLES: readonly Role[] = ["viewer", "editor", "owner"];

/** What all pages share: who is signed in, where they are, and what was last said to them. */
export class ResearcherSession {
  readonly api = new Api();
  me = $state.raw<Me | null>(null);
  signedOut = $state(false);
  route = $state.raw(parse(location.hash));
  /** Said politely; the last thing that worked. */
  said = $state("");
  /** Said at once; the last thing that did not. */
  refused = $state("");

  constructor() {
    addEventListener("hashchange", () => {
      this.route = parse(location.hash);
      [this.said, this.refused] = ["", ""];
    });
  }

  /** Whether whoever is signed in may do what `role` may. */
  may = (role: Role): boolean => this.me !== null && ROLES.indexOf(this.me.role) >= ROLES.indexOf(role);

  /** Find out who is signed in. */
  async meet(): Promise<void> {
    await this.run(async () => {
      this.me = await this.api.get<Me>("/api/admin/session");
      this.api.token = this.me.csrf;
    });
  }

  /** Do something that may fail, say what came of it, and tell whether it worked. Without words, what was said last stays. */
  async run<T>(action: () => Promise<T>, done: string | ((result: T) => string) = ""): Promise<boolean> {
    try {
      const result = await action();
      [this.said, this.refused] = [(typeof done === "string" ? done : done(result)) || this.said, ""];
      return true;
    } catch (error) {
      this.signedOut = error instanceof Refusal && error.problem.code === "signed-out";
      [this.said, this.refused] = ["", wordsOf(error)];
      return false;
    }
  }

  /** Open, pause or close the study. */
  async turn(state: State): Promise<void> {
    await this.run(() => this.api.put("/api/admin/state", { state }), t(`now-${state}`));
    await this.refresh();
  }

  /** Ask again what holds for the whole study, leaving what was said last in place. */
  async refresh(): Promise<void> {
    this.me = await this.api.get<Me>("/api/admin/session").catch(() => this.me);
  }
}

/** What to say about something that failed. */
export const wordsOf = (error: unknown): string => (error instanceof Refusal ? error.problem.say : t("unreachable"));

const KEY = Symbol("session");
export const provideSession = (): ResearcherSession => setContext(KEY, new ResearcherSession());
export const useSession = (): ResearcherSession => getContext<ResearcherSession>(KEY);
