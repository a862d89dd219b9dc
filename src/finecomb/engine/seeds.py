"""Random generators derived from their purpose, so that draws do not depend on the order or process of execution."""

from __future__ import annotations

import hashlib

import numpy as np


def seeded_generator(*parts: object) -> np.random.Generator:
    """Return a random generator derived only from `parts`, e.g. a seed, a document ID and an annotator ID."""
    digest = hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest))
