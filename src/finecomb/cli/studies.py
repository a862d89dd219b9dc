"""Commands about studies: make, convert, check, show, count, simulate."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from finecomb import formats, protocols
from finecomb.annotators.detectors.boxscore.game_record import game_problem
from finecomb.annotators.simulated import SimulatedAnnotator, make_crowd, plant_errors
from finecomb.annotators.simulated import simulate_annotations as simulated
from finecomb.cli.filters import Drop, Where, filter_study
from finecomb.cli.planned_tests import planned_problems
from finecomb.cli.shared import (
    AsJson,
    Columns,
    Force,
    From,
    ProtocolName,
    StudyPath,
    app,
    format_count,
    out,
    parse_mapping,
    parse_phases,
    print_note,
    print_outcome,
    print_table,
    print_table_or_json,
    read,
    track_records,
)
from finecomb.collection.announcement import build_announcement, summary_line
from finecomb.core.corrections import corrected_text
from finecomb.core.design import design_cells
from finecomb.core.errors import FinecombError, Problem, StudyError, did_you_mean
from finecomb.core.protocol import Protocol
from finecomb.core.protocol_text import parse_yaml
from finecomb.core.records import ONBOARDING_PHASES, Annotation, Annotator, Design, Document, Mark, Note, Settings
from finecomb.core.stored_marks import StoredMarks
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check as check_study
from finecomb.core.study_checks import check_items
from finecomb.formats import Options
from finecomb.formats.atomic_file import write_file
from finecomb.formats.mark_merge import merge_annotations
from finecomb.formats.text_evidence import attach_evidence, read_evidence
from finecomb.reporting import demo_tour as tour
from finecomb.reporting.marked_text import document_page
from finecomb.reporting.problem_tables import problem_lines, problem_row
from finecomb.reporting.tables import Row, as_json, frame_rows
from finecomb.reporting.terminal_text import render_document
from finecomb.statistics.gold.gold_and_judges import find_gold_annotator
from finecomb.statistics.measures.numeric_answers import unusable_severities
from finecomb.statistics.measures.study_counts import group_counts, label_counts, meta_names, study_totals
from finecomb.statistics.measures.text_sizes import non_work_counts, text_sizes, work_summary
from finecomb.statistics.selection.subset import condition_columns


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(help="Where to put the demo study.")] = Path("demo-study"),
    readers: Annotated[int, typer.Option(min=2, help="How many simulated annotators.")] = 5,
    seed: Annotated[int, typer.Option(help="Another seed, other annotators.")] = 0,
    model: Annotated[
        str, typer.Option(help="A language model that reads one text too, e.g. local:smollm2.", show_default=False)
    ] = "",
) -> None:
    """The whole tour on our own small study: texts with marks, counts, coverage and agreement.

    Example: `finecomb demo`
    """
    if folder.exists():
        print_note(f"{folder} is there already and is used as it is")
    else:
        formats.save(tour.demo_items(readers, seed), folder)
    if model:
        _annotate_tour_text(folder, model)
    tour.print_tour(formats.read(folder), folder, out)


def _annotate_tour_text(folder: Path, model: str) -> None:
    """Let a language model read the text that the tour shows; say how to get one where there is none."""
    from finecomb.annotators.llm.local_models import install_hint
    from finecomb.cli.annotate import annotate_one_text

    if hint := install_hint(model):
        print_note(f"a language model would read a text here: {hint}")
        return
    print_note(f"{model} reads a text; on a slow machine that takes a minute")
    annotate_one_text(folder, model, tour.EXAMPLE_DOCUMENT_ID)


@app.command("formats")
def list_formats(as_json_: AsJson = False) -> None:
    """Every format that can be read or written.

    Examples: finecomb formats · finecomb formats --json
    """
    rows: list[Row] = [
        {"name": format.name, "what": format.title, "read": format.read is not None, "write": format.write is not None}
        | {
            "endings": " ".join(format.suffixes),
            "options": " ".join(Options.flag(name) for name in sorted(format.options)),
        }
        for format in formats.formats().values()
    ]
    print_table_or_json(rows, as_json_, "Formats", "No formats.")


@app.command()
def new(
    study: Annotated[Path, typer.Argument(help="The folder to make.", show_default=False)],
    protocol: ProtocolName,
    documents: Annotated[
        Path,
        typer.Option(
            "--documents",
            "-d",
            help="The texts: JSONL, CSV, XLSX, one per line, a folder, or any other format.",
            show_default=False,
        ),
    ],
    data: Annotated[
        list[Path] | None,
        typer.Option(
            help="The records behind the texts: JSON or JSON lines; a folder of games or a schedule adds the teams' "
            "last and next games. May be repeated.",
            show_default=False,
        ),
    ] = None,
    title: Annotated[str, typer.Option(help="Shown on pages and reports.")] = "",
    annotators: Annotated[
        int | None,
        typer.Option(min=1, help="Annotators per document; the protocol's number when absent.", show_default=False),
    ] = None,
    columns: Columns = None,
    empty: Annotated[
        Literal["keep", "drop", "refuse"], typer.Option(help="What to do with empty texts, e.g. failed generations.")
    ] = "keep",
    from_: From = "",
    skip: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Phases to leave out, with commas: {', '.join(ONBOARDING_PHASES)}; may be repeated.",
            show_default=False,
        ),
    ] = None,
    design: Annotated[
        Path | None,
        typer.Option(help="A YAML file with the design: which people read what.", show_default=False),
    ] = None,
    mode: Annotated[
        str, typer.Option(help="Which of the protocol's modes is in force, e.g. in-the-data.", show_default=False)
    ] = "",
    settings_file: Annotated[
        Path | None,
        typer.Option("--settings", help="YAML with more of study.yaml: design, pay, recruitment.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(help="For assignment and sampling.")] = 0,
    force: Force = False,
) -> None:
    """Start a study: a folder with a protocol and texts, ready for annotators.

    Example: `finecomb new harbour -p scarecrow -d texts.csv --map text=Generation --map id=Key`
    """
    chosen = protocols.load(protocol)
    chosen.in_mode(mode)  # refused where there is none
    source = list(formats.stream(documents, from_, Options(columns=parse_mapping(columns))))
    read_texts = [item for item in source if isinstance(item, Document)]
    texts = _handle_empty_texts(_attach_data(read_texts, data or (), chosen), empty, documents)
    if not texts:
        raise FinecombError(f"{documents}: has no texts; a study needs at least one")
    given: dict[str, object] = {"title": title, "annotators": annotators, "skip": parse_phases(skip or ())}
    given |= {"mode": mode, "seed": seed, "design": _read_design(design) if design else None}
    settings = _new_settings(settings_file, chosen, {name: value for name, value in given.items() if value})
    if problems := planned_problems(settings.planned):
        raise FinecombError("\n".join(problems))
    items: list[StudyItem] = [settings, chosen, *texts]
    for warning in unusable_severities(chosen):
        print_note(warning)
    if _lacks_currency(settings):
        print_note(
            f"{settings_file}: nothing says in which currency people are paid; {settings.effective_currency} is taken"
        )
    formats.save(check_items(items), study, "folder", force=force)
    left = sum(isinstance(item, Annotation) for item in source)
    if left:
        print_note(f"{left:,} annotations in {documents} were left behind; use `finecomb convert` to keep them")
    print_outcome(
        study, f"{format_count(len(texts), 'text')}, protocol {chosen.id}, {_describe_annotators(settings, chosen)}"
    )
    out.print(f"annotators: {summary_line(build_announcement(chosen, settings))}", soft_wrap=True)


def _lacks_currency(settings: Settings) -> bool:
    """Whether people are paid in a currency that nobody has named."""
    pays = bool(settings.price or settings.base_pay)
    is_named = "currency" in settings.model_fields_set or bool(settings.design and settings.design.currency)
    return pays and not is_named


def _describe_annotators(settings: Settings, protocol: Protocol) -> str:
    """Who is to read: the people of a design's cells, else so many for each text."""
    if settings.design is None:
        return f"{format_count(settings.annotators or protocol.work.annotators, 'annotator')} per text"
    cells = design_cells(settings.design, protocol)
    people = sum(cell.people for cell in cells)
    return f"{people:,} accepted {'person' if people == 1 else 'people'} in {format_count(len(cells), 'cell')}"


