"""Selection: which documents, annotators, annotations and marks a condition leaves in a study.

Each part of an outermost `and` is applied where it belongs: one that names a field of marks (`label`, an answer such as
`severity`, `confidence`, ...) leaves out marks and keeps the annotations, since having marked nothing is data too; any
other leaves out whole annotations. What a field may be, in the order in which a name is looked up:

| level | fields |
|---|---|
| annotation | `annotator`, `document`, `protocol`, `round`, `phase`, `status`, `about`, `seconds`, `excluded` |
| annotator | `kind`, `condition`, `platform`, `cell`, and names of their survey and meta |
| document | names of document meta |
| annotation | answers to questions about the whole text, e.g. `rating` |
| mark | `label`, `quote`, `confidence`, `votes`, `basis`, `item`, and answers to a label's questions, e.g. `severity` |

`document.NAME`, `annotator.NAME`, `annotation.NAME` and `mark.NAME` say which is meant where a name is in several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import polars as pl

from finecomb.core.errors import did_you_mean
from finecomb.core.frames import json_entry, json_entry_names, parse_json_object
from finecomb.core.study import Study
from finecomb.statistics.measures.study_counts import FACTOR_PREFIX, design_factor_names, group_sort_key
from finecomb.statistics.selection.conditions import (
    CombinedCondition,
    Condition,
    ConditionError,
    ConditionField,
    FieldComparison,
    Negation,
    Value,
    condition_fields,
    conjuncts,
    parse_condition,
    parse_name_value_condition,
)

Table = Literal["annotation", "annotator", "document", "mark"]
Rows = Literal["annotation", "document", "mark"]
Where = str | Sequence[str | tuple[str, str]]
"""One condition, or several; a pair is a name and its value."""
_COLUMNS: Mapping[Table, tuple[str, ...]] = {
    "annotation": ("annotator", "document", "protocol", "round", "phase", "status", "about", "seconds", "readers"),
    "annotator": ("kind", "condition", "cell", "platform"),
    "document": (),
    "mark": ("label", "confidence", "votes", "basis", "item"),
}
_JSON: Mapping[Table, tuple[str, ...]] = {
    "annotation": ("answers", "meta"),
    "annotator": ("survey", "meta"),
    "document": ("meta",),
    "mark": ("answers", "meta"),
}
_ORDER: tuple[Table, ...] = ("annotation", "annotator", "document", "mark")


def required_mark_columns(where: Sequence[str], drop: Sequence[str]) -> list[str]:
    """The columns of marks without which conditions and what to drop cannot be judged, beside the id."""
    named = [column for column in _COLUMNS["mark"] if column != "label" and any(column in text for text in where)]
    quotes = ["quotes"] if any("quote" in text for text in where) else []
    protocol = ["protocol"] if drop else []
    return ["annotation", "document", "annotator", *protocol, "label", "answers", "meta", *named, *quotes]


def apply_condition(study: Study, where: str) -> Study:
    """The part of a study for which the condition `where` holds; documents and annotators stay as they are."""
    values = _FieldValues(study, where)
    masks: dict[Rows, list[pl.Series]] = {"mark": [], "annotation": []}
    for part in conjuncts(parse_condition(where)):  # each judged on the whole study, so that the order does not matter
        rows: Rows = (
            "mark"
            if any(values.resolve_field(field)[0] == "mark" for field in condition_fields(part))
            else "annotation"
        )
        masks[rows].append(_condition_mask(part, values, rows))
    chosen = study if not masks["mark"] else replace(study, marks=study.marks.filter(*masks["mark"]))
    return chosen if not masks["annotation"] else chosen.filter_annotations(pl.all_horizontal(masks["annotation"]))


def extract_substudy(study: Study, where: str) -> Study:
    """The part of a study for which the condition holds, without the documents and annotators that fell out.

    Conditions on documents leave out documents, read or not. Otherwise what had annotations and has none left goes.
    """
    values = _FieldValues(study, where)
    documents = study.documents
    for part in conjuncts(parse_condition(where)):
        if all(values.resolve_field(field)[0] == "document" for field in condition_fields(part)):
            documents = documents.filter(
                pl.col("id").is_in(_masked_ids(study.documents, _condition_mask(part, values, "document")))
            )
    rest = apply_condition(study, where) if len(study.annotations) else study
    before, after = study.annotations, rest.annotations.filter(pl.col("document").is_in(documents["id"].implode()))
    documents = documents.filter(_has_annotations_left("document", before, after))
    annotators = study.annotators.filter(_has_annotations_left("annotator", before, after))
    part_of_all = replace(rest, documents=documents, annotators=annotators)
    return part_of_all.filter_annotations(pl.col("id").is_in(after["id"].implode()))


def split_study(study: Study, field: str) -> dict[str, Study]:
    """Return the part of a study for each value of a field, in the order of the values; what has none is in no part."""
    values = _FieldValues(study, field)
    table, name = values.resolve_field(ConditionField(field, 0))
    column = _table_frame(study, table).select(_field_expression(study, table, name).alias("value"))["value"]
    if table == "annotator":  # those without annotations make no part
        column = values.field_column(ConditionField(field, 0), "annotation")
    present = sorted(column.drop_nulls().unique().to_list(), key=lambda value: group_sort_key([value]))
    return {value: extract_substudy(study, *conditions_from_pairs({field: [value]})) for value in present}


def _masked_ids(frame: pl.DataFrame, mask: pl.Series) -> pl.Series:
    return frame.filter(mask)["id"].implode()


def _has_annotations_left(column: str, before: pl.DataFrame, after: pl.DataFrame) -> pl.Expr:
    """Whether a document or annotator has annotations left, or never had any."""
    had, has = (frame[column].unique().implode() for frame in (before, after))
    return ~pl.col("id").is_in(had) | pl.col("id").is_in(has)


def join_conditions(where: Where) -> str:
    """One condition in place of several: all must hold, but of pairs with one name any value will do.

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


