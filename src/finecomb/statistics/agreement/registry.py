"""The registry of measures of agreement: each a row with its function and the types of source that it reads."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from finecomb.statistics.agreement import alpha as alphas
from finecomb.statistics.agreement import kappa, pairwise
from finecomb.statistics.agreement.agreement_options import (
    CommonAgreementOptions,
    GammaOptions,
    OneVsRestOptions,
    OverlapF1Options,
)
from finecomb.statistics.agreement.coincidences import Floats, Tally, Weights, pool_sums_per_draw, tally_binary_votes
from finecomb.statistics.agreement.gamma import pooled_gamma as gammas
from finecomb.statistics.agreement.gamma.text_gamma import TextGamma
from finecomb.statistics.agreement.rating_sources import SOURCES, AnswerRatings, ItemLabels, Source, UnitMarks
from finecomb.statistics.inference.resampling import ratio_or_nan
from finecomb.statistics.selection.view import ANY


@dataclass(frozen=True, slots=True)
class MeasureResult:
    """Rows of a measure and their values in each draw; the first draw is the study itself."""

    columns: Sequence[Mapping[str, object]]
    values: Floats
    """(draws, rows)."""
    whys: Sequence[str] = ()
    """Why a row has no value, where the measure itself knows."""


@dataclass(frozen=True, slots=True)
class AgreementMeasure:
    """One statistic by name."""

    run: Callable[[Source, Weights], MeasureResult]
    gloss: str
    """What it is, in a line."""
    reads: tuple[type[Source], ...] = SOURCES
    """The types of source that it can read."""
    individuals: bool = False
    """Whether it needs to know who marked what, so that pooled votes will not do."""
    unit: str = ""
    """What it looks at, where that does not depend on the level."""
    options: type = CommonAgreementOptions
    """The dataclass of its options."""
    page: str = "alpha"
    """The page of `docs/statistics` that describes it."""


def _build_tally_measure(statistic: Callable[[Tally, Weights], Floats]) -> Callable[[Source, Weights], MeasureResult]:
    """The statistic of each row of every tally."""

    def run(source: Source, weights: Weights) -> MeasureResult:
        values = [statistic(tally, weights) for tally in source.tallies]
        return MeasureResult(
            [{"label": row} for tally in source.tallies for row in tally.rows], np.concatenate(values, axis=1)
        )

    return run


def _build_overall_tally_measure(
    statistic: Callable[[Tally, Weights], Floats],
) -> Callable[[Source, Weights], MeasureResult]:
    """The statistic of all values together."""
    return lambda source, weights: MeasureResult([{"label": ANY}], statistic(source.tallies[0], weights))


def _run_two_agree(source: Source, weights: Weights) -> MeasureResult:
    return MeasureResult(
        [{"label": name} for name in source.labels],
        alphas.two_agree_percentage(pool_sums_per_draw(weights, source.two_agree_sums())),
    )


def _run_best_threshold_alpha(source: Source, weights: Weights) -> MeasureResult:
    """Alpha of ratings cut in two where that gives the most agreement; every draw looks for its own best cut."""
    assert isinstance(source, AnswerRatings)
    values, counts = source.value_counts
    above = counts[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:].T  # ratings of at least each value but the lowest
    if len(values) < 2:
        return MeasureResult([{"label": ANY}], np.full((len(weights), 1), np.nan))
    names = tuple(f"{value:g}" for value in values[1:])
    cuts = alphas.pooled_alpha(tally_binary_votes(names, above, counts.sum(axis=1), source.rated.bounds), weights)
    best = np.where(np.isnan(cuts), -np.inf, cuts)
    value = np.where(np.isinf(best.max(axis=1)), np.nan, best.max(axis=1))
    return MeasureResult([{"label": ANY, "threshold": f"{values[1:][int(best[0].argmax())]:g}"}], value[:, None])


def _build_label_set_measure(
    distance: Callable[[Sequence[frozenset[str]]], alphas.Distance],
) -> Callable[[Source, Weights], MeasureResult]:
    def run(source: Source, weights: Weights) -> MeasureResult:
        assert isinstance(source, UnitMarks)
        sets, observed, totals = pairwise.label_set_disagreement_sums(
            source.mark_depths, source.categories, len(source.grid.documents), distance
        )
        delta = distance(sets)(np.arange(len(sets), dtype=np.float64), totals)
        n = weights @ totals  # n_c, (draws, V)
        chance = ((n @ delta) * n).sum(axis=1)
        return MeasureResult(
            [{"label": ANY}], (1 - ratio_or_nan((n.sum(axis=1) - 1) * (weights @ observed), chance))[:, None]
        )

    return run


def _run_mean_cohen_kappa(source: Source, weights: Weights) -> MeasureResult:
    kappas = [pairwise.nan_mean(pairwise.cohen_kappa_per_pair(table, weights)) for table in source.annotator_confusions]
    return MeasureResult([{"label": name} for name in source.labels], np.concatenate(kappas, axis=1))


def _run_cohen_kappa_per_pair(source: Source, weights: Weights) -> MeasureResult:
    kappas = [pairwise.cohen_kappa_per_pair(table, weights) for table in source.annotator_confusions]
    names = [(first, second) for first, second in source.annotator_confusions[0].names]
    columns = [{"label": label, "pair": f"{a}, {b}"} for label in source.labels for a, b in names]
    return MeasureResult(columns, np.concatenate(kappas, axis=1).reshape(len(weights), -1))


def _build_f1_measure(
    statistic: Callable[[pairwise.AnnotatorPairs, Weights], Floats],
) -> Callable[[Source, Weights], MeasureResult]:
    def run(source: Source, weights: Weights) -> MeasureResult:
        assert isinstance(source, UnitMarks)
        values = statistic(source.annotator_overlaps, weights)[:, : len(source.labels)]
        return MeasureResult([{"label": name} for name in source.labels[: values.shape[1]]], values)

    return run


def _run_mark_count_pearson(source: Source, weights: Weights) -> MeasureResult:
    assert isinstance(source, UnitMarks)
    count_pairs = pairwise.pairwise_mark_count_moments(source.view.study, source.mark_depths, source.categories)
    values = pairwise.nan_mean(pairwise.mark_count_pearson_per_pair(count_pairs, weights))
    return MeasureResult([{"label": name} for name in source.labels], values)


def _build_one_vs_rest_measure(score: str) -> Callable[[Source, Weights], MeasureResult]:
    def run(source: Source, weights: Weights) -> MeasureResult:
        assert isinstance(source, UnitMarks)
        sums = pool_sums_per_draw(weights, pairwise.one_vs_rest_sums(source.votes, source.options.rest))
        return MeasureResult([{"label": name} for name in source.labels], pairwise.precision_recall_f1(sums)[score])

    return run


def _build_one_vs_rest_mean(score: str) -> Callable[[Source, Weights], MeasureResult]:
    def run(source: Source, weights: Weights) -> MeasureResult:
        assert isinstance(source, UnitMarks)
        scores = pairwise.one_vs_rest_scores(
            pairwise.annotator_vs_rest_sums(source.mark_depths, source.options.rest), weights, score
        )
        return MeasureResult([{"label": name} for name in source.labels], pairwise.nan_mean(scores))

    return run


def _build_annotator_vs_rest_measure(score: str) -> Callable[[Source, Weights], MeasureResult]:
    def run(source: Source, weights: Weights) -> MeasureResult:
        assert isinstance(source, UnitMarks)
        paired = pairwise.annotator_vs_rest_sums(source.mark_depths, source.options.rest)
        columns = [{"label": label, "annotator": one} for label in source.labels for one, _ in paired.names]
        return MeasureResult(columns, pairwise.one_vs_rest_scores(paired, weights, score).reshape(len(weights), -1))

    return run


def _build_gamma_measure(
    statistic: Callable[[Sequence[TextGamma], Weights, int], Floats], rows: slice
) -> Callable[[Source, Weights], MeasureResult]:
    """Some of the rows gamma, gamma-cat and gamma-k of each category, over all texts."""

    def run(source: Source, weights: Weights) -> MeasureResult:
        assert isinstance(source, UnitMarks)
        labels = [ANY, ANY, *source.view.categories][rows]
        undefined = np.full((len(weights), len(labels)), np.nan)
        values = (
            statistic(source.text_gammas, weights, source.options.seed)[:, rows] if source.text_gammas else undefined
        )
        unproven = _gamma_gap_columns(gammas.unproven_gamma_gap(source.text_gammas))
        whys = [
            gammas.undefined_gamma_reason(source.text_gammas, at) for at in range(2 + len(source.view.categories))[rows]
        ]
        return MeasureResult([{"label": label, **unproven} for label in labels], values, whys)

    return run


def _run_text_gammas(source: Source, weights: Weights) -> MeasureResult:
    """Each text's own gamma."""
    assert isinstance(source, UnitMarks)
    columns = [
        {"label": ANY, "document": text.document, **_gamma_gap_columns(gammas.unproven_gamma_gap([text]))}
        for text in source.text_gammas
    ]
    whys = [text.why or gammas.undefined_gamma_reason([text], 0) for text in source.text_gammas]
    return MeasureResult(columns, gammas.resampled_text_gammas(source.text_gammas, weights, source.options.seed), whys)


