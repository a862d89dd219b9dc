"""What a merge says about its annotators: confusion, rates by system, agreement, cost, and gold from fewer of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.core.frames import meta_entry
from finecomb.core.study import Study
from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.agreement.minimal_repairs import Repairs
from finecomb.statistics.agreement.rating_matrix import CONVENTIONS, NO_ERROR
from finecomb.statistics.gold.gold_merge import MAJORITY, SPLIT, Gold, MinVotes, SpanSize, gold, required_vote_count
from finecomb.statistics.gold.scores import Score, bootstrap_score_ratios, build_score, score
from finecomb.statistics.inference.resampling import (
    estimate_with_interval,
    no_interval_reason,
    ratio_or_nan,
    resampled_sums,
)
from finecomb.statistics.measures.study_counts import document_meta_names
from finecomb.statistics.selection.view import NO_TYPE, View, as_view

Row = dict[str, object]
TextCounts = NDArray[np.float64]  # (texts,)
AGREEMENTS = ("kappa-fleiss", "kappa-fleiss-variable", "alpha")
_MAX_SUBSETS = 200


def _error_labels(merged: Gold) -> list[str]:
    """Labels that an error has or an annotator gave it, in the order of the protocol."""
    used = {*merged.kept_errors["label"], *_label_votes_by_error(merged)["label"]}
    return [name for name in merged.view.categories if name in used and name != NO_TYPE]


def _label_votes_by_error(merged: Gold) -> pl.DataFrame:
    """Votes for each label of each error in gold: cluster, label, weight, majority."""
    majority = merged.kept_errors.select("cluster", majority="label")
    given = merged.clusters.join(majority, on="cluster")
    return given.group_by("cluster", "label", "majority", maintain_order=True).agg(pl.col("weight").sum())


def errors_by_label_table(merged: Gold) -> list[Row]:
    """Errors in gold by label: how many, how many everybody agreed on, and votes."""
    errors = merged.kept_errors
    rows: list[Row] = []
    for label in [*_error_labels(merged), *_untyped_labels(merged), "any"]:
        labelled = errors if label == "any" else errors.filter(pl.col("label") == label)
        agreed = labelled.filter((pl.col("top") == pl.col("readers")) & (pl.col("label") != SPLIT))
        whole = len(labelled.filter(pl.col("votes") >= pl.col("readers")))
        rows.append(
            {"label": label, "errors": len(labelled), "marked by all": whole, "all agree on the label": len(agreed)}
        )
    return rows


def _untyped_labels(merged: Gold) -> list[str]:
    """`no type` and `split`, where errors have them."""
    return [name for name in (NO_TYPE, SPLIT) if name in set(merged.kept_errors["label"])]


def label_confusion_table(merged: Gold) -> list[Row]:
    """Table 1 of Thomson and Reiter (2020): the majority's label in rows, what the minority said in columns.

    `all agree` counts errors; every other cell counts annotators who said something else, `no error` those who read the
    text and did not mark it. In the row `split` there is no majority, so all annotators are counted.
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
        agreed = labelled.filter((pl.col("top") == pl.col("readers")) & (pl.col("label") != SPLIT))
        row: Row = {"label": name, "total": len(labelled), "all agree": len(agreed)}
        row |= {label: int(other_labels.get(label, 0)) if label != name else None for label in [*labels, NO_TYPE]}
        rows.append(row | {NO_ERROR: int((labelled["readers"] - labelled["votes"]).sum())})
    return rows


def error_rates_table(merged: Gold, by: str = "model", draws: int = 1000, seed: int = 0) -> list[Finding]:
    """Table 2: errors per text of each system, by label; `total` is all errors whose label has a majority."""
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
            counted = _errors_per_text(merged, system_texts["document"], label)
            signature = Signature.from_fields(
                statistic="rate",
                label=label,
                where=f"{by}={system}",
                documents=len(system_texts),
                draws=draws,
                seed=seed,
            )
            columns: Row = {by: system, "label": label, "errors": int(counted.sum()), "texts": len(system_texts)}
            findings.append(Finding(columns, _mean_errors_estimate(counted, signature, draws, seed)))
    return findings


def _mean_errors_estimate(counted: TextCounts, signature: Signature, draws: int, seed: int) -> Estimate:
    sums = np.stack([counted, np.ones(len(counted))], axis=1)
    totals = resampled_sums(sums, draws, np.random.default_rng(seed))
    return estimate_with_interval(
        float(counted.mean()), ratio_or_nan(*totals.T), signature, missing_interval_reason=no_interval_reason(counted)
    )


def _errors_per_text(merged: Gold, documents: pl.Series, label: str) -> TextCounts:
    chosen = pl.col("label") != SPLIT if label == "total" else pl.col("label") == label
    counts = dict(merged.kept_errors.filter(chosen).group_by("document").len().iter_rows())
    return np.array([counts.get(id, 0) for id in documents], dtype=np.float64)


