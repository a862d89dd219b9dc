"""Registry of agreement measures, with their functions and the types of source they accept."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from finecomb.plugins import Registry
from finecomb.statistics.agreement import alpha as alphas
from finecomb.statistics.agreement import kappa, pairwise
from finecomb.statistics.agreement.agreement_options import (
    CommonAgreementOptions,
    GammaOptions,
    OneVsRestOptions,
    OverlapF1Options,
)
from finecomb.statistics.agreement.alpha import AgreementTally, pool_sums_per_draw, tally_binary_votes
from finecomb.statistics.agreement.gamma import pooled_gamma as gammas
from finecomb.statistics.agreement.gamma.text_gamma import TextGamma
from finecomb.statistics.agreement.rating_sources import (
    RATING_SOURCES,
    AnswerRatings,
    ItemLabels,
    MeasureResult,
    RatingSource,
    UnitMarks,
    build_tally_measure,
)
from finecomb.statistics.inference.intervals import Bounds, StatisticKind
from finecomb.statistics.inference.resampling import Floats, Weights, ratio_or_nan
from finecomb.statistics.selection.view import ANY_LABEL


@dataclass(frozen=True, slots=True)
class AgreementMeasure:
    """A registered agreement measure."""

    run: Callable[[RatingSource, Weights], MeasureResult]
    gloss: str
    """One-line description."""
    reads: tuple[type[RatingSource], ...] = RATING_SOURCES
    """Types of source that the measure accepts."""
    individuals: bool = False
    """True if the measure requires individual annotators, so that pooled votes are not sufficient."""
    unit: str = ""
    """Unit of the measure, if it does not depend on the level."""
    options: type = CommonAgreementOptions
    """Dataclass of the measure's options."""
    page: str = "alpha"
    """Page of `docs/statistics` that describes the measure."""
    kind: StatisticKind = "coefficient"
    """Kind of the statistic, which determines the method of its interval."""
    bounds: Bounds | None = None
    """Smallest and largest possible value, if they differ from those of the kind."""
    has_chance_error: bool = False
    """True if the draws also vary by the sampling error of chance agreement, so that intervals are percentiles."""
    undefined: str = "the ratings compared do not vary"
    """Reason for an undefined value if units are marked in texts with two or more annotators."""


def _build_overall_tally_measure(
    statistic: Callable[[AgreementTally, Weights], Floats],
) -> Callable[[RatingSource, Weights], MeasureResult]:
    """Build a measure that applies a statistic to the tally of all values only."""
    return lambda source, weights: MeasureResult([{"label": ANY_LABEL}], statistic(source.tallies[0], weights))


def _run_two_agree(source: RatingSource, weights: Weights) -> MeasureResult:
    return MeasureResult(
        [{"label": name} for name in source.labels],
        alphas.two_agree_percentage(pool_sums_per_draw(weights, source.two_agree_sums())),
    )


def _run_best_threshold_alpha(source: RatingSource, weights: Weights) -> MeasureResult:
    """Compute alpha of ratings dichotomised at the threshold with the highest alpha, which is selected per draw."""
    assert isinstance(source, AnswerRatings)
    values, counts = source.value_counts
    above = (
        counts[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:].T
    )  # numbers of ratings at or above each value except the lowest
    if len(values) < 2:
        return MeasureResult([{"label": ANY_LABEL}], np.full((len(weights), 1), np.nan))
    names = tuple(f"{value:g}" for value in values[1:])
    cuts = alphas.pooled_alpha(tally_binary_votes(names, above, counts.sum(axis=1), source.rated.bounds), weights)
    best = np.where(np.isnan(cuts), -np.inf, cuts)
    value = np.where(np.isinf(best.max(axis=1)), np.nan, best.max(axis=1))
    return MeasureResult([{"label": ANY_LABEL, "threshold": f"{values[1:][int(best[0].argmax())]:g}"}], value[:, None])


def _build_label_set_measure(
    distance: Callable[[Sequence[frozenset[str]]], alphas.Distance],
) -> Callable[[RatingSource, Weights], MeasureResult]:
    def run(source: RatingSource, weights: Weights) -> MeasureResult:
        assert isinstance(source, UnitMarks)
        sets, observed, totals = pairwise.label_set_disagreement_sums(
            source.mark_depths, source.categories, len(source.grid.documents), distance
        )
        delta = distance(sets)(np.arange(len(sets), dtype=np.float64), totals)
        n = weights @ totals  # n_c, (draws, V)
        chance = ((n @ delta) * n).sum(axis=1)
        return MeasureResult(
            [{"label": ANY_LABEL}], (1 - ratio_or_nan((n.sum(axis=1) - 1) * (weights @ observed), chance))[:, None]
        )

    return run


