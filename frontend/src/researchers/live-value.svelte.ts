import type { Api } from "../lib/api";
import { errorText } from "./session.svelte";

const POLL_INTERVAL = 15_000;

/** Something that the server computes and that changes while people work; asked for again and again, quietly. */
export class LiveValue<T> {
  value = $state.raw<T | null>(null);
  /** Why the last question was not answered, in words: what is shown may be old. */
  problem = $state("");

  constructor(
    private readonly api: Api,
    private readonly path: string,
  ) {}

  /** Ask now. The browser keeps the last answer and its tag, so an unchanged one costs a few bytes. */
  async reload(): Promise<void> {
    try {
      this.value = await this.api.get<T>(this.path);
      this.problem = "";
    } catch (error) {
      this.problem = errorText(error);
    }
  }

  /** Ask now and then, as long as the page can be seen; returns how to stop. */
  startPolling(): () => void {
    void this.reload();
    const timer = setInterval(() => document.visibilityState === "visible" && void this.reload(), POLL_INTERVAL);
    return () => clearInterval(timer);
  }
}
