from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from finecomb.core.errors import FinecombError
from finecomb.core.results import Estimate, Signature
from finecomb.reporting.calibration_tables import build_calibration_tables, calibration_page_html, select_summary_tables
from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.judges.calibration import CalibrationOptions, calibrate_against_people, recommended_use
from finecomb.statistics.judges.judge_agreement import (
    LESS_AGREEMENT,
    NO_LESS_AGREEMENT,
    UNDECIDED,
    compare_judge_and_human_agreement,
    compute_agreement_sums,
    noninferiority_verdict,
)
from finecomb.statistics.judges.text_values import select_people_and_judges
from finecomb.statistics.judges.validity import expiry_conditions, expiry_warning
from finecomb.statistics.selection.view import Filters, view
from tests.statistics.judges.judge_studies import MarkTuples, make_crowd_study, make_judge_study, simulate_annotator

FAST = CalibrationOptions(draws=200, levels=("token",), gamma=False)


def test_a_judge_like_a_person_can_replace_people() -> None:
    result = calibrate_against_people(make_crowd_study(150), "judge", FAST)
    assert result.verdict == "can replace people"
    assert result.paragraph.startswith("judge can replace people. Alpha is ")
    assert "It agrees with people better than all simple baselines." in result.paragraph
    assert "the alternative annotator test: it wins against" in result.paragraph
    assert any("does not use the alternative annotator test" in note for note in result.notes)
    assert "name" in result.labels


def test_a_judge_who_guesses_anywhere_cannot_be_used() -> None:
    rng = np.random.default_rng(8)
    guesses: dict[str, MarkTuples] = {}
    for text in range(60):
        start = int(rng.integers(0, 90))
        guesses[f"d{text:03}"] = [(start, start + 6, "name")]
    result = calibrate_against_people(make_crowd_study(60, judge=guesses), "judge", FAST)
    assert result.verdict == "cannot be used for this"
    assert not result.test.passes


def test_a_judge_who_guesses_where_errors_are_likely_can_assist() -> None:
    """The judge knows the four places of possible errors, but not which of them are wrong."""
    result = calibrate_against_people(
        make_crowd_study(60, judge=simulate_annotator(60, 5, finds=0.3, alarms=0.3)), "judge", FAST
    )
    assert result.verdict == "can assist but not replace people"
    assert not result.test.passes


def test_a_judge_who_finds_less_can_assist() -> None:
    result = calibrate_against_people(
        make_crowd_study(120, judge=simulate_annotator(120, 5, finds=0.45, alarms=0.02)), "judge", FAST
    )
    assert result.verdict == "can assist but not replace people"
    found = next(each.estimate for each in result.found if each.columns["part"] == "all")
    assert 0.35 < found.value < 0.6
    ratio = next(each.estimate for each in result.bias if each.columns["label"] == "any")
    assert ratio.high < 1


def test_alpha_of_people_is_krippendorffs_where_all_read_everything() -> None:
    whole = make_crowd_study(30)
    result = calibrate_against_people(whole, "judge", FAST)
    people = [f"p{at}" for at in range(4)]
    alphas = agree(view(whole, Filters(annotators=tuple(people))), ["alpha"], draws=0)
    expected = {each.columns["label"]: each.estimate.value for each in alphas}
    ours = {
        each.columns["label"]: each.estimate.value
        for each in result.agreement
        if each.columns["who"] == "people" and each.columns["measure"] == "alpha"
    }
    assert ours == pytest.approx(expected, abs=2e-3)  # n - 1 instead of n, for some hundred tokens


def test_judge_and_one_person_have_the_alpha_of_two() -> None:
    """The judge's alpha with two equal people is Krippendorff's alpha of judge and person."""
    one = simulate_annotator(30, 0)
    whole = make_judge_study({"a": one, "b": one, "judge": simulate_annotator(30, 7)}, {"judge": "llm"})
    result = calibrate_against_people(whole, "judge", FAST)
    alphas = agree(view(whole, Filters(annotators=("a", "judge"))), ["alpha", "f1"], draws=0)
    for measure in ("alpha", "f1"):
        expected = next(each.estimate.value for each in alphas if each.columns["measure"] == measure)
        own = [
            each for each in result.agreement if each.columns["measure"] == measure and each.columns["who"] == "judge"
        ]
        assert own[0].estimate.value == pytest.approx(expected, abs=2e-3)


def test_one_against_the_rest_equals_its_definition() -> None:
    whole = make_crowd_study(12, people=3)
    sums = compute_agreement_sums(select_people_and_judges(whole, ["judge"]), "judge", "document")
    marked = {name: np.array([bool(own[text]) for text in sorted(own)]) for name, own in _marks(whole).items()}
    people = ["p0", "p1", "p2"]
    hit = np.mean([(marked[one] & _any(marked, people, one)).sum() for one in people])
    rest = np.mean([_any(marked, people, one).sum() for one in people])
    judge_hit = np.mean([(marked["judge"] & _any(marked, people, one)).sum() for one in people])
    assert sums.hit[0].sum() == pytest.approx(hit)
    assert sums.rest[0].sum() == pytest.approx(rest)
    assert sums.judge_hit[0].sum() == pytest.approx(judge_hit)


def _marks(whole: object) -> dict[str, dict[str, list[object]]]:
    marks: dict[str, dict[str, list[object]]] = {}
    for annotation in whole.iter_annotations():  # type: ignore[attr-defined]
        marks.setdefault(annotation.annotator, {})[annotation.document] = list(annotation.marks)
    return marks


