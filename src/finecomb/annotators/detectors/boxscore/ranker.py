"""The ranker, a small logistic regression that estimates the confidence of error candidates."""

from __future__ import annotations

import bisect
import functools
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from finecomb.annotators.detectors.boxscore.claims import ErrorCandidate
from finecomb.core.errors import FinecombError
from finecomb.core.guarded_json import load_json

DEFAULT_PENALTY = 0.3
# Endings of the flags that describe the reliability of the whole report
REPORT_CARE_FLAG_SUFFIXES = ("contradiction", "contradictions")
_MAX_NEWTON_STEPS = 50


@dataclass(frozen=True, slots=True)
class Ranker:
    """Weights by feature, and the error counts of each kind of statement in the training games."""

    threshold: float
    """Default minimum confidence of a reported error."""
    games: int
    """Number of training games."""
    intercept: float
    weights: Mapping[str, float]
    counts: Mapping[str, Sequence[int]]
    """Numbers of wrong statements and of all statements, by kind."""
    fitted_texts: Sequence[str] = ()
    """Hashes of the training texts (see `finecomb.core.text_hash`), empty for old weights."""

    def confidence(self, candidate: ErrorCandidate) -> float:
        """Return the probability that annotators would mark the candidate.

        The probability is 0 for a base-rate candidate of a kind without training data.
        """
        if candidate.basis == "base-rate" and candidate.kind not in self.counts:
            return 0.0
        return float(1 / (1 + np.exp(-self.score(candidate))))

    def score(self, candidate: ErrorCandidate) -> float:
        """Return the log odds of the candidate."""
        return self.intercept + sum(self.weights.get(name, 0.0) for name in candidate_features(candidate))

    def to_json(self) -> str:
        """Return the ranker as the contents of a JSON file."""
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"


def parse_ranker(text: str, where: str) -> Ranker:
    """Parse the output of `to_json`. `where` names the file in error messages."""
    try:
        values = load_json(text)
        ranker = Ranker(**values | {"fitted_texts": tuple(values.get("fitted_texts", ()))})
        numbers = [ranker.threshold, ranker.games, ranker.intercept, *ranker.weights.values()]
        if not np.isfinite(np.asarray(numbers, dtype=np.float64)).all():
            raise ValueError("a weight or other number is not finite")
        return ranker
    except (TypeError, ValueError, AttributeError) as error:
        message = f"{where}: not weights of the box-score checker ({error}); create them with `finecomb train`"
        raise FinecombError(message) from None


