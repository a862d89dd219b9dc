"""Detectors, metrics and critics by an engine: one bad text is set aside, and a run that was cut off goes on."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from finecomb.core.errors import FinecombError
from finecomb.engine.engines import LocalEngine
from finecomb.engine.partitions import Executor
from tests.engine.works import (
    PARTITIONS,
    WORKS,
    DeadlyEngine,
    InterruptedEngine,
    MischiefOptions,
    PicklingEngine,
    documents,
    poisoned,
)


@pytest.mark.parametrize("name", WORKS)
def test_a_poisoned_text_is_set_aside_with_its_reason_and_the_rest_is_done(name: str) -> None:
    table = WORKS[name].result(poisoned(name), Executor(), MischiefOptions())
    assert len(table) == PARTITIONS * WORKS[name].rows
    bad = table.filter(pl.col("problem").is_not_null())
    assert bad["id"].to_list() == ["d3"]
    assert "ValueError: this text is poisoned" in bad["problem"][0]
    clean = WORKS[name].result(documents(len(table)), Executor(), MischiefOptions())
    assert table.filter(pl.col("id") != "d3").equals(clean.filter(pl.col("id") != "d3"))


@pytest.mark.parametrize("name", WORKS)
def test_where_every_text_is_poisoned_the_work_is_at_fault(name: str) -> None:
    with pytest.raises(FinecombError, match="ValueError: this text is poisoned"):
        WORKS[name].result(documents(2, d0="poison", d1="poison"), Executor(), MischiefOptions())


@pytest.mark.parametrize("name", WORKS)
def test_a_run_that_was_cut_off_does_only_what_is_left(name: str, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        WORKS[name].result(
            poisoned(name), Executor.from_folder(InterruptedEngine(3), tmp_path / "p"), MischiefOptions()
        )
    engine = InterruptedEngine()
    spread = Executor.from_folder(engine, tmp_path / "p")
    table = WORKS[name].result(poisoned(name), spread, MischiefOptions())
    assert len(engine.items) == PARTITIONS - 3
    assert spread.reused_row_count == 3 * WORKS[name].rows
    assert table.equals(WORKS[name].result(poisoned(name), Executor(), MischiefOptions()))


@pytest.mark.parametrize("name", WORKS)
def test_a_text_that_nobody_survives_is_set_aside(name: str) -> None:
    table = WORKS[name].result(documents(20, d3="death"), Executor(DeadlyEngine()), MischiefOptions())
    bad = table.filter(pl.col("problem").is_not_null())
    assert bad["id"].to_list() == ["d3"]
    assert "died" in bad["problem"][0]


@pytest.mark.parametrize("name", WORKS)
def test_it_does_not_matter_in_which_order_parts_are_done(name: str) -> None:
    alone = WORKS[name].result(poisoned(name), Executor(), MischiefOptions())
    assert WORKS[name].result(poisoned(name), Executor(PicklingEngine()), MischiefOptions()).equals(alone)


@pytest.mark.long  # a process that imports all that it needs takes seconds
@pytest.mark.parametrize("name", WORKS)
def test_processes_give_the_same_to_the_last_bit(name: str, tmp_path: Path) -> None:
    alone = WORKS[name].result(poisoned(name), Executor(), MischiefOptions())
    diary = tmp_path / "diary"
    together = WORKS[name].result(
        poisoned(name), Executor(LocalEngine(2, alone=0.0)), MischiefOptions(diary=str(diary))
    )
    assert together.equals(alone)
    assert str(os.getpid()) not in {line.split()[0] for line in diary.read_text().splitlines()}
