"""Statistics of annotations: agreement."""

from __future__ import annotations

from collections.abc import Collection
from os import PathLike
from pathlib import Path
from typing import Literal

from finecomb.api.coercion import StudyLike, as_names, as_study, as_values
from finecomb.api.parameters import Count, Names, PositiveInt, Values, given, public
from finecomb.api.progress import Progress, resume_note, track_counts
from finecomb.api.selection import SELECTION, build_filters
from finecomb.core.errors import ParameterError, param
from finecomb.core.results import Findings
from finecomb.engine.options import PartitionOptions
from finecomb.statistics.agreement.agreement import agree as compute_agreement
from finecomb.statistics.agreement.agreement import resolve_measure_names
from finecomb.statistics.agreement.agreement_options import AgreementLevel, Boundaries
from finecomb.statistics.agreement.gamma.text_gamma import GammaSettings
from finecomb.statistics.agreement.minimal_repairs import Repairs
from finecomb.statistics.annotator_quality import trust as compute_annotator_quality
from finecomb.statistics.selection.view import BackOff, Rounds, view


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
        Coefficients, comma-separated: alpha, two-agree, kappa-cohen, kappa-fleiss, f1, gamma and others.
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
        For level item: alternatives that marks declare, or also smallest repairs (one name or two numbers).
    gamma : str or sequence of str
        For gamma: NAME=VALUE, such as sampler=statistical or precision=0.02; may be repeated.
    protocol : str
        One of the study's protocols, where it has several.
    label : str or sequence of str
        Only this label or group; may be repeated.
    drop : str or sequence of str
        Omit a label or group, or one severity of it (grammar-usage:1); may be repeated.
    where : str or sequence of str
        Condition on texts, annotators, annotations or marks, such as model=gpt2 or 'top_p >= 0.9'; may be repeated.
    back_off : {"label", "group", "any"}, default "label"
        Labels as they are, as groups, or all as one.
    merge : str or sequence of str
        NEW=A+B: labels merged under a new name; may be repeated.
    annotator : str or sequence of str
        Only this annotator; may be repeated.
    kind : str or sequence of str
        Only annotators of this kind (default: people, and others only where there are no people).
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
    chosen = given(agree, locals())
    if who and "measure" in chosen:
        raise ParameterError(f"{param('measure')} and {param('who')} cannot be used together", parameter="measure")
    names = [] if who else resolve_measure_names(as_names(measure))
    _refuse_engine(chosen, any(name.startswith("gamma") for name in names), "measures of the gamma family")
    part = view(as_study(study), build_filters(chosen))
    if who:
        _refuse_other_than(chosen, ("tokens", "seed"), "who")
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


def _refuse_engine(chosen: Collection[str], is_spread: bool, owner: str) -> None:
    """Refuse options of the engine where the work is not spread over processes."""
    for name in ("engine", "workers", "partitions"):
        if name in chosen and not is_spread:
            raise ParameterError(f"{param(name)} applies only to {owner}", parameter=name, hint="leave it out")


def _refuse_other_than(chosen: Collection[str], allowed: Collection[str], owner: str) -> None:
    """Refuse options that do not apply; those that select annotations always do."""
    for name in chosen:
        if name not in (*allowed, *SELECTION, owner, "progress"):
            raise ParameterError(f"{param(name)} does not apply to {param(owner)}", parameter=name, hint="leave it out")
