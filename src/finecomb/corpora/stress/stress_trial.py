"""Stress tests of metrics: score texts before and after corruption, and report how far each metric falls."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from scipy import stats

from finecomb.core.errors import FinecombError
from finecomb.core.notes import ParameterNote
from finecomb.core.records import Document
from finecomb.core.results import Finding, Findings, Signature
from finecomb.corpora.stress.corruptions import CORRUPTIONS, CorruptionMaterial
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

HUMAN_CORRUPTION = "human"
"""Corruption that replaces the candidate with another human text, as an upper bound for good texts."""
CORPUS_METRIC_REASON = "the metric has one value for all texts together, so texts cannot be ranked by it"
MAX_CORPUS_DRAWS = 50
"""Maximum number of resamples for a metric of a whole corpus, which must be recomputed for each resample."""
_MAX_LISTED_FAILURES = 3  # failed texts listed with their reasons
NO_PAIRS_REASON = "no text could be corrupted in this way and scored by this metric"


class StressPair(NamedTuple):
    """Text before and after corruption."""

    corruption: str
    whole: Candidate
    damaged: Candidate
    damage: float
    """Share of words, 0 to 1, that must be edited to undo the corruption."""


@dataclass(frozen=True, slots=True)
class StressTable:
    """Result of a stress test."""

    falls: Findings
    """Decrease in each metric for each type of corruption, positive if the metric noticed the corruption."""
    ranks: Findings
    """Rank correlation of corruption and fall by metric, over all texts and corruptions."""
    notes: tuple[str, ...] = ()
    """Notes on failed metrics and missing scores."""
    failed: int = 0
    """Number of metrics that failed and have no rows."""


class MetricFalls(Findings):
    """Decrease in each metric for each type of corruption, as returned by `finecomb.stress`."""

    def __init__(self, table: StressTable, notes: Iterable[str] = (), reused_scores: int = 0) -> None:
        super().__init__(table.falls, (*notes, *table.notes), title="Fall of each metric on corrupted texts")
        self.ranks = Findings(table.ranks, title="Rank correlation of corruption and fall")
        """Rank correlation of corruption and fall by metric."""
        self.failed = table.failed
        """Number of metrics that failed and have no rows; the notes give the reasons."""
        self.reused_scores = reused_scores
        """Number of scores reused from an interrupted run."""


def exclusion_notes(
    documents: Sequence[Document], pairs: Sequence[StressPair], corruptions: Sequence[str], metrics: Sequence[Metric]
) -> list[str]:
    """Return notes on texts and corruptions that were excluded from a stress test."""
    notes = []
    without_references = sum(not document.references for document in documents)
    if without_references and any(metric.needs_references for metric in metrics):
        texts = f"{without_references:,} text{'' if without_references == 1 else 's'}"
        notes.append(f"{texts} without references: not scored by metrics that need references")
    if HUMAN_CORRUPTION in corruptions and not any(pair.corruption == HUMAN_CORRUPTION for pair in pairs):
        notes.append("no human ceiling: no text has two or more references")
    return notes


def corrupt_documents(documents: Sequence[Document], corruptions: Iterable[str], seed: int) -> list[StressPair]:
    """Apply each corruption to each document where possible. The result depends on the document ID and the seed."""
    names, neighbours = list(corruptions), CorruptionMaterial.from_documents(documents)
    pairs: list[StressPair] = []
    for name, document in itertools.product((name for name in names if name != HUMAN_CORRUPTION), documents):
        # seeded per document and corruption, so that a corruption does not depend on which others are requested
        rng = np.random.default_rng([seed, *f"{name}/{document.id}".encode()])
        text = CORRUPTIONS[name].damaged(document, neighbours, rng)
        if text is not None and text != document.text:
            whole = Candidate(document.text, document.references, document)
            damage = normalised_word_edit_distance(document.text, text)
            pairs.append(StressPair(name, whole, whole._replace(text=text), damage))
    for document in documents if HUMAN_CORRUPTION in names else ():
        if len(document.references) > 1:
            # The first reference replaces the text; both are scored against the remaining references
            first, *others = document.references
            whole = Candidate(document.text, tuple(others), document)
            damage = normalised_word_edit_distance(document.text, first)
            pairs.append(StressPair(HUMAN_CORRUPTION, whole, whole._replace(text=first), damage))
    return pairs


def normalised_word_edit_distance(whole: str, damaged: str) -> float:
    """Return the share of words that must be edited to change one text into the other.

    >>> texts = ("one two three four", "one two four three")
    >>> normalised_word_edit_distance(*texts), normalised_word_edit_distance("a b", "a b")
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
    """Return the decrease in each metric for each corruption, with intervals over documents.

    A metric that fails gets a note and no rows; an error is raised only if all fail. A text that a metric fails on is
    excluded from its rows, with a note. `watch` wraps the metrics, e.g. to show progress.
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
                no_rank = undefined_estimate(_rank_signature(metric, draws, seed), CORPUS_METRIC_REASON)
                ranks.append(Finding({"metric": metric.name, "pairs": 0}, no_rank))
                continue
            lost: dict[str, str] = {}
            whole = _side_scores(metric, [pair.whole for pair in usable], spread, lost)
            damaged = _side_scores(metric, [pair.damaged for pair in usable], spread, lost)
        except FinecombError as error:
            failures.append(error)
            notes.append(ParameterNote(f"{error.args[0]}; the metric has no rows"))
            continue
        listed = itertools.islice(lost.items(), _MAX_LISTED_FAILURES)
        notes += [f"{metric.name}: failed on {id}: {reason}" for id, reason in listed]
        if len(lost) > _MAX_LISTED_FAILURES:
            notes.append(f"{metric.name}: failed on {len(lost) - _MAX_LISTED_FAILURES} more texts")
        unscored = [*itertools.compress(usable, ~(np.isfinite(whole) & np.isfinite(damaged)))]
        if unscored:
            count, example = len(unscored), f"{unscored[0].whole.document.id}, {unscored[0].corruption}"
            notes.append(
                f"{metric.name}: no score for {count} of {len(usable)} text pairs (e.g. {example}); they are excluded"
            )
        for corruption in dict.fromkeys(pair.corruption for pair in pairs):
            rows = np.array([pair.corruption == corruption for pair in usable], dtype=bool)
            damages = np.array([pair.damage for pair in usable if pair.corruption == corruption])
            falls.append(_fall_finding(metric, corruption, whole[rows], damaged[rows], damages, draws, seed))
        ranks.append(_rank_correlation_finding(metric, usable, whole - damaged, draws, seed))
    if failures and len(failures) == len(metrics):
        raise failures[0]
    return StressTable(falls, ranks, tuple(notes), len(failures))


def _side_scores(metric: Metric, candidates: Sequence[Candidate], spread: Executor, failures: dict[str, str]) -> Floats:
    """Score each distinct candidate once, with the sign that makes higher better; add failures by document ID."""
    keys = [(candidate.text, candidate.references, candidate.document.id) for candidate in candidates]
    different = dict(zip(keys, candidates, strict=True))
    result = score_candidates(metric, list(different.values()), spread)
    ids = [id for _, _, id in different]
    failures.update({ids[position]: reason for position, reason in result.failures.items()})
    position_by_key = {key: position for position, key in enumerate(different)}
    sign = 1 if metric.higher_is_better else -1
    return sign * result.values[[position_by_key[key] for key in keys]] if keys else np.zeros(0)


def _fall_finding(
    metric: Metric, corruption: str, whole: Floats, damaged: Floats, damages: Floats, draws: int, seed: int
) -> Finding:
    defined = np.isfinite(whole) & np.isfinite(damaged)
    whole, damaged, damages = whole[defined], damaged[defined], damages[defined]
    sign = 1 if metric.higher_is_better else -1
    columns = {
        "metric": metric.name,
        "corruption": corruption,
        "texts": len(whole),
        "damage": _mean(damages),
        "before": sign * _mean(whole),
        "after": sign * _mean(damaged),
        "fooled": _mean(damaged > whole),
        "tied": _mean(damaged == whole),
    }
    signature = Signature.from_fields(
        statistic="fall", metric=metric.name, corruption=corruption, draws=draws, seed=seed
    )
    if not len(whole):
        return Finding(columns, undefined_estimate(signature, NO_PAIRS_REASON))
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
    """Return Spearman's correlation of corruption and fall over texts and corruptions, resampling whole documents."""
    is_kept = np.array([pair.corruption != HUMAN_CORRUPTION for pair in pairs], dtype=bool) & np.isfinite(falls)
    documents = [pair.whole.document.id for pair, keep in zip(pairs, is_kept, strict=True) if keep]
    damages = np.array([pair.damage for pair, keep in zip(pairs, is_kept, strict=True) if keep])
    signature = _rank_signature(metric, draws, seed)
    value = spearman(damages, falls[is_kept])
    columns = {"metric": metric.name, "pairs": len(documents)}
    if math.isnan(value):
        reason = (
            f"a rank correlation requires at least two corrupted texts with scores, found {len(documents)}"
            if len(documents) < 2
            else "the amount of corruption or the fall is the same for all texts, so they cannot be ranked"
        )
        return Finding(columns, undefined_estimate(signature, reason))
    names, numbers = np.unique(documents, return_inverse=True)
    rows = [np.flatnonzero(numbers == number) for number in range(len(names))]
    resamples = resampled_positions(len(names), min(draws, 200), np.random.default_rng(seed))
    resampled_rows = [np.concatenate([rows[number] for number in draw]) for draw in resamples]
    values = np.array(
        [spearman(damages[rows_of_draw], falls[is_kept][rows_of_draw]) for rows_of_draw in resampled_rows]
    )
    return Finding(
        columns,
        estimate_with_interval(value, values, signature, missing_interval_reason=few_documents_reason(len(names))),
    )


