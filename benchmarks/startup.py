"""Startup time of commands, as multiples of importing the libraries that they require."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import finecomb as fc

REPEAT_COUNT = 7
LIBRARIES = {"typer, rich": "import typer, rich", "polars, numpy, pydantic": "import polars, numpy, pydantic"}
LIMITS: tuple[tuple[str, str, float], ...] = (
    ("--version", "typer, rich", 3.0),
    ("--help", "typer, rich", 3.0),
    ("measure STUDY", "polars, numpy, pydantic", 2.5),
)
"""Commands with the libraries to compare with, and the maximum ratio."""


def processor_seconds(*arguments: str) -> float:
    """Return the lowest user and system CPU time of a Python process over several runs."""
    best = float("inf")
    for _ in range(REPEAT_COUNT):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def command_seconds(words: str, study: Path) -> float:
    arguments = [str(study) if word == "STUDY" else word for word in words.split()]
    return processor_seconds("-c", "from finecomb.cli import main; main()", *arguments)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "study"
        fc.write(fc.demo(), study)
        bare = {name: processor_seconds("-c", code) for name, code in LIBRARIES.items()}
        for words, libraries, limit in LIMITS:
            seconds = command_seconds(words, study)
            ratio = seconds / bare[libraries]
            print(
                f"finecomb {words:14} {seconds:5.2f} s of CPU time, {ratio:4.2f} times `import {libraries}` "
                f"({bare[libraries]:.2f} s; limit {limit:g})"
            )
