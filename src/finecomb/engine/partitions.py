"""Partitioned work on large tables. Each finished partition is stored atomically, so an interrupted run can resume."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
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
"""Result tables of one partition, by table name."""
Work = Callable[[pl.DataFrame], Tables]
"""Function that computes the results of a partition from its rows. Each result must depend on its own row only."""
LostRowHandler = Callable[[pl.DataFrame, str], Tables]
"""Function that takes a row whose worker died, and the reason, and returns the results to record for the row."""
ProgressWatcher = Callable[[Iterator[int], int], Iterable[int]]
"""Function that reports progress. It takes row counts of finished partitions and the total, and yields the counts."""

ROW_STEP, MAX_PARTITIONS, MAX_PARTITION_ROWS = 16, 5_000, 10_000


@contextlib.contextmanager
def count_steps(total: int, watch: ProgressWatcher | None) -> Iterator[Callable[[], object]]:
    """Yield a function that reports one finished step of `total` to `watch`; unreported steps are reported at the end.

    >>> seen = []
    >>> with count_steps(3, lambda counts, total: ((seen.append(total), count)[1] for count in counts)) as step:
    ...     _ = step()
    ...     print(seen)
    [3]
    >>> seen
    [3, 3, 3]
    """
    counts = iter(watch(itertools.repeat(1, total), total)) if watch else iter(())
    yield lambda: next(counts, None)
    for _ in counts:  # ends the watcher, which may hold a bar on the screen
        pass


def rows_per_partition(rows: int, step: int = ROW_STEP) -> int:
    """Return the number of rows per partition: small, so that little work is lost, but without too many partitions.

    Use a larger `step` where a row takes little time.

    >>> [rows_per_partition(rows) for rows in (1, 80_000, 1_000_000, 10**9)]
    [16, 16, 208, 10000]
    """
    steps = -(-rows // (step * MAX_PARTITIONS))
    return min(max(steps, 1) * step, MAX_PARTITION_ROWS)


def unfinished_partitions_folder(output: Path) -> Path:
    """Return the folder next to `output` that holds the partitions of an unfinished run."""
    return output.with_name(f"{output.name}.unfinished")


def partition_name(number: int, key: str, rows: pl.DataFrame) -> str:
    """Return a name derived from the partition number, the rows and the key; names sort by partition number."""
    digest = hashlib.blake2b(key.encode() + b"\0" + rows.write_ndjson().encode(), digest_size=8).hexdigest()
    return f"{number:07}-{digest}"


_PARTITION_NAME = re.compile(r"\d{7}-[0-9a-f]{16}|\.[0-9a-f]{32}")  # finished partition, or a partially written one


def reject_non_partition_files(folder: Path) -> None:
    """Raise an error if a partition folder contains other files, because the folder is deleted after the run."""
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    foreign_name = next((name for name in names if not _PARTITION_NAME.fullmatch(name)), "")
    if foreign_name:
        raise FinecombError(
            f"{param('partitions', folder)}: contains {foreign_name!r}, which is not a partition; name an empty or new "
            "folder, because the run deletes it at the end"
        )


class PartitionStore(typing.Protocol):
    """Interface of stores for finished partitions."""

    def make_partition_name(self, number: int, key: str, rows: pl.DataFrame) -> str:
        """Return the name of the partition that contains these rows, computed under this key."""
        ...

    def has_partition(self, name: str) -> bool:
        """Check whether the partition is finished."""
        ...

    def put_partition(self, name: str, tables: Tables) -> None:
        """Store a finished partition."""
        ...

    def read_table(self, names: Sequence[str], table: str) -> pl.LazyFrame:
        """Return all rows of a result table from the named partitions, in order."""
        ...

    def remove_partitions(self) -> None:
        """Remove all partitions."""
        ...


@dataclass(frozen=True, slots=True)
class MemoryPartitionStore:
    """Store that keeps partitions in memory, for runs that start over after an interruption."""

    partitions: dict[str, Tables] = field(default_factory=dict)

    def make_partition_name(self, number: int, key: str, rows: pl.DataFrame) -> str:
        """Return a unique name; partitions in memory are never looked up by a later run."""
        return f"{number:07}-{uuid.uuid4().hex}"

    def has_partition(self, name: str) -> bool:
        """Check whether the partition is finished."""
        return name in self.partitions

    def put_partition(self, name: str, tables: Tables) -> None:
        """Store a finished partition."""
        self.partitions[name] = tables

    def read_table(self, names: Sequence[str], table: str) -> pl.LazyFrame:
        """Return all rows of a result table from the named partitions, in order."""
        return pl.concat([self.partitions[name][table] for name in names]).lazy()

    def remove_partitions(self) -> None:
        """Remove all partitions."""
        self.partitions.clear()


@dataclass(frozen=True, slots=True)
class FolderPartitionStore:
    """Store that keeps partitions on disk: one folder per partition, one Parquet file per table, written atomically."""

    path: Path

    def make_partition_name(self, number: int, key: str, rows: pl.DataFrame) -> str:
        """Return a reproducible name, so that a later run finds the partition of the same rows and key."""
        return partition_name(number, key, rows)

    def has_partition(self, name: str) -> bool:
        """Check whether the partition is finished."""
        return (self.path / name).is_dir()

    def put_partition(self, name: str, tables: Tables) -> None:
        """Write a partition and flush it to disk before renaming it to its final name."""
        temporary = self.path / f".{uuid.uuid4().hex}"
        temporary.mkdir(parents=True)
        for table_name, table in tables.items():
            file = temporary / f"{table_name}.parquet"
            table.write_parquet(file)
            _fsync_path(file)
        _fsync_path(temporary)
        temporary.rename(self.path / name)

    def read_table(self, names: Sequence[str], table: str) -> pl.LazyFrame:
        """Return all rows of a result table from the named partitions, in order, scanned lazily from disk."""
        return pl.scan_parquet([self.path / name / f"{table}.parquet" for name in names])

    def remove_partitions(self) -> None:
        """Remove all partitions, including partially written ones and those of other runs."""
        shutil.rmtree(self.path, ignore_errors=True)


def _fsync_path(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@dataclass(slots=True)
class PartitionRun:
    """Run over all partitions of a table; `names` lists the partitions in order."""

    engine: Engine
    work: Work
    lost: LostRowHandler
    key: str
    """Key for everything that the results depend on except the rows, e.g. a signature."""
    store: PartitionStore
    names: list[str] = field(default_factory=list)
    found: int = 0
    """Number of rows in partitions that were already finished by an earlier run."""

    def run_partitions(self, partitions: Iterable[pl.DataFrame]) -> Iterator[int]:
        """Compute the unfinished partitions. Yield the number of rows of each partition as it finishes."""
        pending: deque[tuple[str, pl.DataFrame]] = deque()
        earlier_rows: deque[int] = deque()
        for result in self.engine.map(self.work, self._queue_unfinished(partitions, pending, earlier_rows)):
            name, rows = pending.popleft()
            self.store.put_partition(name, self._retry_rows(rows) if isinstance(result, LostItem) else result)
            yield len(rows)
            while earlier_rows:
                yield earlier_rows.popleft()
        yield from earlier_rows

    def result_table(self, name: str) -> pl.LazyFrame:
        """Return all rows of a result table in the order of the input rows. Requires at least one partition."""
        return self.store.read_table(self.names, name)

    def _queue_unfinished(
        self,
        partitions: Iterable[pl.DataFrame],
        pending: deque[tuple[str, pl.DataFrame]],
        earlier_rows: deque[int],
    ) -> Iterator[pl.DataFrame]:
        for number, rows in enumerate(partitions):
            name = self.store.make_partition_name(number, self.key, rows)
            self.names.append(name)
            if self.store.has_partition(name):
                self.found += len(rows)
                earlier_rows.append(len(rows))
            else:
                pending.append((name, rows))
                yield rows

    def _retry_rows(self, rows: pl.DataFrame) -> Tables:
        """Retry the rows of a partition whose worker died, one by one, so that only the failing row is lost."""
        singles = list(rows.iter_slices(1))
        results = self.engine.map(self.work, singles)
        parts = [
            self.lost(row, result.reason) if isinstance(result, LostItem) else result
            for row, result in zip(singles, results, strict=True)
        ]
        return {name: pl.concat([part[name] for part in parts]) for name in parts[0]}


@dataclass(frozen=True, slots=True)
class Executor:
    """Parallel executor of a command: an engine and a store of finished partitions."""

    engine: Engine = field(default_factory=LocalEngine)
    store: PartitionStore = field(default_factory=MemoryPartitionStore)
    runs: list[PartitionRun] = field(default_factory=list)
    """Runs started so far, one per table."""

    @classmethod
    def from_folder(cls, engine: Engine, folder: Path | None) -> Self:
        """Return an executor that stores partitions in a folder for resuming, or in memory if `folder` is None."""
        return cls(engine, FolderPartitionStore(folder) if folder else MemoryPartitionStore())

    def start_run(self, work: Work, lost: LostRowHandler, key: str) -> PartitionRun:
        """Start a run over all partitions of one table."""
        run = PartitionRun(self.engine, work, lost, key, self.store)
        self.runs.append(run)
        return run

    @property
    def is_resumable(self) -> bool:
        """True if finished partitions outlive this process. Keys must then cover everything on which results depend."""
        return isinstance(self.store, FolderPartitionStore)

    @property
    def reused_row_count(self) -> int:
        """Number of rows, over all tables, that were already finished by an earlier run."""
        return sum(run.found for run in self.runs)
