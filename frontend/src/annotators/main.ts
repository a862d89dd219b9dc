import { mount } from "svelte";
import { loadLanguage } from "../lib/catalogue/language";
import "../lib/finecomb.css";
import "../lib/questions/questions.css";
import { initPreferences, readPreferences } from "../lib/preferences";
import "./annotators.css";
import App from "./App.svelte";

initPreferences();
/** The page comes in the language of the study's protocol; somebody may prefer another. */
void loadLanguage(readPreferences().language || document.documentElement.lang).then(() =>
  mount(App, { target: document.getElementById("app")! }),
);
