from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given, settings

from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Mark, Settings
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.reporting.marked_text import document_html, study_html
from tests.strategies import PROTOCOL, studies

# Generating studies is slow, so each property gets fewer examples.
fewer = settings(max_examples=settings().max_examples // 3)


def test_a_notebook_shows_a_study_through_the_hook_that_the_package_sets() -> None:
    study = Study.from_items([Document(id="d", text="x")])
    assert study._repr_html_() == study_html(study)


class Reader(HTMLParser):
    """Parser that collects the text inside `div.text`, without flags, and all tags."""

    VOID = ("br", "img", "meta", "input")

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self.words = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kind = dict(attrs).get("class") or ""
        self.tags.add(tag)
        assert all(not name.startswith("on") for name, _ in attrs)
        if tag not in self.VOID:
            self.open.append((tag, kind))
        if (tag, kind) == ("div", "text"):
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if ("div", "text") in self.open and ("span", "flag") not in self.open:
            self.texts[-1] += data
        elif ("style", "") not in self.open:
            self.words += data


@fewer
@given(studies())
def test_the_html_of_a_document_shows_its_text_exactly(items: list[StudyItem]) -> None:
    study = Study.from_items(items)
    for document in study.iter_documents():
        on = study.annotations_on(document.id)
        for shown in ([], on[:1], on):
            page = Reader(document_html(document, shown, study.protocols))
            assert page.texts == [document.text]


@fewer
@given(studies())
def test_the_html_of_a_study_shows_its_first_texts(items: list[StudyItem]) -> None:
    study = Study.from_items(items)
    page = Reader(study._repr_html_())
    assert page.texts == [document.text for document in study.iter_documents()][:3]


EVIL = "<script>alert(1)</script>\" onload='x' x<y and z>w &amp; <b>"


def test_no_text_becomes_markup_wherever_it_stands() -> None:
    protocol = Protocol.model_validate(
        {
            "name": "p",
            "version": "1",
            "title": EVIL,
            "summary": EVIL,
            "labels": [{"name": "a", "title": EVIL, "flag": "<b>"}],
        }
    )
    mark = Mark(id="m", spans=(Span(0, 8),), quotes=(EVIL[:8],), label="a", answers={"explanation": EVIL, EVIL: EVIL})
    gap = Mark(id="m2", spans=(Span(3, 3),), quotes=("",), label="a")
    one = Annotation(id="a1", document=EVIL, annotator=EVIL, protocol="p@1", marks=(mark, gap))
    document = Document(id=EVIL, text=EVIL, context={EVIL: EVIL})
    for read_by in ([one], [one, one.model_copy(update={"id": "a2"})], []):
        study = Study.from_items([Settings(title=EVIL), protocol, document, *read_by])
        page = Reader(study._repr_html_())
        assert page.texts == [EVIL]
        assert EVIL in page.words
        assert page.tags <= set("div style h3 p b span i table caption tr td".split())


def test_overlapping_marks_show_the_text_once_and_each_flag_once() -> None:
    text = "one two three four five"
    places = [(0, 13), (4, 18), (4, 7), (8, 23), (0, 23)]
    marks = [
        Mark(id=f"m{n}", spans=(Span(*place),), quotes=(text[slice(*place)],), label="red")
        for n, place in enumerate(places)
    ]
    one = Annotation(id="a", document="d", annotator="p", protocol=PROTOCOL.id, marks=tuple(marks))
    html = document_html(Document(id="d", text=text), [one], {PROTOCOL.id: PROTOCOL})
    assert Reader(html).texts == [text]
    assert html.count('aria-hidden="true"') == 5


def test_a_long_study_shows_how_many_more_there_are() -> None:
    study = Study.from_items([Document(id=f"d{n}", text="x") for n in range(5)])
    assert "2 more documents not shown." in study._repr_html_()
    assert "No annotations yet" in study._repr_html_()


def test_marks_on_a_prompt_are_drawn_there() -> None:
    """A mark on the prompt was once listed in the table but not drawn in the prompt."""
    document = Document(id="d", text="Text.", context={"prompt": "A dark night."})
    mark = Mark(id="m", spans=(Span(2, 6, "prompt"),), quotes=("dark",), label=None)
    annotations = [Annotation(id=f"d/{name}", document="d", annotator=name, protocol="p@1") for name in ("a", "b")]
    marked = annotations[0].model_copy(update={"marks": (mark,)})
    one = document_html(document, [marked], {})
    assert 'title="No type"' in one.partition('class="text"')[0]
    assert 'title="No type"' not in one.partition('class="text"')[2].partition("<table>")[0]
    assert 'title="1 of 2">dark</span> night.' in document_html(document, [marked, annotations[1]], {})
