"""Work that its worker does not survive; other processes import it from here, and it imports little."""

from __future__ import annotations

import os


def square_or_crash(number: int) -> int:
    """A square; whoever works on 3 dies."""
    if number == 3:
        os._exit(1)
    return number * number
