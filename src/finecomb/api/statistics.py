"""Statistics of annotations: agreement, measures, tests and planning."""

# ruff: noqa: PT028 (`test` is a public function, not a test with defaults)

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl

from finecomb.api.parameters import (
    COMMA_SEPARATED,
    SELECTION,
    Count,
    Names,
    PositiveInt,
    StudyLike,
    Values,
    as_names,
    as_study,
    as_values,
    build_filters,
    changed_parameters,
    public,
    select_view,
)
from finecomb.api.progress import Progress, resume_note, track_counts
from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.frames import json_entry_names
from finecomb.core.options import (
    OptionValues,
    merge_option_specs,
    option_specs,
    parameters_by_choice,
    reject_inapplicable_parameters,
)
from finecomb.core.results import Finding, Findings
from finecomb.core.study import Study
from finecomb.engine.options import PartitionOptions
from finecomb.engine.partitions import count_steps
from finecomb.reporting.pivot_tables import HumanOrMachine, Measures
from finecomb.statistics.agreement.agreement import agree as compute_agreement
from finecomb.statistics.agreement.agreement import resolve_measure_names
from finecomb.statistics.agreement.agreement_options import AgreementLevel, AgreeOptions, Boundaries
from finecomb.statistics.agreement.gamma.text_gamma import GammaSettings
from finecomb.statistics.agreement.minimal_repairs import RepairMode
from finecomb.statistics.agreement.rating_sources import RATING_SOURCES, rating_source_type
from finecomb.statistics.agreement.registry import AGREEMENT_MEASURES as AGREEMENTS
from finecomb.statistics.annotator_quality import annotator_quality_findings as compute_annotator_quality
from finecomb.statistics.comparisons.comment_codes import ShareDenominator
from finecomb.statistics.comparisons.registry import TESTS
from finecomb.statistics.comparisons.system_pairs import Pairing
from finecomb.statistics.comparisons.system_ranking import (
    BEST_VALUE_RULE,
    NO_BEST_VALUE_NOTE,
    BestValue,
    significantly_lowest_values,
    sort_groups_by_value,
)
from finecomb.statistics.gold.decisions import decision_notes
from finecomb.statistics.inference.clusters import ANNOTATOR_CLUSTER, find_clusters
from finecomb.statistics.inference.intervals import IntervalMethod
from finecomb.statistics.inference.permutation_tests import Correction
from finecomb.statistics.inference.resampling import Average
from finecomb.statistics.measures.annotation_measures import (
    ANNOTATION_MEASURES,
    AnnotationMeasure,
    MissingValueMode,
    find_measure,
)
from finecomb.statistics.measures.annotation_measures import measure as compute_measures
from finecomb.statistics.measures.cross_tables import Normalise
from finecomb.statistics.measures.unit_grid import OverlapMode, UnitLevel
from finecomb.statistics.registry import (
    PLANS,
    STATISTICS,
    WITH_PILOT,
    WITHOUT_PILOT,
    RegisteredStatistic,
)
from finecomb.statistics.selection.view import ANY_LABEL, BackOff, RoundSelection, View, view, without_copies

Numbers = Annotated[str | int | Sequence[int | str], COMMA_SEPARATED]
"""One whole number or several, also as one comma-separated string."""


def _as_numbers(value: Numbers, parameter: str) -> tuple[int, ...]:
    """Return whole numbers from one number, several, or a comma-separated string.

    >>> _as_numbers("4, 8", "sizes"), _as_numbers([4, "8"], "sizes"), _as_numbers(4, "sizes")
    ((4, 8), (4, 8), (4,))
    """
    words = value.split(",") if isinstance(value, str) else [value] if isinstance(value, int) else list(value)
    try:
        return tuple(int(word) for word in words if str(word).strip())
    except ValueError:
        text = ",".join(map(str, words))
        raise ParameterError(
            f"{text!r} is not a comma-separated list of whole numbers; use, for example, 25,50,100", parameter=parameter
        ) from None


