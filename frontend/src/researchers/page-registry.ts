import type { Component } from "svelte";
import type { Route } from "./route";

/** Properties that every page may take. */
export type PageProps = Pick<Route, "id" | "query">;

export interface PageView {
  readonly component: Component<PageProps> | Component<Record<string, never>>;
  /** True if the component renders its own `main`, for example because its columns scroll separately. */
  readonly hasOwnMain?: boolean;
}

/** Entry of a researcher page: everything that the frame needs to show it. */
export interface ResearcherPage extends PageView {
  readonly title: string;
  /** Tab that is highlighted: the page's own name, or the page that leads here. Without one, no tab is. */
  readonly tab?: string;
  /** View of one subject, such as an annotator. It is recreated for another subject. */
  readonly subject?: PageView;
}

/** Researcher pages by name in the URL. */
export type PageRegistry = Readonly<Record<string, ResearcherPage>>;

/** Return the pages that have a tab of their own, in order. */
export const pageTabs = (pages: PageRegistry): { name: string; title: string }[] =>
  Object.entries(pages).flatMap(([name, { title, tab }]) => (tab === name ? [{ name, title }] : []));

/** Return the view of a route: that of its subject if it names one and the page has such a view. */
export function pageView(pages: PageRegistry, { page, id }: Route): PageView & { readonly key: string } {
  const entry = pages[page]!;
  return id && entry.subject ? { ...entry.subject, key: id } : { ...entry, key: "" };
}
