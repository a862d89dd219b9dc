from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from finecomb.core.errors import FormatError
from finecomb.core.records import Annotation, Annotator, Antecedents, Document, Mark, Note
from finecomb.core.span import Span, covered_token_mask
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_study
from finecomb.core.tokens import whitespace_token_offsets
from finecomb.formats import detect_format, snac, thresh
from finecomb.formats.base import Options
from finecomb.protocols import load_shipped
from tests.formats.fuzzing import damage_file, file_damages, first_line_error, mutated_json, read_or_reject
from tests.strategies import PROTOCOL, canonical_form, round_trip, studies

ITEMS: list[dict[str, Any]] = [
    {
        "id": 1,
        "metadata": {"system": "small-1", "rater": "r1"},
        "source": "The tide table.",
        "target": "High tide is at noon. Low tide is at noon.",
        "edits": [
            {
                "id": 0,
                "category": "self_contradiction",
                "output_idx": [[22, 42], [0, 21]],
                "annotation": {"self_contradiction_type": "a lot", "explanation": "Both at noon."},
            },
            {
                "id": 1,
                "category": "needs_google",
                "output_idx": [[16, 20]],
                "annotation": {"needs_google_type": "minor"},
            },
        ],
    },
    {"id": 1, "source": "", "target": "Nothing is wrong here.", "edits": []},
    {"id": 3, "target": "Not read yet."},
]
STEPS: list[dict[str, Any]] = [
    {
        "source": "Ein Hund.",
        "target": "A a cat.",
        "edits": [
            {
                "category": "word_choice",
                "input_idx": [[4, 8]],
                "output_idx": [[4, 7]],
                "annotation": {"word_choice_type": {"val": "wrong_animal", "wrong_animal": "somewhat"}, "sure": True},
            },
            {"category": "extra", "output_idx": [[0, 1], [2, 3]], "annotation": None, "votes": 2},
            {"category": "fluency", "annotation": {"fluency_type": "doubling"}},
            {"output_idx": [[8, 8]]},
        ],
    }
]


def written(place: Path, value: Any = ITEMS) -> Path:
    path = place / "sample.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_a_small_file_becomes_these_records(tmp_path: Path) -> None:
    protocol, *rest = thresh.read(written(tmp_path), Options())
    assert protocol == load_shipped("scarecrow")
    mine = {"document": "1", "annotator": "r1", "protocol": "scarecrow@2"}
    first = Mark(
        id="1/r1/0",
        spans=(Span(22, 42),),
        quotes=("Low tide is at noon.",),
        label="self-contradiction",
        answers={"severity": 3, "explanation": "Both at noon."},
        antecedents=Antecedents(spans=(Span(0, 21),), quotes=("High tide is at noon.",)),
    )
    second = Mark(id="1/r1/1", spans=(Span(16, 20),), quotes=("noon",), label="needs-google", answers={"severity": 1})
    assert rest == [
        Document(
            id="1",
            text="High tide is at noon. Low tide is at noon.",
            context={"prompt": "The tide table."},
            meta={"system": "small-1", "model": "small-1"},
        ),
        Annotator(id="r1", kind="human"),
        Annotation(id="1/r1", **mine, marks=(first, second)),
        Document(id="1-2", text="Nothing is wrong here."),
        Annotator(id="annotator", kind="human"),
        Annotation(id="1-2/annotator", document="1-2", annotator="annotator", protocol="scarecrow@2"),
        Document(id="3", text="Not read yet."),
        Note(text="1 ID is used for a second text, which was renamed with -2, -3, ..."),
    ]


def test_a_type_chosen_in_steps_is_one_label(tmp_path: Path) -> None:
    protocol, document, annotator, annotation, note = thresh.read(written(tmp_path, STEPS), Options())
    assert annotator == Annotator(id="annotator", kind="pooled")
    assert isinstance(document, Document)
    assert isinstance(annotation, Annotation)
    assert document.context == {"source": "Ein Hund."}
    assert [each.label for each in annotation.marks] == ["word-choice/wrong-animal", "extra", "fluency/doubling", None]
    first, second, third, fourth = annotation.marks
    assert (first.spans, first.quotes) == ((Span(4, 7), Span(4, 8, "source")), ("cat", "Hund"))
    assert (first.answers, first.meta) == ({"severity": 2}, {"sure": True})
    assert (second.spans, second.votes) == ((Span(0, 1), Span(2, 3)), 2)
    assert (third.spans, third.unlocated) == ((), "the file gives no range")
    assert fourth.spans == (Span(8, 8),)
    assert note == Note(text="1 edit has no range and is kept without a span")
    assert [each.message for each in check_study(Study.from_items([protocol, document, annotator, annotation]))] == []


