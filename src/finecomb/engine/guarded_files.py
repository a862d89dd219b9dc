"""Reading of archives, workbooks and weights, with limits on what they unpack to.

`tests/hostile/test_gate.py` finds calls that bypass these readers.
"""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from finecomb.core.errors import FinecombError
from finecomb.core.optional_packages import import_optional_package

MAX_UNPACKED_BYTES = 2_000_000_000
"""Maximum size in bytes of everything that an archive contains."""
_MAX_MEMBERS = 100_000
_ARCHIVE_ERRORS = (zipfile.BadZipFile, NotImplementedError, OSError, ValueError, EOFError, RuntimeError)

Arrays = dict[str, np.ndarray[Any, Any]]


@contextmanager
def open_archive(
    file: Path | IO[bytes], max_bytes: int = MAX_UNPACKED_BYTES, name: str = ""
) -> Iterator[zipfile.ZipFile]:
    """Open a ZIP archive for reading, or raise an error if its content exceeds the limits."""
    with load_archive(file, max_bytes, name) as archive:
        yield archive


def load_archive(file: Path | IO[bytes], max_bytes: int = MAX_UNPACKED_BYTES, name: str = "") -> zipfile.ZipFile:
    """Return a ZIP archive that stays open, or raise an error if its content exceeds the limits."""
    archive = zipfile.ZipFile(file)
    members = archive.infolist()
    size = sum(member.file_size for member in members)
    problem = ""
    if size > max_bytes:
        problem = f"the file unpacks to {size:,} bytes; the maximum is {max_bytes:,}, so split it"
    elif len(members) > _MAX_MEMBERS:
        problem = f"the archive contains {len(members):,} files; the maximum is {_MAX_MEMBERS:,}, so split it"
    if problem:
        archive.close()
        raise FinecombError(f"{name or file}: {problem}")
    return archive


class BoundedGzipFile(gzip.GzipFile):
    """File compressed with gzip, which raises an error instead of exceeding the limit."""

    def read(self, size: int | None = -1) -> bytes:
        """Read at most the maximum, since a small file can unpack to more than the memory holds."""
        is_whole = size is None or size < 0
        return self._require_limit(super().read(MAX_UNPACKED_BYTES + 1 if is_whole else size))

    def read1(self, size: int = -1) -> bytes:
        """Read the bytes that one call to the compressed file gives."""
        return self._require_limit(super().read1(size))

    def _require_limit(self, data: bytes) -> bytes:
        if self.tell() > MAX_UNPACKED_BYTES:
            raise FinecombError(f"{self.name}: the file unpacks to more than {MAX_UNPACKED_BYTES:,} bytes, so split it")
        return data


def load_workbook(path: Path, **options: Any) -> Any:
    """Open an XLSX workbook with openpyxl, after checking what it unpacks to."""
    with open_archive(path):
        pass
    import openpyxl

    return openpyxl.load_workbook(path, **options)


def load_arrays(path: Path) -> Arrays:
    """Return the arrays of an `.npz` file. Raise a ValueError if it is damaged, too large or needs code to be read."""
    try:
        with open_archive(path), np.load(path, allow_pickle=False) as stored:
            arrays = dict(stored)
        if not all(isinstance(array, np.ndarray) for array in arrays.values()):  # NumPy returns other members as bytes
            raise ValueError("a member is not an array")
        return arrays
    except FinecombError as error:
        raise ValueError(str(error)) from None
    except (*_ARCHIVE_ERRORS, MemoryError, OverflowError, TypeError, SyntaxError, KeyError, AttributeError) as error:
        raise ValueError(f"{path.name} is not a file of arrays: {type(error).__name__}: {error}") from None


def load_weights(path: Path, purpose: str) -> Arrays:
    """Return the tensors of a `.safetensors` file as arrays. Raise a ValueError if it is damaged."""
    library = import_optional_package(f"{purpose} requires", "safetensors.numpy", "detect")
    try:
        weights: Arrays = library.load_file(path)
    except OSError:
        raise
    except Exception as error:  # the library has its own exceptions, which are not ValueErrors
        raise ValueError(f"{path.name} is not a file of weights: {error}") from None
    return weights