@public
def agree(
    study: StudyLike | View,
    *,
    measure: Names = ("alpha", "two-agree"),
    who: bool = False,
    each_label: bool = True,
    level: AgreementLevel = "token",
    by: Names = (),
    question: str = "",
    boundaries: Boundaries = "marked",
    tokens: str = "words",
    overlap: Literal["add", "union"] = "add",
    rest: Literal["union", "majority"] = "union",
    align: str = "item",
    convention: str = "marked",
    repairs: RepairMode = "declared",
    gamma: Values = (),
    protocol: str = "",
    label: Values = (),
    drop: Values = (),
    where: Values = (),
    back_off: BackOff = "label",
    merge: Values = (),
    annotator: Values = (),
    kind: Values = (),
    rounds: RoundSelection = "first",
    cluster: str = "",
    interval: IntervalMethod = "auto",
    draws: Count = 1000,
    seed: int = 0,
    engine: str = "local",
    workers: PositiveInt | None = None,
    partitions: str | PathLike[str] | None = None,
    progress: Progress = False,
) -> Findings:
    """Inter-annotator agreement by label, with confidence intervals.

    Parameters
    ----------
    study : Study, path, DataFrame, list of dicts or View
        The annotations to compare. A path is read with :func:`read`.
    measure : str or sequence of str, default ("alpha", "two-agree")
        Agreement measures, comma-separated, such as `alpha`, `kappa-cohen`, `f1` or `gamma`.
        Others include `two-agree`, `alpha-interval`, `kappa-fleiss`, `ac1`, `gamma-cat`, `pearson` and `one-vs-rest`.
    who : bool, default False
        Report annotator quality instead of agreement, comparing each annotator with the others.
    each_label : bool, default True
        Report each label in its own row, in addition to all labels together.
    level : {"token", "char", "sentence", "segment", "document", "item"}, default "token"
        Unit: `token`, `char`, `sentence`, `segment`, `document` or `item` (matched marks).
        An item is a group of marks of the same error.
    by : str or sequence of str
        Group by document metadata or annotator fields, comma-separated.
    question : str
        Compare the answers to this question instead of the marks.
    boundaries : {"marked", "union"}, default "marked"
        Use spans as marked (`marked`), or widen overlapping spans to their union (`union`).
    tokens : str, default "words"
        Tokenizer: `words`, `whitespace` or `spacy:NAME` (a spaCy language or pipeline).
    overlap : {"add", "union"}, default "add"
        For the `f1` measure: tokens covered by two marks count twice (`add`) or once (`union`).
    rest : {"union", "majority"}, default "union"
        For `one-vs-rest`: compare with the `union` or `majority` of the other annotators' marks.
        A majority is more than half of the others.
    align : str, default "item"
        For level `item`: method for matching marks, such as `item`, `overlap` or `gamma`.
        `item` uses the item IDs of the source, `overlap` shared characters, `overlap-label` shared characters and the
        same label, and `gamma` the alignment that gamma finds.
    convention : str, default "marked"
        For level `item`: rule that selects the ratings to count, such as `marked` or `no-error`.
        The rules are `marked` (only the labels of those who marked the item), `typed`, `no-error`, `no-error-majority`
        and `no-error-typed-majority`. With `no-error`, annotators who did not mark an item rate it "no error".
    repairs : {"declared", "smallest"}, default "declared"
        For level `item`: accept `declared` corrections, or also inferred ones (`smallest`).
        For example, one annotator corrects a name where another corrects two numbers.
    gamma : str or sequence of str
        For the `gamma` measure: option `NAME=VALUE`, such as `precision=0.02`; may be repeated.
        The settings are `delta`, `alpha`, `beta`, `categories`, `soft`, `sampler`, `samples`, `precision` and `work`.
    protocol : str
        Name of the protocol to use; required if the study has several.
    label : str or sequence of str
        Include only marks with this label or label group; may be repeated.
    drop : str or sequence of str
        Omit marks by label, group or `LABEL:SEVERITY` (`grammar-usage:1`); may be repeated.
    where : str or sequence of str
        Keep only matching texts, annotators or marks, such as `model=gpt2`; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    back_off : {"label", "group", "any"}, default "label"
        Granularity of labels: `label` (as given), `group` (label groups) or `any` (all as one).
    merge : str or sequence of str
        Merge labels under a new name, as `NEW=A+B`; may be repeated.
    annotator : str or sequence of str
        Include only this annotator; may be repeated.
    kind : str or sequence of str
        Include only annotators of this kind, such as `llm` (default: people, or all if none).
        The kinds are `human`, `llm`, `detector`, `checker`, `gold` and `pooled`; several may be given. By default
        people (`human` and `pooled`), or all other kinds if the study has no people.
    rounds : {"first", "last", "all"}, default "first"
        Passes to use if an annotator annotated a text more than once: `first`, `last` or `all`.
    cluster : str
        Independent units: `text`, `prompt`, `source`, or a metadata field such as `topic`.
        By default, texts with the same prompt or source form a cluster.
    interval : {"auto", "percentile"}, default "auto"
        Interval method: chosen by the type of statistic (`auto`), or percentile bootstrap.
    draws : int, default 1000
        Number of resamples per confidence interval.
    seed : int, default 0
        Random seed for resampling.
    engine : str, default "local"
        Engine for the `gamma` measure: `local` (processes), `ray` or `ray:ADDRESS` (a cluster).
    workers : int, optional
        For the `gamma` measure: number of parallel processes; results do not depend on it.
    partitions : path, optional
        For the `gamma` measure: folder for intermediate results, to resume an interrupted run.
    progress : bool or callable, default False
        Show progress on standard error.
        A function is called with the numbers of finished and total texts instead.

    Returns
    -------
    Findings
        One row per measure and label; ``.to_pandas()``, ``.to_latex()``, ``.plot()``, ``.find(...)``.

    Raises
    ------
    ParameterError
        If a measure is unknown, or an option does not apply to the measures.

    Examples
    --------
    >>> import finecomb as fc
    >>> round(fc.agree(fc.demo(), measure="alpha").find(label="any").value, 3)
    0.625

    References
    ----------
    Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability".
    """
    chosen = changed_parameters(agree, locals())
    if who and "measure" in chosen:
        raise ParameterError(
            f"{param('measure')} and {param('who')} cannot be used together",
            parameter="measure",
            hint="omit one of them",
        )
    names = [] if who else resolve_measure_names(as_names(measure))
    if chosen.keys() - _AGREEMENT_SELECTION:
        _refuse_agreement_options(chosen, names, level, question)
    part = select_view(study, chosen)
    if "llm" in part.study.annotators["kind"]:
        part = without_copies(part)
    if who:
        return Findings(
            compute_annotator_quality(part, tokens=tokens, seed=seed), part.notes, title="Annotator quality"
        )
    options = {name: chosen[name] for name in _AGREEMENT_OPTIONS if name in chosen}
    if by:
        options["by"] = as_names(by)
    if not each_label:
        options["by_label"] = False
    if not any(name.startswith("gamma") for name in names):
        findings = compute_agreement(part, names, **options)
        return Findings(findings, [*part.notes, *findings.notes], title="Agreement", protocol=part.protocol)
    with PartitionOptions(engine, workers, Path(partitions) if partitions else None).open_executor() as executor:
        findings = compute_agreement(
            part,
            names,
            **options,
            gamma=GammaSettings.parse(as_values(gamma)),
            watch=lambda counts, total: track_counts(counts, progress, "texts", total),
            spread=executor,
        )
        notes = [*part.notes, *findings.notes, *resume_note(executor.reused_row_count, "text")]
    return Findings(findings, notes, title="Agreement", protocol=part.protocol)


