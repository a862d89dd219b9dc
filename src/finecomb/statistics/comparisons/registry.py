"""Registry of tests, with the input, options and documentation page of each test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from finecomb.core.errors import ParameterError, param
from finecomb.core.options import option_field
from finecomb.core.results import Finding
from finecomb.core.study import Study
from finecomb.engine.partitions import Executor, ProgressWatcher
from finecomb.statistics.comparisons.comment_codes import ShareDenominator, coder_agreement, comment_code_shares
from finecomb.statistics.comparisons.human_or_machine import (
    evaluator_score_histogram,
    evaluator_score_tests,
    human_or_machine_findings,
)
from finecomb.statistics.comparisons.practice_guesses import practice_accuracy_findings
from finecomb.statistics.comparisons.system_comparison import compare_systems_pairwise
from finecomb.statistics.comparisons.system_pairs import Pairing
from finecomb.statistics.inference.metric_correlation import metric_correlations
from finecomb.statistics.inference.permutation_tests import Correction
from finecomb.statistics.measures.unit_grid import OverlapMode
from finecomb.statistics.registry import RegisteredStatistic
from finecomb.statistics.selection.view import ANY_LABEL, View


@dataclass(frozen=True)
class GroupTableOptions:
    """Options shared by tables that are grouped by columns."""

    by: tuple[str, ...] = option_field((), commas=True)


@dataclass(frozen=True)
class EvaluatorTableOptions(GroupTableOptions):
    """Options shared by tables of evaluators that are grouped by columns."""

    unfinished: bool = option_field(False)


@dataclass(frozen=True)
class IntervalTableOptions(GroupTableOptions):
    """Options shared by tables with intervals that are grouped by columns."""

    draws: int = option_field(10_000, minimum=0)
    seed: int = option_field(0)


@dataclass(frozen=True)
class HumanOrMachineOptions(IntervalTableOptions, EvaluatorTableOptions):
    """Options of the test `human-or-machine`."""

    bins: Literal["2", "4"] = option_field("2")


@dataclass(frozen=True)
class CommentCodeOptions(IntervalTableOptions):
    """Options of the test `codes`."""

    per: ShareDenominator = option_field("code")


@dataclass(frozen=True)
class SystemComparisonOptions(IntervalTableOptions):
    """Options of the test `systems`."""

    measure: str = option_field("coverage", "--measure", "-m")
    paired: Pairing = option_field("auto")
    key: str = option_field("")
    correction: Correction = option_field("max-t")
    cluster: str = option_field("")
    each_label: bool = option_field(False)
    tokens: str = option_field("words")
    overlap: OverlapMode = option_field("add")
    spread: Executor | None = None
    """Executor that runs the comparisons and stores their results; None runs them in this process."""
    watch: ProgressWatcher | None = None


@dataclass(frozen=True)
class MetricCorrelationOptions(GroupTableOptions):
    """Options of the test `metrics`."""

    question: str = option_field("rating")
    draws: int = option_field(1000, minimum=0)
    seed: int = option_field(0)


@dataclass(frozen=True)
class PracticeAccuracyOptions(EvaluatorTableOptions):
    """Options of the test `training`."""

    draws: int = option_field(1000, minimum=0)
    seed: int = option_field(0)


@dataclass(frozen=True)
class CoderAgreementOptions:
    """Options of the test `coders`."""

    draws: int = option_field(1000, minimum=0)
    seed: int = option_field(0)


def _run_system_comparison(view: View, options: SystemComparisonOptions) -> list[Finding]:
    if len(options.by) > 1:
        by = ",".join(options.by)
        raise ParameterError(
            f"{param('by', by)}: systems must be one column; select others with {param('where')}",
            parameter="by",
        )
    return compare_systems_pairwise(
        view,
        options.by[0] if options.by else "model",
        options.measure,
        [ANY_LABEL, *(view.categories if options.each_label else ())],
        options.paired,
        options.key,
        options.correction,
        options.tokens,
        options.overlap,
        options.cluster,
        options.draws,
        options.seed,
        options.spread,
        options.watch,
    )


_HUMAN_OR_MACHINE_PAGE = "human-or-machine"
TESTS: dict[str, RegisteredStatistic] = {
    "systems": RegisteredStatistic(
        _run_system_comparison, SystemComparisonOptions, "pairwise differences between systems", "comparing-systems"
    ),
    "metrics": RegisteredStatistic(
        lambda study, options: metric_correlations(
            study, options.question, options.by[0] if options.by else "model", options.draws, options.seed
        ),
        MetricCorrelationOptions,
        "correlation of scalar metrics with people",
        "metrics",
        Study,
    ),
    "human-or-machine": RegisteredStatistic(
        lambda view, options: human_or_machine_findings(
            view,
            () if options.by == ("none",) else options.by or ("model", "domain"),
            4 if options.bins == "4" else 2,
            draws=options.draws,
            seed=options.seed,
            unfinished=options.unfinished,
        ),
        HumanOrMachineOptions,
        "accuracy of people in telling human from machine texts",
        _HUMAN_OR_MACHINE_PAGE,
    ),
    "scores": RegisteredStatistic(
        lambda view, options: evaluator_score_tests(
            view, options.by[0] if options.by else "condition", options.by[1:], options.unfinished
        ),
        EvaluatorTableOptions,
        "evaluators' scores between conditions",
        _HUMAN_OR_MACHINE_PAGE,
    ),
    "histogram": RegisteredStatistic(
        lambda view, options: evaluator_score_histogram(view, options.by or ("model", "domain"), options.unfinished),
        EvaluatorTableOptions,
        "distribution of evaluators' scores",
        _HUMAN_OR_MACHINE_PAGE,
    ),
    "training": RegisteredStatistic(
        lambda view, options: practice_accuracy_findings(
            view,
            () if options.by == ("none",) else options.by or ("condition",),
            options.draws,
            options.seed,
            options.unfinished,
        ),
        PracticeAccuracyOptions,
        "correlation of practice guesses with accuracy in the study",
        _HUMAN_OR_MACHINE_PAGE,
    ),
    "codes": RegisteredStatistic(
        lambda study, options: comment_code_shares(
            study, options.by, draws=options.draws, seed=options.seed, per=options.per
        ),
        CommentCodeOptions,
        "share of each code among evaluators' explanations",
        _HUMAN_OR_MACHINE_PAGE,
        Study,
    ),
    "coders": RegisteredStatistic(
        lambda study, options: coder_agreement(study, draws=options.draws, seed=options.seed),
        CoderAgreementOptions,
        "agreement of the coders of explanations",
        _HUMAN_OR_MACHINE_PAGE,
        Study,
    ),
}
"""Tests available in `finecomb test`, by name."""
