import { mount } from "svelte";
import { speak } from "../lib/catalogue/language";
import "../lib/finecomb.css";
import "../lib/questions/questions.css";
import { keepPreferences, preferences } from "../lib/preferences";
import "./annotators.css";
import App from "./App.svelte";

keepPreferences();
/** The page comes in the language of the study's protocol; somebody may prefer another. */
void speak(preferences().language || document.documentElement.lang).then(() =>
  mount(App, { target: document.getElementById("app")! }),
);
