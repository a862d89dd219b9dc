/** Short message at the bottom of the page, with an optional undo. */
export interface Toast {
  readonly message: string;
  readonly undo: boolean;
}

/** Messages for screen readers and short visible messages. */
export class Announcements {
  toast = $state.raw<Toast>();
  /** Screen reader messages: polite and assertive. */
  politeMessage = $state("");
  alertMessage = $state("");
  private toastTimer: ReturnType<typeof setTimeout> | undefined;

  announce(message: string): void {
    this.politeMessage = message;
  }

  announceAlert(message: string): void {
    this.alertMessage = message;
  }

  showToast(message: string, undo = false): void {
    clearTimeout(this.toastTimer);
    this.toast = { message, undo };
    this.toastTimer = setTimeout(() => (this.toast = undefined), 8000);
  }
}
