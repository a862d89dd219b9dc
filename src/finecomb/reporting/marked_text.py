"""Studies and documents as self-contained HTML for notebooks: text cut at every span edge, never as markup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from finecomb.core.palette import DARK_INK, UNLABELLED_SLOT, LabelStyle, Slot, assign_lanes, label_styles
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.scales import format_answer
from finecomb.core.span import TEXT, Piece, split_at_edges
from finecomb.core.study import Study

MAX_SHOWN_DOCUMENTS = 3
_MAX_TINTS = 3  # more than three tints on one word make the ink hard to read

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


_BAR_FILLS = {  # never colour alone: the line style of a label's group becomes the pattern of its bar
    "solid": "{c}",
    "dashed": "repeating-linear-gradient(135deg,{c} 0 4px,{faint} 4px 7px)",
    "dotted": "radial-gradient({c} 45%,{faint} 50%) 0 0/5px 5px",
}


def _css_colour(slot: Slot, alpha: str = "") -> str:
    """A slot's colour on light and on dark paper; `alpha` makes it fainter, as two hexadecimal digits."""
    return f"light-dark({slot.light}{alpha},{slot.dark}{alpha})"


def study_html(study: Study) -> str:
    """A study's figures, its labels and its first documents with their marks."""
    figures = [
        ("documents", study.documents),
        ("annotators", study.annotators),
        ("annotations", study.annotations),
        ("marks", study.marks),
    ]
    counts = " · ".join(f"{len(frame):,} {name}" for name, frame in figures)
    title = study.settings.title or "Study"
    documents = list(study.iter_documents_head(MAX_SHOWN_DOCUMENTS))
    sheets = [
        document_html(document, study.annotations_on(document.id), study.protocols, bare=True) for document in documents
    ]
    more = len(study.documents) - len(documents)
    rest = f'<p class="cap">and {more:,} more documents</p>' if more > 0 else ""
    empty = "" if len(study.documents) else '<p class="cap">No documents yet.</p>'
    legends = "".join(_legend(protocol) for protocol in study.protocols.values())
    head = (
        f"<h3>{escape(title)}</h3><p class='cap'>{counts} · {escape(', '.join(study.protocols) or 'no protocol')}</p>"
    )
    return _wrap_with_style(head + legends + "".join(sheets) + empty + rest)


def document_html(
    document: Document,
    annotations: Sequence[Annotation],
    protocols: Mapping[str, Protocol],
    bare: bool = False,
    heading: str = "b",
) -> str:
    """One document with its marks: in colour for one annotator; as depth of grey with a bar for each of several.

    `bare` leaves style and legend out; `heading` is the element of the document's name.
    """
    looks_by_protocol = {name: label_styles(protocol) for name, protocol in protocols.items()}
    contexts = "".join(
        f'<div class="context"><div class="cap">{escape(name)}</div>{words}</div>'
        for name in document.context
        if (words := _part_html(document, name, annotations, looks_by_protocol))
    )
    body = _part_html(document, TEXT, annotations, looks_by_protocol)
    if len(annotations) == 1:
        body += _mark_table(annotations[0], looks_by_protocol)
    else:
        body += _annotator_bars_html(document, annotations, looks_by_protocol)
    sheet = f'<div class="sheet"><{heading}>{escape(document.id)}</{heading}>{contexts}{body}</div>'
    used = {annotation.protocol for annotation in annotations}
    legends = "".join(_legend(protocol) for name, protocol in protocols.items() if name in used)
    return sheet if bare else _wrap_with_style(legends + sheet)


def document_page(
    document: Document, annotations: Sequence[Annotation], protocols: Mapping[str, Protocol], language: str = "en"
) -> str:
    """The same as a page of its own, light or dark as the reader's device."""
    head = (
        f'<!doctype html><html lang="{escape(language)}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(document.id)}</title></head>'
    )
    body = document_html(document, annotations, protocols, heading="h1")
    return f"{head}<body><main>{body}</main></body></html>\n"


