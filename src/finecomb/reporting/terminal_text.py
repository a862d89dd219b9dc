"""A text in the terminal: words as they are, marks as coloured, labelled lines below them, overlaps in lanes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from finecomb.core.palette import UNLABELLED_SLOT, LabelStyle, assign_lanes, label_styles
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Mark, Record
from finecomb.core.span import TEXT, Span
from finecomb.reporting.marked_text import format_answers

_STROKE_CHARACTERS = {"solid": "━", "dashed": "╍", "dotted": "┅"}
_TAB = "    "


@dataclass(frozen=True, slots=True)
class NumberedMark:
    """A mark with its number in the list and its look."""

    number: int
    mark: Mark
    look: LabelStyle
    annotator: str


def render_document(
    document: Document, annotations: Sequence[Annotation], protocols: Mapping[str, Protocol], width: int = 100
) -> RenderableType:
    """The document's contexts and text with every mark of `annotations`, and the list of marks below.

    Control characters, which a terminal would obey, are shown as their signs.
    """
    document = _show_control_characters(document)
    annotations = [_show_control_characters(annotation) for annotation in annotations]
    looks_by_protocol = {name: label_styles(protocol) for name, protocol in protocols.items()}
    marks = _number_marks(annotations, looks_by_protocol)
    meta = "  ".join(f"{name} {value}" for name, value in document.meta.items() if isinstance(value, str | int | float))
    parts: list[RenderableType] = [Text.assemble((document.id, "bold"), "  ", (meta, "dim"))]
    for name, text in document.context.items():
        parts += [Text(f"{name}", "dim"), *_render_marked_lines(text, name, marks, width)]
    parts += [Text(""), *_render_marked_lines(document.text, TEXT, marks, width), Text("")]
    parts.append(_mark_table(marks) if marks else Text(_no_marks_message(annotations), "dim"))
    return Group(*parts)


_CONTROL_PICTURES = {code: 0x2400 + code for code in range(32) if code not in (9, 10)} | {127: 0x2421}
_CONTROL_PICTURES |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
R = TypeVar("R", bound=Record)


def _show_control_characters(record: R) -> R:
    """A record whose texts have signs in the place of control characters, each as long as before."""
    value = record.model_dump(mode="json")
    visible = _replace_control_characters(value)
    return record if visible == value else type(record).model_validate(visible)


def _replace_control_characters(value: Any) -> Any:
    match value:
        case str():
            return value.translate(_CONTROL_PICTURES)
        case dict():
            return {
                _replace_control_characters(key): _replace_control_characters(member) for key, member in value.items()
            }
        case list():
            return [_replace_control_characters(member) for member in value]
    return value


def _no_marks_message(annotations: Sequence[Annotation]) -> str:
    if not annotations:
        return "Nobody has read this text yet."
    names = ", ".join(annotation.annotator for annotation in annotations)
    return f"No errors marked by {names}."


def _number_marks(
    annotations: Iterable[Annotation], looks_by_protocol: Mapping[str, Mapping[str | None, LabelStyle]]
) -> list[NumberedMark]:
    pairs = [(mark, annotation) for annotation in annotations for mark in annotation.marks]
    pairs.sort(key=lambda pair: (not pair[0].spans, pair[0].spans, pair[1].annotator))
    fallback = LabelStyle("", "No type", UNLABELLED_SLOT, "??", "")
    return [
        NumberedMark(
            number, mark, looks_by_protocol.get(owner.protocol, {}).get(mark.label) or fallback, owner.annotator
        )
        for number, (mark, owner) in enumerate(pairs, 1)
    ]


# --- the text ----------------------------------------------------------------------------------------------------


def _render_marked_lines(text: str, part: str, marks: Sequence[NumberedMark], width: int) -> Iterator[Text]:
    """Lines of `text` no wider than `width`, each followed by the lanes of the marks on it."""
    stretches = [(mark, span) for mark in marks for span in mark.mark.spans if span.part == part]
    for start, end in wrap_text(text, width):
        yield Text(_make_printable(text[start:end]))
        here = [
            (mark, span)
            for mark, span in stretches
            if (span.start < end and span.end > start) or (not len(span) and start <= span.start <= end)
        ]
        yield from _render_lanes([_build_stroke(text, start, end, mark, span) for mark, span in here])


@dataclass(frozen=True, slots=True)
class _MarkStroke:
    """What a mark looks like below one line: where it begins, in cells, its flag and how long it is."""

    left: int
    cells: int
    flag: str
    look: LabelStyle


def _build_stroke(text: str, start: int, end: int, mark: NumberedMark, span: Span) -> _MarkStroke:
    first, last = max(start, span.start), min(end, span.end)
    flag = f"{mark.look.flag}{mark.number}" if span.start >= start else ""
    cells = max(1, cell_len(_make_printable(text[first:last])), len(flag))
    return _MarkStroke(cell_len(_make_printable(text[start:first])), cells, flag, mark.look)


def _render_lanes(strokes: Sequence[_MarkStroke]) -> Iterator[Text]:
    """One line per lane; a flag that is longer than its words takes the room it needs, so no mark is left out."""
    lane = assign_lanes((stroke.left, stroke.left + stroke.cells + 1) for stroke in strokes)
    lines = [Text() for _ in range(max(lane, default=-1) + 1)]
    for index, stroke in sorted(enumerate(strokes), key=lambda pair: pair[1].left):
        line, slot = lines[lane[index]], stroke.look.slot
        line.append(" " * (stroke.left - line.cell_len))
        line.append(stroke.flag, _flag_style(stroke.look))
        line.append(_STROKE_CHARACTERS[slot.line] * (stroke.cells - len(stroke.flag)), slot.light)
    yield from lines


def _flag_style(look: LabelStyle) -> str:
    return f"{look.slot.light_text} on {look.slot.light}"


def _make_printable(text: str) -> str:
    """The text as one line of a terminal: tabs widened, control characters made visible."""
    return "".join(
        _TAB
        if character == "\t"
        else character
        if character.isprintable() or character == " " or _is_joiner(character)
        else "␣"
        if character in "\r\n"
        else "·"
        for character in text.rstrip("\r\n")
    )


def _is_joiner(character: str) -> bool:
    return character in "\u200c\u200d\ufe0f"


def wrap_text(text: str, width: int) -> list[tuple[int, int]]:
    """Start and end of each line when `text` is broken at white space and line breaks; together they cover the text."""
    lines: list[tuple[int, int]] = []
    start = at = used = 0
    last_space = -1
    while at < len(text):
        character = text[at]
        used += cell_len(_make_printable(character)) if character not in "\r\n" else 0
        at += 1
        if character == "\n":
            lines.append((start, at))
            start, used, last_space = at, 0, -1
        elif character.isspace():
            last_space = at
        elif used > width and at - start > 1:
            cut = last_space if last_space > start else at - 1
            lines.append((start, cut))
            start, at, used, last_space = cut, cut, 0, -1
    if start < len(text) or not lines:
        lines.append((start, len(text)))
    return lines


# --- the list ----------------------------------------------------------------------------------------------------


def _mark_table(marks: Sequence[NumberedMark]) -> Table:
    several = len({row.annotator for row in marks}) > 1
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for row in marks:
        flag = Text(f"{row.look.flag}{row.number}", _flag_style(row.look))
        cells: list[RenderableType] = [
            flag,
            Text(row.look.title),
            _quote(row.mark),
            Text(format_answers(row.mark), "dim"),
        ]
        if several:
            cells.insert(1, Text(row.annotator, "dim"))
        table.add_row(*cells)
    return table


def _quote(mark: Mark) -> Text:
    words = _make_printable(" … ".join(mark.quotes))
    text = Text(f"“{words}”" if words else "(something missing)", overflow="ellipsis")
    if mark.antecedents:
        text.append(f"  ← “{_make_printable(' … '.join(mark.antecedents.quotes))}”", "dim")
    if mark.unlocated:
        text.append(f"  not placed: {mark.unlocated}", "italic")
    return text
