import type { Figure } from "../api-types";

const LOCALE = "en";
const DATE_LOCALE = "en-GB"; // the day before the month, as everywhere in Finecomb

/** `4:12`: minutes and seconds; hours where there are some. */
export function formatClock(seconds: number): string {
  const whole = Math.round(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const twoDigits = (value: number) => String(value).padStart(2, "0");
  return hours > 0 ? `${hours}:${twoDigits(minutes)}:${twoDigits(rest)}` : `${minutes}:${twoDigits(rest)}`;
}

/** A number with so many digits after the point, and a minus sign that is as wide as a digit. */
export const formatDecimal = (value: number, digits: number): string =>
  new Intl.NumberFormat(LOCALE, {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
    signDisplay: "negative", // no -0.00
  })
    .format(value)
    .replace("-", "−");

/** Money, without cents from a thousand on. */
export function formatMoney(value: number, currency: string): string {
  const digits = value >= 1000 ? 0 : 2;
  try {
    return new Intl.NumberFormat(LOCALE, {
      style: "currency",
      currency,
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
    }).format(value);
  } catch {
    return `${formatDecimal(value, digits)} ${currency}`; // no currency that the browser knows
  }
}

/** `30 Jun, 14:05` in the reader's own time. */
export const formatMoment = (time: string): string =>
  new Intl.DateTimeFormat(DATE_LOCALE, {
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  }).format(new Date(time));

/** `30 Jun`: a day, counted in UTC as the study's days are. */
export const formatDay = (time: number): string =>
  new Intl.DateTimeFormat(DATE_LOCALE, { day: "numeric", month: "short", timeZone: "UTC" }).format(time);

/** Both ends of an interval, or null where there is none. */
export const formatInterval = ({ low, high }: Pick<Figure, "low" | "high">, digits: number): [string, string] | null =>
  low === null || high === null ? null : [formatDecimal(low, digits), formatDecimal(high, digits)];

/** The same text with a capital at its beginning. */
export const capitalize = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