def _part_html(
    document: Document,
    part: str,
    annotations: Sequence[Annotation],
    looks_by_protocol: Mapping[str, Mapping[str | None, LabelStyle]],
) -> str:
    """The text, or a context beside it, with the marks on it."""
    text = document.part(part) or ""
    if len(annotations) == 1:
        return _coloured_marks_html(text, part, annotations[0], looks_by_protocol)
    return _marked_share_html(text, part, annotations)


def _wrap_with_style(body: str) -> str:
    return f'<div class="finecomb"><style>{_STYLE}</style>{body}</div>'


def _label_look(
    looks_by_protocol: Mapping[str, Mapping[str | None, LabelStyle]], annotation: Annotation, label: str | None
) -> LabelStyle:
    label_looks = looks_by_protocol.get(annotation.protocol, {})
    return label_looks.get(label) or LabelStyle(label or "", label or "No type", UNLABELLED_SLOT, "??", "")


def _flag_html(look: LabelStyle) -> str:
    return f'<span class="flag" style="{_flag_style(look)}">{escape(look.flag)}</span>'


def _flag_style(look: LabelStyle) -> str:
    return f"background:{_css_colour(look.slot)};color:light-dark({look.slot.light_text},{DARK_INK})"


def _legend(protocol: Protocol) -> str:
    entries = "".join(
        f"<span>{_flag_html(look)} {escape(look.title)}</span>" for name, look in label_styles(protocol).items() if name
    )
    return f'<div class="legend">{entries}</div>'


def _coloured_marks_html(
    text: str, part: str, annotation: Annotation, looks_by_protocol: Mapping[str, Mapping[str | None, LabelStyle]]
) -> str:
    spans = [[span for span in mark.spans if span.part == part] for mark in annotation.marks]
    marks = [(mark, mark_spans) for mark, mark_spans in zip(annotation.marks, spans, strict=True) if mark_spans]
    mark_looks = [_label_look(looks_by_protocol, annotation, mark.label) for mark, _ in marks]
    lane = assign_lanes((mark_spans[0].start, mark_spans[-1].end) for _, mark_spans in marks)
    begun: set[int] = set()
    parts = []
    for piece in split_at_edges(len(text), [mark_spans for _, mark_spans in marks], part):
        flags = "".join(_inline_flag_html(mark_looks[owner]) for owner in piece.owners if owner not in begun)
        begun.update(piece.owners)
        parts.append(flags + _piece_html(text, piece, mark_looks, lane))
    return _text_block_html(parts, part)


def _text_block_html(parts: Iterable[str], part: str, style: str = "") -> str:
    """The pieces of a part; of a context in the small letters that its frame has."""
    words = "".join(parts)
    return f'<div class="text"{style} dir="auto">{words}</div>' if part == TEXT else f'<div dir="auto">{words}</div>'


def _inline_flag_html(look: LabelStyle) -> str:
    return f'<span class="flag" aria-hidden="true"><i style="{_flag_style(look)}">{escape(look.flag)}</i></span>'


def _piece_html(text: str, piece: Piece, mark_looks: Sequence[LabelStyle], lane: Sequence[int]) -> str:
    words = escape(text[piece.start : piece.end])
    if not piece.owners:
        return words
    if piece.start == piece.end:
        look = mark_looks[piece.owners[0]]
        return f'<span class="gap" style="border-color:{_css_colour(look.slot)}" title="{escape(look.title)}"></span>'
    owners = sorted(piece.owners, key=lambda owner: lane[owner])
    titles = escape(", ".join(mark_looks[owner].title for owner in owners))
    for depth, owner in enumerate(owners[:_MAX_TINTS]):
        slot = mark_looks[owner].slot
        below = 3 + 5 * min(lane[owner], _MAX_TINTS - 1)
        tint = f"background:{_css_colour(slot, '24')};" if depth < _MAX_TINTS else ""
        words = (
            f'<span style="{tint}border-bottom:2px {slot.line} {_css_colour(slot)};'
            f'padding-bottom:{below}px">{words}</span>'
        )
    return f'<span title="{titles}">{words}</span>'


