"""Comparison of two passes over the same texts: changes to each mark, and the change in agreement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from pydantic_core import to_json

from finecomb.core.frames import parse_json_object
from finecomb.core.results import Finding, Signature
from finecomb.core.study import Study
from finecomb.statistics.agreement import alpha as alphas
from finecomb.statistics.agreement.agreement_options import AgreeOptions
from finecomb.statistics.agreement.rating_sources import build_rating_source
from finecomb.statistics.inference.clusters import find_clusters
from finecomb.statistics.inference.intervals import (
    Floats,
    IntervalSettings,
    StatisticKind,
    estimate_from_interval,
    weighted_intervals,
)
from finecomb.statistics.selection.view import ANY_LABEL, Filters, View, view

MARK_CHANGE_COLUMNS = (
    "before", "after", "kept", "changed", "boundaries", "label", "answers", "withdrawn", "from_others", "new",
)  # fmt: skip
"""Columns of `PassComparison.marks` that follow the columns annotator and texts."""
ALL_ANNOTATORS = "all"
_DOCUMENT_ANNOTATOR_KEYS = ["document", "annotator"]


@dataclass(frozen=True, slots=True)
class PassComparison:
    """Two passes of the same annotators over the same texts."""

    before: View
    """First passes over the texts that an annotator annotated again."""
    after: View
    """Last passes of the same annotators over the same texts."""
    marks: pl.DataFrame
    """Changes to the marks, with one row per annotator and a last row for all annotators.

    Columns: annotator, texts, before and after (numbers of marks), kept, changed, boundaries, label, answers (types of
    change; a mark can have several), withdrawn, from_others, new.
    """
    agreement: tuple[Finding, ...]
    """Alpha in the first and the last pass, and the difference."""
    notes: tuple[str, ...]


def compare_passes(study: Study, filters: Filters | None = None, draws: int = 1000, seed: int = 0) -> PassComparison:
    """Compare the first and the last pass of annotators over the texts that they annotated again.

    A mark of the later pass continues the annotator's own mark that its `made_from` names. The mark is kept if its
    words, label, answers and antecedents are the same, and changed otherwise. A later mark that continues no earlier
    one was added: from another annotator's mark if `made_from` names one, otherwise new. An earlier mark that no later
    one continues was withdrawn. A mark that became two counts as two changed marks, unless one of them is unchanged.
    Agreement is Krippendorff's alpha on tokens, for the same annotators and texts. The difference has its own interval,
    with the same resampled texts in both passes.
    """
    choices = filters or Filters(kinds=("human",))
    first, last = (view(study, replace(choices, rounds=selection)) for selection in ("first", "last"))
    repeated = first.study.annotations.select(*_DOCUMENT_ANNOTATOR_KEYS, first="id", from_="round").join(
        last.study.annotations.select(*_DOCUMENT_ANNOTATOR_KEYS, last="id", to="round"),
        on=_DOCUMENT_ANNOTATOR_KEYS,
        maintain_order="left",
    )
    repeated = repeated.filter(pl.col("to") > pl.col("from_"))
    before = _restrict_view_to_annotations(first, repeated["first"])
    after = _restrict_view_to_annotations(last, repeated["last"])
    changes = _count_mark_changes(before.study.marks, after.study.marks, repeated)
    notes: tuple[str, ...] = ()
    if len(after.study.marks) and not after.study.marks["made_from"].list.len().fill_null(0).sum():
        problem = "no mark of the later pass names the mark it was made from, so all count as withdrawn or new"
        notes = (f"{problem}; the later pass did not start from the marks of the first",)
    return PassComparison(before, after, changes, tuple(_alpha_change_findings(before, after, draws, seed)), notes)


def _restrict_view_to_annotations(whole: View, annotations: pl.Series) -> View:
    part = whole.study.filter_annotations(pl.col("id").is_in(annotations.implode()))
    is_annotated = pl.col("id").is_in(part.annotations["document"].unique().implode())
    return replace(whole, study=replace(part, documents=part.documents.filter(is_annotated)))


@dataclass(frozen=True, slots=True)
class SecondPassProgress:
    """Progress of a second pass, counted in pairs of text and annotator."""

    wanted: int
    """Number of submitted first passes over texts that another annotator has annotated as well."""
    begun: int
    """Number of the first passes in `wanted` that were followed by a second pass, submitted or not."""
    done: int
    """Number of the first passes in `wanted` that were followed by a submitted second pass."""


def second_pass_progress(study: Study, protocol: str) -> SecondPassProgress:
    """Return the progress of the human annotators' second pass under one protocol."""
    people = study.annotators.filter((pl.col("kind") == "human") & pl.col("excluded").is_null())["id"]
    annotations = study.annotations.filter(
        (pl.col("protocol") == protocol)
        & (pl.col("phase") == "work")
        & pl.col("about").is_null()
        & pl.col("excluded").is_null()
        & (pl.col("status") != "excluded")
        & pl.col("annotator").is_in(people.implode())
    )
    is_submitted = pl.col("status") == "submitted"
    first = annotations.filter((pl.col("round") == 0) & is_submitted)
    wanted = first.filter(pl.col("annotator").n_unique().over("document") > 1)
    second_passes = annotations.filter(pl.col("round") > 0).join(
        wanted.select(_DOCUMENT_ANNOTATOR_KEYS), on=_DOCUMENT_ANNOTATOR_KEYS, how="semi"
    )
    return SecondPassProgress(
        len(wanted),
        second_passes.select(_DOCUMENT_ANNOTATOR_KEYS).n_unique(),
        second_passes.filter(is_submitted).select(_DOCUMENT_ANNOTATOR_KEYS).n_unique(),
    )


