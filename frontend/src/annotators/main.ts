import { mount } from "svelte";
import "../lib/finecomb.css";
import { keepPreferences } from "../lib/preferences";
import "./annotators.css";
import App from "./App.svelte";

keepPreferences();
mount(App, { target: document.getElementById("app")! });
