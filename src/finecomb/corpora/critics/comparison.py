"""Do generated documents have the structure of real ones? Any number of systems against held-out real documents.

What is exchanged in tests and drawn again for intervals is a *unit*: a document, or a cluster of documents that belong
together, as several continuations of one prompt do. With `paired`, real and generated documents of one cluster are
compared with each other, and only they change sides.
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

from finecomb.core.estimate import Estimate, Signature
from finecomb.corpora.critics.base import (
    CorpusStatistic,
    Critic,
    CriticScores,
    DroppedDocument,
    Ints,
    mean_nll,
    perplexity,
    ppl_undefined_reason,
)
from finecomb.corpora.critics.posteriors import Floats
from finecomb.corpora.critics.progress import track
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
"""Why a generated document is not judged: it tells of memory and not of structure."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One system against real documents, by one statistic of one critic."""

    critic: str
    statistic: str
    """`ppl`, or `nll`, `plugin` or `kl` as a mean over documents."""
    system: str
    real: float
    generated: float
    difference: Estimate
    """Generated minus real; the interval resamples documents of both, or clusters of them."""
    p: float
    """Two-sided permutation test: under the null each document, or cluster, could have been of the other side."""
    p_adjusted: float
    matched: Estimate
    """The difference when real documents are weighted to the lengths of generated ones, resampled within lengths."""
    p_matched: float
    """The same test with documents that change sides within their length only."""
    unmatched: int
    """Generated documents whose length no real one has; they take no part in `matched`."""
    documents: tuple[int, int]
    """Real and generated documents with a score."""
    dropped: tuple[int, int]
    """Real and generated documents without one."""
    copies: int = 0
    """Generated documents that copy a text that the critic was fitted on; they are among the dropped."""

    @property
    def note(self) -> str:
        """What a value below that of real documents comes from: it is no praise (the paper's footnote 9).

        The length-matched contrast decides: staying near the mode shows at every length; shortness vanishes with it.
        """
        copied = f"{self.copies} copies" if self.copies else ""
        return "; ".join(words for words in (self._below_real_note(), copied) if words)

    def _below_real_note(self) -> str:
        if self.matched.high < 0:
            return "mode-seeking"
        if not self.difference.value < 0:
            return ""
        if not self.difference.high < 0:
            return "below real, within noise"
        return "below real by length alone" if math.isfinite(self.matched.value) else "below real, lengths differ"

    def row(self) -> dict[str, object]:
        """As a row of a table."""
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
    """One system against another, by one statistic of one critic."""

    critic: str
    statistic: str
    system: str
    against: str
    difference: Estimate
    """The first system minus the second."""
    p: float
    p_adjusted: float

    def row(self) -> dict[str, object]:
        """As a row of a table."""
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
    """Each system's Latent PPL (where z is a sequence of states) and mean T(x), against the real documents'.

    `real` must not be documents that the critic was fitted on: those always look likelier than they should. p-values
    are corrected within each statistic; give the rows of several critics to `corrected` to correct across them. With
    `paired`, documents of one cluster (or of one id, where there are no clusters) are compared with each other.
    """
    rows: list[Comparison] = []
    for system, generated in track(systems.items(), "comparing systems", len(systems)):
        rows += _compare_system(real, system, generated, draws, seed, paired)
    return correct_p_values(rows, correction)


def contrast_systems(
    systems: Mapping[str, CriticScores], correction: Correction = "holm", draws: int = 1000, seed: int = 0
) -> list[Contrast]:
    """Every system against every other; those that share clusters, such as prompts, are paired by them."""
    rows: list[Contrast] = []
    for first, second in itertools.combinations(systems, 2):
        paired = len(set(systems[first].clusters) & set(systems[second].clusters)) > 1
        for row in _compare_system(systems[second], f"{first}\x1f{second}", systems[first], draws, seed, paired):
            rows.append(Contrast(row.critic, row.statistic, first, second, row.difference, row.p, math.nan))
    return correct_p_values(rows, correction)


def correct_p_values(rows: Iterable[TestedRow], correction: Correction = "holm") -> list[TestedRow]:
    """The same rows with p corrected for how many of its kind there are: Latent PPLs and means are two families."""
    listed = list(rows)
    result = np.full(len(listed), math.nan)
    for family in (True, False):
        places = np.array([at for at, row in enumerate(listed) if (row.statistic == "ppl") == family], dtype=np.int64)
        result[places] = adjust_p_values(np.array([listed[at].p for at in places]), correction)
    return [replace(row, p_adjusted=float(p)) for row, p in zip(listed, result, strict=True)]


