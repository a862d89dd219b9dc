from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings

from finecomb.core.records import Annotation, Annotator, Antecedents, Document, Mark, Note, Segment
from finecomb.core.span import Span, covered_token_mask
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_study
from finecomb.core.tokens import whitespace_token_offsets
from finecomb.formats import detect_format, snac
from finecomb.formats.base import Options
from tests.formats.fuzzing import damage_file, file_damages, first_line_error, mutated_json, read_or_reject
from tests.strategies import PROTOCOL, canonical_form, round_trip, studies

SUMMARY: dict[str, Any] = {
    "book_6b7": {
        "0": {
            "text": "Ada finds a key. Ada hides the key.",
            "errors": [
                {"span": "Ada", "error_type": "CharE", "votes": 3},
                {"span": "Ada", "error_type": "CharE", "votes": 1},
                {"span": "Ada", "error_type": "CorefE", "votes": 1},
                {"span": "", "error_type": "SceneE", "votes": 1},
                {"span": "Bob", "error_type": "CharE", "votes": 4},
            ],
        },
        "1": {
            "text": "She never saw a key.",
            "errors": [
                {
                    "span": "never saw a key",
                    "error_type": "InconE",
                    "votes": 2,
                    "antecedants": ["a key", "hides the key. She never", "a lock"],
                },
                {"span": "a key", "error_type": "RepE", "votes": 1, "antecedants": ["nowhere"]},
            ],
        },
    }
}


def written(place: Path, value: Any = SUMMARY) -> Path:
    path = place / "snac.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def mark(number: int, start: int, quote: str, label: str, votes: int, **more: Any) -> Mark:
    spans = (Span(start, start + len(quote)),) if start >= 0 else ()
    return Mark(id=f"book_6b7/crowd/{number}", spans=spans, quotes=(quote,), label=label, votes=votes, **more)


def test_a_small_file_becomes_these_records(tmp_path: Path) -> None:
    _, annotator, document, annotation, *notes = snac.read(written(tmp_path), Options())
    assert annotator == Annotator(id="crowd", kind="pooled")
    assert document == Document(
        id="book_6b7",
        text="Ada finds a key. Ada hides the key.\nShe never saw a key.",
        segments=(Segment(start=0, end=35), Segment(start=36, end=56)),
        meta={"model": "book_6b", "story": "book7"},
    )
    assert isinstance(annotation, Annotation)
    assert (annotation.readers, annotation.protocol) == (3, "snac@2")
    across = Antecedents(spans=(Span(10, 15), Span(21, 45)), quotes=("a key", "hides the key.\nShe never"))
    nowhere = Antecedents(spans=(), quotes=("nowhere",), unlocated="not in the text")
    assert annotation.marks == (
        mark(0, 0, "Ada", "char", 3),
        mark(1, 17, "Ada", "char", 1),
        mark(2, 0, "Ada", "coref", 1),
        mark(3, -1, "", "scene", 1, unlocated="the span is empty", meta={"segment": 0}),
        mark(4, -1, "Bob", "char", 4, unlocated="quote not found in its segment", meta={"segment": 0}),
        mark(5, 40, "never saw a key", "incon", 2, antecedents=across, meta={"antecedents": ["a lock"]}),
        mark(6, 50, "a key", "rep", 1, antecedents=nowhere),
    )
    assert [note.text for note in notes if isinstance(note, Note)] == [
        "2 quotes are empty or not in their segment; their marks are kept without spans",
        "3 spans occur more than once in their segment; a span's k-th repetition was matched to its k-th occurrence",
        "2 antecedents are not in the text",
        "1 errors have more votes than the 3 annotators",
    ]


def test_every_repetition_goes_to_the_first_occurrence_when_asked(tmp_path: Path) -> None:
    study = Study.from_items(snac.read(written(tmp_path), Options(repeats="first")))
    assert study.spans["start"].to_list()[:3] == [0, 0, 0]


def test_writing_gives_back_the_file(tmp_path: Path) -> None:
    items = list(snac.read(written(tmp_path), Options()))
    snac.write(items, tmp_path / "again.json", Options())
    assert json.loads((tmp_path / "again.json").read_text(encoding="utf-8")) == SUMMARY


def test_votes_of_several_annotators_are_added_and_gold_has_none(tmp_path: Path) -> None:
    document = Document(id="d", text="one two")
    people = [Annotator(id="anna", kind="human"), Annotator(id="ben", kind="human"), Annotator(id="gold", kind="gold")]
    words = ("one", "two"), ("two",), ("two",)
    items: list[StudyItem] = [PROTOCOL, document, *people]
    for person, quotes in zip(people, words, strict=True):
        marks = tuple(
            Mark(
                id=f"{person.id}/{quote}",
                spans=(Span(at := document.text.index(quote), at + 3),),
                quotes=(quote,),
                label="red",
            )
            for quote in quotes
        )
        items.append(Annotation(id=person.id, document="d", annotator=person.id, protocol=PROTOCOL.id, marks=marks))
    snac.write(items, tmp_path / "snac.json", Options())
    errors = json.loads((tmp_path / "snac.json").read_text())["d"]["0"]["errors"]
    assert errors == [
        {"span": "one", "error_type": "red", "votes": 1},
        {"span": "two", "error_type": "red", "votes": 2},
    ]
    snac.write(
        [item for item in items if getattr(item, "annotator", "gold") == "gold"], tmp_path / "gold.json", Options()
    )
    errors = json.loads((tmp_path / "gold.json").read_text())["d"]["0"]["errors"]
    assert errors == [{"span": "two", "error_type": "red", "votes": 1}]


