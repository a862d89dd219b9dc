"""The options of every command that spreads its work: `--engine`, `--workers`, and `--partitions`, to go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from finecomb.core.options import option
from finecomb.engine.engines import Engine, keep_ray_connected, parse_engine
from finecomb.engine.partitions import Executor, reject_non_partition_files


@dataclass(frozen=True)
class EngineOptions:
    """Who works. No result depends on it."""

    engine: str = option("local", "Who works: local (processes of this machine), ray, or ray:ADDRESS of a cluster.")
    workers: int | None = option(None, "How many processes; no number changes.", minimum=1)

    def build_engine(self) -> Engine:
        """The engine asked for."""
        return parse_engine(self.engine, self.workers)


@dataclass(frozen=True)
class PartitionOptions(EngineOptions):
    """Who works, and where finished partitions are until all are done."""

    partitions: Path | None = option(
        None, "Keep finished parts in this folder until all are done, so that a run that was cut off goes on."
    )

    @contextmanager
    def open_executor(self, folder: Path | None = None) -> Iterator[Executor]:
        """How work is spread; `folder` is for partitions where no other is named. It goes when all went well."""
        if self.partitions:
            reject_non_partition_files(self.partitions)
        spread = Executor.from_folder(self.build_engine(), self.partitions or folder)
        with keep_ray_connected(spread.engine):
            yield spread
        spread.store.remove()
