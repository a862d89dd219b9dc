"""Statistics of annotations: agreement, measures, tests and plans."""

# ruff: noqa: PT028 (`test` is a public function, not a test with defaults)

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

from finecomb.api.coercion import StudyLike, as_names, as_study, as_values
from finecomb.api.parameters import COMMA_SEPARATED, Count, Names, PositiveInt, Values, changed_parameters, public
from finecomb.api.progress import Progress, resume_note, track_counts
from finecomb.api.selection import SELECTION, build_filters
from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.core.options import OptionValues, option_specs, parameters_by_choice, reject_inapplicable
from finecomb.core.results import Findings
from finecomb.core.study import Study
from finecomb.engine.options import PartitionOptions
from finecomb.reporting.pivot_tables import HumanOrMachine, Measures
from finecomb.statistics.agreement.agreement import agree as compute_agreement
from finecomb.statistics.agreement.agreement import resolve_measure_names
from finecomb.statistics.agreement.agreement_options import AgreementLevel, AgreeOptions, Boundaries
from finecomb.statistics.agreement.gamma.text_gamma import GammaSettings
from finecomb.statistics.agreement.minimal_repairs import Repairs
from finecomb.statistics.agreement.rating_sources import SOURCES, rating_source_type
from finecomb.statistics.agreement.registry import MEASURES as AGREEMENTS
from finecomb.statistics.annotator_quality import trust as compute_annotator_quality
from finecomb.statistics.comparisons.comment_codes import Per
from finecomb.statistics.comparisons.registry import TESTS
from finecomb.statistics.comparisons.system_pairs import Pairing
from finecomb.statistics.comparisons.system_ranking import (
    BEST_RULE,
    NO_BEST,
    BestValue,
    significantly_lowest_values,
    sort_groups_by_value,
)
from finecomb.statistics.gold.decisions import decision_notes
from finecomb.statistics.inference.permutation_tests import Correction
from finecomb.statistics.inference.resampling import Average, Resample
from finecomb.statistics.measures.annotation_matrix import Overlap
from finecomb.statistics.measures.annotation_measures import MEASURES, Missing
from finecomb.statistics.measures.cross_tables import Normalise
from finecomb.statistics.measures.unit_grid import Level
from finecomb.statistics.registry import (
    PLANS,
    STATISTICS,
    WITH_PILOT,
    WITHOUT_PILOT,
    compute_measures,
    default_groups,
    measure_options,
)
from finecomb.statistics.selection.view import ANY, BackOff, Rounds, View, view

Numbers = Annotated[str | int | Sequence[int | str], COMMA_SEPARATED]
"""One whole number or several; one string may hold several with commas between them."""


def _as_numbers(value: Numbers, parameter: str) -> tuple[int, ...]:
    """Return whole numbers from one number, several, or a string with commas between them.

    >>> _as_numbers("4, 8", "sizes"), _as_numbers([4, "8"], "sizes"), _as_numbers(4, "sizes")
    ((4, 8), (4, 8), (4,))
    """
    words = value.split(",") if isinstance(value, str) else [value] if isinstance(value, int) else list(value)
    try:
        return tuple(int(word) for word in words if str(word).strip())
    except ValueError:
        text = ",".join(map(str, words))
        raise ParameterError(
            f"{text!r}: expected whole numbers with commas, e.g. 25,50,100", parameter=parameter
        ) from None


