// Adds what is not needed for reading: which section is in view, keys, filters of a text, and a search over texts.
"use strict";
(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const links = all(".toc li a[href^='#']");
  if (links.length && "IntersectionObserver" in window) {
    const watch = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        for (const link of links) link.parentElement.classList.toggle("on", link.hash === "#" + entry.target.id);
      }
    }, { rootMargin: "-10% 0px -70% 0px" });
    for (const link of links) { const part = document.getElementById(link.hash.slice(1)); if (part) watch.observe(part); }
  }
  const search = document.getElementById("find");
  let rows; // of the list of texts with their words, read when somebody is about to search
  const readRows = () => { rows ??= all(".texts tr:not(:first-child)").map((row) => [row, row.textContent.toLowerCase()]); };
  search?.addEventListener("focus", readRows);
  let searches = 0;
  const showSome = (fitting, from, number) => { // a screenful at once, the rest in the frames that follow
    if (number !== searches) return;
    for (const row of fitting.slice(from, from + 60)) row.hidden = false;
    if (from + 60 < fitting.length) requestAnimationFrame(() => showSome(fitting, from + 60, number));
  };
  if (search) search.addEventListener("input", () => {
    const words = search.value.toLowerCase();
    readRows();
    const fitting = [];
    for (const [row, text] of rows) { if (text.includes(words)) fitting.push(row); else row.hidden = true; }
    showSome(fitting, 0, ++searches);
    const count = document.getElementById("left");
    if (count) count.textContent = `${fitting.length.toLocaleString()} texts`;
  });
  const pieces = all(".sc");
  const items = all(".panel li[id]");
  const numbers = new Map(items.map((item, number) => [item, String(number)]));
  const markOf = (item) => numbers.get(item);
  const facts = items.map((item) => ["label:" + (item.querySelector(".flag")?.textContent ?? ""), "who:" + item.querySelector("b").textContent]);
  let sizes; // of the layers behind each piece, read when they are first needed
  const show = (ids) => {
    const chosen = new Set(ids);
    for (const item of items) item.hidden = chosen.size > 0 && !chosen.has(markOf(item));
    for (const piece of pieces) piece.classList.toggle("chosen", chosen.size > 0 && piece.dataset.m.split(" ").some((id) => chosen.has(id)));
    const head = document.getElementById("chosen");
    if (head) head.textContent = chosen.size ? `${chosen.size} marks here` : head.dataset.all;
  };
  for (const piece of pieces) {
    piece.tabIndex = 0;
    piece.setAttribute("role", "button");
    piece.addEventListener("click", () => show(piece.classList.contains("chosen") ? [] : piece.dataset.m.split(" ")));
    piece.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); piece.click(); } });
  }
  for (const box of all(".rail input")) box.addEventListener("change", () => {
    const off = new Set(all(".rail input:not(:checked)").map((one) => one.value));
    sizes ??= new Map(pieces.map((piece) => [piece, getComputedStyle(piece).backgroundSize.split(",")]));
    const isOff = (number) => facts[number].some((fact) => off.has(fact));
    items.forEach((item, number) => { item.hidden = isOff(number); });
    for (const piece of pieces) {
      const hidden = piece.dataset.m.split(" ").map((id) => isOff(Number(id)));
      piece.style.backgroundSize = sizes.get(piece).map((size, at) => (hidden[at] ? "0 0" : size)).join(",");
    }
  });
  const linked = items.find((item) => item.id === decodeURIComponent(location.hash.slice(1)));
  if (linked) show([markOf(linked)]);
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const way = { n: "next", p: "previous" }[event.key.toLowerCase()];
    const link = way && document.querySelector(`a[rel=${way === "previous" ? "prev" : "next"}]`);
    if (link) location.href = link.href;
    if (event.key === "Escape") show([]);
  });
})();