# --- marks -------------------------------------------------------------------------------------------------------


def _count_mark_changes(before: pl.DataFrame, after: pl.DataFrame, again: pl.DataFrame) -> pl.DataFrame:
    """Count the changes to marks for each annotator, in order of appearance, and for all annotators together."""
    old = before.select(*_DOCUMENT_ANNOTATOR_KEYS, mark="id", **_mark_content_columns())
    origins = after.select(*_DOCUMENT_ANNOTATOR_KEYS, "id", from_="made_from", **_mark_content_columns()).explode(
        "from_", empty_as_null=True
    )
    continued_pairs = origins.join(
        old,
        left_on=[*_DOCUMENT_ANNOTATOR_KEYS, "from_"],
        right_on=[*_DOCUMENT_ANNOTATOR_KEYS, "mark"],
        suffix="_old",
        maintain_order="left",
    )
    continued = continued_pairs.unique("id", keep="first", maintain_order=True).with_columns(
        boundaries=pl.col("words") != pl.col("words_old"),
        label=pl.col("called").ne_missing(pl.col("called_old")),
        answers=(pl.col("said") != pl.col("said_old")) | (pl.col("earlier") != pl.col("earlier_old")),
    )
    continued = continued.with_columns(changed=pl.any_horizontal("boundaries", "label", "answers"))
    added = after.filter(~pl.col("id").is_in(continued["id"].implode()))
    withdrawn = before.filter(~pl.col("id").is_in(continued_pairs["from_"].implode()))
    is_from_others = pl.col("made_from").list.len().fill_null(0) > 0
    tables = [
        again.group_by("annotator", maintain_order=True).agg(texts=pl.len()),
        _count_by_annotator(before, before=pl.len()),
        _count_by_annotator(after, after=pl.len()),
        _count_by_annotator(
            continued, kept=(~pl.col("changed")).sum(), **{n: pl.col(n).sum() for n in MARK_CHANGE_COLUMNS[3:7]}
        ),
        _count_by_annotator(withdrawn, withdrawn=pl.len()),
        _count_by_annotator(added, from_others=is_from_others.sum(), new=(~is_from_others).sum()),
    ]
    rows = tables[0]
    for table in tables[1:]:
        rows = rows.join(table, on="annotator", how="left", maintain_order="left")
    rows = rows.select("annotator", pl.col("texts", *MARK_CHANGE_COLUMNS).fill_null(0).cast(pl.Int64))
    return pl.concat(
        [rows, rows.select(pl.lit(ALL_ANNOTATORS).alias("annotator"), pl.col("texts", *MARK_CHANGE_COLUMNS).sum())]
    )


def _mark_content_columns() -> dict[str, pl.Expr]:
    """Build expressions for the content of a mark as comparable text: words, label, answers and antecedents."""
    span_json = pl.element().struct.json_encode()
    return {
        "words": pl.concat_str(
            pl.col("spans").list.eval(span_json).list.join(" "), pl.col("quotes").list.join("\0"), ignore_nulls=True
        ),
        "called": pl.col("label"),
        # Sorted keys, so that equal answers are equal text
        "said": pl.col("answers")
        .map_elements(lambda cell: to_json(dict(sorted(parse_json_object(cell).items()))).decode(), pl.String)
        .fill_null("{}"),
        "earlier": pl.col("antecedents").list.eval(span_json).list.join(" ").fill_null(""),
    }


def _count_by_annotator(marks: pl.DataFrame, **counts: pl.Expr) -> pl.DataFrame:
    return marks.group_by("annotator", maintain_order=True).agg(**counts)


# --- agreement ---------------------------------------------------------------------------------------------------


def _alpha_change_findings(before: View, after: View, draws: int, seed: int) -> Sequence[Finding]:
    """Estimate alpha on tokens in both passes, and the difference, over the same clusters of texts."""
    texts = before.study.documents
    if texts.is_empty():
        return ()
    options = AgreeOptions(by_label=False)
    sources = [build_rating_source(part, options) for part in (before, after)]
    clusters = find_clusters(texts)

    def evaluate(weights: Floats) -> Floats:
        first, last = (alphas.pooled_alpha(source.tallies[0], weights)[:, 0] for source in sources)
        return np.stack([first, last, last - first], axis=1)

    values = evaluate(np.ones((1, len(texts))))[0]
    settings = IntervalSettings(draws=draws, seed=seed)
    kinds: list[StatisticKind] = ["coefficient", "coefficient", "number"]
    intervals = weighted_intervals(evaluate, clusters, kinds, settings=settings)
    whys = [
        source.undefined_reason(ANY_LABEL) if np.isnan(value) else ""
        for source, value in zip(sources, values, strict=False)
    ]
    whys.append("; ".join(dict.fromkeys(filter(None, whys))))
    fields = {name: value for name, value in before.fields.items() if name != "rounds"}
    signature_fields = {"unit": "token", "tokens": options.tokens, **fields, "rounds": "first-and-last"}
    people = before.study.annotations["annotator"].n_unique()
    findings = []
    for row, pass_name in enumerate(("before", "after", "difference")):
        signature = Signature.from_fields(
            statistic="alpha", which=pass_name, **signature_fields, annotators=people, documents=len(texts),
            **clusters.signature_fields,
        )  # fmt: skip
        if intervals[row].method == "bootstrap-t":
            signature = signature.insert(draws=draws, seed=seed)
        estimate = estimate_from_interval(float(values[row]), intervals[row], signature, whys[row])
        findings.append(Finding({"measure": "alpha", "pass": pass_name, "label": ANY_LABEL}, estimate))
    return findings
