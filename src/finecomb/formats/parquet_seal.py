"""The seal of a study in Parquet: that its files are, byte for byte, those that were checked when they were written.

A sealed study is read as it is, without a record for each row. Whoever changes a file breaks the seal, and the study is
read and checked record by record again.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from finecomb.version import __version__

SEAL_FILE = "seal.json"


def set_seal(folder: Path) -> None:
    """Seal a folder whose records were all checked."""
    (folder / SEAL_FILE).write_text(json.dumps(_seal_contents(folder), indent=1) + "\n", encoding="utf-8")


def is_sealed(folder: Path) -> bool:
    """Whether the files are those that were sealed, by this version."""
    try:
        stored = json.loads((folder / SEAL_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(stored == _seal_contents(folder))


def _seal_contents(folder: Path) -> dict[str, str]:
    files = [folder / "study.yaml", *sorted(folder.glob("*.parquet")), *sorted(folder.glob("protocols/*.yaml"))]
    digests = {str(file.relative_to(folder)): _digest(file) for file in files if file.is_file()}
    return {"finecomb": __version__, **digests}


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "blake2b").hexdigest()
