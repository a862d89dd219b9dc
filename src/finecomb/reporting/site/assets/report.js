// Optional features: highlighting of the current section, keyboard shortcuts, filters of marks, and a search over texts.
"use strict";
(() => {
  const formatCount = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
  const selectAll = (selector) => [...document.querySelectorAll(selector)];
  const links = selectAll(".toc li a[href^='#']");
  if (links.length && "IntersectionObserver" in window) {
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        for (const link of links) link.parentElement.classList.toggle("on", link.hash === "#" + entry.target.id);
      }
    }, { rootMargin: "-10% 0px -70% 0px" });
    for (const link of links) { const part = document.getElementById(link.hash.slice(1)); if (part) observer.observe(part); }
  }
  const search = document.getElementById("text-search");
  let rows; // of the list of texts with their words, read on focus because long lists take time
  const readRows = () => { rows ??= selectAll(".texts tr:not(:first-child)").map((row) => [row, row.textContent.toLowerCase()]); };
  search?.addEventListener("focus", readRows);
  let searches = 0;
  const showMatches = (matches, from, number) => { // one screenful per frame, so that typing stays responsive
    if (number !== searches) return;
    for (const row of matches.slice(from, from + 60)) row.hidden = false;
    if (from + 60 < matches.length) requestAnimationFrame(() => showMatches(matches, from + 60, number));
  };
  if (search) search.addEventListener("input", () => {
    const words = search.value.toLowerCase();
    readRows();
    const matches = [];
    for (const [row, text] of rows) { if (text.includes(words)) matches.push(row); else row.hidden = true; }
    showMatches(matches, 0, ++searches);
    const count = document.getElementById("text-count");
    if (count) count.textContent = formatCount(matches.length, "text");
  });
  const pieces = selectAll(".marked-piece");
  const items = selectAll(".panel li[id]");
  const numberByItem = new Map(items.map((item, number) => [item, String(number)]));
  const markNumber = (item) => numberByItem.get(item);
  const filterValues = items.map((item) => ["label:" + (item.querySelector(".flag")?.textContent ?? ""), "who:" + item.querySelector("b").textContent]);
  let backgroundSizes; // of the layers behind each piece, read on the first filter
  const showMarks = (ids) => {
    const chosen = new Set(ids);
    for (const item of items) item.hidden = chosen.size > 0 && !chosen.has(markNumber(item));
    for (const piece of pieces) piece.classList.toggle("chosen", chosen.size > 0 && piece.dataset.marks.split(" ").some((id) => chosen.has(id)));
    const heading = document.getElementById("chosen");
    if (heading) heading.textContent = chosen.size ? `${formatCount(chosen.size, "mark")} selected` : heading.dataset.all;
  };
  for (const piece of pieces) {
    piece.tabIndex = 0;
    piece.setAttribute("role", "button");
    piece.addEventListener("click", () => showMarks(piece.classList.contains("chosen") ? [] : piece.dataset.marks.split(" ")));
    piece.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); piece.click(); } });
  }
  for (const box of selectAll(".rail input")) box.addEventListener("change", () => {
    const unchecked = new Set(selectAll(".rail input:not(:checked)").map((one) => one.value));
    backgroundSizes ??= new Map(pieces.map((piece) => [piece, getComputedStyle(piece).backgroundSize.split(",")]));
    const isFilteredOut = (number) => filterValues[number].some((fact) => unchecked.has(fact));
    items.forEach((item, number) => { item.hidden = isFilteredOut(number); });
    for (const piece of pieces) {
      const hidden = piece.dataset.marks.split(" ").map((id) => isFilteredOut(Number(id)));
      piece.style.backgroundSize = backgroundSizes.get(piece).map((size, at) => (hidden[at] ? "0 0" : size)).join(",");
    }
  });
  const linked = items.find((item) => item.id === decodeURIComponent(location.hash.slice(1)));
  if (linked) showMarks([markNumber(linked)]);
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = { n: "next", p: "previous" }[event.key.toLowerCase()];
    const link = direction && document.querySelector(`a[rel=${direction === "previous" ? "prev" : "next"}]`);
    if (link) location.href = link.href;
    if (event.key === "Escape") showMarks([]);
  });
})();
