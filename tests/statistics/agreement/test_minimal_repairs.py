"""One name or two numbers count as one error, even if no annotator declared them as alternatives."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from finecomb.core.errors import FinecombError
from finecomb.core.study import Study
from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.agreement.minimal_repairs import add_inferred_alternatives_to_study
from finecomb.statistics.gold.gold_merge import merge_into_gold
from finecomb.statistics.gold.scores import MatchName, score_judges_against_gold
from tests.statistics.agreement.agreement_studies import MarkTuple
from tests.statistics.gold.gold_studies import make_gold_study, score_row

STORY = "Lou Hill had 30 points and 6 rebounds. Ann Reed had 12 assists."
NAME, POINTS, REBOUNDS, ASSISTS = (0, 8, "red"), (13, 15, "blue"), (27, 28, "blue"), (52, 54, "blue")


def study_of(*readers: Sequence[MarkTuple], text: str = STORY) -> Study:
    return make_gold_study({"d": text}, {("d", name): marks for name, marks in zip("pqrst", readers, strict=False)})


def alternatives(study: Study) -> list[list[list[str]]]:
    marks = [
        mark
        for annotation in add_inferred_alternatives_to_study(study).annotations_on("d")
        for mark in annotation.marks
    ]
    return [
        [[part.quotes[0] for part in choice] for choice in mark.alternatives] for mark in marks if mark.alternatives
    ]


def test_the_numbers_of_another_reader_are_an_alternative_of_a_name() -> None:
    assert alternatives(study_of([NAME], [POINTS, REBOUNDS])) == [[["30", "6"]]]


@pytest.mark.parametrize(
    ("readers", "why"),
    [
        (([NAME], [POINTS]), "one number for one name is no smaller set"),
        (([NAME], [POINTS, ASSISTS]), "another sentence is another error"),
        (([NAME, POINTS], [POINTS, REBOUNDS]), "one mark is left on either side"),
        (([NAME, ASSISTS], [NAME, POINTS, REBOUNDS]), "the name was marked by both"),
        (([(0, 8, "blue")], [POINTS, REBOUNDS]), "all are of one label"),
        (([NAME], [POINTS, (27, 28, "green")]), "the numbers have two labels"),
        (([NAME], [POINTS], [REBOUNDS]), "no reader has the whole set"),
    ],
)
def test_other_marks_stay_errors_of_their_own(readers: tuple[list[MarkTuple], ...], why: str) -> None:
    assert alternatives(study_of(*readers)) == [], why


def test_numbers_of_somebody_else_are_another_error() -> None:
    text = "Lou Hill led, and Ann Reed had 30 points and 6 rebounds."
    numbers = [(text.index("30"), text.index("30") + 2, "blue"), (text.index("6"), text.index("6") + 1, "blue")]
    assert alternatives(study_of([NAME], numbers, text=text)) == []


@pytest.mark.parametrize(
    "readers",
    [
        ([NAME], [POINTS, REBOUNDS], []),
        ([NAME], [POINTS, REBOUNDS], [POINTS, REBOUNDS]),
        ([NAME], [NAME], [POINTS, REBOUNDS]),
    ],
)
def test_gold_has_the_smallest_repair_with_the_votes_of_all(readers: tuple[list[MarkTuple], ...]) -> None:
    """One annotator's name and another's numbers used to have one vote each and were lost."""
    merged = merge_into_gold(study_of(*readers), repairs="smallest")
    ((mark,),) = (annotation.marks for annotation in merged.study.annotations_on("d"))
    assert (mark.quotes, mark.label, mark.votes) == (("Lou Hill",), "red", sum(map(bool, readers)))
    assert [[part.quotes[0] for part in choice] for choice in mark.alternatives] == [["30", "6"]]
    assert "repairs:smallest" in str(merged.signature)


def test_kappa_takes_both_for_one_error() -> None:
    study = study_of([NAME, ASSISTS], [POINTS, REBOUNDS, ASSISTS], [NAME])
    options = {"align": "overlap", "convention": "no-error", "draws": 0}
    declared, smallest = (
        agree(study, ["kappa-fleiss"], "item", **options, repairs=repairs)[0] for repairs in ("declared", "smallest")
    )
    assert smallest.estimate.value > declared.estimate.value
    assert "repairs:smallest" in str(smallest.estimate.signature)
    assert "repairs" not in str(declared.estimate.signature)


@pytest.mark.parametrize(
    ("golden", "judge", "counts"),
    [
        ([NAME], [POINTS, REBOUNDS], (1, 1, 2, 2)),
        ([POINTS, REBOUNDS], [NAME], (2, 2, 1, 1)),
        ([POINTS], [NAME], (1, 0, 1, 0)),
    ],
)
@pytest.mark.parametrize("match", ["task", "optimal", "overlap", "exact"])
def test_scores_take_both_for_one_error(
    match: MatchName, golden: list[MarkTuple], judge: list[MarkTuple], counts: tuple[int, ...]
) -> None:
    study = make_gold_study({"d": STORY}, {("d", "gold"): golden, ("d", "judge"): judge})
    result = score_row(score_judges_against_gold(study, match=match, repairs="smallest", draws=0), "any")
    assert [result.gold, result.matched, result.predicted, result.right] == list(counts)
    assert score_row(score_judges_against_gold(study, match=match, draws=0), "any").matched == 0


def test_tokens_follow_the_reading_that_was_found() -> None:
    study = make_gold_study({"d": STORY}, {("d", "gold"): [POINTS, REBOUNDS], ("d", "judge"): [NAME]})
    result = score_row(score_judges_against_gold(study, match="token", repairs="smallest", draws=0), "any")
    assert (result.gold, result.matched, result.predicted) == (2, 2, 2)


def test_one_judges_reading_does_not_help_another() -> None:
    given = {("d", "gold"): [NAME], ("d", "p"): [POINTS, REBOUNDS], ("d", "q"): [POINTS, REBOUNDS, ASSISTS]}
    scores = score_judges_against_gold(make_gold_study({"d": STORY}, given), repairs="smallest", draws=0)
    assert [score_row(scores, "any", judge).matched for judge in ("p", "q")] == [1, 1]
    lone = score_judges_against_gold(
        make_gold_study({"d": STORY}, given | {("d", "q"): [POINTS, (27, 28, "green")]}), repairs="smallest", draws=0
    )
    assert [score_row(lone, "any", judge).matched for judge in ("p", "q")] == [1, 0]


def test_where_items_say_what_one_error_is_nothing_is_inferred() -> None:
    with pytest.raises(FinecombError, match="repairs=smallest cannot be used with align=item"):
        merge_into_gold(study_of([NAME], [POINTS, REBOUNDS]), align="item", repairs="smallest")
    with pytest.raises(FinecombError, match="repairs"):
        merge_into_gold(study_of([NAME], [POINTS, REBOUNDS]), repairs="fewest")  # type: ignore[arg-type]
