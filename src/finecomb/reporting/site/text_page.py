"""Page of one text in a report: marks of all annotators below each line, people first, with their answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from finecomb.core.palette import SLOTS_BY_FAMILY, UNLABELLED_SLOT, LabelStyle
from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.span import TEXT_PART, Span, split_at_edges
from finecomb.reporting.figures.figure_model import Dot, Line, format_count_with_noun
from finecomb.reporting.figures.svg import row_svg
from finecomb.reporting.site.front_page import BRAND_HTML, MARKED_SHARE_SHADE_COUNT, flag_html, render_report_page
from finecomb.reporting.site.model_replies import ModelReply, describe_quote_placement
from finecomb.reporting.site.text_influence import TextInfluence

_MAX_TALL_ROWS, _MAX_MEDIUM_ROWS = 15, 30
# px: row height, gap before machines, distance from the top of the words to the first row
_TALL_ROW_HEIGHT, _MACHINE_GAP, _FIRST_ROW_OFFSET = 5, 6, 30


@dataclass(frozen=True, slots=True)
class AnnotatorMarkRow:
    """Annotator of a text, with one row of marks below each line."""

    name: str
    machine: bool
    annotation: Annotation


@dataclass(frozen=True, slots=True)
class TextPage:
    """Text and its neighbours in the order of the report, each neighbour with its ID and page.

    Annotators are people first, then machines. `influences` are numbers of the report with and without this text, and
    `replies` include those of language models that could not be parsed.
    """

    document: Document
    annotators: Sequence[AnnotatorMarkRow]
    styles: Mapping[str | None, LabelStyle]
    number: int
    of: int
    system: str
    previous: tuple[str, str] | None = None
    next: tuple[str, str] | None = None
    report_title: str = ""
    influences: Sequence[TextInfluence] = ()
    replies: Sequence[ModelReply] = ()

    def label_style(self, label: str | None) -> LabelStyle | None:
        """Return the style of a label, or None if it is unknown."""
        return self.styles.get(label) or self.styles.get(None)


def render_text_page(text: TextPage) -> str:
    """Render the page of one text."""
    top = (
        f'<header class="top"><a href="../index.html" style="text-decoration:none">{BRAND_HTML}</a>'
        f'<span class="faint">Report on {escape(text.report_title)}</span>'
        '<a href="../index.html">Report</a><a href="../texts.html">Texts</a><span class="grow"></span>'
        f"<span>Text {text.number:,} of {text.of:,}</span>"
        f"{_neighbour_link_html(text.previous, 'prev', '←', 'P')}"
        f"{_neighbour_link_html(text.next, 'next', '→', 'N')}</header>"
    )
    by_label = Counter(entry.mark.label for entry in _numbered_marks(text))
    labels = "".join(
        "<li><label>"
        f'<input type="checkbox" checked value="label:{escape(style.flag, quote=True)}">{flag_html(style)}'
        f"<span>{escape(style.title)}</span></label>"
        f'<span class="n">{by_label.get(label, 0) or "none"}</span></li>'
        for label, style in text.styles.items()
        if label is not None or by_label.get(None)
    )
    parts = [f"<section><h3>Labels</h3><ul>{labels}</ul></section>"]
    for title, machine in (("People (top row first)", False), ("Machines", True)):
        annotators = [annotator for annotator in text.annotators if annotator.machine == machine]
        if annotators:
            items = "".join(
                f'<li><label><input type="checkbox" checked value="who:{escape(annotator.name, quote=True)}">'
                f"<span>{escape(annotator.name)}</span></label>"
                f'<span class="n">{len(annotator.annotation.marks)}</span></li>'
                for annotator in annotators
            )
            parts.append(f"<section><h3>{title}</h3><ul>{items}</ul></section>")
    words = format_count_with_noun(len(text.document.text.split()), "word")
    contexts = "".join(
        f'<div class="context" dir="auto"><div class="caption">{escape(name)}</div>'
        f"{_marked_part_html(text, name, context)}</div>"
        for name, context in text.document.context.items()
    )
    sheet = (
        f'<div class="sheet"><h1>{escape(text.document.id)}</h1> '
        f'<span class="faint">{escape(", ".join(filter(None, (text.system, words))))}</span>'
        f"{contexts}{_marked_part_html(text, TEXT_PART, text.document.text)}</div>"
    )
    body = (
        f'{top}<div class="columns"><nav class="rail" aria-label="Filters">{"".join(parts)}</nav>'
        f'<main class="middle">{sheet}{_influences_html(text.influences)}</main>'
        f"{_mark_list_html(text)}</div>"
    )
    return render_report_page(text.document.id, body, "../")


def _neighbour_link_html(other: tuple[str, str] | None, rel: str, arrow: str, key: str) -> str:
    if other is None:
        return ""
    id, target = other
    return f'<a class="btn" rel="{rel}" href="{escape(target, quote=True)}">{arrow} {escape(id)} <kbd>{key}</kbd></a>'


@dataclass(frozen=True, slots=True)
class _AnnotatorMark:
    """Mark with its annotator, the row of the annotator, and its number in the list of all marks."""

    number: int
    row: int
    annotator: AnnotatorMarkRow
    mark: Mark

    def spans_in_part(self, part: str) -> list[Span]:
        return [span for span in self.mark.spans if span.part == part]


def _numbered_marks(text: TextPage) -> list[_AnnotatorMark]:
    marks = [
        (row, annotator, mark) for row, annotator in enumerate(text.annotators) for mark in annotator.annotation.marks
    ]
    return [_AnnotatorMark(number, *entry) for number, entry in enumerate(marks)]


def _marked_part_html(text: TextPage, part: str, words: str) -> str:
    """Return a part of the text with one row per annotator below each line, or plain text if it has no mark."""
    marks = [entry for entry in _numbered_marks(text) if entry.spans_in_part(part)]
    if not marks:
        return (
            f'<div dir="auto" style="white-space:pre-wrap">{escape(words)}</div>'
            if part != TEXT_PART
            else f'<div class="marked-lines" style="--levels-height:0" dir="auto">{escape(words)}</div>'
        )
    people = sum(not annotator.machine for annotator in text.annotators)
    layout = AnnotatorRowLayout(people, len(text.annotators) - people)
    spans = [entry.spans_in_part(part) for entry in marks]
    drawn = "".join(
        _marked_piece_html(words[piece.start : piece.end], [marks[owner] for owner in piece.owners], text, layout)
        for piece in split_at_edges(len(words), spans)
    )
    style = f"--levels-height:{layout.total_height};--underlines:var(--{layout.lines_css_name})"
    return f'<div class="marked-lines" style="{style}" dir="auto">{drawn}</div>'


@dataclass(frozen=True, slots=True)
class AnnotatorRowLayout:
    """Layout of the annotator rows below a line."""

    people: int
    machines: int

    @property
    def row_height(self) -> int:
        """Height of a row in px."""
        rows = self.people + self.machines
        return _TALL_ROW_HEIGHT if rows <= _MAX_TALL_ROWS else 3 if rows <= _MAX_MEDIUM_ROWS else 2

    @property
    def total_height(self) -> int:
        """Height of all rows in px, including the gap before machines."""
        return self.row_height * (self.people + self.machines) + (_MACHINE_GAP if self.machines else 0)

    @property
    def lines_css_name(self) -> str:
        """Name of the CSS variable with the grey row lines."""
        return f"s{self.people}-{self.machines}"

    def row_top(self, number: int) -> int:
        """Return the top of a row, in px below the top of the words."""
        return _FIRST_ROW_OFFSET + number * self.row_height + (_MACHINE_GAP if number >= self.people else 0)

    def stroke_css_name(self, slot: str, number: int) -> str:
        """Return the name of the CSS variable with the stroke of a label in a row."""
        return f"{slot}y{self.row_top(number)}{'' if self.row_height == _TALL_ROW_HEIGHT else f'-{self.row_height}'}"

    def css_tokens(self) -> dict[str, str]:
        """Return the CSS variables of row lines and strokes, as background layers."""
        thick = max(2, self.row_height - 2)
        rows = range(self.people + self.machines)
        slots = [*(slot.name for family in SLOTS_BY_FAMILY.values() for slot in family), UNLABELLED_SLOT.name]
        strokes = {
            self.stroke_css_name(slot, row): f"var(--g-{slot}) 0 {self.row_top(row)}px/100% {thick}px no-repeat"
            for slot in slots
            for row in rows
        }
        stops = "".join(
            f",transparent 0 {self.row_top(row)}px,var(--well) 0 {self.row_top(row) + thick}px" for row in rows
        )
        return {self.lines_css_name: f"linear-gradient({stops[1:]},transparent 0) 0 0/100% 100% no-repeat", **strokes}


def _marked_piece_html(words: str, owners: Sequence[_AnnotatorMark], text: TextPage, layout: AnnotatorRowLayout) -> str:
    """Return words with a stroke per annotator who marked them, shaded by the share of people who did."""
    if not owners:
        return f'<span class="plain-piece">{escape(words)}</span>'
    styles = [text.label_style(entry.mark.label) for entry in owners]
    names = [style.slot.name if style else UNLABELLED_SLOT.name for style in styles]
    strokes = [f"var(--{layout.stroke_css_name(name, entry.row)})" for name, entry in zip(names, owners, strict=True)]
    share = len({entry.row for entry in owners if not entry.annotator.machine}) / (layout.people or 1)
    layers = ",".join([*strokes, f"var(--D{round(MARKED_SHARE_SHADE_COUNT * share)})", "var(--underlines)"])
    marks = " ".join(str(entry.number) for entry in owners)
    inner = escape(words) or "&#8203;"
    return f'<span class="marked-piece" data-marks="{marks}" style="background:{layers}">{inner}</span>'


# --- effect of the text on the numbers ---------------------------------------------------------------------------


def _influences_html(influences: Sequence[TextInfluence]) -> str:
    """Return a table of numbers with and without the text, drawn as an open and a filled dot joined by a line."""
    rows = []
    for influence in influences:
        axis, low, high = influence.axis, *sorted((influence.without, influence.value))
        interval = Line(((axis.low, ""), (axis.high, "")), "line")
        dots = Dot(influence.without, "", low, high, open=True, radius=4), Dot(influence.value, "", radius=4)
        rows.append(
            f'<tr><td>{escape(influence.name)}</td><td class="r">{axis.format_value(influence.without)}</td>'
            f"<td>{row_svg((interval, *dots), axis, 110, 16, responsive=False)}</td>"
            f'<td class="r value">{axis.format_value(influence.value)}</td>'
            f'<td class="faint">{escape(influence.words)}</td></tr>'
        )
    legend = (
        '<h2>Effect of this text on the results</h2><span class="caption">open dot: without this text · '
        "filled dot: with this text · line: confidence interval in the report</span>"
    )
    return f'<section class="sheet influences">{legend}<table>{"".join(rows)}</table></section>' if rows else ""


def _mark_list_html(text: TextPage) -> str:
    """Return the list of all marks, then the collapsed reply of each language model and how it was parsed."""
    items, replies = [], []
    for entry in _numbered_marks(text):
        mark, style = entry.mark, text.label_style(entry.mark.label)
        quote = " … ".join(mark.quotes) or f"not in the text: {mark.unlocated}"
        placement = describe_quote_placement(mark)
        answers = {
            name: ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
            for name, value in mark.answers.items()
        }
        items.append(
            f'<li id="mark-{escape(mark.id, quote=True)}">{flag_html(style) if style else ""} '
            f"<b>{escape(entry.annotator.name)}</b> “<bdi>{escape(quote)}</bdi>”"
            + "".join(f"<br><i>{escape(name)}</i> {escape(answer)}" for name, answer in answers.items())
            + (f'<br><span class="caption">{escape(placement)}</span></li>' if placement else "</li>")
        )
    for reply in text.replies:
        raw = "".join(f'<pre dir="auto">{escape(words)}</pre>' for words in reply.texts)
        details = (
            f"<details><summary>Raw reply</summary>{raw}</details>"
            if reply.texts
            else '<br><span class="caption">The raw reply is not available.</span>'
        )
        replies.append(f'<section class="reply"><b>{escape(reply.name)}</b> {escape(reply.words)}{details}</section>')
    head = format_count_with_noun(len(items), "mark") if items else "No marks"
    return (
        '<aside class="panel" aria-label="Marks" tabindex="0">'
        f'<h2 id="chosen" data-all="{escape(head, quote=True)}">{escape(head)}</h2><ul>{"".join(items)}</ul>'
        f"{''.join(replies)}</aside>"
    )
