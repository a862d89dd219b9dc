import type { Figure } from "../api-types";

const LOCALE = "en";
const DATE_LOCALE = "en-GB"; // the day precedes the month on all pages

/** Format a duration as `4:12`, with hours if needed. */
export function formatClock(seconds: number): string {
  const whole = Math.round(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const twoDigits = (value: number) => String(value).padStart(2, "0");
  return hours > 0 ? `${hours}:${twoDigits(minutes)}:${twoDigits(rest)}` : `${minutes}:${twoDigits(rest)}`;
}

/** Format a number with a fixed number of decimals and a minus sign as wide as a digit. */
export const formatDecimal = (value: number, digits: number): string =>
  new Intl.NumberFormat(LOCALE, {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
    signDisplay: "negative", // no -0.00
  })
    .format(value)
    .replace("-", "−");

/** Format an amount of money, without cents from 1,000 on. */
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
    return `${formatDecimal(value, digits)} ${currency}`; // not a currency that the browser knows
  }
}

/** Format a time as `30 Jun, 14:05` in local time. */
export const formatMoment = (time: string): string =>
  new Intl.DateTimeFormat(DATE_LOCALE, {
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  }).format(new Date(time));

/** Format a day as `30 Jun`, in UTC as the days of the study are. */
export const formatDay = (time: number): string =>
  new Intl.DateTimeFormat(DATE_LOCALE, { day: "numeric", month: "short", timeZone: "UTC" }).format(time);

/** Return both ends of an interval, or null if there is none. */
export const formatInterval = ({ low, high }: Pick<Figure, "low" | "high">, digits: number): [string, string] | null =>
  low === null || high === null ? null : [formatDecimal(low, digits), formatDecimal(high, digits)];

/** Capitalise the first letter. */
export const capitalize = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
