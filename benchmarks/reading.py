"""Reading and validation compared with a floor: `json.loads` on each line, without any checks."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._corpus import write_corpus
from benchmarks._docs import markdown_table, write_table
from benchmarks._ratios import describe_conditions, record_ratio
from benchmarks._timing import best_seconds
from finecomb.formats import convert, read

TARGETS = {"copy": "another folder", "marks.csv": "a CSV table", "frames.parquet": "Parquet tables"}
MEGABYTE = 1024 * (1 if sys.platform != "darwin" else 1024)


def parse_json_only(folder: Path) -> int:
    return sum(len([json.loads(line) for line in file.open(encoding="utf-8")]) for file in folder.glob("*.jsonl"))


def measure_conversion(source: Path, target: Path) -> tuple[float, float]:
    """Measure the seconds and peak megabytes of a conversion in a separate process."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.reading", str(source), str(target)],
        check=True,
        capture_output=True,
        text=True,
    )
    return time.perf_counter() - start, float(done.stdout)


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = write_corpus(Path(place) / "study")
        study = read(folder)
        ours, bare = best_seconds(lambda: read(folder)), best_seconds(lambda: parse_json_only(folder))
        ratio = record_ratio("reading: seconds beside json.loads", ours, bare)
        size = f"{len(study.annotations):,} annotations, {len(study.marks):,} marks"
        row = (size, f"{ours:.2f}", f"{bare:.2f}", f"{ratio:.1f}")
        head = ("reading and checking", "seconds", "`json.loads` alone", "ratio")
        write_table("performance.md", "reading", markdown_table(head, [row]), describe_conditions("polars", "pydantic"))
        large = write_corpus(Path(place) / "large", count=16000, annotators=20)
        marks = sum(
            len(json.loads(line).get("marks", ())) for line in (large / "annotations.jsonl").open(encoding="utf-8")
        )
        rows = []
        for target, title in TARGETS.items():
            took, peak = measure_conversion(large, Path(place) / target)
            rows.append((title, f"{took:.0f}", f"{peak:,.0f} MB"))
        columns = (f"320,000 annotations, {marks:,} marks, as a stream from a folder to", "seconds", "peak memory")
        write_table(
            "performance.md", "streaming", markdown_table(columns, rows), describe_conditions("polars", "pydantic")
        )


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEGABYTE)
