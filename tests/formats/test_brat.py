from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finecomb.core.errors import FinecombError, FormatError
from finecomb.core.protocol import Label, Protocol
from finecomb.core.records import Annotation, Annotator, Antecedents, Document, Mark, Note
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_study
from finecomb.formats import brat, detect_format
from finecomb.formats.base import Options
from finecomb.protocols import load_shipped
from tests.formats.fuzzing import damage_file, file_damages, read_or_reject
from tests.strategies import MULTILINE_ALPHABET, PLAIN_ALPHABET, canonical_form, round_trip, studies

TEXT = "😀 Eva has a cat.\nEva has no pets."
ANN = """T1\tContradiction 17 33\tEva has no pets.
T2\tAntecedent 2 16\tEva has a cat.
R1\tAntecedent Arg1:T1 Arg2:T2\t
A1\tSeverity T1 3
A2\tSure T1
#1\tAnnotatorNotes T1\tA cat is
#2\tAnnotatorNotes T1\ta pet.
T3\tRed 0 1;10 11\t😀 a
T4\tRed 6 16;17 24\thas a cat. Eva has
T5\tRed 6 24\thas a cat. Eva has
T6\tRed 5 8\tcat
T7\tRed 2 5\tdog
E1\tRed:T3 Antecedent:T4
M1\tSure E1
N1\tReference T1 Wiki:1\tcat
*\tEquiv T3 T4
#3\tAnnotationError T3\tbad
"""


def folder(place: Path, files: dict[str, str]) -> Path:
    root = place / "corpus"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())
    return root


def annotation_of(items: list[StudyItem]) -> Annotation:
    return next(item for item in items if isinstance(item, Annotation))


def test_a_small_folder_becomes_these_records(tmp_path: Path) -> None:
    items = list(brat.read(folder(tmp_path, {"anna/doc.txt": TEXT, "anna/doc.ann": ANN}), Options()))
    assert items[1:3] == [Document(id="doc", text=TEXT), Annotator(id="anna", kind="human")]
    annotation = annotation_of(items)
    assert (annotation.id, annotation.annotator) == ("doc/anna", "anna")
    first, *others = annotation.marks
    assert first == Mark(
        id="doc/anna/T1",
        spans=(Span(17, 33),),
        quotes=("Eva has no pets.",),
        label="contradiction",
        answers={"severity": 3, "sure": True, "comment": "A cat is\na pet."},
        antecedents=Antecedents(spans=(Span(2, 16),), quotes=("Eva has a cat.",)),
    )
    assert [(mark.id[-2:], mark.spans) for mark in others] == [
        ("T3", (Span(0, 1), Span(10, 11))),
        ("T4", (Span(6, 24),)),
        ("T5", (Span(6, 24),)),
        ("T6", (Span(12, 15),)),
        ("T7", ()),
    ]
    assert others[0].antecedents == Antecedents(spans=(Span(6, 24),), quotes=("has a cat.\nEva has",))
    assert others[0].answers == {"sure": True}
    assert others[0].meta == {"AnnotationError": "bad"}
    assert annotation.meta == {"brat": ["N1\tReference T1 Wiki:1\tcat", "*\tEquiv T3 T4"]}
    assert [item.text for item in items if isinstance(item, Note)] == [
        "1 marks were located by their quote, because their offsets do not match",
        "1 marks could not be located; they are kept without spans",
    ]
    assert check_study(Study.from_items(items)) == []


def test_folders_are_annotators_and_texts_may_lie_above(tmp_path: Path) -> None:
    files = {"doc.txt": "one two", "anna/doc.ann": "T1\tRed 0 3\tone\n", "ben/doc.ann": "", "later.txt": "x"}
    root = folder(tmp_path, files | {"README.txt": "about it", "annotation.conf": "[entities]"})
    items = list(brat.read(root, Options()))
    assert [item.id for item in items if isinstance(item, Document)] == ["doc", "later"]
    assert [(item.annotator, len(item.marks)) for item in items if isinstance(item, Annotation)] == [
        ("anna", 1),
        ("ben", 0),
    ]


