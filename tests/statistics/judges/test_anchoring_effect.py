from __future__ import annotations

import numpy as np
import pytest

from finecomb.core.errors import FinecombError
from finecomb.statistics.judges.anchoring_effect import anchoring_findings, estimate_anchoring_effect
from tests.statistics.judges.judge_studies import make_judge_study, simulate_annotator


def simulated(
    effect: float, seed: int, texts: int = 100, readings: int = 3, crossed: bool = True
) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    text = np.repeat(np.arange(texts), readings)
    base = rng.gamma(2, 1, texts)
    helped = rng.random(len(text)) < 0.7 if crossed else np.repeat(rng.random(texts) < 0.7, readings)
    values = rng.poisson(base[text] + effect * helped).astype(float)
    return values, helped, text


@pytest.mark.parametrize("crossed", [True, False])
def test_simulated_anchoring_lies_in_the_interval(crossed: bool) -> None:
    """Small version of the table in the docs."""
    held = 0
    for seed in range(150):
        low, high = estimate_anchoring_effect(*simulated(0.8, seed, crossed=crossed)).interval()
        held += low <= 0.8 <= high
    assert held >= 0.9 * 150


def test_hard_texts_are_no_effect() -> None:
    """Each text has its own level, and help is given where it is high, so only comparisons within texts are fair."""
    text = np.repeat(np.arange(40), 4)
    level = np.repeat(np.arange(40.0), 4)
    helped = np.tile([True, True, True, False], 40)
    helped[:80] = np.tile([True, False, False, False], 20)
    noise = np.random.default_rng(0).normal(0, 0.1, 160)
    effect = estimate_anchoring_effect(level + noise, helped, text)
    assert abs(effect.value) < 0.1
    assert effect.paired == 40


def test_help_for_everybody_cannot_be_measured() -> None:
    with pytest.raises(FinecombError, match="offered in all of the 20 tasks"):
        estimate_anchoring_effect(np.ones(20), np.ones(20, dtype=bool), np.arange(20))
    with pytest.raises(FinecombError, match="offered in none of the 20 tasks"):
        estimate_anchoring_effect(np.ones(20), np.zeros(20, dtype=bool), np.arange(20))
    with pytest.raises(FinecombError, match="no task offered or withheld machine marks"):
        estimate_anchoring_effect(np.zeros(0), np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64))


def test_too_few_texts_and_equal_values_have_separate_messages() -> None:
    helped = np.arange(40) < 20
    with pytest.raises(FinecombError, match="too few texts to compare"):
        estimate_anchoring_effect(np.arange(10.0), np.arange(10) < 5, np.arange(10))
    with pytest.raises(FinecombError, match="values do not vary between texts"):
        estimate_anchoring_effect(np.where(helped, 2.0, 1.0), helped, np.arange(40))


def test_people_who_follow_the_machine_are_seen() -> None:
    machine = simulate_annotator(60, 50, finds=0.5, alarms=0.3)
    marks, metas = {"machine": machine}, {}
    for at in range(3):
        person = simulate_annotator(60, at)
        for number, name in enumerate(sorted(person)):
            blind = (number + at) % 3 == 0
            metas[f"p{at}", name] = {"blind": True} if blind else {"offered": ["m"]}
            if not blind:
                person[name] = sorted({*person[name], *machine[name]})
        marks[f"p{at}"] = person
    whole = make_judge_study(marks, {"machine": "llm"}, annotation_meta=metas)
    rows = {
        (each.columns["measure"], each.columns["tasks"]): each.estimate for each in anchoring_findings(whole, "machine")
    }
    assert rows["followed", "with help"].value == 1
    assert rows["followed", "difference"].low > 0.2
    assert rows["marks", "difference"].low > 0
