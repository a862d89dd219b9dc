"""Tables of the sections critic: data, transition errors, section sequences and transition differences.

Deng et al. (2022): Tables 11, 12 and 18, Figure 4.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from finecomb.core.records import Document
from finecomb.corpora.critics.base import CriticScores
from finecomb.corpora.critics.priors import BEGIN, END, Markov, transition_counts

REAL_SYSTEM = "real"
MAX_ERROR_PROBABILITY = 0.01
"""Probability under the critic below which a transition counts as an error (Table 12)."""


def section_statistics(corpus: Sequence[tuple[Document, Sequence[tuple[str, int, int]]]]) -> dict[str, Any]:
    """Return Table 11 for the fitting documents, with section lengths in whitespace-separated words."""
    lengths = [len(document.text[start:end].split()) for document, sections in corpus for _, start, end in sections]
    return {
        "documents": len(corpus),
        "section types": len({title for _, sections in corpus for title, _, _ in sections}),
        "median sections": float(np.median([len(sections) for _, sections in corpus])),
        "median section words": float(np.median(lengths)),
        "max section words": max(lengths),
    }


def transition_errors(
    prior: Markov, system: str, scores: CriticScores, below: float = MAX_ERROR_PROBABILITY, top: int = 5
) -> pl.DataFrame:
    """Return Table 12: the most frequent transitions with P < `below`, as percentages of all transitions.

    The last two rows are the total, and the share of errors in which a section repeats its type.
    """
    counts = Counter(pair for pair in _transitions(scores) if {*pair} <= {BEGIN, END, *prior.states})
    total = sum(counts.values())
    errors = {pair: count for pair, count in counts.items() if _transition_probability(prior, pair) < below}
    failures = sum(errors.values())
    repeated = sum(count for (first, second), count in errors.items() if first == second)
    ranked = sorted(errors.items(), key=lambda row: (-row[1], row[0]))[:top]
    rows: list[tuple[object, ...]] = [
        (system, *pair, 100 * count / total, _transition_probability(prior, pair)) for pair, count in ranked
    ]
    share = 100 * repeated / failures if failures else math.nan
    rows.append((system, "total failures", "", 100 * failures / total if total else math.nan, None))
    rows.append((system, "repetitions among failures", "", share, None))
    kinds = {"system": pl.String, "from": pl.String, "to": pl.String, "percent": pl.Float64, "probability": pl.Float64}
    return pl.DataFrame(rows, schema=kinds, orient="row")


def _transitions(scores: CriticScores) -> Iterator[tuple[str, str]]:
    for path in scores.points:
        yield from zip((BEGIN, *path), (*path, END), strict=True)


def _transition_probability(prior: Markov, pair: tuple[str, str]) -> float:
    row = 0 if pair[0] == BEGIN else 1 + prior.states.index(pair[0])
    column = len(prior.states) if pair[1] == END else prior.states.index(pair[1])
    return float(np.exp(prior.log_transitions[row, column]))


def frequent_section_sequences(system: str, scores: CriticScores, top: int = 10) -> pl.DataFrame:
    """Return the most frequent sequences of section types, with their share and T(x) per transition."""
    rate = dict(zip(scores.points, scores.values_per_step, strict=True))
    counts = Counter(scores.points)
    ranked = sorted(counts.items(), key=lambda row: (-row[1], row[0]))[:top]
    rows = [
        (system, " > ".join(path), count, 100 * count / len(scores.ids), float(rate[path])) for path, count in ranked
    ]
    kinds = {"system": pl.String, "organisation": pl.String, "documents": pl.Int64, "percent": pl.Float64}
    return pl.DataFrame(rows, schema=kinds | {"nats per transition": pl.Float64}, orient="row")


def mean_section_order(real: CriticScores) -> list[str]:
    """Return section types sorted by their mean position in real documents."""
    positions_by_type: dict[str, list[float]] = {}
    for path in real.points:
        for position, state in enumerate(path):
            positions_by_type.setdefault(state, []).append(position / len(path))
    return sorted(positions_by_type, key=lambda state: float(np.mean(positions_by_type[state])))


TransitionChange = tuple[str, str, float, float]
"""Transition: from, to, P in generated minus P in real documents, and P under the critic."""
_MIN_TRANSITIONS = 10  # minimum per section type and side for comparing its successors


def transition_differences(
    prior: Markov, real: CriticScores, generated: CriticScores, top: int = 20
) -> list[TransitionChange]:
    """Return the differences in transitions between the `top` section types of real documents.

    Rows are sorted by absolute difference; types that are too rare on either side are omitted.
    """
    counts = [transition_counts(side.points, prior.states) for side in (generated, real)]
    fewest = np.minimum(*(table.sum(axis=1)[1:] for table in counts))
    common = [
        state
        for state in np.argsort(-counts[1].sum(axis=1)[1:], kind="stable")[:top]
        if fewest[state] >= _MIN_TRANSITIONS
    ]
    shares = [table[1:] / np.maximum(table[1:].sum(axis=1, keepdims=True), 1) for table in counts]
    critic = np.exp(prior.log_transitions[1:])
    rows = [
        (prior.states[i], prior.states[j], float(shares[0][i, j] - shares[1][i, j]), float(critic[i, j]))
        for i in common
        for j in common
    ]
    return sorted(rows, key=lambda row: -abs(row[2]))