_AGREEMENT_SELECTION = {"measure", "by", "progress", *SELECTION}
"""Parameters that apply to all agreement measures."""
_AGREEMENT_OPTIONS = (
    "level", "question", "boundaries", "tokens", "overlap", "rest", "align", "convention", "repairs", "cluster",
    "interval", "draws", "seed",
)  # fmt: skip
_SPREAD_OPTIONS = frozenset(spec.parameter for spec in option_specs(PartitionOptions).values())
"""Parameters of work that is distributed over processes."""


def _refuse_agreement_options(
    chosen: Collection[str], names: Sequence[str], level: AgreementLevel, question: str
) -> None:
    """Refuse options that apply neither to the measures nor to the ratings that they compare."""
    wanted = list(names) or [param("who")]
    reject_inapplicable_parameters(
        chosen, wanted, {name: _SPREAD_OPTIONS for name in AGREEMENTS if name.startswith("gamma")}
    )
    reject_inapplicable_parameters(chosen, wanted, dict.fromkeys(AGREEMENTS, frozenset({"each_label"})))
    source = rating_source_type(AgreeOptions(level=level, question=question))
    choices = {name: row.options for name, row in AGREEMENTS.items()}
    choices |= {kind.noun: kind.options_type for kind in RATING_SOURCES}
    taken = parameters_by_choice(choices) | {param("who"): frozenset({"tokens", "seed"})}
    reject_inapplicable_parameters(chosen, [*wanted, *([source.noun] if names else [])], taken)


