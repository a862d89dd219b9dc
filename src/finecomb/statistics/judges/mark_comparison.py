"""A judge's marks beside people's: how many of each label, how severe, what it misses and where, and at what cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.estimate import Finding, Signature
from finecomb.core.frames import meta_entry
from finecomb.core.span import TEXT
from finecomb.statistics.inference.resampling import estimate_with_interval, ratio_or_nan, study_and_resample_weights
from finecomb.statistics.judges.model_costs import cost_by_annotation
from finecomb.statistics.judges.text_values import PeopleAndJudges
from finecomb.statistics.selection.view import ANY

Floats = NDArray[np.float64]
LENGTHS = ((1, 5, "1 to 5 characters"), (6, 20, "6 to 20"), (21, 60, "21 to 60"), (61, math.inf, "more than 60"))
TEXT_THIRDS = ("first third", "second third", "last third")


@dataclass(frozen=True)
class MarkTable:
    """Marks of people and judge on the texts that both have read, one row for each mark."""

    rows: pl.DataFrame
    """annotator, document, label, start, end, size (of the text), severity, system."""
    texts: tuple[str, ...]
    readers: Mapping[str, int]
    """How many people read each text."""
    judge: str
    fields: Mapping[str, object]

    @property
    def text_positions(self) -> dict[str, int]:
        """Position of each text."""
        return {text: place for place, text in enumerate(self.texts)}

    def sum_by_text(self, rows: pl.DataFrame, values: Floats | None = None, per_reader: bool = False) -> Floats:
        """Sums over the marks of each text, (texts,); for people, divided by how many read it."""
        places = self.text_positions
        at = np.array([places[text] for text in rows["document"]], dtype=np.int64)
        weights = np.ones(len(at)) if values is None else values
        total = np.bincount(at, weights, len(self.texts)).astype(np.float64)
        return total / np.array([self.readers[text] for text in self.texts]) if per_reader else total


def build_mark_table(sides: PeopleAndJudges, judge: str, by: str = "model") -> MarkTable:
    """Marks with a place on the text, of people and of one judge, on the texts that both have read."""
    study = sides.seen.study
    people = study.annotations.filter(pl.col("annotator").is_in(list(sides.people)))
    readers = dict(people.group_by("document").agg(pl.col("annotator").n_unique()).iter_rows())
    read = sides.documents_read_by(judge)
    texts = tuple(text for text in study.documents["id"] if text in readers and text in read)
    located = study.spans.filter((pl.col("part") == TEXT) & pl.col("document").is_in(list(texts)))
    located = located.filter(pl.col("annotator").is_in([*sides.people, judge]))
    whole = located.group_by("mark", "document", "annotator", "label", maintain_order=True).agg(
        start=pl.col("start").min(), end=pl.col("end").max()
    )
    severity = pl.col("answers").str.json_path_match("$.severity").cast(pl.Float64, strict=False)
    whole = whole.join(study.marks.select(mark="id", severity=severity), on="mark", how="left", maintain_order="left")
    system = meta_entry(by).fill_null("") if sides.has_meta(by) else pl.lit("")
    documents = study.documents.select(document="id", size=pl.col("text").str.len_chars(), system=system)
    rows = whole.join(documents, on="document", how="left", maintain_order="left")
    fields = {"judge": judge, "people": len(sides.people), **sides.seen.fields, "who": None, "texts": len(texts)}
    return MarkTable(rows, texts, {text: readers[text] for text in texts}, judge, fields)


def _ratio_finding(
    table: MarkTable, columns: Mapping[str, object], top: Floats, bottom: Floats, why: str, draws: int, seed: int
) -> Finding:
    """sum(top) / sum(bottom) over texts, with its interval over texts."""
    weights = study_and_resample_weights(len(table.texts), draws, seed)
    values = ratio_or_nan(weights @ top, weights @ bottom)
    about = {str(name): value for name, value in columns.items()}
    signature = Signature.from_fields(
        statistic=about.pop("measure", ""), **about, **table.fields, draws=draws, seed=seed
    )
    return Finding(columns, estimate_with_interval(float(values[0]), values[1:], signature, why))


def label_bias(table: MarkTable, labels: Sequence[str], draws: int = 1000, seed: int = 0) -> list[Finding]:
    """The judge's marks for one of a person's, by label: 1 where it marks as many."""
    findings = []
    mine = pl.col("annotator") == table.judge
    for label in (ANY, *labels):
        labelled = table.rows if label == ANY else table.rows.filter(pl.col("label") == label)
        top, bottom = (
            table.sum_by_text(labelled.filter(mine)),
            table.sum_by_text(labelled.filter(~mine), per_reader=True),
        )
        columns = {"measure": "marks for one of people's", "label": label}
        findings.append(_ratio_finding(table, columns, top, bottom, "people never used this label", draws, seed))
    return findings


def severity_bias(table: MarkTable, draws: int = 1000, seed: int = 0) -> list[Finding]:
    """Mean severity of the judge's marks less that of people's; nothing where either gave none."""
    rows = table.rows.filter(pl.col("severity").is_not_null())
    mine = pl.col("annotator") == table.judge
    sides = [rows.filter(mine), rows.filter(~mine)]
    if any(side.is_empty() for side in sides):
        return []
    weights = study_and_resample_weights(len(table.texts), draws, seed)
    means = [
        ratio_or_nan(weights @ table.sum_by_text(side, side["severity"].to_numpy()), weights @ table.sum_by_text(side))
        for side in sides
    ]
    values = means[0] - means[1]
    signature = Signature.from_fields(statistic="severity bias", **table.fields, draws=draws, seed=seed)
    return [
        Finding(
            {"measure": "severity less people's", "label": ANY},
            estimate_with_interval(float(values[0]), values[1:], signature),
        )
    ]


def people_marks_with_found_column(table: MarkTable) -> pl.DataFrame:
    """People's marks with the column `found`: whether a mark of the judge shares a character with it."""
    mine = pl.col("annotator") == table.judge
    spans: dict[str, list[tuple[int, int]]] = {}
    for document, start, end in table.rows.filter(mine).select("document", "start", "end").iter_rows():
        spans.setdefault(document, []).append((start, end))
    people = table.rows.filter(~mine)
    is_found = [
        any(first < end and start < last for first, last in spans.get(document, ()))
        for document, start, end in people.select("document", "start", "end").iter_rows()
    ]
    return people.with_columns(found=pl.Series(is_found, dtype=pl.Boolean))


