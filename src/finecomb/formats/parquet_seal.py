"""Seal of a study in Parquet, which proves that its files are unchanged since they were validated and written.

A sealed study is read without building and validating records. Changing a file breaks the seal, and the study is then
read and validated record by record.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from finecomb.core.guarded_json import load_json
from finecomb.version import __version__

SEAL_FILE = "seal.json"


def seal_folder(folder: Path) -> None:
    """Seal a folder whose records have all been validated."""
    (folder / SEAL_FILE).write_text(json.dumps(_seal_contents(folder), indent=1) + "\n", encoding="utf-8")


def has_valid_seal(folder: Path) -> bool:
    """Return True if the files are unchanged since they were sealed by this version."""
    try:
        stored = load_json((folder / SEAL_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(stored == _seal_contents(folder))


def _seal_contents(folder: Path) -> dict[str, str]:
    files = [folder / "study.yaml", *sorted(folder.glob("*.parquet")), *sorted(folder.glob("protocols/*.yaml"))]
    contents = {"finecomb": __version__}
    for file in filter(Path.is_file, files):
        with file.open("rb") as stream:
            contents[str(file.relative_to(folder))] = hashlib.file_digest(stream, "blake2b").hexdigest()
    return contents
