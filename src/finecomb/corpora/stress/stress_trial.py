"""A trial of metrics: every text whole and damaged, scored, and how far each metric fell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from scipy import stats

from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.estimate import Finding, Signature
from finecomb.core.notes import ParameterNote
from finecomb.core.records import Document
from finecomb.core.results import Findings
from finecomb.corpora.stress.corruptions import CORRUPTIONS, Neighbours
from finecomb.corpora.stress.metric_scoring import metric_values, score_candidates
from finecomb.corpora.stress.stress_metrics import Candidate, Metric, lowercase_words
from finecomb.engine.partitions import Executor
from finecomb.statistics.inference.resampling import (
    estimate_with_interval,
    few_documents_reason,
    resampled_positions,
    resampled_sums,
    undefined_estimate,
)

Floats = NDArray[np.float64]

HUMAN = "human"
"""The row of another human text in place of the candidate: what a good text gets."""
CORPUS_METRIC_REASON = "the metric has one number for all texts together, so texts cannot be ranked by it"
MAX_CORPUS_DRAWS = 50
"""Resamples for a metric of a whole corpus, which is computed anew for each."""
_MAX_LISTED_FAILURES = 3  # texts that a metric failed at, each with its reason
NO_PAIRS = "no text could be damaged in this way and scored by this metric"


class StressPair(NamedTuple):
    """A text, whole and damaged."""

    corruption: str
    whole: Candidate
    damaged: Candidate
    damage: float
    """The share of words that would have to be edited to undo it, 0 to 1."""


@dataclass(frozen=True, slots=True)
class StressTable:
    """What came of a trial."""

    falls: Findings
    """By metric and corruption: how far the metric fell, positive where it noticed."""
    ranks: Findings
    """By metric: rank correlation of damage done and fall seen, over all texts and corruptions."""
    notes: tuple[str, ...] = ()
    """Metrics that failed, and texts for which a metric had no number."""
    failed: int = 0
    """How many metrics failed and have no rows."""


class MetricFalls(Findings):
    """How far each metric falls on each corruption: the result of `finecomb.stress`."""

    def __init__(self, table: StressTable, notes: Iterable[str] = (), reused_scores: int = 0) -> None:
        super().__init__(table.falls, (*notes, *table.notes), title="How far each metric falls when a text is damaged")
        self.ranks = Findings(table.ranks, title="Rank correlation of damage done and fall seen")
        """By metric: rank correlation of damage done and fall seen."""
        self.failed = table.failed
        """How many metrics failed and have no rows; the notes give the reasons."""
        self.reused_scores = reused_scores
        """How many scores came from an earlier run that was interrupted."""


def exclusion_notes(
    documents: Sequence[Document], pairs: Sequence[StressPair], corruptions: Sequence[str], metrics: Sequence[Metric]
) -> list[str]:
    """Return what was left out of a trial, and why."""
    notes = []
    bare = sum(not document.references for document in documents)
    if bare and any(metric.needs_references for metric in metrics):
        texts = f"{bare:,} text{'' if bare == 1 else 's'}"
        notes.append(f"{texts} without references: not scored by metrics that compare with them")
    if HUMAN in corruptions and not any(pair.corruption == HUMAN for pair in pairs):
        notes.append("no human ceiling: it needs texts with two references or more")
    return notes


def check_corruptions(names: Sequence[str]) -> list[str]:
    """Return the corruptions that are asked for; all, and a human text as ceiling, where none is named."""
    known = [*CORRUPTIONS, HUMAN]
    for name in names:
        if name not in known:
            raise ParameterError(
                f"{param('corruption', name)}: unknown{did_you_mean(name, known)}", parameter="corruption"
            )
    return list(names) or known


def corrupt_documents(documents: Sequence[Document], corruptions: Iterable[str], seed: int) -> list[StressPair]:
    """Every document damaged in every way that applies; how depends on its id, the seed and what it borrows."""
    neighbours = Neighbours.from_documents(documents)
    pairs = [
        _corrupt_document(document, name, neighbours, seed)
        for name in corruptions
        if name != HUMAN
        for document in documents
    ]
    human = [_human_pair(document) for document in documents] if HUMAN in corruptions else []
    return [pair for pair in (*pairs, *human) if pair is not None]


def _corrupt_document(document: Document, name: str, neighbours: Neighbours, seed: int) -> StressPair | None:
    rng = np.random.default_rng([seed, *f"{name}/{document.id}".encode()])
    text = CORRUPTIONS[name].damaged(document, neighbours, rng)
    if text is None or text == document.text:
        return None
    whole = Candidate(document.text, document.references, document)
    return StressPair(name, whole, whole._replace(text=text), normalised_edit_distance(document.text, text))


def _human_pair(document: Document) -> StressPair | None:
    """The first reference in the candidate's place, and both scored against the other references."""
    if len(document.references) < 2:
        return None
    first, *others = document.references
    whole = Candidate(document.text, tuple(others), document)
    return StressPair(HUMAN, whole, whole._replace(text=first), normalised_edit_distance(document.text, first))


