from __future__ import annotations

import csv
import json
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finecomb.core.errors import FormatError
from finecomb.core.records import Annotation, Annotator, Document, Mark, Note, Settings
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_study
from finecomb.core.tokens import whitespace_token_offsets
from finecomb.formats import convert, detect_format, gsml
from finecomb.formats.base import Options
from finecomb.protocols import load_shipped
from tests.formats.fuzzing import damage_file, file_damages, read_or_reject
from tests.strategies import PROTOCOL, canonical_form, round_trip, studies

FOXES = "The Foxes beat the Cranes 92 - 87 on Sunday . Lena Brandt had 17 points ."
RAYS = "Nobody came .\n"
HEADER = ",".join(gsml.COLUMNS)
BOTH = f"""{HEADER}
G1.txt,1,7,Sunday,10,10,10,10,NAME,Saturday,
G1.txt,2,8,17 points,4,5,15,16,NOT_CHECKABLE,,"no table, no points"
"""
SENTENCES = f"{HEADER}\nG1.txt,1,7,Sunday,10,10,,,NAME,Saturday,\n"
TOKENS = f"{HEADER}\nG1,,,,,,10,10,name,Saturday,\n"
SUNDAY = FOXES.index("Sunday")


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A folder laid out like the task's, with two texts."""
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "G1.txt").write_text(FOXES)
    (tmp_path / "texts" / "G2.txt").write_text(RAYS)
    (tmp_path / "gsml.csv").write_text(BOTH)
    return tmp_path


def only(kind: type[Any], items: Iterable[StudyItem]) -> list[Any]:
    return [item for item in items if isinstance(item, kind)]


def test_rows_become_the_gold_annotations_of_every_text(task: Path) -> None:
    at = FOXES.index("17")
    first = Mark(
        id="G1/gold/7",
        spans=(Span(SUNDAY, SUNDAY + 6),),
        quotes=("Sunday",),
        label="name",
        answers={"correction": "Saturday"},
    )
    second = Mark(
        id="G1/gold/8",
        spans=(Span(at, at + 9),),
        quotes=("17 points",),
        label="not-checkable",
        answers={"comment": "no table, no points"},
    )
    assert list(gsml.read(task / "gsml.csv", Options())) == [
        Settings(protocols=("accuracy@2",)),
        load_shipped("accuracy"),
        Document(id="G1", text=FOXES),
        Document(id="G2", text=RAYS),
        Annotator(id="gold", kind="gold"),
        Annotation(id="G1/gold", document="G1", annotator="gold", protocol="accuracy@2", marks=(first, second)),
        Annotation(id="G2/gold", document="G2", annotator="gold", protocol="accuracy@2"),
        Note(text="gsml.csv has no errors in 1 of 2 texts; they count as annotated without errors"),
    ]


@pytest.mark.parametrize("table", [SENTENCES, TOKENS, f"{HEADER}\nG1.txt,1,,,10,10,10.0,10.0,Name,Saturday,\n"])
def test_sentence_ids_and_document_ids_mean_the_same(table: str, task: Path) -> None:
    (task / "sent").mkdir()
    (task / "sent" / "mine.csv").write_text(table)
    items = list(gsml.read(task / "sent" / "mine.csv", Options()))
    assert only(Annotator, items) == [Annotator(id="mine", kind="detector")]
    (mark,) = only(Annotation, items)[0].marks
    assert (mark.spans, mark.label) == ((Span(SUNDAY, SUNDAY + 6),), "name")


