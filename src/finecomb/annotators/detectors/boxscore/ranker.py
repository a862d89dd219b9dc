"""The ranker of slips, how sure to be of each: a logistic regression, small enough to read."""

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

PENALTY = 0.3
CARE_FLAG_SUFFIXES = ("contradiction", "contradictions")  # how flags end that tell how careful the whole report is
_STEPS = 50


@dataclass(frozen=True, slots=True)
class Ranker:
    """Weights by feature, and how often each kind of statement was wrong in the games it was fitted on."""

    threshold: float
    """Report what is at least this sure, unless told otherwise."""
    games: int
    """How many games it was fitted on."""
    intercept: float
    weights: Mapping[str, float]
    counts: Mapping[str, Sequence[int]]
    """Wrong and all statements, by kind."""
    fitted_texts: Sequence[str] = ()
    """Hashes of the texts it was fitted on, see `finecomb.core.text_hash`; none for weights older than that."""

    def confidence(self, slip: ErrorCandidate) -> float:
        """The chance that readers would mark it too; nil for a statement of a kind that nobody has checked yet."""
        if slip.basis == "base-rate" and slip.kind not in self.counts:
            return 0.0
        return float(1 / (1 + np.exp(-self.score(slip))))

    def score(self, slip: ErrorCandidate) -> float:
        """The sum of its weights, from which the confidence comes."""
        return self.intercept + sum(self.weights.get(name, 0.0) for name in features(slip))

    def to_json(self) -> str:
        """The ranker as the text of one JSON file."""
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"


def parse_ranker(text: str, where: str) -> Ranker:
    """Read what `to_json` wrote; `where` names the file in messages."""
    try:
        values = json.loads(text)
        ranker = Ranker(**values | {"fitted_texts": tuple(values.get("fitted_texts", ()))})
        numbers = [ranker.threshold, ranker.games, ranker.intercept, *ranker.weights.values()]
        if not np.isfinite(np.asarray(numbers, dtype=np.float64)).all():
            raise ValueError("a weight is not a number")
        return ranker
    except (TypeError, ValueError, AttributeError) as error:
        message = f"{where}: not weights of the box-score checker ({error}); make them with `finecomb train`"
        raise FinecombError(message) from None


