import { getContext, setContext } from "svelte";
import { Api, ServerError } from "../lib/api";
import { t } from "../lib/catalogue/researchers.en";
import { parseRoute } from "./route";
import type { Me, Role, State } from "./api-types";

const ROLES: readonly Role[] = ["viewer", "editor", "owner"];

/** What all pages share: who is signed in, where they are, and what was last said to them. */
export class ResearcherSession {
  readonly api = new Api();
  me = $state.raw<Me | null>(null);
  isSignedOut = $state(false);
  route = $state.raw(parseRoute(location.hash));
  /** Said politely; the last thing that worked. */
  statusMessage = $state("");
  /** Said at once; the last thing that did not. */
  errorMessage = $state("");

  constructor() {
    addEventListener("hashchange", () => {
      this.route = parseRoute(location.hash);
      [this.statusMessage, this.errorMessage] = ["", ""];
    });
  }

  /** Whether whoever is signed in may do what `role` may. */
  hasRole = (role: Role): boolean => this.me !== null && ROLES.indexOf(this.me.role) >= ROLES.indexOf(role);

  /** Find out who is signed in. */
  async signIn(): Promise<void> {
    await this.runAction(async () => {
      this.me = await this.api.get<Me>("/api/admin/session");
      this.api.token = this.me.csrf;
    });
  }

  /** Do something that may fail, say what came of it, and tell whether it worked. Without words, what was said last stays. */
  async runAction<T>(action: () => Promise<T>, done: string | ((result: T) => string) = ""): Promise<boolean> {
    try {
      const result = await action();
      [this.statusMessage, this.errorMessage] = [
        (typeof done === "string" ? done : done(result)) || this.statusMessage,
        "",
      ];
      return true;
    } catch (error) {
      this.isSignedOut = error instanceof ServerError && error.problem.code === "signed-out";
      [this.statusMessage, this.errorMessage] = ["", errorText(error)];
      return false;
    }
  }

  /** Open, pause or close the study. */
  async setStudyState(state: State): Promise<void> {
    await this.runAction(() => this.api.put("/api/admin/state", { state }), t(`now-${state}`));
    await this.refresh();
  }

  /** Ask again what holds for the whole study, leaving what was said last in place. */
  async refresh(): Promise<void> {
    this.me = await this.api.get<Me>("/api/admin/session").catch(() => this.me);
  }
}

/** What to say about something that failed. */
export const errorText = (error: unknown): string =>
  error instanceof ServerError ? error.problem.say : t("unreachable");

const SESSION_KEY = Symbol("session");
export const provideSession = (): ResearcherSession => setContext(SESSION_KEY, new ResearcherSession());
export const useSession = (): ResearcherSession => getContext<ResearcherSession>(SESSION_KEY);
