"""Krippendorff's alpha for binary marks, in closed form, and the two-agree share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from finecomb.agreement.votes import Votes, token_votes
from finecomb.core.estimate import Estimate, Signature
from finecomb.core.study import Study
from finecomb.measure.bootstrap import Sums, interval, ratio
from finecomb.measure.coverage import offsets_by_document


def alpha_sums(votes: Sequence[Votes]) -> Sums:
    """D_o, n_1 and n of each document, (documents, 3); a document with fewer than two readers adds nothing."""
    return np.array([_document_sums(each) for each in votes], dtype=np.float64).reshape(-1, 3)


def _document_sums(votes: Votes) -> tuple[float, float, float]:
    k, m = votes.marked, votes.readers
    if m < 2:
        return 0.0, 0.0, 0.0
    return float((2 * k * (m - k)).sum() / (m - 1)), float(k.sum()), float(m * len(k))


def alpha(sums: Sums) -> NDArray[np.float64]:
    r"""Krippendorff's alpha, nominal, of binary ratings: $1 - (n - 1) D_o / (2 n_1 (n - n_1))$ for each row of sums.

    Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", for two values.
    NaN when nobody marked anything, or everybody everything: then chance disagreement is 0.
    """
    observed, ones, total = sums[:, 0], sums[:, 1], sums[:, 2]
    chance = 2 * ones * (total - ones)
    return 1 - ratio((total - 1) * observed, chance)


def two_agree_sums(votes: Sequence[Votes]) -> Sums:
    """Tokens marked by two or more and by one or more, (documents, 2); fewer than two readers add nothing."""
    pairs = [((each.marked >= 2).sum(), (each.marked >= 1).sum()) if each.readers >= 2 else (0, 0) for each in votes]
    return np.array(pairs, dtype=np.float64).reshape(-1, 2)


def two_agree(sums: Sums) -> NDArray[np.float64]:
    """Percentage of the tokens marked by anybody that were marked by two or more (Dou et al. 2022, appendix C)."""
    return 100 * ratio(sums[:, 0], sums[:, 1])


Statistic = tuple[Callable[[Sequence[Votes]], Sums], Callable[[Sums], NDArray[np.float64]]]

STATISTICS: dict[str, Statistic] = {"alpha": (alpha_sums, alpha), "two-agree": (two_agree_sums, two_agree)}


def agreement(
    study: Study,
    statistic: str = "alpha",
    label: str | None = None,
    tokens: str = "words",
    draws: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Agreement on tokens, pooled over documents, with an interval over documents."""
    to_sums, of_sums = STATISTICS[statistic]
    votes = token_votes(study, offsets_by_document(study, tokens), label)
    sums = to_sums(votes)
    signature = Signature.of(
        statistic=statistic,
        unit="token",
        label=label or "any",
        tokens=tokens,
        protocol="+".join(study.protocols),
        annotators=study.annotations["annotator"].n_unique(),
        documents=len(votes),
        draws=draws,
        seed=seed,
    )
    value = float(of_sums(sums.sum(axis=0)[None])[0])
    if math.isnan(value):
        return Estimate(value, math.nan, math.nan, signature, _why(votes))
    low, high = interval(sums, of_sums, draws, np.random.default_rng(seed))
    return Estimate(value, low, high, signature)


def _why(votes: Sequence[Votes]) -> str:
    if not votes:
        return "no annotations"
    shared = [each.marked for each in votes if each.readers >= 2]
    if not shared:
        return "no text was read by two annotators"
    return "everybody marked everything" if any(marked.any() for marked in shared) else "nobody marked anything"
