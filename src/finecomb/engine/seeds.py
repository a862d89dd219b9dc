"""Random numbers that depend on what they are for, not on when or where they are drawn."""

from __future__ import annotations

import hashlib

import numpy as np


def seeded_generator(*parts: object) -> np.random.Generator:
    """A generator that depends on nothing but `parts`, e.g. a seed, a document's id and an annotator's."""
    digest = hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest))
