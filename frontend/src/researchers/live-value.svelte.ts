import type { Api } from "../lib/api";
import { wordsOf } from "./session.svelte";

const PAUSE = 15_000;

/** Something that the server computes and that changes while people work; asked for again and again, quietly. */
export class LiveValue<T> {
  value = $state.raw<T | null>(null);
  /** Why the last question was not answered, in words: what is shown may be old. */
  trouble = $state("");

  constructor(
    private readonly api: Api,
    private readonly path: string,
  ) {}

  /** Ask now. The browser keeps the last answer and its tag, so an unchanged one costs a few bytes. */
  async ask(): Promise<void> {
    try {
      this.value = await this.api.get<T>(this.path);
      this.trouble = "";
    } catch (error) {
      this.trouble = wordsOf(error);
    }
  }

  /** Ask now and then, as long as the page can be seen; returns how to stop. */
  start(): () => void {
    void this.ask();
    const timer = setInterval(() => document.visibilityState === "visible" && void this.ask(), PAUSE);
    return () => clearInterval(timer);
  }
}
