import { mount } from "svelte";
import "../lib/finecomb.css";
import "../lib/questions/questions.css";
import { initPreferences } from "../lib/preferences";
import App from "./App.svelte";
import "./researchers.css";

initPreferences();
mount(App, { target: document.getElementById("app")! });
