"""One text of a report: everybody's marks under each line, people first, and what each of them said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from finecomb.core.palette import SLOTS, UNLABELLED_SLOT, LabelStyle
from finecomb.core.records import Annotation, Answer, Document, Mark
from finecomb.core.span import TEXT, Span, split_at_edges
from finecomb.reporting.site.front_page import BRAND_HTML, SHADE_COUNT, flag_html, render_report_page
from finecomb.reporting.site.model_replies import ModelReply, describe_placement
from finecomb.reporting.site.text_influence import TextInfluence

_MAX_TALL_ROWS, _MAX_MEDIUM_ROWS = 15, 30
_TALL_ROW_HEIGHT, _MACHINE_GAP, _FIRST_ROW_OFFSET = (
    5,
    6,
    30,
)  # px: of a row, before machines, from the top of the words to the first row


@dataclass(frozen=True, slots=True)
class MarkedTextRow:
    """Whoever marked the text: one row of the staff."""

    name: str
    machine: bool
    annotation: Annotation


@dataclass(frozen=True, slots=True)
class TextPage:
    """A text with its neighbours in the order of the report."""

    document: Document
    readers: Sequence[MarkedTextRow]
    """People first, then machines."""
    looks: Mapping[str | None, LabelStyle]
    number: int
    of: int
    system: str
    previous: tuple[str, str] | None = None
    """Id and page of the text before."""
    next: tuple[str, str] | None = None
    report: str = ""
    """The title of the report."""
    influences: Sequence[TextInfluence] = ()
    """The report's numbers with and without this text."""
    replies: Sequence[ModelReply] = ()
    """What language models wrote about the text, also what could not be read."""

    def label_look(self, label: str | None) -> LabelStyle | None:
        """How a label looks."""
        return self.looks.get(label) or self.looks.get(None)


