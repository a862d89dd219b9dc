"""One text of a report: everybody's marks under each line, people first, and what each of them said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from finecomb.core.palette import SLOTS, UNLABELLED, Look
from finecomb.core.records import Annotation, Answer, Document, Mark
from finecomb.core.span import TEXT, Span, pieces
from finecomb.report.site.influence import TextInfluence
from finecomb.report.site.model_replies import ModelReply, placement
from finecomb.report.site.pages import BRAND, DEPTHS, flag, page

_FEW_ROWS, _MANY_ROWS = 15, 30
_TALL, _GAP, _BELOW = 5, 6, 30  # px: of a row, before machines, from the top of the words to the first row


@dataclass(frozen=True, slots=True)
class Reader:
    """Whoever marked the text: one row of the staff."""

    name: str
    machine: bool
    annotation: Annotation


@dataclass(frozen=True, slots=True)
class TextPage:
    """A text with its neighbours in the order of the report."""

    document: Document
    readers: Sequence[Reader]
    """People first, then machines."""
    looks: Mapping[str | None, Look]
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

    def look(self, label: str | None) -> Look | None:
        """How a label looks."""
        return self.looks.get(label) or self.looks.get(None)


def text_page(text: TextPage) -> str:
    """The page of one text."""
    top = (
        f'<header class="top"><a href="../index.html" style="text-decoration:none">{BRAND}</a>'
        f'<span class="faint">Report on {escape(text.report)}</span>'
        '<a href="../index.html">Answer</a><a href="../texts.html">Texts</a><span class="grow"></span>'
        f"<span>Text {text.number:,} of {text.of:,}</span>"
        f"{_neighbour(text.previous, 'prev', '←', 'P')}{_neighbour(text.next, 'next', '→', 'N')}</header>"
    )
    body = (
        f'{top}<div class="columns"><nav class="rail" aria-label="Filters">{_rail(text)}</nav>'
        f'<main class="middle">{_sheet(text)}{_moves(text.influences)}</main>{_panel(text)}</div>'
    )
    return page(text.document.id, body, "../")


def _neighbour(other: tuple[str, str] | None, rel: str, arrow: str, key: str) -> str:
    if other is None:
        return ""
    id, target = other
    return f'<a class="btn" rel="{rel}" href="{escape(target, quote=True)}">{arrow} {escape(id)} <kbd>{key}</kbd></a>'


@dataclass(frozen=True, slots=True)
class _ReaderMark:
    """A mark, whose it is, the row of its reader, and its number in the list of all marks."""

    number: int
    row: int
    reader: Reader
    mark: Mark

    def spans(self, part: str) -> list[Span]:
        return [span for span in self.mark.spans if span.part == part]


def _marks(text: TextPage) -> list[_ReaderMark]:
    marks = [(row, reader, mark) for row, reader in enumerate(text.readers) for mark in reader.annotation.marks]
    return [_ReaderMark(number, *entry) for number, entry in enumerate(marks)]


def _rail(text: TextPage) -> str:
    by_label = Counter(entry.mark.label for entry in _marks(text))
    labels = "".join(
        "<li><label>"
        f'<input type="checkbox" checked value="label:{escape(look.flag, quote=True)}">{flag(look)}'
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
    return _TALL if rows <= _FEW_ROWS else 3 if rows <= _MANY_ROWS else 2


def _sheet(text: TextPage) -> str:
    words = len(text.document.text.split())
    about = ", ".join(part for part in (text.system, f"{words:,} words") if part)
    contexts = "".join(
        f'<div class="context" dir="auto"><div class="caption">{escape(name)}</div>{_staff(text, name, context)}</div>'
        for name, context in text.document.context.items()
    )
    return (
        f'<div class="sheet"><h1>{escape(text.document.id)}</h1> <span class="faint">{escape(about)}</span>'
        f"{contexts}{_staff(text, TEXT, text.document.text)}</div>"
    )


def _staff(text: TextPage, part: str, words: str) -> str:
    """A part of the text with a row for each reader under every line, where anybody marked it."""
    marks = [entry for entry in _marks(text) if entry.spans(part)]
    if not marks:
        return (
            f'<div dir="auto" style="white-space:pre-wrap">{escape(words)}</div>'
            if part != TEXT
            else f'<div class="marked-lines" style="--levels-height:0" dir="auto">{escape(words)}</div>'
        )
    staff = StaffLayout.of(text.readers)
    spans = [entry.spans(part) for entry in marks]
    drawn = "".join(
        _piece(words[piece.start : piece.end], [marks[owner] for owner in piece.owners], text, staff)
        for piece in pieces(len(words), spans)
    )
    style = f"--levels-height:{staff.height};--underlines:var(--{staff.name})"
    return f'<div class="marked-lines" style="{style}" dir="auto">{drawn}</div>'


@dataclass(frozen=True, slots=True)
class StaffLayout:
    """Where the rows of readers stand under a line."""

    people: int
    machines: int

    @classmethod
    def of(cls, readers: Sequence[Reader]) -> StaffLayout:
        """The layout for these readers."""
        people = sum(not reader.machine for reader in readers)
        return cls(people, len(readers) - people)

    @property
    def row(self) -> int:
        """How many px a row takes."""
        return _row_height(self.people + self.machines)

    @property
    def height(self) -> int:
        """How many px all rows take, with the gap before machines."""
        return self.row * (self.people + self.machines) + (_GAP if self.machines else 0)

    @property
    def name(self) -> str:
        """What its grey lines are called in the style sheet."""
        return f"s{self.people}-{self.machines}"

    def top(self, number: int) -> int:
        """Where a row begins, in px below the top of the words."""
        return _BELOW + number * self.row + (_GAP if number >= self.people else 0)

    def layer(self, slot: str, number: int) -> str:
        """What a stroke of a label in a row is called in the style sheet."""
        return f"{slot}y{self.top(number)}{'' if self.row == _TALL else f'-{self.row}'}"

    def tokens(self) -> dict[str, str]:
        """Grey lines and strokes by name, as layers of a background."""
        thick = max(2, self.row - 2)
        rows = range(self.people + self.machines)
        slots = [*(slot.name for family in SLOTS.values() for slot in family), UNLABELLED.name]
        strokes = {
            self.layer(slot, row): f"var(--g-{slot}) 0 {self.top(row)}px/100% {thick}px no-repeat"
            for slot in slots
            for row in rows
        }
        stops = "".join(f",transparent 0 {self.top(row)}px,var(--well) 0 {self.top(row) + thick}px" for row in rows)
        return {self.name: f"linear-gradient({stops[1:]},transparent 0) 0 0/100% 100% no-repeat", **strokes}


def _piece(words: str, owners: Sequence[_ReaderMark], text: TextPage, staff: StaffLayout) -> str:
    """Words with a stroke in the row of each reader who marked them, and grey behind them for how many people did."""
    if not owners:
        return f'<span class="plain-piece">{escape(words)}</span>'
    looks = [text.look(entry.mark.label) for entry in owners]
    names = [look.slot.name if look else UNLABELLED.name for look in looks]
    strokes = [f"var(--{staff.layer(name, entry.row)})" for name, entry in zip(names, owners, strict=True)]
    share = len({entry.row for entry in owners if not entry.reader.machine}) / (staff.people or 1)
    layers = ",".join([*strokes, f"var(--D{round(DEPTHS * share)})", "var(--s)"])
    marks = " ".join(str(entry.number) for entry in owners)
    inner = escape(words) or "&#8203;"
    return f'<span class="marked-piece" data-marks="{marks}" style="background:{layers}">{inner}</span>'


# --- how the text moved the numbers ------------------------------------------------------------------------------

_WIDE = 110  # px


def _moves(influences: Sequence[TextInfluence]) -> str:
    if not influences:
        return ""
    rows = "".join(
        f'<tr><td>{escape(one.name)}</td><td class="r">{one.axis.number(one.without)}</td><td>{_move_plot(one)}</td>'
        f'<td class="r value">{one.axis.number(one.value)}</td><td class="faint">{escape(one.words)}</td></tr>'
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


def _move_plot(one: TextInfluence) -> str:
    """The open dot, the filled dot, and the way from one to the other; both numbers stand beside it as words."""
    start, end = (one.axis.place(number, _WIDE) for number in (one.without, one.value))
    return (
        f'<svg class="influence-plot" width="{_WIDE}" height="16" aria-hidden="true"><path d="M6 8H{_WIDE - 6}"/>'
        f'<path d="M{start:.0f} 8H{end:.0f}"/><circle cx="{start:.0f}" cy="8" r="4"/>'
        f'<circle cx="{end:.0f}" cy="8" r="4"/></svg>'
    )


def _panel(text: TextPage) -> str:
    marks = _marks(text)
    items = "".join(_item(text, entry.reader, entry.mark) for entry in marks)
    head = f"{len(marks):,} marks" if marks else "Nobody marked anything here."
    return (
        '<aside class="panel" aria-label="Marks" tabindex="0">'
        f'<h2 id="chosen" data-all="{escape(head, quote=True)}">{escape(head)}</h2><ul>{items}</ul>'
        f"{_replies(text.replies)}</aside>"
    )


def _replies(replies: Sequence[ModelReply]) -> str:
    """What each language model wrote, folded, with how it was read."""
    return "".join(
        f'<section class="reply"><b>{escape(reply.name)}</b> {escape(reply.words)}{_raw(reply.texts)}</section>'
        for reply in replies
    )


def _raw(texts: Sequence[str]) -> str:
    if not texts:
        return '<br><span class="caption">Its raw reply is not in this report.</span>'
    raw = "".join(f'<pre dir="auto">{escape(text)}</pre>' for text in texts)
    return f"<details><summary>raw reply</summary>{raw}</details>"


def _item(text: TextPage, reader: Reader, mark: Mark) -> str:
    look = text.look(mark.label)
    quote = " … ".join(mark.quotes) or f"not in the text: {mark.unlocated}"
    placed = f'<br><span class="caption">{escape(words)}</span>' if (words := placement(mark)) else ""
    answers = "".join(f"<br><i>{escape(name)}</i> {escape(_shown(value))}" for name, value in mark.answers.items())
    return (
        f'<li id="mark-{escape(mark.id, quote=True)}">{flag(look) if look else ""} '
        f"<b>{escape(reader.name)}</b> “<bdi>{escape(quote)}</bdi>”{answers}{placed}</li>"
    )


def _shown(value: Answer) -> str:
    return ", ".join(str(part) for part in value) if isinstance(value, tuple | list) else str(value)
