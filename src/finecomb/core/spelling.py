"""The one spelling that stands for the many in which names are written."""

from __future__ import annotations

import re


def fold_spelling(spelling: str) -> str:
    """One form for the many spellings of a label: lower case, with hyphens.

    >>> fold_spelling("Grammar_Usage"), fold_spelling("NOT CHECKABLE")
    ('grammar-usage', 'not-checkable')
    """
    return re.sub(r"[\s_-]+", "-", spelling.strip().lower())