def combine_splits(splits: Sequence[Sequence[Comparison]], correction: Correction = "holm") -> list[Comparison]:
    """The same comparisons made with several splits of the real documents, as one each.

    Figures are medians over splits. A p is twice the median, at most 1, which holds however the splits depend on each
    other (Meinshausen, Meier and Buehlmann 2009, with gamma = 1/2).
    """
    rows = [_median_row(rows) for rows in zip(*splits, strict=True)]
    return correct_p_values(rows, correction)


def _median_row(rows: Sequence[Comparison]) -> Comparison:
    if len(rows) == 1:
        return rows[0]
    return replace(
        rows[0],
        real=statistics.median(row.real for row in rows),
        generated=statistics.median(row.generated for row in rows),
        difference=_median_estimate([row.difference for row in rows]),
        p=min(1.0, 2 * statistics.median(row.p for row in rows)),
        matched=_median_estimate([row.matched for row in rows]),
        p_matched=min(1.0, 2 * statistics.median(row.p_matched for row in rows)),
    )


def _median_estimate(estimates: Sequence[Estimate]) -> Estimate:
    value, low, high = (
        statistics.median(getattr(estimate, name) for estimate in estimates) for name in ("value", "low", "high")
    )
    return replace(estimates[0], value=value, low=low, high=high)


# --- one comparison ----------------------------------------------------------------------------------------------


def _corpus_statistics(real: CriticScores) -> dict[str, CorpusStatistic]:
    means: dict[str, CorpusStatistic] = {real.statistic: mean_nll}
    return means if ppl_undefined_reason(real) else {"ppl": perplexity, **means}


@dataclass(frozen=True, slots=True)
class _ResampledSums:
    """Sums of both sides, generated first: as they are, when they change sides, and when they are drawn again."""

    totals: tuple[Sums, Sums]
    null: tuple[Sums, Sums]
    spread: tuple[Sums, Sums]
    why: str = ""
    """Why there is no comparison."""


def _compare_system(
    real: CriticScores, system: str, generated: CriticScores, draws: int, seed: int, paired: bool
) -> list[Comparison]:
    """All statistics of one system, from the same draws."""
    source = [seed, zlib.crc32(f"{real.critic}\x1f{system}".encode())]
    rng, again = np.random.default_rng(source), np.random.default_rng([*source, 1])
    made = (_resample_pairs if paired else _resample_units)(real, generated, draws, rng)
    lengths = _LengthMatch.from_scores(real, generated, 0 if made.why else draws, again) if not paired else None
    rows = []
    for name, of in _corpus_statistics(real).items():
        clusters = "paired" if paired else "cluster" if real.clusters or generated.clusters else None
        signature = Signature.from_fields(
            statistic=f"criticize:{name}", critic=real.critic, units=clusters, draws=0 if made.why else draws, seed=seed
        )
        difference = math.nan if made.why else float(_robust_difference(of(made.totals[0]), of(made.totals[1]))[0])
        matched, p_matched = _length_matched_difference(lengths, of, signature, made.why)
        row = Comparison(
            critic=real.critic,
            statistic=name,
            system=system,
            real=float(of(_total(real.document_sums))[0]),
            generated=float(of(_total(generated.document_sums))[0]),
            difference=estimate_with_interval(
                difference, _robust_difference(of(made.spread[0]), of(made.spread[1])), signature, made.why
            ),
            p=permutation_p_value(_robust_difference(of(made.null[0]), of(made.null[1])), difference),
            p_adjusted=math.nan,
            matched=matched,
            p_matched=p_matched,
            unmatched=lengths.unmatched if lengths and not made.why else 0,
            documents=(len(real.ids), len(generated.ids)),
            dropped=(len(real.dropped), len(generated.dropped)),
            copies=sum(loss.why == COPY_REASON for loss in generated.dropped),
        )
        rows.append(row)
    return rows


def _total(sums: Sums) -> Sums:
    """(1, 3)."""
    total: Sums = sums.sum(axis=0, keepdims=True)
    return total


def _robust_difference(first: Floats, second: Floats) -> Floats:
    """The difference, 0 where it is rounding: equal documents must not look mode-seeking."""
    return np.where(np.isclose(first, second, rtol=1e-12, atol=1e-12), 0.0, first - second)


# --- units that change sides -------------------------------------------------------------------------------------


def _unit_sums_and_lengths(scores: CriticScores) -> tuple[Sums, Floats]:
    """Sums and lengths of each document, or their means in each cluster, so that clusters of any size weigh alike."""
    if not scores.clusters:
        return scores.document_sums, scores.lengths.astype(float)
    _, at = np.unique(scores.clusters, return_inverse=True)
    sums = np.zeros((int(at.max(initial=-1)) + 1, 3))
    np.add.at(sums, at, scores.document_sums)
    sizes = np.bincount(at)
    return sums / sizes[:, None], np.bincount(at, scores.lengths) / sizes


