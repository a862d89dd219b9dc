from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from finecomb.core.errors import FormatError
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_study
from finecomb.formats import detect_format, webanno
from finecomb.formats.base import Options
from tests.formats.fuzzing import damage_file, file_damages, read_or_reject
from tests.strategies import MULTILINE_ALPHABET, canonical_form, round_trip, studies

TSV = """\
#FORMAT=WebAnno TSV 3.3
#T_SP=de.tudarmstadt.ukp.dkpro.core.api.lexmorph.type.pos.POS|PosValue
#T_SP=webanno.custom.Error|kind|sure
#T_RL=webanno.custom.Link|role|BT_webanno.custom.Error


#Text=😀 A big cat.
1-1\t0-2\t😀\tSYM\t_\t_\t_\t_\t
1-2\t3-4\tA\tDET\t*[2]\tyes[2]\t_\t_\t
1-3\t5-8\tbig\tADJ\tsize\\_x[1]|*[2]\t_[1]|yes[2]\tr\t1-4\t
1-4\t9-12\tcat\tNOUN\tsize\\_x[1]\t_[1]\t_\t_\t
1-4.1\t9-10\tc\t_\tletter\t_\t_\t_\t
1-5\t12-13\t.\tPUN\t_\t_\t_\t_\t

#Text=Yes.
2-1\t15-18\tYes\t_\tok\\|ay\tno\t_\t_\t
2-2\t18-19\t.\t_\t_\t_\t_\t_\t
"""


def read(path: Path, text: str, **options: Any) -> list[StudyItem]:
    path.write_text(text, encoding="utf-8", newline="")
    return list(webanno.read(path, Options(**options)))


def only(items: list[StudyItem], kind: type[Any]) -> list[Any]:
    return [item for item in items if isinstance(item, kind)]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_file_gives_its_text_and_the_spans_of_its_custom_layers(end: str, tmp_path: Path) -> None:
    items = read(tmp_path / "cat.tsv", TSV.replace("\n", end), annotator="me")
    assert only(items, Document) == [Document(id="cat", text="😀 A big cat.  Yes.")]
    assert only(items, Annotator) == [Annotator(id="me", kind="human")]
    marks = only(items, Annotation)[0].marks
    assert [(mark.label, mark.quotes[0], mark.spans[0].start) for mark in marks] == [
        ("yes", "A big", 2),
        ("size-x", "big cat", 4),
        ("letter", "c", 8),
        ("ok-ay", "Yes", 14),
    ]
    assert marks[3].meta == {"sure": "no", "layer": "webanno.custom.Error"}
    assert check_study(Study.from_items(items)) == []
    assert detect_format(tmp_path / "cat.tsv") is webanno.FORMAT


def test_the_user_says_which_feature_is_the_label(tmp_path: Path) -> None:
    marks = only(read(tmp_path / "cat.tsv", TSV, columns={"label": "kind"}), Annotation)[0].marks
    assert [mark.label for mark in marks] == [None, "size-x", "letter", "ok-ay"]


HEAD = "#FORMAT=WebAnno TSV 3.3\n#T_SP=webanno.custom.Mark|label\n\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.tsv: contains no layers and no sentences; expected a WebAnno TSV file"),
        ("#FORMAT=WebAnno TSV 2\n", "t.tsv:1: expected '#FORMAT=WebAnno TSV 3...', found '#FORMAT=WebAnno TSV 2'"),
        (HEAD + "1-1\t0-1\ta\t_\n", "t.tsv:4: found a token before the first '#Text='"),
        (
            HEAD + "#Text=a\n1-1\t0-1\ta\n",
            "t.tsv:5: expected a token: number, start-end, word and 1 tab-separated cells",
        ),
        (
            HEAD + "#Text=a\n1-1\t0-x\ta\t_\n",
            "t.tsv:5: expected a token: number, start-end, word and 1 tab-separated cells",
        ),
        (HEAD + "#Text=a\n1-1\t0-2\ta\t_\n", "t.tsv:5: token 0-2 is not within the text or splits a character"),
        (HEAD + "#Text=😀\n1-1\t0-1\ta\t_\n", "t.tsv:5: token 0-1 is not within the text or splits a character"),
        (HEAD + "#Text=a\n1-1\t0-1\tb\t_\n", "t.tsv:5: found 'b', but the text has 'a' at these offsets"),
    ],
)
def test_a_slip_is_named_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        read(tmp_path / "t.tsv", text)
    assert message in str(caught.value)


def shrunk(items: list[StudyItem]) -> list[StudyItem]:
    """The same study with marks as WebAnno can hold them: made of words, not of white space."""
    texts = {item.id: item.text for item in items if isinstance(item, Document)}
    return [_shrunk(item, texts[item.document]) if isinstance(item, Annotation) else item for item in items]


def _shrunk(annotation: Annotation, text: str) -> Annotation:
    marks = []
    for mark in annotation.marks:
        (quote,) = mark.quotes
        if quote.strip():
            start = mark.spans[0].start + len(quote) - len(quote.lstrip())
            span = Span(start, start + len(quote.strip()))
            marks.append(Mark(id=mark.id, spans=(span,), quotes=(span.extract(text),), label=mark.label))
    return annotation.model_copy(update={"marks": tuple(marks)})


@settings(max_examples=60)
@given(studies(webanno.FORMAT.holds, MULTILINE_ALPHABET + "\\_[]*").map(shrunk))
def test_a_project_gives_back_every_record(items: list[StudyItem]) -> None:
    with tempfile.TemporaryDirectory() as place:
        again = round_trip(webanno.FORMAT, items, Path(place) / "t")
        assert detect_format(Path(place) / "t") is webanno.FORMAT
    assert canonical_form(again, webanno.FORMAT.holds) == canonical_form(items, webanno.FORMAT.holds)


def test_odd_ids_make_sound_file_names(tmp_path: Path) -> None:
    documents: list[StudyItem] = [Document(id=id, text="a") for id in ("a/b", "..", "ü ü", "x.txt", "CON:*")]
    again = round_trip(webanno.FORMAT, documents, tmp_path / "t")
    assert {item.id for item in only(again, Document)} == {item.id for item in only(documents, Document)}


@settings(max_examples=150)
@given(file_damages)
def test_a_damaged_file_is_read_or_refused(place: tuple[float, bytes, int, bool]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.tsv"
        path.write_text(TSV, encoding="utf-8")
        damage_file(path, place)
        read_or_reject(webanno.FORMAT, path)