def _new_settings(file: Path | None, protocol: Protocol, given: dict[str, object]) -> Settings:
    """The settings of a new study: those of a file, and before them those given as options."""
    base = Settings()
    if file is not None:
        try:
            base = parse_yaml(Settings, file.read_text(encoding="utf-8-sig"), str(file))
        except OSError as error:
            raise FinecombError(f"{file}: cannot be read: {error.strerror}") from None
    readers = {"annotators": base.annotators or protocol.work.annotators}
    return base.model_copy(update={**readers, **given, "protocols": (protocol.id,)})


def _read_design(path: Path) -> Design:
    if not path.is_file():
        raise FinecombError(f"--design {path}: no such file")
    return parse_yaml(Design, path.read_text(encoding="utf-8"), str(path))


def _attach_data(texts: Sequence[Document], paths: Sequence[Path], protocol: Protocol) -> list[Document]:
    """Texts with the records behind them; a record that is broken is refused before anybody is asked to read it."""
    if paths and not protocol.work.data:
        raise FinecombError(
            f"--data: {protocol.id} shows no data beside the text; leave it out, or set work.data in it"
        )
    match = attach_evidence(texts, read_evidence(paths))
    for note in match.notes if paths else ():
        print_note(note)
    for text in match.documents if protocol.work.data else ():
        if problem := game_problem(text.data):
            raise FinecombError(f"the record of {text.id} is not a box score: {problem}")
    return list(match.documents)


