import type { Ending } from "../../lib/api-types";

const PLATFORMS: readonly (readonly [RegExp, string])[] = [
  [/(^|\.)prolific\.(com|co)$/, "Prolific"],
  [/(^|\.)mturk\.com$/, "Mechanical Turk"],
];

/** Return the name of the return site, or else its host. Only web addresses are accepted. */
export function platformName(back: Ending["back"]): string | undefined {
  if (!/^https?:\/\//.test(back)) return undefined;
  try {
    const { hostname } = new URL(back);
    return PLATFORMS.find(([host]) => host.test(hostname))?.[1] ?? hostname;
  } catch {
    return undefined;
  }
}
