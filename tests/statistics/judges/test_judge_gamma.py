from __future__ import annotations

import pytest

from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.judges.judge_gamma import judge_gamma
from finecomb.statistics.judges.text_values import select_people_and_judges
from finecomb.statistics.selection.view import Filters, view
from tests.statistics.judges.judge_studies import make_crowd_study, make_judge_study, simulate_annotator


def test_gamma_of_two_people_is_the_gamma_that_agree_prints() -> None:
    whole = make_judge_study(
        {"p0": simulate_annotator(12, 0), "p1": simulate_annotator(12, 1), "judge": simulate_annotator(12, 2)},
        {"judge": "llm"},
    )
    people, judge, difference = judge_gamma(select_people_and_judges(whole, ["judge"]), "judge", draws=50)
    expected = agree(view(whole, Filters(annotators=("p0", "p1"))), ["gamma"], draws=0)[0].estimate.value
    assert people.estimate.value == pytest.approx(expected, abs=0.05)  # 5 chance samples compared with 30
    assert difference.estimate.value == pytest.approx(judge.estimate.value - people.estimate.value)


def test_a_judge_of_noise_agrees_less_by_gamma() -> None:
    noise = {
        text: marks[::-1][:1]
        for text, marks in zip(simulate_annotator(40, 5), simulate_annotator(40, 400, 0.2, 0.6).values(), strict=True)
    }
    rows = judge_gamma(
        select_people_and_judges(make_crowd_study(40, judge=noise), ["judge"]), "judge", draws=200, texts=20
    )
    assert rows[2].columns["verdict"] == "less than people"
    assert "texts:20" in str(rows[0].estimate.signature)


def test_at_most_so_many_texts_are_drawn() -> None:
    rows = judge_gamma(select_people_and_judges(make_crowd_study(20), ["judge"]), "judge", draws=10, texts=9)
    assert "texts:9|" in str(rows[0].estimate.signature)
    assert "|work:60.0|" in str(rows[0].estimate.signature)
