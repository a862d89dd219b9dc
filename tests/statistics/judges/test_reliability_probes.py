from __future__ import annotations

import numpy as np
import pytest

from finecomb.core.errors import FinecombError
from finecomb.core.results import Signature
from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.judges.reliability_probes import (
    find_own_system,
    mean_paired_difference,
    probe_findings,
    self_preference_finding,
)
from finecomb.statistics.judges.text_values import select_people_and_judges
from finecomb.statistics.selection.view import Filters, view
from tests.statistics.judges.judge_studies import make_judge_study, simulate_annotator

PROBE = {"again": {"probe": "repeat", "probe_of": "judge"}}


def test_a_probe_is_the_judges_agreement_with_itself() -> None:
    whole = make_judge_study(
        {"judge": simulate_annotator(40, 1), "again": simulate_annotator(40, 2)},
        {"judge": "llm", "again": "llm"},
        annotator_meta=PROBE,
    )
    alpha, same, change = probe_findings(whole, "judge", draws=100)
    expected = agree(view(whole, Filters(annotators=("judge", "again"))), ["alpha"], draws=0)[0].estimate.value
    assert alpha.estimate.value == pytest.approx(expected, abs=2e-3)
    assert change.estimate.low < 0 < change.estimate.high
    assert same.estimate.value == 1  # each position has only one label
    assert probe_findings(whole, "judge", only="labels") == []


def test_planted_effects_are_found() -> None:
    """.35 standard deviations of the paired difference at 100 texts: power .93 by the noncentral t."""
    found = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        base = rng.poisson(3, 100).astype(float)
        difference = rng.normal(0.35, 1, 100)
        estimate = mean_paired_difference(base, base + difference, Signature.from_fields())
        found += estimate.low > 0
    assert found >= 0.88 * 200


def test_what_does_not_change_has_no_interval() -> None:
    same = mean_paired_difference(np.arange(10.0), np.arange(10.0), Signature.from_fields())
    assert (same.value, same.why) == (0, "all differences are 0, so there is no interval")
    assert (
        mean_paired_difference(np.arange(3.0), np.arange(3.0), Signature.from_fields()).why
        == "at least 8 texts annotated both times are required, found 3"
    )


def test_a_judge_that_spares_its_own_model_is_seen() -> None:
    person, judge = simulate_annotator(80, 0, finds=0.9, alarms=0), simulate_annotator(80, 1, finds=0.9, alarms=0)
    metas = {name: {"model": "mine" if at % 2 else "other"} for at, name in enumerate(sorted(person))}
    judge = {name: marks[:1] if metas[name]["model"] == "mine" else marks for name, marks in judge.items()}
    sides = select_people_and_judges(
        make_judge_study({"p0": person, "judge": judge}, {"judge": "llm"}, metas=metas), ["judge"]
    )
    assert self_preference_finding(sides, "judge", "mine").estimate.high < 0
    with pytest.raises(FinecombError, match="no text has model"):
        self_preference_finding(sides, "judge", "yours")


def test_labels_that_change_with_their_order_are_seen() -> None:
    base = simulate_annotator(40, 1, finds=1, alarms=0)
    swapped = {
        text: [(start, end, "number" if at % 4 == 0 else label) for start, end, label in marks]
        for at, (text, marks) in enumerate(base.items())
    }
    meta = {"other": {"probe": "labels", "probe_of": "judge"}}
    whole = make_judge_study({"judge": base, "other": swapped}, {"judge": "llm", "other": "llm"}, annotator_meta=meta)
    alpha, same, _ = probe_findings(whole, "judge", draws=100)
    assert alpha.estimate.value == 1
    expected = [
        (end - start, (end - start) * (at % 4 != 0 or label == "number"))
        for at, marks in enumerate(base.values())
        for start, end, label in marks
    ]
    assert same.estimate.value == pytest.approx(sum(hit for _, hit in expected) / sum(size for size, _ in expected))


@pytest.mark.long
def test_a_spared_model_is_found_at_100_prompts_by_comparing_texts_of_one_prompt() -> None:
    """The judge omits marks on its own texts, .35 standard deviations of the paired difference."""
    hits = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        names = [f"{system}{prompt:03}" for system in ("mine", "other") for prompt in range(100)]
        metas = {name: {"model": name[:-3], "prompt_id": name[-3:]} for name in names}
        places = [(0, 3), (4, 9), (10, 14), (15, 18), (19, 24), (25, 27), (28, 31)]
        counts = {name: int(rng.integers(2, 5)) for name in names}
        judged = {name: counts[name] + int(rng.integers(-1, 2)) for name in names}  # variance 2/3, of a difference 4/3
        spared = 0.35 * np.sqrt(4 / 3)
        judged |= {name: count - int(rng.random() < spared) for name, count in judged.items() if name < "n"}
        sides = select_people_and_judges(
            make_judge_study(
                {
                    "p0": {name: [(*places[at], "name") for at in range(count)] for name, count in counts.items()},
                    "judge": {name: [(*places[at], "name") for at in range(count)] for name, count in judged.items()},
                },
                {"judge": "llm"}, metas=metas,
            ),
            ["judge"],
        )  # fmt: skip
        estimate = self_preference_finding(sides, "judge", "mine").estimate
        assert "pairing:prompts" in str(estimate.signature)
        hits += estimate.high < 0
    assert hits >= 34  # 9 in 10 of 40 are 36; 34 or fewer come up 1 time in 5 at a power of .9


def test_the_judges_own_model_is_known_from_its_annotator() -> None:
    texts = {name: {"model": "mine"} for name in simulate_annotator(8, 1)}
    named = make_judge_study({"judge": simulate_annotator(8, 1)}, {"judge": "llm"}, texts, {"judge": {"model": "mine"}})
    assert find_own_system(named, "judge") == "mine"
    other = make_judge_study(
        {"judge": simulate_annotator(8, 1)}, {"judge": "llm"}, texts, {"judge": {"model": "m", "own_system": "mine"}}
    )
    assert find_own_system(other, "judge") == "mine"
    assert find_own_system(make_judge_study({"judge": simulate_annotator(8, 1)}, metas=texts), "judge") == ""


def test_an_unknown_probe_is_refused() -> None:
    whole = make_judge_study(
        {"judge": simulate_annotator(9, 1), "x": simulate_annotator(9, 2)},
        annotator_meta={"x": {"probe": "repat", "probe_of": "judge"}},
    )
    with pytest.raises(FinecombError, match="did you mean 'repeat'"):
        probe_findings(whole, "judge")
