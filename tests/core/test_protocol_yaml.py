from __future__ import annotations

import time

import pytest

from finecomb.core.errors import ProtocolError
from finecomb.core.protocol_yaml import parse_protocol


def test_aliases_that_would_fill_the_memory_are_refused() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]"
        for before, name in zip("abcdefghijk", "bcdefghijkl", strict=True)
    ]
    with pytest.raises(ProtocolError, match="more than 1,000,000 values after aliases are expanded"):
        parse_protocol("\n".join(lines), "bomb.yaml")


def test_an_alias_of_its_own_parent_is_refused() -> None:
    with pytest.raises(ProtocolError, match=r"bomb\.yaml"):
        parse_protocol("a: &a [*a]\n", "bomb.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: " + "[" * 30_000 + "]" * 30_000, "nested more than 60 levels deep"),
        ("a: " + "{b: " * 5_000 + "1" + "}" * 5_000, "nested more than 60 levels deep"),
        ("\n".join(f"key{n}: {n}" for n in range(16_000)), "more than 5,000 values in one list or mapping"),
        ("a: " + "x" * 8_000_001, "the maximum is 8,000,000"),
    ],
    ids=["brackets", "braces", "keys", "length"],
)
def test_what_is_too_deep_too_wide_or_too_long_is_refused_at_once(text: str, message: str) -> None:
    before = time.perf_counter()
    with pytest.raises(ProtocolError, match=message):
        parse_protocol(text, "hostile.yaml")
    assert time.perf_counter() - before < 20


def test_many_unknown_keys_are_not_all_explained() -> None:
    text = "name: a\nversion: '1'\ntitle: A\n" + "\n".join(f"key{n}: {n}" for n in range(4_000))
    with pytest.raises(ProtocolError) as caught:
        parse_protocol(text, "wide.yaml")
    lines = str(caught.value).splitlines()
    assert len(lines) == 41
    assert lines[-1].endswith("and 3,961 more problems; fix these first")