def _rank_signature(metric: Metric, draws: int, seed: int) -> Signature:
    return Signature.from_fields(statistic="spearman", metric=metric.name, draws=draws, seed=seed)


def _corpus_fall_findings(
    metric: Metric, usable: Sequence[StressPair], pairs: Sequence[StressPair], draws: int, seed: int
) -> Iterator[Finding]:
    """Yield the falls of a metric that scores a whole corpus; intervals use at most 50 resamples of documents."""
    sign = 1 if metric.higher_is_better else -1
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
            yield Finding(columns, undefined_estimate(signature, NO_PAIRS_REASON))
            continue
        before, after = _corpus_scores(metric, rows)
        resamples = resampled_positions(len(rows), min(draws, MAX_CORPUS_DRAWS), np.random.default_rng(seed))
        scores = [_corpus_scores(metric, [rows[position] for position in draw]) for draw in resamples]
        falls = sign * np.array([whole - damaged for whole, damaged in scores])
        estimate = estimate_with_interval(
            sign * (before - after), falls, signature, missing_interval_reason=few_documents_reason(len(rows))
        )
        yield Finding({**columns, "before": before, "after": after}, estimate)


def _corpus_scores(metric: Metric, rows: Sequence[StressPair]) -> tuple[float, float]:
    """Return the corpus scores of the original and of the corrupted texts."""
    (before,), (after,) = (
        metric_values(metric, [getattr(pair, side) for pair in rows], 1) for side in ("whole", "damaged")
    )
    return float(before), float(after)


def spearman(first: Floats, second: Floats) -> float:
    """Return Spearman's rank correlation; NaN for fewer than two pairs or constant values."""
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return math.nan
    return float(stats.spearmanr(first, second).statistic)


def _mean(values: NDArray[np.float64] | NDArray[np.bool_]) -> float:
    return float(np.mean(values)) if len(values) else math.nan
