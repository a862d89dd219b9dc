"""Tables of the sections critic: data, transition errors, organisations, and differences of transitions.

Deng et al. (2022): Tables 11, 12 and 18, Figure 4.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from finecomb.core.records import Document
from finecomb.corpora.critics.base import CriticScores
from finecomb.corpora.critics.priors import BEGIN, END, Markov, transition_counts

REAL = "real"
ERROR_PROBABILITY = 0.01
"""Table 12: a transition less probable than this under the critic is an error."""


def data_statistics(corpus: Sequence[tuple[Document, Sequence[tuple[str, int, int]]]]) -> dict[str, Any]:
    """Table 11 of the documents that a critic is fitted on; section lengths in words between spaces."""
    lengths = [len(document.text[start:end].split()) for document, sections in corpus for _, start, end in sections]
    return {
        "documents": len(corpus),
        "section types": len({title for _, sections in corpus for title, _, _ in sections}),
        "median sections": float(np.median([len(sections) for _, sections in corpus])),
        "median section words": float(np.median(lengths)),
        "max section words": max(lengths),
    }


def tables(
    prior: Markov, facts: Mapping[str, Any], real: CriticScores, systems: Mapping[str, CriticScores]
) -> dict[str, pl.DataFrame]:
    """All tables by name."""
    everybody = {REAL: real, **systems}
    return {
        "data": pl.DataFrame([dict(facts)]),
        "transition-errors": pl.concat(transition_errors(prior, name, scores) for name, scores in everybody.items()),
        "organisations": pl.concat(organisations(name, scores) for name, scores in everybody.items()),
    }


def transition_errors(
    prior: Markov, system: str, scores: CriticScores, below: float = ERROR_PROBABILITY, top: int = 5
) -> pl.DataFrame:
    """Table 12: the commonest transitions with P < `below`, in per cent of all, then all of them and repetitions.

    The last two rows are the total, and how many of the errors are a section followed by its like.
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


def organisations(system: str, scores: CriticScores, top: int = 10) -> pl.DataFrame:
    """The commonest whole sequences of section types, with their share and their T(x) per transition."""
    rate = dict(zip(scores.points, scores.values_per_step, strict=True))
    counts = Counter(scores.points)
    ranked = sorted(counts.items(), key=lambda row: (-row[1], row[0]))[:top]
    rows = [
        (system, " > ".join(path), count, 100 * count / len(scores.ids), float(rate[path])) for path, count in ranked
    ]
    kinds = {"system": pl.String, "organisation": pl.String, "documents": pl.Int64, "percent": pl.Float64}
    return pl.DataFrame(rows, schema=kinds | {"nats per transition": pl.Float64}, orient="row")


def mean_section_order(real: CriticScores) -> list[str]:
    """Section types by where they stand in real documents, on average."""
    places: dict[str, list[float]] = {}
    for path in real.points:
        for at, state in enumerate(path):
            places.setdefault(state, []).append(at / len(path))
    return sorted(places, key=lambda state: float(np.mean(places[state])))


TransitionChange = tuple[str, str, float, float]
"""From, to, P generated - P real, P of the critic."""
_MIN_TRANSITIONS = 10  # of a section type on both sides, before its successors are compared


def transition_differences(
    prior: Markov, real: CriticScores, generated: CriticScores, top: int = 20
) -> list[TransitionChange]:
    """Transitions among the `top` commonest real section types: from, to, P generated - P real, P of the critic.

    The largest difference comes first; types that either side has too rarely are left out.
    """
    counts = [transition_counts(side.points, prior.states) for side in (generated, real)]
    fewest = np.minimum(*(table.sum(axis=1)[1:] for table in counts))
    common = [
        at for at in np.argsort(-counts[1].sum(axis=1)[1:], kind="stable")[:top] if fewest[at] >= _MIN_TRANSITIONS
    ]
    shares = [table[1:] / np.maximum(table[1:].sum(axis=1, keepdims=True), 1) for table in counts]
    critic = np.exp(prior.log_transitions[1:])
    rows = [
        (prior.states[i], prior.states[j], float(shares[0][i, j] - shares[1][i, j]), float(critic[i, j]))
        for i in common
        for j in common
    ]
    return sorted(rows, key=lambda row: -abs(row[2]))
