"""What a page hides without a hint, and what a finger would miss."""

from __future__ import annotations

from playwright.sync_api import Page

_SHOWN = """
  const isShown = (each) => {
    const box = each.getBoundingClientRect();
    return box.width > 1 && box.height > 1 && each.checkVisibility({ visibilityProperty: true, opacityProperty: true })
      && !each.closest(".visually-hidden, .skip, [inert], [aria-hidden=true]");
  };
  const named = (each) => `<${each.localName} ${each.className?.baseVal ?? each.className}> ` +
    (each.innerText || each.value || each.ariaLabel || "").trim().slice(0, 40);
"""

# An area that is scrolled sideways says so by `data-scrolls`: its style draws the edge beyond which there is more.
_CUT = f"""() => {{ {_SHOWN}
  const isCut = (each) => {{
    const box = each.getBoundingClientRect();
    for (let area = each.parentElement; area; area = area.parentElement) {{
      if (area.matches("[data-scrolls]")) return false;
      const edge = area === document.documentElement ? {{ left: 0, right: innerWidth }} : area.getBoundingClientRect();
      const isClipping = area === document.documentElement || getComputedStyle(area).overflowX !== "visible";
      if (isClipping && (box.right > edge.right + 1.5 || box.left < edge.left - 1.5)) return true;
    }}
    return false;
  }};
  const isShort = (each) => each.scrollWidth > each.clientWidth + 1 &&
    getComputedStyle(each).overflowX !== "visible" && !each.querySelector(".visually-hidden");
  // what lies over its neighbour, since nothing clips it
  const isOver = (each) => each.matches("td, th, dd, dt, li, p") && each.clientWidth > 0 &&
    each.scrollWidth > each.clientWidth + 2 && getComputedStyle(each).overflowX === "visible" &&
    !each.closest("[data-scrolls]") && !each.querySelector(".visually-hidden, [data-flag]");
  const words = "a, button, label, summary, select, input, textarea, h1, h2, h3, th, td, dt, dd, p, li";
  const labels = "button, label, h1, h2, h3, th, [data-label], [data-label] *, .btn, .name";
  const isWanted = (each) => isCut(each) || isOver(each) || (each.matches(labels) && isShort(each));
  return [...document.querySelectorAll(words)].filter((each) => isShown(each) && isWanted(each)).map(named);
}}"""

_SMALL = f"""() => {{ {_SHOWN}
  const targets = "button, .btn, select, summary, textarea, [role=tab], input:not([type=radio], [type=checkbox])";
  const ticks = [...document.querySelectorAll("input:is([type=radio], [type=checkbox])")]
    .map((each) => each.labels?.[0] ?? each);
  const areas = [...document.querySelectorAll(targets)].map((each) => each.closest("label.find") ?? each);
  return [...areas, ...ticks]
    .filter(isShown)
    .filter((each) => {{
      const inLine = getComputedStyle(each).display === "inline" || each.matches(".words, .words *, .plain, .how");
      const box = each.getBoundingClientRect();
      return !inLine && (box.height < 43.5 || box.width < 43.5);
    }})
    .map((each) => `${{named(each)}} ${{Math.round(each.getBoundingClientRect().width)}} x ${{
      Math.round(each.getBoundingClientRect().height)}}`);
}}"""


def cut_elements(page: Page) -> list[str]:
    """Words and controls that stick out of the window or of what they lie in, and labels that end in dots."""
    return [f"cut: {what}" for what in dict.fromkeys(page.evaluate(_CUT))]


def small_targets(page: Page) -> list[str]:
    """Controls that are smaller than 44 by 44 pixels; links in a sentence and figures in a table may be."""
    return [f"small: {what}" for what in dict.fromkeys(page.evaluate(_SMALL))]
