/** A short message at the foot of the page, with a way back where there is one. */
export interface Toast {
  readonly say: string;
  readonly undo: boolean;
}

/** What the page tells: to screen readers politely or at once, and to everybody as a short message. */
export class Announcements {
  toast = $state.raw<Toast>();
  /** Said to screen readers: politely, and at once. */
  spoken = $state("");
  alerted = $state("");
  protected toastTimer: ReturnType<typeof setTimeout> | undefined;

  say(words: string): void {
    this.spoken = words;
  }

  alert(words: string): void {
    this.alerted = words;
  }

  notify(say: string, undo = false): void {
    clearTimeout(this.toastTimer);
    this.toast = { say, undo };
    this.toastTimer = setTimeout(() => (this.toast = undefined), 8000);
  }
}
