"""Options of commands that run in parallel: `--engine`, `--workers`, and `--partitions` for resuming."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from finecomb.core.options import option_field
from finecomb.engine.engines import keep_ray_connected, parse_engine
from finecomb.engine.partitions import Executor, reject_non_partition_files


@dataclass(frozen=True)
class EngineOptions:
    """Options for parallel execution; results do not depend on them."""

    engine: str = option_field("local")
    workers: int | None = option_field(None, minimum=1)


@dataclass(frozen=True)
class PartitionOptions(EngineOptions):
    """Options for parallel execution and for the folder that stores finished partitions."""

    partitions: Path | None = option_field(None)

    @contextmanager
    def open_executor(self, folder: Path | None = None) -> Iterator[Executor]:
        """Yield the executor of a command. It stores partitions in `--partitions`, else in `folder`, else in memory.

        Stored partitions are removed when the command succeeds; after an error they stay, so that the run can resume.
        """
        if self.partitions:
            reject_non_partition_files(self.partitions)
        spread = Executor.from_folder(parse_engine(self.engine, self.workers), self.partitions or folder)
        with keep_ray_connected(spread.engine):
            yield spread
        spread.store.remove_partitions()