# --- round trips -------------------------------------------------------------------------------------------------


def pooled(items: list[StudyItem]) -> list[StudyItem]:
    """The study as SNaC could have released it: one pooled annotator, each quote marked at its first places."""
    result: list[StudyItem] = []
    for item in items:
        match item:
            case Annotator():
                result += [Annotator(id="crowd", kind="pooled")] if item.id == "ann-0" else []
            case Annotation() if item.annotator == "ann-0":
                marks = tuple(each.model_copy(update={"votes": each.votes or 1}) for each in item.marks)
                result.append(item.model_copy(update={"annotator": "crowd", "readers": 3, "marks": marks}))
            case Document():
                whole = (Segment(start=0, end=len(item.text)),)
                result.append(item.model_copy(update={"segments": whole}))
            case Annotation():
                pass
            case _:
                result.append(item)
    return result


def without_places(items: list[StudyItem]) -> dict[str, Any]:
    """What a file without offsets keeps: quotes, labels, votes and texts."""
    study = canonical_form(items, snac.FORMAT.holds)
    for annotation in study["annotations"]:
        annotation["marks"] = Counter(
            (mark["quotes"], mark["label"], mark["votes"], bool(mark["antecedents"])) for mark in annotation["marks"]
        )
    return study


@settings(max_examples=40)
@given(studies(snac.FORMAT.holds - {"document segments", "mark unlocated"}).map(pooled))
def test_a_pooled_study_keeps_its_texts_quotes_labels_and_votes(items: list[StudyItem]) -> None:
    with tempfile.TemporaryDirectory() as place:
        again = round_trip(snac.FORMAT, items, Path(place) / "snac.json", Options(protocol=PROTOCOL))
    assert without_places(again) == without_places(items)


def test_segments_that_are_not_whole_lines_do_not_change_the_text(tmp_path: Path) -> None:
    document = Document(id="d", text="one two", segments=(Segment(start=0, end=3), Segment(start=3, end=7)))
    (again,) = (each for each in round_trip(snac.FORMAT, [document], tmp_path / "s.json") if isinstance(each, Document))
    assert again.text == "one two"


def test_segments_with_one_blank_between_them_stay_segments(tmp_path: Path) -> None:
    document = Document(id="d", text="one two", segments=(Segment(start=0, end=3), Segment(start=4, end=7)))
    (again,) = (each for each in round_trip(snac.FORMAT, [document], tmp_path / "s.json") if isinstance(each, Document))
    assert [(part.start, part.end) for part in again.segments] == [(0, 3), (4, 7)]
    assert again.text == "one\ntwo"


# --- damaged files -----------------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(file_damages)
def test_a_damaged_file_is_read_or_refused(place: tuple[float, bytes, int, bool]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder))
        damage_file(path, place)
        snac.sniff(path)
        read_or_reject(snac.FORMAT, path)


@settings(max_examples=150)
@given(mutated_json(SUMMARY))
def test_a_file_of_another_shape_is_read_or_refused(value: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        read_or_reject(snac.FORMAT, written(Path(folder), value))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([{}], "expected an object with summaries by ID, found a list"),
        ({"a": {"1": {}}}, "a: expected segment '0', found '1'; segments must be numbered from 0 in order"),
        ({"a": {"0": {"errors": []}}}, "a: segment 0: 'text' is missing"),
        ({"a": {"0": {"text": "x", "errors": [{"span": "x", "votes": 1, "error_type": "CharX"}]}}}, "did you mean"),
        (
            {"a": {"0": {"text": "x", "errors": [{"span": "x", "error_type": "CharE"}]}}},
            "errors[0]: 'votes' is missing",
        ),
        ({"a": {"0": {"text": "a\0", "errors": []}}}, "NUL"),
    ],
)
def test_a_slip_is_named_with_its_place(value: Any, said: str, tmp_path: Path) -> None:
    assert said in first_line_error(snac.FORMAT, written(tmp_path, value))


def test_it_is_known_by_its_first_characters(tmp_path: Path) -> None:
    assert detect_format(written(tmp_path)).name == "snac"
    assert not snac.sniff(tmp_path)
    assert not snac.sniff(written(tmp_path, [SUMMARY]))


# --- the release -------------------------------------------------------------------------------------------------

