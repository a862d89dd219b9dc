"""File formats: `read` a study, `write` it, or `convert` it as a stream without holding it in memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from finecomb.core.duplicate_marks import merge_duplicate_marks
from finecomb.core.errors import FinecombError, FormatError, Problem, StudyError, did_you_mean, param
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Note, Settings
from finecomb.core.stored_marks import StoredMarks
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_items
from finecomb.formats import database, folder, parquet_seal
from finecomb.formats.atomic_file import replace_atomically
from finecomb.formats.base import Format, Options
from finecomb.formats.features import FeatureCounter
from finecomb.formats.folder_storage import database_in_force
from finecomb.formats.source_files import sibling_names
from finecomb.plugins import PluginWarning, Registry

if TYPE_CHECKING:
    from finecomb.formats.parquet import ScannedStudy

__all__ = [
    "FORMATS",
    "Format",
    "Options",
    "convert",
    "detect_format",
    "format_for_writing",
    "read",
    "save_records",
    "stream_records",
    "write",
]


FORMATS = Registry[Format](
    "formats",
    Format,
    {
        "folder": folder.FORMAT,
        "brat": "finecomb.formats.brat:FORMAT",
        "csabstruct": "finecomb.formats.csabstruct:FORMAT",
        "csv": "finecomb.formats.csv_table:FORMAT",
        "database": "finecomb.formats.database:FORMAT",
        "spacy": "finecomb.formats.docbin:FORMAT",
        "doccano": "finecomb.formats.doccano:FORMAT",
        "factgenie": "finecomb.formats.factgenie:FORMAT",
        "frank": "finecomb.formats.frank:FORMAT",
        "gsml": "finecomb.formats.gsml:FORMAT",
        "hf": "finecomb.formats.hf:FORMAT",
        "jsonl": "finecomb.formats.jsonl:FORMAT",
        "label-studio": "finecomb.formats.label_studio:FORMAT",
        "man": "finecomb.formats.man:FORMAT",
        "model-criticism": "finecomb.formats.model_criticism:FORMAT",
        "parquet": "finecomb.formats.parquet:FORMAT",
        "text": "finecomb.formats.plain_text:FORMAT",
        "prodigy": "finecomb.formats.prodigy:FORMAT",
        "snac": "finecomb.formats.snac:FORMAT",
        "thomson-reiter": "finecomb.formats.thomson_reiter:FORMAT",
        "thresh": "finecomb.formats.thresh:FORMAT",
        "webanno": "finecomb.formats.webanno:FORMAT",
        "wmt-mqm": "finecomb.formats.wmt_mqm:FORMAT",
        "xlsx": "finecomb.formats.xlsx_table:FORMAT",
        "rows": "finecomb.formats.imports.rows_format:FORMAT",
    },
)
"""All formats by name. Files are offered to `sniff` in this order."""


def get_format(name: str) -> Format:
    """Return a format by name."""
    if name not in FORMATS:
        raise FormatError(f"unknown format {name!r}{did_you_mean(name, FORMATS)}")
    return FORMATS[name]


def detect_format(path: Path) -> Format:
    """Detect the format of an existing path from its name and its first characters."""
    if not path.exists() and not database.is_database(path):
        near = sibling_names(path)
        raise FormatError(f"{path}: no such file or folder{did_you_mean(path.name, near) if near else ''}")
    if path.is_fifo():  # opening one waits for a writer that may never come
        raise FormatError(f"{path}: is a pipe, not a file")
    if folder.is_study_folder(
        path
    ):  # checked first, because most commands read a study folder and need not import other formats
        return folder.FORMAT
    readable = [candidate for candidate in FORMATS.values() if candidate.read]
    for candidate in readable:
        try:
            if candidate.sniff and candidate.sniff(path):
                return candidate
        except Exception as error:  # a plugin can raise anything; files of other formats must still be readable
            reason = f"{type(error).__name__}: {error}".partition("\n")[0]
            warnings.warn(f"format {candidate.name}: {path} cannot be inspected: {reason}", PluginWarning, stacklevel=2)
    ending = [
        candidate
        for candidate in readable
        if not candidate.sniff and path.name.lower().endswith(candidate.suffixes or ("\0",))
    ]
    if len(ending) == 1:
        return ending[0]
    if path.name.lower().endswith(FORMATS["jsonl"].suffixes):  # no other format uses this suffix
        return FORMATS["jsonl"]
    if path.is_dir() and not any(path.iterdir()):
        raise FormatError(f"{path}: the folder is empty; `finecomb new` creates a study from your texts")
    raise FormatError(
        f"{path}: the format could not be detected; "
        f"name it with {param('from_')} ({', '.join(candidate.name for candidate in readable)})"
    )


def format_for_writing(path: Path) -> Format:
    """Return the format that the suffix of an output path suggests; a path without a suffix is a study folder."""
    writable = [candidate for candidate in FORMATS.values() if candidate.write]
    fitting = [candidate for candidate in writable if path.name.lower().endswith(candidate.suffixes or ("\0",))]
    if not path.suffix and not fitting:
        return folder.FORMAT
    if len(fitting) == 1:
        return fitting[0]
    among = ", ".join(candidate.name for candidate in fitting or writable)
    raise FormatError(f"{path}: the suffix does not determine the format; name it with {param('to')} ({among})")


def stream_records(path: Path, format: str = "", options: Options | None = None) -> Iterator[StudyItem]:
    """Iterate over the records of a file or folder in any format."""
    options = options or Options()
    source = get_format(format) if format else detect_format(path)
    if source.read is None:
        raise FormatError(f"{path}: {source.title} can be written but not read; use another format")
    _reject_unused_options(options, source)
    records = source.read(path, options)
    return records if source.name in _OWN_FORMATS else _merge_duplicates(records, path)


_OWN_FORMATS = frozenset({"folder", "database", "parquet", "jsonl", "hf"})
"""Formats that Finecomb writes, whose records are read unchanged."""


def _merge_duplicates(records: Iterable[StudyItem], path: Path) -> Iterator[StudyItem]:
    """Merge duplicate marks of imported annotations, and add a note with their number."""
    count = 0
    for record in records:
        if isinstance(record, Annotation):
            record, merged = merge_duplicate_marks(record)
            count += merged
        yield record
    if count:
        marks = f"{count:,} mark{'' if count == 1 else 's'}"
        yield Note(
            text=f"{path.name}: {marks} with the spans and label of another mark by the same annotator were merged"
        )


def _reject_unused_options(options: Options, *used_by: Format) -> None:
    understood = frozenset().union(*(format.options for format in used_by))
    for name in sorted(options.non_default_names() - understood):
        titles = " and ".join(dict.fromkeys(format.title for format in used_by))
        raise FormatError(f"{param(Options.parameter_name(name))} does not apply to {titles}; omit it")


ProgressWrapper = Callable[[Iterable[StudyItem]], Iterable[StudyItem]]
"""Function that passes records on unchanged, e.g. to display a progress bar."""


def is_sealed_parquet(path: Path, format: str = "") -> bool:
    """Return True if a path is a study in Parquet that was validated when written and has not changed since."""
    if format not in ("", "parquet") or not (path / parquet_seal.SEAL_FILE).is_file():
        return False
    return (
        not folder.is_study_folder(path)
        and get_format("parquet").name == detect_format(path).name
        and parquet_seal.has_valid_seal(path)
    )


def read(
    path: str | Path,
    format: str = "",
    options: Options | None = None,
    watch: ProgressWrapper = iter,
) -> Study:
    """Read and validate a study from a file or folder in any format; one exception reports all errors."""
    path = Path(path)
    if not (options or Options()).non_default_names() and is_sealed_parquet(path, format):
        from finecomb.formats.parquet import read_sealed_study

        return read_sealed_study(path)
    try:
        return Study.from_items(check_items(watch(stream_records(path, format, options))), origin=str(path))
    except StudyError as error:
        raise StudyError(locate_problems(error.problems, path)) from None


def locate_problems(problems: Iterable[Problem], path: Path) -> list[Problem]:
    """Add file and line to problems, if `path` is a study folder."""
    plain = folder.is_study_folder(path) and database_in_force(path) is None
    return folder.locate_problems(problems, path) if plain else list(problems)


def write(study: Study, path: str | Path, format: str = "", force: bool = False) -> list[str]:
    """Write a study in any format and return notes, e.g. on what the format could not store."""
    return save_records(study.items(), Path(path), format, force=force)


def save_selection(
    study: Study, path: Path, select: Callable[[Study], Study], columns: Sequence[str], force: bool = False
) -> tuple[Study, list[str]]:
    """Write the part of a study that `select` returns; return that part, and notes.

    Marks stored in Parquet are copied from file to file; only the `columns` that `select` uses are held in memory.
    """
    stored = study.raw_marks
    if path.name.endswith(".parquet") and isinstance(stored, StoredMarks):
        part = select(replace(study, marks=stored.read_numbered(columns)))
        # Write a part of a sealed study as Parquet; it is sealed unless records may refer to missing ones. `marks`
        # are the marks of the part in batches; those of `part` itself are not read.
        from finecomb.formats.parquet import write_study_part

        with replace_atomically(path, force) as temporary:
            write_study_part(part, temporary, stored.iter_batches(part.marks["id"]))
            if not has_record_references(part.settings) and part.annotations["about"].null_count() == len(
                part.annotations
            ):
                parquet_seal.seal_folder(temporary)
        return part, []
    part = select(study)
    return part, save_records(part.items(), path, force=force)


def save_annotated_study(
    source: ScannedStudy,
    path: Path,
    protocol: Protocol,
    annotator: Annotator,
    results: Mapping[str, pl.LazyFrame],
    is_checked: bool,
    force: bool = False,
) -> None:
    """Write a scanned study with one annotator's marks as Parquet; the output is sealed if all records were validated.

    `is_checked` states this for texts and marks; settings are validated here, or were when the source was sealed.
    """
    from finecomb.formats.parquet import write_annotated_study

    settings = source.settings
    is_plain = not settings.mode and not settings.planned and source.has_valid_annotators()
    with replace_atomically(path, force) as temporary:
        write_annotated_study(source, temporary, protocol, annotator, results)
        if (
            is_checked
            and not has_record_references(settings)
            and (is_plain or parquet_seal.has_valid_seal(source.path))
        ):
            parquet_seal.seal_folder(temporary)


def has_record_references(settings: Settings) -> bool:
    """Return True if settings refer to documents, marks or annotators, so that they are invalid without those."""
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
    """Convert a file to another format as a stream and return notes; an error leaves the target unchanged."""
    try:
        return save_checked_records(
            watch(stream_records(source, from_, options)), target, to, options or Options(), force
        )
    except StudyError as error:
        raise StudyError(locate_problems(error.problems, source)) from None


def save_checked_records(
    items: Iterable[StudyItem], path: Path, format: str = "", options: Options | None = None, force: bool = False
) -> list[str]:
    """Write records while validating them; an error leaves the target unchanged. Parquet output is sealed."""
    notes = save_records(check_items(items), path, format, options, force)
    if (format or format_for_writing(path).name) == "parquet":
        parquet_seal.seal_folder(path)
    return notes


def save_records(
    items: Iterable[StudyItem], path: Path, format: str = "", options: Options | None = None, force: bool = False
) -> list[str]:
    """Write records in any format and return notes; an error leaves the target unchanged."""
    target = get_format(format) if format else format_for_writing(path)
    if target.write is None:
        raise FinecombError(f"{target.title} can be read but not written; select another output format")
    if path.is_dir() and (location := database_in_force(path)):
        raise FinecombError(
            f"{path}: contains collected annotations in {location}; use another name or move the folder first"
        )
    tally = FeatureCounter()
    with replace_atomically(path, force) as temporary:
        notes = target.write(tally.count_stream(items, target), temporary, options or Options()) or ()
    losses = tally.describe_losses(target)
    return [*tally.notes, *notes, *([losses] if losses else [])]
