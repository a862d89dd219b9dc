"""The processes of this machine."""

from __future__ import annotations

import os
import signal


def usable_core_count() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ignore_interrupts() -> None:
    """Ctrl-C is for the process that people see; it ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