def read_ranker(path: Path) -> Ranker:
    """The ranker in a file that `finecomb train` wrote."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FinecombError(f"{path}: weights cannot be read: {error}") from None
    return parse_ranker(text, str(path))


@functools.cache
def shipped_ranker() -> Ranker:
    """The ranker that comes with Finecomb."""
    file = resources.files(__package__).joinpath("weights.json")
    return parse_ranker(file.read_text(encoding="utf-8"), "weights.json")


def features(slip: ErrorCandidate) -> list[str]:
    """What the ranker knows of a slip: its basis, label and kind, and each circumstance of the kind."""
    family = slip.kind.partition(".")[0]
    return [
        slip.basis,
        slip.label,
        f"{family}*",
        slip.kind,
        *(f"{slip.kind}: {flag}" for flag in sorted(slip.flags)),
        *(f"{slip.basis}: {flag}" for flag in sorted(slip.flags) if flag.endswith(CARE_FLAG_SUFFIXES)),
    ]


class RatedCandidate(NamedTuple):
    """A slip and how sure the ranker is of it."""

    slip: ErrorCandidate
    confidence: float


def rate_candidates(slips: Iterable[ErrorCandidate], ranker: Ranker) -> list[RatedCandidate]:
    """Slips in text order with their confidence; of those that share words only the surest is kept."""
    every = [RatedCandidate(slip, ranker.confidence(slip)) for slip in slips]
    every.sort(key=lambda candidate: (-candidate.confidence, candidate.slip.start, candidate.slip.end))
    starts: list[int] = []  # of those chosen, in text order; a text may be long
    chosen: list[RatedCandidate] = []
    for candidate in every:
        at = bisect.bisect_left(starts, candidate.slip.end)
        if at == 0 or chosen[at - 1].slip.end <= candidate.slip.start:
            starts.insert(at, candidate.slip.start)
            chosen.insert(at, candidate)
    return chosen


# --- fitting ------------------------------------------------------------------------------------------------------


def fit_ranker_weights(
    slips: Sequence[ErrorCandidate], wrong: Sequence[bool], games: int, penalty: float = PENALTY
) -> Ranker:
    """A ranker by penalised logistic regression (Newton's method); the intercept is free, the threshold one half."""
    totals = Counter(tuple(features(slip)) for slip in slips)  # many are alike: one row for each sort
    hits = Counter(tuple(features(slip)) for slip, hit in zip(slips, wrong, strict=True) if hit)
    names = sorted({name for sort in totals for name in sort})
    index = {name: number for number, name in enumerate(names)}
    x = np.zeros((len(totals), len(names) + 1))  # (sorts, features); the last feature is the intercept
    x[:, -1] = 1
    for row, sort in enumerate(totals):
        x[row, [index[name] for name in sort]] = 1
    counts = np.array([(totals[sort], hits[sort]) for sort in totals], dtype=np.float64)
    weights = [round(float(weight), 4) for weight in _fit_logistic(x, counts, penalty)]
    return Ranker(0.5, games, weights[-1], dict(zip(names, weights, strict=False)), kind_counts(slips, wrong))


def kind_counts(slips: Sequence[ErrorCandidate], wrong: Sequence[bool]) -> dict[str, tuple[int, int]]:
    """Wrong and all statements, by kind."""
    totals = Counter(slip.kind for slip in slips)
    hits = Counter(slip.kind for slip, hit in zip(slips, wrong, strict=True) if hit)
    return {kind: (hits[kind], totals[kind]) for kind in sorted(totals)}


def _fit_logistic(x: NDArray[np.float64], counts: NDArray[np.float64], penalty: float) -> NDArray[np.float64]:
    """Weights that minimise the penalised loss; `counts` has (all, wrong) for each row of `x`."""
    total, wrong = counts.T
    ridge = np.full(x.shape[1], penalty)
    ridge[-1] = 1e-6
    weights = np.zeros(x.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-x @ weights))
        gradient = x.T @ (total * chance - wrong) + ridge * weights
        hessian = (x * (total * chance * (1 - chance))[:, None]).T @ x + np.diag(ridge)
        step = np.linalg.solve(hessian, gradient)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    return weights


def calibration_line(scores: Sequence[tuple[float, bool]]) -> tuple[float, float]:
    """Slope and offset that fit scores of what a ranker had not seen to what people marked (Platt 1999)."""
    x = np.array([(score, 1.0) for score, _ in scores], dtype=np.float64).reshape(-1, 2)
    counts = np.array([(1.0, float(hit)) for _, hit in scores], dtype=np.float64).reshape(-1, 2)
    slope, offset = _fit_logistic(x, counts, 1e-3)
    return float(slope), float(offset)


def calibrate_ranker(ranker: Ranker, line: tuple[float, float]) -> Ranker:
    """A ranker whose scores are put on a line; the order of slips stays the same where the slope is positive."""
    slope, offset = line
    weights = {name: round(slope * weight, 4) for name, weight in ranker.weights.items()}
    return replace(ranker, intercept=round(slope * ranker.intercept + offset, 4), weights=weights)


def best_threshold(confidences: Iterable[float], wrong: Iterable[bool], errors: int) -> float:
    """The confidence for which F1 against `errors` gold marks is highest when all that is as sure is reported."""
    order = sorted(zip(confidences, wrong, strict=True), reverse=True)
    hits = np.cumsum([hit for _, hit in order])
    f1 = 2 * hits / (np.arange(1, len(order) + 1) + errors)
    return order[int(np.argmax(f1))][0] if order else 0.5
