"""Weights of fitted detectors, as `detect` reads them."""

from __future__ import annotations

from pathlib import Path

from finecomb.annotators.detectors import FittedDetector
from finecomb.core.errors import FinecombError
from finecomb.formats.atomic_file import write_file


def save_weights(fitted: FittedDetector, path: Path) -> None:
    """Write the weights of a fitted detector: one file, or a folder of files."""
    if not fitted.files:
        write_file(path, fitted.weights)
        return
    if path.exists() and not path.is_dir():
        raise FinecombError(f"{path}: is a file, and this detector needs a folder; name another one")
    path.mkdir(parents=True, exist_ok=True)
    for name, content in fitted.files.items():
        write_file(path / name, content)