MODELS = ["book_175b", "book_6b", "tripod"]
TYPES = ["char", "scene", "ref", "incon", "coref", "gram", "rep"]


@pytest.fixture(scope="module")
def release(data: Path) -> Study:
    return Study.from_items(snac.read(data / "snac" / "SNaC_data.json", Options()))


def by_model(study: Study, column: pl.Expr, frame: pl.DataFrame) -> list[int]:
    model = pl.col("document").str.extract(r"^(book_175b|book_6b|tripod)").alias("model")
    counts = dict(frame.group_by(model).agg(column.alias("n")).iter_rows())
    return [counts[name] for name in MODELS]


def test_the_release_has_the_counts_of_its_datasheet(release: Study) -> None:
    documents = list(release.iter_documents())
    assert [sum(each.meta["model"] == name for each in documents) for name in MODELS] == [55, 55, 40]
    segments = Counter[str]()
    for each in documents:
        segments[str(each.meta["model"])] += len(each.segments)
    assert [segments[name] for name in MODELS] == [1112, 733, 621]
    assert by_model(release, pl.col("votes").sum(), release.marks) == [3074, 2847, 2864]
    assert by_model(release, pl.len(), release.marks) == [1969, 1913, 1763]
    votes = release.marks["votes"].value_counts().sort("votes")["count"].to_list()
    assert votes == [3483, 1205, 936, 21]
    labels = {name: by_model(release, pl.len(), release.marks.filter(pl.col("label") == name)) for name in TYPES}
    assert [labels[name][0] for name in TYPES] == [562, 531, 458, 138, 132, 95, 53]
    assert [labels[name][1] for name in TYPES] == [585, 410, 348, 73, 235, 223, 39]
    assert [labels[name][2] for name in TYPES] == [575, 345, 340, 156, 223, 96, 28]


def test_the_release_has_these_segments_with_a_coherence_error(release: Study) -> None:
    starts = {each.id: [segment.start for segment in each.segments] for each in release.iter_documents()}
    found = set()
    for annotation in release.iter_annotations():
        for each in annotation.marks:
            if each.label in TYPES[:4]:
                begins = starts[annotation.document]
                at = each.spans[0].start if each.spans else begins[int(str(each.meta["segment"]))]
                found.add((annotation.document, sum(start <= at for start in begins)))
    frame = pl.DataFrame({"document": [document for document, _ in found]})
    assert by_model(release, pl.len(), frame) == [838, 552, 511]


def test_the_release_is_sound_but_for_what_is_known(release: Study) -> None:
    problems = check_study(release)
    assert {problem.level for problem in problems} == {"warning"}
    kinds = Counter(problem.message.split(": ")[-1].split(",")[0] for problem in problems)
    assert kinds == {"has 4 votes": 21, "has an antecedent": 2}
    assert [note.split(" ")[0] for note in release.notes] == ["8", "714", "21"]
    antecedents = [
        each.antecedents for one in release.iter_annotations() for each in one.marks if each.antecedents is not None
    ]
    assert sum(len(each.spans) for each in antecedents) == 603


def test_the_release_is_written_as_it_was(release: Study, data: Path, tmp_path: Path) -> None:
    snac.write(release.items(), tmp_path / "again.json", Options())

    def ordered(path: Path) -> Any:
        value = json.loads(path.read_text(encoding="utf-8"))
        for summary in value.values():
            for segment in summary.values():
                for error in segment["errors"]:
                    error.get("antecedants", []).sort()
        return value

    assert ordered(tmp_path / "again.json") == ordered(data / "snac" / "SNaC_data.json")


@pytest.mark.parametrize(
    ("repeats", "figure"),
    [
        (
            "first",
            {"char": [0.0257, 0.0283, 0.0252], "scene": [0.2141, 0.1865, 0.1763], "coref": [0.0092, 0.0165, 0.0083]},
        ),
        (
            "kth",
            {"char": [0.0257, 0.0284, 0.0252], "scene": [0.2141, 0.1865, 0.1763], "coref": [0.0097, 0.0173, 0.0095]},
        ),
    ],
)
def test_the_release_gives_figure_4_right(data: Path, repeats: Any, figure: dict[str, list[float]]) -> None:
    study = Study.from_items(snac.read(data / "snac" / "SNaC_data.json", Options(repeats=repeats)))
    rows = []
    for document in study.iter_documents():
        tokens = whitespace_token_offsets(document.text)
        marks = [each for annotation in study.annotations_on(document.id) for each in annotation.marks]
        for label in figure:
            spans = [span for each in marks if each.label == label for span in each.spans]
            rows.append((document.id, label, float(covered_token_mask(spans, tokens).mean())))
    frame = pl.DataFrame(rows, schema=["document", "label", "share"], orient="row")
    for label, expected in figure.items():
        found = by_model(study, pl.col("share").mean(), frame.filter(pl.col("label") == label))
        assert found == pytest.approx(expected, abs=5e-5)