def _handle_empty_texts(texts: list[Document], empty: str, path: Path) -> list[Document]:
    """The texts to start with; empty ones are said, and kept, dropped or refused."""
    blank = [text.id for text in texts if _is_empty(text)]
    if not blank:
        return texts
    listed = ", ".join(blank[:5]) + (", ..." if len(blank) > 5 else "")
    if empty == "refuse":
        raise FinecombError(
            f"{path}: {format_count(len(blank), 'text')} without words ({listed}); --empty drop leaves them out"
        )
    way = "they are left out" if empty == "drop" else "they are kept; --empty drop leaves them out"
    print_note(f"{format_count(len(blank), 'text')} without words ({listed}): {way}")
    return [text for text in texts if not _is_empty(text)] if empty == "drop" else texts


def _is_empty(document: Document) -> bool:
    """Whether there is nothing to judge: a pair has its two texts as contexts and none of its own."""
    return not document.text.strip() and not {"a", "b"} <= document.context.keys()


@app.command()
def merge(
    study: StudyPath,
    marks: Annotated[
        list[Path], typer.Argument(help="Files or studies with more annotations of the same texts.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The study to write.", show_default=False)],
    protocol: ProtocolName = "",
    columns: Columns = None,
    annotator: Annotated[
        str, typer.Option(help="Who made the annotations, when the files do not say.", show_default=False)
    ] = "",
    from_: Annotated[
        str, typer.Option("--from", help="Format of the files, when it cannot be guessed.", show_default=False)
    ] = "",
    force: Force = False,
) -> None:
    """A study with the marks of others: a colleague's file, a language model's replies, another tool's export.

    Example: `finecomb merge harbour colleague.csv replies.jsonl -o harbour-all --annotator ben`
    """
    chosen = protocols.load(protocol) if protocol else None
    options = Options(protocol=chosen, columns=parse_mapping(columns), annotator=annotator)
    others = [
        (path.name, formats.read(path, from_, _read_options(path, from_, options), track_records)) for path in marks
    ]
    joined = merge_annotations(read(study), others)
    for note in formats.save(check_items(joined.items), output, force=force):
        print_note(note)
    print_outcome(
        output, f"{format_count(joined.annotations, 'annotation')} joined from {format_count(len(marks), 'file')}"
    )


