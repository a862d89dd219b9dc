// Runs the search of the built site without a browser: `node site_search.js SITE PHRASE...` prints one page per phrase as
// JSON, the one listed first. The scripts and the index are those that search.html loads; only the document is a stand-in.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const [site, ...phrases] = process.argv.slice(2);
const page = fs.readFileSync(path.join(site, "search.html"), "utf-8");
const needed = /(?:doctools|stemmer|language_data|searchtools|searchindex)\.js/;
const scripts = [...page.matchAll(/<script[^>]* src="([^"?]+)/g)].map((match) => match[1]).filter((name) => needed.test(name));
const context = vm.createContext({
  SPHINX_HIGHLIGHT_ENABLED: false,
  DOCUMENTATION_OPTIONS: { LANGUAGE: "en" },
  document: { readyState: "loading", addEventListener: () => {}, getElementById: () => null },
  console,
});
context.window = context;
for (const name of [...new Set([...scripts, "searchindex.js"])]) {
  vm.runInContext(fs.readFileSync(path.join(site, name), "utf-8"), context);
}
context.phrases = phrases;
const first = vm.runInContext(
  "phrases.map((phrase) => (Search._performSearch(...Search._parseQuery(phrase)).pop() ?? [''])[0])",
  context,
);
console.log(JSON.stringify(first));
