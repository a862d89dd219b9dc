"""Import of rows: recognise a map or guess the roles, check that no marks would be lost, and read the records."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from finecomb.core.errors import FormatError, ParameterError, did_you_mean, param, shorten
from finecomb.core.study import StudyItem
from finecomb.formats.imports.guess import MarkList, find_mark_lists, guess_roles, leaf_paths, recognises
from finecomb.formats.imports.haluquestqa import split_answer_pairs
from finecomb.formats.imports.import_map import IMPORT_MAPS, ImportMap, JoinRule, load_import_map, standard_role
from finecomb.formats.imports.paths import Path as DataPath
from finecomb.formats.imports.paths import RowInfo
from finecomb.formats.imports.reader import ImportReader, ReaderOptions
from finecomb.formats.imports.sources import (
    BadRow,
    Row,
    RowSource,
    SourceOptions,
    index_rows,
    join_rows,
    open_files,
    rows_from_object,
)

_DEFAULT_OPTIONS = SourceOptions()
TRANSFORMS = {"haluquestqa": split_answer_pairs}
"""Functions that rearrange rows, by name."""
HEAD_ROWS = 20
"""Rows that are inspected to guess the roles."""


@dataclass
class RowStream:
    """Rows of all sources in order, of which the first can be inspected before they are read."""

    sources: Sequence[RowSource]
    head: list[tuple[RowSource, RowInfo, Row | BadRow]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rest = ((source, info, row) for source in self.sources for info, row in source.rows())
        self.head = list(itertools.islice(self._rest, HEAD_ROWS))

    def rows(self) -> Iterator[tuple[RowSource, RowInfo, Row | BadRow]]:
        """Iterate over all rows; possible once."""
        return itertools.chain(self.head, self._rest)

    @property
    def head_rows(self) -> list[Row]:
        """First rows, without those that cannot be read."""
        return [row for _, _, row in self.head if not isinstance(row, BadRow)]


@dataclass
class ImportPlan:
    """Rows with the map by which they will be read."""

    stream: RowStream
    mapping: ImportMap
    name: str
    """Name of the source for messages and for the protocol."""
    guessed: Mapping[str, str]
    """Roles that were guessed, and not given or shipped."""

    def role_table(self) -> list[dict[str, object]]:
        """Return the roles with their paths, whether each was guessed, and an example."""
        rows = self.stream.head_rows
        columns = list(dict.fromkeys(name for row in rows for name in row))
        table: list[dict[str, object]] = []
        for role, path in self.mapping.map.items():
            compiled = DataPath(path.partition(" + ")[0], columns)
            examples = (
                compiled.get(row, (compiled.iterate(row) or [()])[0] if compiled.depth else (), RowInfo(1, self.name))
                for row in rows
            )
            example = next((value for value in examples if value is not None), None)
            origin = "guessed" if role in self.guessed else f"map {self.mapping.name}" if self.mapping.name else "given"
            shown = "" if example is None else shorten(str(example), 40)
            table.append({"role": role, "path": path, "from": origin, "example": shown})
        return table

    def unread_fields(self) -> tuple[str, ...]:
        """Return paths in the first rows that no role uses, inside of fields that other roles read in part."""
        maps = [self.mapping.map, *self.mapping.also]
        used = [part.strip() for roles in maps for path in roles.values() for part in re.split(r"\||\+", path)]
        used += [*self.mapping.ignore, *(rule.path for rule in self.mapping.leave_out)]
        plain = {_plain_path(path) for path in used if path and not path.startswith("=")}
        fields = {path.partition(".")[0].partition("[")[0] for path in plain}
        paths = dict.fromkeys(path for row in self.stream.head_rows for path in leaf_paths(dict(row)))
        return tuple(
            path
            for path in paths
            if _plain_path(path).partition(".")[0] in fields
            and not any(_plain_path(path).startswith(other) or other.startswith(_plain_path(path)) for other in plain)
        )


def _plain_path(path: str) -> str:
    """Return a path without brackets, for comparison: `a[0].b` and `a[].b` are `a.b`."""
    return re.sub(r"\[[^\]]*\]|\{\}|\"|\.@\w+", "", path)


def open_source(source: Any, options: SourceOptions, mapping: ImportMap | None) -> tuple[list[RowSource], str]:
    """Return the rows of files or of an object, and its name."""
    is_path = isinstance(source, str | Path) or hasattr(source, "__fspath__")
    many = (
        isinstance(source, Sequence)
        and not is_path
        and source
        and all(isinstance(item, str | Path) or hasattr(item, "__fspath__") for item in source)
    )
    if not is_path and not many:
        return [rows_from_object(source)], "table"
    paths = [Path(item) for item in (source if many else [source])]
    if mapping is not None and mapping.files and paths[0].is_dir():
        files = [file for pattern in mapping.files for file in sorted(paths[0].glob(pattern))]
        if not files:
            raise FormatError(f"{paths[0]}: contains no files {' or '.join(mapping.files)}")
        return open_files(files, options), paths[0].name
    stem = paths[0].name if paths[0].is_dir() else paths[0].name.partition(".")[0]
    return open_files(paths, options), stem.strip("-") or "import"


def find_folder_map(path: Path) -> ImportMap | None:
    """Return the shipped map of a folder with the files that it requires; None if there is none."""
    if not path.is_dir():
        return None
    for name in IMPORT_MAPS:
        mapping = IMPORT_MAPS[name]
        if mapping.folder and all(any(path.glob(pattern)) for pattern in mapping.folder):
            return mapping
    return None


def recognise_map(rows: Sequence[Row]) -> ImportMap | None:
    """Return the shipped map whose fields all occur in the first rows; the one with most fields if several do."""
    fitting = [
        mapping
        for mapping in map(IMPORT_MAPS.__getitem__, IMPORT_MAPS)
        if not mapping.folder and not mapping.header and recognises(rows, mapping.fields, mapping.lacks)
    ]
    return max(fitting, key=lambda mapping: len(mapping.fields), default=None)


def plan_import(
    source: Any,
    *,
    roles: Mapping[str, str] | None = None,
    use_map: str | ImportMap = "",
    options: SourceOptions = _DEFAULT_OPTIONS,
    joins: Sequence[tuple[Path, str]] = (),
    has_texts: bool = False,
    changes: Mapping[str, Any] | None = None,
) -> ImportPlan:
    """Open a source and choose its map: the given one, a shipped one that is recognised, or guessed roles.

    `joins` are files with the key by which their rows are joined, as `PATH_HERE=PATH_THERE`. `changes` are settings
    of the map that the user chose, such as `offsets`.
    """
    mapping = load_import_map(use_map) if isinstance(use_map, str) and use_map else use_map or None
    assert not isinstance(mapping, str)
    folder = Path(source) if isinstance(source, str | Path) and Path(source).is_dir() else None
    if mapping is None and folder is not None and not roles:
        mapping = find_folder_map(folder)
    opened = _source_options(options, mapping)
    sources, name = open_source(source, opened, mapping)
    stream = RowStream(sources)
    if mapping is None and not roles:
        mapping = recognise_map(stream.head_rows)
        if mapping is None and _is_single_object(stream):
            mapping = _recognise_container(source, options)
        if mapping is not None and mapping.rows != options.rows:
            sources, name = open_source(source, _source_options(options, mapping), mapping)
            stream = RowStream(sources)
    if (mapping is not None and mapping.join) or joins:
        base = folder or (
            Path(source if not isinstance(source, Sequence) or isinstance(source, str) else source[0]).parent
        )
        rules = list(mapping.join) if mapping else []
        for file, key in joins:
            here, _, there = key.partition("=")
            field_name = file.name.partition(".")[0]
            rules = [rule for rule in rules if rule.name != field_name and rule.files != file.name]
            rules.append(JoinRule(name=field_name, files=str(file.resolve()), field=here, key=there or here))
        stream = RowStream([_join(each, rules, base, options) for each in sources])
    if mapping is not None and mapping.transform:
        stream = RowStream([TRANSFORMS[mapping.transform](each) for each in sources])
    rows = stream.head_rows
    guessed: dict[str, str] = {}
    chosen = {standard_role(role): path for role, path in (mapping.map if mapping else {}).items()}
    chosen |= dict(roles or {})
    if mapping is None or not mapping.map:
        guessed, unread = guess_roles(rows, has_texts, chosen)
    else:
        unread = [] if mapping.fields else _unmapped_lists(rows, mapping, chosen)
    chosen = {**guessed, **chosen}
    _check_roles(chosen, unread, rows, name, has_texts, stream, roles)
    also = tuple(
        {standard_role(role): path for role, path in more.items()} for more in (mapping.also if mapping else ())
    )
    base_map = mapping or ImportMap()
    settings = {key: value for key, value in (changes or {}).items() if value}
    for key in ("labels", "directions"):
        settings[key] = {**getattr(base_map, key), **settings.get(key, {})}
    return ImportPlan(stream, base_map.model_copy(update={"map": chosen, "also": also, **settings}), name, guessed)


def _source_options(options: SourceOptions, mapping: ImportMap | None) -> SourceOptions:
    if mapping is None:
        return options
    return SourceOptions(
        options.encoding,
        options.sheet,
        options.delimiter,
        options.header or mapping.header,
        options.rows or mapping.rows,
    )


def _is_single_object(stream: RowStream) -> bool:
    return all(source.unit == "record" for source in stream.sources)


def _recognise_container(source: Any, options: SourceOptions) -> ImportMap | None:
    """Return the shipped map whose fields occur in the rows at its own path, for files with another main list."""
    for name in IMPORT_MAPS:
        mapping = IMPORT_MAPS[name]
        if not mapping.rows or mapping.folder or options.rows:
            continue
        try:
            sources, _ = open_source(source, _source_options(options, mapping), mapping)
            if recognises(RowStream(sources).head_rows, mapping.fields, mapping.lacks):
                return mapping
        except (FormatError, AttributeError, ParameterError):
            continue
    return None


def _join(source: RowSource, rules: Sequence[JoinRule], base: Path, options: SourceOptions) -> RowSource:
    for rule in rules:
        files = [Path(rule.files)] if Path(rule.files).is_absolute() else sorted(base.glob(rule.files))
        rows: dict[str, Any] = {}
        for file in files:
            for other in open_files([file], SourceOptions(options.encoding, rows=rule.rows)):
                rows |= index_rows(other, DataPath(rule.key), rule.many)
        if not files:
            source.notes.append(f"{rule.files} is not beside the file; its fields are missing")
        source = join_rows(source, rule.name, DataPath(rule.field), rows)
    return source


def _unmapped_lists(rows: Sequence[Row], mapping: ImportMap, chosen: Mapping[str, str]) -> list[MarkList]:
    paths = [*chosen.values(), *mapping.ignore, *(path for more in mapping.also for path in more.values())]
    prefixes = [path.partition("[]")[0].partition("{}")[0] for path in paths]
    return [
        marks
        for marks in find_mark_lists(rows)
        if not any(marks.path.startswith(prefix) for prefix in prefixes if prefix)
    ]


def _check_roles(
    chosen: Mapping[str, str],
    unread: Sequence[MarkList],
    rows: Sequence[Row],
    name: str,
    has_texts: bool,
    stream: RowStream,
    roles_given: Mapping[str, str] | None,
) -> None:
    """Raise an error if marks would be lost, a path matches nothing, or there is neither a text nor a known ID."""
    if not rows:
        bad = next((row.message for _, _, row in stream.head if isinstance(row, BadRow)), "")
        raise FormatError(f"{name}: contains no rows" + (f" that can be read: {bad}" if bad else ""))
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if unread:
        lists = "; or ".join(marks.as_options() for marks in unread[:3])
        names = ", ".join(repr(marks.path) for marks in unread)
        ignored = " ".join(
            param("map", f"'ignore={marks.path.partition('[')[0].partition('{')[0]}'") for marks in unread
        )
        raise ParameterError(
            f"{name}: {names} look like marks and are not mapped, so they would be lost; read them with {lists}; or "
            f"leave them out with {ignored}",
            parameter="map",
        )
    for role, path in chosen.items():
        for part in path.split(" + "):
            for field_name in DataPath(part, columns).top_fields:
                if role not in (roles_given or ()):
                    continue  # fields of a shipped map may be missing
                if not role.startswith("ignore") and field_name not in columns and "|" not in part:
                    raise ParameterError(
                        f"{name}: {param('map', f'{role}={path}')}: field {field_name!r} is "
                        f"missing{did_you_mean(field_name, columns)}",
                        parameter="map",
                    )
    if "text" not in chosen and not has_texts:
        raise ParameterError(
            f"{name}: no field has the text; name it with {param('map', 'text=FIELD')} "
            f"(fields: {', '.join(columns[:12])}), or import into a study that has the texts",
            parameter="map",
        )
    if "text" not in chosen and "id" not in chosen:
        raise ParameterError(
            f"{name}: no field has the ID of the text; name it with {param('map', 'id=FIELD')} "
            f"(fields: {', '.join(columns[:12])})",
            parameter="map",
        )


def read_plan(plan: ImportPlan, options: ReaderOptions) -> tuple[ImportReader, Iterator[StudyItem]]:
    """Read the rows of a plan; return the reader, whose summary is complete when the records have been consumed."""
    columns = list(dict.fromkeys(name for row in plan.stream.head_rows for name in row))
    reader = ImportReader(plan.stream.sources, plan.mapping, columns, options, plan.name)
    reader.summary.unread_fields = plan.unread_fields()
    reader.read(plan.stream.rows())
    return reader, reader.items(plan.name)