def _run_mean_cohen_kappa(source: RatingSource, weights: Weights) -> MeasureResult:
    kappas = [pairwise.nan_mean(pairwise.cohen_kappa_per_pair(table, weights)) for table in source.annotator_confusions]
    return MeasureResult([{"label": name} for name in source.labels], np.concatenate(kappas, axis=1))


def _run_cohen_kappa_per_pair(source: RatingSource, weights: Weights) -> MeasureResult:
    kappas = [pairwise.cohen_kappa_per_pair(table, weights) for table in source.annotator_confusions]
    names = [(first, second) for first, second in source.annotator_confusions[0].names]
    columns = [{"label": label, "pair": f"{a}, {b}"} for label in source.labels for a, b in names]
    return MeasureResult(columns, np.concatenate(kappas, axis=1).reshape(len(weights), -1))


def _build_f1_measure(
    statistic: Callable[[pairwise.AnnotatorPairSums, Weights], Floats],
) -> Callable[[RatingSource, Weights], MeasureResult]:
    def run(source: RatingSource, weights: Weights) -> MeasureResult:
        assert isinstance(source, UnitMarks)
        values = statistic(source.annotator_overlaps, weights)[:, : len(source.labels)]
        return MeasureResult([{"label": name} for name in source.labels[: values.shape[1]]], values)

    return run


def _run_mark_count_pearson(source: RatingSource, weights: Weights) -> MeasureResult:
    assert isinstance(source, UnitMarks)
    count_pairs = pairwise.pairwise_mark_count_moments(source.view.study, source.mark_depths, source.categories)
    values = pairwise.nan_mean(pairwise.mark_count_pearson_per_pair(count_pairs, weights))
    return MeasureResult([{"label": name} for name in source.labels], values)


def _build_one_vs_rest_measure(score: str) -> Callable[[RatingSource, Weights], MeasureResult]:
    def run(source: RatingSource, weights: Weights) -> MeasureResult:
        assert isinstance(source, UnitMarks)
        sums = pool_sums_per_draw(weights, pairwise.one_vs_rest_sums(source.votes, source.options.rest))
        return MeasureResult([{"label": name} for name in source.labels], pairwise.precision_recall_f1(sums)[score])

    return run


def _build_one_vs_rest_mean_measure(score: str) -> Callable[[RatingSource, Weights], MeasureResult]:
    def run(source: RatingSource, weights: Weights) -> MeasureResult:
        assert isinstance(source, UnitMarks)
        scores = pairwise.annotator_vs_rest_scores(
            pairwise.annotator_vs_rest_sums(source.mark_depths, source.options.rest), weights, score
        )
        return MeasureResult([{"label": name} for name in source.labels], pairwise.nan_mean(scores))

    return run


def _build_annotator_vs_rest_measure(score: str) -> Callable[[RatingSource, Weights], MeasureResult]:
    def run(source: RatingSource, weights: Weights) -> MeasureResult:
        assert isinstance(source, UnitMarks)
        sums = pairwise.annotator_vs_rest_sums(source.mark_depths, source.options.rest)
        columns = [{"label": label, "annotator": annotator} for label in source.labels for annotator, _ in sums.names]
        return MeasureResult(columns, pairwise.annotator_vs_rest_scores(sums, weights, score).reshape(len(weights), -1))

    return run


def _build_gamma_measure(
    statistic: Callable[[Sequence[TextGamma], Weights, int], Floats], rows: slice
) -> Callable[[RatingSource, Weights], MeasureResult]:
    """Build a measure from selected rows of gamma results (gamma, gamma-cat, gamma-k per category) over all texts."""

    def run(source: RatingSource, weights: Weights) -> MeasureResult:
        assert isinstance(source, UnitMarks)
        labels = [ANY_LABEL, ANY_LABEL, *source.view.categories][rows]
        undefined = np.full((len(weights), len(labels)), np.nan)
        values = (
            statistic(source.text_gammas, weights, source.options.seed)[:, rows] if source.text_gammas else undefined
        )
        unproven = _gamma_gap_columns(gammas.unproven_gamma_gap(source.text_gammas))
        whys = [
            gammas.undefined_gamma_reason(source.text_gammas, row)
            for row in range(2 + len(source.view.categories))[rows]
        ]
        return MeasureResult([{"label": label, **unproven} for label in labels], values, whys)

    return run


def _run_text_gammas(source: RatingSource, weights: Weights) -> MeasureResult:
    """Return gamma of each text as a measure with one row per text."""
    assert isinstance(source, UnitMarks)
    columns = [
        {"label": ANY_LABEL, "document": text.document, **_gamma_gap_columns(gammas.unproven_gamma_gap([text]))}
        for text in source.text_gammas
    ]
    whys = [text.why or gammas.undefined_gamma_reason([text], 0) for text in source.text_gammas]
    return MeasureResult(columns, gammas.resampled_text_gammas(source.text_gammas, weights, source.options.seed), whys)


