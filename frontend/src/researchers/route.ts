/** Where the reader is: a page, what it is about, and how it is filtered. Kept in the address after `#`. */
export interface Route {
  readonly page: Page;
  readonly id: string;
  readonly query: Readonly<Record<string, string>>;
}
export const PAGES = [
  "overview",
  "design",
  "documents",
  "annotators",
  "runs",
  "calibrate",
  "adjudicate",
  "settings",
  "log",
  "export",
] as const;
export type Page = (typeof PAGES)[number];

/** The route of an address such as `#/documents/harbour-07?show=disputed`. */
export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [page = "", ...rest] = path.split("/");
  const known = PAGES.find((each) => each === page);
  return {
    page: known ?? "overview",
    id: known ? decodeSafely(rest.join("/")) : "",
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** The address of a route. */
export function routeHash(page: Page, id = "", query: Readonly<Record<string, string>> = {}): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString();
  return `#/${page}${id && `/${encodeURIComponent(id)}`}${search && `?${search}`}`;
}

function decodeSafely(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // somebody typed a lonely %
  }
}