def _read_options(path: Path, from_: str, options: Options) -> Options:
    """The options that a file's format understands; of several files not every one needs all."""
    understood = (formats.get_format(from_) if from_ else formats.format_of(path)).options
    return Options(**{name: getattr(options, name) for name in options.non_default_names() & understood})


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(help="What to read.", show_default=False)],
    target: Annotated[
        Path, typer.Argument(help="What to write; a name without an ending makes a study folder.", show_default=False)
    ],
    from_: From = "",
    to: Annotated[
        str, typer.Option("--to", help="Format of the output, when its ending does not say.", show_default=False)
    ] = "",
    protocol: ProtocolName = "",
    texts: Annotated[
        Path | None, typer.Option(help="Where the texts are, when they are kept apart.", show_default=False)
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Where the records behind the texts are.", show_default=False)
    ] = None,
    columns: Columns = None,
    repeats: Annotated[
        Literal["kth", "first"],
        typer.Option(
            help="Quotes without offsets: the k-th repetition goes to the k-th occurrence, or all to the first."
        ),
    ] = "kth",
    annotator: Annotated[
        str, typer.Option(help="Who made the annotations, when the file does not say.", show_default=False)
    ] = "",
    corrected: Annotated[
        bool, typer.Option("--corrected", help="Write only the texts, with the corrections of marks applied.")
    ] = False,
    corrector: Annotated[
        str,
        typer.Option(help="With --corrected: whose; gold, or the only annotator, when absent.", show_default=False),
    ] = "",
    where: Where = None,
    drop: Drop = None,
    force: Force = False,
) -> None:
    """From any format to any other, checked on the way; what the target cannot hold is said.

    Example: `finecomb convert SNaC_data.json snac-study` · `finecomb convert snac-study marks.csv`
    """
    options = Options(
        protocol=protocols.load(protocol) if protocol else None,
        texts=texts,
        data=data,
        columns=parse_mapping(columns),
        repeats=repeats,
        annotator=annotator,
    )
    if corrector and not corrected:
        raise FinecombError("--corrector applies with --corrected only")
    if where or drop or corrected:
        whole = formats.read(source, from_, options, watch=track_records)
        part = filter_study(whole, where, drop) if where or drop else whole
        items = _apply_corrections(part, corrector) if corrected else part.items()
        notes = formats.save(check_items(items), target, to, options, force)
    else:
        notes = formats.convert(source, target, from_, to, options, force, track_records)
    for note in notes:
        print_note(note)
    print_outcome(target, "written")


def _apply_corrections(study: Study, corrector: str) -> list[StudyItem]:
    """The texts of a study after one annotator's corrections; a note says how many were applied."""
    who = corrector or find_gold_annotator(study)
    if who not in set(study.annotators["id"]):
        raise FinecombError(f"no annotator is called {who!r}{did_you_mean(who, study.annotators['id'])}")
    marks: dict[str, list[Mark]] = {}
    for annotation in study.submitted_work().iter_annotations():
        if annotation.annotator == who:
            marks.setdefault(annotation.document, []).extend(annotation.marks)
    documents = list(study.iter_documents())
    texts = [corrected_text(document.text, marks.get(document.id, ())) for document in documents]
    applied, left_out = sum(text.applied for text in texts), sum(len(text.left_out) for text in texts)
    print_note(
        f"{format_count(applied, 'correction')} of {who} applied, {left_out:,} left out because words overlap "
        "or are apart"
    )
    return [
        study.settings,
        *study.protocols.values(),
        *(
            document.model_copy(update={"text": text.text, "segments": ()})
            for document, text in zip(documents, texts, strict=True)
        ),
    ]


@app.command()
def select(
    study: StudyPath,
    output: Annotated[Path, typer.Option("--output", "-o", help="The study to write.", show_default=False)],
    where: Where = None,
    drop: Drop = None,
    from_: From = "",
    force: Force = False,
) -> None:
    """A part of a study as a study of its own: the texts, annotators, annotations and marks that fit.

    Example: `finecomb select demo-study -o humans --where 'model == "human"' --drop grammar-usage:1`
    """
    if not where and not drop:
        raise FinecombError("select needs --where or --drop: what to keep, or which marks to leave out")
    whole = read(study, from_)
    stored = whole.raw_marks
    if output.name.endswith(".parquet") and isinstance(stored, StoredMarks):
        numbered = replace(whole, marks=stored.read_numbered(condition_columns(where or (), drop or ())))
        part = filter_study(numbered, where, drop)
        formats.save_study_part(part, output, stored.iter_batches(part.marks["id"]), force)
    else:
        part = filter_study(whole, where, drop)
        for note in formats.save(part.items(), output, force=force):
            print_note(note)
    sizes = (("text", part.documents), ("annotation", part.annotations), ("mark", part.marks))
    print_outcome(output, ", ".join(format_count(len(frame), noun) for noun, frame in sizes))


