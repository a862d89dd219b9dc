import type { PageName } from "./pages";

/** Route of a researcher page: page, subject and filters. Stored in the URL fragment. */
export interface Route {
  readonly page: PageName;
  readonly id: string;
  readonly query: Readonly<Record<string, string>>;
}

/** Parse a fragment such as `#/documents/harbour-07?show=disputed`. Unknown pages lead to the overview. */
export function parseRoute(hash: string, pages: readonly string[]): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [page = "", ...rest] = path.split("/");
  const isKnown = pages.includes(page);
  return {
    page: isKnown ? (page as PageName) : "overview",
    id: isKnown ? decodeSafely(rest.join("/")) : "",
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** Return the fragment of a route. */
export function routeHash(page: PageName, id = "", query: Readonly<Record<string, string>> = {}): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString();
  return `#/${page}${id && `/${encodeURIComponent(id)}`}${search && `?${search}`}`;
}

function decodeSafely(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a stray % in a typed URL
  }
}