@public
def agree(
    study: StudyLike,
    *,
    measure: Names = ("alpha", "two-agree"),
    who: bool = False,
    level: AgreementLevel = "token",
    by: Names = (),
    question: str = "",
    boundaries: Boundaries = "marked",
    tokens: str = "words",
    overlap: Literal["add", "union"] = "add",
    rest: Literal["union", "majority"] = "union",
    align: str = "item",
    convention: str = "marked",
    repairs: Repairs = "declared",
    gamma: Values = (),
    protocol: str = "",
    label: Values = (),
    drop: Values = (),
    where: Values = (),
    back_off: BackOff = "label",
    merge: Values = (),
    annotator: Values = (),
    kind: Values = (),
    rounds: Rounds = "first",
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
    study : Study, path, DataFrame or list of dicts
        The annotations to compare. A path is read with :func:`read`.
    measure : str or sequence of str, default ("alpha", "two-agree")
        Coefficients, comma-separated: alpha, two-agree, kappa-cohen, f1, gamma and others.
    who : bool, default False
        Annotator quality instead: compare each annotator with the others.
    level : {"token", "char", "sentence", "segment", "document", "item"}, default "token"
        Unit that is rated; item stands for marks of the same error.
    by : str or sequence of str
        Document meta or annotator fields that split the annotations, comma-separated.
    question : str
        Agreement on the answers to this question.
    boundaries : {"marked", "union"}, default "marked"
        Spans as marked, or widened to the union of overlapping spans.
    tokens : str, default "words"
        Tokenizer: words, whitespace or spacy:NAME.
    overlap : {"add", "union"}, default "add"
        For f1: count a token in two marks twice, or once.
    rest : {"union", "majority"}, default "union"
        For one-vs-rest: tokens that any other annotator marked, or more than half of them.
    align : str, default "item"
        For level item: align marks by item, overlap or gamma.
    convention : str, default "marked"
        For level item: which ratings count; see the page on kappa.
    repairs : {"declared", "smallest"}, default "declared"
        For level item: alternatives that marks declare, or also smallest repairs.
        For example, one annotator corrects a name where another corrects two numbers.
    gamma : str or sequence of str
        For gamma: NAME=VALUE, such as sampler=statistical or precision=0.02; may be repeated.
    protocol : str
        One of the study's protocols, where it has several.
    label : str or sequence of str
        Only this label or group; may be repeated.
    drop : str or sequence of str
        Omit a label or group, or one severity of it (grammar-usage:1); may be repeated.
    where : str or sequence of str
        Condition on texts, annotators or marks, such as model=gpt2; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    back_off : {"label", "group", "any"}, default "label"
        Labels as they are, as groups, or all as one.
    merge : str or sequence of str
        NEW=A+B: labels merged under a new name; may be repeated.
    annotator : str or sequence of str
        Only this annotator; may be repeated.
    kind : str or sequence of str
        Only annotators of this kind (default: people, and others where there are no people).
    rounds : {"first", "last", "all"}, default "first"
        Which passes of one annotator over a text count.
    draws : int, default 1000
        Resamples per interval.
    seed : int, default 0
        Seed of the resamples.
    engine : str, default "local"
        For gamma: local processes, ray, or ray:ADDRESS of a cluster.
    workers : int, optional
        For gamma: number of processes; changes no number.
    partitions : path, optional
        For gamma: folder for finished parts, so that an interrupted run resumes.
    progress : bool or callable, default False
        Show progress on standard error, or call a function with the texts done and all texts.

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
            f"{param('measure')} does not apply to {param('who')}", parameter="measure", hint="leave one of the two out"
        )
    names = [] if who else resolve_measure_names(as_names(measure))
    _refuse_agreement_options(chosen, names, level, question)
    part = view(as_study(study), build_filters(chosen))
    if who:
        return Findings(compute_annotator_quality(part, tokens=tokens, seed=seed), part.notes, title="Whom to trust")
    options = {name: chosen[name] for name in _AGREEMENT_OPTIONS if name in chosen}
    work = PartitionOptions(engine, workers, Path(partitions) if partitions else None)
    with work.open_executor() as executor:
        findings = compute_agreement(
            part,
            names,
            **options,
            by=as_names(by),
            gamma=GammaSettings.parse(as_values(gamma)),
            watch=lambda counts, total: track_counts(counts, progress, "texts", total),
            spread=executor,
        )
        notes = [*part.notes, *resume_note(executor.reused_row_count, "text")]
    return Findings(findings, notes, title="Agreement", protocol=part.protocol)


_AGREEMENT_OPTIONS = (
    "level", "question", "boundaries", "tokens", "overlap", "rest", "align", "convention", "repairs", "draws", "seed",
)  # fmt: skip
_SPREAD_OPTIONS = frozenset(spec.parameter for spec in option_specs(PartitionOptions).values())
"""Parameters of work that is spread over processes."""


def _refuse_agreement_options(
    chosen: Collection[str], names: Sequence[str], level: AgreementLevel, question: str
) -> None:
    """Refuse options that neither the measures nor the ratings that they compare have."""
    wanted = list(names) or [param("who")]
    reject_inapplicable(chosen, wanted, {name: _SPREAD_OPTIONS for name in AGREEMENTS if name.startswith("gamma")})
    source = rating_source_type(AgreeOptions(level=level, question=question))
    choices = {name: row.options for name, row in AGREEMENTS.items()}
    choices |= {kind.noun: kind.options_type for kind in SOURCES}
    taken = parameters_by_choice(choices) | {param("who"): frozenset({"tokens", "seed"})}
    reject_inapplicable(chosen, [*wanted, *([source.noun] if names else [])], taken)


