from __future__ import annotations

import pytest

from finecomb.core.errors import ProtocolError
from finecomb.core.protocol_text import parse_protocol


def test_aliases_that_would_fill_the_memory_are_refused() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]"
        for before, name in zip("abcdefghijk", "bcdefghijkl", strict=True)
    ]
    with pytest.raises(ProtocolError, match="more than 1,000,000 values once its aliases are filled in"):
        parse_protocol("\n".join(lines), "bomb.yaml")


def test_an_alias_of_its_own_parent_is_refused() -> None:
    with pytest.raises(ProtocolError, match=r"bomb\.yaml"):
        parse_protocol("a: &a [*a]\n", "bomb.yaml")
