"""Atomic file replacement: a file is written completely or not at all."""

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
    """Raise an error if a path exists, unless `force` allows replacing it."""
    if path.exists() and not force:
        raise FinecombError(f"{path}: already exists; use another name or replace it with {param('force')}")


@contextmanager
def replace_atomically(path: Path, force: bool = False) -> Iterator[Path]:
    """Yield a temporary path in the same folder, which replaces `path` after the block has succeeded."""
    reject_existing_path(path, force)
    if not path.parent.is_dir():
        raise FinecombError(f"{path}: the folder {path.parent} does not exist; create it first")
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


def write_file_atomically(path: Path, content: str | bytes, private: bool = False) -> None:
    """Write or replace a file atomically; if `private`, only the owner can read it."""
    with replace_atomically(path, force=True) as temporary:
        temporary.touch(0o600 if private else 0o666)
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def sync_to_disk(file: IO[Any]) -> None:
    """Flush a file and wait until its content is on disk."""
    file.flush()
    os.fsync(file.fileno())
