"""Building blocks of standalone HTML pages: colours of both themes, label flags, tables and marked texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from finecomb.core.palette import DARK_INK, LabelStyle, PaletteSlot, assign_lanes
from finecomb.core.span import Span, split_at_edges

LIGHT_COLOURS = {
    "desk": "#eff0f1", "paper": "#ffffff", "well": "#f6f7f7", "ink": "#1a1d21", "ink-2": "#474d55", "ink-3": "#5f666f",
    "line": "#dcdfe2", "line-2": "#c6cbd0", "edge": "#838a93", "wash": "#e6e8ea",
}  # fmt: skip
DARK_COLOURS = {
    "desk": "#131518", "paper": "#1b1d21", "well": "#17191c", "ink": "#e4e6e9", "ink-2": "#b3b9c1", "ink-3": "#939aa4",
    "line": "#2e3238", "line-2": "#3d424a", "edge": "#747b85", "wash": "#2a2d33",
}  # fmt: skip

_STYLE = """
*{box-sizing:border-box}
body{margin:0;background:var(--desk);color:var(--ink);font:14px/20px system-ui,-apple-system,"Segoe UI",sans-serif;
 font-variant-numeric:tabular-nums}
main{max-width:1280px;margin:0 auto;padding:24px}
h1{font-size:24px;line-height:32px;font-weight:600;margin:0 0 4px;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:16px;line-height:24px;font-weight:600;margin:24px 0 8px;overflow-wrap:anywhere}
a{color:inherit;text-decoration-color:var(--edge);text-underline-offset:3px}
p{margin:4px 0}
.cap{font-size:12px;line-height:16px;color:var(--ink-3);overflow-wrap:anywhere}
.sheet{background:var(--paper);border:1px solid var(--line);border-radius:12px;padding:16px 24px;margin:12px 0}
.scroll{overflow-x:auto;background:
 linear-gradient(to right,var(--paper) 40%,transparent) 0 0/36px 100% no-repeat local,
 linear-gradient(to left,var(--paper) 40%,transparent) 100% 0/36px 100% no-repeat local,
 linear-gradient(to right,var(--line-2),transparent) 0 0/12px 100% no-repeat,
 linear-gradient(to left,var(--line-2),transparent) 100% 0/12px 100% no-repeat}
.scroll td:first-child{min-width:10ch}
.two{display:grid;grid-template-columns:1fr 1fr;gap:16px}
.two>.sheet{margin:0}
@media(max-width:860px){.two{grid-template-columns:1fr}main{padding:12px}.sheet{padding:12px}}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:5px 16px 5px 0;border-top:1px solid var(--line);font-size:13px}
th{color:var(--ink-3);font-weight:400;font-size:12px;border-top:0;white-space:nowrap}
td.n,th.n{text-align:right;white-space:nowrap}
.words{font-family:Charter,"Iowan Old Style",Georgia,"Noto Serif",serif;font-size:15px;overflow-wrap:anywhere}
.text{font:18px/42px Charter,"Iowan Old Style",Georgia,"Noto Serif",serif;white-space:pre-wrap;overflow-wrap:anywhere;
 margin-top:10px}
.flag{font:700 11px/16px system-ui,sans-serif;border-radius:4px;padding:0 4px;background:var(--c);color:var(--k);
 white-space:nowrap;display:inline-block;border:1px solid var(--c)}
.flag.open{background:none;color:var(--ink);border-style:dashed}
.text .flag{position:absolute;bottom:20px;left:0;line-height:13px;font-size:10px;padding:0 3px}
.at{position:relative}
.m{background:color-mix(in srgb,var(--c) 12%,transparent);border-bottom:2px var(--l) var(--c)}
.m.d0{padding-bottom:2px}.m.d1{padding-bottom:6px}.m.d2{padding-bottom:10px}
.m.missed{background:none;border-bottom-color:transparent;outline:1.5px dashed var(--c);outline-offset:-1px}
.m.extra{background:repeating-linear-gradient(135deg,color-mix(in srgb,var(--c) 22%,transparent) 0 4px,
 transparent 4px 8px)}