def normalised_edit_distance(whole: str, damaged: str) -> float:
    """The share of words to edit between two texts.

    >>> damage("one two three four", "one two four three"), damage("a b", "a b")
    (0.5, 0.0)
    """
    return float(Levenshtein.normalized_distance(lowercase_words(whole), lowercase_words(damaged)))


def run_stress_trial(
    pairs: Sequence[StressPair],
    metrics: Sequence[Metric],
    draws: int = 1000,
    seed: int = 0,
    spread: Executor | None = None,
    watch: Callable[[Sequence[Metric]], Iterable[Metric]] = iter,
) -> StressTable:
    """How far each metric falls on each corruption, with intervals over documents; scores are made as `spread` says.

    A metric that fails has a note and no rows; what the others found is kept. It is an error if all fail. A text that a
    metric fails at is left out of its rows, with a note. `watch` passes the metrics on, e.g. to show progress.
    """
    falls, ranks = Findings(), Findings()
    notes: list[str] = []
    spread = spread or Executor()
    failures: list[FinecombError] = []
    for metric in watch(metrics):
        usable = [pair for pair in pairs if pair.whole.references or not metric.needs_references]
        try:
            if metric.of_corpus:
                falls.extend(_corpus_fall_findings(metric, usable, pairs, draws, seed))
                ranks.append(
                    Finding(
                        {"metric": metric.name, "pairs": 0},
                        undefined_estimate(_rank_signature(metric, draws, seed), CORPUS_METRIC_REASON),
                    )
                )
                continue
            result = _score_pairs(metric, usable, spread)
        except FinecombError as error:
            failures.append(error)
            notes.append(ParameterNote(f"{error.args[0]}; it has no rows"))
            continue
        whole, damaged = result.whole, result.damaged
        notes += [*result.notes, *_missing_score_notes(metric, usable, np.isfinite(whole) & np.isfinite(damaged))]
        for corruption in dict.fromkeys(pair.corruption for pair in pairs):
            rows = np.array([pair.corruption == corruption for pair in usable], dtype=bool)
            damages = np.array([pair.damage for pair in usable if pair.corruption == corruption])
            falls.append(_fall_finding(metric, corruption, whole[rows], damaged[rows], damages, draws, seed))
        ranks.append(_rank_correlation_finding(metric, usable, whole - damaged, draws, seed))
    if failures and len(failures) == len(metrics):
        raise failures[0]
    return StressTable(falls, ranks, tuple(notes), len(failures))


def _missing_score_notes(metric: Metric, pairs: Sequence[StressPair], defined: NDArray[np.bool_]) -> list[str]:
    """One line where a metric has no number for a text, whole or damaged."""
    silent = [pair for pair, has in zip(pairs, defined, strict=True) if not has]
    if not silent:
        return []
    example = f"{silent[0].whole.document.id}, {silent[0].corruption}"
    return [f"{metric.name}: no number for {len(silent)} of {len(pairs)} pairs of texts ({example}); they are left out"]


class _PairScores(NamedTuple):
    """Scores of pairs, turned so that higher is better."""

    whole: Floats
    damaged: Floats
    notes: list[str]


def _score_pairs(metric: Metric, pairs: Sequence[StressPair], spread: Executor) -> _PairScores:
    """Scores of both sides of all pairs, with notes on texts that the metric failed at."""
    failures: dict[str, str] = {}
    whole = _side_scores(metric, [pair.whole for pair in pairs], spread, failures)
    damaged = _side_scores(metric, [pair.damaged for pair in pairs], spread, failures)
    notes = [f"{metric.name}: failed at {id}: {reason}" for id, reason in list(failures.items())[:_MAX_LISTED_FAILURES]]
    if len(failures) > _MAX_LISTED_FAILURES:
        notes.append(f"{metric.name}: failed at {len(failures) - _MAX_LISTED_FAILURES} more texts")
    return _PairScores(whole, damaged, notes)


def _side_scores(metric: Metric, candidates: Sequence[Candidate], spread: Executor, failures: dict[str, str]) -> Floats:
    """Scores turned so that higher is better; each different candidate is scored once. Fills `failures` by document."""
    keys = [(candidate.text, candidate.references, candidate.document.id) for candidate in candidates]
    different = dict(zip(keys, candidates, strict=True))
    result = score_candidates(metric, list(different.values()), spread)
    ids = [id for _, _, id in different]
    failures.update({ids[place]: reason for place, reason in result.failures.items()})
    places = {key: place for place, key in enumerate(different)}
    turn = 1 if metric.higher_is_better else -1
    return turn * result.values[[places[key] for key in keys]] if keys else np.zeros(0)


