"""Studies: create, convert, check, select, merge, count, show and simulate; protocols and formats."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, Any, Literal

from finecomb import formats, protocols
from finecomb.annotators.simulated import SimulatedAnnotator, make_crowd
from finecomb.annotators.simulated.demo_study import build_demo_study
from finecomb.annotators.simulated.simulated_study import simulate_study
from finecomb.api.parameters import (
    REPEATED,
    Bounds,
    Names,
    NonNegative,
    PositiveInt,
    Share,
    StudyLike,
    Values,
    as_names,
    as_study,
    as_values,
    changed_parameters,
    public,
    select_part,
)
from finecomb.api.progress import Progress, track
from finecomb.api.study_results import (
    AnyPath,
    CreatedStudy,
    JsonSchema,
    Problems,
    ProtocolDetails,
    StudyCounts,
    StudyResult,
    count_records,
)
from finecomb.collection.announcement import build_participation_terms, researcher_summary_line
from finecomb.core.errors import FinecombError, ParameterError, StudyError, did_you_mean, param
from finecomb.core.phase_names import parse_phases
from finecomb.core.protocol import Protocol
from finecomb.core.protocol_yaml import parse_yaml
from finecomb.core.records import Design, Document, Settings
from finecomb.core.results import Table
from finecomb.core.study import Study, StudyItem, merge_work
from finecomb.core.study_checks import check_items
from finecomb.formats.base import Options, parse_column_pairs
from finecomb.formats.imports import rows_format
from finecomb.formats.mark_merge import MergedAnnotations, merge_annotations
from finecomb.formats.mark_table_reader import TABLE_OPTIONS
from finecomb.formats.new_study import (
    EmptyTexts,
    NewStudySources,
    create_study,
    describe_planned_annotators,
    read_design_file,
)
from finecomb.formats.source_files import read_text
from finecomb.formats.study_edits import EditedRecord, StudyEdits, build_edits
from finecomb.formats.study_problems import CheckedStudy, check_records, check_study_path
from finecomb.formats.study_writes import change_study
from finecomb.reporting.demo_tour import DemoTour
from finecomb.reporting.next_steps import next_steps as suggest_next_steps
from finecomb.reporting.shown_text import ShownText
from finecomb.reporting.tables import frame_rows
from finecomb.statistics.gold.corrected_texts import correct_texts
from finecomb.statistics.measures.numeric_answers import unusable_severity_warnings
from finecomb.statistics.measures.study_overview import study_overview
from finecomb.statistics.selection.subset import required_mark_columns

ColumnNames = Annotated[Mapping[str, str] | str | Sequence[str], REPEATED]
"""Column names: a mapping from ours to those of a table, or OURS=THEIRS."""
Paths = Annotated[str | PathLike[str] | Sequence[str | PathLike[str]], REPEATED]


# --- counts and checks -----------------------------------------------------------------------------------------------


@public
def stats(study: StudyLike, *, by: Names = (), where: Values = (), drop: Values = ()) -> StudyCounts:
    """Count the documents, annotations and annotators of a study, and its marks by label, annotator and model.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The study whose documents, annotations and marks are counted. A path is read with :func:`read`.
    by : str or sequence of str
        Group by document metadata or annotator fields, comma-separated (default: `model`).
        The default applies only if texts have this field. ``none`` groups nothing.
    where : str or sequence of str
        Keep only matching texts, annotators or marks, such as `model=gpt2`; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    drop : str or sequence of str
        Omit marks by label, group or `LABEL:SEVERITY` (`grammar-usage:1`); may be repeated.

    Returns
    -------
    StudyCounts
        ``.totals`` by name, and ``.tables``: labels, groups, texts, work and annotators.

    Raises
    ------
    FinecombError
        If a field of `by`, a condition or a label is unknown.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.stats(fc.demo()).totals["marks"]
    307
    >>> fc.stats(fc.demo())["labels"].find(label="redundant").marks
    48
    """
    whole = select_part(as_study(study), as_values(where), as_values(drop))
    overview = study_overview(whole, as_names(by))
    tables = {table.name: Table(frame_rows(table.frame), title=table.title) for table in overview.tables}
    return StudyCounts(whole.settings.title or whole.origin or "Study", overview.totals, tables)


@public
def next_steps(study: StudyLike) -> Table:
    """Suggest the next commands for a study, each with its reason.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The study to suggest commands for. A path is read with :func:`read`, and appears in the commands.

    Returns
    -------
    Table
        At most three rows with the columns ``command`` and ``reason``, the most urgent first.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.next_steps(fc.demo())[0].command
    'finecomb serve STUDY'
    """
    whole = as_study(study)
    name = str(study) if isinstance(study, str | PathLike) else whole.origin or "STUDY"
    return Table(map(dataclasses.asdict, suggest_next_steps(whole, name)), title="Next steps")


@public
def check(study: StudyLike, *, from_: str = "", progress: Progress = False) -> Problems:
    """List all problems in a study, each with its file, line and fix.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The study to check. If it cannot be read, the result lists the reader's problems.
    from_ : str
        Input format, as listed by `finecomb formats` (default: guessed from the file).
    progress : bool or callable, default False
        Show progress on standard error.
        A function is called with the number of finished records instead.

    Returns
    -------
    Problems
        A list of :class:`Problem`, errors and warnings; ``.errors``, ``.warnings``, and ``.study`` where it was read.

    Raises
    ------
    FinecombError
        If nothing is at the path, or its format cannot be told.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.check(fc.demo()).errors
    []
    """
    if isinstance(study, Study):
        return Problems(check_records(study.items(), Path(study.origin) if study.origin else None))
    if isinstance(study, str | PathLike):
        return Problems(check_study_path(Path(fspath(study)), from_, lambda items: track(items, progress, "records")))
    try:
        return Problems(check_records(as_study(study).items()))
    except StudyError as error:
        return Problems(CheckedStudy(list(error.problems)))


# --- parts, conversions and merges -----------------------------------------------------------------------------------


@public
def select(
    study: StudyLike, *, where: Values = (), drop: Values = (), output: AnyPath | None = None, force: bool = False
) -> StudyResult:
    """Create a new study from the texts, annotators, annotations and marks that match the conditions.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The study to select from. A path is read with :func:`read`.
    where : str or sequence of str
        Keep only matching texts, annotators or marks, such as `model=gpt2`; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    drop : str or sequence of str
        Omit marks by label, group or `LABEL:SEVERITY` (`grammar-usage:1`); may be repeated.
    output : path, optional
        Study to write. From Parquet to Parquet marks are passed on without being held in memory.
    force : bool, default False
        Replace the output if it exists.

    Returns
    -------
    StudyResult
        ``.study`` is the part. See also :meth:`Study.where`.

    Raises
    ------
    ParameterError
        If neither `where` nor `drop` is given.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.select(fc.demo(), where="model=human", drop="redundant").title
    '4 texts, 24 annotations, 10 marks'
    """
    conditions, dropped = as_values(where), as_values(drop)
    if not conditions and not dropped:
        kept = "a condition on what to keep, or marks to omit"
        raise ParameterError(f"select requires {param('where')} or {param('drop')}: {kept}")
    whole, notes = as_study(study), list[str]()
    if output is None:
        part = select_part(whole, conditions, dropped)
    else:
        chosen = functools.partial(select_part, where=conditions, drop=dropped)
        columns = required_mark_columns(conditions, dropped)
        part, notes = formats.save_selection(whole, Path(fspath(output)), chosen, columns, force)
    counts = count_records(part)
    title = ", ".join(_plural(counts[f"{noun}s"], noun) for noun in ("text", "annotation", "mark"))
    kept_study = part if output is None else None
    return StudyResult(title, kept_study, path=Path(fspath(output)) if output else None, rows=[counts], notes=notes)


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@public
def convert(
    source: StudyLike,
    target: AnyPath,
    *,
    from_: str = "",
    to: str = "",
    protocol: str | Protocol = "",
    texts: AnyPath | None = None,
    data: AnyPath | None = None,
    map: ColumnNames = (),
    repeats: Literal["kth", "first"] = "kth",
    annotator: str = "",
    corrected: bool = False,
    corrector: str = "",
    where: Values = (),
    drop: Values = (),
    force: bool = False,
    progress: Progress = False,
) -> StudyResult:
    """Convert a study to another format; the study is checked, and notes list what the new format cannot store.

    Parameters
    ----------
    source : path, Study, DataFrame or list of dicts
        File or study to read. A path is converted as a stream, without holding the study in memory.
    target : path
        File or study to write; a name without an extension becomes a study folder.
    from_ : str
        Input format, as listed by `finecomb formats` (default: guessed from the file).
    to : str
        Output format, as listed by `finecomb formats` (default: guessed from the extension).
    protocol : str or Protocol
        Name of a shipped protocol (see `finecomb protocols`), or a YAML file.
    texts : path, optional
        File or folder with the texts, if they are not stored with the annotations.
    data : path, optional
        File or folder with the source data that the texts describe.
    map : mapping, str or sequence of str
        Input column of a field, as `FIELD=COLUMN`, such as `text=Body`; may be repeated.
    repeats : {"kth", "first"}, default "kth"
        Match of the k-th repetition of a quote without offsets: `kth` occurrence or `first`.
        With `kth`, the k-th repetition of a quote is its k-th occurrence in the text.
    annotator : str
        Name of the annotator, if the file does not name one.
    corrected : bool, default False
        Write only the texts, corrected as the marks suggest.
    corrector : str
        Annotator whose corrections are applied (default: `gold`, or the only annotator).
    where : str or sequence of str
        Keep only matching texts, annotators or marks, such as `model=gpt2`; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    drop : str or sequence of str
        Omit marks by label, group or `LABEL:SEVERITY` (`grammar-usage:1`); may be repeated.
    force : bool, default False
        Replace the target if it exists.
    progress : bool or callable, default False
        Show progress on standard error.
        A function is called with the number of finished records instead.

    Returns
    -------
    StudyResult
        ``.path`` was written; ``.study`` reads it; ``.notes`` tell what the format could not hold.

    Raises
    ------
    ParameterError
        If an option applies to files only, or `corrector` is given without `corrected`.
    StudyError
        If the source has errors; nothing is written then.

    Examples
    --------
    >>> import tempfile
    >>> import finecomb as fc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fc.convert(fc.demo(), f"{folder}/marks.csv").path.name
    'marks.csv'
    """
    chosen = changed_parameters(convert, locals())
    if corrector and not corrected:
        raise ParameterError(f"{param('corrector')} requires {param('corrected')}", parameter="corrector")
    options = Options(
        protocol=_load_protocol(protocol) if protocol else None,
        texts=Path(fspath(texts)) if texts else None,
        data=Path(fspath(data)) if data else None,
        columns=_columns(map),
        repeats=repeats,
        annotator=annotator,
    )
    path, notes = Path(fspath(target)), list[str]()
    conditions, dropped = as_values(where), as_values(drop)
    is_path = isinstance(source, str | PathLike)
    watch = functools.partial(track, progress=progress, unit="records")
    if isinstance(source, str | PathLike) and not (conditions or dropped or corrected):
        notes = formats.convert(Path(fspath(source)), path, from_, to, options, force, watch)
        return StudyResult(f"{path.name} written", path=path, format=to, notes=notes)
    if isinstance(source, str | PathLike):
        whole = formats.read(Path(fspath(source)), from_, options, watch=watch)
    else:
        _refuse_reading_options(chosen)
        whole = as_study(source, "source")
    part = select_part(whole, conditions, dropped)
    items: Iterable[StudyItem] = part.items()
    if corrected:
        texts_with_corrections = correct_texts(part, corrector)
        items, notes = texts_with_corrections.items, [texts_with_corrections.describe()]
    notes += formats.save_records(check_items(items), path, to, options if is_path else None, force)
    return StudyResult(f"{path.name} written", path=path, format=to, notes=notes)


_READING_OPTIONS = ("from_", "protocol", "texts", "data", "map", "repeats", "annotator")


def _refuse_reading_options(chosen: Collection[str], names: Sequence[str] = _READING_OPTIONS) -> None:
    """Refuse options for reading files if the study is in memory."""
    for name in names:
        if name in chosen:
            raise ParameterError(f"{param(name)} applies only to files", parameter=name, hint="omit it")


def _columns(names: Mapping[str, str] | str | Sequence[str]) -> dict[str, str]:
    return dict(names) if isinstance(names, Mapping) else parse_column_pairs(as_values(names))


def _only_protocol(study: Study) -> Protocol | None:
    return next(iter(study.protocols.values())) if len(study.protocols) == 1 else None


def _load_protocol(protocol: str | Protocol) -> Protocol:
    return protocol if isinstance(protocol, Protocol) else protocols.load(protocol)


@public
def merge(
    study: StudyLike,
    marks: StudyLike | Sequence[StudyLike],
    *,
    protocol: str | Protocol = "",
    map: ColumnNames = (),
    annotator: str = "",
    from_: str = "",
    into: AnyPath | None = None,
    replace: bool = False,
    progress: Progress = False,
) -> StudyResult:
    """Add annotations to a study from a colleague's file, a language model's replies or another tool's export.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The study to add the annotations to.
    marks : Study, path, DataFrame or list of dicts, or several of them
        Files or studies with more annotations of the same texts.
    protocol : str or Protocol
        Name of a shipped protocol (see `finecomb protocols`), or a YAML file.
    map : mapping, str or sequence of str
        Input column of a field, as `FIELD=COLUMN`, such as `text=Body`; may be repeated.
    annotator : str
        Name of the annotator, if the files do not name one.
    from_ : str
        Input format, as listed by `finecomb formats` (default: guessed from each file).
    into : path, optional
        Study to add the annotations to where it is stored, also while it is served; usually `STUDY`.
    replace : bool, default False
        Replace annotations of the same text by the same annotator; the earlier ones stay, excluded.
    progress : bool or callable, default False
        Show progress on standard error.
        A function is called with the number of finished records instead.

    Returns
    -------
    StudyResult
        ``.study`` has the annotations of all, ``.notes`` the problems found while reading.
        See also :meth:`Study.with_annotations`.

    Raises
    ------
    FinecombError
        If a text is not in the study, or an annotator has annotated it already.

    Examples
    --------
    >>> import finecomb as fc
    >>> study = fc.demo()
    >>> fc.merge(study.where('annotator != "truth"'), study.where("annotator=truth")).title
    '16 annotations merged from 1 file'
    """
    chosen = changed_parameters(merge, locals())
    options = Options(_load_protocol(protocol) if protocol else None, columns=_columns(map), annotator=annotator)
    is_table = isinstance(marks, Sequence) and all(isinstance(row, Mapping) for row in marks)
    is_single = is_table or isinstance(marks, str) or not isinstance(marks, Sequence)
    sources: Sequence[Any] = [marks] if is_single else marks  # type: ignore[assignment]
    others: list[tuple[str, Study]] = []
    whole = as_study(study)
    for number, source in enumerate(sources, 1):
        if isinstance(source, str | PathLike):
            path = Path(fspath(source))
            format = formats.get_format(from_) if from_ else formats.detect_format(path)
            used = {name: getattr(options, name) for name in options.non_default_names() & format.options}
            if format.options == TABLE_OPTIONS and not protocol and len(whole.protocols) == 1:
                used["protocol"] = whole.protocol()  # labels must be those of the study, not a protocol of their own
            watch = functools.partial(track, progress=progress, unit="records")
            if format.name == "rows":  # such a file may have only the IDs of the texts
                texts = {document.id: document for document in whole.iter_documents()}
                own = Options(**({"protocol": _only_protocol(whole)} | used))
                records = [*texts.values(), *rows_format.read(path, own, texts)]
                others.append((path.name, Study.from_items(check_items(records))))
            else:
                others.append((path.name, formats.read(path, from_, Options(**used), watch)))
        else:
            _refuse_reading_options(chosen)
            other = as_study(source, "marks")
            others.append((Path(other.origin).name or f"annotations-{number}", other))
    merged: list[MergedAnnotations] = []

    def build(current: Study) -> tuple[StudyItem, ...]:
        merged.append(merge_annotations(current, others, replace))
        return merged[-1].records

    if into is None:
        items = check_items(merge_work(whole, build(whole), replace=True))
        after = Study.from_items(items, whole.origin)
    else:
        after = change_study(Path(fspath(into)), build, "merged annotations")
    counts = merged[-1]
    title = f"{_plural(counts.annotations, 'annotation')} merged from {_plural(len(others), 'file')}"
    notes = [f"{name}: {note.removeprefix(f'{name}: ')}" for name, other in others for note in other.notes]
    if counts.replaced:
        notes.append(f"{_plural(counts.replaced, 'earlier annotation')} replaced; they stay in the study, excluded")
    if counts.duplicates:
        notes.append(f"{_plural(counts.duplicates, 'mark')} with the spans and label of another mark merged")
    return StudyResult(title, after, notes=notes)


class StudyEdit(Table):
    """The texts, protocols and settings that an edit added or changed: one row each.

    Attributes
    ----------
    affected : int
        Number of annotations that stay with an earlier version.
    """

    def __init__(self, rows: Sequence[EditedRecord], is_dry: bool) -> None:
        self.affected = sum(row.annotations for row in rows)
        notes = [
            f"{row.id}: {_plural(row.annotations, 'annotation')} of {row.earlier} unchanged; "
            f"new work uses {row.id}, and {row.earlier} is no longer assigned"
            for row in rows
            if row.earlier
        ]
        notes += ["nothing was changed"] if is_dry else []
        super().__init__(map(dataclasses.asdict, rows), title="Planned edits" if is_dry else "Edits", notes=notes)


@public
def edit(
    study: AnyPath,
    *,
    documents: StudyLike | None = None,
    protocol: str | Protocol = "",
    settings: AnyPath | None = None,
    dry_run: bool = False,
) -> StudyEdit:
    """Change the texts, protocol or settings of a study; annotations stay with the version they were made on.

    Parameters
    ----------
    study : path
        A study's folder, its SQLite file, or `postgresql://HOST/DATABASE#STUDY`, also while it is served.
    documents : path, Study, DataFrame or list of dicts, optional
        Texts to add or change, by ID, in any format.
        A text with annotations is kept, and the new text becomes a document of its own, such as `harbour-a~2`.
    protocol : str or Protocol
        Changed protocol, as a YAML file or the name of a shipped protocol.
        If annotations use it, it is stored as a new version.
    settings : path, optional
        YAML file with settings to change, such as `annotators: 3`.
    dry_run : bool, default False
        Show the changes and the annotations they affect without making them.

    Returns
    -------
    StudyEdit
        One row per change, with the number of annotations that stay with the earlier version.

    Raises
    ------
    ParameterError
        If nothing to change is given.
    FinecombError
        If the changed study would be invalid; nothing is changed then.

    Examples
    --------
    >>> import finecomb as fc, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = fc.write(fc.demo(readers=2), f"{folder}/demo")
    ...     fc.edit(f"{folder}/demo", documents=[{"id": "harbour-a", "text": "A new text."}])[0].id
    'harbour-a~2'
    """
    if documents is None and not protocol and settings is None:
        given = f"{param('documents')}, {param('protocol')} or {param('settings')}"
        raise ParameterError(f"edit requires {given}: what to change")
    texts: list[Document] = []
    if isinstance(documents, str | PathLike):
        records = formats.stream_records(Path(fspath(documents)))
        texts = [record for record in records if isinstance(record, Document)]
    elif documents is not None:
        texts = list(as_study(documents, "documents").iter_documents())
    file = Path(fspath(settings)) if settings is not None else None
    changed = parse_yaml(Settings, read_text(file), str(file)) if file else None
    own = _load_protocol(protocol) if protocol else None
    made: list[StudyEdits] = []

    def build(current: Study) -> tuple[StudyItem, ...]:
        made.append(build_edits(current, texts, own, changed))
        return made[-1].records

    path = Path(fspath(study))
    if dry_run:
        current = formats.read(path)
        list(check_items(merge_work(current, build(current), replace=True)))  # an error if it would be invalid
    else:
        change_study(path, build, "edited the study")
    return StudyEdit(made[-1].rows, dry_run)


# --- new, simulated and demo studies ---------------------------------------------------------------------------------


@public
def new(
    documents: StudyLike,
    *,
    protocol: str | Protocol,
    data: Paths = (),
    title: str = "",
    annotators: PositiveInt | None = None,
    map: ColumnNames = (),
    empty: EmptyTexts = "keep",
    from_: str = "",
    skip: Values = (),
    design: AnyPath | Design | None = None,
    mode: str = "",
    settings: AnyPath | None = None,
    seed: int = 0,
) -> CreatedStudy:
    """Create a study: a folder with a protocol and texts, ready for annotators.

    Parameters
    ----------
    documents : path, Study, DataFrame or list of dicts
        Texts: JSONL, CSV, XLSX, a file with one text per line, a folder, or another format.
    protocol : str or Protocol
        Name of a shipped protocol (see `finecomb protocols`), or a YAML file.
    data : path or sequence of paths
        Source data that the texts describe, as JSON, JSON Lines or a folder; may be repeated.
        A folder has the box scores of games. A folder of games or a schedule adds the teams' last and next games.
    title : str
        Title shown on pages and in reports.
    annotators : int, optional
        Number of annotators per document (default: as in the protocol).
    map : mapping, str or sequence of str
        Input column of a field, as `FIELD=COLUMN`, such as `text=Body`; may be repeated.
    empty : {"keep", "drop", "refuse"}, default "keep"
        Empty texts, such as failed generations: `keep`, `drop` or `refuse` (stop with an error).
    from_ : str
        Input format, as listed by `finecomb formats` (default: guessed from the file).
    skip : str or sequence of str
        Phases to omit, comma-separated, such as `consent`, `survey` or `training`.
        The phases are `consent`, `survey`, `instructions`, `training` and `qualification`.
    design : path or Design, optional
        YAML file with the experimental design (conditions, cells and their texts).
    mode : str
        Variant of the task that the protocol defines, such as `in-the-data`.
    settings : path, optional
        YAML file with further settings of `study.yaml`, such as design, pay and recruitment.
    seed : int, default 0
        Random seed for assigning texts to annotators and for sampling.

    Returns
    -------
    CreatedStudy
        ``.study``, ``.announcement``, and ``.write("folder")``, which makes the folder that the server needs.

    Raises
    ------
    ParameterError
        If the protocol shows no data, empty texts are refused, or an option applies to files only.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.new([{"id": "a", "text": "Boston won 30-20."}], protocol="scarecrow").title
    '1 text, protocol scarecrow@2, 10 annotators per text'
    """
    chosen, own_protocol = changed_parameters(new, locals()), _load_protocol(protocol)
    own_protocol.with_mode(mode)  # an error if there is none
    if isinstance(documents, str | PathLike):
        options, origin = Options(columns=_columns(map)), fspath(documents)
        items = list(formats.stream_records(Path(origin), from_, options))
    else:
        _refuse_reading_options(chosen, ("from_", "map"))
        texts = as_study(documents, "documents")
        items, origin = list(texts.items()), texts.origin or "documents"
    paths = [data] if isinstance(data, str | PathLike) else data
    more = Path(fspath(settings)) if settings else None
    sources = NewStudySources(origin, [Path(fspath(path)) for path in paths], more, empty)
    values: dict[str, object] = {
        "title": title,
        "annotators": annotators,
        "skip": parse_phases(as_values(skip)),
        "mode": mode,
    }
    values |= {"seed": seed, "design": read_design_file(Path(design)) if isinstance(design, str | PathLike) else design}
    changes = {name: value for name, value in values.items() if value}
    study, notes = create_study(items, own_protocol, changes, sources)
    people = describe_planned_annotators(study.settings, own_protocol)
    summary = f"{_plural(len(study.documents), 'text')}, protocol {own_protocol.id}, {people}"
    created = CreatedStudy(summary, study, notes=notes)
    created.announcement = researcher_summary_line(build_participation_terms(own_protocol, study.settings))
    return created


@public
def demo(readers: int = 5, seed: int = 0) -> Study:
    """Create the demo study: 16 texts with planted errors, and simulated annotators.

    Parameters
    ----------
    readers : int, default 5
        Number of simulated annotators.
    seed : int, default 0
        Random seed for the simulated annotators.

    Returns
    -------
    Study
        The study, also without any file.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.demo()
    Study('Saltby: the demo study': 16 documents, 96 annotations, 307 marks; scarecrow@2)
    """
    return Study.from_items(build_demo_study(readers, seed))


@public
def tour(folder: AnyPath = "demo-study", *, readers: Annotated[int, Bounds(2)] = 5, seed: int = 0) -> DemoTour:
    """Take a tour of the demo study: a text with its marks, counts, coverage and agreement.

    Parameters
    ----------
    folder : path, default "demo-study"
        Folder of the demo study; created if it does not exist.
    readers : int, default 5
        Number of simulated annotators.
    seed : int, default 0
        Random seed for the simulated annotators.

    Returns
    -------
    DemoTour
        ``.study``, ``.example``, ``.counts``, ``.coverage`` and ``.agreement``.

    Raises
    ------
    ParameterError
        If there are fewer than two annotators.

    Examples
    --------
    >>> import finecomb as fc
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fc.tour(f"{folder}/demo").example.title
    'harbour-c: 5 marks by 1 annotator'
    """
    path = Path(fspath(folder))
    notes = [f"{path} already exists and is used unchanged"] if path.exists() else []
    if not notes:
        formats.save_records(build_demo_study(readers, seed), path)
    return DemoTour(formats.read(path), notes)


@public
def simulate(
    study: StudyLike,
    *,
    annotators: PositiveInt = 5,
    recall: Share = 0.6,
    precision: Annotated[float, Bounds(0.01, 1)] = 0.8,
    jitter: NonNegative = 0.5,
    confusion: Share = 0.1,
    spread: NonNegative = 0.0,
    truth: str = "",
    plant: NonNegative = 3.0,
    protocol: str = "",
    seed: int = 0,
    output: AnyPath | None = None,
    force: bool = False,
    progress: Progress = False,
) -> StudyResult:
    """Simulate annotators with known recall, precision, jitter and confusion on texts with known errors.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The texts to annotate and, if `truth` is set, their true errors.
    annotators : int, default 5
        Number of simulated annotators.
    recall : float, default 0.6
        Probability that an annotator marks a true error.
    precision : float, default 0.8
        Expected share of an annotator's marks that correspond to a true error.
    jitter : float, default 0.5
        Standard deviation of the random shift of each span boundary, in tokens.
    confusion : float, default 0.1
        Probability that a mark gets a wrong label.
    spread : float, default 0.0
        Standard deviation of recall and precision between annotators.
    truth : str
        Annotator in the study whose marks are the true errors, such as `gold`.
    plant : float, default 3.0
        Without `truth`: number of true errors to plant per 100 words.
    protocol : str
        Name of the protocol to use; required if the study has several.
    seed : int, default 0
        Random seed for the simulation.
    output : path, optional
        Study to write. It is written while it is made.
    force : bool, default False
        Replace the output if it exists.
    progress : bool or callable, default False
        Show progress on standard error.
        A function is called with the number of finished records instead.

    Returns
    -------
    StudyResult
        ``.study`` has the simulated annotators, and the true errors as one more annotator.

    Raises
    ------
    ParameterError
        If a rate is out of its bounds.
    FinecombError
        If `truth` has no annotations, or the study has several protocols.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.simulate(fc.demo(), truth="truth", annotators=3).title
    "3 annotators on 16 documents; the true errors are annotator 'truth'"
    """
    whole = as_study(study)
    people = make_crowd(annotators, SimulatedAnnotator("reader", recall, precision, jitter, confusion), spread, seed)
    simulated = simulate_study(whole, whole.protocol(protocol), people, truth, plant, seed)
    size = f"{_plural(annotators, 'annotator')} on {_plural(len(whole.documents), 'document')}"
    title = f"{size}; the true errors are annotator {simulated.truth!r}"
    items = track(simulated.items, progress, "records")
    if output is None:
        return StudyResult(title, Study.from_items(items))
    path = Path(fspath(output))
    return StudyResult(title, path=path, notes=formats.save_records(items, path, force=force))


# --- texts, formats and protocols ------------------------------------------------------------------------------------


@public
def show(
    study: StudyLike,
    document: str = "",
    *,
    annotator: Values = (),
    columns: Annotated[int, Bounds(20)] = 96,
    where: Values = (),
    drop: Values = (),
) -> ShownText:
    """Show a text with the marks of all annotators below its words.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        Study that contains the text.
    document : str
        ID of the text to show (default: the first).
    annotator : str or sequence of str
        Include only this annotator; may be repeated.
    columns : int, default 96
        Line width in characters.
    where : str or sequence of str
        Keep only matching texts, annotators or marks, such as `model=gpt2`; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    drop : str or sequence of str
        Omit marks by label, group or `LABEL:SEVERITY` (`grammar-usage:1`); may be repeated.

    Returns
    -------
    ShownText
        A notebook shows it in colour; ``print`` prints it; ``.to_html(path)`` writes a page; rows are its marks.

    Raises
    ------
    FinecombError
        If a document or annotator is unknown, or no text is left.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.show(fc.demo(), "harbour-c", annotator="truth").title
    'harbour-c: 5 marks by 1 annotator'
    """
    whole = select_part(as_study(study), as_values(where), as_values(drop))
    if whole.documents.is_empty():
        reason = f"no text matches {param('where')}" if where else "no documents found"
        raise FinecombError(f"{whole.origin or whole.settings.title or 'the study'}: {reason}")
    id = document or whole.documents["id"][0]
    text, annotations, people = whole.document(id), whole.annotations_on(id), as_values(annotator)
    for name in people:
        if name not in set(whole.annotators["id"]):
            raise FinecombError(f"unknown annotator {name!r}{did_you_mean(name, whole.annotators['id'])}")
    chosen = [annotation for annotation in annotations if not people or annotation.annotator in people]
    notes = []
    if not document and len(whole.documents) > 1:
        others = f"pass the ID of another document, e.g. {', '.join(whole.documents['id'].head(6)[1:])}"
        notes.append(f"this is the first of {len(whole.documents):,} documents; {others}")
    return ShownText(text, chosen, whole.protocols, columns, notes)


@public
def list_formats() -> Table:
    """List every format that can be read or written.

    Returns
    -------
    Table
        One row per format: name, what, read, write, endings, and the parameters that reading or writing it uses.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.list_formats().find(name="jsonl").options
    'map'
    """
    rows = [
        {
            "name": format.name,
            "what": format.title,
            "read": format.read is not None,
            "write": format.write is not None,
            "endings": " ".join(format.suffixes),
            "options": " ".join(Options.parameter_name(name) for name in sorted(format.options)),
        }
        for format in formats.FORMATS.values()
    ]
    return Table(rows, title="Formats")


@public
def list_protocols() -> Table:
    """List the shipped protocols, which define what annotators are asked.

    Returns
    -------
    Table
        One row per protocol: name, version, number of labels, what it asks, and the paper it follows.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.list_protocols().find(name="scarecrow").labels
    10
    """
    shipped = [protocols.load_shipped(name) for name in protocols.names()]
    rows = [
        {
            "name": protocol.name,
            "version": protocol.version,
            "labels": len(protocol.labels),
            "asks": protocol.summary,
            "source": protocol.source,
        }
        for protocol in shipped
    ]
    return Table(rows, title="Protocols")


@public
def show_protocol(name: str | Protocol) -> ProtocolDetails:
    """Show the labels, questions and rules of a protocol; a YAML file of your own is also checked.

    Parameters
    ----------
    name : str or Protocol
        Name of a shipped protocol (see `finecomb protocols`), or a YAML file.

    Returns
    -------
    ProtocolDetails
        ``.protocol``, and its labels as rows; ``.notes`` warn of severities that cannot be used as numbers.

    Raises
    ------
    ProtocolError
        If no protocol has the name, or the file is not a valid protocol.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.show_protocol("scarecrow").protocol.id
    'scarecrow@2'
    """
    protocol = _load_protocol(name)
    return ProtocolDetails(protocol, unusable_severity_warnings(protocol))


@public
def protocol_schema() -> JsonSchema:
    """Create the JSON schema of protocol files, for editors that check a file while you type.

    Returns
    -------
    JsonSchema
        A dictionary that :func:`json.dumps` writes.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.protocol_schema()["title"]
    'Protocol'
    """
    return JsonSchema(Protocol.model_json_schema())
