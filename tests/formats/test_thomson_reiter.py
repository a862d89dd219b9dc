from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finecomb.core.errors import FormatError
from finecomb.core.records import Annotation, Annotator, Document, Mark, Note, QualificationRecord, Settings
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.core.study_checks import check_study
from finecomb.formats import detect_format, thomson_reiter
from finecomb.formats.base import Options
from finecomb.protocols import load_shipped
from tests.formats.fuzzing import damage_file, file_damages, read_or_reject

STORY = "The Foxes won 92-87 on Sunday.   Lena Brandt 's 17 points led all.   The Foxes won 92-87 on Sunday."
SECOND = "Lena Brandt's 17 points led all."
FIRST = "The Foxes won 92-87 on Sunday."

Sheets = Mapping[str, list[list[Any]]]
TEXTS: list[list[Any]] = [
    ["Generated Text Information", None, None, None, None, None, None, "URLs"],
    ["ID", "Stage", "System", "Line", "Game Date", "text", "num_chars", "bref url"],
    ["Q", "Qualifying", "copy", 0, None, "Try this.", 9, None],
    ["S1", "Experiment", "copy", 7, "2020-02-03", STORY, len(STORY), "https://example.org/1"],
    ["S2", "Experiment", "plan", 8, None, "All is well.", 12, None],
]
PEOPLE: list[list[Any]] = [
    ["WorkerId", "Notes", "Bonus Score (% vs ours)", "Answer.Q1Answer", "Answer.Q2Answer", "Q3 Text", "Passed"],
    ["T2", None, 80, "female", "30_60", "I watch it", "Y"],
    ["T1", "kind", None, "other", None, None, None],
    ["F1", None, 20, "male", "30_60", None, "N"],
]
ERRORS: list[list[Any]] = [
    ["sheet", "sentence_id", "sentence_text", "error", "correction", "context", "name", "context", "T1", "T2"],
    ["S1", 2, SECOND, "Lena Brant", "Ewa Sato", None, 2, 0, "name", "#"],
    ["S1", 3, FIRST, 87, 88.0, "92-87", 1, 0, None, "not checkable"],
    ["S1", 1, FIRST, "Friday", None, None, 1, 0, "Name", None],
]


def book(path: Path, sheets: Sheets) -> Path:
    made = openpyxl.Workbook()
    made.remove(made.worksheets[0])
    for title, rows in sheets.items():
        sheet = made.create_sheet(title)
        for row in rows:
            sheet.append(row)
    made.save(path)
    return path


def study_book(folder: Path, **changed: list[list[Any]]) -> Path:
    sheets = {"generated_text_info": TEXTS, "participant_info": PEOPLE, "annotations": ERRORS} | changed
    return book(folder / "participants_and_annotations.xlsx", sheets)


def test_rows_become_marks_of_those_who_made_them(tmp_path: Path) -> None:
    path = study_book(tmp_path)
    assert detect_format(path).name == "thomson-reiter"
    lena, score = STORY.index("Lena"), STORY.rindex("87")
    by_t1 = (
        _mark("S1/T1/2", (lena, lena + 11), "name", "2", {"correction": "Ewa Sato"}, sentence="2", quoted="Lena Brant"),
        Mark(
            id="S1/T1/4",
            spans=(),
            quotes=("Friday",),
            label="name",
            item="4",
            unlocated="the quote is not in its sentence",
            meta={"sentence": "1"},
        ),
    )
    by_t2 = (
        _mark("S1/T2/2", (lena, lena + 11), None, "2", {"correction": "Ewa Sato"}, sentence="2", quoted="Lena Brant"),
        _mark("S1/T2/3", (score, score + 2), "not-checkable", "3", {"correction": "88"}, sentence="3", context="92-87"),
    )
    passed = QualificationRecord(protocol="accuracy@2", score=80, passed=True)
    link = {"bref url": "https://example.org/1"}
    assert list(thomson_reiter.read(path, Options())) == [
        Settings(protocols=("accuracy@2",)),
        load_shipped("accuracy"),
        Document(id="Q", text="Try this.", meta={"model": "copy", "stage": "Qualifying", "line": "0"}),
        Document(
            id="S1",
            text=STORY,
            meta={"model": "copy", "stage": "Experiment", "line": "7", "date": "2020-02-03", "links": link},
        ),
        Document(id="S2", text="All is well.", meta={"model": "plan", "stage": "Experiment", "line": "8"}),
        Annotator(id="T1", kind="human", survey={"gender": "other"}, meta={"notes": "kind"}),
        Annotator(
            id="T2",
            kind="human",
            survey={"gender": "woman", "age_group": "30_60", "basketball": "I watch it"},
            qualification=passed,
        ),
        Note(text="1 people who only took the qualification test are omitted"),
        Note(text="1 of 3 quotes are not verbatim in their text; they were matched to the most similar words"),
        Note(text="1 of 3 quotes could not be located in their text (rows 4)"),
        Annotation(id="S1/T1", document="S1", annotator="T1", protocol="accuracy@2", marks=by_t1),
        Annotation(id="S2/T1", document="S2", annotator="T1", protocol="accuracy@2"),
        Annotation(id="S1/T2", document="S1", annotator="T2", protocol="accuracy@2", marks=by_t2),
        Annotation(id="S2/T2", document="S2", annotator="T2", protocol="accuracy@2"),
    ]


