import { mount } from "svelte";
import { loadLanguage } from "../lib/catalogue/language";
import "../lib/finecomb.css";
import "../lib/questions/questions.css";
import { initPreferences, readPreferences } from "../lib/preferences";
import "./annotators.css";
import App from "./App.svelte";

initPreferences();
/** Use the language of the protocol unless the annotator selected another. */
void loadLanguage(readPreferences().language || document.documentElement.lang).then(() =>
  mount(App, { target: document.getElementById("app")! }),
);
