import AdjudicationPage from "../adjudication/AdjudicationPage.svelte";
import TextList from "../adjudication/TextList.svelte";
import { t } from "../lib/catalogue/researchers.en";
import AnnotatorPage from "./annotators/AnnotatorPage.svelte";
import Annotators from "./annotators/Annotators.svelte";
import Calibrate from "./calibrate/Calibrate.svelte";
import Design from "./design/Design.svelte";
import Documents from "./documents/Documents.svelte";
import Exports from "./exports/Exports.svelte";
import Log from "./log/Log.svelte";
import Overview from "./overview/Overview.svelte";
import type { PageRegistry } from "./page-registry";
import Runs from "./runs/Runs.svelte";
import Settings from "./settings/Settings.svelte";

/** Researcher pages by name in the URL, in the order of their tabs. */
export const PAGES = {
  overview: { title: t("overview"), tab: "overview", component: Overview },
  design: { title: t("design"), tab: "design", component: Design },
  documents: { title: t("documents"), tab: "documents", component: Documents, hasOwnMain: true },
  annotators: {
    title: t("annotators"),
    tab: "annotators",
    component: Annotators,
    subject: { component: AnnotatorPage },
  },
  runs: { title: t("runs"), tab: "runs", component: Runs, hasOwnMain: true },
  calibrate: { title: t("calibrate"), tab: "runs", component: Calibrate, subject: { component: Calibrate } },
  adjudicate: {
    title: t("adjudicate"),
    tab: "adjudicate",
    component: TextList,
    subject: { component: AdjudicationPage, hasOwnMain: true },
  },
  settings: { title: t("settings"), tab: "settings", component: Settings },
  log: { title: t("log"), tab: "log", component: Log },
  export: { title: t("export"), component: Exports },
} as const satisfies PageRegistry;

export type PageName = keyof typeof PAGES;
