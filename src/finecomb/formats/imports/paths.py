"""Paths into nested data: `response.output`, `messages[-1].content`, `labels[].start`, `annotations{}[][0]`.

A path consists of names and brackets:

| syntax | meaning |
|---|---|
| `a.b` | field `b` of the object `a`; a column whose whole name is `a.b` is preferred |
| `a."b.c"` | field `b.c`, whose name has a dot |
| `a[0]`, `a[-1]` | item of a list by position |
| `a[]`, `a{}` | each item of a list, each value of an object |
| `a{}.@key`, `a[].@index` | name or position of the current value |
| `a[role=assistant]` | items of a list whose field `role` is `assistant` |
| `a[b.c]` | item whose position is the value of `b.c` |
| `@file`, `@row` | name of the file without its suffix, and number of the row |
| `a|b` | value of `a`, or of `b` if `a` is missing |
| `=text` | the constant `text` |

Two paths with brackets run in parallel: the second item of `spans[]` belongs to the second item of `reasons[]`. A text
that contains JSON or a Python list is parsed when a path enters it, as in cells of a table.
"""

from __future__ import annotations

import ast
import functools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json, to_json

from finecomb.core.errors import ParameterError, param

Indices = tuple[int | str, ...]
"""Position in each list or object that is iterated over, outermost first."""

_KEY, _INDEX, _EACH, _FILTER, _LOOKUP, _SPECIAL = range(6)
_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"|([^.\[\]{}|"]+)')
_FILTER_CONTENT = re.compile(r"([\w@.-]+)=(.*)", re.DOTALL)
_SPECIAL_NAMES = ("@key", "@index", "@row", "@file")


@dataclass(frozen=True, slots=True)
class RowInfo:
    """Where a row comes from: its number and the name of its file without suffix."""

    number: int = 0
    file: str = ""


_NO_INFO = RowInfo()


