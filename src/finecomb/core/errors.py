"""What goes wrong by the user's hand: one base class, and problems as data."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

_OPEN, _CLOSE = "\ue000", "\ue001"  # private-use characters around a parameter in a message; no message shows them
_NAMED = re.compile(f"{_OPEN}(\\w+)(?:=([^{_CLOSE}]*))?{_CLOSE}")
ParameterStyle = Callable[[str, str | None], str]
"""How a client writes a parameter, given its name and, where the message has one, its value."""


def param(name: str, value: object = None) -> str:
    """Name a parameter in a message, so that every client can write it in its own way.

    Python prints `min_votes=3`, the command line `--min-votes 3`; without a value `min_votes` and `--min-votes`.

    >>> str(FinecombError(f"{param('min_votes', 3)}: expected 1 or 2"))
    'min_votes=3: expected 1 or 2'
    """
    return f"{_OPEN}{name}{_CLOSE}" if value is None else f"{_OPEN}{name}={value}{_CLOSE}"


def python_style(name: str, value: str | None) -> str:
    """Write a parameter as a keyword of Python."""
    return name if value is None else f"{name}={value}"


def flag_style(name: str, value: str | None) -> str:
    """Write a parameter as a flag of the command line.

    >>> FinecombError(f"{param('min_votes', 3)}: expected 1 or 2").text(flag_style)
    '--min-votes 3: expected 1 or 2'
    """
    flag = f"--{name.strip('_').replace('_', '-')}"
    return flag if value is None else f"{flag} {value}"


class FinecombError(Exception):
    """An error that the user can fix; its message names what was found, where, and how to fix it."""

    def text(self, style: ParameterStyle) -> str:
        """Return the message with its parameters written in a client's style."""
        return _NAMED.sub(lambda found: style(found[1], found[2]), super().__str__())

    def __str__(self) -> str:
        return self.text(python_style)


class ParameterNote(str):
    """A note that names parameters: a string in Python's style, which other clients can write in theirs.

    >>> note = ParameterNote(f"empty texts are kept; {param('empty', 'drop')} leaves them out")
    >>> note, note.text(flag_style)
    ('empty texts are kept; empty=drop leaves them out', 'empty texts are kept; --empty drop leaves them out')
    """

    marked: str
    """The note with its parameters as `param` wrote them."""

    def __new__(cls, marked: str) -> ParameterNote:
        """Write the parameters in Python's style."""
        note = super().__new__(cls, FinecombError(marked))
        note.marked = marked
        return note

    def text(self, style: ParameterStyle) -> str:
        """Return the note with its parameters written in a client's style."""
        return FinecombError(self.marked).text(style)


class ParameterError(FinecombError, ValueError):
    """A parameter whose value cannot be used.

    Attributes
    ----------
    parameter : str
        Name of the parameter, as a keyword of Python; empty where several are concerned.
    choices : tuple of str
        Values that can be used, where they can be listed.
    hint : str
        How to fix it, where that is more than one of the choices.
    """

    def __init__(self, message: str, *, parameter: str = "", choices: Iterable[str] = (), hint: str = "") -> None:
        self.parameter, self.choices, self.hint = parameter, tuple(map(str, choices)), hint
        super().__init__(message + _way_out(self.parameter, self.choices, hint))


def _way_out(parameter: str, choices: Sequence[str], hint: str) -> str:
    if hint:
        return f"; {hint}"
    if not choices:
        return ""
    listed = ", ".join(choices[:12]) + (", ..." if len(choices) > 12 else "")
    return f"; pass {param(parameter)} with one of {listed}" if parameter else f"; choose one of {listed}"


class SpanError(FinecombError, ValueError):
    """A span that cannot be."""


class ProtocolError(FinecombError):
    """A protocol that cannot be used as it is written."""


