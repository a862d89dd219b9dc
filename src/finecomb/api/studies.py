"""Studies: create, convert, check, select, merge, count, show and simulate them; protocols and formats."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, Any, Literal

from finecomb import formats, protocols
from finecomb.annotators.simulated import SimulatedAnnotator, make_crowd
from finecomb.annotators.simulated.demo_study import demo_study
from finecomb.annotators.simulated.simulated_study import simulate_study
from finecomb.api.coercion import StudyLike, as_names, as_study, as_values
from finecomb.api.parameters import (
    REPEATED,
    Bounds,
    Names,
    NonNegative,
    PositiveInt,
    Share,
    Values,
    changed_parameters,
    public,
)
from finecomb.api.progress import Progress, track
from finecomb.api.selection import select_part
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
from finecomb.core.records import Design
from finecomb.core.results import Table
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_items
from finecomb.formats.base import Options, parse_columns
from finecomb.formats.mark_merge import merge_annotations
from finecomb.formats.new_study import EmptyTexts, NewStudySources, create_study, describe_annotators, read_design
from finecomb.formats.study_problems import CheckedStudy, check_path, check_records
from finecomb.reporting.demo_tour import DemoTour
from finecomb.reporting.shown_text import ShownText
from finecomb.reporting.tables import frame_rows
from finecomb.statistics.gold.corrected_texts import correct_texts
from finecomb.statistics.measures.numeric_answers import unusable_severity_warnings
from finecomb.statistics.measures.study_overview import study_overview
from finecomb.statistics.selection.subset import required_mark_columns

ColumnNames = Annotated[Mapping[str, str] | str | Sequence[str], REPEATED]
"""Our names of columns and those of a table: a mapping, or OURS=THEIRS."""
Paths = Annotated[str | PathLike[str] | Sequence[str | PathLike[str]], REPEATED]


# --- counts and checks -----------------------------------------------------------------------------------------------


@public
def stats(study: StudyLike, *, by: Names = (), where: Values = (), drop: Values = ()) -> StudyCounts:
    """Count what a study holds: documents, annotations, annotators, and marks by label, annotator and model.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The study to count. A path is read with :func:`read`.
    by : str or sequence of str
        Document meta or annotator fields, comma-separated (default: model, where present).
        ``none`` splits nothing.
    where : str or sequence of str
        Condition on texts, annotators or marks, such as model=gpt2; may be repeated.
    drop : str or sequence of str
        Omit a label or group, or one severity of it (grammar-usage:1); may be repeated.

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
def check(study: StudyLike, *, from_: str = "", progress: Progress = False) -> Problems:
    """List every problem of a study with file, line and how to fix it.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The study to check. One that cannot be read has the problems of its reader.
    from_ : str
        Format of the input, when it cannot be guessed.
    progress : bool or callable, default False
        Show progress on standard error, or call a function with the records done.

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
        return Problems(check_path(Path(fspath(study)), from_, lambda items: track(items, progress, "records")))
    try:
        return Problems(check_records(as_study(study).items()))
    except StudyError as error:
        return Problems(CheckedStudy(list(error.problems)))


# --- parts, conversions and merges -----------------------------------------------------------------------------------


@public
def select(
    study: StudyLike, *, where: Values = (), drop: Values = (), output: AnyPath | None = None, force: bool = False
) -> StudyResult:
    """Select a part of a study as a study of its own: the texts, annotators, annotations and marks that fit.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The study to select from. A path is read with :func:`read`.
    where : str or sequence of str
        Condition on texts, annotators or marks, such as model=gpt2; may be repeated.
    drop : str or sequence of str
        Omit a label or group, or one severity of it (grammar-usage:1); may be repeated.
    output : path, optional
        Study to write. From Parquet to Parquet marks are passed on without being held in memory.
    force : bool, default False
        Replace an existing output.

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
        kept = "what to keep, or which marks to leave out"
        raise ParameterError(f"select needs {param('where')} or {param('drop')}: {kept}")
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
    """Convert a study from any format to any other, checked on the way; notes list what the target cannot hold.

    Parameters
    ----------
    source : path, Study, DataFrame or list of dicts
        What to read. A path is converted as a stream, without holding the study in memory.
    target : path
        What to write; a name without an ending makes a study folder.
    from_ : str
        Format of the input, when it cannot be guessed.
    to : str
        Format of the output, when its ending does not tell.
    protocol : str or Protocol
        A shipped protocol's name or your YAML file.
    texts : path, optional
        File or folder of the texts, when they are stored separately.
    data : path, optional
        File or folder of the records behind the texts.
    map : mapping, str or sequence of str
        OURS=THEIRS: name of one of our columns in a table, such as text=Body; may be repeated.
    repeats : {"kth", "first"}, default "kth"
        Quotes without offsets: the k-th repetition is the k-th occurrence, or all are the first.
    annotator : str
        Who made the annotations, when the file does not tell.
    corrected : bool, default False
        Write only the texts, with the corrections of marks applied.
    corrector : str
        Annotator whose corrections are applied (default: gold, or the only annotator).
    where : str or sequence of str
        Condition on texts, annotators or marks, such as model=gpt2; may be repeated.
    drop : str or sequence of str
        Omit a label or group, or one severity of it (grammar-usage:1); may be repeated.
    force : bool, default False
        Replace an existing target.
    progress : bool or callable, default False
        Show progress on standard error, or call a function with the records done.

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
        raise ParameterError(f"{param('corrector')} applies with {param('corrected')} only", parameter="corrector")
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
    notes += formats.save(check_items(items), path, to, options if is_path else None, force)
    return StudyResult(f"{path.name} written", path=path, format=to, notes=notes)


_READING_OPTIONS = ("from_", "protocol", "texts", "data", "map", "repeats", "annotator")


def _refuse_reading_options(chosen: Collection[str], names: Sequence[str] = _READING_OPTIONS) -> None:
    """Refuse options of files where the study is in memory."""
    for name in names:
        if name in chosen:
            raise ParameterError(f"{param(name)} applies only to files", parameter=name, hint="leave it out")


def _columns(names: Mapping[str, str] | str | Sequence[str]) -> dict[str, str]:
    return dict(names) if isinstance(names, Mapping) else parse_columns(as_values(names))


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
    progress: Progress = False,
) -> StudyResult:
    """Add annotations to a study: a colleague's file, a language model's replies, another tool's export.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The study that gets the annotations.
    marks : Study, path, DataFrame or list of dicts, or several of them
        Files or studies with more annotations of the same texts.
    protocol : str or Protocol
        A shipped protocol's name or your YAML file.
    map : mapping, str or sequence of str
        OURS=THEIRS: name of one of our columns in a table, such as text=Body; may be repeated.
    annotator : str
        Who made the annotations, when the files do not tell.
    from_ : str
        Format of the files, when it cannot be guessed.
    progress : bool or callable, default False
        Show progress on standard error, or call a function with the records done.

    Returns
    -------
    StudyResult
        ``.study`` has the annotations of all. See also :meth:`Study.with_annotations`.

    Raises
    ------
    FinecombError
        If a text is not in the study, or an annotator has annotated it already.

    Examples
    --------
    >>> import finecomb as fc
    >>> study = fc.demo()
    >>> fc.merge(study.where('annotator != "truth"'), study.where("annotator=truth")).title
    '16 annotations joined from 1 file'
    """
    chosen = changed_parameters(merge, locals())
    options = Options(_load_protocol(protocol) if protocol else None, columns=_columns(map), annotator=annotator)
    is_table = isinstance(marks, Sequence) and all(isinstance(row, Mapping) for row in marks)
    is_single = is_table or isinstance(marks, str) or not isinstance(marks, Sequence)
    sources: Sequence[Any] = [marks] if is_single else marks  # type: ignore[assignment]
    others: list[tuple[str, Study]] = []
    for number, source in enumerate(sources, 1):
        if isinstance(source, str | PathLike):
            path = Path(fspath(source))
            understood = (formats.get_format(from_) if from_ else formats.format_of(path)).options
            used = {name: getattr(options, name) for name in options.non_default_names() & understood}
            watch = functools.partial(track, progress=progress, unit="records")
            others.append((path.name, formats.read(path, from_, Options(**used), watch)))
        else:
            _refuse_reading_options(chosen)
            other = as_study(source, "marks")
            others.append((Path(other.origin).name or f"annotations-{number}", other))
    joined = merge_annotations(as_study(study), others)
    title = f"{_plural(joined.annotations, 'annotation')} joined from {_plural(len(others), 'file')}"
    return StudyResult(title, Study.from_items(check_items(joined.items)))


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
    """Start a study: a folder with a protocol and texts, ready for annotators.

    Parameters
    ----------
    documents : path, Study, DataFrame or list of dicts
        The texts: JSONL, CSV, XLSX, one per line, a folder, or any other format.
    protocol : str or Protocol
        A shipped protocol's name or your YAML file.
    data : path or sequence of paths
        Records behind the texts (JSON, JSON lines, or a folder of games); may be repeated.
        A folder of games or a schedule adds the teams' last and next games.
    title : str
        Title on pages and reports.
    annotators : int, optional
        Annotators per document (default: the protocol's number).
    map : mapping, str or sequence of str
        OURS=THEIRS: name of one of our columns in a table, such as text=Body; may be repeated.
    empty : {"keep", "drop", "refuse"}, default "keep"
        Treatment of empty texts, such as failed generations.
    from_ : str
        Format of the input, when it cannot be guessed.
    skip : str or sequence of str
        Phases to omit: consent, survey, instructions, training, qualification (repeatable).
    design : path or Design, optional
        YAML file with the design: which people read what.
    mode : str
        Mode of the protocol that is in force, such as in-the-data.
    settings : path, optional
        YAML file with more of study.yaml: design, pay, recruitment.
    seed : int, default 0
        Seed for assignment and sampling.

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
    own_protocol.in_mode(mode)  # refused where there is none
    if isinstance(documents, str | PathLike):
        options, origin = Options(columns=_columns(map)), fspath(documents)
        items = list(formats.stream(Path(origin), from_, options))
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
    values |= {"seed": seed, "design": read_design(Path(design)) if isinstance(design, str | PathLike) else design}
    changes = {name: value for name, value in values.items() if value}
    study, notes = create_study(items, own_protocol, changes, sources)
    people = describe_annotators(study.settings, own_protocol)
    summary = f"{_plural(len(study.documents), 'text')}, protocol {own_protocol.id}, {people}"
    created = CreatedStudy(summary, study, notes=notes)
    created.announcement = researcher_summary_line(build_participation_terms(own_protocol, study.settings))
    return created


@public
def demo(readers: int = 5, seed: int = 0) -> Study:
    """Return the demo study: 16 texts, the errors planted in them, and simulated annotators.

    Parameters
    ----------
    readers : int, default 5
        Number of simulated annotators.
    seed : int, default 0
        Seed of the simulated annotators.

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
    return Study.from_items(demo_study(readers, seed))


@public
def tour(folder: AnyPath = "demo-study", *, readers: Annotated[int, Bounds(2)] = 5, seed: int = 0) -> DemoTour:
    """Take a tour of the demo study: a text with its marks, counts, coverage and agreement.

    Parameters
    ----------
    folder : path, default "demo-study"
        Folder of the demo study, which is written unless it exists.
    readers : int, default 5
        Number of simulated annotators.
    seed : int, default 0
        Seed of the simulated annotators.

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
    notes = [f"{path} is there already and is used as it is"] if path.exists() else []
    if not notes:
        formats.save(demo_study(readers, seed), path)
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
    """Simulate annotators with known recall, precision, jitter and confusion over known true errors.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The texts, and the true errors where `truth` names an annotator.
    annotators : int, default 5
        Number of simulated annotators.
    recall : float, default 0.6
        Probability of noticing a true error.
    precision : float, default 0.8
        Share of the marks that stem from a true error.
    jitter : float, default 0.5
        Standard deviation of each edge, in tokens.
    confusion : float, default 0.1
        Probability of another label.
    spread : float, default 0.0
        Standard deviation of recall and precision between annotators.
    truth : str
        Annotator whose marks are the true errors, such as gold.
    plant : float, default 3.0
        Without truth: true errors planted per 100 words.
    protocol : str
        One of the study's protocols, where it has several.
    seed : int, default 0
        Seed of the simulation.
    output : path, optional
        Study to write. It is written while it is made.
    force : bool, default False
        Replace an existing output.
    progress : bool or callable, default False
        Show progress on standard error, or call a function with the records done.

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
    "3 annotators on 16 documents, truth kept as annotator 'truth'"
    """
    whole = as_study(study)
    people = make_crowd(annotators, SimulatedAnnotator("reader", recall, precision, jitter, confusion), spread, seed)
    simulated = simulate_study(whole, whole.protocol(protocol), people, truth, plant, seed)
    size = f"{_plural(annotators, 'annotator')} on {_plural(len(whole.documents), 'document')}"
    title = f"{size}, truth kept as annotator {simulated.truth!r}"
    items = track(simulated.items, progress, "records")
    if output is None:
        return StudyResult(title, Study.from_items(items))
    path = Path(fspath(output))
    return StudyResult(title, path=path, notes=formats.save(items, path, force=force))


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
    """Show a text with the marks of all annotators below the words.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The study of the text.
    document : str
        ID of a document (default: the first one).
    annotator : str or sequence of str
        Only this annotator; may be repeated.
    columns : int, default 96
        Characters per line.
    where : str or sequence of str
        Condition on texts, annotators or marks, such as model=gpt2; may be repeated.
    drop : str or sequence of str
        Omit a label or group, or one severity of it (grammar-usage:1); may be repeated.

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
        reason = f"no text fits {param('where')}" if where else "has no documents yet"
        raise FinecombError(f"{whole.origin or whole.settings.title or 'the study'}: {reason}")
    id = document or whole.documents["id"][0]
    text, annotations, people = whole.document(id), whole.annotations_on(id), as_values(annotator)
    for name in people:
        if name not in set(whole.annotators["id"]):
            raise FinecombError(f"no annotator is called {name!r}{did_you_mean(name, whole.annotators['id'])}")
    chosen = [annotation for annotation in annotations if not people or annotation.annotator in people]
    notes = []
    if not document and len(whole.documents) > 1:
        others = f"name another to see it, e.g. {', '.join(whole.documents['id'].head(6)[1:])}"
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
            "options": " ".join(Options.parameter(name) for name in sorted(format.options)),
        }
        for format in formats.formats().values()
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
    """Show labels, questions, rules and work of one protocol; a file of your own is checked.

    Parameters
    ----------
    name : str or Protocol
        A shipped protocol's name or your YAML file.

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
    """Return the JSON schema of a protocol file, for editors that check while you type.

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