class Path:
    """A compiled path. `text` is its spelling, `depth` the number of lists and objects it iterates over."""

    __slots__ = ("alternatives", "constant", "depth", "text")

    def __init__(self, text: str, columns: Iterable[str] = ()) -> None:
        self.text = text
        self.constant = text[1:] if text.startswith("=") else None
        names = () if self.constant is not None else tuple(columns)
        parts = () if self.constant is not None else tuple(_split_alternatives(text)) if text not in names else (text,)
        self.alternatives = tuple(_parse_operations(part.strip(), names) for part in parts)
        self.depth = max((sum(kind == _EACH for kind, _ in steps) for steps in self.alternatives), default=0)

    def __repr__(self) -> str:
        return f"Path({self.text!r})"

    def get(self, row: Mapping[str, Any], indices: Indices = (), info: RowInfo = _NO_INFO) -> Any:
        """Return the value at the path, or None; `indices` are the positions in iterated lists."""
        if self.constant is not None:
            return self.constant
        for steps in self.alternatives:
            value = _follow(steps, row, row, indices, info)
            if value is not None:
                return value
        return None

    def iterate(self, row: Mapping[str, Any], indices: Indices = (), info: RowInfo = _NO_INFO) -> list[Indices] | None:
        """Return the positions of all values of the last `[]` or `{}` of a path; None if the list is missing.

        >>> Path("labels[].start").iterate({"labels": [{"start": 1}, {"start": 4}]})
        [(0,), (1,)]
        """
        for steps in self.alternatives:
            last = max((position for position, (kind, _) in enumerate(steps) if kind == _EACH), default=-1)
            if last < 0:
                continue
            positions = _positions(steps[: last + 1], row, row, indices, 0, info)
            if positions is not None:
                return positions
        return None

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Spelling of each alternative up to its last `[]` or `{}`."""
        return tuple(
            part[: max(part.rfind("[]"), part.rfind("{}")) + 2] if "[]" in part or "{}" in part else ""
            for part in _split_alternatives(self.text)
        )

    @property
    def top_fields(self) -> set[str]:
        """Names of the top-level fields that the path uses."""
        return {name for steps in self.alternatives for name in _used_fields(steps)}


def _used_fields(steps: Sequence[tuple[int, Any]]) -> Iterator[str]:
    if steps and steps[0][0] == _KEY:
        yield steps[0][1]
    for kind, content in steps:
        if kind == _LOOKUP:
            yield from content.top_fields


def _split_alternatives(text: str) -> Iterator[str]:
    """Split at `|` outside quotes and brackets."""
    start, depth, quoted = 0, 0, False
    for position, character in enumerate(text):
        quoted ^= character == '"'
        depth += (character == "[") - (character == "]")
        if character == "|" and not depth and not quoted:
            yield text[start:position]
            start = position + 1
    yield text[start:]


def _parse_operations(text: str, columns: Sequence[str]) -> tuple[tuple[int, Any], ...]:
    if text.startswith("="):
        return ((_SPECIAL, text),)  # the last alternative may be a constant
    steps: list[tuple[int, Any]] = []
    at = 0
    # A column may be called `errors.responses` or `context.span_id`: the longest column that begins the path wins.
    for column in sorted(columns, key=len, reverse=True):
        if column and text.startswith(column) and (text[len(column) :] or ".")[0] in ".[{":
            steps.append((_KEY, column))
            at = len(column)
            break
    while at < len(text):
        character = text[at]
        if character == ".":
            at += 1
        elif character == "[":
            end = _closing_bracket(text, at)
            steps.append(_parse_bracket(text[at + 1 : end], text, columns))
            at = end + 1
        elif text.startswith("{}", at):
            steps.append((_EACH, dict))
            at += 2
        elif name := _NAME.match(text, at):
            at = name.end()
            plain = name[2] if name[1] is None else re.sub(r"\\(.)", r"\1", name[1])
            is_special = name[1] is None and plain in _SPECIAL_NAMES
            steps.append((_SPECIAL, plain) if is_special else (_KEY, plain.strip() if name[1] is None else plain))
        else:
            raise ParameterError(
                f"{param('map', text)}: unexpected {character!r} at position {at + 1} of the path", parameter="map"
            )
    if not steps:
        raise ParameterError(f"{param('map')}: the path {text!r} is empty", parameter="map")
    return tuple(steps)


def _closing_bracket(text: str, at: int) -> int:
    depth = 0
    for position in range(at, len(text)):
        depth += (text[position] == "[") - (text[position] == "]")
        if not depth:
            return position
    raise ParameterError(f"{param('map', text)}: '[' at position {at + 1} is not closed", parameter="map")


def _parse_bracket(content: str, text: str, columns: Sequence[str]) -> tuple[int, Any]:
    content = content.strip()
    if not content:
        return _EACH, list
    if re.fullmatch(r"-?\d+", content):
        return _INDEX, int(content)
    if condition := _FILTER_CONTENT.fullmatch(content):
        return _FILTER, (condition[1], condition[2])
    return _LOOKUP, Path(content, columns)


def _follow(
    steps: Iterable[tuple[int, Any]], value: Any, row: Mapping[str, Any], indices: Indices, info: RowInfo
) -> Any:
    level = 0
    for kind, content in steps:
        if kind == _SPECIAL:
            if content in ("@key", "@index"):
                return indices[level - 1] if 0 < level <= len(indices) else None
            if content.startswith("="):
                return content[1:]
            return info.number if content == "@row" else info.file
        if value is None:
            return None
        if type(value) is str:
            value = parse_nested(value)
        if kind == _KEY:
            value = value.get(content) if isinstance(value, dict) else None
        elif kind == _EACH:
            value = item_at(value, indices[level]) if level < len(indices) else None
            level += 1
        elif kind == _INDEX:
            value = item_at(value, content)
        elif kind == _LOOKUP:
            value = item_at(value, content.get(row, indices, info))
        else:
            field, wanted = content
            items = value if isinstance(value, list) else []
            value = [item for item in items if isinstance(item, dict) and str(item.get(field)) == wanted] or None
    return value


def item_at(value: Any, position: Any) -> Any:
    """Return an item of a list by position, or a value of an object by name; None if there is none."""
    if isinstance(value, dict):
        return value.get(position, value.get(str(position)))
    if isinstance(value, list):
        if isinstance(position, str) and position.lstrip("-").isdigit():
            position = int(position)
        if type(position) is int and -len(value) <= position < len(value):
            return value[position]
    return None


def _positions(
    steps: Sequence[tuple[int, Any]],
    value: Any,
    row: Mapping[str, Any],
    indices: Indices,
    level: int,
    info: RowInfo,
) -> list[Indices] | None:
    """Return all positions of the iterated lists that begin with `indices`; None if the outermost list is missing."""
    for position, (kind, content) in enumerate(steps):
        if kind == _EACH:
            if type(value) is str:
                value = parse_nested(value)
            keys: Sequence[int | str]
            if isinstance(value, list) and content is list:
                keys = range(len(value))
            elif isinstance(value, dict):
                keys = list(value)
            else:
                return None
            rest = steps[position + 1 :]
            if level < len(indices):
                if not rest:
                    return [indices[: level + 1]]
                return _positions(rest, item_at(value, indices[level]), row, indices, level + 1, info)
            if not rest:
                return [(*indices, key) for key in keys]
            results: list[Indices] = []
            for key in keys:
                inner = _positions(rest, item_at(value, key), row, (*indices, key), level + 1, info)
                results += inner or []
            return results
        # a filter or lookup before the iterated list
        value = _follow(((kind, content),), value, row, indices[level:], info)
    return []


@functools.lru_cache(maxsize=4096)
def _parse_nested_cached(text: str) -> Any:
    try:
        return from_json(text, allow_inf_nan=True)
    except ValueError:
        pass
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return text
    return to_plain(value) if isinstance(value, list | tuple | dict) else text


def parse_nested(text: str) -> Any:
    """Parse a text that contains a JSON object or list, or a Python literal of one; other texts are returned as is.

    >>> parse_nested("['a', 'b']"), parse_nested('{"a": 1}'), parse_nested("[sic]")
    (['a', 'b'], {'a': 1}, '[sic]')
    """
    stripped = text.strip()
    if len(stripped) < 2 or stripped[0] + stripped[-1] not in ("[]", "{}", "()"):
        return text
    return _parse_nested_cached(stripped)


def to_plain(value: Any) -> Any:
    """Return a value with JSON types only: tuples and arrays become lists, times ISO 8601, NaN and infinities None."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {str(name): to_plain(item) for name, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [to_plain(item) for item in value]
        case bytes():
            return value.decode("utf-8", "replace")
    if hasattr(value, "tolist"):  # NumPy arrays and scalars
        return to_plain(value.tolist())
    if hasattr(value, "isoformat"):
        return None if value != value else value.isoformat()  # pandas' NaT is not equal to itself
    if hasattr(value, "model_dump"):
        return to_plain(value.model_dump(mode="json"))
    return str(value)


