/** How somebody likes to read; kept on the device. */
export interface Preferences {
  theme: "system" | "light" | "dark";
  size: 18 | 20 | 24;
  face: "serif" | "sans";
  /** Of the pages; empty for the study's own. */
  language: string;
}

const STORAGE_KEY = "finecomb-reading";
const DEFAULT_PREFERENCES: Preferences = { theme: "system", size: 20, face: "serif", language: "" };
const darkSchemeQuery = () => matchMedia("(prefers-color-scheme: dark)");

/** What was chosen before, on this device. */
export function readPreferences(): Preferences {
  try {
    return {
      ...DEFAULT_PREFERENCES,
      ...(JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}") as Partial<Preferences>),
    };
  } catch {
    return DEFAULT_PREFERENCES; // storage is forbidden or was filled by something else
  }
}

/** Put preferences into effect and keep them. */
export function applyPreferences(chosen: Preferences): void {
  const { dataset } = document.documentElement;
  dataset.theme = chosen.theme === "system" ? (darkSchemeQuery().matches ? "dark" : "light") : chosen.theme;
  dataset.size = String(chosen.size);
  dataset.face = chosen.face;
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(chosen));
  } catch {
    // storage is forbidden: the choice holds until the page is left
  }
}

/** Put the kept preferences into effect, now and whenever the device changes between light and dark. */
export function initPreferences(): void {
  applyPreferences(readPreferences());
  darkSchemeQuery().addEventListener("change", () => applyPreferences(readPreferences()));
}
