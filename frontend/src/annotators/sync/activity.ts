/** Time spent at work: it runs from one sign of life to the next, but not for longer than a minute, nor on a hidden page. */
export interface Activity {
  readonly seconds: number;
  /** The last sign of life in milliseconds; undefined while the page is hidden. */
  readonly last: number | undefined;
}
export const IDLE_AFTER = 60_000;

/** A sign of life: a key, a pointer, a scroll. */
export const seen = ({ seconds, last }: Activity, now: number): Activity => ({
  seconds: seconds + (last === undefined ? 0 : Math.max(0, Math.min(now - last, IDLE_AFTER)) / 1000),
  last: now,
});

/** The page was hidden or left. */
export const left = (activity: Activity, now: number): Activity => ({ ...seen(activity, now), last: undefined });