def format_conditions_for_signature(where: Where) -> str:
    """Conditions as a signature has them: pairs as `NAME=VALUE`, all with a plus between them."""
    conditions = [where] if isinstance(where, str) else where
    return "+".join(text if isinstance(text, str) else "=".join(text) for text in conditions)


def has_annotator_condition(where: str) -> bool:
    """Whether a condition says which kinds of annotators, or which annotators, are meant."""
    told_apart = {"kind", "annotator", "annotator.kind", "annotation.annotator"}
    return bool(where) and any(field.name in told_apart for field in condition_fields(parse_condition(where)))


def _table_frame(study: Study, table: Table) -> pl.DataFrame:
    frame: pl.DataFrame = getattr(study, f"{table}s")
    return frame


def _field_names(study: Study, table: Table) -> list[str]:
    factors = design_factor_names(study) if table == "annotator" else []
    special = {"annotation": ["excluded"], "annotator": factors, "document": ["id"], "mark": ["quote"]}[table]
    frame = _table_frame(study, table)
    return [*_COLUMNS[table], *special, *(name for column in _JSON[table] for name in json_entry_names(frame[column]))]


class _FieldValues:
    """The values of fields, one for each annotation or mark of a study, as text with null where there is none."""

    def __init__(self, study: Study, where: str) -> None:
        self.study, self.where = study, where
        self._names: dict[Table, list[str]] = {}

    def field_names(self, table: Table) -> list[str]:
        """The names that a table has; those of marks are read only when no other table has a name."""
        if table not in self._names:
            self._names[table] = _field_names(self.study, table)
        return self._names[table]

    def resolve_field(self, field: ConditionField) -> tuple[Table, str]:
        """The table and the name in it that a field means."""
        prefix, _, name = field.name.partition(".")
        for table in _ORDER:
            if prefix == table and name in self.field_names(table):
                return table, name
        for table in _ORDER:
            if field.name in self.field_names(table):
                return table, field.name
        names = dict.fromkeys(name for table in _ORDER for name in self.field_names(table))
        raise ConditionError(self.where, field.at, f"nothing is called {field.name!r}{did_you_mean(field.name, names)}")

    def field_column(self, field: ConditionField, rows: Rows) -> pl.Series:
        """The values of a field beside the rows of annotations or marks."""
        table, name = self.resolve_field(field)
        values = _table_frame(self.study, table).select("id", _field_expression(self.study, table, name).alias("value"))
        if table == rows:
            return values["value"]
        keys = _table_frame(self.study, rows).select(pl.col(table).alias("id"))
        return keys.join(values, on="id", how="left", maintain_order="left")["value"]


