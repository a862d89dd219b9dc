from __future__ import annotations

from pathlib import Path

import pytest

from finecomb import formats
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.statistics.judges.counterfactual_validation import MarkCorrection, build_corrected_text, validate_judge
from tests.statistics.judges.judge_studies import PROTOCOL

TEXT = "Ten gulls and nine terns."


def gold(reference: str = "") -> Study:
    marks = [(0, 3, "number", "Two"), (14, 18, "number", "four")]
    annotation = Annotation(
        id="g", document="d", annotator="gold", protocol=PROTOCOL.id, status="submitted",
        marks=tuple(
            Mark(id=f"g{at}", spans=(Span(start, end),), quotes=(TEXT[start:end],), label=label,
                answers={"correction": words})
            for at, (start, end, label, words) in enumerate(marks)
        ),
    )  # fmt: skip
    document = Document(id="d", text=TEXT, references=(reference,) if reference else ())
    return Study.from_items([PROTOCOL, document, Annotator(id="gold", kind="gold"), annotation])


def marking(*words: str):  # type: ignore[no-untyped-def]
    """Build a judge that marks all occurrences of the given words."""

    def judge(document: Document) -> Annotation:
        places = [(document.text.index(word), word) for word in words if word in document.text]
        marks = tuple(
            Mark(id=f"{document.id}{start}", spans=(Span(start, start + len(word)),), quotes=(word,), label="number")
            for start, word in places
        )
        return Annotation(id=document.id, document=document.id, annotator="judge", protocol=PROTOCOL.id, marks=marks)

    return judge


def test_corrections_are_written_in_and_keep_their_places() -> None:
    wanted = [
        MarkCorrection(Span(14, 18), "eleven", ""),
        MarkCorrection(Span(0, 3), "No", ""),
        MarkCorrection(Span(1, 9), "x", ""),
    ]
    corrected = build_corrected_text(Document(id="d", text=TEXT), wanted)
    assert corrected.document.text == "No gulls and eleven terns."
    words = [corrected.document.text[place.span.start : place.span.end] for place in corrected.places]
    assert words == ["No", "eleven"]


def test_a_judge_that_knows_lets_go_and_one_of_habit_does_not() -> None:
    knows = validate_judge(gold(), marking("Ten", "nine"), "knows")
    habit = validate_judge(gold(), marking("Ten", "nine", "Two", "four"), "habit")
    shares = [
        {each.columns["measure"]: each.estimate.value for each in result.findings if each.columns["label"] == "any"}
        for result in (knows, habit)
    ]
    assert shares[0] == {"found": 1, "vanished": 1, "stayed": 0, "still marked": 0}
    assert shares[1] == {"found": 1, "vanished": 0, "stayed": 1, "still marked": 1}


def test_marks_on_what_people_wrote_are_counted() -> None:
    assert validate_judge(gold("Nine gulls and nine terns."), marking("nine"), "judge").references == (1,)


def test_one_reference_has_no_interval() -> None:
    finding = validate_judge(gold("Nine gulls and nine terns."), marking("nine"), "judge").findings[-1]
    assert finding.columns["measure"] == "marks per reference"
    assert finding.estimate.why == "there is only one reference, so there is no interval"


def test_without_corrections_nothing_can_be_validated() -> None:
    bare = Study.from_items(
        [PROTOCOL, Document(id="d", text=TEXT), Annotator(id="gold", kind="gold"),
         Annotation(id="g", document="d", annotator="gold", protocol=PROTOCOL.id, status="submitted")]
    )  # fmt: skip
    with pytest.raises(FinecombError, match="no mark of gold has a correction"):
        validate_judge(bare, marking("Ten"), "judge")


@pytest.mark.long
@pytest.mark.parametrize(
    ("basis", "found", "still_marked", "by_base_rate"), [("record", 502, 21, 0), ("all", 769, 73, 52)]
)
def test_our_checker_marks_some_corrected_places_by_habit(
    data: Path, basis: str, found: int, still_marked: int, by_base_rate: int
) -> None:
    from finecomb.annotators.detectors import DETECTORS

    folder = data / "accuracy_shared_task"
    games = formats.read(
        folder / "gsml.csv", options=formats.Options(texts=folder / "texts", data=folder / "shared_task.jsonl")
    )
    checker = DETECTORS["boxscore"]
    options = checker.options(basis=basis)
    result = validate_judge(games, checker.make(next(iter(games.protocols.values())), options), "boxscore", draws=0)
    still = next(
        row for row in result.findings if row.columns["measure"] == "still marked" and row.columns["label"] == "any"
    )
    assert still.columns["places"] == 839  # 833 numbers, names and words, and 6 not checkable
    checkable = [outcome for outcome in result.outcomes if outcome.label != "not-checkable"]
    assert len(checkable) == 833
    assert sum(outcome.before for outcome in checkable) == found
    assert sum(outcome.after for outcome in checkable) == still_marked
    assert sum(bool(outcome.base_rate) for outcome in checkable) == by_base_rate  # the others contradict the record
