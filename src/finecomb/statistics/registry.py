"""The registry of statistics that are no means over annotations, and of plans: each a row with its options and page.

A new statistic is a module with its function and a row here; its refusals come from its options, each of which is a
parameter of a function in `finecomb.api.statistics`, with the same default. Means over annotations are rows of
`measures.MEASURES`, measures of agreement of `agreement.measures.MEASURES`, tests of `agreement.registry.TESTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from finecomb.core.errors import ParameterError, did_you_mean
from finecomb.core.estimate import Finding
from finecomb.core.options import OptionValues, merge_option_specs, option
from finecomb.core.study import Study
from finecomb.statistics.measures.annotation_measures import (
    ANSWER_PREFIX,
    MEASURES,
    IntervalOptions,
    find_measure,
    measure,
)
from finecomb.statistics.measures.count_variation import variation
from finecomb.statistics.measures.cross_tables import Normalise, cross_tabulate
from finecomb.statistics.measures.mark_overlap import mark_depth_shares, vote_share_by_severity
from finecomb.statistics.measures.rating_correlation import count_rating_correlation
from finecomb.statistics.measures.study_counts import document_meta_names
from finecomb.statistics.measures.unit_grid import Level
from finecomb.statistics.power import power, score_power
from finecomb.statistics.selection.view import ANY, Filters, View
from finecomb.statistics.selection.view import view as view_of


@dataclass(frozen=True, slots=True)
class RegisteredStatistic:
    """One row of a registry."""

    run: Callable[[Any, Any], list[Finding]]
    """Takes what it reads, and its options."""
    options: type
    """The dataclass of its options."""
    gloss: str
    """What it is, in a line."""
    page: str
    """The page of `docs/statistics` that describes it."""
    reads: type[View] | type[Study] | None = View
    """A view, which filters choose; the whole study; or nothing at all."""


@dataclass(frozen=True)
class CountVariationOptions(IntervalOptions):
    """Options of variation."""

    sizes: tuple[int, ...] = option((25, 50, 100), "For variation: numbers of documents.", commas=True)
    replacement: bool = option(True, "For variation: draw documents with replacement.")


@dataclass(frozen=True)
class VoteShareOptions(IntervalOptions):
    """Options of what is noticed."""

    tokens: str = option("words", "words, whitespace, or spacy:NAME.")


@dataclass(frozen=True)
class MarkDepthOptions(VoteShareOptions):
    """Options of depth."""

    level: Level = option("token", "What is covered or counted in the text.")


@dataclass(frozen=True)
class CountRatingCorrelationOptions:
    """Options of the correlation between counts and ratings."""

    question: str = option("rating", "For count-rating: the document's question.")
    ratings: str = option("", "For count-rating: the protocol of the ratings, where marks have another.")
    draws: int = option(1000, "Resamples behind each interval.", minimum=0)
    seed: int = option(0, "Same seed, same intervals.")


@dataclass(frozen=True)
class CrossTableOptions(IntervalOptions):
    """Options of labels by one column."""

    normalise: Normalise = option("column", "For crossed: shares of each column, or of each label.")


def _run_count_variation(view: View, options: CountVariationOptions) -> list[Finding]:
    return variation(
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
    return count_rating_correlation(view, options.question, ratings=other, draws=options.draws, seed=options.seed)


def _run_cross_table(view: View, options: CrossTableOptions) -> list[Finding]:
    column = options.by[0] if options.by else "topic"
    return cross_tabulate(view, column, normalise=options.normalise, draws=options.draws, seed=options.seed)


STATISTICS: dict[str, RegisteredStatistic] = {
    "variation": RegisteredStatistic(
        _run_count_variation, CountVariationOptions, "how steady counts are with fewer texts", "variation"
    ),
    "depth": RegisteredStatistic(
        _run_mark_depth, MarkDepthOptions, "share of the tokens that 0, 1, 2, ... annotators marked", "overlap"
    ),
    "noticed": RegisteredStatistic(
        _run_vote_share, VoteShareOptions, "how many others marked the same words, by severity", "overlap"
    ),
    "count-rating": RegisteredStatistic(
        _run_count_rating_correlation,
        CountRatingCorrelationOptions,
        "correlation of marks and ratings of one text",
        "counts-and-rates",
    ),
    "crossed": RegisteredStatistic(
        _run_cross_table, CrossTableOptions, "coverage by label and one column, as shares", "counts-and-rates"
    ),
}
"""Rows of `finecomb measure` beside the means over annotations."""


def measure_options(names: Iterable[str]) -> dict[str, type]:
    """Return the options dataclass of each measure by name; a name that is unknown is refused."""
    choices = [*MEASURES, *STATISTICS, "answer:NAME"]
    options: dict[str, type] = {}
    for name in names:
        if name not in STATISTICS and not is_mean(name):
            raise ParameterError(f"no measure is called {name!r}{did_you_mean(name, choices)}", parameter="measure")
        options[name] = STATISTICS[name].options if name in STATISTICS else find_measure(name).options
    return options


def is_mean(name: str) -> bool:
    """Return whether a measure is a mean over annotations: one of `MEASURES`, or the answers to a question."""
    return name in MEASURES or (name.startswith(ANSWER_PREFIX) and name != ANSWER_PREFIX)


def compute_measures(view: View, names: Sequence[str], by: tuple[str, ...], values: OptionValues) -> list[Finding]:
    """Return the means over annotations, which are computed together, then each other statistic."""
    means = [name for name in names if is_mean(name)]
    taken_by_means = set(merge_option_specs(find_measure(name).options for name in means)) - {"by"}
    fields = {name: value for name, value in values.given.items() if name in taken_by_means}
    findings: list[Finding] = list(measure(view, means, by, **fields)) if means else []
    for name in names:
        if name in STATISTICS:
            findings += STATISTICS[name].run(view, values.build_options(STATISTICS[name].options, by=by))
    return findings


def default_groups(study: Study, by: Sequence[str]) -> tuple[str, ...]:
    """Return the columns asked for, else `model` where documents have it; `none` is one row for everything."""
    if tuple(by) == ("none",):
        return ()
    return tuple(by) or (("model",) if "model" in document_meta_names(study) else ())


@dataclass(frozen=True)
class SimulationOptions:
    """Options of every plan."""

    runs: int = option(2000, "Simulated studies.")
    seed: int = option(0, "Same seed, same intervals.")


@dataclass(frozen=True)
class PilotPlanOptions(SimulationOptions):
    """Options of a plan from a pilot."""

    measure: str = option("coverage", "What will be measured.", "--measure", "-m")
    label: str = option(ANY, "Of which label.")
    half_width: float | None = option(None, "Documents for an interval this wide to each side.")
    difference: float | None = option(None, "Documents to find a difference of this size.")
    annotations: int | None = option(None, "Annotations to spread: ten annotators or three?")
    annotators: tuple[int, ...] = option((1, 2, 3, 5, 10), "Numbers of annotators to try.", commas=True)
    wanted: float = option(0.8, "Wanted chance of finding the difference.")
    protocol: str = option("", "Which of the study's protocols.", "--protocol", "-p")
    where: tuple[str, ...] = option((), "Only what fits, as for `finecomb measure`; may be repeated.")
    drop: tuple[str, ...] = option((), "Leave out a label or group, or one severity of it: grammar-usage:1.")


@dataclass(frozen=True)
class EvaluatorPlanOptions(SimulationOptions):
    """Options of a plan of a human-or-machine study, without a pilot."""

    evaluators: int = option(130, "Without a pilot: how many evaluators.")
    texts: int = option(5, "Without a pilot: texts each.")


def _plan_from_pilot(view: View, options: PilotPlanOptions) -> list[Finding]:
    return power(
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
    )


def _plan_without_pilot(nothing: None, options: EvaluatorPlanOptions) -> list[Finding]:
    return score_power(evaluators=options.evaluators, texts=options.texts, runs=options.runs, seed=options.seed)


WITH_PILOT, WITHOUT_PILOT = "a plan from a pilot", "a plan without a pilot"
PLANS: dict[str, RegisteredStatistic] = {
    WITH_PILOT: RegisteredStatistic(
        _plan_from_pilot, PilotPlanOptions, "documents and annotators, from what varies in a pilot", "power"
    ),
    WITHOUT_PILOT: RegisteredStatistic(
        _plan_without_pilot, EvaluatorPlanOptions, "power of the tests of a human-or-machine study", "power", None
    ),
}
"""Rows of `finecomb power`."""