@app.command()
def check(
    study: StudyPath,
    from_: From = "",
    every: Annotated[bool, typer.Option("--all", help="List all problems, also when many are alike.")] = False,
    as_json_: AsJson = False,
) -> None:
    """Every problem with file, line and a way out; exit code 1 when there are errors.

    Example: `finecomb check my-study`
    """
    problems = _find_problems(study, from_)
    errors = [problem for problem in problems if problem.level == "error"]
    if as_json_:
        typer.echo(as_json([problem_row(problem) for problem in problems]))
    else:
        for line, count in problem_lines(problems, max_per_type=len(problems) if every else 3):
            more = f"  ... and {count:,} more like this; --all lists them" if count else ""
            out.print(Text(line + more), soft_wrap=True)
        print_outcome(
            study, f"{format_count(len(errors), 'error')}, {format_count(len(problems) - len(errors), 'warning')}"
        )
    if errors:
        raise typer.Exit(1)


def _find_problems(path: Path, from_: str) -> list[Problem]:
    """All problems of a study, also when it cannot be read."""
    try:
        items = list(track_records(formats.stream(path, from_)))
    except StudyError as error:
        return list(error.problems)
    notes = [item for item in items if isinstance(item, Note)]
    for note in notes:
        if not note.is_error:
            print_note(note.text)
    unreadable = [Problem(note.text) for note in notes if note.is_error]
    blank = [item.id for item in items if isinstance(item, Document) and _is_empty(item)]
    if blank:
        listed = ", ".join(blank[:5]) + (", ..." if len(blank) > 5 else "")
        unreadable.append(Problem(f"{format_count(len(blank), 'text')} without words ({listed})", level="warning"))
    unusable = [
        Problem(message, kind="settings")
        for item in items
        if isinstance(item, Settings)
        for message in planned_problems(item.planned)
    ]
    return [*unreadable, *formats.locate_problems([*check_study(Study.from_items(items)), *unusable], path)]


@app.command()
def show(
    study: StudyPath,
    document: Annotated[
        str, typer.Argument(help="Id of a document; the first one when absent.", show_default=False)
    ] = "",
    annotator: Annotated[
        list[str] | None,
        typer.Option("--annotator", "-a", help="Only this annotator; may be repeated.", show_default=False),
    ] = None,
    from_: From = "",
    width: Annotated[int, typer.Option(min=20, help="Characters per line.")] = 96,
    html: Annotated[Path | None, typer.Option(help="Write a page instead.", show_default=False)] = None,
    where: Where = None,
    drop: Drop = None,
) -> None:
    """A text in the terminal with everybody's marks below the words.

    Example: `finecomb show demo-study harbour-a -a truth`
    """
    whole = filter_study(read(study, from_), where, drop)
    if whole.documents.is_empty():
        none = "no text fits --where" if where else "has no documents yet"
        raise FinecombError(f"{study}: {none}")
    id = document or whole.documents["id"][0]
    text = whole.document(id)
    annotations = whole.annotations_on(id)
    if annotator:
        for name in annotator:
            if name not in set(whole.annotators["id"]):
                raise FinecombError(f"no annotator is called {name!r}{did_you_mean(name, whole.annotators['id'])}")
        annotations = [annotation for annotation in annotations if annotation.annotator in annotator]
    if html:
        write_file(html, document_page(text, annotations, whole.protocols))
        print_outcome(html, "written")
        return
    out.print(render_document(text, annotations, whole.protocols, min(width, out.width)))
    if not document and len(whole.documents) > 1:
        others = ", ".join(whole.documents["id"].head(6)[1:])
        print_note(f"this is the first of {len(whole.documents):,} documents; name another to see it, e.g. {others}")