def _mark_table(annotation: Annotation, looks_by_protocol: Mapping[str, Mapping[str | None, LabelStyle]]) -> str:
    rows = "".join(_mark_row(mark, _label_look(looks_by_protocol, annotation, mark.label)) for mark in annotation.marks)
    if not rows:
        return f'<p class="cap">{escape(annotation.annotator)} found no errors.</p>'
    return f'<table><caption class="cap" style="text-align:left">{escape(annotation.annotator)}</caption>{rows}</table>'


def _mark_row(mark: Mark, look: LabelStyle) -> str:
    quote = " … ".join(mark.quotes) + (f" ({mark.unlocated})" if mark.unlocated else "")
    cells = [_flag_html(look), escape(look.title), f"“{escape(quote)}”", escape(format_answers(mark))]
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def format_answers(mark: Mark) -> str:
    """What was answered about a mark, in one line: severity, explanation as it is, the rest by name, then votes."""
    parts = [f"severity {mark.answers['severity']}"] if "severity" in mark.answers else []
    parts += [str(mark.answers["explanation"])] if "explanation" in mark.answers else []
    for name, answer in mark.answers.items():
        if name not in ("severity", "explanation"):
            parts.append(f"{name}: {format_answer(answer)}")
    parts += [f"{mark.votes} votes"] if mark.votes is not None else []
    return " · ".join(parts)


def _marked_share_html(text: str, part: str, annotations: Sequence[Annotation]) -> str:
    """Grey as deep as the share of annotators who marked a word, whatever their label."""
    spans_by_annotation = [
        [span for mark in annotation.marks for span in mark.spans if len(span)] for annotation in annotations
    ]
    parts = []
    for piece in split_at_edges(len(text), spans_by_annotation, part):
        words = escape(text[piece.start : piece.end])
        if piece.owners and words:
            share = len(piece.owners) / len(annotations)
            title = f"{len(piece.owners)} of {len(annotations)}"
            depth = f"{0.06 + 0.24 * share:.2f}"
            grey = f"light-dark(rgba(26,29,33,{depth}),rgba(228,230,233,{depth}))"
            words = f'<span style="background:{grey}" title="{title}">{words}</span>'
        parts.append(words)
    return _text_block_html(parts, part, ' style="line-height:32px"')


def _annotator_bars_html(
    document: Document,
    annotations: Iterable[Annotation],
    looks_by_protocol: Mapping[str, Mapping[str | None, LabelStyle]],
) -> str:
    rows = "".join(
        f"<tr><td>{escape(annotation.annotator)}</td>"
        f"<td style='width:70%'>{_annotator_bar_html(document, annotation, looks_by_protocol)}</td>"
        f"<td>{len(annotation.marks)}</td></tr>"
        for annotation in annotations
    )
    return f"<table>{rows}</table>" if rows else '<p class="cap">Nobody has read this yet.</p>'


def _annotator_bar_html(
    document: Document, annotation: Annotation, looks_by_protocol: Mapping[str, Mapping[str | None, LabelStyle]]
) -> str:
    length = max(1, len(document.text))
    blocks = []
    for mark in annotation.marks:
        look = _label_look(looks_by_protocol, annotation, mark.label)
        for span in mark.spans:
            if span.part == "text":
                place = f"left:{100 * span.start / length:.2f}%;width:{100 * len(span) / length:.2f}%"
                fill = _BAR_FILLS[look.slot.line].format(c=_css_colour(look.slot), faint=_css_colour(look.slot, "77"))
                blocks.append(f'<b style="{place};background:{fill}" title="{escape(look.title)}"></b>')
    return f'<div class="bar">{"".join(blocks)}</div>'
