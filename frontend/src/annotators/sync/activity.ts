/** Time spent at work: it runs from one sign of life to the next, but not for longer than a minute, nor on a hidden page. */
export interface Activity {
  readonly seconds: number;
  /** The last sign of life in milliseconds; undefined while the page is hidden. */
  readonly last: number | undefined;
}
export const MAX_IDLE_MS = 60_000;

/** A sign of life: a key, a pointer, a scroll. */
export const recordActivity = ({ seconds, last }: Activity, now: number): Activity => ({
  seconds: seconds + (last === undefined ? 0 : Math.max(0, Math.min(now - last, MAX_IDLE_MS)) / 1000),
  last: now,
});

/** The page was hidden or left. */
export const pauseActivity = (activity: Activity, now: number): Activity => ({
  ...recordActivity(activity, now),
  last: undefined,
});
