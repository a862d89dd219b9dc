import { getContext, setContext } from "svelte";
import { Api, ServerError } from "../lib/api";
import { t } from "../lib/catalogue/researchers.en";
import { parseRoute, type Route } from "./route";
import type { Me, Role, State } from "./api-types";

const ROLES: readonly Role[] = ["viewer", "editor", "owner"];

/** State shared by all pages: the signed-in researcher, the route, and the last messages. */
export class ResearcherSession {
  readonly api = new Api();
  me = $state.raw<Me | null>(null);
  isSignedOut = $state(false);
  route: Route;
  /** Last success message, announced politely. */
  statusMessage = $state("");
  /** Last error message, announced assertively. */
  errorMessage = $state("");

  constructor(pages: readonly string[]) {
    this.route = $state.raw(parseRoute(location.hash, pages));
    addEventListener("hashchange", () => {
      this.route = parseRoute(location.hash, pages);
      [this.statusMessage, this.errorMessage] = ["", ""];
    });
  }

  /** Return true if the signed-in researcher has the rights of `role`. */
  hasRole = (role: Role): boolean => this.me !== null && ROLES.indexOf(this.me.role) >= ROLES.indexOf(role);

  /** Load the signed-in researcher. */
  async signIn(): Promise<void> {
    await this.runAction(async () => {
      this.me = await this.api.get<Me>("/api/admin/session");
      this.api.token = this.me.csrf;
    });
  }

  /** Run an action, report its outcome, and return true on success. Without a message, the previous one stays. */
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

  /** Reload the state of the study and keep the last message. */
  async refresh(): Promise<void> {
    this.me = await this.api.get<Me>("/api/admin/session").catch(() => this.me);
  }
}

/** Return the message of an error. */
export const errorText = (error: unknown): string =>
  error instanceof ServerError ? error.problem.say : t("unreachable");

const SESSION_KEY = Symbol("session");
export const provideSession = (pages: readonly string[]): ResearcherSession =>
  setContext(SESSION_KEY, new ResearcherSession(pages));
export const useSession = (): ResearcherSession => getContext<ResearcherSession>(SESSION_KEY);
