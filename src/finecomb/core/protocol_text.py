"""Protocols as YAML text: read with the line of every slip, and written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from finecomb.core.errors import ProtocolError, did_you_mean
from finecomb.core.protocol import Protocol
from finecomb.core.records import Record

R = TypeVar("R", bound=Record)

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# What PyYAML lets through for a value that does not fit its tag, e.g. `!!bool maybe`, `!!int ''`, `!!timestamp now`.
_YAML_ERRORS = (ValueError, LookupError, AttributeError, TypeError, OverflowError, RecursionError)


def parse_protocol(text: str, where: str) -> Protocol:
    """Read a protocol from YAML `text`; `where` names its file in messages."""
    return parse_yaml(Protocol, text, where)


def parse_yaml(kind: type[R], text: str, where: str) -> R:
    """Read any record from YAML `text`; every slip is listed with its line, its field and the nearest valid name."""
    try:
        _check_size_limits(text, where)
        root = yaml.compose(text, Loader=_Loader)
        if root and _node_count(root, {}) > _MAX_NODES:
            raise ProtocolError(f"{where}: holds more than {_MAX_NODES:,} values once its aliases are filled in")
        twice = list(_repeated_keys(root)) if root else []
        value = yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ProtocolError(f"{where}:{line}: {error.problem}") from None
    except (yaml.YAMLError, *_YAML_ERRORS) as error:
        raise ProtocolError(f"{where}: not YAML: {(str(error) or type(error).__name__).splitlines()[0]}") from None
    if twice:
        raise ProtocolError("\n".join(f"{where}:{line}: key {key!r} is there twice" for line, key in twice))
    if not isinstance(value, dict):
        raise ProtocolError(f"{where}: expected `name: value` lines, found {type(value).__name__}")
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        lines = [
            f"{where}{_line_suffix(root, problem['loc'])}: {explain_validation_error(problem, kind)}"
            for problem in _root_errors(error)
        ]
        raise ProtocolError("\n".join(dict.fromkeys(lines))) from None
    except RecursionError:
        raise ProtocolError(f"{where}: nested too deeply") from None


def _root_errors(error: ValidationError) -> list[Any]:
    """The entries of a validation error, without "too short" said of a list only because an item in it is wrong."""
    entries = error.errors()
    if len(entries) > _MAX_PROBLEMS:
        left = len(entries) - _MAX_PROBLEMS
        more = {"type": "more", "loc": (), "msg": f"and {left:,} more problems; mend these first", "input": None}
        return [*entries[:_MAX_PROBLEMS], more]
    within = {entry["loc"][:depth] for entry in entries for depth in range(len(entry["loc"]))}
    return [entry for entry in entries if entry["type"] != "too_short" or entry["loc"] not in within]


class _Dumper(yaml.SafeDumper):
    """Puts text with unusual line breaks in double quotes: read plain, they would become spaces."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    unusual = any(character in text for character in "\x85\u2028\u2029\ufeff")
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if unusual else None)


_Dumper.add_representer(str, _represent_text)


def format_yaml(record: Record) -> str:
    """The record as YAML that reads back to an equal one."""
    data = record.model_dump(mode="json", exclude_defaults=True)
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


_MAX_NODES = 1_000_000
_MAX_DEPTH = 60
_MAX_KEYS = 5_000
_MAX_CHARACTERS = 8_000_000
_MAX_PROBLEMS = 40


def _check_size_limits(text: str, where: str) -> None:
    """Refuse what is too long, too deep or too wide before anything is built of it; the parser itself has no limit."""
    if len(text) > _MAX_CHARACTERS:
        raise ProtocolError(f"{where}: has {len(text):,} characters; at most {_MAX_CHARACTERS:,} are read")
    widths: list[int] = []
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            widths.append(0)
        elif isinstance(event, yaml.CollectionEndEvent):
            widths.pop()
        if widths and isinstance(event, yaml.ScalarEvent | yaml.AliasEvent):
            widths[-1] += 1
        line = event.start_mark.line + 1
        if len(widths) > _MAX_DEPTH:
            raise ProtocolError(f"{where}:{line}: nested more than {_MAX_DEPTH} deep; no record is")
        if widths and widths[-1] > 2 * _MAX_KEYS:
            raise ProtocolError(f"{where}:{line}: more than {_MAX_KEYS:,} values in one place; no record has so many")


def _node_count(node: yaml.Node, sizes: dict[int, int]) -> int:
    """How many values there are when every alias is filled in; counted without filling them in."""
    if id(node) not in sizes:
        sizes[id(node)] = 0  # an alias of its own parent
        children = node.value if isinstance(node, yaml.SequenceNode) else []
        children = [child for pair in node.value for child in pair] if isinstance(node, yaml.MappingNode) else children
        sizes[id(node)] = 1 + sum(_node_count(child, sizes) for child in children)
    return sizes[id(node)]


def _repeated_keys(node: yaml.Node) -> Iterator[tuple[int, str]]:
    if isinstance(node, yaml.MappingNode):
        earlier: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in earlier:
                    yield key.start_mark.line + 1, key.value
                earlier.add(key.value)
            yield from _repeated_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for child in node.value:
            yield from _repeated_keys(child)


def _line_suffix(node: yaml.Node | None, path: tuple[int | str, ...]) -> str:
    """`:12`, the line at which `path` stands, or that of the nearest node above it."""
    line = node.start_mark.line + 1 if node else 1
    for step in path:
        if isinstance(node, yaml.MappingNode):
            entry = next((pair for pair in node.value if pair[0].value == step), None)
            if entry is None:
                continue  # a step that pydantic made up, such as a member of a union
            line, node = entry[0].start_mark.line + 1, entry[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line + 1
    return f":{line}"


def explain_validation_error(problem: Any, kind: type[Record]) -> str:
    """One line for one entry of `ValidationError.errors()`: field, what is wrong, the nearest valid name."""
    path = ""
    for step in problem["loc"]:
        path += f"[{step}]" if isinstance(step, int) else ("." if path else "") + str(step)
    match problem["type"]:
        case "extra_forbidden":
            name = str(problem["loc"][-1])
            return f"{path}: unknown key{did_you_mean(name, _field_names_at(kind, problem['loc'][:-1]))}"
        case "more":
            return str(problem["msg"])
        case "missing":
            return f"{path}: missing"
        case "value_error":
            message = str(problem["ctx"]["error"])
        case _:
            message = (
                problem["msg"].replace("Input should be", "expected") + f", found {_describe_value(problem['input'])}"
            )
    return f"{path}: {message}" if path else message


def _describe_value(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print whole numbers of more than 4,300 digits
        return f"a {type(value).__name__} too large to show"
    return text if len(text) <= 60 else f"{type(value).__name__} {text[:50]}..."


def _field_names_at(kind: type[Record], path: tuple[int | str, ...]) -> list[str]:
    """Field names of the record at `path` below `kind`."""
    current: type[Record] = kind
    for step in path:
        if isinstance(step, str) and step in current.model_fields:
            current = _find_record_type(current.model_fields[step].annotation) or current
    return list(current.model_fields)


def _find_record_type(annotation: Any) -> type[Record] | None:
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        if model := _find_record_type(argument):
            return model
    return None
