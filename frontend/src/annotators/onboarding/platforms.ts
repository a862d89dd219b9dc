import type { Ending } from "../../lib/api-types";

const PLATFORMS: readonly (readonly [RegExp, string])[] = [
  [/(^|\.)prolific\.(com|co)$/, "Prolific"],
  [/(^|\.)mturk\.com$/, "Mechanical Turk"],
];

/** What the place is called that somebody goes back to; its host where it has no name. Only web addresses count. */
export function platformName(back: Ending["back"]): string | undefined {
  if (!/^https?:\/\//.test(back)) return undefined;
  try {
    const { hostname } = new URL(back);
    return PLATFORMS.find(([host]) => host.test(hostname))?.[1] ?? hostname;
  } catch {
    return undefined;
  }
}
