/** A short message at the foot of the page, with a way back where there is one. */
export interface Toast {
  readonly message: string;
  readonly undo: boolean;
}

/** What the page tells: to screen readers politely or at once, and to everybody as a short message. */
export class Announcements {
  toast = $state.raw<Toast>();
  /** Said to screen readers: politely, and at once. */
  politeMessage = $state("");
  alertMessage = $state("");
  protected toastTimer: ReturnType<typeof setTimeout> | undefined;

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
