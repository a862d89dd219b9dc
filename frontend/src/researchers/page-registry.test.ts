import type { Component } from "svelte";
import { expect, test } from "vitest";
import { createTranslator } from "../lib/catalogue/translator";
import { pageTabs, pageView, type PageProps, type PageRegistry } from "./page-registry";
import { parseRoute } from "./route";

const component = () => (() => ({})) as unknown as Component<PageProps>;
const overview = { title: "Overview", tab: "overview", component: component() };
const exportPage = { title: "Export", component: component() };

test("a page is its component, its texts and one entry", () => {
  const texts = createTranslator({ title: "Weather" });
  const weather = {
    title: texts("title"),
    tab: "weather",
    component: component(),
    subject: { component: component() },
  };
  const forecast = { title: "Forecast", tab: "weather", component: component() };
  const pages: PageRegistry = { overview, export: exportPage, weather, forecast };
  const show = (hash: string) => pageView(pages, parseRoute(hash, Object.keys(pages)));
  expect(pageTabs(pages)).toEqual([
    { name: "overview", title: "Overview" },
    { name: "weather", title: "Weather" },
  ]);
  expect(show("#/weather")).toMatchObject({ component: weather.component, key: "" });
  expect(show("#/weather/today?unit=c")).toMatchObject({ component: weather.subject.component, key: "today" });
  expect(show("#/forecast/today")).toMatchObject({ component: forecast.component, key: "" });
  expect(show("#/nowhere/today")).toMatchObject({ component: overview.component, key: "" });
});

const sources = import.meta.glob<string>("./*.{svelte,ts}", { query: "?raw", import: "default", eager: true });

test("only the registry names the components of pages", () => {
  const names = [...sources["./pages.ts"]!.matchAll(/import (\w+) from "[^"]+\.svelte"/g)].map(([, name]) => name!);
  expect(names).toContain("Overview");
  const frame = sources["./App.svelte"]! + sources["./route.ts"]! + sources["./session.svelte.ts"]!;
  for (const name of names) expect(frame).not.toMatch(new RegExp(`\\b${name}\\b`));
});