@public
def measure(
    study: StudyLike,
    *,
    measure: Names = ("coverage", "count"),
    by: Names = (),
    sort: Literal["name", "value"] = "name",
    best: bool = False,
    average: Average = "annotation",
    level: Level = "token",
    tokens: str = "words",
    overlap: Overlap = "add",
    antecedents: bool = False,
    missing: Missing = "undefined",
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
    rounds: Rounds = "first",
    resample: Resample = "documents",
    draws: Count = 1000,
    seed: int = 0,
) -> Measures:
    """Measure coverage, counts, rates and scores by label and by system, with confidence intervals.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The annotations to measure. A path is read with :func:`read`.
    measure : str or sequence of str, default ("coverage", "count")
        Measures, comma-separated: coverage, count, rate-1000, score, answer:NAME and others.
        The others are severity-coverage, marked-documents, severity, span-length, explanation-length, fraction,
        variation, depth, noticed, count-rating and crossed.
    by : str or sequence of str
        Document meta or annotator fields, comma-separated, or none (default: model).
    sort : {"name", "value"}, default "name"
        Order of systems: by name (numbers as numbers), or the lowest value first.
    best : bool, default False
        Mark values that are lower than those of all other systems, beyond chance.
        The differences are tested by permutation, corrected by Holm's method. Needs one column in `by`.
    average : {"annotation", "document", "pooled"}, default "annotation"
        Mean over annotations, mean of document means, or pooled (micro-averaged).
    level : {"token", "char", "sentence", "segment", "document"}, default "token"
        Unit of the text that is covered or counted.
    tokens : str, default "words"
        Tokenizer: words, whitespace or spacy:NAME.
    overlap : {"add", "union"}, default "add"
        For coverage: count a token in two marks twice, or once.
    antecedents : bool, default False
        Count antecedents as covered too.
    missing : {"undefined", "leave-out"}, default "undefined"
        Marks without severity or weight: leave the value undefined, or omit the marks.
    target : float, optional
        Test each value against this number.
    sizes : int or sequence of int, default (25, 50, 100)
        For variation: numbers of documents, comma-separated.
    replacement : bool, default True
        For variation: draw documents with replacement.
    question : str, default "rating"
        For count-rating: question about the document.
    ratings : str
        For count-rating: protocol of the ratings, where marks have another one.
    normalise : {"column", "label"}, default "column"
        For crossed: shares of each column, or of each label.
    protocol : str
        One of the study's protocols, where it has several.
    label : str or sequence of str
        Only this label or group; may be repeated.
    drop : str or sequence of str
        Omit a label or group, or one severity of it (grammar-usage:1); may be repeated.
    where : str or sequence of str
        Condition on texts, annotators or marks, such as model=gpt2; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    back_off : {"label", "group", "any"}, default "label"
        Labels as they are, as groups, or all as one.
    merge : str or sequence of str
        NEW=A+B: labels merged under a new name; may be repeated.
    annotator : str or sequence of str
        Only this annotator; may be repeated.
    kind : str or sequence of str
        Only annotators of this kind (default: people, and others where there are no people).
    rounds : {"first", "last", "all"}, default "first"
        Which passes of one annotator over a text count.
    resample : {"documents", "two-way"}, default "documents"
        Intervals over documents, or over documents and annotators.
    draws : int, default 1000
        Resamples per interval.
    seed : int, default 0
        Seed of the resamples.

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
    names = as_names(measure)
    wanted = measure_options(names)
    choices = {**measure_options([*MEASURES, *STATISTICS]), **wanted}
    reject_inapplicable(chosen, names, parameters_by_choice(choices))
    part = view(as_study(study), build_filters(chosen))
    columns = default_groups(part.study, as_names(by))
    values = OptionValues({**chosen, "sizes": _as_numbers(sizes, "sizes")})
    findings = compute_measures(part, names, columns, values)
    if sort == "value":
        findings = sort_groups_by_value(findings, columns)
    notes = [*part.notes, *decision_notes(part.study)]
    lowest: set[BestValue] = set()
    if best and len(columns) == 1 and average != "pooled":  # pooled means have no test over documents
        uses = {name: chosen[name] for name in ("tokens", "overlap") if name in chosen}
        lowest = significantly_lowest_values(part, findings, columns[0], **uses)
        rule = f"bold: lower than for every other {columns[0]}, {BEST_RULE}"
        notes.append(rule if lowest else f"nothing is bold: {NO_BEST}")
    return Measures(findings, notes, protocol=part.protocol, by=columns, best=lowest, is_ranked=sort == "value")


_MEASURE = measure  # inside the function its name is that of a parameter


TestName = Literal["systems", "metrics", "human-or-machine", "scores", "histogram", "training", "codes", "coders"]
"""Names of `TESTS`."""


@public
def test(
    study: StudyLike,
    *,
    what: TestName = "systems",
    by: Names = (),
    measure: str = "coverage",
    paired: Pairing = "auto",
    key: str = "",
    correction: Correction = "holm",
    each_label: bool = False,
    tokens: str = "words",
    overlap: Overlap = "add",
    question: str = "rating",
    unfinished: bool = False,
    bins: Literal["2", "4"] = "2",
    per: Per = "code",
    protocol: str = "",
    label: Values = (),
    drop: Values = (),
    where: Values = (),
    back_off: BackOff = "label",
    merge: Values = (),
    annotator: Values = (),
    kind: Values = (),
    rounds: Rounds = "first",
    draws: Count | None = None,
    seed: int = 0,
    engine: str = "local",
    workers: PositiveInt | None = None,
    partitions: str | PathLike[str] | None = None,
) -> Findings:
    """Compare systems, or human with machine text, by permutation and classical tests with corrected p values.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The annotations to test. A path is read with :func:`read`.
    what : str, default "systems"
        Systems, scalar metrics against people, or a table of a human-or-machine study.
        The tables of a human-or-machine study are human-or-machine, scores, histogram, training, codes and coders.
    by : str or sequence of str
        Document meta or annotator fields, comma-separated.
        Systems are compared by one column (default: model).
    measure : str, default "coverage"
        For systems: a measure, or answer:NAME.
    paired : {"auto", "yes", "no"}, default "auto"
        For systems: pair texts of one prompt.
    key : str
        For systems: document meta that pairs texts.
    correction : {"holm", "bonferroni", "none"}, default "holm"
        For systems: correction of p values for multiple comparisons.
    each_label : bool, default False
        For systems: compare every label too.
    tokens : str, default "words"
        For systems: tokenizer (words, whitespace or spacy:NAME).
    overlap : {"add", "union"}, default "add"
        For systems: count a token in two marks twice, or once.
    question : str, default "rating"
        For metrics: question that people answered.
    unfinished : bool, default False
        Include people who left before they had read all texts of their cell.
    bins : {"2", "4"}, default "2"
        For alpha of human-or-machine: two classes (2), or the four answers as given (4).
    per : {"code", "comment"}, default "code"
        For codes: shares of all codes, or of all comments.
    protocol : str
        One of the study's protocols, where it has several.
    label : str or sequence of str
        Only this label or group; may be repeated.
    drop : str or sequence of str
        Omit a label or group, or one severity of it (grammar-usage:1); may be repeated.
    where : str or sequence of str
        Condition on texts, annotators or marks, such as model=gpt2; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    back_off : {"label", "group", "any"}, default "label"
        Labels as they are, as groups, or all as one.
    merge : str or sequence of str
        NEW=A+B: labels merged under a new name; may be repeated.
    annotator : str or sequence of str
        Only this annotator; may be repeated.
    kind : str or sequence of str
        Only annotators of this kind (default: people, and others where there are no people).
    rounds : {"first", "last", "all"}, default "first"
        Which passes of one annotator over a text count.
    draws : int, optional
        Resamples per test (default: 10,000; 1,000 for metrics, training and coders).
    seed : int, default 0
        Seed of the resamples.
    engine : str, default "local"
        For systems: local processes, ray, or ray:ADDRESS of a cluster.
    workers : int, optional
        For systems: number of processes; changes no number.
    partitions : path, optional
        For systems: folder for finished parts, so that an interrupted run resumes.

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
    Phipson and Smyth (2010), "Permutation P-values Should Never Be Zero".
    """
    chosen = changed_parameters(test, locals())
    row = TESTS[what]
    reject_inapplicable(chosen, [what], _parameters_by_test())
    part = _select_tested(as_study(study), chosen) if row.reads is View else as_study(study)
    columns = as_names(by)
    values = OptionValues({**chosen, "by": columns})
    work = PartitionOptions(engine, workers, Path(partitions) if partitions else None)
    with work.open_executor() as executor:
        options: Any = values.build_options(row.options, spread=executor)
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
    """Return the parameters that each test takes: its own, those that select annotations, and those of the engine."""
    own = parameters_by_choice({name: row.options for name, row in TESTS.items()})
    return {
        name: own[name]
        | frozenset(SELECTION if row.reads is View else ())
        | (_SPREAD_OPTIONS if hasattr(row.options, "spread") else frozenset())
        for name, row in TESTS.items()
    }


def _select_tested(study: Study, chosen: Mapping[str, Any]) -> View:
    """Return the annotations to test; an error where there are none."""
    part = view(study, build_filters(chosen))
    if part.study.annotations.is_empty():
        raise FinecombError(f"{study.origin or 'the study'}: has no annotations to test")
    return part


@public
def power(
    study: StudyLike | None = None,
    *,
    judge: Values = (),
    measure: str | None = None,
    label: str = ANY,
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
) -> Findings:
    """Plan the number of documents and annotators from a pilot's variance components, by simulation.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts, optional
        A pilot. Without one, a human-or-machine study is planned.
    judge : str or sequence of str
        Human texts needed with this judge; may be repeated.
    measure : str, optional
        Measure that will be estimated (default: coverage, or count with a judge).
    label : str, default "any"
        Label that will be measured.
    half_width : float, optional
        Documents for an interval of this half-width.
    difference : float, optional
        Documents to detect a difference of this size.
    annotations : int, optional
        Number of annotations to spread over documents and annotators.
    annotators : int or sequence of int, default (1, 2, 3, 5, 10)
        Numbers of annotators to try, comma-separated.
    wanted : float, default 0.8
        Required power: probability of detecting the difference.
    protocol : str
        One of the study's protocols, where it has several.
    where : str or sequence of str
        Condition on texts, annotators or marks, such as model=gpt2; may be repeated.
    drop : str or sequence of str
        Omit a label or group, or one severity of it (grammar-usage:1); may be repeated.
    evaluators : int, default 130
        Without a pilot: number of evaluators.
    texts : int, default 5
        Without a pilot: texts per evaluator.
    runs : int, default 2000
        Number of simulated studies.
    seed : int, default 0
        Seed of the simulation.

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
    chosen = changed_parameters(power, {**locals(), "study": None})  # a DataFrame cannot be compared with a default
    judges = as_values(judge)
    if judges:
        return _plan_with_judges(study, judges, chosen)
    name = WITHOUT_PILOT if study is None else WITH_PILOT
    reject_inapplicable(chosen, [name], parameters_by_choice({plan: row.options for plan, row in PLANS.items()}))
    filters = build_filters({name: chosen[name] for name in ("protocol", "where", "drop") if name in chosen})
    pilot = None if study is None else view(as_study(study), filters)
    values = OptionValues({**chosen, "annotators": _as_numbers(annotators, "annotators")})
    findings = PLANS[name].run(pilot, values.build_options(PLANS[name].options))
    return Findings(findings, pilot.notes if pilot else (), title="Power" if pilot is None else "Planning")


def _plan_with_judges(study: StudyLike | None, judges: Sequence[str], chosen: Mapping[str, Any]) -> Findings:
    """Return the human texts that a half-width needs with judges; other options are for plans without them."""
    from finecomb.statistics.judges.sample_size import plan_sample_size

    others = sorted(set(chosen) - {"judge", "half_width", "measure", "protocol"})
    if others:
        raise ParameterError(
            f"{', '.join(map(param, others))}: not for a plan with {param('judge')}, which takes "
            f"{param('half_width')} and {param('measure')}",
            parameter=others[0],
        )
    if study is None or chosen.get("half_width") is None:
        example = param("half_width", 0.2)
        raise ParameterError(
            f"a plan with {param('judge')} needs a pilot and {param('half_width')}, e.g. {example}", parameter="judge"
        )
    measure, filters = chosen.get("measure", "count"), build_filters({"protocol": chosen.get("protocol", "")})
    findings = plan_sample_size(as_study(study), judges, float(chosen["half_width"]), measure, filters)
    return Findings(findings, title="Human texts needed")
