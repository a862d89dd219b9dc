"""Studies of many marks: time and peak memory of the commands as the study doubles, each in a process of its own.

`python -m benchmarks scale` doubles from 125,000 to 1,000,000 marks; `python -m benchmarks.scale 10000000` measures one
size, and words behind it only those commands.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks._large_corpus import lines_study, parquet_study
from benchmarks._ratios import note_ratio
from finecomb.formats.seal import set_seal

SIZES = (125_000, 250_000, 500_000, 1_000_000)
COMMANDS = {
    "stats": ("stats", "{study}"),
    "measure": ("measure", "{study}"),
    "agree": ("agree", "{study}", "--draws", "100"),
    "score": ("score", "{study}", "--gold", "truth", "--judge", "reader-1"),
    "select": ("select", "{study}", "-o", "{out}", "--where", "severity >= 2"),
}
MEGABYTE = 1024 if sys.platform != "darwin" else 1024 * 1024


@dataclass(frozen=True, slots=True)
class Use:
    """What a process took."""

    wall: float
    cpu: float
    megabytes: float


def use_of(command: list[str]) -> Use:
    """Time and peak memory of a command; its output is thrown away, and it must succeed."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    complaint = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: {complaint.decode()[-400:]}")
    return Use(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / MEGABYTE)


def finecomb(*words: str) -> list[str]:
    return [sys.executable, "-c", "from finecomb.cli import main; main()", *words]


def row(marks: int, place: Path, wanted: list[str]) -> None:
    """Print the use of every command at one size."""
    study = parquet_study(place / f"{marks}.parquet", marks)
    set_seal(study)  # as `finecomb convert` does after it has checked every record
    for name in wanted or [*COMMANDS, "import"]:
        if name == "import":
            _imports(marks, place)
            continue
        out = place / "out.parquet"
        words = [word.format(study=study, out=out) for word in COMMANDS[name]]
        _print(marks, name, use_of(finecomb(*words)))
        shutil.rmtree(out, ignore_errors=True)
    shutil.rmtree(study)


def _imports(marks: int, place: Path) -> None:
    """JSON lines to Parquet beside pandas, which only reads them."""
    lines, out = lines_study(place / "lines.jsonl", marks), place / "imported.parquet"
    ours = use_of(finecomb("convert", str(lines), str(out)))
    theirs = use_of([sys.executable, "-c", f"import pandas; pandas.read_json({str(lines)!r}, lines=True)"])
    note_ratio(f"scale: CPU to import and check {marks:,} marks beside pandas.read_json", ours.cpu, theirs.cpu)
    _print(marks, "import", ours)
    _print(marks, "pandas reads it", theirs)
    shutil.rmtree(out)
    lines.unlink()


def _print(marks: int, name: str, use: Use) -> None:
    print(f"| {marks:,} | {name} | {use.wall:.1f} | {use.cpu:.1f} | {use.megabytes:,.0f} |", flush=True)


def main(sizes: tuple[int, ...] = SIZES, wanted: tuple[str, ...] = ()) -> None:
    print("| marks | command | seconds | CPU seconds | peak MB |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as place:
        for marks in sizes:
            row(marks, Path(place), list(wanted))


if __name__ == "__main__":
    main((int(sys.argv[1]),) if sys.argv[1:] else SIZES, tuple(sys.argv[2:]))
