from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finecomb.core.errors import FinecombError, FormatError
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_study
from finecomb.formats import detect_format, docbin
from finecomb.formats.base import Options
from tests.formats.fuzzing import damage_file, file_damages, read_or_reject
from tests.strategies import MULTILINE_ALPHABET, PROTOCOL, canonical_form, round_trip, studies

spacy = pytest.importorskip("spacy")

WORK = Annotation(
    id="d/a",
    document="d",
    annotator="a",
    protocol="test@1",
    marks=(Mark(id="m", spans=(Span(2, 5),), quotes=("cat",), label="red"),),
)
ITEMS: list[StudyItem] = [PROTOCOL, Document(id="d", text="A cat."), Annotator(id="a", kind="human"), WORK]


def test_entities_of_a_plain_docbin_become_marks(tmp_path: Path) -> None:
    doc = spacy.blank("en")("A cat sat.")
    doc.ents = [doc.char_span(2, 5, label="ANIMAL")]
    doc.cats = {"good": 1.0}
    spacy.tokens.DocBin(docs=[doc], store_user_data=True).to_disk(tmp_path / "anna.spacy")
    items = list(docbin.read(tmp_path / "anna.spacy", Options()))
    mark = Mark(id="anna-0/anna/0", spans=(Span(2, 5),), quotes=("cat",), label="animal")
    assert items[1:] == [
        Document(id="anna-0", text="A cat sat."),
        Annotator(id="anna", kind="human"),
        Annotation(
            id="anna-0/anna",
            document="anna-0",
            annotator="anna",
            protocol="anna@1",
            marks=(mark,),
            meta={"cats": {"good": 1.0}},
        ),
    ]
    assert check_study(Study.from_items(items)) == []
    assert detect_format(tmp_path / "anna.spacy") is docbin.FORMAT


def test_marks_are_written_where_a_span_categorizer_reads_them(tmp_path: Path) -> None:
    docbin.write(ITEMS, tmp_path / "t.spacy", Options())
    (doc,) = spacy.tokens.DocBin().from_disk(tmp_path / "t.spacy").get_docs(spacy.blank("en").vocab)
    assert [(span.text, span.label_, span.id_) for span in doc.spans["sc"]] == [("cat", "red", "m")]


@given(st.text("ab1. \n\té😀", max_size=12), st.sets(st.integers(0, 12)), st.sets(st.integers(0, 12)))
def test_tokens_make_up_the_text_and_begin_and_end_where_spans_do(text: str, starts: set[int], ends: set[int]) -> None:
    starts, ends = {at for at in starts if at < len(text)}, {at for at in ends if 0 < at <= len(text)}
    words, spaces = docbin.tokenise_at_spans(text, starts, ends)
    wholes = [word + " " * blank for word, blank in zip(words, spaces, strict=True)]
    assert "".join(wholes) == text
    begins = [len("".join(wholes[:n])) for n in range(len(wholes))]
    assert starts <= {*begins}
    assert ends <= {begin + len(word) for begin, word in zip(begins, words, strict=True)}


@settings(max_examples=25)
@given(studies(docbin.FORMAT.holds, MULTILINE_ALPHABET))
def test_a_docbin_gives_back_every_record(items: list[StudyItem]) -> None:
    with tempfile.TemporaryDirectory() as place:
        again = round_trip(docbin.FORMAT, items, Path(place) / "t.spacy")
    assert canonical_form(again, docbin.FORMAT.holds) == canonical_form(items, docbin.FORMAT.holds)


def test_a_missing_file_and_a_missing_library_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file"):
        list(docbin.read(tmp_path / "t.spacy", Options()))
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(FinecombError, match=r"pip install 'finecomb\[models\]'"):
        docbin.write(ITEMS, tmp_path / "t.spacy", Options())


@settings(max_examples=30)
@given(file_damages)
def test_a_damaged_docbin_is_refused(place: tuple[float, bytes, int, bool]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.spacy"
        docbin.write(ITEMS, path, Options())
        damage_file(path, place)
        read_or_reject(docbin.FORMAT, path)
