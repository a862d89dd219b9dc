"""Tables about a merge: label confusion, error rates by system, agreement, cost, and gold from fewer annotators."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.core.frames import meta_entry
from finecomb.core.results import Estimate, Finding, Signature
from finecomb.core.study import Study, document_meta_names
from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.agreement.minimal_repairs import RepairMode
from finecomb.statistics.agreement.rating_matrix import NO_ERROR, RATING_CONVENTIONS
from finecomb.statistics.gold.gold_merge import (
    MAJORITY,
    SPLIT_LABEL,
    Gold,
    MinVotes,
    SpanSize,
    merge_into_gold,
    required_vote_count,
)
from finecomb.statistics.gold.scores import Score, build_score, score_judges_against_gold
from finecomb.statistics.inference.clusters import Clusters
from finecomb.statistics.inference.intervals import estimate_from_interval, ratio_intervals
from finecomb.statistics.selection.view import NO_TYPE_LABEL, View, as_view

Row = dict[str, object]
TextCounts = NDArray[np.float64]  # (texts,)
AGREEMENT_MEASURES = ("kappa-fleiss", "kappa-fleiss-variable", "alpha")
_MAX_SUBSETS = 200


def _error_labels(merged: Gold) -> list[str]:
    """Return the labels of errors and of votes for errors, in the order of the protocol."""
    used = {*merged.kept_errors["label"], *_label_votes_by_error(merged)["label"]}
    return [name for name in merged.view.categories if name in used and name != NO_TYPE_LABEL]


def _label_votes_by_error(merged: Gold) -> pl.DataFrame:
    """Return the votes for each error in gold by label, with the columns cluster, label, weight and majority."""
    majority = merged.kept_errors.select("cluster", majority="label")
    given = merged.clusters.join(majority, on="cluster")
    return given.group_by("cluster", "label", "majority", maintain_order=True).agg(pl.col("weight").sum())


def errors_by_label_table(merged: Gold) -> list[Row]:
    """Count the errors in gold by label, with the number of errors marked by all annotators, and the votes."""
    errors = merged.kept_errors
    rows: list[Row] = []
    for label in [*_error_labels(merged), *_untyped_labels(merged), "any"]:
        labelled = errors if label == "any" else errors.filter(pl.col("label") == label)
        agreed = labelled.filter((pl.col("top") == pl.col("readers")) & (pl.col("label") != SPLIT_LABEL))
        marked_by_all = len(labelled.filter(pl.col("votes") >= pl.col("readers")))
        rows.append(
            {
                "label": label,
                "errors": len(labelled),
                "marked by all": marked_by_all,
                "all agree on the label": len(agreed),
            }
        )
    return rows


def _untyped_labels(merged: Gold) -> list[str]:
    """Return the labels `no type` and `split`, as far as they occur among the errors."""
    return [name for name in (NO_TYPE_LABEL, SPLIT_LABEL) if name in set(merged.kept_errors["label"])]


def label_confusion_table(merged: Gold) -> list[Row]:
    """Return Table 1 of Thomson and Reiter (2020): majority labels in rows, minority labels in columns.

    `all agree` counts errors. All other cells count annotators who gave a different label, and `no error` counts
    annotators of the text who did not mark the error. The row `split` has no majority, so all annotators are counted.
    """
    votes, errors = _label_votes_by_error(merged), merged.kept_errors
    minority = votes.filter(pl.col("label") != pl.col("majority"))
    labels = _error_labels(merged)
    rows: list[Row] = []
    for name in [*labels, *_untyped_labels(merged)]:
        labelled = errors.filter(pl.col("label") == name)
        other_labels = dict(
            minority.filter(pl.col("majority") == name).group_by("label").agg(pl.col("weight").sum()).iter_rows()
        )
        agreed = labelled.filter((pl.col("top") == pl.col("readers")) & (pl.col("label") != SPLIT_LABEL))
        row: Row = {"label": name, "total": len(labelled), "all agree": len(agreed)}
        row |= {label: int(other_labels.get(label, 0)) if label != name else None for label in [*labels, NO_TYPE_LABEL]}
        rows.append(row | {NO_ERROR: int((labelled["readers"] - labelled["votes"]).sum())})
    return rows


def error_rates_table(merged: Gold, by: str = "model", draws: int = 1000, seed: int = 0) -> list[Finding]:
    """Estimate Table 2: errors per text by system and label. `total` counts all errors that have a majority label."""
    texts = merged.study.submitted_work().annotations.select("document").unique(maintain_order=True)
    if by in document_meta_names(merged.study):
        texts = texts.join(
            merged.study.documents.select(meta_entry(by), document="id"), on="document", maintain_order="left"
        )
        groups = texts.partition_by(by, as_dict=True, maintain_order=True)
    else:
        groups = {("all",): texts}
    findings = []
    for (system,), system_texts in sorted(groups.items(), key=lambda pair: str(pair[0])):
        for label in ["total", *_error_labels(merged), *_untyped_labels(merged)]:
            chosen = pl.col("label") != SPLIT_LABEL if label == "total" else pl.col("label") == label
            counts = dict(merged.kept_errors.filter(chosen).group_by("document").len().iter_rows())
            counted = np.array([counts.get(id, 0) for id in system_texts["document"]], dtype=np.float64)
            signature = Signature.from_fields(
                statistic="rate",
                label=label,
                where=f"{by}={system}",
                documents=len(system_texts),
            )
            columns: Row = {by: system, "label": label, "errors": int(counted.sum()), "texts": len(system_texts)}
            ones = np.ones((len(counted), 1))
            interval = ratio_intervals(counted[:, None], ones, bounds=(0.0, math.inf), noun="text")[0]
            findings.append(Finding(columns, estimate_from_interval(float(counted.mean()), interval, signature)))
    return findings


def error_agreement_table(merged: Gold, draws: int = 1000, seed: int = 0) -> list[Finding]:
    """Compute kappa and alpha on the errors under each rating convention, which the row and the signature name."""
    findings = []
    for convention in RATING_CONVENTIONS:
        options = {"level": "item", "by_label": False, "align": merged.align, "convention": convention}
        for finding in agree(merged.view, AGREEMENT_MEASURES, **options, draws=draws, seed=seed):  # type: ignore[arg-type]
            columns = {"measure": finding.columns["measure"], "convention": convention}
            findings.append(Finding(columns, finding.estimate))
    return findings


def annotator_scores_table(merged: Gold, draws: int = 1000, seed: int = 0) -> list[Score]:
    """Score each annotator against the gold they contributed to: share of marks kept and share of errors found.

    These scores are optimistic, because the votes of the annotator are part of gold. Use `score_judges_against_gold`
    for annotators who did not contribute.
    """
    read = merged.view.study.annotations
    passed = merged.clusters.join(merged.kept_errors.select("cluster"), on="cluster", how="semi")
    rows = []
    for name in sorted(read["annotator"].unique()):
        by_person = pl.col("annotator") == name
        texts = read.filter(by_person)["document"].unique(maintain_order=True)
        right = passed.filter(by_person)
        counts = [merged.kept_errors, merged.clusters.filter(by_person), right.unique("cluster"), right]
        per_text = [dict(table.group_by("document").len().iter_rows()) for table in counts]
        sums = np.array([[table.get(id, 0) for table in per_text] for id in texts], dtype=np.float64)
        signature = Signature.from_fields(statistic="annotator-against-gold", align=merged.align, documents=len(texts))
        rows.append(build_score(sums, {"annotator": name}, signature))
    return rows


def gold_cost_table(merged: Gold) -> list[Finding]:
    """Return the cost of gold: pay and fees per text and per error, and hours per text if times are known."""
    settings, read = merged.view.study.settings, merged.view.study.annotations
    texts, errors = read["document"].n_unique(), len(merged.kept_errors)
    paid = (settings.price or math.nan) * (1 + settings.fees) * len(read)
    hours = float(read["seconds"].sum()) / 3600 if read["seconds"].null_count() == 0 else math.nan
    no_price = "" if settings.price is not None else "study.yaml has no price"
    no_time = "" if not math.isnan(hours) else "some annotations have no time"
    kinds = [
        (f"{settings.effective_currency} per text", paid / texts, no_price),
        (
            f"{settings.effective_currency} per error",
            paid / errors if errors else math.nan,
            no_price or ("" if errors else "no errors"),
        ),
        ("hours per text", hours / texts, no_time),
    ]
    signature = Signature.from_fields(statistic="cost", price=settings.price, fees=settings.fees, annotations=len(read))
    return [
        Finding(
            {"measure": name, "texts": texts, "errors": errors}, Estimate(value, math.nan, math.nan, signature, why)
        )
        for name, value, why in kinds
    ]


def normalisation_changes_table(merged: Gold) -> list[Row]:
    """Return the changes of the normalisation as table rows."""
    return [change._asdict() for change in merged.changes]


def undecided_errors_table(merged: Gold) -> list[Row]:
    """Return the errors left for adjudication: without a majority label or with too few votes."""
    marks = merged.view.study.marks.select(pl.col("quotes").list.join(" … "), mark="id")
    rows = merged.undecided_errors.join(
        merged.clusters.select("cluster", "mark", "annotator", given="label"), on="cluster"
    )
    rows = rows.join(marks, on="mark", how="left", maintain_order="left")
    grouped = rows.group_by("cluster", "document", "votes", "readers", "kept", maintain_order=True).agg(
        said=pl.concat_str("annotator", pl.lit(": "), "given", pl.lit(" “"), "quotes", pl.lit("”")).str.join("; ")
    )
    why = pl.when("kept").then(pl.lit("no majority label")).otherwise(pl.lit("too few votes"))
    undecided = grouped.sort("cluster").select("document", why.alias("why undecided"), "votes", "readers", "said")
    return list(undecided.iter_rows(named=True))


# --- gold from fewer annotators ----------------------------------------------------------------------------------


def annotator_subset_scores_table(
    study: Study | View,
    size: int,
    min_votes: MinVotes = MAJORITY,
    align: str = "auto",
    spans: SpanSize = "majority",
    draws: int = 1000,
    seed: int = 0,
    repairs: RepairMode = "declared",
) -> list[Score]:
    """Score gold from each subset of `size` annotators against gold from all annotators.

    Thomson and Reiter (2020), section 3.4, compare three annotators with five. Each gold uses its own majority, unless
    `min_votes` is a number, which then applies to both. There is one row per subset, with `optimal` matching and labels
    ignored, and a last row that pools all subsets. If there are more than 200 subsets, 200 are drawn at random.
    """
    view = as_view(study)
    people = sorted(view.study.annotations["annotator"].unique())
    required = required_vote_count(1, min_votes)
    if not required <= size < len(people):
        raise FinecombError(
            f"the subset size must be at least {required} (the required votes) and less than the number of annotators "
            f"({len(people)}), found {size}"
        )
    full_gold = merge_into_gold(view, min_votes, align, spans, repairs=repairs)
    rows, sums = [], []
    for names in _annotator_subsets(people, size, seed):
        part = replace(view, study=view.study.filter_annotations(pl.col("annotator").is_in(names)))
        fewer = merge_into_gold(part, min_votes, align, spans, repairs=repairs)
        scores = score_judges_against_gold(
            full_gold.study, fewer.study, "optimal", by=(), unread="leave-out", draws=draws, seed=seed
        )
        first = scores.rows[0]
        rows.append(replace(first, columns={"annotators": ", ".join(names)}))
        sums.append(scores.judged[0].sums[0])
    pooled = Signature.from_fields(statistic="subsets", size=size, subsets=len(rows), min_votes=min_votes, seed=seed)
    whole_sums = np.concatenate(sums)
    # Subsets share texts, so the pooled row has no interval: all its rows are one cluster.
    one = Clusters("set of texts", np.zeros(len(whole_sums), dtype=np.int64))
    columns = {"annotators": f"all {len(rows)} subsets"}
    return [*rows, build_score(whole_sums, columns, pooled, clusters=one)]


def _annotator_subsets(people: Sequence[str], size: int, seed: int) -> Iterator[tuple[str, ...]]:
    if math.comb(len(people), size) <= _MAX_SUBSETS:
        yield from itertools.combinations(people, size)
        return
    rng = np.random.default_rng(seed)
    for _ in range(_MAX_SUBSETS):
        yield tuple(people[index] for index in sorted(rng.choice(len(people), size, replace=False)))


# --- comparison with the source's items --------------------------------------------------------------------------


def count_recovered_errors(given: Gold, ours: Gold) -> tuple[int, int]:
    """Return how many errors of `given` are in `ours` with exactly the same marks, and how many errors `given` has."""
    source_errors, our_errors = (
        {frozenset(ids) for ids in merged.study.marks["made_from"]} for merged in (given, ours)
    )
    return len(source_errors & our_errors), len(source_errors)


def recovered_error_notes(merged: Gold, study: Study | View) -> list[str]:
    """Return a note on how many of the source's items the alignment recovered, if it did not use the items."""
    view = as_view(study)
    if merged.align == "item" or view.study.marks["item"].null_count() == len(view.study.marks):
        return []
    votes = merged.signature["min_votes"]
    both, total = count_recovered_errors(
        merge_into_gold(view, MAJORITY if votes == MAJORITY else int(votes), "item"), merged
    )
    share = f"{both:,} of the {total:,} errors by the source's items are reproduced exactly"
    return [f"with alignment by {merged.align}, {share}"]
