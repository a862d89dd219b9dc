import { pauseActivity, recordActivity, type Activity } from "../sync/activity";

const ACTIVITY_EVENTS = ["keydown", "pointerdown", "pointermove", "wheel", "scroll"] as const;

/** Clock of the active seconds spent on the visible text. */
export class ActivityClock {
  private activity: Activity = { seconds: 0, last: undefined };

  /** Seconds counted up to the last activity. */
  get seconds(): number {
    return this.activity.seconds;
  }

  /** Start with the seconds spent before. */
  start(seconds: number): void {
    this.activity = { seconds, last: Date.now() };
  }

  /** Return the active seconds, to a tenth. The call counts as activity. */
  read(): number {
    this.recordActivity();
    return Math.round(this.activity.seconds * 10) / 10;
  }

  /** Count keys, pointers and scrolling as activity; call `onhide` when the page is hidden or shown again. */
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
