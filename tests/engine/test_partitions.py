"""Partitions: a run that was cut off goes on; nothing is lost, doubled or done again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from finecomb.core.errors import FinecombError
from finecomb.engine.engines import LocalEngine, LostItem
from finecomb.engine.options import PartitionOptions
from finecomb.engine.partitions import FolderPartitionStore, PartitionRun, Tables, partition_name, rows_per_partition

ROWS = pl.DataFrame({"id": range(10)})


def doubled(rows: pl.DataFrame) -> Tables:
    return {"results": rows.select(pl.col("id"), twice=pl.col("id") * 2)}


def lost(row: pl.DataFrame, reason: str) -> Tables:
    return {"results": row.select("id", twice=pl.lit(-1, pl.Int64))}


def run(folder: Path, work: Callable[[pl.DataFrame], Tables] = doubled, key: str = "k", engine: Any = None) -> Any:
    return PartitionRun(engine or LocalEngine(), work, lost, key, FolderPartitionStore(folder))


def result(made: Any) -> list[Any]:
    return list(made.result_table("results").collect().rows())


def test_every_row_is_done_once_and_in_order(tmp_path: Path) -> None:
    made = run(tmp_path / "p")
    assert list(made.run_partitions(ROWS.iter_slices(3))) == [3, 3, 3, 1]
    assert result(made) == [(number, 2 * number) for number in range(10)]


@pytest.mark.parametrize("after", range(4))
def test_a_run_that_was_cut_off_does_only_what_is_left(tmp_path: Path, after: int) -> None:
    calls: list[int] = []

    def interrupted(rows: pl.DataFrame) -> Tables:
        calls.append(rows["id"][0])
        if len(calls) == after + 1:
            raise KeyboardInterrupt
        return doubled(rows)

    with pytest.raises(KeyboardInterrupt):
        list(run(tmp_path / "p", interrupted).run_partitions(ROWS.iter_slices(3)))
    (tmp_path / "p").mkdir(exist_ok=True)
    (tmp_path / "p" / ".half-written").mkdir()
    again = run(tmp_path / "p", lambda rows: calls.append(rows["id"][0]) or doubled(rows))  # type: ignore[func-returns-value]
    assert sum(again.run_partitions(ROWS.iter_slices(3))) == 10
    assert again.found == min(3 * after, 10)
    assert result(again) == [(number, 2 * number) for number in range(10)]
    assert sorted(calls) == sorted([0, 3, 6, 9, 3 * after])


def test_another_key_or_other_rows_are_done_anew(tmp_path: Path) -> None:
    list(run(tmp_path / "p").run_partitions(ROWS.iter_slices(5)))
    other = run(tmp_path / "p", key="other")
    list(other.run_partitions(ROWS.iter_slices(5)))
    assert other.found == 0
    changed = run(tmp_path / "p")
    list(
        changed.run_partitions(ROWS.with_columns(id=pl.when(pl.col("id") == 7).then(70).otherwise("id")).iter_slices(5))
    )
    assert changed.found == 5
    assert result(changed)[7] == (70, 140)


class DeadlyEngine:
    """Loses every item in which there is a 4."""

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        for rows in items:
            yield LostItem("died") if 4 in rows["id"] else work(rows)


def test_of_a_partition_that_kills_workers_only_the_culprit_is_lost(tmp_path: Path) -> None:
    made = run(tmp_path / "p", engine=DeadlyEngine())
    assert sum(made.run_partitions(ROWS.iter_slices(5))) == 10
    assert result(made) == [(number, -1 if number == 4 else 2 * number) for number in range(10)]


def test_partitions_are_small_but_not_too_many() -> None:
    assert all(rows_per_partition(rows) % 16 == 0 for rows in (0, 1, 10**5, 10**7, 10**10))
    assert partition_name(2, "a", ROWS) != partition_name(2, "b", ROWS)


def test_a_folder_with_anything_else_in_it_is_refused_since_it_would_be_removed(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    list(run(folder).run_partitions(ROWS.iter_slices(3)))
    (folder / f".{'0' * 32}").mkdir()
    with PartitionOptions(partitions=folder).open_executor():
        pass
    assert not folder.exists()
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(FinecombError, match=r"contains 'thesis\.txt', which is not a partition"):
        PartitionOptions(partitions=folder).open_executor().__enter__()
    assert (folder / "thesis.txt").exists()
