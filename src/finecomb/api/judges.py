"""Gold standards and judges: merging annotators, scores against gold, calibration, validation, and second passes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Literal

from finecomb.api.coercion import StudyLike, as_names, as_study, as_values
from finecomb.api.parameters import Count, Names, PositiveInt, Share, Values, changed_parameters, public
from finecomb.api.selection import build_filters, select_part
from finecomb.core.errors import ParameterError, did_you_mean, param
from finecomb.core.results import Findings
from finecomb.reporting.gold_results import GoldResult, ScoreResult
from finecomb.reporting.judge_results import CalibrationResult, RoundsResult
from finecomb.statistics.agreement.minimal_repairs import Repairs
from finecomb.statistics.agreement.second_pass_changes import compare_passes
from finecomb.statistics.gold.gold_and_judges import UnreadPolicy, restrict_judges_to_gold_texts
from finecomb.statistics.gold.gold_merge import MAJORITY, MinVotes, SpanSize
from finecomb.statistics.gold.gold_merge import gold as merge_annotators
from finecomb.statistics.gold.merge_tables import annotator_subset_scores_table, recovered_error_notes
from finecomb.statistics.gold.scalar_metrics import has_only_scalar_scores, scalar_metric_correlations
from finecomb.statistics.gold.scores import Average, Category, ScoreSettings, score_by_match_rules
from finecomb.statistics.gold.scores import score as score_marks
from finecomb.statistics.judges.anchoring_effect import anchoring_findings
from finecomb.statistics.judges.calibration import CalibrationOptions
from finecomb.statistics.judges.calibration import calibrate as compare_with_people
from finecomb.statistics.judges.counterfactual_validation import JudgeFunction
from finecomb.statistics.judges.counterfactual_validation import validate_judge as run_on_corrections
from finecomb.statistics.judges.estimates import estimate_means
from finecomb.statistics.measures.unit_grid import Level
from finecomb.statistics.selection.view import view

MatchOrAll = Literal[
    "task", "optimal", "overlap", "exact", "partial", "iou", "mpp", "token", "char", "wmt25", "sentence", "all"
]


@public
def gold(
    study: StudyLike,
    *,
    min_votes: int | str | None = None,
    align: str = "auto",
    size: SpanSize = "majority",
    subsets: int | None = None,
    decisions: bool = True,
    repairs: Repairs = "declared",
    by: str = "model",
    protocol: str = "",
    annotator: Values = (),
    kind: Values = (),
    where: Values = (),
    drop: Values = (),
    draws: Count = 1000,
    seed: int = 0,
) -> GoldResult:
    """Merge annotators into a gold standard: errors with enough votes, each with the label of the majority.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The annotations to merge. A path is read with :func:`read`.
    min_votes : int or "majority", optional
        Annotators who must have marked an error, or majority: more than half of a text's annotators.
        By default 2; gold from subsets has the majority of each.
    align : str, default "auto"
        Which marks are one error: item, overlap, overlap-label, gamma; auto: item where given.
    size : {"widest", "narrowest", "majority", "union"}, default "majority"
        Length of the gold mark; majority: the tokens that more than half have.
    subsets : int, optional
        Also score gold from every subset of this many annotators against gold from all.
        Each gold has its own majority unless `min_votes` is given.
    decisions : bool, default True
        Let an adjudicator's decisions count instead of votes.
    repairs : {"declared", "smallest"}, default "declared"
        Alternatives that marks declare, or also smallest repairs (one name or two numbers).
    by : str, default "model"
        For rates: document meta that names systems.
    protocol : str
        One of the study's protocols, where it has several.
    annotator : str or sequence of str
        Only this annotator; may be repeated.
    kind : str or sequence of str
        Only annotators of this kind (default: people, and others only where there are no people).
    where : str or sequence of str
        Condition on texts, annotators, annotations or marks, such as model=gpt2 or 'top_p >= 0.9'; may be repeated.
    drop : str or sequence of str
        Omit a label or group, or one severity of it (grammar-usage:1); may be repeated.
    draws : int, default 1000
        Resamples per interval.
    seed : int, default 0
        Seed of the resamples.

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
    votes = _parse_min_votes(min_votes)
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
    return GoldResult(merge, by, draws, seed, notes, from_subsets)


