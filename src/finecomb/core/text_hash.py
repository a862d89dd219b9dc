"""Hashes of texts: what a detector was fitted on can be recognised later, but not read."""

from __future__ import annotations

import hashlib


def text_hash(text: str) -> str:
    """A short hash of a text; blanks do not count, so that another line break makes no other text.

    >>> text_hash("One two.") == text_hash("One  two.\\n")
    True
    """
    return hashlib.blake2b("".join(text.split()).encode(), digest_size=8).hexdigest()
