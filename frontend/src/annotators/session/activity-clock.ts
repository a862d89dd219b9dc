import { pauseActivity, recordActivity, type Activity } from "../sync/activity";

const ACTIVITY_EVENTS = ["keydown", "pointerdown", "pointermove", "wheel", "scroll"] as const;

/** Counts the seconds that somebody is active with what is shown. */
export class ActivityClock {
  private activity: Activity = { seconds: 0, last: undefined };

  /** Seconds counted up to the last sign of life. */
  get seconds(): number {
    return this.activity.seconds;
  }

  /** Begin with the seconds spent before. */
  start(seconds: number): void {
    this.activity = { seconds, last: Date.now() };
  }

  /** Active seconds so far, to a tenth; asking is a sign of life. */
  read(): number {
    this.recordActivity();
    return Math.round(this.activity.seconds * 10) / 10;
  }

  /** Take keys, pointers and scrolling as signs of life; `onhide` is called when the page is hidden or comes back. */
  watch(onhide: () => void): void {
    for (const type of ACTIVITY_EVENTS)
      addEventListener(type, () => this.recordActivity(), { passive: true, capture: true });
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.activity = pauseActivity(this.activity, Date.now());
      else this.recordActivity();
      onhide();
    });
  }

  private recordActivity(): void {
    this.activity = recordActivity(this.activity, Date.now());
  }
}
