import { resolve } from "node:path";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";
import { compress } from "./compress";

const pages = ["annotate", "admin"].map((name) => resolve(import.meta.dirname, `${name}.html`));

/** Build one page for annotators and one for researchers. Nothing is inlined, because the content security policy forbids it. */
export default defineConfig({
  base: "/static/",
  plugins: [svelte(), compress()],
  build: {
    outDir: "../src/finecomb/server/static",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { input: pages },
  },
  server: { proxy: { "/api": "http://127.0.0.1:8000", "/join": "http://127.0.0.1:8000" } },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
