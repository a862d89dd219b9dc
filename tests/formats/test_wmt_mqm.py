from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finecomb.core.errors import FormatError
from finecomb.core.records import Annotation, Annotator, Document, Mark, Note
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_study
from finecomb.formats import detect_format, wmt_mqm
from finecomb.formats.base import Options
from finecomb.protocols import load_shipped
from tests.formats.fuzzing import damage_file, file_damages, read_or_reject
from tests.golden.measures import MQM_SCORES
from tests.strategies import PLAIN_ALPHABET, PROTOCOL, canonical_form, round_trip, studies

HEAD = "system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity\tcomment\n"
TABLE = (
    HEAD
    + 'one\ttalk\t1\t7\tr1\tEin "Hund".\tA <v>"cat"</v>.\tAccuracy/Mistranslation\tMajor\tDog!\n'
    + 'one\ttalk\t1\t7\tr1\t<v>Ein</v> "Hund".\tA "cat".\tAccuracy/Omission\tMinor\t\n'
    + "two\ttalk\t1\t7\tr2\tEin Hund.\tA dog.\tNo-error\tNo-error\t\n"
    + "two\ttalk\t2\t8\tr2\tJa, ja.\t<v>Yes</v>, <v>yes</v>.\tStyle/Awkward\tminor\t\n"
)


def read(path: Path, text: str = "") -> list[StudyItem]:
    if text:
        path.write_text(text, encoding="utf-8", newline="")
    return list(wmt_mqm.read(path, Options()))


def only(items: list[StudyItem], kind: type[Any]) -> list[Any]:
    return [item for item in items if isinstance(item, kind)]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_table_gives_segments_raters_and_marks(end: str, mark: str, tmp_path: Path) -> None:
    items = read(tmp_path / "t.tsv", mark + TABLE.replace("\n", end))
    meta = {"model": "one", "doc": "talk", "doc_id": "1", "seg_id": "7"}
    assert items[:1] == [load_shipped("mqm")]
    assert only(items, Document)[0] == Document(
        id="one/talk/7", text='A "cat".', context={"source": 'Ein "Hund".'}, meta=meta
    )
    assert only(items, Annotator) == [Annotator(id="r1", kind="human"), Annotator(id="r2", kind="human")]
    first, second, third = only(items, Annotation)
    assert first == Annotation(
        id="one/talk/7/r1",
        document="one/talk/7",
        annotator="r1",
        protocol="mqm@2",
        marks=(
            Mark(
                id="one/talk/7/r1/0",
                spans=(Span(2, 7),),
                quotes=('"cat"',),
                label="accuracy/mistranslation",
                answers={"comment": "Dog!", "severity": "major"},
            ),
            Mark(
                id="one/talk/7/r1/1",
                spans=(Span(0, 3, "source"),),
                quotes=("Ein",),
                label="accuracy/omission",
                answers={"severity": "minor"},
            ),
        ),
    )
    assert second.marks == ()
    assert third.marks[0].spans == (Span(0, 3), Span(5, 8))
    assert check_study(Study.from_items(items)) == []
    assert detect_format(tmp_path / "t.tsv") is wmt_mqm.FORMAT


@pytest.mark.parametrize(
    ("text", "plain", "spans", "odd"),
    [
        ("a <v>b</v> <v>c</v>", "a b c", [(2, 3), (4, 5)], 0),
        ("a <v>bc", "a bc", [(2, 4)], 1),
        ("a</v> b", "a b", [], 1),
        ("a<v></v>b", "ab", [(1, 1)], 0),
        ("<v>a<v>b</v></v>", "ab", [(0, 2), (1, 2)], 0),
        ("", "", [], 0),
    ],
)
def test_tags_become_spans(text: str, plain: str, spans: list[tuple[int, int]], odd: int) -> None:
    assert wmt_mqm.TaggedText.parse(text) == wmt_mqm.TaggedText(plain, tuple(Span(*each) for each in spans), odd)


def test_odd_tags_and_errors_without_words_are_counted(tmp_path: Path) -> None:
    rows = "s\td\t1\t1\tr\tx\ta <v>b\tOther\tMajor\t\ns\td\t1\t1\tr\tx\ta b\tNon-translation!\tMajor\t\n"
    items = read(tmp_path / "t.tsv", HEAD + rows)
    marks = only(items, Annotation)[0].marks
    assert [(mark.spans, mark.unlocated) for mark in marks] == [((Span(2, 3),), ""), ((), "the file marks no words")]
    assert [note.text[:8] for note in only(items, Note)] == ["1 tags <", "1 errors"]
    assert [load_shipped("mqm").mark_weight(mark) for mark in marks] == [5, 25]


ROW = ["s", "d", "1", "1", "r", "x", "y", "Other", "Major", ""]