.gap{border-left:2px var(--l) var(--c);margin:0 1px}
.legend{display:flex;flex-wrap:wrap;gap:4px 14px;margin:8px 0;font-size:13px}
.figure{overflow-x:auto;max-width:100%}
.panels{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,var(--panel)),1fr));gap:12px 16px}
.panels>div{min-width:0}
.panels h3{margin:0 0 4px;font-size:13px}
.figures{display:flex;flex-wrap:wrap;gap:12px;align-items:stretch}
.figures>.sheet{margin:0;flex:1 1 auto;max-width:100%}
nav{display:flex;gap:16px;margin-bottom:12px;font-size:13px}
""".strip()


def render_standalone_page(title: str, body: str, styles: Iterable[LabelStyle] = ()) -> str:
    """Render a standalone HTML page that needs no network."""
    slots = {style.slot.name: style.slot for style in styles}.values()
    light = _css_variables(LIGHT_COLOURS), "".join(_slot_css(slot, slot.light, slot.light_text) for slot in slots)
    dark = _css_variables(DARK_COLOURS), "".join(_slot_css(slot, slot.dark, DARK_INK) for slot in slots)
    theme = f":root{{{light[0]}}}{light[1]}@media(prefers-color-scheme:dark){{:root{{{dark[0]}}}{dark[1]}}}"
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width,initial-scale=1'><meta name=color-scheme content='light dark'>"
        f"<title>{escape(title)}</title><style>{theme}\n{_STYLE}</style><main>{body}</main></html>\n"
    )


def _slot_css(slot: PaletteSlot, colour: str, ink: str) -> str:
    return f".s-{slot.name}{{--c:{colour};--k:{ink};--l:{slot.line}}}"


def _css_variables(tokens: Mapping[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in tokens.items())


def flag_html(style: LabelStyle, kind: str = "") -> str:
    """Return the flag of a label as HTML; the flag of a missed or extra mark is outlined."""
    state = " open" if kind in ("missed", "extra") else ""
    return f'<span class="flag s-{style.slot.name}{state}">{escape(style.flag)}</span>'


def legend_html(styles: Iterable[LabelStyle]) -> str:
    """Return a legend of label flags and titles."""
    entries = "".join(f"<span>{flag_html(style)} {escape(style.title)}</span>" for style in styles)
    return f'<div class="legend">{entries}</div>'


def table_html(rows: Sequence[Mapping[str, object]], cells: Mapping[str, str] | None = None) -> str:
    """Return rows as an HTML table with numbers right-aligned; columns in `cells` already contain HTML."""
    css_class = {
        name: " class=n" if all(isinstance(row[name], int | float) for row in rows) else ""
        for name in (rows[0] if rows else {})
        if name != "signature"
    }
    head = "".join(f"<th{css}>{escape(name)}</th>" for name, css in css_class.items())
    body = ""
    for row in rows:
        shown = {name: row[name] if name in (cells or {}) else escape(_format_cell(row[name])) for name in css_class}
        body += f"<tr>{''.join(f'<td{css_class[name]}>{cell}</td>' for name, cell in shown.items())}</tr>"
    area = '<div class="scroll" data-scrolls tabindex="0" role="group" aria-label="table">'
    return f"{area}<table><tr>{head}</tr>{body}</table></div>"


def _format_cell(value: object) -> str:
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else "–" if value is None else str(value)


def marked_text_html(text: str, marks: Sequence[tuple[Sequence[Span], LabelStyle, str]]) -> str:
    """Return a text with its marks as HTML; each mark has spans, a style, and a status `right`, `missed` or `extra`."""
    spans = [mark_spans for mark_spans, _, _ in marks]
    lane = assign_lanes((mark_spans[0].start, mark_spans[-1].end) if mark_spans else (0, 0) for mark_spans in spans)
    begun: set[int] = set()
    parts = []
    for piece in split_at_edges(len(text), spans):
        for at, owner in enumerate(owner for owner in piece.owners if owner not in begun):
            _, style, kind = marks[owner]
            classes = f"flag s-{style.slot.name}{' open' if kind in ('missed', 'extra') else ''}"
            offset = f' style="left:{2.4 * at:.1f}em"' if at else ""
            flag = f"{'✓' if kind == 'right' else ''}{escape(style.flag)}"
            parts.append(f'<span class="at" aria-hidden="true"><span class="{classes}"{offset}>{flag}</span></span>')
        begun.update(piece.owners)
        words = escape(text[piece.start : piece.end])
        for owner in sorted(piece.owners, key=lambda owner: -lane[owner])[-3:]:
            _, style, kind = marks[owner]
            title = f's-{style.slot.name}" title="{escape(f"{style.title}: {kind}")}"'
            if piece.start == piece.end:
                words = f'<span class="gap {title}></span>'
            else:
                words = f'<span class="m d{min(lane[owner], 2)} {kind} {title}>{words}</span>'
        parts.append(words)
    return f'<div class="text" dir="auto">{"".join(parts)}</div>'
