"""Comparison of systems with held-out real documents by the statistics of a critic.

The *unit* of permutation tests and resampling is a document, or a cluster of documents that belong together, such as
several continuations of one prompt. With `paired`, real and generated documents of one cluster are compared with each
other, and documents are exchanged only within clusters.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from finecomb.core.results import Estimate, Signature
from finecomb.corpora.critics.base import (
    CorpusStatistic,
    Critic,
    CriticScores,
    DroppedDocument,
    mean_nll,
    perplexity,
    ppl_undefined_reason,
)
from finecomb.corpora.critics.posteriors import Floats
from finecomb.corpora.critics.progress import track_progress
from finecomb.statistics.inference.permutation_tests import Correction, adjust_p_values
from finecomb.statistics.inference.resampling import (
    Sums,
    estimate_with_interval,
    permutation_p_value,
    resampled_document_weights,
    resampled_sums,
    undefined_estimate,
)

COPY_REASON = "is a copy of a text that the critic was fitted on"
"""Reason for excluding a generated document: a copy shows memorisation, not structure."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of one system with real documents by one statistic of one critic."""

    critic: str
    statistic: str
    """Name of the statistic: `ppl`, or the mean over documents of `nll`, `plugin` or `kl`."""
    system: str
    real: float
    generated: float
    difference: Estimate
    """Generated minus real; the interval resamples documents, or clusters, on both sides."""
    p: float
    """Two-sided permutation p-value; under the null hypothesis, documents or clusters are exchangeable."""
    p_adjusted: float
    matched: Estimate
    """Difference after weighting real documents to the lengths of generated ones; resampled within lengths."""
    p_matched: float
    """Permutation p-value with documents exchanged only within the same length."""
    unmatched: int
    """Number of generated documents excluded from `matched` because no real document has the same length."""
    documents: tuple[int, int]
    """Number of real and generated documents with a score."""
    dropped: tuple[int, int]
    """Number of real and generated documents without a score."""
    copies: int = 0
    """Number of dropped generated documents that copy a fitting text."""

    @property
    def note(self) -> str:
        """Reason for a value below that of real documents, which is not a sign of quality (the paper's footnote 9).

        The length-matched difference decides: mode-seeking shows at every length, whereas an effect of short texts
        vanishes.
        """
        parts: list[str] = []
        if self.matched.high < 0:
            parts.append("mode-seeking")
        elif self.difference.value < 0 and not self.difference.high < 0:
            parts.append("below real, within noise")
        elif self.difference.value < 0:
            is_matched = math.isfinite(self.matched.value)
            parts.append("below real by length alone" if is_matched else "below real, lengths differ")
        if self.copies:
            parts.append(f"{self.copies} copies")
        return "; ".join(parts)

    def row(self) -> dict[str, object]:
        """Return the comparison as a table row."""
        return {
            "critic": self.critic, "statistic": self.statistic, "system": self.system,
            "real": self.real, "generated": self.generated, "difference": self.difference.value,
            "low": self.difference.low, "high": self.difference.high, "p": self.p, "p_adjusted": self.p_adjusted,
            "matched": self.matched.value, "matched_low": self.matched.low, "matched_high": self.matched.high,
            "p_matched": self.p_matched, "unmatched": self.unmatched or "", "copies": self.copies or "",
            "documents": "+".join(map(str, self.documents)),
            "dropped": "+".join(map(str, self.dropped)) if any(self.dropped) else "",
            "note": self.note, "why": self.difference.why, "signature": str(self.difference.signature),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Contrast:
    """Comparison of one system with another by one statistic of one critic."""

    critic: str
    statistic: str
    system: str
    against: str
    difference: Estimate
    """First system minus the second."""
    p: float
    p_adjusted: float

    def row(self) -> dict[str, object]:
        """Return the contrast as a table row."""
        return {
            "critic": self.critic, "statistic": self.statistic, "system": self.system, "against": self.against,
            "difference": self.difference.value, "low": self.difference.low, "high": self.difference.high,
            "p": self.p, "p_adjusted": self.p_adjusted, "why": self.difference.why,
        }  # fmt: skip


TestedRow = TypeVar("TestedRow", Comparison, Contrast)


def compare(
    real: CriticScores,
    systems: Mapping[str, CriticScores],
    correction: Correction = "holm",
    draws: int = 1000,
    seed: int = 0,
    paired: bool = False,
) -> list[Comparison]:
    """Compare each system with real documents by mean T(x) and, if z is a sequence of states, by Latent PPL.

    `real` must not contain documents that the critic was fitted on, because their values are too low. p-values are
    corrected within each statistic; pass the rows of several critics to `correct_p_values` to correct across critics.
    With `paired`, documents of one cluster (or of one ID, without clusters) are compared with each other.
    """
    rows: list[Comparison] = []
    for system, generated in track_progress(systems.items(), "comparing systems", len(systems)):
        rows += _compare_system(real, system, generated, draws, seed, paired)
    return correct_p_values(rows, correction)


def contrast_systems(
    systems: Mapping[str, CriticScores], correction: Correction = "holm", draws: int = 1000, seed: int = 0
) -> list[Contrast]:
    """Compare each pair of systems, paired by cluster if they share clusters such as prompts."""
    rows: list[Contrast] = []
    for first, second in itertools.combinations(systems, 2):
        paired = len(set(systems[first].clusters) & set(systems[second].clusters)) > 1
        for row in _compare_system(systems[second], f"{first}\x1f{second}", systems[first], draws, seed, paired):
            rows.append(Contrast(row.critic, row.statistic, first, second, row.difference, row.p, math.nan))
    return correct_p_values(rows, correction)


def correct_p_values(rows: Iterable[TestedRow], correction: Correction = "holm") -> list[TestedRow]:
    """Correct the p-values of all rows for multiple testing; Latent PPL and means are two separate families."""
    listed = list(rows)
    result = np.full(len(listed), math.nan)
    for family in (True, False):
        family_rows = np.array(
            [index for index, row in enumerate(listed) if (row.statistic == "ppl") == family], dtype=np.int64
        )
        result[family_rows] = adjust_p_values(np.array([listed[index].p for index in family_rows]), correction)
    return [replace(row, p_adjusted=float(p)) for row, p in zip(listed, result, strict=True)]


def combine_split_comparisons(
    splits: Sequence[Sequence[Comparison]], correction: Correction = "holm"
) -> list[Comparison]:
    """Combine comparisons from several splits of the real documents into one per system and statistic.

    Values are medians over splits. A p-value is twice the median, at most 1, which is valid for any dependence between
    the splits (Meinshausen, Meier and Buehlmann 2009, with gamma = 1/2).
    """
    combined = [
        replace(
            rows[0],
            real=statistics.median(row.real for row in rows),
            generated=statistics.median(row.generated for row in rows),
            difference=_median_estimate([row.difference for row in rows]),
            p=min(1.0, 2 * statistics.median(row.p for row in rows)),
            matched=_median_estimate([row.matched for row in rows]),
            p_matched=min(1.0, 2 * statistics.median(row.p_matched for row in rows)),
        )
        for rows in zip(*splits, strict=True)
    ]
    return correct_p_values(splits[0] if len(splits) == 1 else combined, correction)


def _median_estimate(estimates: Sequence[Estimate]) -> Estimate:
    value, low, high = (
        statistics.median(getattr(estimate, name) for estimate in estimates) for name in ("value", "low", "high")
    )
    return replace(estimates[0], value=value, low=low, high=high)


# --- comparison of one system ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ResampledSums:
    """Observed, permuted and resampled sums, each over generated documents first and then over real ones."""

    totals: tuple[Sums, Sums]
    null: tuple[Sums, Sums]
    spread: tuple[Sums, Sums]
    why: str = ""
    """Reason why no comparison is possible, or empty."""


def _compare_system(
    real: CriticScores, system: str, generated: CriticScores, draws: int, seed: int, paired: bool
) -> list[Comparison]:
    """Compare all statistics of one system on the same random draws."""
    source = [seed, zlib.crc32(f"{real.critic}\x1f{system}".encode())]
    rng, length_rng = np.random.default_rng(source), np.random.default_rng([*source, 1])
    resampled = (_resample_pairs if paired else _resample_units)(real, generated, draws, rng)
    lengths = (
        _LengthStrata.from_scores(real, generated, 0 if resampled.why else draws, length_rng) if not paired else None
    )
    applicable: dict[str, CorpusStatistic] = {} if ppl_undefined_reason(real) else {"ppl": perplexity}
    applicable[real.statistic] = mean_nll
    rows = []
    for name, corpus_statistic in applicable.items():
        clusters = "paired" if paired else "cluster" if real.clusters or generated.clusters else None
        signature = Signature.from_fields(
            statistic=f"criticize:{name}",
            critic=real.critic,
            units=clusters,
            draws=0 if resampled.why else draws,
            seed=seed,
        )
        difference = (
            math.nan
            if resampled.why
            else float(
                _difference_without_rounding(
                    corpus_statistic(resampled.totals[0]), corpus_statistic(resampled.totals[1])
                )[0]
            )
        )
        matched, p_matched = _length_matched_difference(lengths, corpus_statistic, signature, resampled.why)
        row = Comparison(
            critic=real.critic,
            statistic=name,
            system=system,
            real=float(corpus_statistic(_sum_over_units(real.document_sums))[0]),
            generated=float(corpus_statistic(_sum_over_units(generated.document_sums))[0]),
            difference=estimate_with_interval(
                difference,
                _difference_without_rounding(
                    corpus_statistic(resampled.spread[0]), corpus_statistic(resampled.spread[1])
                ),
                signature,
                resampled.why,
            ),
            p=permutation_p_value(
                _difference_without_rounding(corpus_statistic(resampled.null[0]), corpus_statistic(resampled.null[1])),
                difference,
            ),
            p_adjusted=math.nan,
            matched=matched,
            p_matched=p_matched,
            unmatched=lengths.unmatched if lengths and not resampled.why else 0,
            documents=(len(real.ids), len(generated.ids)),
            dropped=(len(real.dropped), len(generated.dropped)),
            copies=sum(loss.why == COPY_REASON for loss in generated.dropped),
        )
        rows.append(row)
    return rows


def _sum_over_units(sums: Sums) -> Sums:
    """Return the sums over units, shape (1, 3)."""
    total: Sums = sums.sum(axis=0, keepdims=True)
    return total


def _difference_without_rounding(first: Floats, second: Floats) -> Floats:
    """Return the difference, or 0 within rounding error, so that equal documents do not appear mode-seeking."""
    return np.where(np.isclose(first, second, rtol=1e-12, atol=1e-12), 0.0, first - second)


# --- exchangeable units ------------------------------------------------------------------------------------------


def _unit_sums_and_lengths(scores: CriticScores) -> tuple[Sums, Floats]:
    """Return sums and lengths per document, or their means per cluster, so that all clusters have equal weight."""
    if not scores.clusters:
        return scores.document_sums, scores.lengths.astype(float)
    _, cluster_index = np.unique(scores.clusters, return_inverse=True)
    sums = np.zeros((int(cluster_index.max(initial=-1)) + 1, 3))
    np.add.at(sums, cluster_index, scores.document_sums)
    sizes = np.bincount(cluster_index)
    return sums / sizes[:, None], np.bincount(cluster_index, scores.lengths) / sizes


def _resample_units(
    real: CriticScores, generated: CriticScores, draws: int, rng: np.random.Generator
) -> _ResampledSums:
    first, second = _unit_sums_and_lengths(generated)[0], _unit_sums_and_lengths(real)[0]
    why = ""
    if min(len(first), len(second)) < 2:
        side, corpus = ("real", real) if len(second) < 2 else ("generated", generated)
        why = f"a comparison needs at least two {side} documents with a score, found {len(corpus.ids)}"
        if corpus.clusters and len(corpus.ids) > 1:
            why = f"a comparison needs at least two clusters; all {len(corpus.ids)} {side} documents are in one"
        why += f"; {corpus.dropped[0].id!r}: {corpus.dropped[0].why}" if corpus.dropped else ""
        draws = 0
    null = _permute_sides(first, second, draws, rng)
    spread = resampled_sums(first, draws, rng), resampled_sums(second, draws, rng)
    return _ResampledSums((_sum_over_units(first), _sum_over_units(second)), null, spread, why)


def _permute_sides(first: Sums, second: Sums, draws: int, rng: np.random.Generator) -> tuple[Sums, Sums]:
    """Return sums of both sides after random exchanges of units, shape (draws, 3) each."""
    both, n = np.concatenate([first, second]), len(first)
    total = both.sum(axis=0)
    sums = np.empty((draws, both.shape[1]))
    for draw in range(draws):
        sums[draw] = both[rng.permutation(len(both))[:n]].sum(axis=0)
    return sums, total - sums


# --- pairs -------------------------------------------------------------------------------------------------------


def _resample_pairs(
    real: CriticScores, generated: CriticScores, draws: int, rng: np.random.Generator
) -> _ResampledSums:
    """Resample clusters with documents of both sides; permutations exchange documents only within clusters."""
    sides = generated.clusters or generated.ids, real.clusters or real.ids
    shared = sorted(set(sides[0]) & set(sides[1]))
    empty = np.zeros((0, 3))
    if len(shared) < 2:
        why = (
            f"a paired comparison needs at least two clusters or IDs with documents of both sides, found {len(shared)}"
        )
        return _ResampledSums((empty, empty), (empty, empty), (empty, empty), why)
    index = {name: position for position, name in enumerate(shared)}
    chosen = [[position for position, name in enumerate(names) if name in index] for names in sides]
    documents = np.concatenate([generated.document_sums[chosen[0]], real.document_sums[chosen[1]]])
    cluster = np.array([index[names[position]] for names, own in zip(sides, chosen, strict=True) for position in own])
    is_real = np.repeat([False, True], [len(chosen[0]), len(chosen[1])])
    order = np.lexsort((is_real, cluster))  # by cluster, generated before real documents
    documents, cluster, is_real = documents[order], cluster[order], is_real[order]
    weights = resampled_document_weights(len(shared), draws, rng)
    # Weight of each position on the generated and the real side, shape (documents,); sums to one per cluster
    shares = [side / np.bincount(cluster, side, len(shared))[cluster] for side in (~is_real, is_real)]
    means = np.zeros((2, len(shared), 3))
    for table, share in zip(means, shares, strict=True):
        np.add.at(table, cluster, share[:, None] * documents)
    null = np.empty((2, draws, 3))
    for draw in range(draws):
        order = np.lexsort((rng.random(len(cluster)), cluster))
        for number, share in enumerate(shares):
            null[number, draw] = share @ documents[order]
    return _ResampledSums(
        (_sum_over_units(means[0]), _sum_over_units(means[1])),
        (null[0], null[1]),
        (weights @ means[0], weights @ means[1]),
    )


# --- matched lengths ---------------------------------------------------------------------------------------------

_MAX_STRATA = 20  # distinct lengths up to this number are strata; with more, strata are 20 quantiles


@dataclass(frozen=True, slots=True)
class _LengthStrata:
    """Sums of both sides in strata of similar length; real units are weighted to the number of generated ones."""

    totals: tuple[Sums, Sums]
    null: tuple[Sums, Sums]
    spread: tuple[Sums, Sums]
    unmatched: int
    """Number of generated units of a length that no real unit has."""
    matchable: bool

    @classmethod
    def from_scores(
        cls, real: CriticScores, generated: CriticScores, draws: int, rng: np.random.Generator
    ) -> _LengthStrata:
        """Match both sides by length, with one stratum per length, or per quantile if there are many lengths."""
        (first, first_lengths), (second, second_lengths) = (
            _unit_sums_and_lengths(generated),
            _unit_sums_and_lengths(real),
        )
        both = np.concatenate([first_lengths, second_lengths])
        edges = np.unique(both)
        if len(edges) > _MAX_STRATA:
            edges = np.unique(np.quantile(both, np.linspace(0, 1, _MAX_STRATA + 1)[1:-1]))
        strata = [np.searchsorted(edges, side, side="left") for side in (first_lengths, second_lengths)]
        matchable = np.isin(strata[0], strata[1])
        sums = np.zeros((3, 2, max(draws, 1), 3))  # observed, permuted, resampled
        for stratum in np.unique(strata[0][matchable]):
            inside = first[strata[0] == stratum], second[strata[1] == stratum]
            weight = len(inside[0]) / len(inside[1])
            resampled = [resampled_document_weights(len(side), draws, rng) @ side for side in inside]
            observed = [_sum_over_units(side) for side in inside]
            for index, pair in enumerate((observed, _permute_sides(*inside, draws, rng), resampled)):
                sums[index, 0, : len(pair[0])] += pair[0]
                sums[index, 1, : len(pair[1])] += weight * pair[1]
        totals, null, spread = (((pair[0], pair[1])) for pair in sums)
        draw_rows = slice(0, draws)
        return cls(
            (totals[0][:1], totals[1][:1]),
            (null[0][draw_rows], null[1][draw_rows]), (spread[0][draw_rows], spread[1][draw_rows]),
            int((~matchable).sum()), bool(matchable.any()),
        )  # fmt: skip


def _length_matched_difference(
    lengths: _LengthStrata | None, corpus_statistic: CorpusStatistic, signature: Signature, why: str
) -> tuple[Estimate, float]:
    """Return the length-matched difference with its interval, and its p-value."""
    if lengths is None:
        return undefined_estimate(signature, why or "paired documents are not matched by length"), math.nan
    if why or not lengths.matchable:
        return undefined_estimate(signature, why or "no real document has the length of a generated one"), math.nan
    difference = float(
        _difference_without_rounding(corpus_statistic(lengths.totals[0]), corpus_statistic(lengths.totals[1]))[0]
    )
    spread = _difference_without_rounding(corpus_statistic(lengths.spread[0]), corpus_statistic(lengths.spread[1]))
    return estimate_with_interval(difference, spread, signature), permutation_p_value(
        _difference_without_rounding(corpus_statistic(lengths.null[0]), corpus_statistic(lengths.null[1])), difference
    )


# --- notes -------------------------------------------------------------------------------------------------------


def describe_dropped_documents(side: str, corpus: CriticScores) -> str:
    """Describe the documents of one side without a score: number, reasons and first IDs; empty if there are none."""
    total = len(corpus.ids) + len(corpus.dropped)
    lost = f"{side}: {len(corpus.dropped)} of {total} documents have no score from the {corpus.critic} critic"
    return f"{lost}: {_format_drop_reasons(corpus.dropped)}" if corpus.dropped else ""


_MIN_FAMILIARITY_RATIO = 0.75  # known words, relative to real documents, below which a corpus counts as out of domain


def domain_warning(side: str, corpus: CriticScores, real: CriticScores) -> str:
    """Return a warning if a critic knows far fewer words of a corpus than of real documents, or an empty string."""
    if not corpus.familiarity < _MIN_FAMILIARITY_RATIO * real.familiarity:
        return ""
    known, known_in_real = (f"{100 * scores.familiarity:.0f}%" for scores in (corpus, real))
    return (
        f"{side}: possibly out of domain; the {corpus.critic} critic knows {known} of a document's words on average "
        f"(real documents: {known_in_real}), so differences may be due to words"
    )


def describe_unfitted_documents(critic: Critic) -> str:
    """Describe the documents that a critic could not be fitted on; empty if there are none."""
    lost = f"fitting: {len(critic.unused)} documents could not be used by the {critic.name} critic"
    return f"{lost}: {_format_drop_reasons(critic.unused)}" if critic.unused else ""


def _format_drop_reasons(dropped: Sequence[DroppedDocument], max_listed: int = 3) -> str:
    """Return the most frequent reasons with counts, merging reasons that differ only in a quoted name."""
    reasons: dict[str, list[DroppedDocument]] = {}
    for loss in dropped:
        reasons.setdefault(_QUOTED_NAME.sub("", loss.why), []).append(loss)
    ranked = sorted(reasons.values(), key=len, reverse=True)
    parts: list[str] = []
    for losses in ranked[:max_listed]:
        first = losses[0].why if len({loss.why for loss in losses}) == 1 else f"{losses[0].why} or similar"
        ids = ", ".join(loss.id for loss in losses[:max_listed]) + (", ..." if len(losses) > max_listed else "")
        parts.append(f"{len(losses)} x {first} ({ids})")
    if len(ranked) > max_listed:
        parts.append(f"and {len(ranked) - max_listed} other reasons")
    return "; ".join(parts)


_QUOTED_NAME = re.compile(r"'[^']*'")