def test_rows_in_text_order_tell_equal_words_apart(tmp_path: Path) -> None:
    """The first `Foxes` was taken for every row, also for one that comes after an error behind it."""
    story = "The Foxes beat the Cranes, and the Foxes led."
    text = ["S1", "Experiment", "copy", 7, None, story, len(story), None]
    rows = [["S1", 1, story, quote, None, None, 1, 0, "name", None] for quote in ("Cranes", "Foxes")]
    path = study_book(tmp_path, generated_text_info=[*TEXTS[:3], text], annotations=[ERRORS[0], *rows])
    marks = [m for item in thomson_reiter.read(path, Options()) if isinstance(item, Annotation) for m in item.marks]
    assert [mark.spans[0].start for mark in marks] == [story.index("Cranes"), story.rindex("Foxes")]
    assert "ambiguous" not in marks[1].meta


def test_what_the_order_of_rows_leaves_open_is_said(tmp_path: Path) -> None:
    story = "The Foxes beat the Cranes, and the Foxes led."
    text = ["S1", "Experiment", "copy", 7, None, story, len(story), None]
    row = ["S1", 1, story, "Foxes", None, None, 1, 0, "name", None]
    path = study_book(tmp_path, generated_text_info=[*TEXTS[:3], text], annotations=[ERRORS[0], row])
    items = list(thomson_reiter.read(path, Options()))
    (mark,) = (mark for item in items if isinstance(item, Annotation) for mark in item.marks)
    assert (mark.spans[0].start, mark.meta["ambiguous"]) == (story.index("Foxes"), 2)
    notes = [item.text for item in items if isinstance(item, Note)]
    assert any(note.startswith("0 of 1 quotes were located with certainty (0.0%); 1 occur several") for note in notes)


@pytest.mark.parametrize(
    ("context", "correction", "chosen"),
    [
        ("second occurrence", None, 1),
        ("1st instance", None, 0),
        ("and five assists", None, 1),
        ("a mere five rebounds", None, 0),  # not in the text as it stands
        (None, "zero assists", 1),
        (None, "zero", None),
        ("third occurrence", None, None),  # there is no third
    ],
)
def test_context_and_correction_tell_equal_words_apart(
    tmp_path: Path, context: str | None, correction: str | None, chosen: int | None
) -> None:
    """`a paltry 63%` beside `second occurrence` and a correction that repeats the next word were not used."""
    story = "He had five rebounds and five assists."
    text = ["S1", "Experiment", "copy", 7, None, story, len(story), None]
    row = ["S1", 1, story, "five", correction, context, 1, 0, "number", None]
    path = study_book(tmp_path, generated_text_info=[*TEXTS[:3], text], annotations=[ERRORS[0], row])
    (mark,) = (m for item in thomson_reiter.read(path, Options()) if isinstance(item, Annotation) for m in item.marks)
    places = [story.index("five"), story.rindex("five")]
    assert mark.spans[0].start == places[chosen or 0]
    assert mark.meta.get("ambiguous") == (2 if chosen is None else None)


def _mark(id: str, place: tuple[int, int], label: str | None, item: str, answers: dict[str, str], **meta: str) -> Mark:
    span = Span(*place)
    return Mark(id=id, spans=(span,), quotes=(span.extract(STORY),), label=label, item=item, answers=answers, meta=meta)