@public
def measure(
    study: StudyLike | View,
    *,
    measure: Names = ("coverage", "count"),
    by: Names = (),
    each_label: bool = True,
    sort: Literal["name", "value"] = "name",
    best: bool = False,
    average: Average = "annotation",
    level: UnitLevel = "token",
    tokens: str = "words",
    overlap: OverlapMode = "add",
    antecedents: bool = False,
    missing: MissingValueMode = "undefined",
    target: float | None = None,
    sizes: Numbers = (25, 50, 100),
    replacement: bool = True,
    question: str = "rating",
    ratings: str = "",
    normalise: Normalise = "column",
    protocol: str = "",
    label: Values = (),
    drop: Values = (),
    where: Values = (),
    back_off: BackOff = "label",
    merge: Values = (),
    annotator: Values = (),
    kind: Values = (),
    rounds: RoundSelection = "first",
    cluster: str = "",
    interval: IntervalMethod = "auto",
    draws: Count = 1000,
    seed: int = 0,
    progress: Progress = False,
) -> Measures:
    """Measure coverage, counts, rates and scores by label and by system, with confidence intervals.

    Parameters
    ----------
    study : Study, path, DataFrame, list of dicts or View
        The annotations to measure. A path is read with :func:`read`.
    measure : str or sequence of str, default ("coverage", "count")
        Measures, comma-separated, such as `coverage`, `count`, `rate-100` or `answer:NAME`.
        Others are `rate-1000`, `score`, `severity-coverage`, `marked-documents`, `severity`, `span-length`,
        `explanation-length`, `fraction`, `variation`, `depth`, `noticed`, `count-rating` and `crossed`.
    by : str or sequence of str
        Group by document metadata or annotator fields, comma-separated (default: `model`).
        ``none`` groups nothing.
    each_label : bool, default True
        Report each label in its own row, in addition to all labels together.
        Applies to measures that are means over annotations.
    sort : {"name", "value"}, default "name"
        Order of systems: `name` (alphabetical or numeric) or `value` (lowest first).
    best : bool, default False
        Flag values that are significantly lower than those of all other systems.
        The differences are tested by permutation, corrected by max-t. Needs one column in `by`.
    average : {"annotation", "document", "pooled"}, default "annotation"
        Mean over annotations (`annotation`), over document means (`document`), or `pooled`.
    level : {"token", "char", "sentence", "segment", "document"}, default "token"
        Unit of text to count: `token`, `char`, `sentence`, `segment` or `document`.
    tokens : str, default "words"
        Tokenizer: `words`, `whitespace` or `spacy:NAME` (a spaCy language or pipeline).
    overlap : {"add", "union"}, default "add"
        For `coverage`: tokens covered by two marks count twice (`add`) or once (`union`).
    antecedents : bool, default False
        Also count the antecedents of marks as covered.
    missing : {"undefined", "leave-out"}, default "undefined"
        Treatment of marks without severity or weight: `undefined` value, or `leave-out`.
    target : float, optional
        Test each value against this number.
    sizes : int or sequence of int, default (25, 50, 100)
        For the `variation` measure: numbers of documents to sample, comma-separated.
    replacement : bool, default True
        For the `variation` measure: sample documents with replacement.
    question : str, default "rating"
        For the `count-rating` measure: question about the document that asks for the rating.
    ratings : str
        For the `count-rating` measure: protocol of the ratings, if marks have another one.
    normalise : {"column", "label"}, default "column"
        For the `crossed` measure: shares within each column (`column`) or each label (`label`).
    protocol : str
        Name of the protocol to use; required if the study has several.
    label : str or sequence of str
        Include only marks with this label or label group; may be repeated.
    drop : str or sequence of str
        Omit marks by label, group or `LABEL:SEVERITY` (`grammar-usage:1`); may be repeated.
    where : str or sequence of str
        Keep only matching texts, annotators or marks, such as `model=gpt2`; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    back_off : {"label", "group", "any"}, default "label"
        Granularity of labels: `label` (as given), `group` (label groups) or `any` (all as one).
    merge : str or sequence of str
        Merge labels under a new name, as `NEW=A+B`; may be repeated.
    annotator : str or sequence of str
        Include only this annotator; may be repeated.
    kind : str or sequence of str
        Include only annotators of this kind, such as `llm` (default: people, or all if none).
        The kinds are `human`, `llm`, `detector`, `checker`, `gold` and `pooled`; several may be given. By default
        people (`human` and `pooled`), or all other kinds if the study has no people.
    rounds : {"first", "last", "all"}, default "first"
        Passes to use if an annotator annotated a text more than once: `first`, `last` or `all`.
    cluster : str
        Independent units: `text`, `prompt`, `source`, or a metadata field such as `topic`.
        By default, texts with the same prompt or source form a cluster.
        Add `,annotator` if annotators are a sample of a crowd as well.
    interval : {"auto", "percentile"}, default "auto"
        Interval method: chosen by the type of statistic (`auto`), or percentile bootstrap.
    draws : int, default 1000
        Number of resamples per confidence interval.
    seed : int, default 0
        Random seed for resampling.
    progress : bool or callable, default False
        Show progress on standard error.
        A function is called with the numbers of finished and total measures instead.
        Means over annotations are counted by measure and group, then other measures separately.

    Returns
    -------
    Measures
        One row per measure, label and group; ``.pivots()`` has systems as columns, ``.best`` the best values.

    Raises
    ------
    ParameterError
        If a measure is unknown, or an option does not apply to the measures.

    Examples
    --------
    >>> import finecomb as fc
    >>> counts = fc.measure(fc.demo(), measure="count", by="model", draws=0)
    >>> round(counts.find(label="any", model="human").value, 3)
    0.4

    References
    ----------
    Dou et al. (2022), "Is GPT-3 Text Indistinguishable from Human Text? Scarecrow".
    """
    chosen = changed_parameters(_MEASURE, locals())
    means: dict[str, AnnotationMeasure] = {}
    others: dict[str, RegisteredStatistic] = {}
    for name in as_names(measure):
        if mean := find_measure(name):
            means[name] = mean
        elif other := STATISTICS.get(name):
            others[name] = other
        else:
            near = did_you_mean(name, [*ANNOTATION_MEASURES, *STATISTICS, "answer:NAME"])
            raise ParameterError(f"unknown measure {name!r}{near}", parameter="measure")
    if chosen.keys() - _MEASURE_SELECTION:
        known: dict[str, AnnotationMeasure | RegisteredStatistic] = {**ANNOTATION_MEASURES, **STATISTICS, **means}
        choices = parameters_by_choice({name: row.options for name, row in known.items()})
        reject_inapplicable_parameters(chosen, as_names(measure), choices)
    if others and not each_label:
        raise ParameterError(f"{param('each_label')} does not apply to {', '.join(others)}", parameter="each_label")
    part = select_view(study, chosen)
    columns = as_names(by)
    if not columns and "model" in json_entry_names(part.study.documents["meta"]):
        columns = ("model",)
    elif columns == ("none",):
        columns = ()
    if "sizes" in chosen:
        chosen["sizes"] = _as_numbers(sizes, "sizes")
    watch = None if progress is False else lambda counts, total: track_counts(counts, progress, "measures", total)
    values: dict[str, Any] = {} if each_label else {"detail": "any"}
    if chosen:
        applicable = set(merge_option_specs(mean.options for mean in means.values())) - {"by"}
        values |= {name: value for name, value in chosen.items() if name in applicable}
    findings: list[Finding] = list(compute_measures(part, [*means], columns, watch, **values)) if means else []
    if others:
        with count_steps(len(others), watch) as step:
            for other in others.values():
                findings += other.run(part, OptionValues(chosen).build_options(other.options, by=columns))
                step()
    if sort == "value":
        findings = sort_groups_by_value(findings, columns)
    declared = ",".join(name for name in as_names(cluster) if name != ANNOTATOR_CLUSTER)
    notes = [*part.notes, *find_clusters(part.study.documents, declared).notes]
    golden = part.study.annotators.filter(pl.col("kind") == "gold")["id"]
    if part.study.annotations["annotator"].is_in(golden.implode()).any():
        notes += decision_notes(part.study)
    lowest: set[BestValue] = set()
    if best and len(columns) == 1 and average != "pooled":  # pooled means have no test over documents
        uses = {name: chosen[name] for name in ("tokens", "overlap") if name in chosen}
        lowest = significantly_lowest_values(part, findings, columns[0], **uses)
        rule = f"bold: lower than for all other values of {columns[0]}, {BEST_VALUE_RULE}"
        notes.append(rule if lowest else f"nothing is bold: {NO_BEST_VALUE_NOTE}")
    return Measures(findings, notes, protocol=part.protocol, by=columns, best=lowest, is_ranked=sort == "value")


