import { mount } from "svelte";
import "../lib/finecomb.css";
import "../lib/questions/questions.css";
import { keepPreferences } from "../lib/preferences";
import App from "./App.svelte";
import "./researchers.css";

keepPreferences();
mount(App, { target: document.getElementById("app")! });
