"""Registry of plans and of statistics other than means over annotations, each with its options and page.

A new statistic is a module with its function and an entry here. Its options are parameters of a function in
`finecomb.api.statistics`, with the same defaults. Options that a statistic does not have are rejected. Means over
annotations are in `measures.annotation_measures.ANNOTATION_MEASURES`, measures of agreement in
`agreement.registry.AGREEMENT_MEASURES`, tests in `comparisons.registry.TESTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from finecomb.core.options import option_field
from finecomb.core.results import Finding
from finecomb.core.study import Study
from finecomb.engine.partitions import ProgressWatcher
from finecomb.plugins import Registry
from finecomb.statistics.measures.annotation_measures import (
    ANNOTATION_MEASURES,
    IntervalOptions,
)
from finecomb.statistics.measures.count_variation import mark_count_variation
from finecomb.statistics.measures.cross_tables import Normalise, cross_tabulate
from finecomb.statistics.measures.mark_overlap import mark_depth_shares, vote_share_by_severity
from finecomb.statistics.measures.rating_correlation import mark_count_rating_correlation
from finecomb.statistics.measures.unit_grid import UnitLevel
from finecomb.statistics.power import human_or_machine_power, plan_from_pilot
from finecomb.statistics.selection.view import ANY_LABEL, Filters, View
from finecomb.statistics.selection.view import view as view_of


@dataclass(frozen=True, slots=True)
class RegisteredStatistic:
    """Registered statistic or plan."""

    run: Callable[[Any, Any], list[Finding]]
    """Function that takes the input and the options."""
    options: type
    """Dataclass of the statistic's options."""
    gloss: str
    """One-line description."""
    page: str
    """Name of the documentation page in `docs/statistics`."""
    reads: type[View] | type[Study] | None = View
    """Type of the input: a filtered view, the whole study, or None for no input."""


@dataclass(frozen=True)
class CountVariationOptions(IntervalOptions):
    """Options of the statistic `variation`."""

    sizes: tuple[int, ...] = option_field((25, 50, 100), commas=True)
    replacement: bool = option_field(True)


@dataclass(frozen=True)
class VoteShareOptions(IntervalOptions):
    """Options of the statistic `noticed`."""

    tokens: str = option_field("words")


@dataclass(frozen=True)
class MarkDepthOptions(VoteShareOptions):
    """Options of the statistic `depth`."""

    level: UnitLevel = option_field("token")


@dataclass(frozen=True)
class CountRatingCorrelationOptions:
    """Options of the statistic `count-rating`."""

    question: str = option_field("rating")
    ratings: str = option_field("")
    draws: int = option_field(1000, minimum=0)
    seed: int = option_field(0)


@dataclass(frozen=True)
class CrossTableOptions(IntervalOptions):
    """Options of the statistic `crossed`."""

    normalise: Normalise = option_field("column")


def _run_count_variation(view: View, options: CountVariationOptions) -> list[Finding]:
    return mark_count_variation(
        view, options.sizes, options.by, replace=options.replacement, draws=options.draws, seed=options.seed
    )


def _run_mark_depth(view: View, options: MarkDepthOptions) -> list[Finding]:
    return mark_depth_shares(
        view, options.by, level=options.level, tokens=options.tokens, draws=options.draws, seed=options.seed
    )


def _run_vote_share(view: View, options: VoteShareOptions) -> list[Finding]:
    return vote_share_by_severity(view, options.by, tokens=options.tokens, draws=options.draws, seed=options.seed)


def _run_count_rating_correlation(view: View, options: CountRatingCorrelationOptions) -> list[Finding]:
    other = None
    if options.ratings:
        other = view_of(view.source or view.study, Filters(protocol=options.ratings))
    return mark_count_rating_correlation(view, options.question, ratings=other, draws=options.draws, seed=options.seed)


def _run_cross_table(view: View, options: CrossTableOptions) -> list[Finding]:
    column = options.by[0] if options.by else "topic"
    return cross_tabulate(view, column, normalise=options.normalise, draws=options.draws, seed=options.seed)


STATISTICS = Registry[RegisteredStatistic](
    "statistics",
    RegisteredStatistic,
    {
        "variation": RegisteredStatistic(
            _run_count_variation, CountVariationOptions, "stability of counts with fewer texts", "variation"
        ),
        "depth": RegisteredStatistic(
            _run_mark_depth, MarkDepthOptions, "share of tokens marked by 0, 1, 2, ... annotators", "overlap"
        ),
        "noticed": RegisteredStatistic(
            _run_vote_share,
            VoteShareOptions,
            "share of other annotators who marked the same words, by severity",
            "overlap",
        ),
        "count-rating": RegisteredStatistic(
            _run_count_rating_correlation,
            CountRatingCorrelationOptions,
            "correlation of marks and ratings per text",
            "counts-and-rates",
        ),
        "crossed": RegisteredStatistic(
            _run_cross_table, CrossTableOptions, "coverage by label and one column, as shares", "counts-and-rates"
        ),
    },
    taken=ANNOTATION_MEASURES,
)
"""Statistics available in `finecomb measure` other than means over annotations, by name."""


@dataclass(frozen=True)
class SimulationOptions:
    """Options shared by all plans."""

    runs: int = option_field(2000)
    seed: int = option_field(0)
    watch: ProgressWatcher | None = None


@dataclass(frozen=True)
class PilotPlanOptions(SimulationOptions):
    """Options of a plan from a pilot."""

    measure: str = option_field("coverage", "--measure", "-m")
    label: str = option_field(ANY_LABEL)
    half_width: float | None = option_field(None)
    difference: float | None = option_field(None)
    annotations: int | None = option_field(None)
    annotators: tuple[int, ...] = option_field((1, 2, 3, 5, 10), commas=True)
    wanted: float = option_field(0.8)
    protocol: str = option_field("", "--protocol", "-p")
    where: tuple[str, ...] = option_field(())
    drop: tuple[str, ...] = option_field(())


@dataclass(frozen=True)
class EvaluatorPlanOptions(SimulationOptions):
    """Options of a plan for a human-or-machine study, without a pilot."""

    evaluators: int = option_field(130)
    texts: int = option_field(5)


def _plan_from_pilot(view: View, options: PilotPlanOptions) -> list[Finding]:
    return plan_from_pilot(
        view,
        options.measure,
        options.label,
        options.half_width,
        options.difference,
        options.annotations,
        options.annotators,
        options.wanted,
        runs=options.runs,
        seed=options.seed,
        watch=options.watch,
    )


def _plan_human_or_machine_study(nothing: None, options: EvaluatorPlanOptions) -> list[Finding]:
    return human_or_machine_power(
        evaluators=options.evaluators,
        texts=options.texts,
        runs=options.runs,
        seed=options.seed,
        watch=options.watch,
    )


WITH_PILOT, WITHOUT_PILOT = "a plan from a pilot", "a plan without a pilot"
PLANS: dict[str, RegisteredStatistic] = {
    WITH_PILOT: RegisteredStatistic(
        _plan_from_pilot, PilotPlanOptions, "documents and annotators, from the variance in a pilot", "power"
    ),
    WITHOUT_PILOT: RegisteredStatistic(
        _plan_human_or_machine_study,
        EvaluatorPlanOptions,
        "power of the tests of a human-or-machine study",
        "power",
        None,
    ),
}
"""Plans available in `finecomb power`, by name."""
