/** Reading preferences, stored in the browser. */
export interface Preferences {
  theme: "system" | "light" | "dark";
  size: 18 | 20 | 24;
  face: "serif" | "sans";
  /** Language of the pages; empty for that of the study. */
  language: string;
}

const STORAGE_KEY = "finecomb-reading";
const DEFAULT_PREFERENCES: Preferences = { theme: "system", size: 20, face: "serif", language: "" };
const darkSchemeQuery = () => matchMedia("(prefers-color-scheme: dark)");

/** Load stored preferences. */
export function readPreferences(): Preferences {
  try {
    return {
      ...DEFAULT_PREFERENCES,
      ...(JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}") as Partial<Preferences>),
    };
  } catch {
    return DEFAULT_PREFERENCES; // storage is forbidden or has foreign data
  }
}

/** Apply preferences and store them. */
export function applyPreferences(chosen: Preferences): void {
  const { dataset } = document.documentElement;
  dataset.theme = chosen.theme === "system" ? (darkSchemeQuery().matches ? "dark" : "light") : chosen.theme;
  dataset.size = String(chosen.size);
  dataset.face = chosen.face;
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(chosen));
  } catch {
    // storage is forbidden; the preference lasts until the page is closed
  }
}

/** Apply stored preferences, now and when the device switches between light and dark. */
export function initPreferences(): void {
  applyPreferences(readPreferences());
  darkSchemeQuery().addEventListener("change", () => applyPreferences(readPreferences()));
}