def _parse_min_votes(value: int | str | None) -> MinVotes | None:
    if value is None or value == MAJORITY:
        return None if value is None else MAJORITY
    text = str(value)
    if not text.isdecimal() or not int(text):
        raise ParameterError(
            f"{param('min_votes', text)}: expected a whole number from 1, or majority", parameter="min_votes"
        )
    return int(text)


@public
def score(
    study: StudyLike,
    predicted: StudyLike | None = None,
    *,
    match: MatchOrAll = "optimal",
    average: Average = "micro",
    category: Category = "both",
    by: Names = ("label",),
    gold: str = "",
    judge: Values = (),
    question: str = "",
    protocol: str = "",
    tokens: str = "words",
    unread: UnreadPolicy = "empty",
    repairs: Repairs = "declared",
    where: Values = (),
    drop: Values = (),
    draws: Count = 1000,
    seed: int = 0,
) -> ScoreResult:
    """Precision, recall and F1 of annotators, models and detectors against gold, with confidence intervals.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The study with gold. A path is read with :func:`read`.
    predicted : Study, path, DataFrame or list of dicts, optional
        Study with the judges to score (default: all other annotators of the first study).
    match : str, default "optimal"
        Rule by which a mark has found a gold mark; all: F1 and rank of every judge by each rule.
    average : {"micro", "macro"}, default "micro"
        Ratios of the sums over texts (micro), or means of each text's ratios (macro).
    category : {"both", "gold"}, default "both"
        For a label: both lists restricted to it, or gold for recall and marks for precision.
    by : str or sequence of str, default "label"
        label and document meta, comma-separated.
    gold : str
        Annotator that is gold, where no annotator is of that kind.
    judge : str or sequence of str
        Score only this annotator; may be repeated.
    question : str
        For scalar metrics: question that people answered (default: the number of errors in gold).
    protocol : str
        One of the study's protocols, where it has several.
    tokens : str, default "words"
        Tokenizer: words, whitespace or spacy:NAME.
    unread : {"empty", "leave-out"}, default "empty"
        Texts that only one side has an annotation on: nothing found there, or omitted.
    repairs : {"declared", "smallest"}, default "declared"
        Alternatives that marks declare, or also smallest repairs (one name or two numbers).
    where : str or sequence of str
        Condition on texts, annotators, annotations or marks, such as model=gpt2 or 'top_p >= 0.9'; may be repeated.
    drop : str or sequence of str
        Omit a label or group, or one severity of it (grammar-usage:1); may be repeated.
    draws : int, default 1000
        Resamples per interval.
    seed : int, default 0
        Seed of the resamples.

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
    truth = select_part(as_study(study), as_values(where), dropped)
    other = None if predicted is None else as_study(predicted, "predicted")
    if other is not None and (where or drop):
        other = select_part(restrict_judges_to_gold_texts(truth, other), drop=dropped)
    judges = truth if other is None else other
    if question or has_only_scalar_scores(judges):
        _refuse(chosen, _MARK_OPTIONS, "scalar metrics")
        system = next((name for name in names if name != "label"), "model")
        return ScoreResult.from_metrics(scalar_metric_correlations(truth, other, question, system, gold, draws, seed))
    settings = ScoreSettings(
        gold_annotator=gold, judges=as_values(judge), protocol=protocol, tokens=tokens, unread=unread, average=average,
        repairs=repairs,
    )  # fmt: skip
    if match == "all":
        _refuse(chosen, ("by", "draws", "seed"), param("match", "all"))
        return ScoreResult.from_rules(score_by_match_rules(truth, other, category, **settings), average)
    scores = score_marks(truth, other, match, category, names, **settings, draws=draws, seed=seed)
    return ScoreResult.from_scores(scores, judges, names, seed)


_MARK_OPTIONS = ("match", "average", "category", "judge", "protocol", "tokens", "unread", "repairs")
"""Options of `score` that are about marks."""


def _refuse(chosen: Mapping[str, object], names: Collection[str], owner: str) -> None:
    """Refuse options that do not apply to what was chosen."""
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
    """Estimate means from judges on all texts and people on some, by prediction-powered inference.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The annotations of people and judges. A path is read with :func:`read`.
    judge : str or sequence of str
        Annotator that is a judge; may be repeated.
    measure : str or sequence of str, default "count"
        Measures, comma-separated; answer:NAME for a rating.
    by : str
        Document meta that names systems.
    strata : str or sequence of str
        Document meta whose shares are held fixed, comma-separated, or none (default: automatic).
    people : str or sequence of str
        Annotator to compare with; may be repeated (default: all people).
    each_label : bool, default False
        Estimate each label too.
    label : str or sequence of str
        Only this label or group; may be repeated.
    where : str or sequence of str
        Condition on texts, annotators, annotations or marks, such as model=gpt2 or 'top_p >= 0.9'; may be repeated.
    protocol : str
        One of the study's protocols, where it has several.
    tokens : str, default "words"
        Tokenizer: words, whitespace or spacy:NAME.

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
    margin: Share = 0.1,
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
    draws: Count = 1000,
    seed: int = 0,
) -> CalibrationResult:
    """Decide whether a judge can replace people: agreement, alternative annotator test, bias, misses and probes.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The annotations of people and of the judge. A path is read with :func:`read`.
    judge : str
        Annotator to compare with people.
    people : str or sequence of str
        Annotator to compare with; may be repeated (default: all people).
    epsilon : float, default 0.15
        How much worse than a person the judge may be in the alternative annotator test.
    margin : float, default 0.1
        How much lower the agreement of the judge may be.
    score : {"typed-f1", "char-f1", "accuracy", "rmse"}, optional
        Score of the test (default: typed-f1 for marks, accuracy for answers).
    question : str
        Compare answers to this question.
    levels : str or sequence of str, default ("token", "sentence", "document")
        Levels of agreement, comma-separated.
    gold : str
        Annotator to score the judge against too (default: the only one of kind gold).
    by : str, default "model"
        Document meta that names systems.
    own : str
        System that is the judge's own model.
    gamma : bool, default True
        Compute gamma too, of at most 40 texts.
    help_effect : bool, default False
        Measure the anchoring effect on people who were shown the judge's marks.
    days : int, default 30
        Number of days that the contract is valid for.
    label : str or sequence of str
        Only this label or group; may be repeated.
    where : str or sequence of str
        Condition on texts, annotators, annotations or marks, such as model=gpt2 or 'top_p >= 0.9'; may be repeated.
    protocol : str
        One of the study's protocols, where it has several.
    tokens : str, default "words"
        Tokenizer: words, whitespace or spacy:NAME.
    draws : int, default 1000
        Resamples per interval.
    seed : int, default 0
        Seed of the resamples.

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
    'may help, may not stand in'

    References
    ----------
    Calderon, Reichart and Dror (2025), "The Alternative Annotator Test for LLM-as-a-Judge".
    """
    chosen = changed_parameters(calibrate, locals())
    _check_score(score, question)
    whole = as_study(study)
    options = CalibrationOptions(
        epsilon, margin, score, question, _parse_levels(as_names(levels)), as_values(people), gold, by, tokens, draws,
        seed, gamma, own,
    )  # fmt: skip
    calibration = compare_with_people(whole, judge, options, build_filters(chosen))
    anchoring = anchoring_findings(whole, judge) if help_effect else ()
    return CalibrationResult(
        calibration, datetime.now(UTC), days, next(iter(whole.protocols.values()), None), anchoring
    )


