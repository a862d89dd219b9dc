"""The registry of tests: each a row with what it reads, its options and its page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from finecomb.core.errors import ParameterError, param
from finecomb.core.estimate import Finding
from finecomb.core.options import option
from finecomb.core.study import Study
from finecomb.engine.partitions import Executor
from finecomb.statistics.comparisons.comment_codes import Per, coder_agreement, comment_codes
from finecomb.statistics.comparisons.human_or_machine import Bins, human_or_machine, score_histogram, score_tests
from finecomb.statistics.comparisons.practice_guesses import practice_accuracy_findings
from finecomb.statistics.comparisons.system_comparison import compare
from finecomb.statistics.comparisons.system_pairs import Pairing
from finecomb.statistics.inference.metric_correlation import metric_correlations
from finecomb.statistics.inference.permutation_tests import Correction
from finecomb.statistics.measures.annotation_matrix import Overlap
from finecomb.statistics.registry import RegisteredStatistic
from finecomb.statistics.selection.view import ANY, View


@dataclass(frozen=True)
class GroupTableOptions:
    """Options of tables by group."""

    by: tuple[str, ...] = option((), "Document meta or annotator fields, with commas.", commas=True)


@dataclass(frozen=True)
class EvaluatorTableOptions(GroupTableOptions):
    """Options of tables of evaluators by group."""

    unfinished: bool = option(False, "Count also people who left before they had read all texts of their cell.")


@dataclass(frozen=True)
class IntervalTableOptions(GroupTableOptions):
    """Options of tables by group with intervals."""

    draws: int = option(10_000, "Resamples behind each interval.", minimum=0)
    seed: int = option(0, "Same seed, same intervals.")


@dataclass(frozen=True)
class HumanOrMachineOptions(IntervalTableOptions, EvaluatorTableOptions):
    """Options of human or machine."""

    bins: Literal["2", "4"] = option("2", "For alpha: human or machine (2), or the answers as given (4).")


@dataclass(frozen=True)
class CommentCodeOptions(IntervalTableOptions):
    """Options of what readers went by."""

    per: Per = option("code", "Shares of all codes given, or of the comments: 45 of 150 comments.")


@dataclass(frozen=True)
class SystemComparisonOptions(IntervalTableOptions):
    """Options of the comparison of systems."""

    measure: str = option("coverage", "For systems: a measure, or answer:NAME.", "--measure", "-m")
    paired: Pairing = option("auto", "Pair texts of one prompt.")
    key: str = option("", "Document meta that pairs texts.")
    correction: Correction = option("holm", "For many comparisons.")
    each_label: bool = option(False, "For systems: every label too.")
    tokens: str = option("words", "words, whitespace, or spacy:NAME.")
    overlap: Overlap = option("add", "A token in two marks counts twice, or once.")
    spread: Executor | None = None
    """Who makes the comparisons, this process where there is none, and where those made are."""


@dataclass(frozen=True)
class MetricCorrelationOptions(GroupTableOptions):
    """Options of metrics against people."""

    question: str = option("rating", "For metrics: the question that people answered.")
    draws: int = option(1000, "Resamples behind each interval.", minimum=0)
    seed: int = option(0, "Same seed, same intervals.")


@dataclass(frozen=True)
class PracticeAccuracyOptions(EvaluatorTableOptions):
    """Options of guesses in practice."""

    draws: int = option(1000, "Resamples behind each interval.", minimum=0)
    seed: int = option(0, "Same seed, same intervals.")


@dataclass(frozen=True)
class CoderAgreementOptions:
    """Options of the agreement of coders."""

    draws: int = option(1000, "Resamples behind each interval.", minimum=0)
    seed: int = option(0, "Same seed, same intervals.")


def _run_system_comparison(view: View, options: SystemComparisonOptions) -> list[Finding]:
    if len(options.by) > 1:
        by = ",".join(options.by)
        raise ParameterError(
            f"{param('by', by)}: systems are told apart by one column; choose others with {param('where')}",
            parameter="by",
        )
    return compare(
        view,
        options.by[0] if options.by else "model",
        options.measure,
        [ANY, *(view.categories if options.each_label else ())],
        options.paired,
        options.key,
        options.correction,
        options.tokens,
        options.overlap,
        options.draws,
        options.seed,
        options.spread,
    )


def _run_metric_correlations(study: Study, options: MetricCorrelationOptions) -> list[Finding]:
    return metric_correlations(
        study, options.question, options.by[0] if options.by else "model", options.draws, options.seed
    )


def _run_human_or_machine(view: View, options: HumanOrMachineOptions) -> list[Finding]:
    by = () if options.by == ("none",) else options.by or ("model", "domain")
    bins: Bins = 4 if options.bins == "4" else 2
    return human_or_machine(view, by, bins, draws=options.draws, seed=options.seed, unfinished=options.unfinished)


def _run_score_tests(view: View, options: EvaluatorTableOptions) -> list[Finding]:
    return score_tests(view, options.by[0] if options.by else "condition", options.by[1:], options.unfinished)


def _run_score_histogram(view: View, options: EvaluatorTableOptions) -> list[Finding]:
    return score_histogram(view, options.by or ("model", "domain"), options.unfinished)


def _run_practice_accuracy(view: View, options: PracticeAccuracyOptions) -> list[Finding]:
    by = () if options.by == ("none",) else options.by or ("condition",)
    return practice_accuracy_findings(view, by, options.draws, options.seed, options.unfinished)


def _run_comment_codes(study: Study, options: CommentCodeOptions) -> list[Finding]:
    return comment_codes(study, options.by, draws=options.draws, seed=options.seed, per=options.per)


def _run_coder_agreement(study: Study, options: CoderAgreementOptions) -> list[Finding]:
    return coder_agreement(study, draws=options.draws, seed=options.seed)


_PAGE = "human-or-machine"
TESTS: dict[str, RegisteredStatistic] = {
    "systems": RegisteredStatistic(
        _run_system_comparison, SystemComparisonOptions, "do two systems differ?", "comparing-systems"
    ),
    "metrics": RegisteredStatistic(
        _run_metric_correlations, MetricCorrelationOptions, "scalar metrics against people", "metrics", Study
    ),
    "human-or-machine": RegisteredStatistic(
        _run_human_or_machine, HumanOrMachineOptions, "can people tell them apart?", _PAGE
    ),
    "scores": RegisteredStatistic(
        _run_score_tests, EvaluatorTableOptions, "evaluators' scores between conditions", _PAGE
    ),
    "histogram": RegisteredStatistic(
        _run_score_histogram, EvaluatorTableOptions, "how many evaluators got how many right", _PAGE
    ),
    "training": RegisteredStatistic(
        _run_practice_accuracy, PracticeAccuracyOptions, "do guesses in practice go with accuracy in work?", _PAGE
    ),
    "codes": RegisteredStatistic(_run_comment_codes, CommentCodeOptions, "what readers went by", _PAGE, Study),
    "coders": RegisteredStatistic(
        _run_coder_agreement, CoderAgreementOptions, "how far coders of explanations agree", _PAGE, Study
    ),
}
"""Rows of `finecomb test`."""