def _fall_finding(
    metric: Metric, corruption: str, whole: Floats, damaged: Floats, damages: Floats, draws: int, seed: int
) -> Finding:
    defined = np.isfinite(whole) & np.isfinite(damaged)
    whole, damaged, damages = whole[defined], damaged[defined], damages[defined]
    turn = 1 if metric.higher_is_better else -1
    columns = {
        "metric": metric.name,
        "corruption": corruption,
        "texts": len(whole),
        "damage": _mean(damages),
        "before": turn * _mean(whole),
        "after": turn * _mean(damaged),
        "fooled": _mean(damaged > whole),
        "tied": _mean(damaged == whole),
    }
    signature = Signature.from_fields(
        statistic="fall", metric=metric.name, corruption=corruption, draws=draws, seed=seed
    )
    if not len(whole):
        return Finding(columns, undefined_estimate(signature, NO_PAIRS))
    differences = whole - damaged
    means = resampled_sums(differences[:, None], draws, np.random.default_rng(seed))[:, 0] / len(differences)
    return Finding(
        columns,
        estimate_with_interval(
            _mean(differences), means, signature, missing_interval_reason=few_documents_reason(len(differences))
        ),
    )


def _rank_correlation_finding(
    metric: Metric, pairs: Sequence[StressPair], falls: Floats, draws: int, seed: int
) -> Finding:
    """Spearman's correlation over texts and corruptions; whole documents are drawn."""
    kept = np.array([pair.corruption != HUMAN for pair in pairs], dtype=bool) & np.isfinite(falls)
    documents = [pair.whole.document.id for pair, keep in zip(pairs, kept, strict=True) if keep]
    damages = np.array([pair.damage for pair, keep in zip(pairs, kept, strict=True) if keep])
    signature = _rank_signature(metric, draws, seed)
    value = spearman(damages, falls[kept])
    columns = {"metric": metric.name, "pairs": len(documents)}
    if math.isnan(value):
        return Finding(
            columns, undefined_estimate(signature, "damage or fall is the same everywhere, so there is no rank")
        )
    names, numbers = np.unique(documents, return_inverse=True)
    rows = [np.flatnonzero(numbers == number) for number in range(len(names))]
    drawn = resampled_positions(len(names), min(draws, 200), np.random.default_rng(seed))
    places = [np.concatenate([rows[number] for number in draw]) for draw in drawn]
    values = np.array([spearman(damages[place], falls[kept][place]) for place in places])
    return Finding(
        columns,
        estimate_with_interval(value, values, signature, missing_interval_reason=few_documents_reason(len(names))),
    )


def _rank_signature(metric: Metric, draws: int, seed: int) -> Signature:
    return Signature.from_fields(statistic="spearman", metric=metric.name, draws=draws, seed=seed)


def _corpus_fall_findings(
    metric: Metric, usable: Sequence[StressPair], pairs: Sequence[StressPair], draws: int, seed: int
) -> Iterator[Finding]:
    """Falls of a metric that has one number for a corpus; the interval draws documents, at most 50 times."""
    turn = 1 if metric.higher_is_better else -1
    for corruption in dict.fromkeys(pair.corruption for pair in pairs):
        rows = [pair for pair in usable if pair.corruption == corruption]
        signature = Signature.from_fields(
            statistic="fall", metric=metric.name, corruption=corruption, draws=min(draws, MAX_CORPUS_DRAWS), seed=seed
        )
        columns = {
            "metric": metric.name, "corruption": corruption, "texts": len(rows),
            "damage": _mean(np.array([pair.damage for pair in rows])), "before": math.nan, "after": math.nan,
            "fooled": math.nan, "tied": math.nan,
        }  # fmt: skip
        if not rows:
            yield Finding(columns, undefined_estimate(signature, NO_PAIRS))
            continue
        before, after = _corpus_scores(metric, rows)
        drawn = resampled_positions(len(rows), min(draws, MAX_CORPUS_DRAWS), np.random.default_rng(seed))
        scores = [_corpus_scores(metric, [rows[place] for place in draw]) for draw in drawn]
        falls = turn * np.array([whole - damaged for whole, damaged in scores])
        estimate = estimate_with_interval(
            turn * (before - after), falls, signature, missing_interval_reason=few_documents_reason(len(rows))
        )
        yield Finding({**columns, "before": before, "after": after}, estimate)


def _corpus_scores(metric: Metric, rows: Sequence[StressPair]) -> tuple[float, float]:
    """One number for the whole texts and one for the damaged."""
    (before,), (after,) = (
        metric_values(metric, [getattr(pair, side) for pair in rows], 1) for side in ("whole", "damaged")
    )
    return float(before), float(after)


def spearman(first: Floats, second: Floats) -> float:
    """Rank correlation; NaN where either side does not vary."""
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return math.nan
    return float(stats.spearmanr(first, second).statistic)


def _mean(values: NDArray[np.float64] | NDArray[np.bool_]) -> float:
    return float(np.mean(values)) if len(values) else math.nan