def _any(marked: dict[str, np.ndarray], people: list[str], without: str) -> np.ndarray:
    return np.asarray(np.any([marked[name] for name in people if name != without], axis=0))


@pytest.mark.parametrize(
    ("excess", "high", "expected"),
    [
        (0.01, 0.2, NO_LESS_AGREEMENT),
        (-0.3, -0.01, LESS_AGREEMENT),
        (-0.3, 0.1, UNDECIDED),
        (0.02, -0.01, NO_LESS_AGREEMENT),
    ],
)
def test_the_verdict_is_that_of_the_difference(excess: float, high: float, expected: str) -> None:
    assert noninferiority_verdict(excess, high) == expected


def test_the_page_and_the_tables_hold_the_answer() -> None:
    result = calibrate_against_people(make_crowd_study(20), "judge", FAST)
    page = calibration_page_html(result)
    assert result.verdict in page
    assert "<svg" in page
    assert {"replacement", "baselines", "agreement", "test", "bias", "found"} <= {
        section.key for section in build_calibration_tables(result)
    }
    assert len(select_summary_tables(build_calibration_tables(result))) < len(build_calibration_tables(result))


def test_a_calibration_is_no_longer_valid_when_the_judge_or_time_changes() -> None:
    result = calibrate_against_people(
        make_crowd_study(20, annotator_meta={"judge": {"model": "m-1", "prompt_hash": "ab"}}), "judge", FAST
    )
    made = datetime(2026, 1, 1, tzinfo=UTC)
    contract = result.build_contract(made)
    assert contract.binding.model == "m-1"
    assert expiry_warning(contract, result.binding, made + timedelta(days=29), {}) == ""
    assert "30 days" in expiry_warning(contract, result.binding, made + timedelta(days=31), {})
    other = result.binding.model_copy(update={"prompt": "cd"})
    assert "(prompt)" in expiry_warning(contract, other, made, {})
    assert [each.state for each in expiry_conditions(contract, result.binding, made, {})] == ["no", "no", "no"]
    assert other.hash != result.binding.hash


def test_a_question_is_compared_instead_of_marks() -> None:
    with pytest.raises(FinecombError, match="no annotator answered 'rating'"):
        calibrate_against_people(make_crowd_study(20), "judge", CalibrationOptions(question="rating"))


@pytest.mark.parametrize(
    ("texts", "people", "message"),
    [
        (20, 1, "at least two people, found 1"),
        (7, 3, "too few texts to decide: judge and at least two people annotated 7 of"),
    ],
)
def test_what_says_nothing_is_refused(texts: int, people: int, message: str) -> None:
    with pytest.raises(FinecombError, match=message):
        calibrate_against_people(make_crowd_study(texts, people), "judge", FAST)


def test_no_text_in_common_is_refused() -> None:
    people = {f"p{at}": simulate_annotator(10, at) for at in range(2)}
    other = {f"x{name}": marks for name, marks in simulate_annotator(10, 5).items()}
    with pytest.raises(FinecombError, match="no text was annotated by judge and at least two people"):
        calibrate_against_people(make_judge_study({**people, "judge": other}, {"judge": "llm"}), "judge", FAST)


def test_a_judge_is_not_judged_on_what_it_was_fitted_on() -> None:
    whole = make_crowd_study(20, annotator_meta={"judge": {"trained_on": ["d003", "elsewhere"]}})
    with pytest.raises(FinecombError, match="trained on 1 of the 20 calibration texts"):
        calibrate_against_people(whole, "judge", FAST)


def test_a_constant_judge_is_told() -> None:
    silent: dict[str, MarkTuples] = {f"d{at:03}": [] for at in range(40)}
    result = calibrate_against_people(make_crowd_study(40, judge=silent), "judge", FAST)
    assert result.verdict == "cannot be used for this"
    assert "the judge gives the same answer to every item" in result.notes


@pytest.mark.parametrize(
    ("low", "high", "use"),
    [(0.85, 1.15, "Its counts can be used as they are."), (0.75, 1.1, "Correct its counts"), (0.9, 1.3, "Correct its")],
)
def test_counts_are_used_only_if_the_interval_of_the_bias_is_inside_the_margin(
    low: float, high: float, use: str
) -> None:
    bias = Estimate(1.0, low, high, Signature.from_fields(statistic="bias"))
    assert recommended_use("can replace people", bias, 0.2).startswith(use)
    assert "as they are" not in recommended_use("can assist but not replace people", bias, 0.2)


@pytest.mark.parametrize(
    ("people_label", "judge_label", "label", "why"),
    [
        ("name", "name", "any", "every unit is marked"),
        ("name", "name", "number", "the judge never used this label"),
        ("name", "number", "number", "people never used this label"),
    ],
)
def test_undefined_agreement_names_its_reason(people_label: str, judge_label: str, label: str, why: str) -> None:
    people, judge = ({f"d{at}": [(4, 9, name)] for at in range(8)} for name in (people_label, judge_label))
    study = make_judge_study({"p0": people, "p1": people, "judge": judge}, {"judge": "llm"})
    findings = compare_judge_and_human_agreement(select_people_and_judges(study, ["judge"]), "judge", ("document",))
    wanted = {"measure": "alpha", "who": "people", "label": label}
    estimate = next(finding.estimate for finding in findings if wanted.items() <= finding.columns.items())
    assert estimate.why == why
