"""Every format in and out: `read` a study, `write` it, or `convert` without holding it in memory."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from finecomb.collection.database.location import DATABASE_FILENAME
from finecomb.core.errors import FinecombError, FormatError, Problem, StudyError, did_you_mean, param
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotator, Settings
from finecomb.core.stored_marks import StoredMarks
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_items
from finecomb.formats import database, folder, parquet_seal
from finecomb.formats.atomic_file import replace_atomically
from finecomb.formats.base import Format, Options
from finecomb.formats.features import FeatureCounter
from finecomb.formats.source_files import sibling_names

if TYPE_CHECKING:
    from finecomb.formats.parquet import ScannedStudy

__all__ = [
    "Format",
    "Options",
    "convert",
    "format_for_writing",
    "format_of",
    "formats",
    "read",
    "save",
    "stream",
    "write",
]


@functools.cache
def formats() -> dict[str, Format]:
    """Every format by name: the `FORMAT` of each module in this package, the folder first."""
    modules = [module.name for module in pkgutil.iter_modules(__path__) if module.name not in ("base", "folder")]
    rows = [getattr(importlib.import_module(f"{__name__}.{name}"), "FORMAT", None) for name in sorted(modules)]
    return {format.name: format for format in [folder.FORMAT, *rows] if format is not None}


def get_format(name: str) -> Format:
    """The format called `name`."""
    if name not in formats():
        raise FormatError(f"no format is called {name!r}{did_you_mean(name, formats())}")
    return formats()[name]


def format_of(path: Path) -> Format:
    """The format of an existing path, guessed from its name and its first characters."""
    if not path.exists() and not database.is_database(path):
        near = sibling_names(path)
        raise FormatError(f"{path}: no such file or folder{did_you_mean(path.name, near) if near else ''}")
    if folder.is_study_folder(path):  # what most commands read: the other formats are not even imported
        return folder.FORMAT
    readable = [candidate for candidate in formats().values() if candidate.read]
    for candidate in readable:
        if candidate.sniff and candidate.sniff(path):
            return candidate
    ending = [
        candidate
        for candidate in readable
        if not candidate.sniff and path.name.lower().endswith(candidate.suffixes or ("\0",))
    ]
    if len(ending) == 1:
        return ending[0]
    if path.name.lower().endswith(formats()["jsonl"].suffixes):  # nobody else's: believed by its ending
        return formats()["jsonl"]
    if path.is_dir() and not any(path.iterdir()):
        raise FormatError(f"{path}: is an empty folder; `finecomb new` makes a study from your texts")
    raise FormatError(
        f"{path}: cannot tell its format; "
        f"name it with {param('from_')} ({', '.join(candidate.name for candidate in readable)})"
    )


def format_for_writing(path: Path) -> Format:
    """The format that the ending of a path to be written suggests; a path without an ending is a study folder."""
    writable = [candidate for candidate in formats().values() if candidate.write]
    fitting = [candidate for candidate in writable if path.name.lower().endswith(candidate.suffixes or ("\0",))]
    if not path.suffix and not fitting:
        return folder.FORMAT
    if len(fitting) == 1:
        return fitting[0]
    among = ", ".join(candidate.name for candidate in fitting or writable)
    raise FormatError(f"{path}: say which format to write with {param('to')} ({among})")


def stream(path: Path, format: str = "", options: Options | None = None) -> Iterator[StudyItem]:
    """The records of a file or folder in any format, one by one."""
    options = options or Options()
    source = get_format(format) if format else format_of(path)
    if source.read is None:
        raise FormatError(f"{path}: {source.title} can be written but not read")
    _reject_unused_options(options, source)
    return source.read(path, options)


def _reject_unused_options(options: Options, *used_by: Format) -> None:
    understood = frozenset().union(*(format.options for format in used_by))
    for name in sorted(options.non_default_names() - understood):
        titles = " and ".join(dict.fromkeys(format.title for format in used_by))
        raise FormatError(f"{param(Options.parameter(name))} means nothing to {titles}; leave it out")


ProgressWrapper = Callable[[Iterable[StudyItem]], Iterable[StudyItem]]
"""Passes records on unchanged, e.g. to draw a progress bar."""


def is_sealed_parquet(path: Path, format: str = "") -> bool:
    """Whether a path is a study in Parquet that was checked when it was written and has not changed since."""
    if format not in ("", "parquet") or not (path / parquet_seal.SEAL_FILE).is_file():
        return False
    return (
        not folder.is_study_folder(path)
        and get_format("parquet").name == format_of(path).name
        and parquet_seal.is_sealed(path)
    )


def read(
    path: str | Path,
    format: str = "",
    options: Options | None = None,
    watch: ProgressWrapper = iter,
) -> Study:
    """A study from a file or folder in any format, checked; all its errors are raised together."""
    path = Path(path)
    if not (options or Options()).non_default_names() and is_sealed_parquet(path, format):
        from finecomb.formats.parquet import read_sealed_study

        return read_sealed_study(path)
    try:
        return Study.from_items(check_items(watch(stream(path, format, options))), origin=str(path))
    except StudyError as error:
        raise StudyError(locate_problems(error.problems, path)) from None


def locate_problems(problems: Iterable[Problem], path: Path) -> list[Problem]:
    """Problems with file and line, where `path` is a study's folder."""
    plain = folder.is_study_folder(path) and not (path / DATABASE_FILENAME).exists()
    return folder.locate_problems(problems, path) if plain else list(problems)


