"""Fuzzing shared by the formats: files that are damaged, and the rule that a reader reads or refuses them."""

from __future__ import annotations

import contextlib
from pathlib import Path

from hypothesis import strategies as st

from finecomb.core.errors import FinecombError
from finecomb.formats.base import Format, Options

ODD = (b"", b"\xff", b"\0", b",", b'"', b"{", b"]", b"null", b"-1", b"\xf0\x9f\x98\x80", b"\n", b"\\ud800")
places = st.tuples(st.floats(0, 1), st.sampled_from(ODD), st.integers(0, 3), st.booleans())


def damage(path: Path, place: tuple[float, bytes, int, bool]) -> None:
    """Cut a file off, or put something odd into it."""
    share, odd, dropped, cut = place
    whole = path.read_bytes()
    at = int(share * len(whole))
    path.write_bytes(whole[:at] if cut else whole[:at] + odd + whole[at + dropped :])


def read_or_refuse(format: Format, path: Path, options: Options | None = None) -> None:
    """Whatever is in the file, a reader gives records or an error that is the user's to mend."""
    assert format.read is not None
    with contextlib.suppress(FinecombError):
        list(format.read(path, options or Options()))