def placed(folder: Path, rows: list[list[Any]], options: Options | None = None) -> list[int]:
    """Where the rows' marks begin."""
    path = study_book(folder, annotations=[["sheet", "sentence_id", "sentence_text", "error", "T1"], *rows])
    items = thomson_reiter.read(path, options or Options())
    marks = [mark for item in items if isinstance(item, Annotation) for mark in item.marks]
    return [mark.spans[0].start if mark.spans else -1 for mark in marks]


def test_of_equal_sentences_the_one_with_the_number_is_meant(tmp_path: Path) -> None:
    rows = [["S1", number, FIRST, "Sunday", "name"] for number in (1, 3)]
    assert placed(tmp_path, rows) == [STORY.index("Sunday"), STORY.rindex("Sunday")]


def test_the_kth_row_with_a_quote_takes_its_kth_occurrence(tmp_path: Path) -> None:
    sentence = "Lena Brandt 's 17 points led all."
    rows = [["S1", 2, sentence, "l", "word"]] * 3
    first, second = (STORY.index("led"), STORY.index("all."))
    found = placed(tmp_path, rows)
    assert found == [first, second + 1, second + 2]
    assert placed(tmp_path, rows, Options(repeats="first")) == [first] * 3


@pytest.mark.parametrize(
    ("sentence", "quote", "start"),
    [
        ("LENA BRANDT's 17 points  led all.", "all", STORY.index("all")),  # other case and spaces
        ("Lena Brandts 17 point led them all.", "17", STORY.index("17")),  # copied with slips
        (SECOND, "whole sentence", STORY.index("Lena")),
        ("Nothing of the kind was ever written here.", "17", -1),
        ("", "17", -1),
    ],
)
def test_sentences_are_found_though_they_were_changed(tmp_path: Path, sentence: str, quote: str, start: int) -> None:
    assert placed(tmp_path, [["S1", 2, sentence, quote, "word"]]) == [start]


def test_the_gold_standard_takes_places_and_rows_from_the_annotations(tmp_path: Path) -> None:
    study_book(tmp_path)
    rows: list[list[Any]] = [
        ["sheet", "sentence_id", "sentence_text", "error", "correction", "category"],
        ["S1", 3, FIRST, 87, 88, "number"],
        ["S1", 1, FIRST, "Sunday", None, "no type"],
    ]
    path = book(tmp_path / "gold.xlsx", {"GSML": rows})
    assert detect_format(path).name == "thomson-reiter"
    items = list(thomson_reiter.read(path, Options()))
    first, second = (item for item in items if isinstance(item, Annotation))
    assert [(mark.label, mark.item, mark.spans[0].start) for mark in first.marks] == [
        ("number", "3", STORY.rindex("87")),
        (None, None, STORY.index("Sunday")),
    ]
    assert second.marks == ()
    assert [item for item in items if isinstance(item, Annotator)] == [Annotator(id="gold", kind="gold")]
    (tmp_path / "participants_and_annotations.xlsx").unlink()
    with pytest.raises(
        FormatError, match=r"its texts are in participants_and_annotations\.xlsx, which is not in the same folder"
    ):
        list(thomson_reiter.read(path, Options()))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"annotations": [["name"]]}, "sheet 'annotations': no row begins with 'sheet'"),
        ({"annotations": [ERRORS[0], ["S9", 1, "a", "a"]]}, "annotations row 2: unknown text 'S9'"),
        ({"annotations": [ERRORS[0], ["S1", 1, "a", None]]}, "annotations row 2: 'error' is empty"),
        (
            {"annotations": [ERRORS[0], ["S1", 1, FIRST, "Foxes", None, None, 0, 0, "nmae"]]},
            "annotations row 2: label 'nmae' is not in protocol accuracy@2; did you mean 'name'",
        ),
        ({"generated_text_info": [*TEXTS, TEXTS[3]]}, "generated_text_info row 6: duplicate ID 'S1'"),
    ],
)
def test_a_slip_is_named_with_sheet_and_row(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=message):
        list(thomson_reiter.read(study_book(tmp_path, **changed), Options()))