def _resample_units(
    real: CriticScores, generated: CriticScores, draws: int, rng: np.random.Generator
) -> _ResampledSums:
    first, second = _unit_sums_and_lengths(generated)[0], _unit_sums_and_lengths(real)[0]
    why = _too_few_units_reason(real, generated) if min(len(first), len(second)) < 2 else ""
    draws = 0 if why else draws
    null = _permute_sides(first, second, draws, rng)
    spread = resampled_sums(first, draws, rng), resampled_sums(second, draws, rng)
    return _ResampledSums((_total(first), _total(second)), null, spread, why)


def _too_few_units_reason(real: CriticScores, generated: CriticScores) -> str:
    side, corpus = ("real", real) if len(_unit_sums_and_lengths(real)[0]) < 2 else ("generated", generated)
    reason = f"; {corpus.dropped[0].id!r}: {corpus.dropped[0].why}" if corpus.dropped else ""
    if corpus.clusters and len(corpus.ids) > 1:
        return f"all {len(corpus.ids)} {side} documents are of one cluster, and a comparison needs two{reason}"
    return f"{len(corpus.ids)} {side} documents have a score, and a comparison needs two{reason}"


def _permute_sides(first: Sums, second: Sums, draws: int, rng: np.random.Generator) -> tuple[Sums, Sums]:
    """Sums of both sides when units change sides at random, each (draws, 3)."""
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
    """Means of both sides within each cluster that has both; in the null its documents change sides, and no others."""
    sides = generated.clusters or generated.ids, real.clusters or real.ids
    shared = sorted(set(sides[0]) & set(sides[1]))
    empty = np.zeros((0, 3))
    if len(shared) < 2:
        why = f"{len(shared)} clusters have documents of both sides, and pairs need two"
        return _ResampledSums((empty, empty), (empty, empty), (empty, empty), why)
    index = {name: at for at, name in enumerate(shared)}
    sums, cluster, is_real = list[Sums](), list[int](), list[bool]()
    for names, scores in zip(sides, (generated, real), strict=True):
        chosen = [at for at, name in enumerate(names) if name in index]
        sums.append(scores.document_sums[chosen])
        cluster += [index[names[at]] for at in chosen]
        is_real += [scores is real] * len(chosen)
    pairs = _Pairs.from_documents(np.concatenate(sums), np.array(cluster), np.array(is_real), len(shared))
    weights = resampled_document_weights(len(shared), draws, rng)
    means = pairs.cluster_means(pairs.documents)
    return _ResampledSums(
        (_total(means[0]), _total(means[1])), pairs.permuted_sums(draws, rng), (weights @ means[0], weights @ means[1])
    )


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Documents sorted by cluster, generated ones first within each."""

    documents: Sums
    cluster: Ints
    shares: tuple[Floats, Floats]
    """(documents,): the weight of each place on the generated side and on the real one; it sums to one by cluster."""
    count: int

    @classmethod
    def from_documents(cls, sums: Sums, cluster: Ints, is_real: np.ndarray, count: int) -> _Pairs:
        """From documents in any order."""
        order = np.lexsort((is_real, cluster))
        sums, cluster, is_real = sums[order], cluster[order], is_real[order]
        sizes = [np.bincount(cluster, side, count) for side in (~is_real, is_real)]
        shares = (~is_real / sizes[0][cluster], is_real / sizes[1][cluster])
        return cls(sums, cluster, shares, count)

    def cluster_means(self, documents: Sums) -> tuple[Sums, Sums]:
        """(clusters, 3) of both sides, documents standing at these places."""
        tables = tuple(np.zeros((self.count, 3)) for _ in self.shares)
        for table, share in zip(tables, self.shares, strict=True):
            np.add.at(table, self.cluster, share[:, None] * documents)
        return tables[0], tables[1]

    def permuted_sums(self, draws: int, rng: np.random.Generator) -> tuple[Sums, Sums]:
        """Sums of the clusters' means when documents change places within their cluster, each (draws, 3)."""
        sums = np.empty((2, draws, 3))
        for draw in range(draws):
            order = np.lexsort((rng.random(len(self.cluster)), self.cluster))
            for side, share in enumerate(self.shares):
                sums[side, draw] = share @ self.documents[order]
        return sums[0], sums[1]


# --- equal lengths -----------------------------------------------------------------------------------------------

_MAX_STRATA = 20  # so many lengths are told apart; where there are more, twentieths of all documents


