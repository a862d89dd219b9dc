"""The report of a study of Scarecrow's size: seconds of processor time to build it, and how large it is."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks._corpus import corpus
from finecomb.core.study import Study
from finecomb.report.site.content import source
from finecomb.report.site.folder import write_report

MOST_SECONDS, MOST_MEGABYTES = 20.0, 30.0


def main() -> None:
    study = Study.from_items(corpus())
    with tempfile.TemporaryDirectory() as place:
        before = time.process_time()
        content = write_report(source(study, "benchmark"), Path(place) / "report", "today")
        spent = time.process_time() - before
        size = sum(file.stat().st_size for file in Path(place).rglob("*") if file.is_file()) / 1e6
    print(f"{content.counts}")
    print(f"  {spent:.1f} s of processor time, {'within' if spent < MOST_SECONDS else 'OVER'} {MOST_SECONDS:g} s")
    print(f"  {size:.1f} MB, {'within' if size < MOST_MEGABYTES else 'OVER'} {MOST_MEGABYTES:g} MB")