def test_severities_follow_the_protocol_that_is_given(tmp_path: Path) -> None:
    edit = {"category": "fluency", "annotation": {"fluency_type": {"val": "grammar", "grammar": "Major"}}}
    path = written(tmp_path, [{"target": "A.", "edits": [edit | {"output_idx": [[0, 1]]}]}])
    annotation = [*thresh.read(path, Options(protocol=load_shipped("mqm")))][-1]
    assert isinstance(annotation, Annotation)
    assert (annotation.marks[0].label, annotation.marks[0].answers) == ("fluency/grammar", {"severity": "major"})


# --- round trips -------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(studies(thresh.FORMAT.holds - {"mark votes"}))
def test_a_study_written_and_read_has_the_same_records(items: list[StudyItem]) -> None:
    with tempfile.TemporaryDirectory() as place:
        again = round_trip(thresh.FORMAT, items, Path(place) / "sample.json", Options(protocol=PROTOCOL))
    assert canonical_form(again, thresh.FORMAT.holds) == canonical_form(items, thresh.FORMAT.holds)


def test_files_are_written_in_the_formats_own_words(tmp_path: Path) -> None:
    thresh.write(thresh.read(written(tmp_path), Options()), tmp_path / "again.json", Options())
    again = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))
    assert again[0]["edits"] == ITEMS[0]["edits"]
    assert [item["id"] for item in again] == ["1", "1-2", "3"]
    assert "edits" not in again[2]


def test_steps_votes_and_edits_without_ranges_survive(tmp_path: Path) -> None:
    path = written(tmp_path, STEPS)
    items = list(thresh.read(path, Options()))
    thresh.write(items, tmp_path / "again.json", Options())
    edits = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))[0]["edits"]
    assert [{name: each for name, each in edit.items() if name != "id"} for edit in edits] == [
        {name: each for name, each in edit.items() if each is not None}
        | ({"annotation": {"fluency_type": {"val": "doubling"}}} if edit.get("category") == "fluency" else {})
        for edit in STEPS[0]["edits"]
    ]


# --- damaged files -----------------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(file_damages)
def test_a_damaged_file_is_read_or_refused(place: tuple[float, bytes, int, bool]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder))
        damage_file(path, place)
        thresh.sniff(path)
        read_or_reject(thresh.FORMAT, path)


@settings(max_examples=150)
@given(mutated_json(ITEMS + STEPS))
def test_a_file_of_another_shape_is_read_or_refused(value: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        read_or_reject(thresh.FORMAT, written(Path(folder), value))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": {}}, "expected a list of items, found an object"),
        ([{"edits": []}], "'target' is missing"),
        ([{"target": "x", "edits": [{"category": 3}]}], "edits[0]: 'category': expected text, found"),
        (
            [{"target": "x", "edits": [{"output_idx": [3]}]}],
            "edits[0]: 'output_idx': expected ranges [start, end], found 3",
        ),
        (
            [{"target": "x", "edits": [{"output_idx": [[0, 2]]}]}],
            "edits[0]: 'output_idx': [0, 2] is not within the target, which has 1 characters",
        ),
        ([{"target": "x", "edits": [{"input_idx": [[0, 2]]}]}], "is not within the source, which has 0 characters"),
        ([{"target": "x", "edits": [{"votes": -1, "output_idx": [[0, 1]]}]}], "edits[0]: votes: "),
    ],
)
def test_a_slip_is_named_with_its_place(value: Any, said: str, tmp_path: Path) -> None:
    assert said in first_line_error(thresh.FORMAT, written(tmp_path, value))


def test_an_unknown_label_names_the_nearest(tmp_path: Path) -> None:
    path = written(tmp_path, [{"target": "x", "edits": [{"category": "redundent"}]}])
    with pytest.raises(FormatError, match="'redundent' is not in protocol scarecrow@2; did you mean 'redundant'"):
        list(thresh.read(path, Options(protocol=load_shipped("scarecrow"))))


def test_it_is_known_by_its_first_characters(tmp_path: Path) -> None:
    assert detect_format(written(tmp_path)).name == "thresh"
    assert not thresh.sniff(tmp_path)


