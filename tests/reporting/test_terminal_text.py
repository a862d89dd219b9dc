from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.span import Span
from finecomb.reporting.terminal_text import render_document, wrap_text
from tests.strategies import MULTILINE_ALPHABET, PROTOCOL


def view(text: str, *spans: tuple[int, int], width: int = 40) -> str:
    marks = tuple(
        Mark(id=f"m{n}", spans=(Span(*span),), quotes=(text[slice(*span)],), label="red")
        for n, span in enumerate(spans)
    )
    annotation = Annotation(id="a", document="d", annotator="ann", protocol=PROTOCOL.id, marks=marks)
    console = Console(width=120, record=True, file=None, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(render_document(Document(id="d", text=text), [annotation], {PROTOCOL.id: PROTOCOL}, width))
    return capture.get()


def test_marks_stand_below_their_words() -> None:
    lines = [line.rstrip() for line in view("The lake froze in July.", (4, 8), (18, 22)).splitlines()]
    assert lines[2:4] == ["The lake froze in July.", "    RE1━          RE2━"]


def test_overlapping_marks_take_lanes_and_none_is_left_out() -> None:
    output = view("The lake froze in July.", (0, 14), (4, 8), (4, 5), (5, 6))
    assert [line.strip()[:3] for line in output.splitlines()[3:7]] == ["RE1", "RE3", "RE2", "RE4"]


def test_a_wide_character_is_two_cells() -> None:
    lines = view("中文 ok here", (3, 10)).splitlines()
    assert lines[3].startswith("     RE1")


def test_an_omission_and_no_marks_are_shown_in_words() -> None:
    assert "(omission)" in view("The froze.", (4, 4))
    assert "No errors marked by ann." in view("The lake.")


@given(st.text(MULTILINE_ALPHABET + "\t x" * 4), st.integers(2, 30))
def test_lines_cover_the_text_in_order(text: str, width: int) -> None:
    lines = wrap_text(text, width)
    assert "".join(text[start:end] for start, end in lines) == text
    assert all(start < end for start, end in lines) or text == ""


def test_no_control_character_reaches_the_terminal() -> None:
    text = "red \x1b[31m bell \x07 end\x9b"
    mark = Mark(id="m", spans=(Span(4, 9),), quotes=("\x1b[31m",), label=None, answers={"comment": "\x1b]0;title\x07"})
    annotation = Annotation(id="a", document="d", annotator="\x1b[1mann", protocol="p@1", marks=(mark,))
    document = Document(id="d\x1b", text=text, context={"prompt": "a\x08b"}, meta={"model": "\x1b[0m"})
    console = Console(width=80, file=io.StringIO(), color_system=None)
    console.print(render_document(document, [annotation], {}, 80))
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    assert "red ␛[31m bell ␇" in printed
    assert not set(printed) & {*map(chr, range(32)), *map(chr, range(127, 160))} - {"\n"}
