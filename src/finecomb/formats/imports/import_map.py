"""Import maps: small YAML files that say which fields of a file are texts, annotators, marks and answers."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, field_validator

from finecomb.core.errors import FinecombError, FormatError, ParameterError, did_you_mean, param
from finecomb.core.protocol_yaml import parse_yaml
from finecomb.core.records import Record
from finecomb.plugins import Registry

DOCUMENT_ROLES = ("id", "text", "prompt", "system", "reference", "data", "tokens")
ANNOTATION_ROLES = ("annotator", "kind", "round", "status", "seconds", "submitted", "question", "answer", "score")
MARK_ROLES = (
    *("start", "end", "quote", "label", "severity", "explanation", "correction", "comment", "confidence", "part"),
    *("item", "mark", "start2", "end2", "quote2", "part2"),
    *("antecedent_start", "antecedent_end", "antecedent_quote", "antecedent_part"),
)
SCOPE_ROLES = ("marks", "ignore")
ROLES = (*DOCUMENT_ROLES, *ANNOTATION_ROLES, *MARK_ROLES, *SCOPE_ROLES)
ROLE_PREFIXES = ("context.", "meta.", "answer.", "score.", "ignore.")
_SYNONYMS = {"document": "id", "model": "system", "meta.model": "system", "context.prompt": "prompt"}
Direction = Literal["higher", "lower"]


def standard_role(role: str) -> str:
    """Return the standard name of a role; an unknown role is an error that names the closest one.

    >>> standard_role("model"), standard_role("meta.topic")
    ('system', 'meta.topic')
    """
    role = _SYNONYMS.get(role.strip(), role.strip())
    if role in ROLES or (role.startswith(ROLE_PREFIXES) and not role.endswith(".")):
        return role
    if role in ("topic", "dataset", "domain"):
        return f"meta.{role}"
    if role in ("source", "headline"):
        return f"context.{role}"
    known = [*ROLES, *_SYNONYMS, *(f"{prefix}NAME" for prefix in ROLE_PREFIXES)]
    raise ParameterError(f"{param('map')}: unknown role {role!r}{did_you_mean(role, known)}", parameter="map")


class JoinRule(Record):
    """Another file whose rows are added to those of the main file, by a key."""

    name: str
    """Field that holds the joined row, e.g. `source` for paths such as `source.prompt`."""
    files: str = ""
    """Name or pattern of the file, relative to the main file or the folder; empty for a file given by the user."""
    field: str
    """Path of the key in the main file."""
    key: str
    """Path of the key in the other file."""
    rows: str = ""
    """Path of the rows in the other file."""
    many: bool = False
    """Whether several rows of the other file belong to one key, so that the field is a list."""


class LeaveOutRule(Record):
    """Rows that are left out, with the reason."""

    path: str
    """Path of the field that decides."""
    equals: tuple[str, ...] = ()
    """Values of rows to leave out; `(missing)` for rows without a value."""
    unless: tuple[str, ...] = ()
    """Values of rows to keep; all others are left out."""
    contains: str = ""
    """Text whose occurrence in the value leaves the row out."""
    reason: str
    """Reason in the summary."""


class ImportMap(Record):
    """Roles of the fields of a file, and how to read them."""

    name: str = ""
    """Name for `use_map`."""
    title: str = ""
    """Program or data set that writes such files."""
    source: str = ""
    """Where the layout is documented."""
    fields: tuple[str, ...] = ()
    """Paths that occur in the first rows of such files; a file with all of them is recognised."""
    lacks: tuple[str, ...] = ()
    """Paths that do not occur in such files."""
    folder: tuple[str, ...] = ()
    """Files or patterns that a folder must contain to be recognised."""
    files: tuple[str, ...] = ()
    """Patterns of the files with rows in such a folder."""
    rows: str = ""
    """Path of the rows in a JSON file; `{}` if each field of an object is a row, `.` if the file is one row."""
    header: tuple[str, ...] = ()
    """Column names, for tables without a header."""
    transform: Literal["", "haluquestqa"] = ""
    """Function that rearranges rows before they are mapped, for layouts that paths cannot describe."""
    needs: tuple[str, ...] = ()
    """Roles without which a mark is not read, e.g. `label` if most sentences have none."""
    map: Mapping[str, str] = Field(default_factory=dict)
    """Path of each role."""
    also: tuple[Mapping[str, str], ...] = ()
    """Roles of further annotations of the same texts, e.g. machine suggestions."""
    values: Mapping[str, Mapping[str, str]] = Field(default_factory=dict)
    """Replacement of values by role, e.g. `status: {accept: submitted}`."""
    split: Mapping[str, str] = Field(default_factory=dict)
    """Separator of several values in one text by role, e.g. `label: ","`."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """Label of the protocol for each label of the file."""
    offsets: str = ""
    """Offset convention, e.g. `utf-16,inclusive`; found from the quotes if empty. `quotes` ignores offsets."""
    leave_out: tuple[LeaveOutRule, ...] = ()
    """Rows to leave out."""
    join: tuple[JoinRule, ...] = ()
    """Files to join."""
    ignore: tuple[str, ...] = ()
    """Fields that may look like marks but are not imported, e.g. tokens."""
    no_row: Literal["", "read", "unread"] = ""
    """Whether a text without rows of an annotator was read without finding errors, or not read."""
    again: Literal["", "merge", "round", "last"] = ""
    """Second row of an annotator for a text: more marks (`merge`), a new round, or a replacement (`last`)."""
    directions: Mapping[str, Direction] = Field(default_factory=dict)
    """Whether higher or lower scores are better, by metric."""
    note: str = ""
    """Remark that the import prints."""

    @field_validator("map", "also")
    @classmethod
    def _check_roles(cls, value: Any) -> Any:
        for roles in [value] if isinstance(value, Mapping) else value:
            for role in roles:
                try:
                    standard_role(role)
                except ParameterError as error:
                    raise ValueError(str(error)) from None
        return value

    def to_yaml(self) -> str:
        """Return the map as a YAML file."""
        content = self.model_dump(mode="json", exclude_defaults=True)
        return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)


def parse_import_map(text: str, where: str) -> ImportMap:
    """Parse an import map from YAML; errors name the line."""
    return parse_yaml(ImportMap, text, where)


def _load_shipped(name: str) -> ImportMap:
    text = (importlib.resources.files("finecomb.formats") / "maps" / f"{name}.yaml").read_text(encoding="utf-8")
    return parse_import_map(text, f"{name}.yaml")


def _shipped_names() -> Iterator[str]:
    folder = importlib.resources.files("finecomb.formats") / "maps"
    return (file.name.removesuffix(".yaml") for file in sorted(folder.iterdir(), key=lambda entry: entry.name))


IMPORT_MAPS = Registry[ImportMap](
    "import_maps", ImportMap, {name: name for name in _shipped_names()}, load=_load_shipped
)
"""Shipped import maps by name, and those of plugins."""


def load_import_map(name: str) -> ImportMap:
    """Load an import map by name, or from a YAML file."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        try:
            return parse_import_map(path.read_text(encoding="utf-8-sig"), name)
        except OSError as error:
            raise FinecombError(f"{path}: cannot be read: {error.strerror}") from None
    if name not in IMPORT_MAPS:
        raise ParameterError(
            f"{param('use_map')}: unknown import map {name!r}{did_you_mean(name, IMPORT_MAPS)}", parameter="use_map"
        )
    return IMPORT_MAPS[name]


