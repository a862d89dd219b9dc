"""Gold standards and judges: merging, scores against gold, calibration, validation, and second passes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Literal

from finecomb.annotators.llm.run_identity import build_replacement
from finecomb.api.models import call_progress
from finecomb.api.parameters import (
    Count,
    Names,
    PositiveInt,
    Share,
    StudyLike,
    Values,
    as_names,
    as_study,
    as_values,
    build_filters,
    changed_parameters,
    public,
    select_part,
)
from finecomb.api.progress import Progress, steps, track_counts
from finecomb.core.errors import ParameterError, did_you_mean, param
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document
from finecomb.core.results import Findings
from finecomb.formats.study_writes import change_study
from finecomb.reporting.gold_results import GoldResult, ScoreResult
from finecomb.reporting.judge_results import CalibrationResult, RoundsResult
from finecomb.statistics.agreement.mark_alignment import Alignment
from finecomb.statistics.agreement.minimal_repairs import RepairMode
from finecomb.statistics.agreement.second_pass_changes import compare_passes
from finecomb.statistics.gold.gold_and_judges import (
    UnreadPolicy,
    has_only_scalar_scores,
    restrict_judges_to_gold_texts,
    scalar_score_annotators,
)
from finecomb.statistics.gold.gold_merge import MAJORITY, MinVotes, SpanSize
from finecomb.statistics.gold.gold_merge import merge_into_gold as merge_annotators
from finecomb.statistics.gold.merge_tables import annotator_subset_scores_table, recovered_error_notes
from finecomb.statistics.gold.scalar_metrics import orient_towards_quality, scalar_metric_correlations
from finecomb.statistics.gold.scores import Average, LabelRowRule, ScoreSettings, score_by_match_rules
from finecomb.statistics.gold.scores import score_judges_against_gold as score_marks
from finecomb.statistics.inference.intervals import IntervalMethod
from finecomb.statistics.judges.anchoring_effect import anchoring_findings
from finecomb.statistics.judges.calibration import CalibrationOptions
from finecomb.statistics.judges.calibration import calibrate_against_people as compare_with_people
from finecomb.statistics.judges.counterfactual_validation import JudgeFunction
from finecomb.statistics.judges.counterfactual_validation import validate_judge as run_on_corrections
from finecomb.statistics.judges.estimates import estimate_means
from finecomb.statistics.measures.unit_grid import UnitLevel
from finecomb.statistics.selection.view import view

GoldAlignment = Literal["auto", Alignment]
MatchOrAll = Literal[
    "task", "optimal", "overlap", "exact", "partial", "iou", "mpp", "token", "char", "wmt25", "sentence", "all"
]


@public
def gold(
    study: StudyLike,
    *,
    min_votes: int | str | None = None,
    align: GoldAlignment = "auto",
    size: SpanSize = "majority",
    subsets: int | None = None,
    decisions: bool = True,
    repairs: RepairMode = "declared",
    by: str = "model",
    protocol: str = "",
    annotator: Values = (),
    kind: Values = (),
    where: Values = (),
    drop: Values = (),
    into: str | PathLike[str] | None = None,
    draws: Count = 1000,
    seed: int = 0,
) -> GoldResult:
    """Merge annotations into a gold standard: errors with enough votes, each with its majority label.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The annotations to merge. A path is read with :func:`read`.
    min_votes : int or "majority", optional
        Minimum number of annotators who marked an error, or `majority` (more than half).
        The default is 2; gold from subsets uses the majority of each subset.
    align : {"auto", "item", "overlap", "overlap-label", "gamma"}, default "auto"
        Method for matching marks: `auto`, `item`, `overlap`, `overlap-label` or `gamma`.
        `auto` matches by item if the marks have items, otherwise by overlap.
    size : {"widest", "narrowest", "majority", "union"}, default "majority"
        Extent of a gold mark: `majority`, `widest`, `narrowest` or `union` of the merged marks.
        `majority` keeps the tokens that more than half of those who marked the error have marked.
    subsets : int, optional
        Also build gold from every subset of N annotators, and score it against the full gold.
        Each gold has its own majority unless `min_votes` is given.
    decisions : bool, default True
        Use an adjudicator's decisions instead of votes.
    repairs : {"declared", "smallest"}, default "declared"
        Accept alternative corrections `declared` in marks, or also inferred ones (`smallest`).
        An alternative is another set of marks that corrects the same error, such as one name instead of two numbers.
    by : str, default "model"
        For the `rates` table: document metadata field that names the system.
    protocol : str
        Name of the protocol to use; required if the study has several.
    annotator : str or sequence of str
        Include only this annotator; may be repeated.
    kind : str or sequence of str
        Include only annotators of this kind, such as `llm` (default: people, or all if none).
        The kinds are `human`, `llm`, `detector`, `checker`, `gold` and `pooled`; several may be given. By default
        people (`human` and `pooled`), or all other kinds if the study has no people.
    where : str or sequence of str
        Keep only matching texts, annotators or marks, such as `model=gpt2`; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    drop : str or sequence of str
        Omit marks by label, group or `LABEL:SEVERITY` (`grammar-usage:1`); may be repeated.
    into : path, optional
        Study to add the gold annotations to where it is stored, also while it is served; usually `STUDY`.
        Earlier gold annotations stay in the study, excluded.
    draws : int, default 1000
        Number of resamples per confidence interval.
    seed : int, default 0
        Random seed for resampling.

    Returns
    -------
    GoldResult
        The gold standard as ``.study``, and the tables ``.errors``, ``.annotators``, ``.confusion``, ``.rates``,
        ``.agreement``, ``.cost``, ``.changes``, ``.rest`` and ``.subsets``, each computed when it is asked for.

    Raises
    ------
    ParameterError
        If `min_votes` is neither a whole number from 1 nor "majority", or the annotations are under another protocol.
    FinecombError
        If there are no annotations to merge.

    Examples
    --------
    >>> import finecomb as fc
    >>> merged = fc.gold(fc.demo(), min_votes="majority")
    >>> merged.study
    Study('Saltby: the demo study': 16 documents, 16 annotations, 51 marks; scarecrow@2)
    >>> merged.errors.find(label="any").errors
    51

    References
    ----------
    Thomson and Reiter (2020), "A Gold Standard Methodology for Evaluating Accuracy in Data-To-Text Systems".
    """
    chosen = changed_parameters(gold, locals())
    votes: MinVotes | None
    if min_votes is None or min_votes == MAJORITY:
        votes = None if min_votes is None else MAJORITY
    elif not str(min_votes).isdecimal() or not int(min_votes):
        message = f"{param('min_votes', str(min_votes))}: expected a whole number of at least 1, or majority"
        raise ParameterError(message, parameter="min_votes")
    else:
        votes = int(min_votes)
    whole = as_study(study)
    part = view(whole, build_filters(chosen))
    adjudicated = whole if decisions and not annotator and not kind else None
    merge = merge_annotators(part, 2 if votes is None else votes, align, size, adjudicated, repairs)
    from_subsets = (
        (subsets, annotator_subset_scores_table(part, subsets, votes or MAJORITY, align, size, draws, seed, repairs))
        if subsets is not None
        else None
    )
    notes = [*part.notes, *merge.notes, *recovered_error_notes(merge, part)]
    result = GoldResult(merge, by, draws, seed, notes, from_subsets)
    if into is not None:
        work = [record for record in result.study.items() if isinstance(record, Protocol | Annotator | Annotation)]
        change_study(Path(into), lambda current: build_replacement(current, work), "merged gold annotations")
    return result


@public
def score(
    study: StudyLike,
    predicted: StudyLike | None = None,
    *,
    match: MatchOrAll = "optimal",
    average: Average = "micro",
    category: LabelRowRule = "both",
    by: Names = ("label",),
    gold: str = "",
    judge: Values = (),
    question: str = "",
    protocol: str = "",
    tokens: str = "words",
    unread: UnreadPolicy = "empty",
    repairs: RepairMode = "declared",
    where: Values = (),
    drop: Values = (),
    cluster: str = "",
    interval: IntervalMethod = "auto",
    draws: Count = 1000,
    seed: int = 0,
) -> ScoreResult:
    """Precision, recall and F1 of annotators, models and detectors against gold, with confidence intervals.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The study with the gold annotations. A path is read with :func:`read`.
    predicted : Study, path, DataFrame or list of dicts, optional
        Study with the annotators to score (default: the other annotators of the gold study).
    match : str, default "optimal"
        Rule for matching marks with gold, such as `optimal` or `exact`; `all` compares rules.
        `all` reports F1 and rank of every judge by each rule.
    average : {"micro", "macro"}, default "micro"
        Average over texts: `micro` (ratio of sums) or `macro` (mean of the ratios per text).
    category : {"both", "gold"}, default "both"
        For rows per label: match marks of that label only (`both`), or of any label (`gold`).
        With `gold`, recall is over gold marks of the label and precision over the judge's marks of the label.
    by : str or sequence of str, default "label"
        Group by `label` or document metadata fields, comma-separated.
    gold : str
        Name of the gold annotator, if no annotator is of kind `gold`.
    judge : str or sequence of str
        Score only this annotator; may be repeated.
    question : str
        For scalar metrics: compare with answers to this question (default: gold error counts).
    protocol : str
        Name of the protocol to use; required if the study has several.
    tokens : str, default "words"
        Tokenizer: `words`, `whitespace` or `spacy:NAME` (a spaCy language or pipeline).
    unread : {"empty", "leave-out"}, default "empty"
        Count texts that gold or the judge did not annotate as `empty` (no marks), or omit them (`leave-out`).
    repairs : {"declared", "smallest"}, default "declared"
        Accept alternative corrections `declared` in marks, or also inferred ones (`smallest`).
        An alternative is another set of marks that corrects the same error, such as one name instead of two numbers.
    where : str or sequence of str
        Keep only matching texts, annotators or marks, such as `model=gpt2`; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    drop : str or sequence of str
        Omit marks by label, group or `LABEL:SEVERITY` (`grammar-usage:1`); may be repeated.
    cluster : str
        Independent units: `text`, `prompt`, `source`, or a metadata field such as `topic`.
        By default, texts with the same prompt or source form a cluster.
    interval : {"auto", "percentile"}, default "auto"
        Interval method: chosen by the type of statistic (`auto`), or percentile bootstrap.
    draws : int, default 1000
        Number of resamples per confidence interval.
    seed : int, default 0
        Random seed for resampling.

    Returns
    -------
    ScoreResult
        One row per judge and label. The tables ``.kinds``, ``.confusion``, ``.comparison`` and ``.disagreements`` are
        computed when they are asked for; with ``match="sentence"`` also ``.recall`` and ``.calibration``. With
        ``match="all"`` one row per judge with F1 by each rule, and ``.ranks``. For scalar metrics one row per
        correlation.

    Raises
    ------
    ParameterError
        If the annotations are under another protocol, gold is not clear, or an option does not apply to scalar metrics
        or to ``match="all"``.

    Examples
    --------
    >>> import finecomb as fc
    >>> scores = fc.score(fc.demo(), judge="reader-1")
    >>> round(scores.find(label="any").f1, 3)
    0.796
    >>> [(row.kind, row["count"]) for row in scores.kinds[:2]]
    [('right', 15), ('boundary', 22)]

    References
    ----------
    Thomson and Reiter (2021), "Generation Challenges: Results of the Accuracy Evaluation Shared Task".
    """
    chosen = changed_parameters(score, locals())
    names, dropped = as_names(by), as_values(drop)
    truth = as_study(study)
    if where or drop:
        truth = select_part(truth, as_values(where), dropped)
    other = None if predicted is None else as_study(predicted, "predicted")
    if other is not None and (where or drop):
        other = select_part(restrict_judges_to_gold_texts(truth, other), drop=dropped)
    judges = truth if other is None else other
    wanted = set(as_values(judge))
    has_named_metrics = bool(wanted) and wanted <= scalar_score_annotators(judges)
    if question or has_named_metrics or has_only_scalar_scores(judges):
        _refuse(chosen, [name for name in _MARK_OPTIONS if name != "judge" or not has_named_metrics], "scalar metrics")
        system = next((name for name in names if name != "label"), "model")
        correlations = scalar_metric_correlations(truth, other, question, system, gold, draws, seed)
        shown = [finding for finding in correlations if not wanted or finding.columns["metric"] in wanted]
        return ScoreResult.from_metric_correlations(*orient_towards_quality(shown, judges, question))
    settings = ScoreSettings(
        gold_annotator=gold, judges=as_values(judge), protocol=protocol, tokens=tokens, unread=unread, average=average,
        repairs=repairs,
    )  # fmt: skip
    if match == "all":
        _refuse(chosen, ("by", "cluster", "interval", "draws", "seed"), param("match", "all"))
        return ScoreResult.from_match_rules(score_by_match_rules(truth, other, category, **settings), average)
    scores = score_marks(
        truth, other, match, category, names, **settings, cluster=cluster, interval=interval, draws=draws, seed=seed
    )
    return ScoreResult.from_scores(scores, judges, names, seed)


_MARK_OPTIONS = (
    "match",
    "average",
    "category",
    "judge",
    "protocol",
    "tokens",
    "unread",
    "repairs",
    "cluster",
    "interval",
)
"""Options of `score` that apply to marks."""


def _refuse(chosen: Mapping[str, object], names: Collection[str], owner: str) -> None:
    """Refuse options that do not apply to the chosen judges."""
    for name in chosen:
        if name in names:
            raise ParameterError(f"{param(name)} does not apply to {owner}", parameter=name, hint="leave it out")


@public
def estimate(
    study: StudyLike,
    *,
    judge: Values = (),
    measure: Names = ("count",),
    by: str = "",
    strata: Names = (),
    people: Values = (),
    each_label: bool = False,
    label: Values = (),
    where: Values = (),
    protocol: str = "",
    tokens: str = "words",
) -> Findings:
    """Estimate means by prediction-powered inference: judges annotate all texts, people only some of them.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The annotations of people and judges. A path is read with :func:`read`.
    judge : str or sequence of str
        Annotator to use as a judge; may be repeated.
    measure : str or sequence of str, default "count"
        Measures, comma-separated, such as `count`, or `answer:NAME` for a question.
    by : str
        Document metadata field that names the system of a text, such as `model`.
    strata : str or sequence of str
        Stratify by document metadata fields, comma-separated, or `none` (default: automatic).
        The share of each stratum among all texts is held fixed.
    people : str or sequence of str
        Use only this human annotator; may be repeated (default: all people).
    each_label : bool, default False
        Also report separate estimates for each label.
    label : str or sequence of str
        Include only marks with this label or label group; may be repeated.
    where : str or sequence of str
        Keep only matching texts, annotators or marks, such as `model=gpt2`; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    protocol : str
        Name of the protocol to use; required if the study has several.
    tokens : str, default "words"
        Tokenizer: `words`, `whitespace` or `spacy:NAME` (a spaCy language or pipeline).

    Returns
    -------
    Findings
        Rows by measure, label, system and method (people alone, in fixed shares, with judges). The column ``worth`` is
        the number of texts that people alone would have to annotate for the same variance.

    Raises
    ------
    ParameterError
        If there are no people, or a stratum has too few texts.
    FinecombError
        If a judge has not annotated all texts that people annotated, or was trained on them.

    Examples
    --------
    >>> import finecomb as fc
    >>> means = fc.estimate(fc.demo(), judge="reader-1")
    >>> round(means.find(method="people alone").value, 3)
    3.188

    References
    ----------
    Angelopoulos et al. (2023), "Prediction-Powered Inference".
    """
    chosen = changed_parameters(estimate, locals())
    names = as_names(strata)
    fixed = None if not names else () if names == ("none",) else names
    means = estimate_means(
        as_study(study), as_values(judge), as_names(measure), by, strata=fixed, people=as_values(people),
        by_label=each_label, filters=build_filters(chosen), tokens=tokens,
    )  # fmt: skip
    return Findings(means.findings, means.notes, title="Estimates")


@public
def calibrate(
    study: StudyLike,
    judge: str,
    *,
    people: Values = (),
    epsilon: Share = 0.15,
    margin: Share = 0.2,
    score: Literal["", "typed-f1", "char-f1", "accuracy", "rmse"] = "",
    question: str = "",
    levels: Names = ("token", "sentence", "document"),
    gold: str = "",
    by: str = "model",
    own: str = "",
    gamma: bool = True,
    help_effect: bool = False,
    days: PositiveInt = 30,
    label: Values = (),
    where: Values = (),
    protocol: str = "",
    tokens: str = "words",
    cluster: str = "",
    draws: Count = 1000,
    seed: int = 0,
    progress: Progress = False,
) -> CalibrationResult:
    """Decide whether a judge can replace people: agreement, alternative annotator test, bias, misses and probes.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The annotations of people and of the judge. A path is read with :func:`read`.
    judge : str
        Name of the judge, the annotator to compare with people.
    people : str or sequence of str
        Use only this human annotator; may be repeated (default: all people).
    epsilon : float, default 0.15
        Epsilon of the alternative annotator test: tolerance granted for the judge's lower cost.
    margin : float, default 0.2
        Non-inferiority margin: share by which the judge's agreement may be below people's.
        With 0.2, the judge's alpha with people must be at least 80% of people's alpha with each other.
    score : {"typed-f1", "char-f1", "accuracy", "rmse"}, optional
        Score for the alternative annotator test: `typed-f1`, `char-f1`, `accuracy` or `rmse`.
        By default `typed-f1` for marks and `accuracy` for answers.
    question : str
        Compare the answers to this question instead of the marks.
    levels : str or sequence of str, default ("token", "sentence", "document")
        Units, comma-separated: `token`, `char`, `sentence`, `segment` or `document`.
    gold : str
        Also score the judge against this annotator (default: the only one of kind `gold`).
    by : str, default "model"
        Document metadata field that names the system of a text, such as `model`.
    own : str
        System whose texts the judge's own model generated, to measure self-preference.
        By default taken from the metadata of the judge.
    gamma : bool, default True
        Also compute gamma, on at most 40 texts.
    help_effect : bool, default False
        Measure the anchoring effect on people who were shown the judge's marks.
    days : int, default 30
        Number of days for which the verdict is valid.
    label : str or sequence of str
        Include only marks with this label or label group; may be repeated.
    where : str or sequence of str
        Keep only matching texts, annotators or marks, such as `model=gpt2`; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    protocol : str
        Name of the protocol to use; required if the study has several.
    tokens : str, default "words"
        Tokenizer: `words`, `whitespace` or `spacy:NAME` (a spaCy language or pipeline).
    cluster : str
        Independent units: `text`, `prompt`, `source`, or a metadata field such as `topic`.
        By default, texts with the same prompt or source form a cluster.
    draws : int, default 1000
        Number of resamples per confidence interval.
    seed : int, default 0
        Random seed for resampling.
    progress : bool or callable, default False
        Show progress on standard error.
        A function is called with the numbers of finished and total steps instead.

    Returns
    -------
    CalibrationResult
        ``.verdict``, ``.labels``, ``.paragraph`` and ``.contract``; all tables by ``.table(name)``. ``.to_html()`` is
        a page, and ``.save(folder)`` keeps the contract in a study's folder.

    Raises
    ------
    ParameterError
        If the score does not apply to marks or answers, or a level is unknown.
    FinecombError
        If the judge and two people have fewer than 8 texts in common, or the judge was trained on these texts.

    Examples
    --------
    >>> import finecomb as fc
    >>> calibration = fc.calibrate(fc.demo(), "reader-1", gamma=False, draws=100)
    >>> calibration.verdict
    'too few texts to decide'

    References
    ----------
    Calderon, Reichart and Dror (2025), "The Alternative Annotator Test for LLM-as-a-Judge".
    """
    chosen = changed_parameters(calibrate, locals())
    is_mark_score = score in ("typed-f1", "char-f1")
    if score and question and is_mark_score:
        raise ParameterError(
            f"{param('score', score)} compares marks, and {param('question')} selects answers; use accuracy or rmse",
            parameter="score",
        )
    if score and not question and not is_mark_score:
        raise ParameterError(
            f"{param('score', score)} requires {param('question')}; for marks, use typed-f1 or char-f1",
            parameter="score",
        )
    known: tuple[UnitLevel, ...] = ("token", "char", "sentence", "segment", "document")
    names = as_names(levels)
    for name in names:
        if name not in known:
            raise ParameterError(
                f"unknown level {name!r} in {param('levels')}{did_you_mean(name, known)}", parameter="levels"
            )
    whole = as_study(study)
    options = CalibrationOptions(
        epsilon, margin, score, question, tuple(level for level in known if level in names), as_values(people), gold,
        by, tokens, draws, seed, gamma, cluster, own,
    )  # fmt: skip
    calibration = compare_with_people(
        whole,
        judge,
        options,
        build_filters(chosen),
        watch=lambda counts, total: track_counts(counts, progress, "steps", total),
    )
    anchoring = anchoring_findings(whole, judge) if help_effect else ()
    return CalibrationResult(
        calibration, datetime.now(UTC), days, next(iter(whole.protocols.values()), None), anchoring
    )


@public
def validate(
    study: StudyLike,
    judge: str | JudgeFunction,
    *,
    gold: str = "",
    base_url: str = "",
    key_env: str = "",
    trust_endpoint: bool = False,
    samples: PositiveInt | None = None,
    temperature: float | None = None,
    max_tokens: PositiveInt | None = None,
    shots: Count | None = None,
    price: str = "",
    budget: float | None = None,
    concurrency: PositiveInt | None = None,
    requests_per_minute: float | None = None,
    tokens_per_minute: float | None = None,
    timeout: float | None = None,
    attempts: PositiveInt | None = None,
    context_tokens: int | None = None,
    by_segment: bool = False,
    draws: Count = 1000,
    seed: Count | None = None,
    runs: str | PathLike[str] | None = None,
    progress: Progress = False,
) -> Findings:
    """Counterfactual validation: rerun a judge on gold-corrected texts, and count the marks that disappear.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        A study whose gold marks have corrections. A path is read with :func:`read`.
    judge : str or callable
        Detector, or language model as for `annotate --model`.
        In Python also a function from a document to an annotation.
    gold : str
        Gold annotator (default: the only annotator of kind `gold`).
    base_url : str
        URL of an OpenAI-compatible endpoint, such as `http://localhost:11434/v1`.
    key_env : str
        Environment variable with the endpoint's API key; the key itself is never stored.
    trust_endpoint : bool, default False
        Use the address and the key variable that the study names for the model; asked once per study.
    samples : int, optional
        Number of samples per text; `validate` requires 1.
    temperature : float, optional
        Sampling temperature (default: not sent, so that the endpoint's own default applies).
    max_tokens : int, optional
        Maximum tokens per reply (default: 2048).
    shots : int, optional
        Number of gold texts shown as examples; must be 0, as examples reveal the corrections.
    price : str
        Prices as `IN,OUT`, in US dollars per million input and output tokens.
    budget : float, optional
        Budget in US dollars; calls that could exceed it are not made.
    concurrency : int, optional
        Maximum number of simultaneous calls (default: 8).
    requests_per_minute : float, optional
        Maximum number of calls per minute.
    tokens_per_minute : float, optional
        Maximum number of tokens sent per minute (estimated).
    timeout : float, optional
        Timeout per call in seconds (default: 120).
    attempts : int, optional
        Maximum attempts per call (default: 6).
    context_tokens : int, optional
        Context size of the model in tokens; longer texts are refused before the first call.
    by_segment : bool, default False
        Send each segment of a text in a separate request.
    draws : int, default 1000
        Number of resamples per confidence interval.
    seed : int, optional
        Random seed for resampling (default: 0); if given, also sent to the endpoint.
        Otherwise, the endpoint gets the seed of `study.yaml`.
    runs : path, optional
        Folder for the replies of a language model, so that no call is paid for twice.
        By default `runs` in the study's folder if `study` is the path of a folder.
    progress : bool or callable, default False
        Show progress on standard error.
        A function is called with the numbers of finished and total calls instead.
        Texts are counted separately.

    Returns
    -------
    Findings
        Rows by measure and label: found, vanished, stayed, still marked, by base rate, and marks per reference.

    Raises
    ------
    ParameterError
        If the judge cannot be run again, or an option of language models is given for a detector or a function.
    FinecombError
        If no gold mark has a correction.

    Examples
    --------
    >>> import finecomb as fc
    >>> row = {"document": "a", "text": "Ten gulls and two terns.", "annotator": "gold"}
    >>> gold_marks = [{**row, "start": 0, "end": 3, "label": "number", "correction": "Nine"}]
    >>> def mark_nothing(document):
    ...     return fc.Annotation(id=document.id, document=document.id, annotator="nothing", protocol="numbers")
    >>> fc.validate(gold_marks, mark_nothing).find(measure="found", label="any").value
    0.0
    """
    chosen = changed_parameters(validate, locals())
    whole = as_study(study)
    not_of_models = ("gold", "draws", "seed", "runs", "progress")
    options = {name: value for name, value in chosen.items() if name not in not_of_models}
    if callable(judge):
        _refuse(options, options, "a function")
        name, function = getattr(judge, "__name__", type(judge).__name__), judge
    else:
        from finecomb.annotators.judge_functions import (
            build_judge_function,
        )  # imported here because detectors are slow to load

        with call_progress(progress) as watch:
            name, function = (
                judge,
                build_judge_function(whole, judge, gold, options, seed, _runs_folder(study, runs), watch),
            )
    with steps(progress, "texts") as advance:

        def run_judge(document: Document) -> Annotation:
            advance(1)
            return function(document)

        validation = run_on_corrections(whole, run_judge, name, gold, draws, seed or 0)
    return Findings(validation.findings, validation.notes, title="Marks before and after correction")


def _runs_folder(study: StudyLike, runs: str | PathLike[str] | None) -> Path | None:
    if runs is not None:
        return Path(runs)
    return Path(study) / "runs" if isinstance(study, str | PathLike) and Path(study).is_dir() else None


@public
def rounds(
    study: StudyLike,
    *,
    protocol: str = "",
    annotator: Values = (),
    where: Values = (),
    draws: Count = 1000,
    seed: int = 0,
) -> RoundsResult:
    """Compare the first and the last pass over the same texts: changes to marks, and agreement before and after.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        A study in which annotators annotated texts a second time. A path is read with :func:`read`.
    protocol : str
        Name of the protocol to use; required if the study has several.
    annotator : str or sequence of str
        Include only this annotator; may be repeated.
    where : str or sequence of str
        Keep only matching texts, annotators or marks, such as `model=gpt2`; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    draws : int, default 1000
        Number of resamples per confidence interval.
    seed : int, default 0
        Random seed for resampling.

    Returns
    -------
    RoundsResult
        ``.marks``: marks kept, changed, withdrawn and added, by annotator. ``.agreement``: alpha before and after.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.rounds(fc.demo()).marks
    Changes to marks between passes
    (no rows)
    """
    chosen = changed_parameters(rounds, locals())
    filters = build_filters(chosen if annotator else chosen | {"kind": ("human",)})
    return RoundsResult(compare_passes(as_study(study), filters, draws, seed))