def _field_expression(study: Study, table: Table, name: str) -> pl.Expr:
    """A field of a table as text."""
    if name in _COLUMNS[table] or (table, name) == ("document", "id"):
        text = pl.col(name).cast(pl.String)
        return pl.when(text == "").then(None).otherwise(text)
    if (table, name) == ("annotation", "excluded"):
        return pl.col("excluded").is_not_null().cast(pl.String)
    if (table, name) == ("mark", "quote"):
        return pl.col("quotes").list.join(" ")
    if table == "annotator" and name.startswith(FACTOR_PREFIX):
        return json_entry("factors", name.removeprefix(FACTOR_PREFIX))
    frame = _table_frame(study, table)
    columns = [column for column in _JSON[table] if name in json_entry_names(frame[column])]
    return pl.coalesce(json_entry(column, name) for column in columns)


# --- comparing ---------------------------------------------------------------------------------------------------


def _condition_mask(tree: Condition, values: _FieldValues, rows: Rows) -> pl.Series:
    """Where a condition holds; it holds or it does not, also where a value is missing."""
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
            _require_value_occurs(tree, column, values.where)
            return _comparison_mask(tree, column).fill_null(value=False)


def _comparison_mask(comparison: FieldComparison, column: pl.Series) -> pl.Series:
    if comparison.reversed:
        return _list_entry_mask(column, comparison.values[0])
    if comparison.operator == "contains":
        return column.str.contains(_value_text(comparison.values[0]), literal=True)
    if comparison.operator in _ORDER_COMPARISONS:
        return _ORDER_COMPARISONS[comparison.operator](column, comparison.values[0])
    equal = pl.Series([False], dtype=pl.Boolean).new_from_index(0, len(column))
    for value in comparison.values:
        equal = equal | _equality_mask(column, value)
    return ~equal if comparison.operator in ("!=", "not in") else equal


def _equality_mask(column: pl.Series, value: Value) -> pl.Series:
    if value is None:
        return column.is_null()
    if isinstance(value, float):
        return (_to_numbers(column) == value).fill_null(value=False)
    return (column == _value_text(value)).fill_null(value=False)


def _to_numbers(column: pl.Series) -> pl.Series:
    return column.cast(pl.Float64, strict=False)


def _value_text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _list_entry_mask(column: pl.Series, value: Value) -> pl.Series:
    """Whether `value` is an entry of a list, which a frame keeps as JSON."""
    entry_text = _value_text(value)
    return column.map_elements(
        lambda cell: entry_text in [_value_text(item) for item in _parse_list_cell(cell)], pl.Boolean
    )


def _parse_list_cell(cell: str) -> list[Value]:
    return list(parse_json_object(f'{{"items": {cell}}}')["items"]) if cell.startswith("[") else [cell]


def _build_order_comparison(
    compare: Callable[[pl.Series, Value], pl.Series],
) -> Callable[[pl.Series, Value], pl.Series]:
    def compare_column(column: pl.Series, value: Value) -> pl.Series:
        return compare(_to_numbers(column) if isinstance(value, float) else column, value)

    return compare_column


_ORDER_COMPARISONS: Mapping[str, Callable[[pl.Series, Value], pl.Series]] = {
    "<": _build_order_comparison(lambda column, value: column < value),
    "<=": _build_order_comparison(lambda column, value: column <= value),
    ">": _build_order_comparison(lambda column, value: column > value),
    ">=": _build_order_comparison(lambda column, value: column >= value),
}


def _require_value_occurs(comparison: FieldComparison, column: pl.Series, where: str) -> None:
    """Refuse a value that no row has, so that a slip does not select nothing in silence."""
    if comparison.operator not in ("==", "in") or comparison.reversed or column.is_empty():
        return
    for value in comparison.values:
        if value is not None and not _equality_mask(column, value).any():
            name, present = comparison.field.name, [str(text) for text in column.unique().drop_nulls().sort()]
            value_text = f"{value:g}" if isinstance(value, float) else _value_text(value)
            problem = f"nothing has {name} {value_text!r}{did_you_mean(value_text, present)}"
            raise ConditionError(where, comparison.field.at, problem)


def conditions_from_pairs(pairs: Mapping[str, list[str]]) -> Iterator[str]:
    """Conditions for values by name: of one name any value, of several names all."""
    for name, values in pairs.items():
        quoted = ", ".join('"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values)
        yield f"`{name}` in ({quoted})"