def with_cell(index: int, cell: str) -> str:
    return "\t".join([*ROW[:index], cell, *ROW[index + 1 :]]) + "\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.tsv: the file has no rows; expected the tab-separated columns system, doc"),
        ("system\tdoc\nx\ty\n", "t.tsv:1: column 'seg_id' is missing; available: system, doc"),
        (HEAD + with_cell(0, ""), "t.tsv:2: column 'system' is empty"),
        (HEAD + with_cell(7, "Acuracy/Omission"), "t.tsv:2: column 'category': label 'Acuracy/Omission' is not in "),
        (HEAD + with_cell(8, "Majr"), "t.tsv:2: column 'severity': 'Majr' is not in mqm@2; did you mean 'major'?"),
        (
            HEAD + with_cell(6, "y") + with_cell(6, "z"),
            "t.tsv:3: column 'target': the text differs from an earlier row of seg",
        ),
        (HEAD + with_cell(9, "a\tb"), "t.tsv:2: this row has more cells than the header, which has 10"),
        (HEAD + with_cell(6, "\0"), "t.tsv:2: text: contains a NUL character at position 0"),
    ],
)
def test_a_slip_is_named_with_line_and_column(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(FormatError) as caught:
        read(tmp_path / "t.tsv")
    assert message in str(caught.value)


def test_what_a_table_cannot_hold_is_refused(tmp_path: Path) -> None:
    work = Annotation(id="x", document="d", annotator="r", protocol="mqm@2")
    with pytest.raises(FormatError, match=r"document 'd': text: contains '\\t', which a WMT table cannot store"):
        wmt_mqm.write([Document(id="d", text="a\tb"), work], tmp_path / "t.tsv", Options())


def as_segments(items: list[StudyItem]) -> list[StudyItem]:
    """The same study with documents called as WMT calls them."""
    ids = {item.id: f"sys/doc/{n}" for n, item in enumerate(items) if isinstance(item, Document)}
    changed: list[StudyItem] = []
    for item in items:
        if isinstance(item, Document):
            seg = ids[item.id].rpartition("/")[2]
            meta = {"model": "sys", "doc": "doc", "doc_id": "1", "seg_id": seg}
            context = {"source": item.context.get("prompt", "")}
            changed.append(item.model_copy(update={"id": ids[item.id], "meta": meta, "context": context}))
        elif isinstance(item, Annotation):
            marks = tuple(_on_source(mark) for mark in item.marks)
            changed.append(item.model_copy(update={"document": ids[item.document], "marks": marks}))
        else:
            changed.append(item)
    return changed


def _on_source(mark: Mark) -> Mark:
    spans = [Span(span.start, span.end, "source" if span.part == "prompt" else span.part) for span in mark.spans]
    return mark.model_copy(update={"spans": tuple(spans)})


@settings(max_examples=60)
@given(studies(wmt_mqm.FORMAT.holds, PLAIN_ALPHABET).map(as_segments))
def test_a_table_gives_back_every_record(items: list[StudyItem]) -> None:
    with tempfile.TemporaryDirectory() as place:
        again = round_trip(wmt_mqm.FORMAT, items, Path(place) / "t.tsv", Options(protocol=PROTOCOL))
    assert canonical_form(again, wmt_mqm.FORMAT.holds) == canonical_form(items, wmt_mqm.FORMAT.holds)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 9), st.text(max_size=5)), max_size=4), file_damages)
def test_any_table_is_read_or_refused(cells: list[tuple[int, str]], place: tuple[float, bytes, int, bool]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.tsv"
        text = TABLE + "".join(with_cell(index, cell) for index, cell in cells)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        read_or_reject(wmt_mqm.FORMAT, path)
        damage_file(path, place)
        read_or_reject(wmt_mqm.FORMAT, path)


@pytest.mark.long
def test_the_ted_talks_have_their_counts_and_scores(data: Path, tmp_path: Path) -> None:
    path = data / "wmt_mqm_ted_ende" / "mqm_ted_ende.tsv"
    items = read(path)
    study = Study.from_items(items)
    assert (len(study.documents), len(study.annotations), len(study.annotators)) == (14 * 529, 14 * 529, 4)
    assert len(study.marks) == 8435 - 4404
    assert check_study(study) == []
    scores = defaultdict(list)
    for annotation in only(items, Annotation):
        system = annotation.document.partition("/")[0]
        scores[system].append(sum(load_shipped("mqm").mark_weight(mark) or 0 for mark in annotation.marks))
    assert {system: round(sum(own) / 529, 2) for system, own in scores.items()} == MQM_SCORES
    wmt_mqm.write(items, tmp_path / "t.tsv", Options())
    before, after = ({*each.read_text(encoding="utf-8").split("\n")} for each in (path, tmp_path / "t.tsv"))
    assert len(before - after) == 1  # the row whose <v> has no partner