class FormatError(FinecombError):
    """A file that does not say what its format asks for."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a study: what was found, where, and the way out."""

    message: str
    """What was found and what was expected, in one line."""
    level: Literal["error", "warning"] = "error"
    """An error keeps a study from being used; a warning is worth a look."""
    kind: str = ""
    """What has the problem: `document`, `annotator`, `annotation`, `protocol` or `settings`."""
    id: str = ""
    """Its id, where it has one."""
    row: int = -1
    """Which one of its kind it is, counted from 0 in the order read."""
    where: str = ""
    """File and line, e.g. `annotations.jsonl:12`, once known."""

    def with_location(self, where: str) -> Problem:
        """Say where it stands."""
        return replace(self, where=where)

    def __str__(self) -> str:
        place = self.where or " ".join(part for part in (self.kind, self.id and repr(self.id)) if part)
        prefix = "" if self.level == "error" else "warning: "
        return f"{place}: {prefix}{self.message}" if place else f"{prefix}{self.message}"


class StudyError(FinecombError):
    """A study with problems; all of them are in `problems`."""

    def __init__(self, problems: Sequence[Problem], max_kinds: int = 20) -> None:
        self.problems = tuple(problems)
        kinds: dict[str, list[Problem]] = {}
        for problem in self.problems:
            kinds.setdefault(message_template(problem), []).append(problem)
        lines = [line for alike in list(kinds.values())[:max_kinds] for line in _summarise_alike(alike)]
        if len(kinds) > max_kinds:
            lines.append(f"... and {len(kinds) - max_kinds} more kinds of problems; `finecomb check` lists them all")
        super().__init__("\n".join(lines))


_MAX_LISTED = 3
_NAMES_AND_NUMBERS = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")


def message_template(problem: Problem) -> str:
    """What is left of a problem's message without names and numbers: problems of one kind are alike."""
    return _NAMES_AND_NUMBERS.sub("", problem.message)


def _summarise_alike(alike: Sequence[Problem]) -> list[str]:
    """Each of a few problems of one kind; of many the first, and how many there are."""
    if len(alike) <= _MAX_LISTED:
        return [str(problem) for problem in alike]
    return [f"{alike[0]} (and {len(alike) - 1:,} more like this; `finecomb check --all` lists them)"]


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A tail for a message: the nearest valid name, else the names there are, else nothing.

    >>> did_you_mean("redundent", ["redundant", "incoherent"])
    "; did you mean 'redundant'?"
    >>> did_you_mean("zzz", ["a", "b"])
    '; there are: a, b'
    """
    names = [str(spelling) for spelling in names]
    folded = {spelling.lower(): spelling for spelling in names}
    near = difflib.get_close_matches(name.lower(), folded, n=1)
    if near:
        return f"; did you mean {folded[near[0]]!r}?"
    if not names:
        return ""
    listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"; there are: {listed}"


def diff_excerpt(first: str, second: str, width: int = 60) -> tuple[str, str]:
    """Two different texts as Python would write them, cut to `width` characters around the first difference.

    >>> diff_excerpt("a b", "a\\u00a0b")
    ("'a b'", "'a\\\\xa0b'")
    """
    pairs = zip(first, second, strict=False)
    same = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(first), len(second)))
    start = max(0, same - width // 2)
    cut = [passage[start : start + width] for passage in (first, second)]
    looks_same = unicodedata.normalize("NFC", cut[0]) == unicodedata.normalize("NFC", cut[1])
    quoted = [ascii(passage) if looks_same else repr(passage) for passage in cut]
    return _add_ellipses(quoted[0], start, len(first) - width), _add_ellipses(quoted[1], start, len(second) - width)


def _add_ellipses(quoted: str, start: int, last: int) -> str:
    return ("..." if start else "") + quoted + ("..." if start < last else "")


def shorten(text: str, width: int = 60) -> str:
    """`text` in one line of at most `width` characters, for messages.

    >>> shorten("one two three four", 12)
    'one two ...'
    """
    line = " ".join(text[: 4 * width].split())
    return line if len(line) <= width and len(text) <= 4 * width else line[: width - 4].rstrip() + " ..."
