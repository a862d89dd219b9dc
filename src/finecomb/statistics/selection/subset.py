"""Selection of the documents, annotators, annotations and marks for which a condition holds.

Each part of an outermost `and` is applied separately. A part that names a field of marks (`label`, an answer such as
`severity`, `confidence`, ...) removes marks but keeps their annotations, since an annotation without marks is data. Any
other part removes whole annotations. Field names are looked up in this order:

| level | fields |
|---|---|
| annotation | `annotator`, `document`, `protocol`, `round`, `phase`, `status`, `about`, `seconds`, `excluded` |
| annotator | `kind`, `condition`, `platform`, `cell`, and names of their survey and meta |
| document | names of document meta |
| annotation | answers to questions about the whole text, e.g. `rating` |
| mark | `label`, `quote`, `confidence`, `votes`, `basis`, `item`, and answers to a label's questions, e.g. `severity` |

`document.NAME`, `annotator.NAME`, `annotation.NAME` and `mark.NAME` resolve a name that several levels have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import polars as pl

from finecomb.core.errors import did_you_mean
from finecomb.core.frames import group_sort_key, json_entry, json_entry_names, parse_json_object
from finecomb.core.study import DESIGN_FACTOR_PREFIX, Study, design_factor_names
from finecomb.statistics.selection.conditions import (
    CombinedCondition,
    Condition,
    ConditionError,
    ConditionField,
    ConditionValue,
    FieldComparison,
    Negation,
    condition_fields,
    parse_condition,
    parse_name_value_condition,
    split_into_conjuncts,
)

StudyTable = Literal["annotation", "annotator", "document", "mark"]
MaskedTable = Literal["annotation", "document", "mark"]
Where = str | Sequence[str | tuple[str, str]]
"""One condition or several. A pair consists of a field name and a value."""
_COLUMNS_BY_TABLE: Mapping[StudyTable, tuple[str, ...]] = {
    "annotation": ("annotator", "document", "protocol", "round", "phase", "status", "about", "seconds", "readers"),
    "annotator": ("kind", "condition", "cell", "platform"),
    "document": (),
    "mark": ("label", "confidence", "votes", "basis", "item"),
}
_JSON_COLUMNS_BY_TABLE: Mapping[StudyTable, tuple[str, ...]] = {
    "annotation": ("answers", "meta"),
    "annotator": ("survey", "meta"),
    "document": ("meta",),
    "mark": ("answers", "meta"),
}
_TABLE_LOOKUP_ORDER: tuple[StudyTable, ...] = ("annotation", "annotator", "document", "mark")


def required_mark_columns(where: Sequence[str], drop: Sequence[str]) -> list[str]:
    """Return the columns of marks, other than the ID, that conditions and `drop` need."""
    named_columns = [
        column for column in _COLUMNS_BY_TABLE["mark"] if column != "label" and any(column in text for text in where)
    ]
    quotes = ["quotes"] if any("quote" in text for text in where) else []
    protocol = ["protocol"] if drop else []
    return ["annotation", "document", "annotator", *protocol, "label", "answers", "meta", *named_columns, *quotes]


def filter_study_by_condition(study: Study, where: str) -> Study:
    """Keep the annotations and marks for which the condition `where` holds; documents and annotators stay unchanged."""
    values = _FieldValues(study, where)
    masks: dict[MaskedTable, list[pl.Series]] = {"mark": [], "annotation": []}
    for part in split_into_conjuncts(
        parse_condition(where)
    ):  # each part is evaluated on the full study, so that their order does not matter
        rows: MaskedTable = (
            "mark"
            if any(values.resolve_field(field)[0] == "mark" for field in condition_fields(part))
            else "annotation"
        )
        masks[rows].append(_condition_mask(part, values, rows))
    chosen = study if not masks["mark"] else replace(study, marks=study.marks.filter(*masks["mark"]))
    return chosen if not masks["annotation"] else chosen.filter_annotations(pl.all_horizontal(masks["annotation"]))


def extract_substudy(study: Study, where: str) -> Study:
    """Keep the part of a study for which the condition holds; remove documents and annotators outside this part.

    A condition on documents removes documents whether or not they were annotated. Otherwise, a document or annotator is
    removed if the condition removes all of its annotations.
    """
    values = _FieldValues(study, where)
    documents = study.documents
    for part in split_into_conjuncts(parse_condition(where)):
        if all(values.resolve_field(field)[0] == "document" for field in condition_fields(part)):
            documents = documents.filter(
                pl.col("id").is_in(study.documents.filter(_condition_mask(part, values, "document"))["id"].implode())
            )
    filtered = filter_study_by_condition(study, where) if len(study.annotations) else study
    before, after = study.annotations, filtered.annotations.filter(pl.col("document").is_in(documents["id"].implode()))
    documents = documents.filter(_has_annotations_left_expression("document", before, after))
    annotators = study.annotators.filter(_has_annotations_left_expression("annotator", before, after))
    substudy = replace(filtered, documents=documents, annotators=annotators)
    return substudy.filter_annotations(pl.col("id").is_in(after["id"].implode()))


def split_study(study: Study, field: str) -> dict[str, Study]:
    """Split a study into parts by the values of a field, in sorted order; items without a value are in no part."""
    values = _FieldValues(study, field)
    table, name = values.resolve_field(ConditionField(field, 0))
    column = _table_frame(study, table).select(_field_expression(study, table, name).alias("value"))["value"]
    if table == "annotator":  # annotators without annotations get no part
        column = values.field_column(ConditionField(field, 0), "annotation")
    present = sorted(column.drop_nulls().unique().to_list(), key=lambda value: group_sort_key([value]))
    return {value: extract_substudy(study, *conditions_from_pairs({field: [value]})) for value in present}


def _has_annotations_left_expression(column: str, before: pl.DataFrame, after: pl.DataFrame) -> pl.Expr:
    """Build an expression that is true for documents or annotators that have annotations left or never had any."""
    had, has = (frame[column].unique().implode() for frame in (before, after))
    return ~pl.col("id").is_in(had) | pl.col("id").is_in(has)


def join_conditions(where: Where) -> str:
    """Join several conditions with `and`; pairs that share a name match any of their values.

    >>> join_conditions(["model=a", "model=b", "top_p < 1"])
    '(`model` in ("a", "b")) and (top_p < 1)'
    """
    conditions = [where] if isinstance(where, str) else list(where)
    pairs: dict[str, list[str]] = {}
    texts: list[str] = []
    for text in filter(None, conditions):
        pair = parse_name_value_condition(text) if isinstance(text, str) else text
        if pair:
            pairs.setdefault(pair[0], []).append(pair[1])
        else:
            texts.append(str(text))
    if len(conditions) == 1 and isinstance(conditions[0], str):
        return conditions[0]
    parts = [*conditions_from_pairs(pairs), *texts]
    return parts[0] if len(parts) == 1 else " and ".join(f"({part})" for part in parts)


def has_annotator_condition(where: str) -> bool:
    """Return True if a condition selects annotators or kinds of annotators."""
    annotator_fields = {"kind", "annotator", "annotator.kind", "annotation.annotator"}
    return bool(where) and any(field.name in annotator_fields for field in condition_fields(parse_condition(where)))


def _table_frame(study: Study, table: StudyTable) -> pl.DataFrame:
    frame: pl.DataFrame = getattr(study, f"{table}s")
    return frame


class _FieldValues:
    """Field values of the annotations, documents or marks of a study, as text; null where a value is missing."""

    def __init__(self, study: Study, where: str) -> None:
        self.study, self.where = study, where
        self._names: dict[StudyTable, list[str]] = {}

    def field_names(self, table: StudyTable) -> list[str]:
        """Return the field names of a table, computed once per table.

        Reading the names of marks is slow, so callers ask for them last.
        """
        if table not in self._names:
            factors = design_factor_names(self.study) if table == "annotator" else []
            special = {"annotation": ["excluded"], "annotator": factors, "document": ["id"], "mark": ["quote"]}[table]
            frame = _table_frame(self.study, table)
            self._names[table] = [
                *_COLUMNS_BY_TABLE[table],
                *special,
                *(name for column in _JSON_COLUMNS_BY_TABLE[table] for name in json_entry_names(frame[column])),
            ]
        return self._names[table]

    def resolve_field(self, field: ConditionField) -> tuple[StudyTable, str]:
        """Return the table that a field belongs to and its name in that table."""
        prefix, _, name = field.name.partition(".")
        for table in _TABLE_LOOKUP_ORDER:
            if prefix == table and name in self.field_names(table):
                return table, name
        for table in _TABLE_LOOKUP_ORDER:
            if field.name in self.field_names(table):
                return table, field.name
        names = dict.fromkeys(name for table in _TABLE_LOOKUP_ORDER for name in self.field_names(table))
        raise ConditionError(self.where, field.at, f"unknown field {field.name!r}{did_you_mean(field.name, names)}")

    def field_column(self, field: ConditionField, rows: MaskedTable) -> pl.Series:
        """Return the values of a field, aligned with the rows of annotations, documents or marks."""
        table, name = self.resolve_field(field)
        values = _table_frame(self.study, table).select("id", _field_expression(self.study, table, name).alias("value"))
        if table == rows:
            return values["value"]
        keys = _table_frame(self.study, rows).select(pl.col(table).alias("id"))
        return keys.join(values, on="id", how="left", maintain_order="left")["value"]


def _field_expression(study: Study, table: StudyTable, name: str) -> pl.Expr:
    """Build an expression for a field of a table, converted to text."""
    if name in _COLUMNS_BY_TABLE[table] or (table, name) == ("document", "id"):
        text = pl.col(name).cast(pl.String)
        return pl.when(text == "").then(None).otherwise(text)
    if (table, name) == ("annotation", "excluded"):
        return pl.col("excluded").is_not_null().cast(pl.String)
    if (table, name) == ("mark", "quote"):
        return pl.col("quotes").list.join(" ")
    if table == "annotator" and name.startswith(DESIGN_FACTOR_PREFIX):
        return json_entry("factors", name.removeprefix(DESIGN_FACTOR_PREFIX))
    frame = _table_frame(study, table)
    columns = [column for column in _JSON_COLUMNS_BY_TABLE[table] if name in json_entry_names(frame[column])]
    return pl.coalesce(json_entry(column, name) for column in columns)


# --- comparison --------------------------------------------------------------------------------------------------


def _condition_mask(tree: Condition, values: _FieldValues, rows: MaskedTable) -> pl.Series:
    """Return a mask of the rows for which a condition holds. The mask has no nulls, even where values are missing."""
    match tree:
        case Negation():
            return ~_condition_mask(tree.condition, values, rows)
        case CombinedCondition():
            masks = [_condition_mask(part, values, rows) for part in tree.conditions]
            total = masks[0]
            for mask in masks[1:]:
                total = total & mask if tree.joint == "and" else total | mask
            return total
        case FieldComparison():
            column = values.field_column(tree.field, rows)
            # Raise an error for a value that no row has, since a typo would otherwise select nothing without notice
            if not (tree.operator not in ("==", "in") or tree.reversed or column.is_empty()):
                for value in tree.values:
                    if value is not None and not _equality_mask(column, value).any():
                        name, present = tree.field.name, [str(text) for text in column.unique().drop_nulls().sort()]
                        value_text = f"{value:g}" if isinstance(value, float) else _value_text(value)
                        problem = f"no row has {name} {value_text!r}{did_you_mean(value_text, present)}"
                        raise ConditionError(values.where, tree.field.at, problem)
            return _comparison_mask(tree, column).fill_null(value=False)


def _comparison_mask(comparison: FieldComparison, column: pl.Series) -> pl.Series:
    if comparison.reversed:
        entry_text = _value_text(comparison.values[0])
        return column.map_elements(
            lambda cell: (
                entry_text
                in [
                    _value_text(item)
                    for item in (
                        list(parse_json_object(f'{{"items": {cell}}}')["items"]) if cell.startswith("[") else [cell]
                    )
                ]
            ),
            pl.Boolean,
        )
    if comparison.operator == "contains":
        return column.str.contains(_value_text(comparison.values[0]), literal=True)
    if comparison.operator in _ORDER_COMPARISONS:
        return _ORDER_COMPARISONS[comparison.operator](column, comparison.values[0])
    equal = pl.Series([False], dtype=pl.Boolean).new_from_index(0, len(column))
    for value in comparison.values:
        equal = equal | _equality_mask(column, value)
    return ~equal if comparison.operator in ("!=", "not in") else equal


def _equality_mask(column: pl.Series, value: ConditionValue) -> pl.Series:
    if value is None:
        return column.is_null()
    if isinstance(value, float):
        return (_to_numbers(column) == value).fill_null(value=False)
    return (column == _value_text(value)).fill_null(value=False)


def _to_numbers(column: pl.Series) -> pl.Series:
    return column.cast(pl.Float64, strict=False)


def _value_text(value: ConditionValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _build_order_comparison(
    compare: Callable[[pl.Series, ConditionValue], pl.Series],
) -> Callable[[pl.Series, ConditionValue], pl.Series]:
    def compare_column(column: pl.Series, value: ConditionValue) -> pl.Series:
        return compare(_to_numbers(column) if isinstance(value, float) else column, value)

    return compare_column


_ORDER_COMPARISONS: Mapping[str, Callable[[pl.Series, ConditionValue], pl.Series]] = {
    "<": _build_order_comparison(lambda column, value: column < value),
    "<=": _build_order_comparison(lambda column, value: column <= value),
    ">": _build_order_comparison(lambda column, value: column > value),
    ">=": _build_order_comparison(lambda column, value: column >= value),
}


def conditions_from_pairs(pairs: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield one condition per field name, which accepts any of the values given for that name."""
    for name, values in pairs.items():
        quoted = ", ".join('"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values)
        yield f"`{name}` in ({quoted})"
