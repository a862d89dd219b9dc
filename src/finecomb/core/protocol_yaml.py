"""Protocols as YAML: parsing with the line of each error, and formatting."""

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
# Errors that PyYAML raises for values that do not fit their tag, e.g. `!!bool maybe`, `!!int ''`, `!!timestamp now`.
_YAML_ERRORS = (ValueError, LookupError, AttributeError, TypeError, OverflowError, RecursionError)


def parse_protocol(text: str, where: str) -> Protocol:
    """Parse a protocol from YAML `text`; `where` is the file name for messages."""
    return parse_yaml(Protocol, text, where)


def load_yaml(text: str, where: str) -> Any:
    """Load data from YAML `text` that lies next to a study; deep or endlessly expanding YAML is refused.

    Long lists are accepted, because such files hold data rather than settings.
    """
    try:
        _check_size_limits(text, where, _MAX_DATA_CHARACTERS, _MAX_DATA_CHARACTERS)
        root = yaml.compose(text, Loader=_Loader)
        if root and _expanded_node_count(root, {}) > _MAX_DATA_NODES:
            raise ProtocolError(f"{where}: contains more than {_MAX_DATA_NODES:,} values after aliases are expanded")
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ProtocolError(f"{where}: invalid YAML: line {line}: {error.problem}") from None
    except (yaml.YAMLError, *_YAML_ERRORS) as error:
        raise ProtocolError(f"{where}: invalid YAML: {(str(error) or type(error).__name__).splitlines()[0]}") from None


def parse_yaml(kind: type[R], text: str, where: str) -> R:
    """Parse a record from YAML `text`; the error lists each invalid field with its line and the closest valid name."""
    try:
        _check_size_limits(text, where)
        root = yaml.compose(text, Loader=_Loader)
        if root and _expanded_node_count(root, {}) > _MAX_NODES:
            raise ProtocolError(
                f"{where}: contains more than {_MAX_NODES:,} values after aliases are expanded; use fewer aliases"
            )
        twice = list(_repeated_keys(root)) if root else []
        value = yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ProtocolError(f"{where}:{line}: {error.problem}") from None
    except (yaml.YAMLError, *_YAML_ERRORS) as error:
        raise ProtocolError(f"{where}: invalid YAML: {(str(error) or type(error).__name__).splitlines()[0]}") from None
    if twice:
        raise ProtocolError(
            "\n".join(f"{where}:{line}: key {key!r} occurs twice; remove one of them" for line, key in twice)
        )
    if not isinstance(value, dict):
        raise ProtocolError(f"{where}: expected `name: value` lines, found {type(value).__name__}")
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        entries: list[Any] = list(error.errors())
        if len(entries) > _MAX_PROBLEMS:
            left = f"and {len(entries) - _MAX_PROBLEMS:,} more problems; fix these first"
            entries[_MAX_PROBLEMS:] = [{"type": "more", "loc": (), "msg": left, "input": None}]
        else:  # a list is "too short" without its invalid items, which are reported themselves
            within = {entry["loc"][:depth] for entry in entries for depth in range(len(entry["loc"]))}
            entries = [entry for entry in entries if entry["type"] != "too_short" or entry["loc"] not in within]
        lines = [
            f"{where}{_line_suffix(root, problem['loc'])}: {explain_validation_error(problem, kind)}"
            for problem in entries
        ]
        raise ProtocolError("\n".join(dict.fromkeys(lines))) from None
    except RecursionError:
        raise ProtocolError(f"{where}: the YAML is nested too deeply; use fewer levels") from None


class _RecordDumper(yaml.SafeDumper):
    """YAML dumper that double-quotes text with unusual line breaks, which would otherwise be read back as spaces."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    unusual = any(character in text for character in "\x85\u2028\u2029\ufeff")
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if unusual else None)


_RecordDumper.add_representer(str, _represent_text)


def format_yaml(record: Record) -> str:
    """Format a record as YAML that parses to an equal record."""
    data = record.model_dump(mode="json", exclude_defaults=True)
    return yaml.dump(data, Dumper=_RecordDumper, sort_keys=False, allow_unicode=True, width=110)


_MAX_NODES = 1_000_000
_MAX_DEPTH = 60
_MAX_KEYS = 5_000
_MAX_CHARACTERS = 8_000_000
_MAX_DATA_CHARACTERS = 200_000_000
_MAX_DATA_NODES = 20_000_000
_MAX_PROBLEMS = 40


def _check_size_limits(text: str, where: str, max_characters: int = _MAX_CHARACTERS, max_keys: int = _MAX_KEYS) -> None:
    """Reject YAML that is too long, too deep or too wide before anything is built; the parser itself has no limits."""
    if len(text) > max_characters:
        raise ProtocolError(f"{where}: the file has {len(text):,} characters; the maximum is {max_characters:,}")
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
            raise ProtocolError(
                f"{where}:{line}: the YAML is nested more than {_MAX_DEPTH} levels deep; use fewer levels"
            )
        if widths and widths[-1] > 2 * max_keys:
            raise ProtocolError(
                f"{where}:{line}: more than {max_keys:,} values in one list or mapping; shorten or split it"
            )


def _expanded_node_count(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Return the number of values that expanding every alias would give, without expanding any."""
    if id(node) not in sizes:
        sizes[id(node)] = 0  # an alias may refer to its own parent
        children = node.value if isinstance(node, yaml.SequenceNode) else []
        children = [child for pair in node.value for child in pair] if isinstance(node, yaml.MappingNode) else children
        sizes[id(node)] = 1 + sum(_expanded_node_count(child, sizes) for child in children)
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
    """Return the line of a field, or of its nearest parent, as a suffix such as `:12`."""
    line = node.start_mark.line + 1 if node else 1
    for step in path:
        if isinstance(node, yaml.MappingNode):
            entry = next((pair for pair in node.value if pair[0].value == step), None)
            if entry is None:
                continue  # pydantic adds steps that are not in the file, such as the member of a union
            line, node = entry[0].start_mark.line + 1, entry[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line + 1
    return f":{line}"


def explain_validation_error(problem: Any, kind: type[Record]) -> str:
    """Explain one entry of `ValidationError.errors()` in a line: field, error and closest valid name."""
    path = ""
    for step in problem["loc"]:
        path += f"[{step}]" if isinstance(step, int) else ("." if path else "") + str(step)
    match problem["type"]:
        case "extra_forbidden":
            name = str(problem["loc"][-1])
            current: type[Record] = kind
            for step in problem["loc"][:-1]:
                if isinstance(step, str) and step in current.model_fields:
                    current = _find_record_type(current.model_fields[step].annotation) or current
            return f"{path}: unknown key{did_you_mean(name, list(current.model_fields))}"
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
    except ValueError:  # Python refuses to print integers of more than 4,300 digits.
        return f"a {type(value).__name__} too large to show"
    return text if len(text) <= 60 else f"{type(value).__name__} {text[:50]}..."


def _find_record_type(annotation: Any) -> type[Record] | None:
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        if model := _find_record_type(argument):
            return model
    return None