def test_with_an_annotator_folders_are_part_of_the_documents_ids(tmp_path: Path) -> None:
    root = folder(tmp_path, {"a/doc.txt": "one", "a/doc.ann": "", "b/doc.txt": "two", "b/doc.ann": ""})
    items = list(brat.read(root, Options(annotator="anna")))
    assert [item.id for item in items if isinstance(item, Document)] == ["a/doc", "b/doc"]
    assert [item for item in items if isinstance(item, Annotator)] == [Annotator(id="anna", kind="human")]


@pytest.mark.parametrize("ann", ["T1\tRed 1 4\tone\r\n", "T1\tRed 0 3\tone\n"])
def test_a_byte_order_mark_may_count_or_not(ann: str, tmp_path: Path) -> None:
    root = folder(tmp_path, {"doc.txt": "\ufeffone one\r\n", "doc.ann": ann})
    assert annotation_of(list(brat.read(root, Options()))).marks[0].spans == (Span(0, 3),)


def test_answers_take_the_form_that_the_protocol_asks_for(tmp_path: Path) -> None:
    ann = "T1\tOff_prompt 0 3\tone\nA1\tseverity T1 somewhat\n#1\tAnnotatorNotes T1\tWhy?\n"
    root = folder(tmp_path, {"doc.txt": "one", "doc.ann": ann})
    (mark,) = annotation_of(list(brat.read(root, Options(protocol=load_shipped("scarecrow"))))).marks
    assert mark.label == "off-prompt"
    assert mark.answers == {"severity": 2, "explanation": "Why?"}


# --- round trips -------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(studies(brat.FORMAT.holds, alphabet=PLAIN_ALPHABET))
def test_a_study_written_and_read_has_the_same_records(items: list[StudyItem]) -> None:
    with tempfile.TemporaryDirectory() as place:
        again = round_trip(brat.FORMAT, items, Path(place) / "corpus")
        assert brat.sniff(Path(place) / "corpus")
    assert canonical_form(again, brat.FORMAT.holds) == canonical_form(items, brat.FORMAT.holds)
    assert check_study(Study.from_items(again)) == []


def marked(items: list[StudyItem]) -> dict[tuple[str, str], list[tuple[Any, ...]]]:
    """Which visible characters each mark covers."""
    texts = {item.id: item.text for item in items if isinstance(item, Document)}
    return {
        (item.document, item.annotator): [
            (
                mark.label,
                [
                    at
                    for span in mark.spans
                    for at in range(span.start, span.end)
                    if texts[item.document][at] not in "\r\n"
                ],
            )
            for mark in item.marks
        ]
        for item in items
        if isinstance(item, Annotation)
    }


@settings(max_examples=40)
@given(studies(frozenset({"mark several spans", "annotation without marks"}), alphabet=MULTILINE_ALPHABET))
def test_line_breaks_inside_spans_are_cut_and_joined(items: list[StudyItem]) -> None:
    with tempfile.TemporaryDirectory() as place:
        again = round_trip(brat.FORMAT, items, Path(place) / "corpus")
    assert marked(again) == marked(items)
    assert canonical_form(again)["documents"] == canonical_form(items)["documents"]


def test_a_span_across_lines_is_written_in_fragments(tmp_path: Path) -> None:
    mark = Mark(id="m", spans=(Span(0, 7),), quotes=("one\ntwo",), label="a/b", answers={"why": "two words", "n": 2})
    items: list[StudyItem] = [
        Protocol(name="p", version="1", title="P", summary="P", labels=(Label(name="a/b"),)),
        Document(id="a/doc: 1", text="one\ntwo"),
        Annotator(id="anna", kind="human"),
        Annotation(id="x", document="a/doc: 1", annotator="anna", protocol="p@1", marks=(mark,)),
    ]
    again = round_trip(brat.FORMAT, items, tmp_path / "corpus")
    written = (tmp_path / "corpus" / "anna" / "a%2Fdoc%3A 1.ann").read_text(encoding="utf-8")
    assert written == "T1\ta__b 0 3;4 7\tone two\n#1\twhy T1\ttwo words\nA1\tn T1 2\n"
    assert canonical_form(again, brat.FORMAT.holds) == canonical_form(items, brat.FORMAT.holds)
    assert "a__b" in (tmp_path / "corpus" / "annotation.conf").read_text(encoding="utf-8")


