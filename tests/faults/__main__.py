"""Does every fault to a server, one after another, and writes what became of the saves into docs/reliability.md."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from benchmarks._docs import markdown, write_table

from tests.faults.people import Outcome
from tests.faults.scenarios import SCENARIOS

HEAD = ("what happened", "times", "saves tried", "acknowledged", "lost", "doubled", "")


def row(result: Outcome) -> tuple[object, ...]:
    """One line of the table."""
    counts = (f"{result.tries:,}", f"{result.acknowledged:,}", result.lost, result.doubled)
    return (result.name, result.times, *counts, result.note)


def main(names: list[str]) -> None:
    """Run the named scenarios, or all of them and write the table."""
    results = []
    for name in names or SCENARIOS:
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="finecomb-faults-") as folder:
            results.append(SCENARIOS[name](Path(folder)))
        print(f"{name}: {results[-1]} ({time.monotonic() - start:.0f} s)", flush=True)
    if not names:
        write_table("reliability.md", "faults", markdown(HEAD, map(row, results)))


if __name__ == "__main__":
    main(sys.argv[1:])
