"""Detectors, metrics and critics by an engine: one bad text is set aside, and a run that was cut off goes on."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from finecomb.core.errors import FinecombError
from finecomb.engine.engines import LocalEngine
from finecomb.engine.partitions import Executor
from tests.engine.faulty_work import (
    PARTITION_COUNT,
    WORK_KINDS,
    FaultOptions,
    InterruptedEngine,
    LosingEngine,
    PicklingEngine,
    make_poisoned_texts,
    make_texts,
)


@pytest.mark.parametrize("name", WORK_KINDS)
def test_a_poisoned_text_is_set_aside_with_its_reason_and_the_rest_is_done(name: str) -> None:
    table = WORK_KINDS[name].result(make_poisoned_texts(name), Executor(), FaultOptions())
    assert len(table) == PARTITION_COUNT * WORK_KINDS[name].rows
    bad = table.filter(pl.col("problem").is_not_null())
    assert bad["id"].to_list() == ["d3"]
    assert "ValueError: this text is poisoned" in bad["problem"][0]
    clean = WORK_KINDS[name].result(make_texts(len(table)), Executor(), FaultOptions())
    assert table.filter(pl.col("id") != "d3").equals(clean.filter(pl.col("id") != "d3"))


@pytest.mark.parametrize("name", WORK_KINDS)
def test_where_every_text_is_poisoned_the_work_is_at_fault(name: str) -> None:
    with pytest.raises(FinecombError, match="ValueError: this text is poisoned"):
        WORK_KINDS[name].result(make_texts(2, d0="poison", d1="poison"), Executor(), FaultOptions())


@pytest.mark.parametrize("name", WORK_KINDS)
def test_a_run_that_was_cut_off_does_only_what_is_left(name: str, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        WORK_KINDS[name].result(
            make_poisoned_texts(name), Executor.from_folder(InterruptedEngine(3), tmp_path / "p"), FaultOptions()
        )
    engine = InterruptedEngine()
    spread = Executor.from_folder(engine, tmp_path / "p")
    table = WORK_KINDS[name].result(make_poisoned_texts(name), spread, FaultOptions())
    assert len(engine.items) == PARTITION_COUNT - 3
    assert spread.reused_row_count == 3 * WORK_KINDS[name].rows
    assert table.equals(WORK_KINDS[name].result(make_poisoned_texts(name), Executor(), FaultOptions()))


@pytest.mark.parametrize("name", WORK_KINDS)
def test_a_text_that_nobody_survives_is_set_aside(name: str) -> None:
    table = WORK_KINDS[name].result(make_texts(20, d3="death"), Executor(LosingEngine()), FaultOptions())
    bad = table.filter(pl.col("problem").is_not_null())
    assert bad["id"].to_list() == ["d3"]
    assert "died" in bad["problem"][0]


@pytest.mark.parametrize("name", WORK_KINDS)
def test_it_does_not_matter_in_which_order_parts_are_done(name: str) -> None:
    alone = WORK_KINDS[name].result(make_poisoned_texts(name), Executor(), FaultOptions())
    assert WORK_KINDS[name].result(make_poisoned_texts(name), Executor(PicklingEngine()), FaultOptions()).equals(alone)


@pytest.mark.long  # a process that imports all that it needs takes seconds
@pytest.mark.parametrize("name", WORK_KINDS)
def test_processes_give_the_same_to_the_last_bit(name: str, tmp_path: Path) -> None:
    alone = WORK_KINDS[name].result(make_poisoned_texts(name), Executor(), FaultOptions())
    diary = tmp_path / "diary"
    together = WORK_KINDS[name].result(
        make_poisoned_texts(name), Executor(LocalEngine(2, alone=0.0)), FaultOptions(diary=str(diary))
    )
    assert together.equals(alone)
    assert str(os.getpid()) not in {line.split()[0] for line in diary.read_text().splitlines()}
