"""Scaling of commands: CPU time and peak memory as the study doubles in size, each in a separate process.

`python -m benchmarks scale` doubles from 125,000 to 1,000,000 marks. `python -m benchmarks.scale 10000000` measures one
size, with the commands named after it or all. Measurements are stored in `scale.json`, and the table in the docs is
built from all stored ones, so that large sizes need not be measured again.

Studies are generated in a temporary folder, or in FINECOMB_SCALE if set, where they are kept.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks._docs import markdown_table, write_table
from benchmarks._large_corpus import write_jsonl_study, write_parquet_study
from benchmarks._ratios import describe_conditions, measured_ratios, record_ratio
from benchmarks._ratios import store_ratios as keep_ratios
from finecomb.formats.parquet_seal import seal_folder

SIZES = (125_000, 250_000, 500_000, 1_000_000)
COMMANDS = {
    "stats": ("stats", "{study}"),
    "measure": ("measure", "{study}"),
    "agree": ("agree", "{study}", "--draws", "100"),
    "score": ("score", "{study}", "--gold", "truth", "--judge", "reader-1"),
    "select": ("select", "{study}", "-o", "{out}", "--where", "severity >= 2"),
}
TITLES = {
    "stats": "`stats`",
    "measure": "`measure`",
    "agree": "`agree --draws 100`",
    "score": "`score`, one judge",
    "select": "`select` on severity, to Parquet",
    "import": "`convert` from JSON lines to Parquet",
    "pandas": "pandas reads the same JSON lines",
}
MEASUREMENTS_FILE = Path(__file__).parent / "scale.json"
MEGABYTE = 1024 if sys.platform != "darwin" else 1024 * 1024


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """Time and memory of a process, and when it ran."""

    wall: float
    cpu: float
    megabytes: float
    day: str = ""
    load: float = 0.0


def measure_command(command: list[str]) -> ResourceUse:
    """Measure time and peak memory of a command that must succeed; its output is discarded."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    complaint = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: {complaint.decode()[-400:]}")
    wall, cpu = time.perf_counter() - start, usage.ru_utime + usage.ru_stime
    megabytes, day = usage.ru_maxrss / MEGABYTE, f"{datetime.now(UTC):%Y-%m-%d}"
    return ResourceUse(round(wall, 1), round(cpu, 1), round(megabytes), day, round(os.getloadavg()[0], 1))


def finecomb_command(*words: str) -> list[str]:
    return [sys.executable, "-c", "from finecomb.cli import main; main()", *words]


def measure_size(marks: int, place: Path, wanted: Sequence[str]) -> None:
    """Measure the commands at one size, storing each result immediately."""
    names = list(wanted or [*COMMANDS, "import"])
    if any(name in COMMANDS for name in names):
        study = _make_sealed_study(marks, place)
        for name in names:
            if name in COMMANDS:
                out = place / "out.parquet"
                store_measurement(
                    marks,
                    name,
                    measure_command(finecomb_command(*(word.format(study=study, out=out) for word in COMMANDS[name]))),
                )
                shutil.rmtree(out, ignore_errors=True)
    if "import" in names:
        _measure_import(marks, place)


def _make_sealed_study(marks: int, place: Path) -> Path:
    """Build a study with this number of marks, sealed as `finecomb convert` does after checking each record."""
    path = place / f"{marks}.parquet"
    if not path.exists():
        seal_folder(write_parquet_study(path, marks))
    return path


def _measure_import(marks: int, place: Path) -> None:
    """Measure the conversion of JSON lines to Parquet and, for comparison, pandas reading them."""
    lines, out = place / f"{marks}.jsonl", place / "imported.parquet"
    if not lines.exists():
        write_jsonl_study(lines, marks)
    ours = measure_command(finecomb_command("convert", str(lines), str(out)))
    theirs = measure_command([sys.executable, "-c", f"import pandas; pandas.read_json({str(lines)!r}, lines=True)"])
    record_ratio(f"scale: CPU to import and check {marks:,} marks beside pandas.read_json", ours.cpu, theirs.cpu)
    store_measurement(marks, "import", ours)
    store_measurement(marks, "pandas", theirs)
    shutil.rmtree(out)


def store_measurement(marks: int, name: str, use: ResourceUse) -> None:
    """Store a measurement, replacing an earlier one of the same command and size."""
    print(f"{marks:,} {name}: {use.wall:.1f} s, {use.cpu:.1f} s of CPU, {use.megabytes:,.0f} MB", flush=True)
    uses = read_measurements()
    uses.setdefault(str(marks), {})[name] = use
    rows = {size: {name: asdict(use) for name, use in uses[size].items()} for size in sorted(uses, key=int)}
    MEASUREMENTS_FILE.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def read_measurements() -> dict[str, dict[str, ResourceUse]]:
    """Return the stored measurements by size and command."""
    rows = json.loads(MEASUREMENTS_FILE.read_text(encoding="utf-8")) if MEASUREMENTS_FILE.exists() else {}
    return {size: {name: ResourceUse(**use) for name, use in uses.items()} for size, uses in rows.items()}


@contextmanager
def _study_folder() -> Iterator[Path]:
    if "FINECOMB_SCALE" in os.environ:
        yield Path(os.environ["FINECOMB_SCALE"])
        return
    with tempfile.TemporaryDirectory() as place:
        yield Path(place)


def growth_table(uses: Mapping[str, Mapping[str, ResourceUse]]) -> str:
    """Return CPU seconds and peak memory by command and size, with the dates of measurement."""
    sizes = sorted(uses, key=int)
    rows = [[title, *(_format_use(uses[size].get(name)) for size in sizes)] for name, title in TITLES.items()]
    head = ["marks", *(f"{int(size):,}" for size in sizes)]
    return markdown_table(
        head, [*rows, ["measured, load", *(_format_days_and_loads(list(uses[size].values())) for size in sizes)]]
    )


def _format_use(use: ResourceUse | None) -> str:
    return f"{use.cpu:,.1f} s, {use.megabytes:,.0f} MB" if use else ""


def _format_days_and_loads(uses: Sequence[ResourceUse]) -> str:
    """Return the dates and machine loads at which a size was measured."""
    days, loads = sorted({use.day for use in uses}), sorted(use.load for use in uses)
    return f"{' to '.join(dict.fromkeys((days[0], days[-1])))}, {loads[0]:.0f} to {loads[-1]:.0f}"


def main(sizes: Sequence[int] = SIZES, wanted: Sequence[str] = ()) -> None:
    with _study_folder() as place:
        for marks in sizes:
            measure_size(marks, place, wanted)
    write_table(
        "scale.md", "scale", growth_table(read_measurements()), describe_conditions("polars", "pydantic", "pandas")
    )


if __name__ == "__main__":
    main((int(sys.argv[1]),) if sys.argv[1:] else SIZES, tuple(sys.argv[2:]))
    keep_ratios(measured_ratios)
