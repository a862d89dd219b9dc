"""Work on a large table cut into partitions: each result is put down whole, and a run that was cut off goes on."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import typing
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import polars as pl

from finecomb.core.errors import FinecombError, param
from finecomb.engine.engines import Engine, LocalEngine, LostItem

Tables = Mapping[str, pl.DataFrame]
"""The results of one partition by the name of their table."""
Work = Callable[[pl.DataFrame], Tables]
"""From the rows of a partition its results; what it gives for a row depends on nothing but the row."""
LostRowHandler = Callable[[pl.DataFrame, str], Tables]
"""The results for one row that no worker survived, with the reason."""

ROW_STEP, MAX_PARTITIONS, MAX_ROWS = 16, 5_000, 10_000


def rows_per_partition(rows: int, step: int = ROW_STEP) -> int:
    """Rows of each partition of a table: few, so that little is done twice, but not many thousands of partitions.

    `step` is larger where a row is little work.

    >>> [rows_per_partition(rows) for rows in (1, 80_000, 1_000_000, 10**9)]
    [16, 16, 208, 10000]
    """
    steps = -(-rows // (step * MAX_PARTITIONS))
    return min(max(steps, 1) * step, MAX_ROWS)


def unfinished_partitions_folder(output: Path) -> Path:
    """Where the partitions of a run are until it is done: beside what will be written."""
    return output.with_name(f"{output.name}.unfinished")


def partition_name(number: int, key: str, rows: pl.DataFrame) -> str:
    """A name that only the same rows under the same key have; names are in the order of the numbers."""
    digest = hashlib.blake2b(key.encode() + b"\0" + rows.write_ndjson().encode(), digest_size=8).hexdigest()
    return f"{number:07}-{digest}"


_PARTITION_NAME = re.compile(r"\d{7}-[0-9a-f]{16}|\.[0-9a-f]{32}")  # a finished partition, or a half-written one


def reject_non_partition_files(folder: Path) -> None:
    """An error where a folder for partitions holds anything else: it would be removed with them when all is done."""
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    other = next((name for name in names if not _PARTITION_NAME.fullmatch(name)), "")
    if other:
        raise FinecombError(
            f"{param('partitions', folder)}: holds {other!r}, which is no part of a run; the folder goes when all is "
            "done, so name one that is empty or not there yet"
        )


class PartitionStore(typing.Protocol):
    """Where finished partitions are."""

    def make_name(self, number: int, key: str, rows: pl.DataFrame) -> str:
        """What a partition of those rows under that key is called."""
        ...

    def has(self, name: str) -> bool:
        """Whether the partition is finished."""
        ...

    def put(self, name: str, tables: Tables) -> None:
        """Take a finished partition."""
        ...

    def table(self, names: Sequence[str], table: str) -> pl.LazyFrame:
        """All rows of a table in those partitions, in their order."""
        ...

    def remove(self) -> None:
        """Forget all partitions."""
        ...


@dataclass(frozen=True, slots=True)
class PartitionMemory:
    """Finished partitions in memory, for runs that are done from the start when they are cut off."""

    partitions: dict[str, Tables] = field(default_factory=dict)

    def make_name(self, number: int, key: str, rows: pl.DataFrame) -> str:
        """A name of its own: nobody comes back for it."""
        return f"{number:07}-{uuid.uuid4().hex}"

    def has(self, name: str) -> bool:
        """See `PartitionStore`."""
        return name in self.partitions

    def put(self, name: str, tables: Tables) -> None:
        """See `PartitionStore`."""
        self.partitions[name] = tables

    def table(self, names: Sequence[str], table: str) -> pl.LazyFrame:
        """See `PartitionStore`."""
        return pl.concat([self.partitions[name][table] for name in names]).lazy()

    def remove(self) -> None:
        """See `PartitionStore`."""
        self.partitions.clear()


@dataclass(frozen=True, slots=True)
class PartitionFolder:
    """Finished partitions: a folder for each, with a Parquet file for each table; it is there whole or not at all."""

    path: Path

    def make_name(self, number: int, key: str, rows: pl.DataFrame) -> str:
        """A name by which the same rows under the same key are found again."""
        return partition_name(number, key, rows)

    def has(self, name: str) -> bool:
        """Whether the partition is finished."""
        return (self.path / name).is_dir()

    def put(self, name: str, tables: Tables) -> None:
        """Write a partition down, on disk before it gets its name."""
        temporary = self.path / f".{uuid.uuid4().hex}"
        temporary.mkdir(parents=True)
        for table_name, table in tables.items():
            file = temporary / f"{table_name}.parquet"
            table.write_parquet(file)
            _fsync_path(file)
        _fsync_path(temporary)
        temporary.rename(self.path / name)

    def table(self, names: Sequence[str], table: str) -> pl.LazyFrame:
        """All rows of a table in those partitions, in their order; they stay on disk until they are wanted."""
        return pl.scan_parquet([self.path / name / f"{table}.parquet" for name in names])

    def remove(self) -> None:
        """Forget all partitions, also half-written ones and those of other runs."""
        shutil.rmtree(self.path, ignore_errors=True)


def _fsync_path(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@dataclass(slots=True)
class PartitionRun:
    """One pass over all partitions; afterwards `names` are those of the run, in order."""

    engine: Engine
    work: Work
    lost: LostRowHandler
    key: str
    """What the results depend on beside the rows, e.g. a signature."""
    store: PartitionStore
    names: list[str] = field(default_factory=list)
    found: int = 0
    """Rows whose partition an earlier run had finished."""

    def run_partitions(self, partitions: Iterable[pl.DataFrame]) -> Iterator[int]:
        """Do what is not done yet; yields how many rows each finished partition has, as they are finished."""
        pending: deque[tuple[str, pl.DataFrame]] = deque()
        earlier_rows: deque[int] = deque()
        for result in self.engine.map(self.work, self._queue_unfinished(partitions, pending, earlier_rows)):
            name, rows = pending.popleft()
            self.store.put(name, self._retry_rows(rows) if isinstance(result, LostItem) else result)
            yield len(rows)
            while earlier_rows:
                yield earlier_rows.popleft()
        yield from earlier_rows

    def table(self, name: str) -> pl.LazyFrame:
        """All rows of a table of results, in the order of the rows they came from; after at least one partition."""
        return self.store.table(self.names, name)

    def _queue_unfinished(
        self,
        partitions: Iterable[pl.DataFrame],
        pending: deque[tuple[str, pl.DataFrame]],
        earlier_rows: deque[int],
    ) -> Iterator[pl.DataFrame]:
        for number, rows in enumerate(partitions):
            name = self.store.make_name(number, self.key, rows)
            self.names.append(name)
            if self.store.has(name):
                self.found += len(rows)
                earlier_rows.append(len(rows))
            else:
                pending.append((name, rows))
                yield rows

    def _retry_rows(self, rows: pl.DataFrame) -> Tables:
        """The results of a partition that no worker survived: each row alone, so that only the culprit is lost."""
        singles = list(rows.iter_slices(1))
        results = self.engine.map(self.work, singles)
        parts = [
            self.lost(row, result.reason) if isinstance(result, LostItem) else result
            for row, result in zip(singles, results, strict=True)
        ]
        return {name: pl.concat([part[name] for part in parts]) for name in parts[0]}


@dataclass(frozen=True, slots=True)
class Executor:
    """How the work of a command is spread out: who does it, and where finished partitions are."""

    engine: Engine = field(default_factory=LocalEngine)
    store: PartitionStore = field(default_factory=PartitionMemory)
    runs: list[PartitionRun] = field(default_factory=list)
    """The passes that were begun, one for each table."""

    @classmethod
    def from_folder(cls, engine: Engine, folder: Path | None) -> Self:
        """Partitions go into a folder, where a run that was cut off finds them again, or stay in memory."""
        return cls(engine, PartitionFolder(folder) if folder else PartitionMemory())

    def start_run(self, work: Work, lost: LostRowHandler, key: str) -> PartitionRun:
        """A pass over all partitions of one table."""
        run = PartitionRun(self.engine, work, lost, key, self.store)
        self.runs.append(run)
        return run

    @property
    def is_resumable(self) -> bool:
        """Whether finished partitions outlive this process, so that keys must tell all that results depend on."""
        return isinstance(self.store, PartitionFolder)

    @property
    def reused_row_count(self) -> int:
        """Rows of all tables whose partition an earlier run had finished."""
        return sum(run.found for run in self.runs)
