import { mount } from "svelte";
import "../lib/finecomb.css";
import "../lib/questions/questions.css";
import { keepPreferences } from "../lib/preferences";
import "./annotators.css";
import App from "./App.svelte";

keepPreferences();
mount(App, { target: document.getElementById("app")! });
