"""What a study holds, counted: documents, annotations, annotators, and marks by label, annotator and document meta."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from finecomb.core.errors import ParameterError, did_you_mean, param
from finecomb.core.frames import json_entry, json_entry_names, meta_entry
from finecomb.core.study import Study


def study_totals(study: Study) -> dict[str, int]:
    """How many of everything."""
    marks = study.scan_marks().group_by("annotation").agg(count=pl.len(), lost=(pl.col("spans").list.len() == 0).sum())
    sums = marks.select(pl.len().alias("annotations"), pl.col("count", "lost").sum())
    marked = sums.collect(engine="streaming").row(0, named=True)
    return {
        "documents": len(study.documents),
        "annotators": len(study.annotators),
        "annotations": len(study.annotations),
        "annotations without marks": len(study.annotations) - marked["annotations"],
        "marks": marked["count"],
        "marks not placed in the text": marked["lost"],
        "units": len(study.units),
    }


def document_meta_names(study: Study) -> list[str]:
    """Names of document meta that every `--by` can use."""
    return json_entry_names(study.documents["meta"])


def annotator_field_names(study: Study) -> list[str]:
    """Names of annotators' meta and survey answers, e.g. the `cell` that somebody was assigned to."""
    return list(
        dict.fromkeys([*json_entry_names(study.annotators["meta"]), *json_entry_names(study.annotators["survey"])])
    )


def annotator_field_expression(name: str) -> pl.Expr:
    """One entry of an annotator's meta, else of the survey."""
    return pl.coalesce(meta_entry(name), json_entry("survey", name)).alias(name)


def group_sort_key(key: Iterable[object]) -> tuple[tuple[int, float, str], ...]:
    """A sort key for the values of groups: numbers as numbers, then words, then what is missing.

    >>> sorted([("1.0",), ("0.4",), ("none",), ("10",), (None,)], key=group_sort_key)
    [('0.4',), ('1.0',), ('10',), ('none',), (None,)]
    """
    return tuple(_value_sort_key(value) for value in key)


def _value_sort_key(value: object) -> tuple[int, float, str]:
    if value is None:
        return 2, 0.0, ""
    try:
        return 0, float(str(value)), str(value)
    except ValueError:
        return 1, 0.0, str(value)


def sort_by_groups(table: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Rows of a table in the order of the groups that `by` makes."""
    keys = table.select(by).rows()
    return table[sorted(range(len(table)), key=lambda row: group_sort_key(keys[row]))]


ANNOTATOR_FIELDS = ("kind", "condition", "cell", "platform")
FACTOR_PREFIX = "cell."
"""What the name of a factor begins with: `cell.model` is the model that somebody was assigned to."""


def design_factor_names(study: Study) -> list[str]:
    """The factors of the cells that annotators were assigned to, as `--by` and `--where` name them."""
    return [f"{FACTOR_PREFIX}{name}" for name in json_entry_names(study.annotators["factors"])]


def annotation_rows_with_groups(study: Study, by: Sequence[str]) -> pl.DataFrame:
    """One row per annotation: annotation, document, annotator and `by`.

    `by` are columns of annotations, fields of annotators, document meta, then annotators' meta and survey answers.
    """
    columns = ("annotator", "document", "protocol", "round", "status", "phase")
    frame = study.annotations.select("id", *columns)
    names, factors = document_meta_names(study), design_factor_names(study)
    of_cells = [name for name in by if name in factors and name not in names]
    traits = [name for name in by if name in annotator_field_names(study) and name not in (*names, *of_cells)]
    traits = [name for name in traits if name not in (*columns, *ANNOTATOR_FIELDS)]
    kinds = study.annotators.select(
        pl.col("id").alias("annotator"),
        *ANNOTATOR_FIELDS,
        *(json_entry("factors", name.removeprefix(FACTOR_PREFIX)).alias(name) for name in of_cells),
        *map(annotator_field_expression, traits),
    )
    meta_columns = [name for name in by if name not in (*columns, *ANNOTATOR_FIELDS, *of_cells, *traits)]
    for name in meta_columns:
        if name not in names:
            if study.annotations.is_empty():
                raise ParameterError(
                    f"{param('by', name)}: there are no annotations to put into groups", parameter="by"
                )
            near = did_you_mean(name, [*names, *columns, *ANNOTATOR_FIELDS, *factors, *annotator_field_names(study)])
            raise ParameterError(f"{param('by', name)}: documents have no meta of that name{near}", parameter="by")
    texts = study.documents.select(pl.col("id").alias("document"), *[meta_entry(name) for name in meta_columns])
    joined = frame.join(kinds, on="annotator", how="left").join(texts, on="document", how="left")
    return joined.select(pl.col("id").alias("annotation"), *dict.fromkeys(["document", "annotator", *by]))


def counts_by_group(study: Study, by: Sequence[str] = ("model",)) -> pl.DataFrame:
    """Documents, annotations, marks and marks per annotation by the `by` columns: the shape of Scarecrow's Table 6."""
    rows = annotation_rows_with_groups(study, by)
    per = study.scan_marks().group_by("annotation").agg(marks=pl.len()).collect(engine="streaming")
    joined = rows.join(per, on="annotation", how="left").with_columns(pl.col("marks").fill_null(0))
    table = joined.group_by(list(by), maintain_order=True).agg(
        pl.col("document").n_unique().alias("documents"),
        pl.len().alias("annotations"),
        pl.col("marks").sum(),
        pl.col("marks").mean().alias("marks per annotation"),
    )
    return sort_by_groups(table, list(by))


def mark_counts_by_label(study: Study, by: Sequence[str] = ()) -> pl.DataFrame:
    """Marks by label (rows, in the order of the protocols) and `by` (columns); what nobody marked counts 0."""
    order = [label.name for protocol in study.protocols.values() for label in protocol.labels]
    groups = annotation_rows_with_groups(study, by).select("annotation", *by)
    rows = study.scan_marks().select("annotation", "label").join(groups.lazy(), on="annotation", how="left")
    named = rows.group_by("label", *by).agg(n=pl.len()).collect(engine="streaming")
    used = set(named["label"])
    order += sorted(label for label in used if label is not None and label not in order)
    named = named.with_columns(pl.col("label").fill_null("no type"))
    table = pl.DataFrame(
        {"label": [*dict.fromkeys(order), *(["no type"] if None in used else [])]}, schema={"label": pl.String}
    )
    table = table.join(
        named.group_by("label").agg(pl.col("n").sum().alias("marks")), on="label", how="left", maintain_order="left"
    )
    for column in by:
        wide = named.group_by("label", column).agg(pl.col("n").sum().alias("len"))
        unmarked = groups.select(column).join(wide, on=column, how="anti", nulls_equal=True).unique()
        wide = pl.concat([wide, unmarked], how="diagonal")  # a group without any mark has a column, too
        wide = sort_by_groups(wide, [column]).pivot(column, index="label", values="len")
        table = table.join(wide, on="label", how="left", maintain_order="left")
    return table.with_columns(pl.exclude("label").fill_null(0))