def agreement_table(merged: Gold, draws: int = 1000, seed: int = 0) -> list[Finding]:
    """Kappa and alpha on the errors, under every convention; which one is meant stands in each row and signature."""
    findings = []
    for convention in CONVENTIONS:
        options = {"level": "item", "by_label": False, "align": merged.align, "convention": convention}
        for finding in agree(merged.view, AGREEMENTS, **options, draws=draws, seed=seed):  # type: ignore[arg-type]
            columns = {"measure": finding.columns["measure"], "convention": convention}
            findings.append(Finding(columns, finding.estimate))
    return findings


def annotator_scores_table(merged: Gold, draws: int = 1000, seed: int = 0) -> list[Score]:
    """Each annotator against the gold they helped to make, by clusters: marks that passed, errors they found.

    Everybody's own vote is in gold, so these figures flatter; whom gold was not made from is scored by `score`.
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
        signature = Signature.from_fields(
            statistic="annotator-against-gold", align=merged.align, documents=len(texts), draws=draws, seed=seed
        )
        rows.append(
            build_score(sums, bootstrap_score_ratios(sums[None], draws, seed)[0], {"annotator": name}, signature)
        )
    return rows


def cost_table(merged: Gold) -> list[Finding]:
    """What gold cost: pay and fees per text and per error, and hours of work per text where times are known."""
    settings, read = merged.view.study.settings, merged.view.study.annotations
    texts, errors = read["document"].n_unique(), len(merged.kept_errors)
    paid = (settings.price or math.nan) * (1 + settings.fees) * len(read)
    hours = float(read["seconds"].sum()) / 3600 if read["seconds"].null_count() == 0 else math.nan
    no_price = "" if settings.price is not None else "study.yaml gives no price"
    no_time = "" if not math.isnan(hours) else "not all annotations say how long they took"
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
    """What was normalised, and by which rule."""
    return [change._asdict() for change in merged.changes]


def undecided_errors_table(merged: Gold) -> list[Row]:
    """What is left for adjudication: errors without a majority label, and errors with too few votes."""
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
    repairs: Repairs = "declared",
) -> list[Score]:
    """Gold from each subset of `size` annotators against gold from all of them (section 3.4: three against five).

    Each gold has its own majority unless `min_votes` is a number, which then holds for both. One row for each subset,
    by `optimal` matching with labels ignored, and a last row `all subsets` that pools them. Of more than 200 subsets
    as many are drawn.
    """
    view = as_view(study)
    people = sorted(view.study.annotations["annotator"].unique())
    least = required_vote_count(1, min_votes)
    if not least <= size < len(people):
        raise FinecombError(f"subsets of {size}: expected from {least} (the votes needed) to {len(people) - 1}")
    whole = gold(view, min_votes, align, spans, repairs=repairs)
    rows, sums = [], []
    for names in _annotator_subsets(people, size, seed):
        part = replace(view, study=view.study.filter_annotations(pl.col("annotator").is_in(names)))
        fewer = gold(part, min_votes, align, spans, repairs=repairs)
        scores = score(whole.study, fewer.study, "optimal", by=(), unread="leave-out", draws=draws, seed=seed)
        first = scores.rows[0]
        rows.append(replace(first, columns={"annotators": ", ".join(names)}))
        sums.append(scores.judged[0].sums[0])
    pooled = Signature.from_fields(statistic="subsets", size=size, subsets=len(rows), min_votes=min_votes, seed=seed)
    whole_sums = np.concatenate(sums)
    nothing = bootstrap_score_ratios(whole_sums[None], 0, seed)[
        0
    ]  # subsets share texts, so an interval would be too narrow
    return [*rows, build_score(whole_sums, nothing, {"annotators": f"all {len(rows)} subsets"}, pooled)]


def _annotator_subsets(people: Sequence[str], size: int, seed: int) -> Iterator[tuple[str, ...]]:
    if math.comb(len(people), size) <= _MAX_SUBSETS:
        yield from itertools.combinations(people, size)
        return
    rng = np.random.default_rng(seed)
    for _ in range(_MAX_SUBSETS):
        yield tuple(people[at] for at in sorted(rng.choice(len(people), size, replace=False)))


# --- our alignment beside the source's ---------------------------------------------------------------------------


def count_recovered_errors(given: Gold, ours: Gold) -> tuple[int, int]:
    """How many errors of `given` are in `ours` as well, made from exactly the same marks; and how many there are."""
    source_errors, our_errors = (
        {frozenset(ids) for ids in merged.study.marks["made_from"]} for merged in (given, ours)
    )
    return len(source_errors & our_errors), len(source_errors)


def recovered_error_notes(merged: Gold, study: Study | View) -> list[str]:
    """Where the source says which marks are one error, but another alignment was asked for: how far the two agree."""
    view = as_view(study)
    if merged.align == "item" or view.study.marks["item"].null_count() == len(view.study.marks):
        return []
    votes = merged.signature["min_votes"]
    both, total = count_recovered_errors(gold(view, MAJORITY if votes == MAJORITY else int(votes), "item"), merged)
    share = f"{both:,} of the {total:,} errors that the source's items give come out mark for mark"
    return [f"aligned by {merged.align}, {share}"]
