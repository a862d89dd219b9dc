/** Active time: counted between two activities, for at most a minute, and not on a hidden page. */
export interface Activity {
  readonly seconds: number;
  /** Time of the last activity in milliseconds; undefined while the page is hidden. */
  readonly last: number | undefined;
}
export const MAX_IDLE_MS = 60_000;

/** Record an activity: a key, a pointer, a scroll. */
export const recordActivity = ({ seconds, last }: Activity, now: number): Activity => ({
  seconds: seconds + (last === undefined ? 0 : Math.max(0, Math.min(now - last, MAX_IDLE_MS)) / 1000),
  last: now,
});

/** Stop counting when the page is hidden or closed. */
export const pauseActivity = (activity: Activity, now: number): Activity => ({
  ...recordActivity(activity, now),
  last: undefined,
});