def _check_score(score: str, question: str) -> None:
    of_marks = score in ("typed-f1", "char-f1")
    if score and question and of_marks:
        raise ParameterError(
            f"{param('score', score)} is for marks, {param('question')} for answers: take accuracy or rmse",
            parameter="score",
        )
    if score and not question and not of_marks:
        raise ParameterError(
            f"{param('score', score)} is for answers: say which with {param('question')}, or take typed-f1 or char-f1",
            parameter="score",
        )


def _parse_levels(names: Collection[str]) -> tuple[Level, ...]:
    levels: tuple[Level, ...] = ("token", "char", "sentence", "segment", "document")
    for name in names:
        if name not in levels:
            raise ParameterError(
                f"{param('levels', name)}: no such level{did_you_mean(name, levels)}", parameter="levels"
            )
    return tuple(level for level in levels if level in names)


@public
def validate(
    study: StudyLike,
    judge: str | JudgeFunction,
    *,
    gold: str = "",
    base_url: str = "",
    key_env: str = "",
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
) -> Findings:
    """Counterfactual validation: run a judge again on texts with gold corrections, and count the marks that vanish.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        A study whose gold marks have corrections. A path is read with :func:`read`.
    judge : str or callable
        A detector, or a language model as `annotate --model` takes it.
        In Python also a function from a document to an annotation.
    gold : str
        Annotator that is gold, where it is not clear.
    base_url : str
        OpenAI-compatible endpoint, such as http://localhost:11434/v1.
    key_env : str
        Environment variable with the endpoint's key; the key itself is written nowhere.
    samples : int, optional
        Number of samples per text; must be 1 here.
    temperature : float, optional
        Temperature, sent only when given.
    max_tokens : int, optional
        Maximum tokens of a reply (default: 2048).
    shots : int, optional
        Number of gold texts shown as examples; must be 0 here, since they tell the corrections.
    price : str
        IN,OUT: dollars per million tokens sent and received.
    budget : float, optional
        Budget in US dollars; no call is made that could cost more than is left.
    concurrency : int, optional
        Maximum number of calls at a time (default: 8).
    requests_per_minute : float, optional
        Maximum calls per minute.
    tokens_per_minute : float, optional
        Maximum tokens sent per minute, as estimated.
    timeout : float, optional
        Seconds per call (default: 120).
    attempts : int, optional
        Maximum attempts per call (default: 6).
    context_tokens : int, optional
        Tokens that fit into the model; longer texts are refused beforehand.
    by_segment : bool, default False
        Ask part by part.
    draws : int, default 1000
        Resamples per interval.
    seed : int, optional
        Seed of the resamples, also sent to the endpoint (default: 0; for the endpoint, that of study.yaml).
    runs : path, optional
        Folder for the replies of a language model, so that nothing is paid twice.
        By default `runs` in the study's folder, where `study` is the path of one.

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
    options = {name: value for name, value in chosen.items() if name not in ("gold", "draws", "seed", "runs")}
    if callable(judge):
        _refuse(options, options, "a function")
        name, function = getattr(judge, "__name__", type(judge).__name__), judge
    else:
        from finecomb.annotators.judge_functions import build_judge  # detectors take a second to load

        name, function = judge, build_judge(whole, judge, gold, options, seed, _runs_folder(study, runs))
    validation = run_on_corrections(whole, function, name, gold, draws, seed or 0)
    return Findings(validation.findings, validation.notes, title="Marks before and after the correction")


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
        A study in which annotators went through texts a second time. A path is read with :func:`read`.
    protocol : str
        One of the study's protocols, where it has several.
    annotator : str or sequence of str
        Only this annotator; may be repeated.
    where : str or sequence of str
        Condition on texts, annotators, annotations or marks, such as model=gpt2 or 'top_p >= 0.9'; may be repeated.
    draws : int, default 1000
        Resamples per interval.
    seed : int, default 0
        Seed of the resamples.

    Returns
    -------
    RoundsResult
        ``.marks``: marks kept, changed, withdrawn and added, by annotator. ``.agreement``: alpha before and after.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.rounds(fc.demo()).marks
    What became of the marks
    (no rows)
    """
    chosen = changed_parameters(rounds, locals())
    filters = build_filters(chosen if annotator else chosen | {"kind": ("human",)})
    return RoundsResult(compare_passes(as_study(study), filters, draws, seed))