def test_a_missing_sheet_or_file_is_named(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", {"generated_text_info": TEXTS, "annotation": ERRORS})
    with pytest.raises(FormatError, match="has no sheet 'annotations'; did you mean 'annotation'"):
        list(thomson_reiter.read(path, Options()))
    with pytest.raises(FormatError, match="no such file"):
        list(thomson_reiter.read(tmp_path / "b.xlsx", Options()))
    assert not thomson_reiter.sniff(path)
    assert not thomson_reiter.sniff(tmp_path)


@settings(max_examples=25)
@given(file_damages)
def test_a_damaged_workbook_is_read_or_refused(place: tuple[float, bytes, int, bool]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = study_book(Path(folder))
        damage_file(path, place)
        thomson_reiter.sniff(path)
        read_or_reject(thomson_reiter.FORMAT, path)


cells = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["S1", "ID", "sheet", "name", "Foxes", FIRST, "_x0000_", "😀"]),
)
tables = st.lists(st.lists(cells, max_size=9), max_size=3)


@settings(max_examples=25)
@given(tables, tables, tables)
def test_any_cells_are_read_or_refused(
    texts: list[list[Any]], people: list[list[Any]], errors: list[list[Any]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = study_book(
            Path(folder),
            generated_text_info=TEXTS + texts,
            participant_info=PEOPLE + people,
            annotations=ERRORS + errors,
        )
        read_or_reject(thomson_reiter.FORMAT, path)


# --- the paper's own data ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study(data: Path) -> Study:
    path = data / "no_licence_stated" / "thomson_reiter_2020" / "participants_and_annotations.xlsx"
    return Study.from_items(thomson_reiter.read(path, Options()))


def test_the_annotations_have_the_recomputed_counts(study: Study) -> None:
    assert check_study(study) == []
    assert (len(study.documents), len(study.annotations), len(study.marks)) == (22, 63, 1255)
    assert Counter(study.marks["annotator"]) == {"T1": 406, "T2": 395, "T3": 454}
    models = Counter(str(document.meta["model"]) for document in study.iter_documents() if document.id != "Q")
    assert models == {"wiseman": 7, "puduppully": 7, "rebuffel": 7}


def test_errors_grouped_by_item_reproduce_the_papers_table(study: Study) -> None:
    labels = defaultdict(list)
    for item, label in zip(study.marks["item"], study.marks["label"], strict=True):
        labels[item].append(label)
    assert Counter(map(len, labels.values())) == {3: 301, 2: 117, 1: 118}
    errors = [given for given in labels.values() if len(given) >= 2]
    agreed = [Counter(given).most_common(1)[0] for given in errors]
    types = Counter(label if votes >= 2 else "split" for label, votes in agreed)
    published = {"number": 184, "name": 105, "word": 80, "context": 19, "not-checkable": 6, "other": 3, "split": 21}
    assert types == published


def test_all_but_one_of_the_quotes_are_placed(study: Study) -> None:
    unlocated = study.marks.filter(study.marks["spans"].list.len() == 0)
    assert set(unlocated["item"]) == {"61"}
    assert study.notes[1].startswith("519 of 536 quotes were located with certainty (96.8%); 16 occur several times")
    assert study.notes[2:] == (
        "37 of 536 quotes are not verbatim in their text; they were matched to the most similar words",
        "1 of 536 quotes could not be located in their text (rows 61)",
    )


def test_marks_that_the_shared_task_has_elsewhere_say_that_they_are_ambiguous(data: Path) -> None:
    """The later markup of the same stories has each word's number: three quotes are on another of equal words there."""
    path = data / "no_licence_stated" / "thomson_reiter_2020" / "gold_standard_markup.xlsx"
    gold = Study.from_items(thomson_reiter.read(path, Options()))
    places = {mark.id: mark for item in gold.items() if isinstance(item, Annotation) for mark in item.marks}
    elsewhere = ("S08/gold/293", "S09/gold/33", "S10/gold/322")
    assert [places[id].meta.get("ambiguous") for id in elsewhere] == [2, 2, 2]
    text = next(document.text for document in gold.iter_documents() if document.id == "S17")
    assert places["S17/gold/143"].spans[0].start == text.index("paltry 63") + 7  # its context is "a paltry 63%"
    assert sum("ambiguous" in mark.meta for mark in places.values()) == 11


def test_the_gold_standard_has_the_recomputed_counts(data: Path) -> None:
    path = data / "no_licence_stated" / "thomson_reiter_2020" / "gold_standard_markup.xlsx"
    gold = Study.from_items(thomson_reiter.read(path, Options()))
    assert check_study(gold) == []
    assert (len(gold.annotations), len(gold.marks)) == (21, 411)
    counts = {"number": 184, "name": 105, "word": 80, "context": 19, None: 14, "not-checkable": 6, "other": 3}
    assert Counter(gold.marks["label"]) == counts
    assert gold.marks["item"].n_unique() == 411
