"""Comparison of a judge's marks with people's: labels, severity, share of marks found, and cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.frames import meta_entry
from finecomb.core.results import Finding, Signature
from finecomb.core.span import TEXT_PART
from finecomb.statistics.inference.clusters import Clusters
from finecomb.statistics.inference.intervals import estimate_from_interval, weighted_intervals
from finecomb.statistics.inference.resampling import ratio_or_nan
from finecomb.statistics.judges.judge_agreement import find_text_clusters
from finecomb.statistics.judges.model_costs import cost_by_annotation
from finecomb.statistics.judges.text_values import PeopleAndJudges
from finecomb.statistics.selection.view import ANY_LABEL

Floats = NDArray[np.float64]
LENGTH_BINS = ((1, 5, "1 to 5 characters"), (6, 20, "6 to 20"), (21, 60, "21 to 60"), (61, math.inf, "more than 60"))
TEXT_THIRDS = ("first third", "second third", "last third")


@dataclass(frozen=True)
class MarkTable:
    """Marks of people and the judge on the texts that both annotated, with one row per mark."""

    rows: pl.DataFrame
    """Table of marks: annotator, document, label, start, end, size (length of the text), severity, system."""
    texts: tuple[str, ...]
    readers: Mapping[str, int]
    """Number of people who annotated each text."""
    judge: str
    fields: Mapping[str, object]
    clusters: Clusters
    """Clusters of the texts."""

    def sum_by_text(self, rows: pl.DataFrame, values: Floats | None = None, per_reader: bool = False) -> Floats:
        """Sum values over the marks of each text, (texts,). With `per_reader`, divide by its number of people."""
        position_by_text = {text: place for place, text in enumerate(self.texts)}
        positions = np.array([position_by_text[text] for text in rows["document"]], dtype=np.int64)
        weights = np.ones(len(positions)) if values is None else values
        total = np.bincount(positions, weights, len(self.texts)).astype(np.float64)
        return total / np.array([self.readers[text] for text in self.texts]) if per_reader else total


def build_mark_table(sides: PeopleAndJudges, judge: str, by: str = "model", cluster: str = "") -> MarkTable:
    """Return the located marks of people and of one judge on the texts that both annotated."""
    study = sides.seen.study
    people = study.annotations.filter(pl.col("annotator").is_in(list(sides.people)))
    readers = dict(people.group_by("document").agg(pl.col("annotator").n_unique()).iter_rows())
    read = sides.documents_read_by(judge)
    texts = tuple(text for text in study.documents["id"] if text in readers and text in read)
    located = study.spans.filter((pl.col("part") == TEXT_PART) & pl.col("document").is_in(list(texts)))
    located = located.filter(pl.col("annotator").is_in([*sides.people, judge]))
    marks = located.group_by("mark", "document", "annotator", "label", maintain_order=True).agg(
        start=pl.col("start").min(), end=pl.col("end").max()
    )
    # Severities that are not numbers become null and are left out.
    severity = pl.col("answers").str.json_path_match("$.severity").cast(pl.Float64, strict=False)
    marks = marks.join(study.marks.select(mark="id", severity=severity), on="mark", how="left", maintain_order="left")
    system = meta_entry(by).fill_null("") if sides.has_meta(by) else pl.lit("")
    documents = study.documents.select(document="id", size=pl.col("text").str.len_chars(), system=system)
    rows = marks.join(documents, on="document", how="left", maintain_order="left")
    fields = {"judge": judge, "people": len(sides.people), **sides.seen.fields, "who": None, "texts": len(texts)}
    clusters = find_text_clusters(sides, texts, cluster)
    return MarkTable(rows, texts, {text: readers[text] for text in texts}, judge, fields, clusters)


def _ratio_finding(
    table: MarkTable, columns: Mapping[str, object], top: Floats, bottom: Floats, why: str, is_share: bool = False
) -> Finding:
    """Estimate sum(top) / sum(bottom), with an interval over clusters; a share lies between 0 and 1."""
    value = float(top.sum() / bottom.sum()) if bottom.any() else math.nan
    about = {str(name): value for name, value in columns.items()}
    fields = {**table.fields, **table.clusters.signature_fields}
    signature = Signature.from_fields(statistic=about.pop("measure", ""), **about, **fields)
    # texts that only the judge marked have no denominator, but they count in the jackknife of a ratio
    interval = weighted_intervals(
        lambda weights: ratio_or_nan(weights @ top, weights @ bottom)[:, None],
        table.clusters,
        "proportion" if is_share else "number",
        bounds=(0.0, 1.0) if is_share else (0.0, math.inf),
    )[0]
    return Finding(columns, estimate_from_interval(value, interval, signature, why))


def mark_bias(table: MarkTable, labels: Sequence[str]) -> list[Finding]:
    """Estimate the number of judge marks per human mark, by label, and the judge's mean severity minus that of people.

    A ratio of 1 means equally many marks. The severity row is omitted unless both sides gave severities.
    """
    findings = []
    by_judge = pl.col("annotator") == table.judge
    for label in (ANY_LABEL, *labels):
        labelled = table.rows if label == ANY_LABEL else table.rows.filter(pl.col("label") == label)
        top = table.sum_by_text(labelled.filter(by_judge))
        bottom = table.sum_by_text(labelled.filter(~by_judge), per_reader=True)
        columns = {"measure": "marks for one of people's", "label": label}
        why = "people marked nothing" if label == ANY_LABEL else "people never used this label"
        findings.append(_ratio_finding(table, columns, top, bottom, why))
    rated = table.rows.filter(pl.col("severity").is_not_null())
    sides = [rated.filter(by_judge), rated.filter(~by_judge)]
    if not any(side.is_empty() for side in sides):
        sums = [(table.sum_by_text(side, side["severity"].to_numpy()), table.sum_by_text(side)) for side in sides]

        def evaluate(weights: Floats) -> Floats:
            judge, people = (ratio_or_nan(weights @ severities, weights @ counts) for severities, counts in sums)
            return (judge - people)[:, None]

        signature = Signature.from_fields(
            statistic="severity bias", **table.fields, **table.clusters.signature_fields
        )  # fmt: skip
        value = float(evaluate(np.ones((1, len(table.texts))))[0, 0])
        interval = weighted_intervals(evaluate, table.clusters, "number")[0]
        estimate = estimate_from_interval(value, interval, signature)
        findings.append(Finding({"measure": "severity less people's", "label": ANY_LABEL}, estimate))
    return findings


def found_mark_shares(table: MarkTable) -> list[Finding]:
    """Estimate the share of people's marks that the judge finds, by length, position, label and system.

    The judge finds a mark if one of its own marks overlaps it.
    """
    by_judge = pl.col("annotator") == table.judge
    spans: dict[str, list[tuple[int, int]]] = {}
    for document, start, end in table.rows.filter(by_judge).select("document", "start", "end").iter_rows():
        spans.setdefault(document, []).append((start, end))
    people = table.rows.filter(~by_judge)
    is_found = [
        any(first < end and start < last for first, last in spans.get(document, ()))
        for document, start, end in people.select("document", "start", "end").iter_rows()
    ]
    people = people.with_columns(found=pl.Series(is_found, dtype=pl.Boolean))
    length = pl.col("end") - pl.col("start")
    # An omission at the end of the text starts at the text length, which would fall into a fourth third.
    third = (3 * pl.col("start") // pl.max_horizontal("size", pl.lit(1))).clip(0, 2)
    parts: list[tuple[str, str, pl.Expr]] = [("all", ANY_LABEL, pl.lit(True))]
    parts += [("length", name, length.is_between(shortest, longest)) for shortest, longest, name in LENGTH_BINS]
    parts += [("place", name, third == index) for index, name in enumerate(TEXT_THIRDS)]
    for column in ("label", "system"):
        values = sorted({str(cell) for cell in people[column].drop_nulls()} - {""})
        parts += [(column, value, pl.col(column) == value) for value in values]
    findings = []
    for part, value, condition in parts:
        marks = people.filter(condition)
        columns = {"measure": "people's marks found", "part": part, "value of": value}
        top, bottom = (table.sum_by_text(rows, per_reader=True) for rows in (marks.filter("found"), marks))
        findings.append(_ratio_finding(table, columns, top, bottom, "people have no marks in this row", is_share=True))
    return findings


def cost_per_confirmed_error_rows(sides: PeopleAndJudges, table: MarkTable) -> list[dict[str, object]]:
    """Return seconds and cost of the judge and of people, per error that another annotator marked as well."""
    annotations = sides.seen.study.annotations.filter(pl.col("document").is_in(list(table.texts)))
    costs = cost_by_annotation(sides.seen.study)
    spans: dict[str, list[tuple[str, int, int]]] = {}
    for document, name, start, end in table.rows.select("document", "annotator", "start", "end").iter_rows():
        spans.setdefault(document, []).append((name, start, end))
    result = []
    for who, names in (("judge", [table.judge]), ("people", list(sides.people))):
        work = annotations.filter(pl.col("annotator").is_in(names))
        confirmed = sum(
            any(other != name and first < end and start < last for other, first, last in marks)
            for marks in spans.values()
            for name, start, end in marks
            if name in names
        )
        row: dict[str, object] = {"who": who, "texts read": len(work), "errors that others marked too": confirmed}
        amounts = {
            "seconds": [
                active if active is not None else total
                for active, total in work.select("active_seconds", "seconds").iter_rows()
            ],
            "cost": [costs.get(annotation) for annotation in work["id"]],
        }
        # A total over some annotations only would understate the cost.
        totals = {
            name: float(sum(values)) if values and None not in values else math.nan for name, values in amounts.items()
        }
        per_error = {
            f"{name} per error": total / confirmed if confirmed else math.nan for name, total in totals.items()
        }
        result.append({**row, **totals, **per_error})
    return result