def test_two_annotations_of_one_text_by_one_person_are_refused(tmp_path: Path) -> None:
    whose = {"document": "d", "annotator": "anna"}
    items: list[StudyItem] = [
        Document(id="d", text="x"),
        Annotation(id="1", **whose, protocol="p@1"),
        Annotation(id="2", **whose, protocol="q@1"),
    ]
    with pytest.raises(FinecombError, match="'anna' has two of 'd'; write one protocol at a time"):
        brat.write(items, tmp_path / "corpus", Options())


# --- damaged files -----------------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(file_damages, st.sampled_from(["anna/doc.txt", "anna/doc.ann"]))
def test_a_damaged_folder_is_read_or_refused(place: tuple[float, bytes, int, bool], name: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = folder(Path(scratch), {"anna/doc.txt": TEXT, "anna/doc.ann": ANN})
        damage_file(root / name, place)
        read_or_reject(brat.FORMAT, root)


odd_words = st.sampled_from(
    ["T1", "T2", "E1", "A1", "R1", "#1", "Red", "Arg1:T1", "Arg2:T2", ":", "0 3", "9 2", "\t", " ", "x", "Antecedent"]
)


@settings(max_examples=100)
@given(st.lists(st.lists(odd_words, max_size=6).map("".join), max_size=5))
def test_odd_lines_are_read_or_refused(lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        ann = "T1\tRed 0 3\tone\nT2\tRed 4 7\ttwo\n".replace("T", "T9") + "\n".join(lines)
        read_or_reject(brat.FORMAT, folder(Path(scratch), {"doc.txt": "one two", "doc.ann": ann}))


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"doc.txt": "x", "doc.ann": "T1 Red 0 1 x\n"},
            "doc.ann:1: expected 'T1<tab>Type start end<tab>text', found 'T1 Red",
        ),
        (
            {"doc.txt": "x", "doc.ann": "\nfoo\n"},
            "doc.ann:2: expected a line that begins with T, A, M, R, E, N, # or *, found 'foo'",
        ),
        (
            {"doc.txt": "x", "doc.ann": "T1\tR 0 1\tx\nT1\tR 0 1\tx\n"},
            "doc.ann:2: duplicate ID T1; IDs must be unique in a file",
        ),
        ({"doc.ann": ""}, "doc.ann: the text doc.txt is missing; expected it next to the .ann file"),
        ({"a/d.txt": "x", "a/d.ann": "", "b/d.txt": "y", "b/d.ann": ""}, "d.txt: differs from"),
        ({"doc.txt": "x\0", "doc.ann": ""}, "doc.txt: text: contains a NUL character at position 1; remove it"),
        ({"annotation.conf": ""}, "contains no .txt file; expected texts with .ann files next to them"),
    ],
)
def test_a_slip_is_named_with_its_place(files: dict[str, str], said: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError) as error:
        list(brat.read(folder(tmp_path, files), Options()))
    assert said in str(error.value)


@pytest.mark.parametrize("name", [" anna", "anna\udcff"])
def test_a_folder_that_cannot_be_an_id_is_refused(name: str, tmp_path: Path) -> None:
    root = tmp_path / "corpus"
    (root / name).mkdir(parents=True)
    for ending in ("txt", "ann"):
        (root / name / f"doc.{ending}").touch()
    with pytest.raises(FormatError):
        list(brat.read(root, Options()))


def test_it_is_known_by_its_files(tmp_path: Path) -> None:
    root = folder(tmp_path, {"anna/doc.txt": "x", "anna/doc.ann": ""})
    assert detect_format(root).name == "brat"
    assert not brat.sniff(tmp_path / "nowhere")
    with pytest.raises(FormatError, match="not a folder"):
        list(brat.read(root / "anna" / "doc.txt", Options()))
