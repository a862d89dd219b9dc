import type { Api } from "../lib/api";
import { errorText } from "./session.svelte";

const POLL_INTERVAL = 15_000;

/** Value that the server computes and that changes during the study, polled in the background. */
export class LiveValue<T> {
  value = $state.raw<T | null>(null);
  /** Reason why the last request failed; the shown value may be out of date. */
  problem = $state("");

  constructor(
    private readonly api: Api,
    private readonly path: string,
  ) {}

  /** Request the value now. The browser caches it by ETag, so that an unchanged value costs a few bytes. */
  async reload(): Promise<void> {
    try {
      this.value = await this.api.get<T>(this.path);
      this.problem = "";
    } catch (error) {
      this.problem = errorText(error);
    }
  }

  /** Poll while the page is visible; return a function that stops. */
  startPolling(): () => void {
    void this.reload();
    const timer = setInterval(() => document.visibilityState === "visible" && void this.reload(), POLL_INTERVAL);
    return () => clearInterval(timer);
  }
}