def test_a_token_lookup_beside_the_file_overrules_the_rule_for_sentences(task: Path) -> None:
    (task / "gsml.csv").write_text(f"{HEADER}\nG1.txt,3,1,,1,1,,,NAME,,\n")
    with pytest.raises(FormatError, match="G1 has no such tokens"):
        list(gsml.read(task / "gsml.csv", Options()))
    (task / "token_lookup.yaml").write_text("sent_to_doc: {G1: {3: {1: 10}}}")
    annotation = only(Annotation, gsml.read(task / "gsml.csv", Options()))[0]
    assert annotation.marks[0].quotes == ("Sunday",)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("G1.txt,,1,,,,9,10,NAME,,\nG1.txt,,2,,,,10,11,WORD,,", "3: token 10 of G1 is already used by line 2"),
        (
            "G1.txt,1,1,,1,1,,,NAME,,\nG1.txt,,2,,,,4,4,WORD,,",
            "3: this row has only document IDs, but previous rows have only sentence",
        ),
        ("G1.txt,,1,Sunday,,,,,NAME,,", "2: token IDs are missing"),
        ("G1.txt,,1,Sunday,,,10,,NAME,,", "2: DOC_TOKEN_END: expected an integer, found ''"),
        ("G1.txt,,1,Sunday,,,ten,10,NAME,,", "2: DOC_TOKEN_START: expected an integer, found 'ten'"),
        ("G1.txt,,1,,,,0,1,NAME,,", "2: DOC_TOKEN_START 0, DOC_TOKEN_END 1: expected 1 <= start <= end <= 17"),
        ("G1.txt,,1,,,,17,18,NAME,,", "2: DOC_TOKEN_START 17, DOC_TOKEN_END 18: expected 1 <= start"),
        ("G1.txt,2,1,,1,9,,,NAME,,", "2: SENTENCE_ID 2, SENT_TOKEN_START 1, SENT_TOKEN_END 9: G1 has no such tokens"),
        ("G1.txt,1,1,,9,9,10,10,NAME,,", "2: sentence IDs name tokens 9 to 9, but document IDs name tokens 10 to 10"),
        ("G1.txt,,1,Monday,,,10,10,NAME,,", "2: TOKENS: found 'Monday', but tokens 10 to 10 of G1 are 'Sunday'"),
        ("G1.txt,,1,,,,10,10,NAMES,,", "2: TYPE: label 'NAMES' is not in protocol accuracy@2; did you mean 'name'"),
        ("G7.txt,,1,,,,10,10,NAME,,", "2: TEXT_ID: unknown text 'G7'; available: G1, G2"),
        ("G1.txt,,1,,,,10,10,NAME,,,", "2: this row has more cells than the header, which has 11"),
        ("G1.txt,,1,,,,10,10,NAME,a\0b,", "2: answers.*NUL character at position 1"),
    ],
)
def test_a_slip_is_named_with_its_row(rows: str, message: str, task: Path) -> None:
    (task / "gsml.csv").write_text(f"{HEADER}\n{rows}\n")
    with pytest.raises(FormatError, match=f"gsml.csv:{message}"):
        list(gsml.read(task / "gsml.csv", Options()))


def test_all_slips_are_named_together(task: Path) -> None:
    (task / "gsml.csv").write_text(f"{HEADER}\nG1,,,,,,,,NAME,,\nG1,,,,,,1,1,NAME,,\nG9,,,,,,1,1,NAME,,\n")
    with pytest.raises(FormatError, match=r"gsml.csv:2: token IDs are missing.*\n.*gsml.csv:4: TEXT_ID"):
        list(gsml.read(task / "gsml.csv", Options()))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "column 'TEXT_ID' is missing"),
        ("TEXT_ID,TIPE\n", "column 'TYPE' is missing; did you mean 'TIPE'"),
        ("TEXT_ID,TYPE\n", "columns with token IDs are missing"),
        ("TEXT_ID,GENERATED_TEXT\nG1,a\nG1.txt,b\n", "3: TEXT_ID: duplicate ID 'G1'"),
        ("TEXT_ID,GENERATED_TEXT\n,a\n", "2: id: an ID must have visible characters"),
    ],
)
def test_a_table_without_its_columns_is_refused(table: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(table)
    with pytest.raises(FormatError, match=message):
        list(gsml.read(tmp_path / "a.csv", Options()))


def test_texts_that_are_nowhere_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "gsml.csv").write_text(BOTH)
    with pytest.raises(FormatError, match=r"no texts next to it .*name them with texts"):
        list(gsml.read(tmp_path / "gsml.csv", Options()))
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError, match="contains no text files"):
        list(gsml.read(tmp_path / "gsml.csv", Options(texts=tmp_path / "empty")))


