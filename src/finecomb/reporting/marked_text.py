"""Self-contained HTML of studies and documents for notebooks; texts are escaped, never interpreted as markup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from finecomb.core.palette import DARK_INK, UNLABELLED_SLOT, LabelStyle, PaletteSlot, assign_lanes, label_styles
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.scales import format_answer
from finecomb.core.span import TEXT_PART, TextPiece, split_at_edges
from finecomb.core.study import Study
from finecomb.reporting.figures.figure_model import format_count_with_noun

MAX_SHOWN_DOCUMENTS = 3
_MAX_TINTS = 3  # with more tints, a word would be hard to read

_STYLE = """
.finecomb{color-scheme:light dark;font:14px/20px system-ui,sans-serif;max-width:860px;padding:4px 12px}
.finecomb{color:light-dark(#1a1d21,#e4e6e9);background:light-dark(#fff,#1b1d21)}
:is([data-jp-theme-light=true],.vscode-light) .finecomb{color-scheme:light}
:is([data-jp-theme-light=false],.vscode-dark,.vscode-high-contrast) .finecomb{color-scheme:dark}
@media print{.finecomb{color-scheme:light;print-color-adjust:exact}}
.finecomb .sheet{background:light-dark(#fff,#1b1d21);border:1px solid light-dark(#dcdfe2,#2e3238)}
.finecomb .sheet{border-radius:12px;padding:16px 24px;margin:12px 0}
.finecomb .text{font:18px/40px Charter,"Iowan Old Style",Georgia,serif;white-space:pre-wrap;overflow-wrap:anywhere}
.finecomb .context{font:15px/32px Charter,Georgia,serif;color:light-dark(#474d55,#b3b9c1);white-space:pre-wrap}
.finecomb .context{border-left:3px solid light-dark(#c6cbd0,#3d424a);padding-left:12px;margin:0 0 8px}
.finecomb .cap{font-size:12px;line-height:16px;color:light-dark(#5f666f,#939aa4)}
.finecomb .sheet>b{font-size:12px;line-height:16px;color:light-dark(#5f666f,#939aa4)}
.finecomb h1{font-size:20px;line-height:28px;margin:0 0 8px;overflow-wrap:anywhere}
.finecomb .flag{font:600 10px/13px system-ui,sans-serif;border-radius:4px;padding:0 3px;white-space:nowrap}
.finecomb :is(.text,.context) .flag{position:relative;top:-1.55em;display:inline-block;width:0;padding:0}
.finecomb :is(.text,.context) .flag i{font-style:normal;border-radius:4px;padding:0 3px}
.finecomb .gap{border-left:2px solid;margin:0 1px}
.finecomb table{border-collapse:collapse;width:100%;margin-top:12px}
.finecomb td,.finecomb th{text-align:left;padding:2px 12px 2px 0;vertical-align:top;border:0;font-size:13px}
.finecomb .bar{position:relative;height:14px;margin:3px 0;background:light-dark(#eff0f1,#131518)}
.finecomb .bar{border-radius:3px;min-width:min(320px,50vw)}
.finecomb .bar b{position:absolute;top:0;bottom:0;opacity:.62;min-width:2px}
.finecomb .legend{display:flex;flex-wrap:wrap;gap:4px 14px;margin:8px 0}
""".strip()


_BAR_FILLS = {  # never colour alone: the line style of a label's group sets the pattern of its bar
    "solid": "{c}",
    "dashed": "repeating-linear-gradient(135deg,{c} 0 4px,{faint} 4px 7px)",
    "dotted": "radial-gradient({c} 45%,{faint} 50%) 0 0/5px 5px",
}


def _slot_css_colour(slot: PaletteSlot, alpha: str = "") -> str:
    """Return the CSS colour of a slot for light and dark themes; `alpha` is its opacity as two hexadecimal digits."""
    return f"light-dark({slot.light}{alpha},{slot.dark}{alpha})"


def study_html(study: Study) -> str:
    """Return the counts of a study, its labels and its first documents with their marks, as HTML."""
    figures = [
        ("documents", study.documents),
        ("annotators", study.annotators),
        ("annotations", study.annotations),
        ("marks", study.marks),
    ]
    counts = " · ".join(f"{len(frame):,} {name}" for name, frame in figures)
    title = study.settings.title or "Study"
    documents = list(study.iter_first_documents(MAX_SHOWN_DOCUMENTS))
    sheets = [
        document_html(document, study.annotations_on(document.id), study.protocols, bare=True) for document in documents
    ]
    more = len(study.documents) - len(documents)
    omitted = f'<p class="cap">{format_count_with_noun(more, "more document")} not shown.</p>' if more > 0 else ""
    empty = "" if len(study.documents) else '<p class="cap">No documents yet.</p>'
    legends = "".join(_legend_html(protocol) for protocol in study.protocols.values())
    head = (
        f"<h3>{escape(title)}</h3><p class='cap'>{counts} · {escape(', '.join(study.protocols) or 'no protocol')}</p>"
    )
    return _wrap_with_style(head + legends + "".join(sheets) + empty + omitted)


def document_html(
    document: Document,
    annotations: Sequence[Annotation],
    protocols: Mapping[str, Protocol],
    bare: bool = False,
    heading: str = "b",
) -> str:
    """Return a document with its marks as HTML.

    The marks of a single annotator are coloured by label. With several annotators, the share who marked a word is a
    shade of grey, and each annotator has a bar. `bare` omits style and legend; `heading` is the HTML element of the
    title.
    """
    styles_by_protocol = {name: label_styles(protocol) for name, protocol in protocols.items()}
    contexts = "".join(
        f'<div class="context"><div class="cap">{escape(name)}</div>{words}</div>'
        for name in document.context
        if (words := _document_part_html(document, name, annotations, styles_by_protocol))
    )
    body = _document_part_html(document, TEXT_PART, annotations, styles_by_protocol)
    if len(annotations) == 1:
        body += _mark_table_html(annotations[0], styles_by_protocol)
    else:
        rows = "".join(
            f"<tr><td>{escape(annotation.annotator)}</td>"
            f"<td style='width:70%'>{_annotator_bar_html(document, annotation, styles_by_protocol)}</td>"
            f"<td>{len(annotation.marks)}</td></tr>"
            for annotation in annotations
        )
        body += f"<table>{rows}</table>" if rows else '<p class="cap">No annotations yet.</p>'
    sheet = f'<div class="sheet"><{heading}>{escape(document.id)}</{heading}>{contexts}{body}</div>'
    used = {annotation.protocol for annotation in annotations}
    legends = "".join(_legend_html(protocol) for name, protocol in protocols.items() if name in used)
    return sheet if bare else _wrap_with_style(legends + sheet)


def document_page_html(
    document: Document, annotations: Sequence[Annotation], protocols: Mapping[str, Protocol], language: str = "en"
) -> str:
    """Return a document with its marks as an HTML page that follows the light or dark theme of the device."""
    head = (
        f'<!doctype html><html lang="{escape(language)}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(document.id)}</title></head>'
    )
    body = document_html(document, annotations, protocols, heading="h1")
    return f"{head}<body><main>{body}</main></body></html>\n"


def _document_part_html(
    document: Document,
    part: str,
    annotations: Sequence[Annotation],
    styles_by_protocol: Mapping[str, Mapping[str | None, LabelStyle]],
) -> str:
    """Return the text or one context of a document with its marks; contexts use the smaller font of their frame.

    With several annotators, each word is shaded by the share who marked it, with any label.
    """
    text, parts, frame = document.part_text(part) or "", [], ' class="text"'
    if len(annotations) == 1:
        spans = [[span for span in mark.spans if span.part == part] for mark in annotations[0].marks]
        marks = [(mark, mark_spans) for mark, mark_spans in zip(annotations[0].marks, spans, strict=True) if mark_spans]
        styles = [_mark_label_style(styles_by_protocol, annotations[0], mark.label) for mark, _ in marks]
        lane = assign_lanes((mark_spans[0].start, mark_spans[-1].end) for _, mark_spans in marks)
        begun: set[int] = set()
        for piece in split_at_edges(len(text), [mark_spans for _, mark_spans in marks], part):
            parts += [
                '<span class="flag" aria-hidden="true">'
                f'<i style="{_flag_css(styles[owner])}">{escape(styles[owner].flag)}</i></span>'
                for owner in piece.owners
                if owner not in begun
            ]
            begun.update(piece.owners)
            parts.append(_piece_html(text, piece, styles, lane))
    else:
        frame += ' style="line-height:32px"'
        spans = [[span for mark in annotation.marks for span in mark.spans if len(span)] for annotation in annotations]
        for piece in split_at_edges(len(text), spans, part):
            words = escape(text[piece.start : piece.end])
            if piece.owners and words:
                depth = f"{0.06 + 0.24 * len(piece.owners) / len(annotations):.2f}"
                grey = f"light-dark(rgba(26,29,33,{depth}),rgba(228,230,233,{depth}))"
                title = f"{len(piece.owners)} of {len(annotations)}"
                words = f'<span style="background:{grey}" title="{title}">{words}</span>'
            parts.append(words)
    return f'<div{frame if part == TEXT_PART else ""} dir="auto">{"".join(parts)}</div>'


def _wrap_with_style(body: str) -> str:
    return f'<div class="finecomb"><style>{_STYLE}</style>{body}</div>'


def _mark_label_style(
    styles_by_protocol: Mapping[str, Mapping[str | None, LabelStyle]], annotation: Annotation, label: str | None
) -> LabelStyle:
    styles = styles_by_protocol.get(annotation.protocol, {})
    return styles.get(label) or LabelStyle(label or "", label or "No type", UNLABELLED_SLOT, "??", "")


def _flag_html(style: LabelStyle) -> str:
    return f'<span class="flag" style="{_flag_css(style)}">{escape(style.flag)}</span>'


def _flag_css(style: LabelStyle) -> str:
    return f"background:{_slot_css_colour(style.slot)};color:light-dark({style.slot.light_text},{DARK_INK})"


def _legend_html(protocol: Protocol) -> str:
    entries = "".join(
        f"<span>{_flag_html(style)} {escape(style.title)}</span>"
        for name, style in label_styles(protocol).items()
        if name
    )
    return f'<div class="legend">{entries}</div>'


def _piece_html(text: str, piece: TextPiece, mark_styles: Sequence[LabelStyle], lane: Sequence[int]) -> str:
    words = escape(text[piece.start : piece.end])
    if not piece.owners:
        return words
    if piece.start == piece.end:
        style = mark_styles[piece.owners[0]]
        return (
            f'<span class="gap" style="border-color:{_slot_css_colour(style.slot)}" '
            f'title="{escape(style.title)}"></span>'
        )
    owners = sorted(piece.owners, key=lambda owner: lane[owner])
    titles = escape(", ".join(mark_styles[owner].title for owner in owners))
    for depth, owner in enumerate(owners[:_MAX_TINTS]):
        slot = mark_styles[owner].slot
        below = 3 + 5 * min(lane[owner], _MAX_TINTS - 1)
        tint = f"background:{_slot_css_colour(slot, '24')};" if depth < _MAX_TINTS else ""
        words = (
            f'<span style="{tint}border-bottom:2px {slot.line} {_slot_css_colour(slot)};'
            f'padding-bottom:{below}px">{words}</span>'
        )
    return f'<span title="{titles}">{words}</span>'


def _mark_table_html(annotation: Annotation, styles_by_protocol: Mapping[str, Mapping[str | None, LabelStyle]]) -> str:
    if not annotation.marks:
        return f'<p class="cap">{escape(annotation.annotator)} marked no errors.</p>'
    rows = []
    for mark in annotation.marks:
        style = _mark_label_style(styles_by_protocol, annotation, mark.label)
        quote = " … ".join(mark.quotes) + (f" ({mark.unlocated})" if mark.unlocated else "")
        cells = [_flag_html(style), escape(style.title), f"“{escape(quote)}”", escape(format_mark_answers(mark))]
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    caption = f'<caption class="cap" style="text-align:left">{escape(annotation.annotator)}</caption>'
    return f"<table>{caption}{''.join(rows)}</table>"


def format_mark_answers(mark: Mark) -> str:
    """Format the answers of a mark on one line: severity, explanation, other answers by name, votes."""
    parts = [f"severity {mark.answers['severity']}"] if "severity" in mark.answers else []
    parts += [str(mark.answers["explanation"])] if "explanation" in mark.answers else []
    others = {name: answer for name, answer in mark.answers.items() if name not in ("severity", "explanation")}
    parts += [f"{name}: {format_answer(answer)}" for name, answer in others.items()]
    parts += [format_count_with_noun(mark.votes, "vote")] if mark.votes is not None else []
    return " · ".join(parts)


def _annotator_bar_html(
    document: Document, annotation: Annotation, styles_by_protocol: Mapping[str, Mapping[str | None, LabelStyle]]
) -> str:
    length = max(1, len(document.text))
    blocks = []
    for mark in annotation.marks:
        style = _mark_label_style(styles_by_protocol, annotation, mark.label)
        for span in mark.spans:
            if span.part == "text":
                place = f"left:{100 * span.start / length:.2f}%;width:{100 * len(span) / length:.2f}%"
                fill = _BAR_FILLS[style.slot.line].format(
                    c=_slot_css_colour(style.slot), faint=_slot_css_colour(style.slot, "77")
                )
                blocks.append(f'<b style="{place};background:{fill}" title="{escape(style.title)}"></b>')
    return f'<div class="bar">{"".join(blocks)}</div>'
