"""Number of CPU cores that are available to worker processes."""

from __future__ import annotations

import os


def usable_core_count() -> int:
    """Return the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