def test_games_give_documents_with_their_links(tmp_path: Path) -> None:
    games = tmp_path / "games.csv"
    games.write_text(f"TEXT_ID,HOME_NAME,GENERATED_TEXT,BREF_BOX\nG1,Foxes,{FOXES},https://example.org/1\n")
    assert detect_format(games).name == "gsml"
    meta = {"home_name": "Foxes", "bref_box": "https://example.org/1"}
    data = {"links": {"Box score": "https://example.org/1"}}  # meta is not shown to annotators, data is
    assert list(gsml.read(games, Options())) == [Document(id="G1", text=FOXES, data=data, meta=meta)]
    (tmp_path / "gsml.csv").write_text(BOTH)
    items = list(gsml.read(tmp_path / "gsml.csv", Options()))
    assert only(Document, items) == [Document(id="G1", text=FOXES, data=data, meta=meta)]


def test_box_scores_become_data_and_what_people_wrote_a_reference(task: Path) -> None:
    scores = task / "scores.jsonl"
    game = {"home_name": "Foxes", "box_score": {"PTS": {"0": "17"}}}
    written = {"summary": ["The", "Foxes", "won"], "cleaned_text": "The Foxes won .", "detokenized_text": "No."}
    scores.write_text(json.dumps({"shared_task_text_id": "G1", **game, **written}))
    items = list(gsml.read(task / "gsml.csv", Options(data=scores)))
    first, second = only(Document, items)
    assert first == Document(id="G1", text=FOXES, data=game, references=("The Foxes won .",))
    assert second.data is None
    assert items[4] == Note(text=f"{scores} has no record for 1 of 2 texts")
    alone = list(gsml.read(scores, Options()))
    assert alone == [Document(id="G1", text="", data=game, references=("The Foxes won .",))]
    scores.write_text(json.dumps({"home_name": "Foxes", "box_score": {}, "shared_task_text": "G1"}))
    assert detect_format(scores).name == "gsml"
    assert [document.id for document in only(Document, gsml.read(scores, Options()))] == ["scores-1"]


def test_box_scores_and_links_beside_the_marks_are_used_without_being_named(task: Path) -> None:
    game = {"home_name": "Foxes", "vis_name": "Cranes", "box_score": {}}
    (task / "shared_task.jsonl").write_text(json.dumps({"shared_task_text_id": "G1", **game}))
    (task / "games.csv").write_text("TEXT_ID,HOME_NAME,GENERATED_TEXT,CALENDAR\nG1,Foxes,x,https://example.org/c\n")
    first, second = only(Document, gsml.read(task / "gsml.csv", Options()))
    assert first.data == {**game, "links": {"Calendar": "https://example.org/c"}}
    assert second.data is None


def test_the_records_of_rotowire_itself_have_what_a_person_wrote_as_their_text(tmp_path: Path) -> None:
    game = {"home_name": "Foxes", "vis_name": "Cranes", "box_score": {"PTS": {"0": "17"}}}
    (tmp_path / "test.json").write_text(json.dumps([{**game, "summary": ["The", "Foxes", "won"]}] * 2))
    assert detect_format(tmp_path / "test.json").name == "gsml"
    documents = only(Document, gsml.read(tmp_path / "test.json", Options()))
    assert documents[1] == Document(id="test-2", text="The Foxes won", data=game)


