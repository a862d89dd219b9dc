"""Fuzzing shared by the formats: files that are damaged, and the rule that a reader reads or refuses them."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from finecomb.core.errors import FinecombError, FormatError
from finecomb.formats.base import Format, Options

ODD_BYTES = (b"", b"\xff", b"\0", b",", b'"', b"{", b"]", b"null", b"-1", b"\xf0\x9f\x98\x80", b"\n", b"\\ud800")
file_damages = st.tuples(st.floats(0, 1), st.sampled_from(ODD_BYTES), st.integers(0, 3), st.booleans())


def damage_file(path: Path, place: tuple[float, bytes, int, bool]) -> None:
    """Cut a file off, or put something odd into it."""
    share, odd, dropped, cut = place
    whole = path.read_bytes()
    at = int(share * len(whole))
    path.write_bytes(whole[:at] if cut else whole[:at] + odd + whole[at + dropped :])


def read_or_reject(format: Format, path: Path, options: Options | None = None) -> None:
    """Whatever is in the file, a reader gives records or an error that is the user's to mend."""
    assert format.read is not None
    with contextlib.suppress(FinecombError):
        list(format.read(path, options or Options()))


def first_line_error(format: Format, path: Path) -> str:
    """What a reader says of a slip in the first line of a file, after the file and the line."""
    assert format.read is not None
    with pytest.raises(FormatError) as error:
        list(format.read(path, Options()))
    place = f"{path}:1: "
    assert str(error.value).startswith(place)
    return str(error.value).removeprefix(place)


json_scalars = (
    st.none() | st.booleans() | st.integers(-3, 70) | st.sampled_from([0.5, 1e300, "", " ", "0", "red", "a\0b", "😀"])
)
json_values = st.recursive(
    json_scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab0", max_size=2), inner, max_size=3),
)


@st.composite
def mutated_json(draw: st.DrawFn, value: Any) -> Any:
    """A JSON value in which one thing, somewhere, was left out or replaced by any other."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 9)) == 0:
        return draw(json_values)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    chosen = draw(st.sampled_from(keys))
    if draw(st.integers(0, 5)) == 0:
        kept = [key for key in keys if key != chosen]
        return {key: value[key] for key in kept} if isinstance(value, dict) else [value[key] for key in kept]
    twist = draw(mutated_json(value[chosen]))
    if isinstance(value, dict):
        return value | {chosen: twist}
    return [twist if key == chosen else each for key, each in enumerate(value)]