def found_mark_shares(table: MarkTable, draws: int = 1000, seed: int = 0) -> list[Finding]:
    """Share of people's marks that the judge finds: by length, place in the text, label and system."""
    people = people_marks_with_found_column(table)
    findings = []
    for name, part in _mark_subsets(people):
        top = table.sum_by_text(part.filter("found"), per_reader=True)
        columns = {"measure": "people's marks found", **name}
        bottom = table.sum_by_text(part, per_reader=True)
        findings.append(_ratio_finding(table, columns, top, bottom, "people marked nothing here", draws, seed))
    return findings


def _mark_subsets(people: pl.DataFrame) -> Iterator[tuple[dict[str, object], pl.DataFrame]]:
    yield {"part": "all", "value of": ANY}, people
    length = pl.col("end") - pl.col("start")
    for least, most, name in LENGTHS:
        yield {"part": "length", "value of": name}, people.filter((length >= least) & (length <= most))
    third = (3 * pl.col("start") // pl.max_horizontal("size", pl.lit(1))).clip(0, 2)
    for at, name in enumerate(TEXT_THIRDS):
        yield {"part": "place", "value of": name}, people.filter(third == at)
    for column in ("label", "system"):
        for value in sorted({str(cell) for cell in people[column].drop_nulls()} - {""}):
            yield {"part": column, "value of": value}, people.filter(pl.col(column) == value)


def cost_per_confirmed_error_rows(sides: PeopleAndJudges, table: MarkTable) -> list[dict[str, object]]:
    """Seconds and cost of judge and people per error that somebody else marked too, where they are known."""
    annotations = sides.seen.study.annotations.filter(pl.col("document").is_in(list(table.texts)))
    costs = cost_by_annotation(sides.seen.study)
    rows = []
    for who, names in (("judge", [table.judge]), ("people", list(sides.people))):
        work = annotations.filter(pl.col("annotator").is_in(names))
        confirmed = _confirmed_mark_count(table, set(names))
        totals = {
            "seconds": _total_if_all_known(work, _annotation_seconds),
            "cost": _total_if_all_known(work, lambda row: costs.get(str(row["id"]))),
        }
        per = {f"{name} per error": total / confirmed if confirmed else math.nan for name, total in totals.items()}
        rows.append({"who": who, "texts read": len(work), "errors that others marked too": confirmed, **totals, **per})
    return rows


def _total_if_all_known(annotations: pl.DataFrame, value: Callable[[dict[str, object]], float | None]) -> float:
    values = [value(row) for row in annotations.iter_rows(named=True)]
    amounts = [amount for amount in values if amount is not None]
    return float(sum(amounts)) if amounts and len(amounts) == len(values) else math.nan


def _annotation_seconds(row: dict[str, object]) -> float | None:
    seconds = row["active_seconds"] if row["active_seconds"] is not None else row["seconds"]
    return None if seconds is None else float(str(seconds))


def _confirmed_mark_count(table: MarkTable, names: set[str]) -> int:
    """Marks of these annotators that share a character with a mark of somebody else."""
    spans: dict[str, list[tuple[str, int, int]]] = {}
    for row in table.rows.select("document", "annotator", "start", "end").iter_rows():
        spans.setdefault(row[0], []).append(row[1:])
    return sum(
        any(other != name and first < end and start < last for other, first, last in marks)
        for marks in spans.values()
        for name, start, end in marks
        if name in names
    )
