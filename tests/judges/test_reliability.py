from __future__ import annotations

import numpy as np
import pytest

from finecomb.agreement.agree import agree
from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Signature
from finecomb.judges.reliability import paired_effect, probes, self_preference
from finecomb.judges.text_values import people_and_judges
from finecomb.measure.view import Filters, view
from tests.judges.worlds import reader, study

PROBE = {"again": {"probe": "repeat", "probe_of": "judge"}}


def test_a_probe_is_the_judges_agreement_with_itself() -> None:
    whole = study(
        {"judge": reader(40, 1), "again": reader(40, 2)}, {"judge": "llm", "again": "llm"}, annotator_meta=PROBE
    )
    alpha, change = probes(whole, "judge", draws=100)
    expected = agree(view(whole, Filters(annotators=("judge", "again"))), ["alpha"], draws=0)[0].estimate.value
    assert alpha.estimate.value == pytest.approx(expected, abs=2e-3)
    assert change.estimate.low < 0 < change.estimate.high


def test_planted_effects_are_found() -> None:
    """.35 standard deviations of the paired difference at 100 texts: power .93 by the noncentral t."""
    found = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        base = rng.poisson(3, 100).astype(float)
        difference = rng.normal(0.35, 1, 100)
        estimate = paired_effect(base, base + difference, Signature.of())
        found += estimate.low > 0
    assert found >= 0.88 * 200


def test_what_does_not_change_has_no_interval() -> None:
    same = paired_effect(np.arange(10.0), np.arange(10.0), Signature.of())
    assert (same.value, same.why) == (0, "no text changed, so no interval")
    assert "8 are needed" in paired_effect(np.arange(3.0), np.arange(3.0), Signature.of()).why


def test_a_judge_that_spares_its_own_model_is_seen() -> None:
    person, judge = reader(80, 0, finds=0.9, alarms=0), reader(80, 1, finds=0.9, alarms=0)
    metas = {name: {"model": "mine" if at % 2 else "other"} for at, name in enumerate(sorted(person))}
    judge = {name: marks[:1] if metas[name]["model"] == "mine" else marks for name, marks in judge.items()}
    sides = people_and_judges(study({"p0": person, "judge": judge}, {"judge": "llm"}, metas=metas), ["judge"])
    assert self_preference(sides, "judge", "mine").estimate.high < 0
    with pytest.raises(FinecombError, match="no text has model"):
        self_preference(sides, "judge", "yours")


def test_an_unknown_probe_is_refused() -> None:
    whole = study(
        {"judge": reader(9, 1), "x": reader(9, 2)}, annotator_meta={"x": {"probe": "repat", "probe_of": "judge"}}
    )
    with pytest.raises(FinecombError, match="did you mean 'repeat'"):
        probes(whole, "judge")