# --- the samples -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def samples(data: Path) -> dict[str, Study]:
    names = ("scarecrow", "snac", "mqm", "frank")
    return {name: Study.from_items(thresh.read(data / "thresh_samples" / f"{name}.json", Options())) for name in names}


def test_the_samples_are_sound(samples: dict[str, Study]) -> None:
    assert {name: (len(study.documents), len(study.marks)) for name, study in samples.items()} == {
        "scarecrow": (50, 140),
        "snac": (50, 272),
        "mqm": (50, 114),
        "frank": (50, 123),
    }
    problems = [problem for study in samples.values() for problem in check_study(study)]
    assert {problem.message.split(": ")[-1] for problem in problems} == {
        "has no antecedent, which protocol snac@2 requires for 'incon'",
        "has no antecedent, which protocol snac@2 requires for 'rep'",
    }
    assert samples["frank"].notes == ("123 edits have no ranges and are kept without spans",)
    assert samples["frank"].spans.is_empty()
    assert set(samples["mqm"].annotations["annotator"]) >= {"rater1", "rater2"}


def test_the_scarecrow_sample_has_these_counts(samples: dict[str, Study]) -> None:
    study = samples["scarecrow"]
    models = {each.id: each.meta["model"] for each in study.iter_documents()}
    assert Counter(models.values()) == dict.fromkeys(("gpt3", "gpt2", "gpt2-xl", "grover-mega", "human"), 10)
    assert Counter(models[document] for document in study.marks["document"]) == {
        "gpt3": 31,
        "gpt2": 37,
        "gpt2-xl": 20,
        "grover-mega": 34,
        "human": 18,
    }
    assert Counter(study.marks["label"]) == {
        "needs-google": 40,
        "grammar-usage": 25,
        "off-prompt": 24,
        "incoherent": 22,
        "commonsense": 8,
        "self-contradiction": 7,
        "redundant": 6,
        "technical-jargon": 6,
        "bad-math": 2,
    }
    marks = [mark for annotation in study.iter_annotations() for mark in annotation.marks]
    earlier = Counter(mark.label for mark in marks if mark.antecedents)
    assert earlier == {"redundant": 6, "self-contradiction": 7}
    grammar = Counter(mark.answers["severity"] == 1 for mark in marks if mark.label == "grammar-usage")
    assert grammar == {True: 18, False: 7}


@pytest.mark.parametrize(
    ("antecedents", "expected"),
    [(False, [0.2539, 0.5400, 0.3266, 0.1627, 0.1526]), (True, [0.2728, 0.5475, 0.3329, 0.1657, 0.1526])],
)
def test_the_scarecrow_sample_has_this_span_coverage(
    samples: dict[str, Study], antecedents: bool, expected: list[float]
) -> None:
    shares: dict[str, list[float]] = {}
    for document in samples["scarecrow"].iter_documents():
        marks = [mark for one in samples["scarecrow"].annotations_on(document.id) for mark in one.marks]
        spans = [
            span
            for mark in marks
            if (mark.label, mark.answers["severity"]) != ("grammar-usage", 1)
            for span in (*mark.spans, *(mark.antecedents.spans if antecedents and mark.antecedents else ()))
        ]
        covered = covered_token_mask(spans, whitespace_token_offsets(document.text))
        shares.setdefault(str(document.meta["model"]), []).append(float(covered.mean()))
    means = [float(np.mean(shares[name])) for name in ("gpt3", "gpt2", "gpt2-xl", "grover-mega", "human")]
    assert means == pytest.approx(expected, abs=5e-5)


def test_the_snac_sample_equals_the_release(samples: dict[str, Study], data: Path) -> None:
    release = Study.from_items(snac.read(data / "snac" / "SNaC_data.json", Options()))
    known: dict[str, Counter[tuple[Any, ...]]] = {}
    for document in release.iter_documents():
        (annotation,) = release.annotations_on(document.id)
        for segment in document.segments:
            inside = [
                (mark.label, mark.quotes[0], mark.votes)
                for mark in annotation.marks
                if mark.spans and segment.start <= mark.spans[0].start < segment.end
            ]
            known[document.text[segment.start : segment.end]] = Counter(inside)
    for document in samples["snac"].iter_documents():
        (annotation,) = samples["snac"].annotations_on(document.id)
        assert Counter((mark.label, mark.quotes[0], mark.votes) for mark in annotation.marks) == known[document.text]
    assert samples["snac"].annotators["kind"].to_list() == ["pooled"]
    assert samples["snac"].annotations["readers"].unique().to_list() == [3]