_MEASURE_SELECTION = {"measure", "each_label", "sort", "best", "progress", *SELECTION}
"""Parameters that are not options of single measures."""
_MEASURE = measure  # inside the function, its name is that of a parameter


TestName = Literal["systems", "metrics", "human-or-machine", "scores", "histogram", "training", "codes", "coders"]
"""Names of `TESTS`."""


@public
def test(
    study: StudyLike | View,
    *,
    what: TestName = "systems",
    by: Names = (),
    measure: str = "coverage",
    paired: Pairing = "auto",
    key: str = "",
    correction: Correction = "max-t",
    each_label: bool = False,
    tokens: str = "words",
    overlap: OverlapMode = "add",
    question: str = "rating",
    unfinished: bool = False,
    bins: Literal["2", "4"] = "2",
    per: ShareDenominator = "code",
    protocol: str = "",
    label: Values = (),
    drop: Values = (),
    where: Values = (),
    back_off: BackOff = "label",
    merge: Values = (),
    annotator: Values = (),
    kind: Values = (),
    rounds: RoundSelection = "first",
    cluster: str = "",
    draws: Count | None = None,
    seed: int = 0,
    engine: str = "local",
    workers: PositiveInt | None = None,
    partitions: str | PathLike[str] | None = None,
    progress: Progress = False,
) -> Findings:
    """Compare systems, or human with machine text, by permutation and classical tests with corrected p-values.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The annotations to test. A path is read with :func:`read`.
    what : str, default "systems"
        Test to run, such as `systems` (in pairs), `metrics` or `human-or-machine`.
        The tables of a human-or-machine study are `human-or-machine`, `scores`, `histogram`, `training`, `codes` and
        `coders`.
    by : str or sequence of str
        Group by document metadata or annotator fields, comma-separated.
        Systems are compared by one column (default: `model`).
    measure : str, default "coverage"
        For the `systems` test: measure to compare, such as `coverage`, `count` or `answer:NAME`.
    paired : {"auto", "yes", "no"}, default "auto"
        For the `systems` test: pair texts by prompt (`yes`, `no`, or if possible: `auto`).
    key : str
        For the `systems` test: metadata field by which texts are paired (default: the prompt).
        By default `prompt_id`, otherwise the text of the prompt, source or headline.
    correction : {"max-t", "holm", "bonferroni", "none"}, default "max-t"
        For the `systems` test: correction (`max-t`, `holm`, `bonferroni` or `none`).
        `max-t` also gives simultaneous intervals.
    each_label : bool, default False
        For the `systems` test: also compare the systems on each label.
    tokens : str, default "words"
        For the `systems` test: tokenizer (`words`, `whitespace` or `spacy:NAME`).
    overlap : {"add", "union"}, default "add"
        For the `systems` test: tokens in two marks count twice (`add`) or once (`union`).
    question : str, default "rating"
        For the `metrics` test: question whose human answers are compared with the metrics.
    unfinished : bool, default False
        Include people who left before finishing all texts assigned to them.
    bins : {"2", "4"}, default "2"
        For the `human-or-machine` test: number of classes for alpha, 2 (merged) or 4 (as given).
    per : {"code", "comment"}, default "code"
        For the `codes` test: share of each code in all codes (`code`) or comments (`comment`).
    protocol : str
        Name of the protocol to use; required if the study has several.
    label : str or sequence of str
        Include only marks with this label or label group; may be repeated.
    drop : str or sequence of str
        Omit marks by label, group or `LABEL:SEVERITY` (`grammar-usage:1`); may be repeated.
    where : str or sequence of str
        Keep only matching texts, annotators or marks, such as `model=gpt2`; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    back_off : {"label", "group", "any"}, default "label"
        Granularity of labels: `label` (as given), `group` (label groups) or `any` (all as one).
    merge : str or sequence of str
        Merge labels under a new name, as `NEW=A+B`; may be repeated.
    annotator : str or sequence of str
        Include only this annotator; may be repeated.
    kind : str or sequence of str
        Include only annotators of this kind, such as `llm` (default: people, or all if none).
        The kinds are `human`, `llm`, `detector`, `checker`, `gold` and `pooled`; several may be given. By default
        people (`human` and `pooled`), or all other kinds if the study has no people.
    rounds : {"first", "last", "all"}, default "first"
        Passes to use if an annotator annotated a text more than once: `first`, `last` or `all`.
    cluster : str
        For the `systems` test: independent units, such as `text`, `prompt` or `topic`.
        By default, texts with the same prompt or source form a cluster.
    draws : int, optional
        Resamples per test (default: 10,000, or 1,000 for `metrics`, `training` and `coders`).
    seed : int, default 0
        Random seed for resampling.
    engine : str, default "local"
        Engine for the `systems` test: `local` (processes), `ray` or `ray:ADDRESS` (a cluster).
    workers : int, optional
        For the `systems` test: number of parallel processes; results do not depend on it.
    partitions : path, optional
        For the `systems` test: folder for intermediate results, to resume an interrupted run.
    progress : bool or callable, default False
        Show progress on standard error.
        A function is called with the numbers of finished and total comparisons instead.

    Returns
    -------
    Findings
        One row per comparison, with p and corrected p.
        For a human-or-machine study ``.pivots()`` has groups down and measures across.

    Raises
    ------
    ParameterError
        If an option does not apply to the test.
    FinecombError
        If there are no annotations, or no two systems to compare.

    Examples
    --------
    >>> import finecomb as fc
    >>> tests = fc.test(fc.demo(), measure="count", draws=100)
    >>> round(tests.find(a="comb-large", b="human").value, 3)
    2.0

    References
    ----------
    Clark et al. (2021), "All That's 'Human' Is Not Gold: Evaluating Human Evaluation of Generated Text".
    Chung and Romano (2013), "Exact and asymptotically robust permutation tests".
    Phipson and Smyth (2010), "Permutation P-values Should Never Be Zero".
    """
    chosen = changed_parameters(test, locals())
    row = TESTS[what]
    reject_inapplicable_parameters(chosen, [what], _parameters_by_test())
    if isinstance(study, View) and row.reads is not View:
        raise ParameterError(f"the test {what} requires a whole Study, not a View", parameter="study")
    part: View | Study = select_view(study, chosen) if row.reads is View else as_study(study)
    if isinstance(part, View) and part.study.annotations.is_empty():
        raise FinecombError(f"{part.study.origin or 'the study'}: no annotations to test")
    columns = as_names(by)
    values = OptionValues({**chosen, "by": columns})
    work = PartitionOptions(engine, workers, Path(partitions) if partitions else None)
    with work.open_executor() as executor:
        options: Any = values.build_options(
            row.options,
            spread=executor,
            watch=lambda counts, total: track_counts(counts, progress, "comparisons", total),
        )
        findings = row.run(part, options)
        notes = [*(part.notes if isinstance(part, View) else ()), *resume_note(executor.reused_row_count, "comparison")]
    notes += findings.notes if isinstance(findings, Findings) else ()
    title, seen = _TITLE_BY_TEST.get(what, what.capitalize()), part.protocol if isinstance(part, View) else None
    if what != "human-or-machine":
        return Findings(findings, notes, title=title, protocol=seen)
    overall = functools.partial(row.run, part, values.build_options(row.options, by=columns[:1]))
    return HumanOrMachine(
        findings, notes, title=title, protocol=seen, find_overall=overall if len(columns) > 1 else tuple
    )


