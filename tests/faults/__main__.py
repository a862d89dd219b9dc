"""Does faults to a server, one after another, and writes what became of the saves into docs/reliability.md.

`python -m tests.faults` does all of them, `python -m tests.faults disk-full` one, whose row is written anew.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._docs import DOCS, markdown_table, write_table

from tests.faults.saving_people import Outcome
from tests.faults.scenarios import SCENARIOS

PAGE = "reliability.md"
TABLE_HEADER = ("what happened", "times", "saves tried", "acknowledged", "lost", "doubled", "")
Cells = tuple[str, ...]


def outcome_row(result: Outcome) -> Cells:
    """Return one row of the table."""
    counts = (f"{result.tries:,}", f"{result.acknowledged:,}", str(result.lost), str(result.doubled))
    return (result.name, str(result.times), *counts, result.note)


def parse_rows(page: str) -> dict[str, Cells]:
    """Parse the rows of the existing table, by first cell."""
    table = page.partition("<!-- measured: faults -->")[2].partition("<!-- end -->")[0]
    lines = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in table.strip().splitlines()[2:]]
    return {cells[0]: cells for cells in lines if re.fullmatch(r"[\d,]+", cells[1])}


def main(names: list[str]) -> None:
    """Run the named scenarios, or all of them, writing each row as soon as it is known."""
    for name in names or SCENARIOS:
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="finecomb-faults-") as folder:
            result = SCENARIOS[name](Path(folder))
        print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)
        rows = parse_rows((DOCS / PAGE).read_text(encoding="utf-8")) | {result.name: outcome_row(result)}
        write_table(PAGE, "faults", markdown_table(TABLE_HEADER, rows.values()))


if __name__ == "__main__":
    main(sys.argv[1:])
