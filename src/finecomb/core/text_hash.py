"""Hashes that identify texts, e.g. those a detector was fitted on, without revealing them."""

from __future__ import annotations

import hashlib


def hash_text(text: str) -> str:
    """Return a short hash of a text; white space is normalised, so that line breaks do not change the hash.

    >>> hash_text("One two.") == hash_text("One  two.\\n")
    True
    """
    return hashlib.blake2b("".join(text.split()).encode(), digest_size=8).hexdigest()
