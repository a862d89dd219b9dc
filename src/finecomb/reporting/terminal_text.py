"""Terminal display of a text: marks are coloured, labelled lines below the words, in lanes if they overlap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from finecomb.core.palette import UNLABELLED_SLOT, LabelStyle, assign_lanes, label_styles
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Mark, Record
from finecomb.core.span import TEXT_PART
from finecomb.reporting.marked_text import format_mark_answers

_STROKE_CHARACTERS = {"solid": "━", "dashed": "╍", "dotted": "┅"}
_TAB = "    "


@dataclass(frozen=True, slots=True)
class NumberedMark:
    """Mark with its style and its number in the list of marks."""

    number: int
    mark: Mark
    style: LabelStyle
    annotator: str


def render_document(
    document: Document, annotations: Sequence[Annotation], protocols: Mapping[str, Protocol], width: int = 100
) -> RenderableType:
    """Render the contexts and text of a document with all marks of `annotations`, followed by a list of marks.

    Control characters, which a terminal would execute, are replaced by visible symbols.
    """
    document = _show_control_characters(document)
    annotations = [_show_control_characters(annotation) for annotation in annotations]
    styles_by_protocol = {name: label_styles(protocol) for name, protocol in protocols.items()}
    pairs = [(mark, annotation) for annotation in annotations for mark in annotation.marks]
    pairs.sort(key=lambda pair: (not pair[0].spans, pair[0].spans, pair[1].annotator))
    fallback = LabelStyle("", "No type", UNLABELLED_SLOT, "??", "")
    marks = [
        NumberedMark(
            number, mark, styles_by_protocol.get(owner.protocol, {}).get(mark.label) or fallback, owner.annotator
        )
        for number, (mark, owner) in enumerate(pairs, 1)
    ]
    meta = "  ".join(f"{name} {value}" for name, value in document.meta.items() if isinstance(value, str | int | float))
    parts: list[RenderableType] = [Text.assemble((document.id, "bold"), "  ", (meta, "dim"))]
    for name, text in document.context.items():
        parts += [Text(f"{name}", "dim"), *_render_marked_lines(text, name, marks, width)]
    parts += [Text(""), *_render_marked_lines(document.text, TEXT_PART, marks, width), Text("")]
    names = ", ".join(annotation.annotator for annotation in annotations)
    nothing = f"No errors marked by {names}." if annotations else "No annotations yet."
    parts.append(_mark_table(marks) if marks else Text(nothing, "dim"))
    return Group(*parts)


_CONTROL_PICTURES = {code: 0x2400 + code for code in range(32) if code not in (9, 10)} | {127: 0x2421}
_CONTROL_PICTURES |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
RecordType = TypeVar("RecordType", bound=Record)


def _show_control_characters(record: RecordType) -> RecordType:
    """Replace control characters in a record with symbols of the same length."""
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


# --- text with marks ---------------------------------------------------------------------------------------------


def _render_marked_lines(text: str, part: str, marks: Sequence[NumberedMark], width: int) -> Iterator[Text]:
    """Yield lines of `text` at most `width` wide, each followed by the lanes of its marks."""
    stretches = [(mark, span) for mark in marks for span in mark.mark.spans if span.part == part]
    for start, end in wrap_text(text, width):
        yield Text(_make_printable(text[start:end]))
        strokes = []
        for mark, span in stretches:
            if (span.start < end and span.end > start) or (not len(span) and start <= span.start <= end):
                first, last = max(start, span.start), min(end, span.end)
                flag = f"{mark.style.flag}{mark.number}" if span.start >= start else ""
                cells = max(1, cell_len(_make_printable(text[first:last])), len(flag))
                strokes.append((cell_len(_make_printable(text[start:first])), cells, flag, mark.style))
        # One line per lane; a flag longer than its words gets extra room, so that no mark is omitted
        lane = assign_lanes((left, left + cells + 1) for left, cells, _, _ in strokes)
        lines = [Text() for _ in range(max(lane, default=-1) + 1)]
        for index, (left, cells, flag, style) in sorted(enumerate(strokes), key=lambda pair: pair[1][0]):
            line = lines[lane[index]]
            line.append(" " * (left - line.cell_len))
            line.append(flag, _flag_rich_style(style))
            line.append(_STROKE_CHARACTERS[style.slot.line] * (cells - len(flag)), style.slot.light)
        yield from lines


def _flag_rich_style(style: LabelStyle) -> str:
    return f"{style.slot.light_text} on {style.slot.light}"


def _make_printable(text: str) -> str:
    """Return a text as one terminal line, with tabs expanded and control characters visible."""
    return "".join(
        _TAB
        if character == "\t"
        else character
        if character.isprintable() or character == " " or (character in "\u200c\u200d\ufe0f")
        else "␣"
        if character in "\r\n"
        else "·"
        for character in text.rstrip("\r\n")
    )


def wrap_text(text: str, width: int) -> list[tuple[int, int]]:
    """Return the start and end of each line of `text` wrapped at white space; the lines cover the whole text."""
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


# --- list of marks -----------------------------------------------------------------------------------------------


def _mark_table(marks: Sequence[NumberedMark]) -> Table:
    several = len({row.annotator for row in marks}) > 1
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for row in marks:
        flag = Text(f"{row.style.flag}{row.number}", _flag_rich_style(row.style))
        words = _make_printable(" … ".join(row.mark.quotes))
        text = Text(f"“{words}”" if words else "(omission)", overflow="ellipsis")
        if row.mark.antecedents:
            text.append(f"  ← “{_make_printable(' … '.join(row.mark.antecedents.quotes))}”", "dim")
        if row.mark.unlocated:
            text.append(f"  not located: {row.mark.unlocated}", "italic")
        cells: list[RenderableType] = [
            flag,
            Text(row.style.title),
            text,
            Text(format_mark_answers(row.mark), "dim"),
        ]
        if several:
            cells.insert(1, Text(row.annotator, "dim"))
        table.add_row(*cells)
    return table