def test_the_option_names_the_annotator_and_gold_is_gold(task: Path) -> None:
    mine = task / "run-1.csv"
    mine.write_text(TOKENS)
    assert only(Annotator, gsml.read(mine, Options(annotator="ours"))) == [Annotator(id="ours", kind="detector")]
    assert only(Annotator, gsml.read(mine, Options(annotator="gold"))) == [Annotator(id="gold", kind="gold")]
    both = only(Annotator, gsml.read(task, Options()))
    assert [(each.id, each.kind) for each in both] == [("gold", "gold"), ("run-1", "detector")]
    with pytest.raises(FormatError, match="contains marks of 2 annotators, one per file, but annotator names only one"):
        list(gsml.read(task, Options(annotator="ours")))


def test_ids_that_are_there_twice_stay_apart(task: Path) -> None:
    (task / "gsml.csv").write_text(f"{HEADER}\nG1,,7,,,,1,1,WORD,,\nG1,,7,,,,2,2,,,\n")
    annotation = only(Annotation, gsml.read(task / "gsml.csv", Options()))[0]
    assert [(mark.id, mark.label) for mark in annotation.marks] == [("G1/gold/7", "word"), ("G1/gold/7.2", None)]


# --- writing -----------------------------------------------------------------------------------------------------


@st.composite
def markups(draw: st.DrawFn) -> list[StudyItem]:
    """A study whose marks are whole tokens that do not overlap."""
    items = draw(studies(gsml.FORMAT.holds))
    texts = {item.id: item.text for item in items if isinstance(item, Document)}
    return [
        _on_tokens(draw, item, texts[item.document]) if isinstance(item, Annotation) else _as_detector(item)
        for item in items
    ]


def _on_tokens(draw: st.DrawFn, annotation: Annotation, text: str) -> Annotation:
    offsets = whitespace_token_offsets(text).tolist()
    edges = sorted(draw(st.sets(st.integers(0, len(offsets)), max_size=6)))
    marks = []
    for mark, first, last in zip(annotation.marks, edges[::2], edges[1::2], strict=False):
        span = Span(offsets[first][0], offsets[last - 1][1])
        marks.append(mark.model_copy(update={"spans": (span,), "quotes": (span.extract(text),)}))
    return annotation.model_copy(update={"marks": tuple(marks)})


def _as_detector(item: StudyItem) -> StudyItem:
    return item.model_copy(update={"kind": "detector"}) if isinstance(item, Annotator) else item


@settings(max_examples=40)
@given(markups())
def test_a_folder_gives_back_texts_and_marks(items: list[StudyItem]) -> None:
    with tempfile.TemporaryDirectory() as place:
        again = round_trip(gsml.FORMAT, items, Path(place) / "task", Options(protocol=PROTOCOL))
    assert canonical_form(again, gsml.FORMAT.holds) == canonical_form(items, gsml.FORMAT.holds)


def test_what_was_read_is_written_as_it_was(task: Path) -> None:
    assert convert(task / "gsml.csv", task / "again.csv", to="gsml")[1:] == [
        (
            "the accuracy shared task's GSML cannot store the following, which were omitted: annotator kind (1), "
            "protocol (1)"
        )
    ]
    assert (task / "again.csv").read_bytes() == (task / "gsml.csv").read_bytes()


def test_a_text_that_begins_with_a_byte_order_mark_keeps_it(tmp_path: Path) -> None:
    items = [*_one_mark("\ufeffone two", 0, 4)]
    again = round_trip(gsml.FORMAT, items, tmp_path / "task")
    assert only(Document, again)[0].text == "\ufeffone two"


