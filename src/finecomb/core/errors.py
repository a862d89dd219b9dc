"""Errors that a user can fix: the base class, its subclasses, and problems of a study as data."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

_OPEN, _CLOSE = (
    "\ue000",
    "\ue001",
)  # Private-use characters that enclose a parameter in a message. They are replaced before a message is shown.
_PARAMETER_PLACEHOLDER = re.compile(f"{_OPEN}(\\w+)(?:=([^{_CLOSE}]*))?{_CLOSE}")
ParameterStyle = Callable[[str, str | None], str]
"""Function that formats a parameter for a client, given its name and its value or None."""


def param(name: str, value: object = None) -> str:
    """Mark a parameter in a message so that each client can format it in its own style.

    Python prints `min_votes=3`, the command line `--min-votes 3`; without a value `min_votes` and `--min-votes`.

    >>> str(FinecombError(f"{param('min_votes', 3)}: expected 1 or 2"))
    'min_votes=3: expected 1 or 2'
    """
    return f"{_OPEN}{name}{_CLOSE}" if value is None else f"{_OPEN}{name}={value}{_CLOSE}"


def format_as_keyword(name: str, value: str | None) -> str:
    """Format a parameter as a Python keyword."""
    return name if value is None else f"{name}={value}"


def format_as_flag(name: str, value: str | None) -> str:
    """Format a parameter as a command-line flag.

    >>> FinecombError(f"{param('min_votes', 3)}: expected 1 or 2").format_message(format_as_flag)
    '--min-votes 3: expected 1 or 2'
    """
    flag = f"--{name.strip('_').replace('_', '-')}"
    return flag if value is None else f"{flag} {value}"


class FinecombError(Exception):
    """Error that the user can fix. The message names what was found, where, and how to fix it."""

    def format_message(self, style: ParameterStyle) -> str:
        """Return the message with its parameters formatted in a client's style."""
        return _PARAMETER_PLACEHOLDER.sub(lambda found: style(found[1], found[2]), super().__str__())

    def __str__(self) -> str:
        return self.format_message(format_as_keyword)


class ParameterError(FinecombError, ValueError):
    """A parameter with an invalid value.

    Attributes
    ----------
    parameter : str
        Name of the parameter as a Python keyword; empty if several are involved.
    choices : tuple of str
        Valid values, if they can be listed.
    hint : str
        How to fix the error, if it is more than selecting one of the choices.
    """

    def __init__(self, message: str, *, parameter: str = "", choices: Iterable[str] = (), hint: str = "") -> None:
        self.parameter, self.choices, self.hint = parameter, tuple(map(str, choices)), hint
        if self.choices and not hint:
            listed = ", ".join(self.choices[:12]) + (", ..." if len(self.choices) > 12 else "")
            hint = f"pass {param(parameter)} with one of {listed}" if parameter else f"select one of {listed}"
        super().__init__(f"{message}; {hint}" if hint else message)


class SpanError(FinecombError, ValueError):
    """Invalid span: offsets that are reversed, negative or outside the text."""


class ProtocolError(FinecombError):
    """Invalid protocol."""


class FormatError(FinecombError):
    """A file that does not follow its format."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a study: what was found, where, and how to fix it."""

    message: str
    """Description in one line: what was found and what was expected."""
    level: Literal["error", "warning"] = "error"
    """`error` if the study cannot be used, `warning` otherwise."""
    kind: str = ""
    """Record with the problem: `document`, `annotator`, `annotation`, `protocol` or `settings`."""
    id: str = ""
    """ID of the record, if it has one."""
    row: int = -1
    """Index of the record among those of its kind, from 0 in reading order; -1 if unknown."""
    where: str = ""
    """File and line, e.g. `annotations.jsonl:12`, if known."""

    def with_location(self, where: str) -> Problem:
        """Return the problem with its file and line."""
        return replace(self, where=where)

    def __str__(self) -> str:
        place = self.where or " ".join(part for part in (self.kind, self.id and repr(self.id)) if part)
        prefix = "" if self.level == "error" else "warning: "
        return f"{place}: {prefix}{self.message}" if place else f"{prefix}{self.message}"


class StudyError(FinecombError):
    """A study with errors, all listed in `problems`."""

    def __init__(self, problems: Sequence[Problem], max_kinds: int = 20) -> None:
        self.problems = tuple(problems)
        kinds: dict[str, list[Problem]] = {}
        for problem in self.problems:
            kinds.setdefault(message_template(problem), []).append(problem)
        lines: list[str] = []
        for alike in list(kinds.values())[:max_kinds]:
            if len(alike) <= _MAX_SIMILAR_PROBLEMS:
                lines += map(str, alike)
            else:
                more = f"(and {len(alike) - 1:,} more like this; `finecomb check --all` lists them)"
                lines.append(f"{alike[0]} {more}")
        if len(kinds) > max_kinds:
            lines.append(f"... and {len(kinds) - max_kinds} more kinds of problems; `finecomb check` lists all of them")
        super().__init__("\n".join(lines))


_MAX_SIMILAR_PROBLEMS = 3
_NAMES_AND_NUMBERS = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")


def message_template(problem: Problem) -> str:
    """Return a problem's message without names and numbers, to group similar problems."""
    return _NAMES_AND_NUMBERS.sub("", problem.message)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a message suffix with the closest valid name, or a list of valid names if none is close.

    >>> did_you_mean("redundent", ["redundant", "incoherent"])
    "; did you mean 'redundant'?"
    >>> did_you_mean("zzz", ["a", "b"])
    '; available: a, b'
    """
    names = [str(spelling) for spelling in names]
    folded = {spelling.lower(): spelling for spelling in names}
    near = difflib.get_close_matches(name.lower(), folded, n=1)
    if near:
        return f"; did you mean {folded[near[0]]!r}?"
    if not names:
        return ""
    listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"; available: {listed}"


def diff_excerpt(first: str, second: str, width: int = 60) -> tuple[str, str]:
    """Return excerpts of two texts, as Python literals of `width` characters around their first difference.

    >>> diff_excerpt("a b", "a\\u00a0b")
    ("'a b'", "'a\\\\xa0b'")
    """
    pairs = zip(first, second, strict=False)
    same = next(
        (position for position, (character, other) in enumerate(pairs) if character != other),
        min(len(first), len(second)),
    )
    start = max(0, same - width // 2)
    cut = [passage[start : start + width] for passage in (first, second)]
    looks_same = unicodedata.normalize("NFC", cut[0]) == unicodedata.normalize("NFC", cut[1])
    quoted = [ascii(passage) if looks_same else repr(passage) for passage in cut]
    return _add_ellipses(quoted[0], start, len(first) - width), _add_ellipses(quoted[1], start, len(second) - width)


def _add_ellipses(quoted: str, start: int, last: int) -> str:
    return ("..." if start else "") + quoted + ("..." if start < last else "")


def shorten(text: str, width: int = 60) -> str:
    """Return `text` in one line of at most `width` characters, for messages.

    >>> shorten("one two three four", 12)
    'one two ...'
    """
    line = " ".join(text[: 4 * width].split())
    return line if len(line) <= width and len(text) <= 4 * width else line[: width - 4].rstrip() + " ..."
