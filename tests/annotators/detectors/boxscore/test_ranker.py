"""Tests of the ranker against its definition, and of its threshold against exhaustive search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.annotators.detectors.boxscore.claims import Basis, ErrorCandidate
from finecomb.annotators.detectors.boxscore.ranker import (
    DEFAULT_PENALTY,
    Ranker,
    best_f1_threshold,
    candidate_features,
    fit_ranker_weights,
    load_shipped_ranker,
    parse_ranker,
    rate_candidates,
)
from finecomb.core.errors import FinecombError


def candidate(
    start: int, length: int, kind: str, flags: frozenset[str] = frozenset(), basis: Basis = "record"
) -> ErrorCandidate:
    return ErrorCandidate(start, start + length, "number", kind, "claim", basis=basis, flags=flags)


candidates = st.builds(
    candidate,
    st.integers(0, 40),
    st.integers(1, 6),
    st.sampled_from(["player.points", "player.rebounds", "percent"]),
    st.frozensets(st.sampled_from(["near", "period"])),
)
judged = st.lists(st.tuples(candidates, st.booleans()), min_size=1, max_size=30)


def slow_loss(ranker: Ranker, examples: list[tuple[ErrorCandidate, bool]]) -> float:
    """Return the negative log-likelihood plus half the squared weights, summed over examples."""
    loss = DEFAULT_PENALTY / 2 * sum(weight**2 for weight in ranker.weights.values())
    for candidate, wrong in examples:
        chance = 1 / (
            1 + np.exp(-ranker.intercept - sum(ranker.weights[name] for name in candidate_features(candidate)))
        )
        loss -= np.log(chance if wrong else 1 - chance)
    return float(loss)


@given(judged, st.data())
def test_no_other_weights_fit_better(examples: list[tuple[ErrorCandidate, bool]], data: st.DataObject) -> None:
    if len({wrong for _, wrong in examples}) == 1:
        return  # the free intercept has no optimum
    ranker = fit_ranker_weights([candidate for candidate, _ in examples], [wrong for _, wrong in examples], games=1)
    name = data.draw(st.sampled_from(sorted(ranker.weights)))
    for step in (-0.1, 0.1):
        moved = {**ranker.weights, name: ranker.weights[name] + step}
        other = Ranker(0.5, 1, ranker.intercept, moved, ranker.counts)
        assert slow_loss(other, examples) > slow_loss(ranker, examples)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=25), st.integers(1, 30))
def test_the_threshold_is_the_best_of_all(rated_claims: list[tuple[float, bool]], errors: int) -> None:
    def f1(level: float) -> float:
        chosen = [wrong for confidence, wrong in rated_claims if confidence >= level]
        return 2 * sum(chosen) / (len(chosen) + errors)

    level = best_f1_threshold(
        [confidence for confidence, _ in rated_claims], [wrong for _, wrong in rated_claims], errors
    )
    reached = max(f1(confidence) for confidence, _ in rated_claims)
    distinct = len({confidence for confidence, _ in rated_claims}) == len(rated_claims)
    assert f1(level) == pytest.approx(reached) or not distinct  # candidates with equal confidence are reported together


@given(st.lists(candidates, max_size=15))
def test_of_slips_that_share_words_the_surest_is_kept(candidates: list[ErrorCandidate]) -> None:
    ranker = load_shipped_ranker()
    chosen = rate_candidates(candidates, ranker)
    for candidate in candidates:
        surer = [
            other for other in chosen if other.candidate.start < candidate.end and candidate.start < other.candidate.end
        ]
        assert surer
        assert max(other.confidence for other in surer) >= ranker.confidence(candidate)


def test_statements_of_a_kind_that_nobody_checked_are_never_sure() -> None:
    assert load_shipped_ranker().confidence(candidate(0, 1, "moon.phase", basis="base-rate")) == 0


def test_weights_survive_a_file_and_nonsense_is_refused() -> None:
    ranker = load_shipped_ranker()
    assert parse_ranker(ranker.to_json(), "here") == ranker
    for text in ("", "{}", "[]", '{"threshold": 1}', ranker.to_json().replace(str(ranker.intercept), "NaN")):
        with pytest.raises(FinecombError, match="here: not weights of the box-score checker"):
            parse_ranker(text, "here")
