from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings

from finecomb.core.errors import FormatError
from finecomb.core.frames import COLUMNS_BY_FRAME
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.formats import detect_format, parquet, read, study_tables, write
from finecomb.formats.base import Options
from tests.formats.fuzzing import damage_file, file_damages, read_or_reject
from tests.strategies import PROTOCOL, canonical_form, round_trip, studies

ITEMS: list[StudyItem] = [
    PROTOCOL,
    Document(id="d", text="one two"),
    Annotator(id="a", kind="human"),
    Annotation(
        id="d/a",
        document="d",
        annotator="a",
        protocol="test@1",
        marks=(Mark(id="m", spans=(Span(0, 3),), quotes=("one",), label="red"),),
    ),
]


@settings(max_examples=25)
@given(studies())
def test_parquet_gives_back_every_record(items: list[StudyItem]) -> None:
    with tempfile.TemporaryDirectory() as place:
        again = round_trip(parquet.FORMAT, items, Path(place) / "t.parquet")
    assert canonical_form(again) == canonical_form(items)


@settings(max_examples=10)
@given(studies())
def test_a_study_written_to_parquet_and_read_is_equal(items: list[StudyItem]) -> None:
    study = Study.from_items(items)
    with tempfile.TemporaryDirectory() as place:
        assert write(study, Path(place) / "t.parquet") == []
        assert detect_format(Path(place) / "t.parquet") is parquet.FORMAT
        assert read(Path(place) / "t.parquet") == study


def test_batches_make_no_difference(tmp_path: Path) -> None:
    parts = study_tables.StudyTableWriter(tmp_path / "parts", batch=2)
    work = [
        ITEMS[3].model_copy(update={"id": f"x{n}", "round": n, "marks": (_mark(n),) * (n % 3)})
        for n in range(9)
        if isinstance(ITEMS[3], Annotation)
    ]
    for item in [*ITEMS[1:3], *work]:
        parts.add_record(item)  # type: ignore[arg-type]
    parts.finish(tmp_path)
    tables = {name: pl.scan_parquet(tmp_path / f"{name}.parquet") for name in COLUMNS_BY_FRAME}
    assert list(study_tables.read_records(tables, str, batch=2)) == [*ITEMS[1:3], *work]
    shuffled = tables | {"marks": tables["marks"].reverse()}
    assert list(study_tables.read_records(shuffled, str, batch=2)) == [*ITEMS[1:3], *work]


def _mark(number: int) -> Mark:
    return Mark(id=f"m{number}", spans=(Span(0, 3),), quotes=("one",), label="red")


def change(path: Path, name: str, *exprs: Any, drop: str = "") -> None:
    frame = pl.read_parquet(path / f"{name}.parquet")
    frame = frame.drop(drop) if drop else frame.with_columns(*exprs)
    frame.write_parquet(path / f"{name}.parquet")


def changed(path: Path, name: str, *exprs: Any, drop: str = "") -> str:
    """The error that a change of one table leads to."""
    parquet.write(ITEMS, path, Options())
    change(path, name, *exprs, drop=drop)
    with pytest.raises(FormatError) as caught:
        list(parquet.read(path, Options()))
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "expression", "message"),
    [
        ("marks", pl.lit("x").alias("colour"), "marks.parquet: column 'colour' is unknown"),
        ("marks", pl.lit("1").alias("votes"), "marks.parquet: column 'votes': expected Int64, found String"),
        ("marks", pl.lit(-1).alias("votes"), "marks.parquet: row 'm': votes: expected greater than or equal to 0"),
        ("marks", pl.lit("{").alias("answers"), "marks.parquet: row 'm': EOF while parsing an object"),
        ("marks", pl.lit("zz").alias("annotation"), "marks.parquet: 1 rows refer to an annotation that is not in "),
        ("documents", pl.lit(None, pl.String).alias("text"), "documents.parquet: row 'd': text: missing"),
        ("annotations", pl.lit("lost").alias("status"), "annotations.parquet: row 'd/a': status: expected 'draft',"),
        ("annotators", pl.lit("elf").alias("kind"), "annotators.parquet: row 'a': kind: expected 'human', 'llm'"),
    ],
)
def test_a_slip_is_named_with_file_row_and_column(name: str, expression: pl.Expr, message: str, tmp_path: Path) -> None:
    assert message in changed(tmp_path / "t", name, expression)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    assert "marks.parquet: column 'votes' is missing; did you mean " in changed(tmp_path / "t", "marks", drop="votes")


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    parquet.write(ITEMS, tmp_path / "t", Options())
    (tmp_path / "t" / "units.parquet").unlink()
    with pytest.raises(FormatError, match=r"units\.parquet: no such file"):
        list(parquet.read(tmp_path / "t", Options()))


@settings(max_examples=25)
@given(file_damages)
def test_a_damaged_table_is_read_or_refused(place: tuple[float, bytes, int, bool]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        parquet.write(ITEMS, path, Options())
        damage_file(path / "marks.parquet", place)
        read_or_reject(parquet.FORMAT, path)
