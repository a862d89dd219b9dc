"""Practice guesses and scores in the study: people whose skill shows in both, and in neither."""

from __future__ import annotations

import random

import numpy as np
import pytest

import finecomb as fc
from finecomb.core.errors import FinecombError
from finecomb.core.study import Study, StudyItem
from finecomb.statistics.comparisons.practice_guesses import practice_accuracy_findings
from finecomb.statistics.selection.view import View, view

TURING = fc.protocol("turing")


def study(skills: dict[str, tuple[float, float]], guesses: int = 3) -> View:
    """Build people with a skill in practice and one in the study, both as shares of 20."""
    texts = [fc.Document(id=f"t{n}", text="...", meta={"model": "m" if n % 2 else "human"}) for n in range(20)]
    chance = random.Random(1)
    items: list[StudyItem] = [TURING, *texts]
    for id, (practice, work) in skills.items():
        steps = [
            {"step": f"examples-{n}", "protocol": TURING.id, "right": n < practice * guesses} for n in range(guesses)
        ]
        items.append(fc.Annotator(id=id, kind="human", condition="examples", meta={"steps": steps} if guesses else {}))
        order = chance.sample(texts, 20)
        for n, text in enumerate(order):
            right = n < 20 * work
            rating = 4 if right == (text.meta["model"] == "m") else 1
            items.append(
                fc.Annotation(
                    id=f"{id}{n}", document=text.id, annotator=id, protocol=TURING.id, answers={"rating": rating}
                )
            )
    return view(Study.from_items(items))


def values(found: View, draws: int) -> dict[str, float]:
    return {str(one.columns["measure"]): one.estimate.value for one in practice_accuracy_findings(found, draws=draws)}


def test_shares_and_their_correlation_equal_the_definition() -> None:
    skills = {"a": (1 / 3, 0.5), "b": (2 / 3, 0.6), "c": (1.0, 0.55), "d": (0.0, 0.4)}
    found = values(study(skills), draws=50)
    assert found["right in practice"] == pytest.approx(0.5)
    assert found["right in work"] == pytest.approx(np.mean([0.5, 0.6, 0.55, 0.4]))
    expected = np.corrcoef([1 / 3, 2 / 3, 1, 0], [0.5, 0.6, 0.55, 0.4])[0, 1]
    assert found["correlation"] == pytest.approx(expected)


def test_two_people_have_no_correlation_and_the_reason_is_said() -> None:
    (*_, row) = practice_accuracy_findings(study({"a": (1, 0.5), "b": (0, 0.4)}))
    assert np.isnan(row.estimate.value)
    assert row.estimate.why == "fewer than three people"


def test_guesses_that_do_not_vary_have_none_either() -> None:
    (*_, row) = practice_accuracy_findings(study({"a": (1, 0.5), "b": (1, 0.4), "c": (1, 0.9)}))
    assert row.estimate.why == "guesses or scores do not vary"


def test_where_nobody_guessed_that_is_said() -> None:
    with pytest.raises(FinecombError, match="no annotator has guessed in a practice round"):
        practice_accuracy_findings(study({"a": (1, 0.5)}, guesses=0))
