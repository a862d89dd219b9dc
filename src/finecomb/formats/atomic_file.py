"""A file that is written whole or not at all: nothing half-written ever takes the place of another."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from finecomb.core.errors import FinecombError, param


def reject_existing_path(path: Path, force: bool = False) -> None:
    """An error where something is there already, unless it may be replaced."""
    if path.exists() and not force:
        raise FinecombError(f"{path}: exists already; choose another name or say {param('force')} to replace it")


@contextmanager
def replace_atomically(path: Path, force: bool = False) -> Iterator[Path]:
    """A path beside `path` to write to; it takes the place of `path` only when all has gone well."""
    reject_existing_path(path, force)
    if not path.parent.is_dir():
        raise FinecombError(f"{path}: its folder {path.parent} does not exist; create it first")
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part{''.join(path.suffixes)}")
    old = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.old")
    try:
        yield temporary
        if path.is_dir():
            path.rename(old)
        temporary.replace(path)
    except OSError as error:
        if old.exists() and not path.exists():
            old.rename(path)
        raise FinecombError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        for left in (temporary, old):
            if left.is_dir():
                shutil.rmtree(left)
            elif left.exists():
                left.unlink()


def write_file(path: Path, content: str | bytes, private: bool = False) -> None:
    """Write a file in the place of what is there; where `private`, nobody else may read it."""
    with replace_atomically(path, force=True) as temporary:
        temporary.touch(0o600 if private else 0o666)
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def sync_to_disk(file: IO[Any]) -> None:
    """Make sure that what was written is on disk."""
    file.flush()
    os.fsync(file.fileno())
