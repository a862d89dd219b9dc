"""Definition of file formats: reader and writer of a record stream, and the features that a format can store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

from finecomb.core.errors import ParameterError, param
from finecomb.core.protocol import Protocol
from finecomb.core.study import StudyItem


@dataclass(frozen=True, slots=True)
class Options:
    """User options for reading a file; each format declares those it uses."""

    protocol: Protocol | None = None
    """Protocol of the annotations, if the file does not name it."""
    texts: Path | None = None
    """Path of the texts, if annotations are in a separate file."""
    data: Path | None = None
    """Path of the source data of the texts, e.g. box scores."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Column names in the file, by their standard name."""
    repeats: Literal["kth", "first"] = "kth"
    """Position of a repeated quote: the k-th repetition at the k-th occurrence, or all at the first occurrence."""
    annotator: str = ""
    """Annotator, if the file does not name one."""

    @staticmethod
    def parameter_name(name: str) -> str:
        """Return the name of the parameter by which public functions set an option."""
        return "map" if name == "columns" else name

    def non_default_names(self) -> set[str]:
        """Return the names of options that differ from their defaults."""
        default = Options()
        return {field.name for field in fields(self) if getattr(self, field.name) != getattr(default, field.name)}


def parse_column_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """Parse pairs OURS=THEIRS into a mapping from standard column names to those in the file.

    >>> parse_column_pairs(["text=Body", "id=Key"])
    {'text': 'Body', 'id': 'Key'}
    """
    columns = {}
    for pair in pairs:
        ours, equals, theirs = pair.partition("=")
        if not equals or not ours or not theirs:
            example = param("map", "text=Body")
            raise ParameterError(f"{param('map', pair)}: expected OURS=THEIRS, e.g. {example}", parameter="map")
        columns[ours] = theirs
    return columns


Reader = Callable[[Path, Options], Iterator[StudyItem]]
Writer = Callable[[Iterable[StudyItem], Path, Options], Sequence[str] | None]
"""Function that writes records and returns notes on what the format could not store, if any."""


@dataclass(frozen=True, slots=True)
class Format:
    """One file format with its reader and writer."""

    name: str
    """Name for `--from` and `--to`."""
    title: str
    """Title in messages."""
    read: Reader | None = None
    write: Writer | None = None
    suffixes: tuple[str, ...] = ()
    """File suffixes that suggest the format."""
    sniff: Callable[[Path], bool] | None = None
    """Function that returns True if a path looks like this format, from its first characters; it never raises."""
    holds: frozenset[str] = frozenset()
    """Features (see `features`) that are kept when writing."""
    options: frozenset[str] = frozenset()
    """Options used for reading or writing."""
