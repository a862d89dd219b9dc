"""Reading and checking beside the floor: `json.loads` on every line, which checks nothing and keeps everything."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._corpus import written
from benchmarks._timing import seconds
from finecomb.formats import convert, read

MEGABYTE = 1024 * (1 if sys.platform != "darwin" else 1024)


def floor(folder: Path) -> int:
    return sum(len([json.loads(line) for line in file.open(encoding="utf-8")]) for file in folder.glob("*.jsonl"))


def peak_of(source: Path, target: Path) -> tuple[float, float]:
    """Seconds and peak megabytes of a conversion in a process of its own."""
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
        folder = written(Path(place) / "study")
        study = read(folder)
        ours, bare = seconds(lambda: read(folder)), seconds(lambda: floor(folder))
        print(f"{len(study.annotations):,} annotations, {len(study.marks):,} marks: read and checked in {ours:.2f} s")
        print(f"json.loads alone {bare:.2f} s; ratio {ours / bare:.1f}")
        large = written(Path(place) / "large", count=16000, annotators=20)
        marks = sum(
            len(json.loads(line).get("marks", ())) for line in (large / "annotations.jsonl").open(encoding="utf-8")
        )
        for target in ("copy", "marks.csv", "frames.parquet"):
            took, peak = peak_of(large, Path(place) / target)
            print(f"{marks:,} marks streamed to {target}: {took:.0f} s, peak {peak:,.0f} MB")


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEGABYTE)