def read_ranker(path: Path) -> Ranker:
    """Read a ranker from a file written by `finecomb train`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FinecombError(f"{path}: cannot read the weights: {error}") from None
    return parse_ranker(text, str(path))


@functools.cache
def load_shipped_ranker() -> Ranker:
    """Load the ranker that ships with Finecomb."""
    file = resources.files(__package__).joinpath("weights.json")
    return parse_ranker(file.read_text(encoding="utf-8"), "weights.json")


def candidate_features(candidate: ErrorCandidate) -> list[str]:
    """Return the features of a candidate: its basis, label, kind and flags."""
    family = candidate.kind.partition(".")[0]
    return [
        candidate.basis,
        candidate.label,
        f"{family}*",
        candidate.kind,
        *(f"{candidate.kind}: {flag}" for flag in sorted(candidate.flags)),
        *(f"{candidate.basis}: {flag}" for flag in sorted(candidate.flags) if flag.endswith(REPORT_CARE_FLAG_SUFFIXES)),
    ]


class RatedCandidate(NamedTuple):
    """An error candidate with its confidence."""

    candidate: ErrorCandidate
    confidence: float


def rate_candidates(candidates: Iterable[ErrorCandidate], ranker: Ranker) -> list[RatedCandidate]:
    """Rate candidates and return them in text order. Of overlapping candidates, only the most confident is kept."""
    every = [RatedCandidate(candidate, ranker.confidence(candidate)) for candidate in candidates]
    every.sort(key=lambda rated: (-rated.confidence, rated.candidate.start, rated.candidate.end))
    starts: list[int] = []  # sorted starts of the chosen candidates, for bisection in long texts
    chosen: list[RatedCandidate] = []
    for rated in every:
        index = bisect.bisect_left(starts, rated.candidate.end)
        if index == 0 or chosen[index - 1].candidate.end <= rated.candidate.start:
            starts.insert(index, rated.candidate.start)
            chosen.insert(index, rated)
    return chosen


# --- fitting ------------------------------------------------------------------------------------------------------


def fit_ranker_weights(
    candidates: Sequence[ErrorCandidate], wrong: Sequence[bool], games: int, penalty: float = DEFAULT_PENALTY
) -> Ranker:
    """Fit a ranker by penalised logistic regression (Newton's method), with a free intercept and a threshold of 0.5."""
    # Many candidates share all features, so each combination is one row.
    sorts = [tuple(candidate_features(candidate)) for candidate in candidates]
    totals = Counter(sorts)
    hits = Counter(sort for sort, hit in zip(sorts, wrong, strict=True) if hit)
    names = sorted({name for sort in totals for name in sort})
    index = {name: number for number, name in enumerate(names)}
    x = np.zeros((len(totals), len(names) + 1))  # (combinations, features), with the intercept last
    x[:, -1] = 1
    for row, sort in enumerate(totals):
        x[row, [index[name] for name in sort]] = 1
    counts = np.array([(totals[sort], hits[sort]) for sort in totals], dtype=np.float64)
    weights = [round(float(weight), 4) for weight in _fit_logistic(x, counts, penalty)]
    return Ranker(
        0.5, games, weights[-1], dict(zip(names, weights, strict=False)), error_counts_by_kind(candidates, wrong)
    )


def error_counts_by_kind(candidates: Sequence[ErrorCandidate], wrong: Sequence[bool]) -> dict[str, tuple[int, int]]:
    """Count the wrong statements and all statements of each kind."""
    totals = Counter(candidate.kind for candidate in candidates)
    hits = Counter(candidate.kind for candidate, hit in zip(candidates, wrong, strict=True) if hit)
    return {kind: (hits[kind], totals[kind]) for kind in sorted(totals)}


def _fit_logistic(x: NDArray[np.float64], counts: NDArray[np.float64], penalty: float) -> NDArray[np.float64]:
    """Return the weights that minimise the penalised loss. `counts` has (all, wrong) for each row of `x`."""
    total, wrong = counts.T
    ridge = np.full(x.shape[1], penalty)
    # The intercept is practically free; the small penalty keeps the matrix invertible.
    ridge[-1] = 1e-6
    weights = np.zeros(x.shape[1])
    for _ in range(_MAX_NEWTON_STEPS):
        chance = 1 / (1 + np.exp(-x @ weights))
        gradient = x.T @ (total * chance - wrong) + ridge * weights
        hessian = (x * (total * chance * (1 - chance))[:, None]).T @ x + np.diag(ridge)
        step = np.linalg.solve(hessian, gradient)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    return weights


def fit_calibration_line(scores: Sequence[tuple[float, bool]]) -> tuple[float, float]:
    """Fit the slope and offset that map scores of held-out candidates to the log odds of being marked (Platt 1999)."""
    x = np.array([(score, 1.0) for score, _ in scores], dtype=np.float64).reshape(-1, 2)
    counts = np.array([(1.0, float(hit)) for _, hit in scores], dtype=np.float64).reshape(-1, 2)
    slope, offset = _fit_logistic(x, counts, 1e-3)
    return float(slope), float(offset)


def calibrate_ranker(ranker: Ranker, line: tuple[float, float]) -> Ranker:
    """Return the ranker with linearly calibrated scores. A positive slope keeps the order of candidates."""
    slope, offset = line
    weights = {name: round(slope * weight, 4) for name, weight in ranker.weights.items()}
    return replace(ranker, intercept=round(slope * ranker.intercept + offset, 4), weights=weights)


def best_f1_threshold(confidences: Iterable[float], wrong: Iterable[bool], errors: int) -> float:
    """Return the minimum confidence that gives the highest F1, where `errors` is the number of gold marks."""
    order = sorted(zip(confidences, wrong, strict=True), reverse=True)
    hits = np.cumsum([hit for _, hit in order])
    f1 = 2 * hits / (np.arange(1, len(order) + 1) + errors)
    return order[int(np.argmax(f1))][0] if order else 0.5
