"""Storage of the weights of fitted detectors for use by `detect`."""

from __future__ import annotations

from pathlib import Path

from finecomb.annotators.detectors import FittedDetector
from finecomb.core.errors import FinecombError
from finecomb.formats.atomic_file import write_file_atomically


def save_weights(fitted: FittedDetector, path: Path) -> None:
    """Write the weights of a fitted detector to a file, or to a folder of files."""
    if not fitted.files:
        write_file_atomically(path, fitted.weights)
        return
    if path.exists() and not path.is_dir():
        raise FinecombError(f"{path}: this path is a file, but this detector requires a folder; use another name")
    path.mkdir(parents=True, exist_ok=True)
    for name, content in fitted.files.items():
        write_file_atomically(path / name, content)