def _gamma_gap_columns(gap: float) -> dict[str, object]:
    """Return the column for the maximum error of gamma, if an alignment is not proven optimal."""
    return {"gap": round(gap, 6)} if gap else {}


_MARK_SOURCES: tuple[type[RatingSource], ...] = (UnitMarks,)
_ANSWER_SOURCES: tuple[type[RatingSource], ...] = (AnswerRatings,)
_MARK_AND_ITEM_SOURCES: tuple[type[RatingSource], ...] = (UnitMarks, ItemLabels)


def _build_scale_alpha(name: str) -> Callable[[AgreementTally, Weights], Floats]:
    return functools.partial(alphas.pooled_alpha, distance=alphas.DISTANCE_BY_SCALE[name])


@dataclass(frozen=True)
class OverlapF1MeasureOptions(OverlapF1Options, CommonAgreementOptions):
    """Options of the pairwise F1 measures."""


@dataclass(frozen=True)
class OneVsRestMeasureOptions(OneVsRestOptions, CommonAgreementOptions):
    """Options of the one-vs-rest measures."""


@dataclass(frozen=True)
class GammaMeasureOptions(GammaOptions, CommonAgreementOptions):
    """Options of the gamma measures."""


_F1_FIELDS: dict[str, Any] = {
    "options": OverlapF1MeasureOptions,
    "page": "pairwise",
    "undefined": "no pair of individual annotators marked a text",
    "kind": "proportion",
}
_ONE_VS_REST_FIELDS: dict[str, Any] = {"options": OneVsRestMeasureOptions, "page": "pairwise", "kind": "proportion"}
_ONE_VS_REST_UNDEFINED = {
    "precision": "the annotator marked no units",
    "recall": "no unit is marked by enough of the other annotators",
    "f1": "no unit is marked by the annotator or by enough of the others",
}
_GAMMA_FIELDS: dict[str, Any] = {
    "unit": "mark",
    "options": GammaMeasureOptions,
    "page": "gamma",
    "has_chance_error": True,
}

MEASURE_FAMILIES: dict[str, tuple[str, ...]] = {
    "one-vs-rest": ("one-vs-rest-precision", "one-vs-rest-recall", "one-vs-rest-f1"),
    "one-vs-rest-mean": ("one-vs-rest-precision-mean", "one-vs-rest-recall-mean", "one-vs-rest-f1-mean"),
    "one-vs-rest-each": ("one-vs-rest-precision-each", "one-vs-rest-recall-each", "one-vs-rest-f1-each"),
    "kappa": ("kappa-cohen", "kappa-fleiss", "kappa-fleiss-variable"),
}
"""Families of measures: short names that stand for several measures."""

