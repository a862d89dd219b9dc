/** How somebody likes to read; kept on the device. */
export interface Preferences {
  theme: "system" | "light" | "dark";
  size: 18 | 20 | 24;
  face: "serif" | "sans";
  /** Of the pages; empty for the study's own. */
  language: string;
}

const NAME = "finecomb-reading";
const USUAL: Preferences = { theme: "system", size: 20, face: "serif", language: "" };
const dark = () => matchMedia("(prefers-color-scheme: dark)");

/** What was chosen before, on this device. */
export function preferences(): Preferences {
  try {
    return { ...USUAL, ...(JSON.parse(localStorage.getItem(NAME) ?? "{}") as Partial<Preferences>) };
  } catch {
    return USUAL; // storage is forbidden or was filled by something else
  }
}

/** Put preferences into effect and keep them. */
export function prefer(chosen: Preferences): void {
  const { dataset } = document.documentElement;
  dataset.theme = chosen.theme === "system" ? (dark().matches ? "dark" : "light") : chosen.theme;
  dataset.size = String(chosen.size);
  dataset.face = chosen.face;
  try {
    localStorage.setItem(NAME, JSON.stringify(chosen));
  } catch {
    // storage is forbidden: the choice holds until the page is left
  }
}

/** Put the kept preferences into effect, now and whenever the device changes between light and dark. */
export function keepPreferences(): void {
  prefer(preferences());
  dark().addEventListener("change", () => prefer(preferences()));
}
