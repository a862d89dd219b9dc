"""Two passes over the same texts compared: what became of each mark, and whether people agree more than before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from pydantic_core import to_json

from finecomb.core.estimate import Finding, Signature
from finecomb.core.frames import parse_json_object
from finecomb.core.study import Study
from finecomb.statistics.agreement import alpha as alphas
from finecomb.statistics.agreement.agreement_options import AgreeOptions
from finecomb.statistics.agreement.rating_sources import build_rating_source
from finecomb.statistics.inference.resampling import (
    estimate_with_interval,
    few_documents_reason,
    study_and_resample_weights,
)
from finecomb.statistics.selection.view import ANY, Filters, View, view

CHANGE_COLUMNS = (
    "before", "after", "kept", "changed", "boundaries", "label", "answers", "withdrawn", "from_others", "new",
)  # fmt: skip
"""Columns of `Rounds.marks` beside annotator and texts."""
ALL = "all"
_PAIR = ["document", "annotator"]


@dataclass(frozen=True, slots=True)
class PassComparison:
    """Two passes of the same people over the same texts."""

    before: View
    """The first pass of those who also made a later one."""
    after: View
    """Their last pass."""
    marks: pl.DataFrame
    """What became of the marks, one row for each annotator and then one for all: annotator, texts, before, after (how
    many marks), kept, changed, of these boundaries, label, answers (a mark may change in several ways), withdrawn,
    from_others, new."""
    agreement: tuple[Finding, ...]
    """Alpha before, after, and the difference."""
    notes: tuple[str, ...]


def compare_passes(study: Study, filters: Filters | None = None, draws: int = 1000, seed: int = 0) -> PassComparison:
    """Compare the first pass with the last, over the texts that somebody went through again.

    A mark of the later pass goes on from the mark of one's own that its `made_from` names; it was kept when words,
    label, answers and antecedents are the same. Without one it was added: from somebody else's mark, when `made_from`
    names that, else new. A mark that nothing goes on from was withdrawn. One that became two counts as two changed
    marks, unless one of them is as before. Agreement is Krippendorff's alpha on words, of the same people on the same
    texts; the difference has an interval of its own, since the same texts are drawn for both.
    """
    choices = filters or Filters(kinds=("human",))
    first, last = (view(study, replace(choices, rounds=which)) for which in ("first", "last"))
    again = first.study.annotations.select(*_PAIR, first="id", from_="round").join(
        last.study.annotations.select(*_PAIR, last="id", to="round"), on=_PAIR, maintain_order="left"
    )
    again = again.filter(pl.col("to") > pl.col("from_"))
    before, after = (
        _restrict_view_to_annotations(first, again["first"]),
        _restrict_view_to_annotations(last, again["last"]),
    )
    marks = _count_mark_changes(before.study.marks, after.study.marks, again)
    return PassComparison(
        before,
        after,
        marks,
        tuple(_alpha_change_findings(before, after, draws, seed)),
        tuple(_missing_provenance_notes(after)),
    )


def _restrict_view_to_annotations(whole: View, annotations: pl.Series) -> View:
    part = whole.study.filter_annotations(pl.col("id").is_in(annotations.implode()))
    read = pl.col("id").is_in(part.annotations["document"].unique().implode())
    return replace(whole, study=replace(part, documents=part.documents.filter(read)))


def _missing_provenance_notes(after: View) -> list[str]:
    if len(after.study.marks) and not after.study.marks["made_from"].list.len().fill_null(0).sum():
        what = "no mark of the later pass says what it was made from, so all count as withdrawn or new"
        return [f"{what}: these passes did not begin with the marks of the first"]
    return []


@dataclass(frozen=True, slots=True)
class SecondPassProgress:
    """How far a second pass is, counted in texts of annotators."""

    wanted: int
    """Handed in, by somebody, on a text that others handed in too."""
    begun: int
    """Of these opened again, also those handed in again."""
    done: int
    """Of these handed in again."""


def second_pass_progress(study: Study, protocol: str) -> SecondPassProgress:
    """How far the second pass of the people of a study is, under one protocol."""
    people = study.annotators.filter((pl.col("kind") == "human") & pl.col("excluded").is_null())["id"]
    annotations = study.annotations.filter(
        (pl.col("protocol") == protocol)
        & (pl.col("phase") == "work")
        & pl.col("about").is_null()
        & pl.col("excluded").is_null()
        & (pl.col("status") != "excluded")
        & pl.col("annotator").is_in(people.implode())
    )
    handed_in = pl.col("status") == "submitted"
    first = annotations.filter((pl.col("round") == 0) & handed_in)
    wanted = first.filter(pl.col("annotator").n_unique().over("document") > 1)
    again = annotations.filter(pl.col("round") > 0).join(wanted.select(_PAIR), on=_PAIR, how="semi")
    return SecondPassProgress(
        len(wanted), again.select(_PAIR).n_unique(), again.filter(handed_in).select(_PAIR).n_unique()
    )


# --- marks -------------------------------------------------------------------------------------------------------


def _count_mark_changes(before: pl.DataFrame, after: pl.DataFrame, again: pl.DataFrame) -> pl.DataFrame:
    """Counts for each annotator, in order of appearance, and for all."""
    old = before.select(*_PAIR, mark="id", **_mark_content_columns())
    named = after.select(*_PAIR, "id", from_="made_from", **_mark_content_columns()).explode(
        "from_", empty_as_null=True
    )
    both = named.join(old, left_on=[*_PAIR, "from_"], right_on=[*_PAIR, "mark"], suffix="_old", maintain_order="left")
    went_on = both.unique("id", keep="first", maintain_order=True).with_columns(
        boundaries=pl.col("words") != pl.col("words_old"),
        label=pl.col("called").ne_missing(pl.col("called_old")),
        answers=(pl.col("said") != pl.col("said_old")) | (pl.col("earlier") != pl.col("earlier_old")),
    )
    went_on = went_on.with_columns(changed=pl.any_horizontal("boundaries", "label", "answers"))
    added = after.filter(~pl.col("id").is_in(went_on["id"].implode()))
    gone = before.filter(~pl.col("id").is_in(both["from_"].implode()))
    lent = pl.col("made_from").list.len().fill_null(0) > 0
    tables = [
        again.group_by("annotator", maintain_order=True).agg(texts=pl.len()),
        _count_by_annotator(before, before=pl.len()),
        _count_by_annotator(after, after=pl.len()),
        _count_by_annotator(
            went_on, kept=(~pl.col("changed")).sum(), **{n: pl.col(n).sum() for n in CHANGE_COLUMNS[3:7]}
        ),
        _count_by_annotator(gone, withdrawn=pl.len()),
        _count_by_annotator(added, from_others=lent.sum(), new=(~lent).sum()),
    ]
    rows = tables[0]
    for table in tables[1:]:
        rows = rows.join(table, on="annotator", how="left", maintain_order="left")
    rows = rows.select("annotator", pl.col("texts", *CHANGE_COLUMNS).fill_null(0).cast(pl.Int64))
    return pl.concat([rows, rows.select(pl.lit(ALL).alias("annotator"), pl.col("texts", *CHANGE_COLUMNS).sum())])


def _mark_content_columns() -> dict[str, pl.Expr]:
    """What a mark says, each as one text, so that two can be compared: words, label, answers, antecedents."""
    places = pl.element().struct.json_encode()
    return {
        "words": pl.concat_str(
            pl.col("spans").list.eval(places).list.join(" "), pl.col("quotes").list.join("\0"), ignore_nulls=True
        ),
        "called": pl.col("label"),
        "said": pl.col("answers").map_elements(_canonical_answers_text, pl.String).fill_null("{}"),
        "earlier": pl.col("antecedents").list.eval(places).list.join(" ").fill_null(""),
    }


def _canonical_answers_text(answers: str) -> str:
    """The same answers are the same text, in whatever order they were given."""
    return to_json(dict(sorted(parse_json_object(answers).items()))).decode()


def _count_by_annotator(marks: pl.DataFrame, **counts: pl.Expr) -> pl.DataFrame:
    return marks.group_by("annotator", maintain_order=True).agg(**counts)


# --- agreement ---------------------------------------------------------------------------------------------------


def _alpha_change_findings(before: View, after: View, draws: int, seed: int) -> Sequence[Finding]:
    """Alpha on words before and after, and their difference over the same draws of texts."""
    texts = before.study.documents
    if texts.is_empty():
        return ()
    weights = study_and_resample_weights(len(texts), draws, seed)
    options = AgreeOptions(by_label=False)
    both = [build_rating_source(part, options) for part in (before, after)]
    first, last = (alphas.pooled_alpha(source.tallies[0], weights)[:, 0] for source in both)
    whys = [
        source.undefined_reason(ANY) if np.isnan(values[0]) else ""
        for source, values in zip(both, (first, last), strict=True)
    ]
    values = {
        "before": (first, whys[0]),
        "after": (last, whys[1]),
        "difference": (last - first, "; ".join(dict.fromkeys(filter(None, whys)))),
    }
    fields = {name: value for name, value in before.fields.items() if name != "rounds"}
    signature_fields = {"unit": "token", "tokens": options.tokens, **fields, "rounds": "first-and-last"}
    people = before.study.annotations["annotator"].n_unique()
    findings = []
    for which, (alphas_of_pass, why) in values.items():
        signature = Signature.from_fields(
            statistic="alpha",
            which=which,
            **signature_fields,
            annotators=people,
            documents=len(texts),
            draws=draws,
            seed=seed,
        )
        findings.append(
            Finding(
                {"measure": "alpha", "pass": which, "label": ANY},
                estimate_with_interval(
                    alphas_of_pass[0], alphas_of_pass[1:], signature, why, few_documents_reason(len(texts))
                ),
            )
        )
    return findings
