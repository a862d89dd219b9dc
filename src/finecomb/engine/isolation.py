"""Child processes that never import modules from the working directory."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SAFE_PATH = "PYTHONSAFEPATH"
_LOCK = threading.RLock()


def isolated_python(module: str) -> list[str]:
    """Return the command that runs a module with this Python, without the working directory on the import path.

    `python -m` alone would put the working directory first, so that a `zipfile.py` in a downloaded study would run.
    """
    return [sys.executable, "-P", "-m", module]


@contextmanager
def isolated_children() -> Iterator[None]:
    """Keep the working directory off the import path of Python processes that are started in this block.

    `multiprocessing` starts its processes with `python -c`, which searches the working directory before the path of
    the parent process has been passed on. The environment variable has the effect of `-P`.
    """
    with _LOCK:
        before = os.environ.get(_SAFE_PATH)
        os.environ[_SAFE_PATH] = "1"
        try:
            yield
        finally:
            if before is None:
                del os.environ[_SAFE_PATH]
            else:
                os.environ[_SAFE_PATH] = before