AGREEMENT_MEASURES = Registry[AgreementMeasure](
    "coefficients",
    AgreementMeasure,
    {
        "alpha": AgreementMeasure(
            build_tally_measure(alphas.pooled_alpha),
            "Krippendorff's alpha, nominal, over all texts",
            undefined=alphas.ALL_UNITS_MARKED_REASON,
        ),
        "alpha-mean": AgreementMeasure(
            build_tally_measure(alphas.mean_document_alpha),
            "mean alpha per text, skipping texts where it is undefined",
            kind="mean",
            bounds=(-1.0, 1.0),
        ),
        "alpha-mean-one": AgreementMeasure(
            build_tally_measure(functools.partial(alphas.mean_document_alpha, undefined=1.0)),
            "mean alpha per text, counting texts where it is undefined as 1",
            kind="mean",
            bounds=(-1.0, 1.0),
        ),
        "observed": AgreementMeasure(
            build_tally_measure(alphas.pooled_observed_agreement),
            "share of agreeing pairs of ratings, 1 - D_o",
            kind="proportion",
        ),
        "observed-mean": AgreementMeasure(
            build_tally_measure(alphas.mean_document_observed_agreement),
            "mean observed agreement per text",
            kind="proportion",
        ),
        "alpha-ordinal": AgreementMeasure(
            _build_overall_tally_measure(_build_scale_alpha("ordinal")), "alpha for ordinal ratings", _ANSWER_SOURCES
        ),
        "alpha-interval": AgreementMeasure(
            _build_overall_tally_measure(_build_scale_alpha("interval")),
            "alpha for interval ratings, by squared differences",
            _ANSWER_SOURCES,
        ),
        "alpha-ratio": AgreementMeasure(
            _build_overall_tally_measure(_build_scale_alpha("ratio")),
            "alpha for ratio ratings, by proportions",
            _ANSWER_SOURCES,
        ),
        "alpha-binarised": AgreementMeasure(
            _run_best_threshold_alpha,
            "alpha of ratings dichotomised at the threshold of highest agreement",
            _ANSWER_SOURCES,
        ),
        "alpha-sets": AgreementMeasure(
            _build_label_set_measure(lambda sets: alphas.nominal_distance),
            "alpha of the label sets on units, nominal distance",
            _MARK_SOURCES,
            True,
        ),
        "alpha-masi": AgreementMeasure(
            _build_label_set_measure(alphas.build_masi_distance),
            "alpha of the label sets per unit, with the MASI distance",
            _MARK_SOURCES,
            True,
        ),
        "two-agree": AgreementMeasure(
            _run_two_agree,
            "percentage of marked units that two or more annotators marked",
            _MARK_AND_ITEM_SOURCES,
            page="two-agree",
            kind="proportion",
            bounds=(0.0, 100.0),
        ),
        "kappa-cohen": AgreementMeasure(
            _run_mean_cohen_kappa, "Cohen's kappa, mean over pairs of annotators", individuals=True, page="kappa"
        ),
        "kappa-cohen-pairs": AgreementMeasure(
            _run_cohen_kappa_per_pair, "Cohen's kappa of each pair of annotators", individuals=True, page="kappa"
        ),
        "kappa-fleiss": AgreementMeasure(
            build_tally_measure(kappa.pooled_fleiss),
            "Fleiss' kappa over units with the maximum number of ratings",
            page="kappa",
        ),
        "kappa-fleiss-variable": AgreementMeasure(
            build_tally_measure(kappa.pooled_fleiss_variable_raters),
            "Fleiss' kappa over units with two or more ratings",
            page="kappa",
        ),
        "ac1": AgreementMeasure(build_tally_measure(kappa.pooled_ac1), "Gwet's AC1", page="kappa"),
        "f1": AgreementMeasure(
            _build_f1_measure(pairwise.micro_f1),
            "overlap F1 of pairs of annotators, micro-averaged",
            _MARK_SOURCES,
            True,
            **_F1_FIELDS,
        ),
        "f1-typed": AgreementMeasure(
            _build_f1_measure(pairwise.typed_micro_f1),
            "overlap F1, matching only marks with the same label, micro-averaged",
            _MARK_SOURCES,
            True,
            **_F1_FIELDS,
        ),
        "f1-macro": AgreementMeasure(
            _build_f1_measure(pairwise.macro_f1),
            "overlap F1, mean over pairs and texts, 1 where both are empty",
            _MARK_SOURCES,
            True,
            **_F1_FIELDS,
        ),
        "f1-typed-macro": AgreementMeasure(
            _build_f1_measure(pairwise.typed_macro_f1),
            "overlap F1, matching only marks with the same label, mean over pairs and texts",
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
            "mean gamma per text",
            _MARK_SOURCES,
            True,
            **_GAMMA_FIELDS,
        ),
        "gamma-texts": AgreementMeasure(_run_text_gammas, "gamma of each text", _MARK_SOURCES, True, **_GAMMA_FIELDS),
        "gamma-cat": AgreementMeasure(
            _build_gamma_measure(gammas.pooled_gamma, slice(1, 2)),
            "agreement on labels among aligned marks",
            _MARK_SOURCES,
            True,
            **_GAMMA_FIELDS,
        ),
        "gamma-k": AgreementMeasure(
            _build_gamma_measure(gammas.pooled_gamma, slice(2, None)),
            "agreement on each label among marks aligned with it",
            _MARK_SOURCES,
            True,
            **_GAMMA_FIELDS,
        ),
        "pearson": AgreementMeasure(
            _run_mark_count_pearson,
            "Pearson's r of the numbers of marks per text, mean over pairs",
            _MARK_SOURCES,
            True,
            page="pairwise",
            kind="correlation",
            undefined="the numbers of marks do not vary for any pair of annotators",
        ),
        **{
            f"one-vs-rest-{score}": AgreementMeasure(
                _build_one_vs_rest_measure(score),
                f"{score} of one annotator against the rest, pooled",
                _MARK_SOURCES,
                **_ONE_VS_REST_FIELDS,
                undefined=_ONE_VS_REST_UNDEFINED[score],
            )
            for score in ("precision", "recall", "f1")
        },
        **{
            f"one-vs-rest-{score}-mean": AgreementMeasure(
                _build_one_vs_rest_mean_measure(score),
                f"mean over annotators of their {score} against the rest",
                _MARK_SOURCES,
                True,
                **_ONE_VS_REST_FIELDS,
                undefined=_ONE_VS_REST_UNDEFINED[score],
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
                undefined=_ONE_VS_REST_UNDEFINED[score],
            )
            for score in ("precision", "recall", "f1")
        },
    },
    taken=MEASURE_FAMILIES,
)