def to_text(value: Any) -> str | None:
    """Return a text from a string, a number, content parts, a message or messages; None if there is none.

    >>> to_text([{"type": "text", "text": "What is "}, {"type": "image"}, {"type": "text", "text": "this?"}])
    'What is this?'
    >>> to_text([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}])
    'system: Be brief.\\n\\nuser: Hello'
    """
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return None if value != value else str(value)
        case dict():
            for name in ("content", "text", "value", "completion"):
                if name in value:
                    return to_text(value[name])
            return to_json(value).decode()
        case list():
            return _join_parts(value)
    return None


def _join_parts(parts: list[Any]) -> str | None:
    if not parts:
        return None
    messages = [part for part in parts if isinstance(part, dict) and ("role" in part or "from" in part)]
    if len(messages) == len(parts):
        lines = [(str(part.get("role", part.get("from"))), to_text(part)) for part in messages]
        return "\n\n".join(f"{role}: {line}" for role, line in lines if line)
    if all(isinstance(part, str) for part in parts):
        return "\n".join(parts)
    if any(isinstance(part, dict) and isinstance(part.get("text"), str) for part in parts):
        texts = [part if isinstance(part, str) else part.get("text") for part in parts if isinstance(part, dict | str)]
        return "".join(piece for piece in texts if isinstance(piece, str))
    return to_json(parts).decode()