def _gamma_gap_columns(gap: float) -> dict[str, object]:
    """How far gamma could be off, where an alignment is not proven to be the best."""
    return {"gap": round(gap, 6)} if gap else {}


_MARK_SOURCES: tuple[type[Source], ...] = (UnitMarks,)
_ANSWER_SOURCES: tuple[type[Source], ...] = (AnswerRatings,)
_MARK_AND_ITEM_SOURCES: tuple[type[Source], ...] = (UnitMarks, ItemLabels)


def _build_scale_alpha(name: str) -> Callable[[Tally, Weights], Floats]:
    return functools.partial(alphas.pooled_alpha, distance=alphas.DISTANCES[name])


@dataclass(frozen=True)
class OverlapF1MeasureOptions(OverlapF1Options, CommonAgreementOptions):
    """Options of pairwise F1."""


@dataclass(frozen=True)
class OneVsRestMeasureOptions(OneVsRestOptions, CommonAgreementOptions):
    """Options of one annotator against the rest."""


@dataclass(frozen=True)
class GammaMeasureOptions(GammaOptions, CommonAgreementOptions):
    """Options of gamma."""


_F1_FIELDS: dict[str, Any] = {"options": OverlapF1MeasureOptions, "page": "pairwise"}
_ONE_VS_REST_FIELDS: dict[str, Any] = {"options": OneVsRestMeasureOptions, "page": "pairwise"}
_GAMMA_FIELDS: dict[str, Any] = {"unit": "mark", "options": GammaMeasureOptions, "page": "gamma"}

