"""Import of tables, JSON and logs of other programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, Any, Literal

from finecomb import formats, protocols
from finecomb.api.parameters import REPEATED, Names, StudyLike, Values, as_names, as_study, as_values, public
from finecomb.api.study_results import AnyPath, StudyResult
from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Note
from finecomb.core.results import Table
from finecomb.core.study import Study, StudyItem, merge_work
from finecomb.core.study_checks import check_items
from finecomb.formats.imports.import_map import ImportMap, parse_role_pairs, save_import_map
from finecomb.formats.imports.importer import plan_import, read_plan
from finecomb.formats.imports.reader import ReaderOptions
from finecomb.formats.imports.sources import SourceOptions
from finecomb.formats.study_writes import change_study

RolePaths = Annotated[Mapping[str, str] | str | Sequence[str], REPEATED]
"""Paths of roles: a mapping, or ROLE=PATH."""


class ImportResult(StudyResult):
    """Imported records: the study, the roles by which fields were read, and a summary of what was read."""

    roles: Table
    """One row per role: role, path, how it was chosen, and an example."""
    map: ImportMap
    """Import map; ``map.to_yaml()`` can be saved and shared."""
    records: Sequence[StudyItem] = ()
    """New records: protocol, documents, annotators and annotations."""


@public
def import_table(
    source: Any,
    *,
    into: StudyLike | None = None,
    output: AnyPath | None = None,
    map: RolePaths = (),
    use_map: str | ImportMap = "",
    save_map: AnyPath | None = None,
    text: str = "",
    id: str = "",
    prompt: str = "",
    system: str = "",
    marks: str = "",
    join: Values = (),
    protocol: str | Protocol = "",
    annotator: str = "",
    labels: Annotated[Mapping[str, str] | str | Sequence[str], REPEATED] = (),
    no_row: Literal["", "read", "unread"] = "",
    offsets: str = "",
    higher_is_better: Names = (),
    lower_is_better: Names = (),
    repeats: Literal["kth", "first"] = "kth",
    bad_rows: Literal["refuse", "skip"] = "refuse",
    encoding: str = "",
    sheet: str = "",
    rows: str = "",
    force: bool = False,
) -> ImportResult:
    """Import texts, marks, answers or scores from a table, JSON file or log, and report what was read and left out.

    Parameters
    ----------
    source : path, sequence of paths, DataFrame, list of dicts, Dataset or EvalLog
        CSV, TSV, Excel, JSON, JSON Lines, Parquet, gzip, zip, a folder, or `-` for standard input.
    into : Study or path, optional
        Study that the records are added to; its texts are used if the file has only their IDs.
        A path is changed where it is stored, unless `output` is given.
    output : path, optional
        New study to write.
    map : mapping, str or sequence of str
        Path of a role, as `ROLE=PATH`, such as `text=response.output`; may be repeated.
        Roles include id, text, prompt, system, annotator, start, end, quote, label, severity, explanation,
        `answer.NAME`, `score.NAME`, `context.NAME`, `meta.NAME` and `ignore`.
    use_map : str
        Name of a shipped import map, or a YAML file (default: recognised from the fields).
    save_map : path, optional
        YAML file to which the map is written, to be used again with `use_map`.
    text : str
        Path of the text; short for `map` with `text=PATH`.
    id : str
        Path of the text's ID; short for `map` with `id=PATH`.
    prompt : str
        Path of the prompt; short for `map` with `prompt=PATH`.
    system : str
        Path of the system that generated the text; short for `map` with `system=PATH`.
    marks : str
        Path of the marks of a row, such as `labels[]`; their fields are guessed.
    join : str or sequence of str
        File to join and its key, as `FILE:PATH` or `FILE:PATH_HERE=PATH_THERE`; may be repeated.
        The joined row is the field that is named after the file: `sources.prompt` for `sources.csv`.
    protocol : str or Protocol
        Name of a shipped protocol, or a YAML file (default: that of `into`, or inferred).
    annotator : str
        Name of the annotator, if the file does not name one.
    labels : mapping, str or sequence of str
        Label of the protocol for a label of the file, as `THEIRS=OURS`; may be repeated.
    no_row : {"", "read", "unread"}
        Meaning of a text without rows of an annotator: `read` without finding errors, or `unread`.
    offsets : str
        Offset convention, such as `utf-16,from-1,inclusive` (default: recognised from the quotes).
        `quotes` ignores offsets and searches for the quotes.
    higher_is_better : str or sequence of str
        Metrics whose higher scores are better, comma-separated.
    lower_is_better : str or sequence of str
        Metrics whose lower scores are better, comma-separated.
    repeats : {"kth", "first"}, default "kth"
        Match of the k-th repetition of a quote without offsets: `kth` occurrence or `first`.
    bad_rows : {"refuse", "skip"}, default "refuse"
        Rows that cannot be read: write nothing (`refuse`), or leave them out (`skip`).
    encoding : str
        Encoding of text files, such as `cp1252` (default: detected).
    sheet : str
        Sheet of an Excel workbook, by name or number (default: the first).
    rows : str
        Path of the rows in a JSON file, such as `data.examples` (default: detected).
    force : bool, default False
        Replace the output if it exists.

    Returns
    -------
    ImportResult
        A summary as rows; ``.study``, ``.roles`` and ``.map``.

    Raises
    ------
    ParameterError
        If fields that look like marks are not mapped, or a choice is required.

    Examples
    --------
    >>> import finecomb as fc
    >>> rows = [{"id": 1, "output": "It were closed.", "labels": [{"start": 3, "end": 7, "type": "grammar"}]}]
    >>> fc.import_table(rows, text="output", marks="labels[]", annotator="ann").study.marks["quotes"].to_list()
    [['were']]
    """
    roles = parse_role_pairs(dict(map) if isinstance(map, Mapping) else as_values(map))
    roles |= {
        role: path
        for role, path in {"text": text, "id": id, "prompt": prompt, "system": system, "marks": marks}.items()
        if path
    }
    study = as_study(into, "into") if into is not None else None
    own_protocol = _choose_protocol(protocol, study)
    directions = dict.fromkeys(as_names(higher_is_better), "higher")
    both = directions.keys() & set(as_names(lower_is_better))
    if both:
        raise ParameterError(f"{', '.join(both)}: named as better both ways", parameter="lower_is_better")
    directions |= dict.fromkeys(as_names(lower_is_better), "lower")
    plan = plan_import(
        source,
        roles=roles,
        use_map=use_map,
        options=SourceOptions(encoding=encoding, sheet=sheet, rows=rows),
        joins=[_parse_join(pair) for pair in as_values(join)],
        has_texts=study is not None,
        changes={
            "offsets": offsets,
            "no_row": no_row,
            "labels": dict(labels)
            if isinstance(labels, Mapping)
            else dict(map_pair(pair) for pair in as_values(labels)),
            "directions": directions,
        },
    )
    if save_map is not None:
        save_import_map(plan.mapping, Path(fspath(save_map)))
    options = ReaderOptions(
        own_protocol,
        annotator,
        no_row=no_row,
        skip_bad_rows=bad_rows == "skip",
        repeats=repeats,
        documents={document.id: document for document in study.iter_documents()} if study is not None else None,
    )
    reader, items = read_plan(plan, options)
    notes: list[str] = [plan.mapping.note] if plan.mapping.note else []
    if study is None and output is not None:
        target = Path(fspath(output))
        notes += formats.save_checked_records(items, target, force=force)
        path: Path | None = target
        records: list[StudyItem] = []
        whole = None
    else:
        path = None
        every = list(items)
        notes += [item.text for item in every if isinstance(item, Note)]
        records = [item for item in every if not isinstance(item, Note)]
        whole = Study.from_items(check_items(_add_records(study, records) if study is not None else records))
    if reader.summary.rows and not reader.summary.texts:
        raise FinecombError(
            f"{plan.name}: no row was imported: "
            + "; ".join(f"{count:,} {why}" for why, count in reader.summary.left_out.items())
        )
    title = (
        f"{reader.summary.texts:,} texts, {reader.summary.annotations:,} annotations, {reader.summary.marks:,} marks"
    )
    result = ImportResult(title, whole, path=path, rows=reader.summary.table(), notes=notes)
    result.roles = Table(plan.role_table(), title="Roles")
    result.map, result.records = plan.mapping, records
    if study is not None and output is not None:
        result.write(output, force=force)
    elif isinstance(into, str | PathLike):
        change_study(Path(fspath(into)), lambda _: records, "imported a table")
    return result


def map_pair(pair: str) -> tuple[str, str]:
    """Split a pair THEIRS=OURS of labels."""
    theirs, equals, ours = pair.rpartition("=")
    if not equals or not theirs or not ours:
        raise ParameterError(f"{param('labels', pair)}: expected THEIRS=OURS", parameter="labels")
    return theirs, ours


def _parse_join(pair: str) -> tuple[Path, str]:
    file, colon, key = pair.rpartition(":")
    if not colon or not file or not key:
        raise ParameterError(f"{param('join', pair)}: expected FILE:PATH, e.g. sources.csv:id", parameter="join")
    return Path(file), key


def _choose_protocol(protocol: str | Protocol, study: Study | None) -> Protocol | None:
    if protocol:
        return protocol if isinstance(protocol, Protocol) else protocols.load(protocol)
    return study.protocol() if study is not None and study.protocols else None


def _add_records(study: Study, records: Sequence[StudyItem]) -> list[StudyItem]:
    """Return the records of a study together with new ones; a second annotation of a text is refused."""
    keys = set(zip(*(study.annotations[name] for name in ("document", "annotator", "protocol", "round")), strict=True))
    for record in records:
        if isinstance(record, Annotation) and (
            (record.document, record.annotator, record.protocol, record.round) in keys
        ):
            raise FinecombError(
                f"{record.annotator!r} already has an annotation of {record.document!r} in the study; name another "
                f"annotator with {param('annotator')}, or remove the rows"
            )
    documents = [record for record in records if isinstance(record, Document)]
    merged = merge_work(study, records)
    at = next((position for position, item in enumerate(merged) if isinstance(item, Annotation)), len(merged))
    return [*merged[:at], *documents, *merged[at:]]