def write(study: Study, path: str | Path, format: str = "", force: bool = False) -> list[str]:
    """Write a study in any format; returns what there is to say, such as what the format could not hold."""
    return save(study.items(), Path(path), format, force=force)


def save_selection(
    study: Study, path: Path, select: Callable[[Study], Study], columns: Sequence[str], force: bool = False
) -> tuple[Study, list[str]]:
    """Write the part of a study that `select` returns; returns the part and what there is to say.

    Marks that are stored in Parquet go from file to file: of the part only `columns`, which `select` reads, are held.
    """
    stored = study.raw_marks
    if path.name.endswith(".parquet") and isinstance(stored, StoredMarks):
        part = select(replace(study, marks=stored.read_numbered(columns)))
        save_study_part(part, path, stored.iter_batches(part.marks["id"]), force)
        return part, []
    part = select(study)
    return part, save(part.items(), path, force=force)


def save_study_part(part: Study, path: Path, marks: Iterable[pl.DataFrame], force: bool = False) -> None:
    """Write a part of a sealed study as Parquet; it is sealed too where nothing names what may be gone.

    `marks` are its marks, some at a time; those of `part` itself are not looked at.
    """
    from finecomb.formats.parquet import write_study_part

    with replace_atomically(path, force) as temporary:
        write_study_part(part, temporary, marks)
        if not has_record_references(part.settings) and part.annotations["about"].null_count() == len(part.annotations):
            parquet_seal.set_seal(temporary)


def save_annotated_study(
    source: ScannedStudy,
    path: Path,
    protocol: Protocol,
    annotator: Annotator,
    results: Mapping[str, pl.LazyFrame],
    is_checked: bool,
    force: bool = False,
) -> None:
    """Write a study of texts on disk with what one annotator marked, as Parquet; sealed where all of it was checked.

    `is_valid` says so of texts and marks; settings are checked here, or were when the source was sealed.
    """
    from finecomb.formats.parquet import write_annotated_study

    settings = source.settings
    is_plain = not settings.mode and not settings.planned and source.has_valid_annotators()
    with replace_atomically(path, force) as temporary:
        write_annotated_study(source, temporary, protocol, annotator, results)
        if is_checked and not has_record_references(settings) and (is_plain or parquet_seal.is_sealed(source.path)):
            parquet_seal.set_seal(temporary)


def has_record_references(settings: Settings) -> bool:
    """Whether settings name documents, marks or annotators, so that whether they hold depends on all of these."""
    named = (settings.attention_checks, settings.audit, settings.design, settings.allocation, settings.offer)
    return any(named)


def convert(
    source: Path,
    target: Path,
    from_: str = "",
    to: str = "",
    options: Options | None = None,
    force: bool = False,
    watch: ProgressWrapper = iter,
) -> list[str]:
    """From one format to another as a stream; nothing is written unless all went well. Returns what there is to say."""
    try:
        return save_checked(watch(stream(source, from_, options)), target, to, options or Options(), force)
    except StudyError as error:
        raise StudyError(locate_problems(error.problems, source)) from None


def save_checked(
    items: Iterable[StudyItem], path: Path, format: str = "", options: Options | None = None, force: bool = False
) -> list[str]:
    """Check records while they are written, all or nothing; in Parquet they are sealed."""
    notes = save(check_items(items), path, format, options, force)
    if (format or format_for_writing(path).name) == "parquet":
        parquet_seal.set_seal(path)
    return notes


def save(
    items: Iterable[StudyItem], path: Path, format: str = "", options: Options | None = None, force: bool = False
) -> list[str]:
    """Write records in any format, all or nothing; returns what there is to say."""
    target = get_format(format) if format else format_for_writing(path)
    if target.write is None:
        raise FinecombError(f"{target.title} can be read but not written")
    if (path / DATABASE_FILENAME).exists():
        raise FinecombError(
            f"{path}: holds what annotators did, in {DATABASE_FILENAME}; choose another name, or move it away first"
        )
    tally = FeatureCounter()
    with replace_atomically(path, force) as temporary:
        notes = target.write(tally.count_stream(items, target), temporary, options or Options()) or ()
    losses = tally.describe_losses(target)
    return [*tally.notes, *notes, *([losses] if losses else [])]
