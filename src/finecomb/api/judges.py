"""Gold standards and judges: merging annotators, scores against gold, calibration, validation, and second passes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from finecomb.api.coercion import StudyLike, as_names, as_study, as_values
from finecomb.api.parameters import Count, Names, Values, given, public
from finecomb.api.selection import build_filters, select_part
from finecomb.core.errors import ParameterError, param
from finecomb.reporting.gold_results import GoldResult, ScoreResult
from finecomb.statistics.agreement.minimal_repairs import Repairs
from finecomb.statistics.gold.gold_and_judges import UnreadPolicy, restrict_to_texts
from finecomb.statistics.gold.gold_merge import MAJORITY, MinVotes, SpanSize
from finecomb.statistics.gold.gold_merge import gold as merge_annotators
from finecomb.statistics.gold.merge_tables import recovered_error_notes, subsets_table
from finecomb.statistics.gold.scalar_metrics import has_only_scalar_scores, scalar_metric_correlations
from finecomb.statistics.gold.scores import Average, Category, ScoreSettings, score_by_rules
from finecomb.statistics.gold.scores import score as score_marks
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
    >>> from finecomb.api.judges import gold
    >>> merged = gold(fc.demo(), min_votes="majority")
    >>> merged.study
    Study('Saltby: the demo study': 16 documents, 16 annotations, 51 marks; scarecrow@2)
    >>> merged.errors.find(label="any").errors
    51

    References
    ----------
    Thomson and Reiter (2020), "A Gold Standard Methodology for Evaluating Accuracy in Data-To-Text Systems".
    """
    chosen = given(gold, locals())
    votes = _parse_min_votes(min_votes)
    whole = as_study(study)
    part = view(whole, build_filters(chosen))
    adjudicated = whole if decisions and not annotator and not kind else None
    merge = merge_annotators(part, 2 if votes is None else votes, align, size, adjudicated, repairs)
    from_subsets = (
        (subsets, subsets_table(part, subsets, votes or MAJORITY, align, size, draws, seed, repairs))
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
    >>> from finecomb.api.judges import score
    >>> scores = score(fc.demo(), judge="reader-1")
    >>> round(scores.find(label="any").f1, 3)
    0.796
    >>> [(row.kind, row["count"]) for row in scores.kinds[:2]]
    [('right', 15), ('boundary', 22)]

    References
    ----------
    Thomson and Reiter (2021), "Generation Challenges: Results of the Accuracy Evaluation Shared Task".
    """
    chosen = given(score, locals())
    names, dropped = as_names(by), as_values(drop)
    truth = select_part(as_study(study), as_values(where), dropped)
    other = None if predicted is None else as_study(predicted, "predicted")
    if other is not None and (where or drop):
        other = select_part(restrict_to_texts(truth, other), drop=dropped)
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
        return ScoreResult.from_rules(score_by_rules(truth, other, category, **settings), average)
    scores = score_marks(truth, other, match, category, names, **settings, draws=draws, seed=seed)
    return ScoreResult.from_scores(scores, judges, names, seed)


_MARK_OPTIONS = ("match", "average", "category", "judge", "protocol", "tokens", "unread", "repairs")
"""Options of `score` that are about marks."""


def _refuse(chosen: Mapping[str, object], names: Collection[str], owner: str) -> None:
    """Refuse options that do not apply to what was chosen."""
    for name in chosen:
        if name in names:
            raise ParameterError(f"{param(name)} does not apply to {owner}", parameter=name, hint="leave it out")