def parse_role_pairs(pairs: Iterable[str] | Mapping[str, str]) -> dict[str, str]:
    """Parse pairs ROLE=PATH; a repeated `ignore` is kept.

    >>> parse_role_pairs(["text=response.output", "ignore=tokens", "ignore=logits"])
    {'text': 'response.output', 'ignore.tokens': 'tokens', 'ignore.logits': 'logits'}
    """
    items = pairs.items() if isinstance(pairs, Mapping) else (_split_pair(pair) for pair in pairs)
    roles: dict[str, str] = {}
    for role, path in items:
        name = standard_role(role)
        roles[f"ignore.{path}" if name == "ignore" else name] = path.strip()
    return roles


def _split_pair(pair: str) -> tuple[str, str]:
    role, equals, path = pair.partition("=")
    if not equals or not role.strip() or not path.strip():
        example = param("map", "text=response.output")
        raise ParameterError(f"{param('map', pair)}: expected ROLE=PATH, e.g. {example}", parameter="map")
    return role, path


def save_import_map(mapping: ImportMap, path: Path) -> None:
    """Write a map to a YAML file."""
    if path.exists():
        raise FormatError(f"{path}: already exists; use another name for {param('save_map')}")
    path.write_text(mapping.to_yaml(), encoding="utf-8")