@app.command()
def stats(
    study: StudyPath,
    by: Annotated[
        str,
        typer.Option(
            help="Document meta or annotator fields, with commas; `model` where documents have it.", show_default=False
        ),
    ] = "",
    where: Where = None,
    drop: Drop = None,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """What a study holds: documents, annotations, annotators, and marks by label, annotator and model.

    Example: `finecomb stats demo-study --by model,topic`
    """
    whole = filter_study(read(study, from_), where, drop)
    work = whole.submitted_work()
    columns = [name for name in by.split(",") if name] or (["model"] if "model" in meta_names(whole) else [])
    columns = [] if columns == ["none"] else columns
    tables = _stats_tables(work, columns)
    total = study_totals(work) | {name: count for name, count in non_work_counts(whole).items() if count}
    if as_json_:
        rows: list[Row] = [{"table": "totals", **total}]
        typer.echo(as_json([*rows, *({"table": name, **row} for name, _, part in tables for row in part)]))
        return
    print_table([{"": name, "count": count} for name, count in total.items()], str(whole.settings.title or study))
    for _, title, part in tables:
        if part:
            out.print()
            print_table(part, title, digits=2)


def _stats_tables(work: Study, by: Sequence[str]) -> list[tuple[str, str, list[Row]]]:
    """The tables of `finecomb stats` after the totals: name for programs, title for people, rows."""
    words = f"By {', '.join(by)}"
    people = [] if "annotator" in by else frame_rows(group_counts(work, ["annotator", "kind"]))
    return [
        ("labels", "Marks by label", frame_rows(label_counts(work, by[:1]))),
        ("groups", words, frame_rows(group_counts(work, by)) if by else []),
        ("texts", "Texts", frame_rows(text_sizes(work, by))),
        ("work", "Work", frame_rows(work_summary(work, by)) if len(work.annotations) else []),
        ("annotators", "By annotator", people),
    ]


@app.command()
def simulate(
    study: StudyPath,
    output: Annotated[Path, typer.Option("--output", "-o", help="The study to write.", show_default=False)],
    annotators: Annotated[int, typer.Option(min=1, help="How many.")] = 5,
    recall: Annotated[float, typer.Option(min=0, max=1, help="Chance of noticing a true error.")] = 0.6,
    precision: Annotated[
        float, typer.Option(min=0.01, max=1, help="Share of the marks that stem from a true error.")
    ] = 0.8,
    jitter: Annotated[float, typer.Option(min=0, help="Standard deviation of each edge, in tokens.")] = 0.5,
    confusion: Annotated[float, typer.Option(min=0, max=1, help="Chance of another label.")] = 0.1,
    spread: Annotated[
        float, typer.Option(min=0, help="How much recall and precision differ between annotators (sd).")
    ] = 0.0,
    truth: Annotated[
        str, typer.Option(help="Annotator whose marks are the true errors, e.g. gold.", show_default=False)
    ] = "",
    plant_: Annotated[
        float, typer.Option("--plant", min=0, help="Without --truth: true errors invented per 100 words.")
    ] = 3.0,
    protocol: Annotated[
        str, typer.Option("--protocol", "-p", help="Which of the study's protocols.", show_default=False)
    ] = "",
    seed: Annotated[int, typer.Option(help="Same seed, same study.")] = 0,
    force: Force = False,
) -> None:
    """Annotators with known recall, precision, jitter and confusion over known true errors.

    Example: `finecomb simulate demo-study -o pretended --truth truth --annotators 10 --recall 0.5`
    """
    whole = read(study)
    chosen = whole.protocol(protocol)
    like = SimulatedAnnotator("reader", recall, precision, jitter, confusion)
    people = make_crowd(annotators, like, spread, seed)
    documents = list(whole.iter_documents())
    true = (
        _truth_by_document(whole, truth)
        if truth
        else {item.document: item for item in plant_errors(documents, chosen, plant_, seed)}
    )
    who = next((item for item in whole.iter_annotators() if item.id == truth), Annotator(id="truth", kind="gold"))
    annotations = simulated(documents, true, people, chosen, seed)
    settings = whole.settings.model_copy(update={"protocols": (chosen.id,), "annotators": annotators, "seed": seed})
    head: list[StudyItem] = [settings, chosen, *documents, who, *(person.to_annotator() for person in people)]
    formats.save(track_records(itertools.chain(head, true.values(), annotations)), output, force=force)
    size = f"{format_count(annotators, 'annotator')} on {format_count(len(documents), 'document')}"
    print_outcome(output, f"{size}, truth kept as annotator {who.id!r}")


def _truth_by_document(study: Study, annotator: str) -> dict[str, Annotation]:
    truth_by_document = {
        annotation.document: annotation for annotation in study.iter_annotations() if annotation.annotator == annotator
    }
    if not truth_by_document:
        authors = study.annotations["annotator"].unique(maintain_order=True)
        raise FinecombError(f"no annotations by {annotator!r}{did_you_mean(annotator, authors)}")
    return truth_by_document
