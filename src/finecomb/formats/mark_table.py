"""Columns and cell format of tables with one mark per row, for `csv_table` and `xlsx_table`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from finecomb.core.errors import FormatError, did_you_mean, param

DOCUMENT_COLUMNS = ("document", "text")
ANNOTATOR_COLUMNS = ("annotator", "kind", "condition", "platform")
ANNOTATION_COLUMNS = (
    *("annotation", "protocol", "round", "about", "phase", "status", "readers"),
    *("started", "submitted", "seconds", "active_seconds"),
)
ANSWER_COLUMNS = ("severity", "explanation", "correction", "comment")
TEXT_ANSWER_COLUMNS = ("explanation", "correction", "comment")
"""Answers that are always text, even if they look like numbers."""
MARK_COLUMNS = ("mark", "label", *ANSWER_COLUMNS, "confidence", "votes", "item", "basis", "unlocated")
SPAN_COLUMNS = ("part", "start", "end", "quote")
ANTECEDENT_COLUMNS = (*(f"antecedent_{name}" for name in SPAN_COLUMNS), "antecedent_unlocated")
KNOWN_COLUMNS = (
    *DOCUMENT_COLUMNS,
    *ANNOTATOR_COLUMNS,
    *ANNOTATION_COLUMNS,
    *MARK_COLUMNS,
    *SPAN_COLUMNS,
    *ANTECEDENT_COLUMNS,
)

COLUMN_PREFIXES = ("context.", "meta.", "answer.")
"""Prefixes of column names: `context.prompt` is a context, `meta.model` a meta field, `answer.sure` an answer."""
OTHER_PREFIX = "other."
"""Prefix added to columns of the file that have no standard name."""
COLUMN_SYNONYMS = {"id": "document", "prompt": "context.prompt"}
META_SHORTHANDS = ("model", "topic", "dataset")
"""Meta fields that `--map` accepts without the prefix `meta.`."""

TABLE_FEATURES = frozenset(
    [
        *("document context", "document meta", "annotator kind", "annotator condition", "annotator platform"),
        *(f"annotation {name}" for name in ("id", "round", "about", "status", "without marks", "answers")),
        *(f"annotation {name}" for name in ("readers", "started", "submitted", "seconds", "active_seconds")),
        *(
            f"mark {name}"
            for name in ("id", *ANSWER_COLUMNS, "other answers", "without label", "antecedents", "confidence")
        ),
        *(f"mark {name}" for name in ("votes", "item", "basis", "unlocated", "several spans", "omission")),
        "mark on context",
    ]
)


def format_cell(value: Any) -> str:
    """Format an answer or meta value as a cell: text stays unchanged unless it looks like JSON; other values are JSON.

    >>> format_cell("gpt2"), format_cell(0.9), format_cell("0.9"), format_cell(["a"])
    ('gpt2', '0.9', '"0.9"', '["a"]')
    """
    if isinstance(value, str) and value and isinstance(parse_cell(value), str) and parse_cell(value) == value:
        return value
    return to_json(value).decode()


def parse_cell(cell: str) -> Any:
    """Parse the cell of an answer or meta value: a number, true, false, a list, ... if it is JSON, otherwise text.

    >>> parse_cell("gpt2"), parse_cell("0.9"), parse_cell('"0.9"')
    ('gpt2', 0.9, '0.9')
    """
    try:
        return from_json(cell, allow_inf_nan=False)
    except ValueError:
        return cell


def map_column_names(header: Iterable[str], columns: Mapping[str, str], path: Path) -> dict[str, str]:
    """Return standard column names by their name in the file; `columns` is the user's mapping the other way round."""
    header = [name for name in header if name.strip()]
    names = COLUMN_SYNONYMS | {name: f"meta.{name}" for name in META_SHORTHANDS}
    columns = {names.get(our, our): theirs.strip() for our, theirs in columns.items()}
    for our, theirs in columns.items():
        if our not in KNOWN_COLUMNS and not our.startswith(COLUMN_PREFIXES):
            known = [*KNOWN_COLUMNS, *META_SHORTHANDS, *(f"{family}NAME" for family in COLUMN_PREFIXES)]
            raise FormatError(
                f"{path}: {param('map', f'{our}={theirs}')}: unknown column {our!r}{did_you_mean(our, known)}"
            )
        if theirs not in header:
            raise FormatError(f"{path}:1: column {theirs!r} is missing{did_you_mean(theirs, header)}")
    ours = {theirs: our for our, theirs in columns.items()}
    for name in header:
        if name not in ours:
            our = _standard_column_name(name)
            ours[name] = our if our not in ours.values() else OTHER_PREFIX + name.strip()
    if "text" not in ours.values():
        raise FormatError(
            f"{path}:1: column 'text' is missing{did_you_mean('text', header)}; name it with "
            f"{param('map', 'text=NAME')}"
        )
    return ours


def _standard_column_name(name: str) -> str:
    name = name.strip()
    folded = name.lower().replace(" ", "_")
    family = next((prefix for prefix in COLUMN_PREFIXES if folded.startswith(prefix)), None)
    if family is not None and len(name) > len(family):
        return family + name[len(family) :]
    if folded in KNOWN_COLUMNS:
        return folded
    return COLUMN_SYNONYMS.get(folded, OTHER_PREFIX + name)
