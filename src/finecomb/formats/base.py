"""What every format is: a way from a path to a stream of records, and back, and a list of what it can hold."""

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
    """What a user may say about a file beyond its path; each format names the ones it reads."""

    protocol: Protocol | None = None
    """What the annotators were asked, where the file does not say."""
    texts: Path | None = None
    """Where the texts are, when the annotations have a file of their own."""
    data: Path | None = None
    """Where the records behind the texts are, e.g. box scores."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Our name of a column -> its name in the file."""
    repeats: Literal["kth", "first"] = "kth"
    """Whether the k-th repetition of a quote goes to its k-th occurrence or all go to the first."""
    annotator: str = ""
    """Who made the annotations, where the file does not say."""

    @staticmethod
    def parameter(name: str) -> str:
        """Return the parameter of public functions that sets an option."""
        return "map" if name == "columns" else name

    def non_default_names(self) -> set[str]:
        """Names of the options that were set."""
        default = Options()
        return {field.name for field in fields(self) if getattr(self, field.name) != getattr(default, field.name)}


def parse_columns(pairs: Iterable[str]) -> dict[str, str]:
    """Return names of columns from pairs OURS=THEIRS.

    >>> parse_columns(["text=Body", "id=Key"])
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
"""Writes records; returns what there is to say about what the format could not hold, if anything."""


@dataclass(frozen=True, slots=True)
class Format:
    """One file format, in and out."""

    name: str
    """For `--from` and `--to`."""
    title: str
    """As people call it."""
    read: Reader | None = None
    write: Writer | None = None
    suffixes: tuple[str, ...] = ()
    """File endings that suggest it."""
    sniff: Callable[[Path], bool] | None = None
    """Whether a path looks like it, decided on little of it; never raises."""
    holds: frozenset[str] = frozenset()
    """Features (see `features`) that survive writing."""
    options: frozenset[str] = frozenset()
    """Options that reading or writing it uses."""