MEASURES: dict[str, AgreementMeasure] = {
    "alpha": AgreementMeasure(
        _build_tally_measure(alphas.pooled_alpha), "Krippendorff's alpha, nominal, over all texts"
    ),
    "alpha-mean": AgreementMeasure(
        _build_tally_measure(alphas.mean_document_alpha),
        "mean of each text's alpha; texts where it is undefined are left out",
    ),
    "alpha-mean-one": AgreementMeasure(
        _build_tally_measure(functools.partial(alphas.mean_document_alpha, undefined=1.0)),
        "mean of each text's alpha; texts where it is undefined count as 1",
    ),
    "observed": AgreementMeasure(
        _build_tally_measure(alphas.pooled_observed_agreement), "share of pairs of ratings that agree, 1 - D_o"
    ),
    "observed-mean": AgreementMeasure(
        _build_tally_measure(alphas.mean_document_observed_agreement), "mean of each text's observed agreement"
    ),
    "alpha-ordinal": AgreementMeasure(
        _build_overall_tally_measure(_build_scale_alpha("ordinal")), "alpha of ranks", _ANSWER_SOURCES
    ),
    "alpha-interval": AgreementMeasure(
        _build_overall_tally_measure(_build_scale_alpha("interval")), "alpha of squared differences", _ANSWER_SOURCES
    ),
    "alpha-ratio": AgreementMeasure(
        _build_overall_tally_measure(_build_scale_alpha("ratio")), "alpha of proportions", _ANSWER_SOURCES
    ),
    "alpha-binarised": AgreementMeasure(
        _run_best_threshold_alpha, "alpha of ratings cut in two at the threshold of best agreement", _ANSWER_SOURCES
    ),
    "alpha-sets": AgreementMeasure(
        _build_label_set_measure(lambda sets: alphas.nominal_distance),
        "alpha of the sets of labels on a unit, same or not",
        _MARK_SOURCES,
        True,
    ),
    "alpha-masi": AgreementMeasure(
        _build_label_set_measure(alphas.build_masi_distance),
        "alpha of the sets of labels on a unit, MASI distance",
        _MARK_SOURCES,
        True,
    ),
    "two-agree": AgreementMeasure(
        _run_two_agree,
        "percentage of what anybody marked that two or more marked",
        _MARK_AND_ITEM_SOURCES,
        page="two-agree",
    ),
    "kappa-cohen": AgreementMeasure(
        _run_mean_cohen_kappa, "Cohen's kappa, mean over pairs of annotators", individuals=True, page="kappa"
    ),
    "kappa-cohen-pairs": AgreementMeasure(
        _run_cohen_kappa_per_pair, "Cohen's kappa of each pair of annotators", individuals=True, page="kappa"
    ),
    "kappa-fleiss": AgreementMeasure(
        _build_tally_measure(kappa.pooled_fleiss), "Fleiss's kappa over units with the most ratings", page="kappa"
    ),
    "kappa-fleiss-variable": AgreementMeasure(
        _build_tally_measure(kappa.pooled_fleiss_variable_raters),
        "Fleiss's kappa over units with two or more ratings",
        page="kappa",
    ),
    "ac1": AgreementMeasure(_build_tally_measure(kappa.pooled_ac1), "Gwet's AC1", page="kappa"),
    "f1": AgreementMeasure(
        _build_f1_measure(pairwise.micro_f1),
        "overlap F1 of pairs of annotators, micro",
        _MARK_SOURCES,
        True,
        **_F1_FIELDS,
    ),
    "f1-typed": AgreementMeasure(
        _build_f1_measure(pairwise.typed_micro_f1),
        "overlap F1, only marks of one label match, micro",
        _MARK_SOURCES,
        True,
        **_F1_FIELDS,
    ),
    "f1-macro": AgreementMeasure(
        _build_f1_measure(pairwise.macro_f1),
        "overlap F1, mean over pairs and texts, both empty = 1",
        _MARK_SOURCES,
        True,
        **_F1_FIELDS,
    ),
    "f1-typed-macro": AgreementMeasure(
        _build_f1_measure(pairwise.typed_macro_f1),
        "the same, only marks of one label match",
        _MARK_SOURCES,
        True,
        **_F1_FIELDS,
    ),
    "gamma": AgreementMeasure(
        _build_gamma_measure(gammas.pooled_gamma, slice(0, 1)),
        "gamma of the best alignment, over all texts",
        _MARK_SOURCES,
        True,
        **_GAMMA_FIELDS,
    ),
    "gamma-mean": AgreementMeasure(
        _build_gamma_measure(gammas.mean_text_gamma, slice(0, 1)),
        "mean of each text's gamma",
        _MARK_SOURCES,
        True,
        **_GAMMA_FIELDS,
    ),
    "gamma-texts": AgreementMeasure(_run_text_gammas, "each text's gamma", _MARK_SOURCES, True, **_GAMMA_FIELDS),
    "gamma-cat": AgreementMeasure(
        _build_gamma_measure(gammas.pooled_gamma, slice(1, 2)),
        "agreement on labels among aligned marks",
        _MARK_SOURCES,
        True,
        **_GAMMA_FIELDS,
    ),
    "gamma-k": AgreementMeasure(
        _build_gamma_measure(gammas.pooled_gamma, slice(2, None)),
        "the same for each label among marks aligned with it",
        _MARK_SOURCES,
        True,
        **_GAMMA_FIELDS,
    ),
    "pearson": AgreementMeasure(
        _run_mark_count_pearson,
        "Pearson's r of numbers of marks per text, mean over pairs",
        _MARK_SOURCES,
        True,
        page="pairwise",
    ),
    **{
        f"one-vs-rest-{score}": AgreementMeasure(
            _build_one_vs_rest_measure(score),
            f"{score} of one annotator against the rest, pooled",
            _MARK_SOURCES,
            **_ONE_VS_REST_FIELDS,
        )
        for score in ("precision", "recall", "f1")
    },
    **{
        f"one-vs-rest-{score}-mean": AgreementMeasure(
            _build_one_vs_rest_mean(score),
            f"mean over annotators of their {score} against the rest",
            _MARK_SOURCES,
            True,
            **_ONE_VS_REST_FIELDS,
        )
        for score in ("precision", "recall", "f1")
    },
    **{
        f"one-vs-rest-{score}-each": AgreementMeasure(
            _build_annotator_vs_rest_measure(score),
            f"each annotator's {score} against the rest",
            _MARK_SOURCES,
            True,
            **_ONE_VS_REST_FIELDS,
        )
        for score in ("precision", "recall", "f1")
    },
}

FAMILIES: dict[str, tuple[str, ...]] = {
    "one-vs-rest": ("one-vs-rest-precision", "one-vs-rest-recall", "one-vs-rest-f1"),
    "one-vs-rest-mean": ("one-vs-rest-precision-mean", "one-vs-rest-recall-mean", "one-vs-rest-f1-mean"),
    "one-vs-rest-each": ("one-vs-rest-precision-each", "one-vs-rest-recall-each", "one-vs-rest-f1-each"),
    "kappa": ("kappa-cohen", "kappa-fleiss", "kappa-fleiss-variable"),
}
"""Short names for several measures at once."""