def render_text_page(text: TextPage) -> str:
    """The page of one text."""
    top = (
        f'<header class="top"><a href="../index.html" style="text-decoration:none">{BRAND_HTML}</a>'
        f'<span class="faint">Report on {escape(text.report)}</span>'
        '<a href="../index.html">Answer</a><a href="../texts.html">Texts</a><span class="grow"></span>'
        f"<span>Text {text.number:,} of {text.of:,}</span>"
        f"{_neighbour_link_html(text.previous, 'prev', '←', 'P')}"
        f"{_neighbour_link_html(text.next, 'next', '→', 'N')}</header>"
    )
    body = (
        f'{top}<div class="columns"><nav class="rail" aria-label="Filters">{_filter_panel_html(text)}</nav>'
        f'<main class="middle">{_text_sheet_html(text)}{_influences_html(text.influences)}</main>'
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
    """A mark, whose it is, the row of its reader, and its number in the list of all marks."""

    number: int
    row: int
    reader: MarkedTextRow
    mark: Mark

    def spans_in_part(self, part: str) -> list[Span]:
        return [span for span in self.mark.spans if span.part == part]


def _numbered_marks(text: TextPage) -> list[_AnnotatorMark]:
    marks = [(row, reader, mark) for row, reader in enumerate(text.readers) for mark in reader.annotation.marks]
    return [_AnnotatorMark(number, *entry) for number, entry in enumerate(marks)]


def _filter_panel_html(text: TextPage) -> str:
    by_label = Counter(entry.mark.label for entry in _numbered_marks(text))
    labels = "".join(
        "<li><label>"
        f'<input type="checkbox" checked value="label:{escape(look.flag, quote=True)}">{flag_html(look)}'
        f"<span>{escape(look.title)}</span></label>"
        f'<span class="n">{by_label.get(label, 0) or "none"}</span></li>'
        for label, look in text.looks.items()
        if label is not None or by_label.get(None)
    )
    parts = [f"<section><h3>Labels</h3><ul>{labels}</ul></section>"]
    for title, machine in (("People, top row first", False), ("Machines", True)):
        readers = [reader for reader in text.readers if reader.machine == machine]
        if readers:
            items = "".join(
                f'<li><label><input type="checkbox" checked value="who:{escape(reader.name, quote=True)}">'
                f"<span>{escape(reader.name)}</span></label>"
                f'<span class="n">{len(reader.annotation.marks)}</span></li>'
                for reader in readers
            )
            parts.append(f"<section><h3>{title}</h3><ul>{items}</ul></section>")
    return "".join(parts)


def _row_height(rows: int) -> int:
    return _TALL_ROW_HEIGHT if rows <= _MAX_TALL_ROWS else 3 if rows <= _MAX_MEDIUM_ROWS else 2


def _text_sheet_html(text: TextPage) -> str:
    words = len(text.document.text.split())
    about = ", ".join(part for part in (text.system, f"{words:,} words") if part)
    contexts = "".join(
        f'<div class="context" dir="auto"><div class="caption">{escape(name)}</div>'
        f"{_marked_part_html(text, name, context)}</div>"
        for name, context in text.document.context.items()
    )
    return (
        f'<div class="sheet"><h1>{escape(text.document.id)}</h1> <span class="faint">{escape(about)}</span>'
        f"{contexts}{_marked_part_html(text, TEXT, text.document.text)}</div>"
    )


def _marked_part_html(text: TextPage, part: str, words: str) -> str:
    """A part of the text with a row for each reader under every line, where anybody marked it."""
    marks = [entry for entry in _numbered_marks(text) if entry.spans_in_part(part)]
    if not marks:
        return (
            f'<div dir="auto" style="white-space:pre-wrap">{escape(words)}</div>'
            if part != TEXT
            else f'<div class="marked-lines" style="--levels-height:0" dir="auto">{escape(words)}</div>'
        )
    staff = AnnotatorRowLayout.from_annotators(text.readers)
    spans = [entry.spans_in_part(part) for entry in marks]
    drawn = "".join(
        _piece_html(words[piece.start : piece.end], [marks[owner] for owner in piece.owners], text, staff)
        for piece in split_at_edges(len(words), spans)
    )
    style = f"--levels-height:{staff.total_height};--underlines:var(--{staff.css_name})"
    return f'<div class="marked-lines" style="{style}" dir="auto">{drawn}</div>'


@dataclass(frozen=True, slots=True)
class AnnotatorRowLayout:
    """Where the rows of readers stand under a line."""

    people: int
    machines: int

    @classmethod
    def from_annotators(cls, readers: Sequence[MarkedTextRow]) -> AnnotatorRowLayout:
        """The layout for these readers."""
        people = sum(not reader.machine for reader in readers)
        return cls(people, len(readers) - people)

    @property
    def row_height(self) -> int:
        """How many px a row takes."""
        return _row_height(self.people + self.machines)

    @property
    def total_height(self) -> int:
        """How many px all rows take, with the gap before machines."""
        return self.row_height * (self.people + self.machines) + (_MACHINE_GAP if self.machines else 0)

    @property
    def css_name(self) -> str:
        """What its grey lines are called in the style sheet."""
        return f"s{self.people}-{self.machines}"

    def row_top(self, number: int) -> int:
        """Where a row begins, in px below the top of the words."""
        return _FIRST_ROW_OFFSET + number * self.row_height + (_MACHINE_GAP if number >= self.people else 0)

    def stroke_name(self, slot: str, number: int) -> str:
        """What a stroke of a label in a row is called in the style sheet."""
        return f"{slot}y{self.row_top(number)}{'' if self.row_height == _TALL_ROW_HEIGHT else f'-{self.row_height}'}"

    def css_tokens(self) -> dict[str, str]:
        """Grey lines and strokes by name, as layers of a background."""
        thick = max(2, self.row_height - 2)
        rows = range(self.people + self.machines)
        slots = [*(slot.name for family in SLOTS.values() for slot in family), UNLABELLED_SLOT.name]
        strokes = {
            self.stroke_name(slot, row): f"var(--g-{slot}) 0 {self.row_top(row)}px/100% {thick}px no-repeat"
            for slot in slots
            for row in rows
        }
        stops = "".join(
            f",transparent 0 {self.row_top(row)}px,var(--well) 0 {self.row_top(row) + thick}px" for row in rows
        )
        return {self.css_name: f"linear-gradient({stops[1:]},transparent 0) 0 0/100% 100% no-repeat", **strokes}


def _piece_html(words: str, owners: Sequence[_AnnotatorMark], text: TextPage, staff: AnnotatorRowLayout) -> str:
    """Words with a stroke in the row of each reader who marked them, and grey behind them for how many people did."""
    if not owners:
        return f'<span class="plain-piece">{escape(words)}</span>'
    looks = [text.label_look(entry.mark.label) for entry in owners]
    names = [look.slot.name if look else UNLABELLED_SLOT.name for look in looks]
    strokes = [f"var(--{staff.stroke_name(name, entry.row)})" for name, entry in zip(names, owners, strict=True)]
    share = len({entry.row for entry in owners if not entry.reader.machine}) / (staff.people or 1)
    layers = ",".join([*strokes, f"var(--D{round(SHADE_COUNT * share)})", "var(--s)"])
    marks = " ".join(str(entry.number) for entry in owners)
    inner = escape(words) or "&#8203;"
    return f'<span class="marked-piece" data-marks="{marks}" style="background:{layers}">{inner}</span>'


# --- how the text moved the numbers ------------------------------------------------------------------------------

_INFLUENCE_PLOT_WIDTH = 110  # px


def _influences_html(influences: Sequence[TextInfluence]) -> str:
    if not influences:
        return ""
    rows = "".join(
        f'<tr><td>{escape(one.name)}</td><td class="r">{one.axis.format_value(one.without)}</td><td>'
        f"{_influence_svg(one)}</td>"
        f'<td class="r value">{one.axis.format_value(one.value)}</td><td class="faint">{escape(one.words)}</td></tr>'
        for one in influences
    )
    head = (
        '<h2>How this text moved the numbers</h2><span class="caption">open dot: without this text · '
        "filled dot: with it "
    )
    return (
        f'<section class="sheet influences">{head}· line: the interval in the report</span>'
        f"<table>{rows}</table></section>"
    )


def _influence_svg(one: TextInfluence) -> str:
    """The open dot, the filled dot, and the way from one to the other; both numbers stand beside it as words."""
    start, end = (one.axis.position(number, _INFLUENCE_PLOT_WIDTH) for number in (one.without, one.value))
    return (
        f'<svg class="influence-plot" width="{_INFLUENCE_PLOT_WIDTH}" height="16" aria-hidden="true"><path d="M6 '
        f'8H{_INFLUENCE_PLOT_WIDTH - 6}"/>'
        f'<path d="M{start:.0f} 8H{end:.0f}"/><circle cx="{start:.0f}" cy="8" r="4"/>'
        f'<circle cx="{end:.0f}" cy="8" r="4"/></svg>'
    )


def _mark_list_html(text: TextPage) -> str:
    marks = _numbered_marks(text)
    items = "".join(_mark_item_html(text, entry.reader, entry.mark) for entry in marks)
    head = f"{len(marks):,} marks" if marks else "Nobody marked anything here."
    return (
        '<aside class="panel" aria-label="Marks" tabindex="0">'
        f'<h2 id="chosen" data-all="{escape(head, quote=True)}">{escape(head)}</h2><ul>{items}</ul>'
        f"{_replies(text.replies)}</aside>"
    )


def _replies(replies: Sequence[ModelReply]) -> str:
    """What each language model wrote, folded, with how it was read."""
    return "".join(
        f'<section class="reply"><b>{escape(reply.name)}</b> '
        f"{escape(reply.words)}{_raw_reply_html(reply.texts)}</section>"
        for reply in replies
    )


def _raw_reply_html(texts: Sequence[str]) -> str:
    if not texts:
        return '<br><span class="caption">Its raw reply is not in this report.</span>'
    raw = "".join(f'<pre dir="auto">{escape(text)}</pre>' for text in texts)
    return f"<details><summary>raw reply</summary>{raw}</details>"


def _mark_item_html(text: TextPage, reader: MarkedTextRow, mark: Mark) -> str:
    look = text.label_look(mark.label)
    quote = " … ".join(mark.quotes) or f"not in the text: {mark.unlocated}"
    placed = f'<br><span class="caption">{escape(words)}</span>' if (words := describe_placement(mark)) else ""
    answers = "".join(
        f"<br><i>{escape(name)}</i> {escape(_format_answer(value))}" for name, value in mark.answers.items()
    )
    return (
        f'<li id="mark-{escape(mark.id, quote=True)}">{flag_html(look) if look else ""} '
        f"<b>{escape(reader.name)}</b> “<bdi>{escape(quote)}</bdi>”{answers}{placed}</li>"
    )


def _format_answer(value: Answer) -> str:
    return ", ".join(str(part) for part in value) if isinstance(value, tuple | list) else str(value)
