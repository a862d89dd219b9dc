"""Normal form of the spellings of names."""

from __future__ import annotations

import re


def fold_spelling(spelling: str) -> str:
    """Return the normal form of a label's spelling: lower case, with hyphens.

    >>> fold_spelling("Grammar_Usage"), fold_spelling("NOT CHECKABLE")
    ('grammar-usage', 'not-checkable')
    """
    return re.sub(r"[\s_-]+", "-", spelling.strip().lower())
