"""Reading of JSON from files, replies and requests. `tests/hostile/test_gate.py` finds calls that bypass it."""

from __future__ import annotations

import json
from typing import Any


def load_json(text: str | bytes) -> Any:
    """Return the value of JSON text, or raise a ValueError if it is invalid or nested too deeply.

    >>> load_json('{"a": [1]}')
    {'a': [1]}
    """
    try:
        return json.loads(text)
    except RecursionError:  # the parser of the standard library has no limit of its own
        raise ValueError("the JSON is nested too deeply") from None