@dataclass(frozen=True, slots=True)
class _LengthMatch:
    """Both sides in strata of like length, real units weighted to as many as generated ones."""

    totals: tuple[Sums, Sums]
    null: tuple[Sums, Sums]
    spread: tuple[Sums, Sums]
    unmatched: int
    """Generated units of a length that no real one has."""
    matchable: bool

    @classmethod
    def from_scores(
        cls, real: CriticScores, generated: CriticScores, draws: int, rng: np.random.Generator
    ) -> _LengthMatch:
        """With every length as a stratum, or with twentieths of all documents where lengths are many."""
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
        sums = np.zeros((3, 2, max(draws, 1), 3))  # as they are, when they change sides, drawn again
        for stratum in np.unique(strata[0][matchable]):
            inside = first[strata[0] == stratum], second[strata[1] == stratum]
            weight = len(inside[0]) / len(inside[1])
            for at, pair in enumerate(_stratum_sums(*inside, draws, rng)):
                sums[at, 0, : len(pair[0])] += pair[0]
                sums[at, 1, : len(pair[1])] += weight * pair[1]
        totals, null, spread = (((pair[0], pair[1])) for pair in sums)
        kept = slice(0, draws)
        return cls(
            (totals[0][:1], totals[1][:1]), (null[0][kept], null[1][kept]), (spread[0][kept], spread[1][kept]),
            int((~matchable).sum()), bool(matchable.any()),
        )  # fmt: skip


def _stratum_sums(
    first: Sums, second: Sums, draws: int, rng: np.random.Generator
) -> tuple[tuple[Sums, Sums], tuple[Sums, Sums], tuple[Sums, Sums]]:
    drawn = [resampled_document_weights(len(side), draws, rng) @ side for side in (first, second)]
    return (_total(first), _total(second)), _permute_sides(first, second, draws, rng), (drawn[0], drawn[1])


def _length_matched_difference(
    lengths: _LengthMatch | None, corpus_statistic: CorpusStatistic, signature: Signature, why: str
) -> tuple[Estimate, float]:
    """The difference at equal lengths with its interval, and its p."""
    if lengths is None:
        return undefined_estimate(
            signature, why or "pairs are compared with each other, whatever their lengths"
        ), math.nan
    if why or not lengths.matchable:
        return undefined_estimate(signature, why or "no real document has the length of a generated one"), math.nan
    difference = float(_robust_difference(corpus_statistic(lengths.totals[0]), corpus_statistic(lengths.totals[1]))[0])
    spread = _robust_difference(corpus_statistic(lengths.spread[0]), corpus_statistic(lengths.spread[1]))
    return estimate_with_interval(difference, spread, signature), permutation_p_value(
        _robust_difference(corpus_statistic(lengths.null[0]), corpus_statistic(lengths.null[1])), difference
    )


# --- words -------------------------------------------------------------------------------------------------------


def describe_dropped(side: str, corpus: CriticScores) -> str:
    """A line about what a side lost: how many, why, and the first few by name; empty where nothing was lost."""
    of = len(corpus.ids) + len(corpus.dropped)
    lost = f"{side}: {len(corpus.dropped)} of {of} documents could not be judged by the {corpus.critic} critic"
    return f"{lost}: {_format_reasons(corpus.dropped)}" if corpus.dropped else ""


_MIN_FAMILIARITY_RATIO = 0.75  # of what real documents have, before a corpus counts as of another domain


def domain_warning(side: str, corpus: CriticScores, real: CriticScores) -> str:
    """A warning where a critic knows far fewer words of a corpus than of real documents; empty where it does not."""
    if not corpus.familiarity < _MIN_FAMILIARITY_RATIO * real.familiarity:
        return ""
    known = f"{100 * corpus.familiarity:.0f}% of the words of a document, {100 * real.familiarity:.0f}% of a real one"
    return f"{side}: out of domain? The {corpus.critic} critic knows {known}; what it says may be about words"


def describe_unused(critic: Critic) -> str:
    """The same of documents that a critic could not be fitted on."""
    lost = f"fitting: {len(critic.unused)} documents could not be used by the {critic.name} critic"
    return f"{lost}: {_format_reasons(critic.unused)}" if critic.unused else ""


def _format_reasons(dropped: Sequence[DroppedDocument], max_listed: int = 3) -> str:
    """Reasons with how often each occurs, the commonest first; those that differ in a name only are one."""
    reasons: dict[str, list[DroppedDocument]] = {}
    for loss in dropped:
        reasons.setdefault(_QUOTED.sub("", loss.why), []).append(loss)
    ranked = sorted(reasons.values(), key=len, reverse=True)
    more = f"; and {len(ranked) - max_listed} other reasons" if len(ranked) > max_listed else ""
    return "; ".join(_format_reason(losses, max_listed) for losses in ranked[:max_listed]) + more


_QUOTED = re.compile(r"'[^']*'")


def _format_reason(losses: Sequence[DroppedDocument], max_listed: int) -> str:
    first = losses[0].why if len({loss.why for loss in losses}) == 1 else f"like {losses[0].why}"
    ids = ", ".join(loss.id for loss in losses[:max_listed]) + (", ..." if len(losses) > max_listed else "")
    return f"{len(losses)} x {first} ({ids})"