def test_sentence_ids_are_left_out_where_a_mark_crosses_sentences(tmp_path: Path) -> None:
    gsml.write(_one_mark("a . b c", 0, 5), tmp_path / "out.csv", Options())
    with (tmp_path / "out.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert [row[name] for name in (*gsml.SENTENCE_ID_COLUMNS, *gsml.DOCUMENT_ID_COLUMNS)] == ["", "", "", "1", "3"]


def _one_mark(text: str, start: int, end: int, annotator: str = "a") -> list[StudyItem]:
    mark = Mark(id=f"{annotator}-m", spans=(Span(start, end),), quotes=(text[start:end],), label="word")
    return [
        load_shipped("accuracy"),
        Document(id="d", text=text),
        Annotator(id=annotator, kind="llm"),
        Annotation(id=f"d-{annotator}", document="d", annotator=annotator, protocol="accuracy@2", marks=(mark,)),
    ]


@pytest.mark.parametrize(
    ("items", "name", "message"),
    [
        (
            _one_mark("It ended 92-87.", 9, 11),
            "task",
            r"mark 'a-m': '92' at \[9, 11\) .* the complete tokens are '92-87.' at \[9, 15\)",
        ),
        (_one_mark("a  b", 1, 2), "task", "it covers no token"),
        (
            [*_one_mark("a b", 0, 1), *_one_mark("a b", 0, 3, "b")[2:]],
            "out.csv",
            "one annotator, but there are 'a' and 'b'",
        ),
        ([*_one_mark("a b", 0, 1), Document(id="e", text="")], "task", "'a' has not annotated 1 documents, e.g. 'e'"),
        ([Document(id="a/b", text="")], "task", "document ID 'a/b' cannot be a file name"),
        (_one_mark("a b", 0, 1, "../x"), "task", "annotator ID '../x' cannot be a file name"),
        (_one_mark("a b", 0, 1, "games"), "task", "annotator 'games': the file name games.csv is reserved"),
    ],
)
def test_what_gsml_would_change_is_refused(items: list[StudyItem], name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=message):
        gsml.write(items, tmp_path / name, Options())


def test_marks_that_share_a_token_are_refused(tmp_path: Path) -> None:
    items = _one_mark("a b", 0, 3)
    annotation = items[-1]
    assert isinstance(annotation, Annotation)
    other = Mark(id="other", spans=(Span(2, 3),), quotes=("b",), label="name")
    items[-1] = annotation.model_copy(update={"marks": (*annotation.marks, other)})
    with pytest.raises(FormatError, match=r"mark 'other' shares token 2 of d .* merge the marks or remove one"):
        gsml.write(items, tmp_path / "task", Options())


# --- damaged files -----------------------------------------------------------------------------------------------

cells = st.one_of(
    st.sampled_from(["", "G1", "G1.txt", "1", "2", "10", "17", "NAME", "1e9", "٣", "-1"]), st.text(max_size=5)
)


@settings(max_examples=40)
@given(file_damages, st.sampled_from([BOTH, SENTENCES]))
def test_a_damaged_file_is_read_or_refused(place: tuple[float, bytes, int, bool], table: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gsml.csv"
        path.write_text(table)
        (path.parent / "texts").mkdir()
        (path.parent / "texts" / "G1.txt").write_text(FOXES)
        (path.parent / "token_lookup.yaml").write_text("sent_to_doc: {G1: {1: {10: 10}}}")
        damage_file(path, place)
        gsml.sniff(path)
        read_or_reject(gsml.FORMAT, path)
        path.write_text(table)
        damage_file(path.parent / "token_lookup.yaml", place)
        read_or_reject(gsml.FORMAT, path)


def test_documents_that_hold_box_scores_are_not_taken_for_the_task_s_file(tmp_path: Path) -> None:
    game = {"home_name": "Foxes", "box_score": {}}
    (tmp_path / "task.jsonl").write_text(json.dumps({"shared_task_text_id": "G1", **game}))
    (tmp_path / "ours.jsonl").write_text(json.dumps({"id": "G1", "text": "Won.", "data": game}))
    assert detect_format(tmp_path / "task.jsonl").name == "gsml"
    assert detect_format(tmp_path / "ours.jsonl").name == "jsonl"


@settings(max_examples=40)
@given(st.lists(st.lists(cells, min_size=11, max_size=11), max_size=3))
def test_any_cells_are_read_or_refused(rows: list[list[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gsml.csv"
        with path.open("w", encoding="utf-8", errors="surrogatepass", newline="") as file:
            csv.writer(file).writerows([gsml.COLUMNS, *rows])
        (path.parent / "texts").mkdir()
        (path.parent / "texts" / "G1.txt").write_text(FOXES)
        read_or_reject(gsml.FORMAT, path)


# --- the task's own data -----------------------------------------------------------------------------------------


def spans_of(path: Path, options: Options | None = None) -> set[tuple[Any, ...]]:
    study = Study.from_items(gsml.read(path, options or Options()))
    assert check_study(study) == []
    assert len(study.documents) == len(study.annotations) == 60
    return {(each.document, *mark.spans, mark.label) for each in study.iter_annotations() for mark in each.marks}


def test_the_rule_for_sentences_reproduces_the_tasks_lookup(data: Path) -> None:
    folder = data / "accuracy_shared_task"
    lookup = gsml.TokenLookup(folder / "token_lookup.yaml")
    assert len(lookup.table) == 60
    for text, sentences in lookup.table.items():
        known = {(sentence, token): id for sentence, tokens in sentences.items() for token, id in tokens.items()}
        assert gsml.TokenLayout.from_text((folder / "texts" / f"{text}.txt").read_text()).ids == known


def test_the_gold_standard_has_the_published_counts(data: Path) -> None:
    folder = data / "accuracy_shared_task"
    gold = spans_of(folder / "gsml.csv", Options(data=folder / "shared_task.jsonl"))
    counts = {"number": 474, "word": 334, "name": 317, "context": 51, "not-checkable": 37, "other": 1}
    assert Counter(row[-1] for row in gold) == counts
    for other in ("gsml_doc_based.csv", "gsml_sent_based.csv"):
        assert spans_of(folder / "example_submissions" / other) == gold


def test_submissions_have_the_published_counts(data: Path) -> None:
    folder = data / "accuracy_shared_task"
    submission = spans_of(folder / "example_submissions" / "submission.csv")
    assert len(submission) == 571
    for other in ("submission_doc_based.csv", "submission_sent_based.csv"):
        assert spans_of(folder / "example_submissions" / other) == submission
    assert len(spans_of(folder / "laval_algorithm_train" / "submission.csv")) == 1911


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("submission_overlapping.csv", ":80: token 190 of S008 is already used by line 79"),
        ("submission_malformed.csv", ":3: this row has only document IDs"),
        ("submission_blank.csv", ":2: token IDs are missing"),
    ],
)
def test_submissions_that_the_task_rejects_are_refused(name: str, message: str, data: Path) -> None:
    with pytest.raises(FormatError, match=message):
        list(gsml.read(data / "accuracy_shared_task" / "example_submissions" / name, Options()))


def test_box_scores_join_all_texts_and_the_files_come_back_byte_for_byte(data: Path, tmp_path: Path) -> None:
    folder = data / "accuracy_shared_task"
    items = list(gsml.read(folder / "gsml.csv", Options(data=folder / "shared_task.jsonl")))
    documents = only(Document, items)
    assert all(document.data and len(document.references) == 1 for document in documents)
    assert all("summary" not in document.data and "cleaned_text" not in document.data for document in documents)
    gsml.write(items, tmp_path / "task", Options())
    rows, again = ([*csv.reader(open_csv(path))] for path in (folder / "gsml.csv", tmp_path / "task" / "gsml.csv"))
    assert sorted(rows) == sorted(again)
    for document in documents:
        name = f"texts/{document.id}.txt"
        assert (folder / name).read_bytes() == (tmp_path / "task" / name).read_bytes()


def open_csv(path: Path) -> list[str]:
    return path.read_text().splitlines()