test.__test__ = False  # type: ignore[attr-defined]  # pytest would collect it wherever it is imported
_TITLE_BY_TEST = {"metrics": "Metrics against people", "codes": "Comment codes", "coders": "Comment codes"}


def _parameters_by_test() -> dict[str, frozenset[str]]:
    """Return the parameters that each test takes: its own, the selection keywords, and those of the engine."""
    own = parameters_by_choice({name: row.options for name, row in TESTS.items()})
    return {
        name: own[name]
        | frozenset(SELECTION if row.reads is View else ())
        | (_SPREAD_OPTIONS if hasattr(row.options, "spread") else frozenset())
        for name, row in TESTS.items()
    }


@public
def power(
    study: StudyLike | None = None,
    *,
    judge: Values = (),
    measure: str | None = None,
    label: str = ANY_LABEL,
    half_width: float | None = None,
    difference: float | None = None,
    annotations: int | None = None,
    annotators: Numbers = (1, 2, 3, 5, 10),
    wanted: float = 0.8,
    protocol: str = "",
    where: Values = (),
    drop: Values = (),
    evaluators: int = 130,
    texts: int = 5,
    runs: int = 2000,
    seed: int = 0,
    progress: Progress = False,
) -> Findings:
    """Plan the number of documents and annotators from a pilot's variance components, by simulation.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts, optional
        Pilot study. Without one, a human-or-machine study is planned.
    judge : str or sequence of str
        Plan the number of human-annotated texts needed with this judge; may be repeated.
    measure : str, optional
        Measure to plan for (default: `coverage`, or `count` with a judge).
    label : str, default "any"
        Label to plan for, or `any` for all labels together.
    half_width : float, optional
        Find the number of documents for a confidence interval of this half-width.
    difference : float, optional
        Find the number of documents needed to detect a difference of this size.
    annotations : int, optional
        Total number of annotations to distribute over documents and annotators.
    annotators : int or sequence of int, default (1, 2, 3, 5, 10)
        Numbers of annotators per document to try, comma-separated.
    wanted : float, default 0.8
        Power to reach: probability of detecting the difference.
    protocol : str
        Name of the protocol to use; required if the study has several.
    where : str or sequence of str
        Keep only matching texts, annotators or marks, such as `model=gpt2`; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    drop : str or sequence of str
        Omit marks by label, group or `LABEL:SEVERITY` (`grammar-usage:1`); may be repeated.
    evaluators : int, default 130
        Without a pilot study: number of evaluators.
    texts : int, default 5
        Without a pilot study: number of texts per evaluator.
    runs : int, default 2000
        Number of simulated studies.
    seed : int, default 0
        Random seed for the simulation.
    progress : bool or callable, default False
        Show progress on standard error.
        A function is called with the numbers of finished and total plans instead.
        A plan with judges reports no progress.

    Returns
    -------
    Findings
        Variance components and one row per number of annotators, or the power of each test.

    Raises
    ------
    ParameterError
        If an option does not apply to the plan.

    Examples
    --------
    >>> import finecomb as fc
    >>> plan = fc.power(fc.demo(), half_width=0.1, annotators=3, runs=200)
    >>> plan.title
    'Planning'

    References
    ----------
    Card et al. (2020), "With Little Power Comes Great Responsibility".
    """
    chosen = changed_parameters(power, locals())
    judges = as_values(judge)
    if judges:
        return _plan_with_judges(study, judges, chosen)
    name = WITHOUT_PILOT if study is None else WITH_PILOT
    reject_inapplicable_parameters(
        chosen, [name], parameters_by_choice({plan: row.options for plan, row in PLANS.items()})
    )
    filters = build_filters({name: chosen[name] for name in ("protocol", "where", "drop") if name in chosen})
    pilot = None if study is None else view(as_study(study), filters)
    values = OptionValues({**chosen, "annotators": _as_numbers(annotators, "annotators")})
    options: Any = values.build_options(
        PLANS[name].options, watch=lambda counts, total: track_counts(counts, progress, "plans", total)
    )
    findings = PLANS[name].run(pilot, options)
    return Findings(findings, pilot.notes if pilot else (), title="Power" if pilot is None else "Planning")


def _plan_with_judges(study: StudyLike | None, judges: Sequence[str], chosen: Mapping[str, Any]) -> Findings:
    """Return the number of human-annotated texts that a half-width requires with judges."""
    from finecomb.statistics.judges.sample_size import plan_sample_size

    others = sorted(set(chosen) - {"study", "judge", "half_width", "measure", "protocol", "progress"})
    if others:
        raise ParameterError(
            f"{', '.join(map(param, others))} cannot be used with {param('judge')}; a plan with judges takes "
            f"{param('half_width')} and {param('measure')}",
            parameter=others[0],
        )
    if study is None or chosen.get("half_width") is None:
        example = param("half_width", 0.2)
        raise ParameterError(
            f"{param('judge')} requires a pilot and {param('half_width')}, e.g. {example}", parameter="judge"
        )
    measure, filters = chosen.get("measure", "count"), build_filters({"protocol": chosen.get("protocol", "")})
    findings = plan_sample_size(as_study(study), judges, float(chosen["half_width"]), measure, filters)
    return Findings(findings, title="Required human texts")
