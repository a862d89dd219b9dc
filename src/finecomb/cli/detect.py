"""Commands about detectors: list them, let them mark a study, fit them to texts that people have checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from finecomb import formats, protocols
from finecomb.annotators.detectors import Factory, FittedDetector, detectors_by_name, find_detector
from finecomb.annotators.detectors.base import BatchDetector
from finecomb.annotators.detectors.batch_detection import RESULT_TABLES, DocumentMarking, MarkedCorpus, mark_corpus
from finecomb.cli.filters import Drop, Where, filter_study
from finecomb.cli.options import with_options
from finecomb.cli.shared import (
    AsJson,
    Force,
    From,
    StudyPath,
    app,
    format_count,
    print_note,
    print_notes,
    print_outcome,
    print_table,
    print_table_or_json,
    read,
    resume_note,
    track_texts,
)
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.frames import parse_json_object
from finecomb.core.options import OptionValues, join_names, reject_unknown_options
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Mark
from finecomb.core.study import Study, StudyItem
from finecomb.engine.options import PartitionOptions
from finecomb.engine.partitions import unfinished_folder
from finecomb.formats import parquet
from finecomb.formats.atomic_file import reject_existing_path, write_file
from finecomb.formats.folder import is_study_folder as folder_looks_like
from finecomb.formats.parquet import ScannedStudy
from finecomb.reporting.tables import Row, as_json

DetectorName = Annotated[
    str, typer.Option("--detector", help="Which one; `finecomb detectors` lists them.", show_default=False)
]


@app.command()
def detectors(as_json_: AsJson = False) -> None:
    """Every detector and checker, what it needs and whose labels it uses.

    Example: `finecomb detectors`
    """
    rows: list[Row] = [
        {
            "name": factory.name,
            "what": factory.title,
            "needs": factory.needs,
            "protocol": factory.protocol,
            "kind": factory.kind,
        }
        for factory in detectors_by_name().values()
    ]
    print_table_or_json(rows, as_json_, "Detectors", "No detectors.")


@app.command()
@with_options([*(factory.options for factory in detectors_by_name().values()), PartitionOptions])
def detect(
    study: StudyPath,
    detector: DetectorName,
    values: OptionValues,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the study with the new marks.", show_default=False)
    ] = None,
    where: Where = None,
    drop: Drop = None,
    from_: From = "",
    force: Force = False,
    as_json_: AsJson = False,
) -> None:
    """Let a detector or checker mark every text of a study; each mark explains itself.

    Example: `finecomb detect games --detector boxscore -o checked --basis record`
    """
    factory = find_detector(detector)
    reject_unknown_options(
        values.given, {factory.name: factory.options}, {row.name: row.options for row in detectors_by_name().values()}
    )
    options: Any = values.build_options(factory.options)
    scanned = _scan_parquet(study, from_, output) if not where and not drop else None
    whole = scanned if scanned is not None else filter_study(read(study, from_), where, drop)
    protocol = _detector_protocol(whole, factory.protocol_of(options) if factory.protocol_of else factory.protocol)
    program = factory.make(protocol, options)
    documents = whole.tables["documents"] if isinstance(whole, ScannedStudy) else whole.documents.lazy()
    if documents.head(1).collect().is_empty():
        raise FinecombError(f"{study}: has no documents yet")
    if output:
        reject_existing_path(output, force)
    fitted_texts, id = getattr(program, "fitted_texts", ()), getattr(program, "annotator_id", "")
    checker = factory.annotator(program.signature, fitted_texts, id)
    marking = DocumentMarking(checker.id, factory.make, protocol, options, isinstance(program, BatchDetector))
    folder = unfinished_folder(output) if output else None
    with values.build_options(PartitionOptions).open_executor(folder) as spread:
        corpus = mark_corpus(documents, marking, program.signature, spread, track_texts)
        print_notes(resume_note(spread.reused_row_count, "text"))
        if output and isinstance(whole, ScannedStudy):
            tables = {name: corpus.table(name) for name in RESULT_TABLES}
            formats.save_annotated_study(whole, output, protocol, checker, tables, corpus.is_valid(), force)
        elif output and isinstance(whole, Study):
            formats.save_checked(
                _add_detector_work(whole, checker, protocol, corpus.annotations()), output, force=force
            )
        _report_marks(corpus, program.signature, output, as_json_)


def _scan_parquet(path: Path, from_: str, output: Path | None) -> ScannedStudy | None:
    """A study that need not be read into memory: Parquet with texts only, to be written as Parquet."""
    if output is None or not output.name.endswith(parquet.FORMAT.suffixes) or from_ not in ("", "parquet"):
        return None
    if folder_looks_like(path) or not parquet.is_parquet_folder(path):
        return None
    scanned = parquet.scan_study(path)
    if scanned.row_count("annotations"):
        return None
    twice = scanned.tables["documents"].select("id").filter(pl.col("id").is_duplicated()).head(1).collect()
    if len(twice):
        raise FinecombError(f"{path}: two documents have the id {twice['id'][0]!r}; ids are unique in a study")
    return scanned


def _detector_protocol(study: Study | ScannedStudy, name: str) -> Protocol:
    """The study's own protocol of the name the detector needs, or the shipped one."""
    candidates = [candidate for candidate in study.protocols.values() if candidate.name == name]
    return candidates[-1] if candidates else protocols.load(name)


def _add_detector_work(
    study: Study, checker: Annotator, protocol: Protocol, annotations: Iterable[Annotation]
) -> list[StudyItem]:
    """The study with the detector as one more annotator; what it marked before under this protocol is replaced."""
    names = dict.fromkeys([*study.settings.protocols, *study.protocols, protocol.id])
    settings = study.settings.model_copy(update={"protocols": tuple(names)})
    all_protocols = {**study.protocols, protocol.id: protocol}
    people = [person for person in study.iter_annotators() if person.id != checker.id]
    others = [
        annotation
        for annotation in study.iter_annotations()
        if (annotation.annotator, annotation.protocol) != (checker.id, protocol.id)
    ]
    return [settings, *all_protocols.values(), *study.iter_documents(), *people, checker, *others, *annotations]


def _report_marks(corpus: MarkedCorpus, signature: str, output: Path | None, as_json_: bool) -> None:
    notes = _problem_notes(corpus)
    rows = _mark_rows(corpus) if as_json_ or not output else []
    if as_json_:
        typer.echo(as_json(rows, signature, notes))
        return
    for note in notes:
        print_note(note)
    if output:
        marks = int(corpus.table("marks").select(pl.len()).collect().item())
        checked = corpus.table("annotations").filter(pl.col("status") == "submitted").select(pl.len()).collect().item()
        print_outcome(
            output, f"{format_count(marks, 'mark')} in {format_count(checked, 'text')}; `finecomb show` explains each"
        )
    else:
        print_table(rows, "Marks", "Nothing to mark.")
        print_note(signature)


def _mark_rows(corpus: MarkedCorpus) -> list[Row]:
    return [_mark_row(annotation, mark) for annotation in corpus.annotations() for mark in annotation.marks]


def _mark_row(annotation: Annotation, mark: Mark) -> Row:
    answers = {name: mark.answers.get(name, "") for name in ("correction", "comment")}
    about = {"document": annotation.document, "label": mark.label, "quote": " … ".join(mark.quotes)}
    return {**about, "basis": mark.basis, "confidence": mark.confidence, **answers}


def _problem_notes(corpus: MarkedCorpus) -> list[str]:
    """What could not be checked, by reason, and what is odd about records."""
    reasons: dict[str, list[str]] = {}
    odd = pl.col("excluded").is_not_null() | pl.col("meta").str.contains('"problems"', literal=True)
    rows = corpus.table("annotations").filter(odd).select("document", "excluded", "meta").collect(engine="streaming")
    for document, excluded, meta in rows.iter_rows():
        problems = parse_json_object(meta).get("problems", [])
        texts = [str(problem) for problem in problems] if isinstance(problems, list) else []
        for reason in [str(parse_json_object(excluded)["reason"])] if excluded else texts:
            reasons.setdefault(reason, []).append(document)
    return [
        f"{format_count(len(where), 'text')} ({', '.join(where[:3])}{', ...' if len(where) > 3 else ''}): {reason}"
        for reason, where in reasons.items()
    ]


TRAINING_BY_DETECTOR = {factory.name: factory.training for factory in detectors_by_name().values() if factory.training}


@app.command()
@with_options([training.options for training in TRAINING_BY_DETECTOR.values()])
def train(
    study: StudyPath,
    detector: DetectorName,
    values: OptionValues,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the weights, a file or a folder, for `detect --weights`."),
    ] = None,
    gold: Annotated[
        str, typer.Option("--gold", help="Who is gold, where no annotator is of that kind.", show_default=False)
    ] = "",
    real: Annotated[
        Path | None,
        typer.Option("--real", help="Texts that count as coherent: a study, or a file of texts.", show_default=False),
    ] = None,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Fit a detector to a study that people have checked, and say how well it does on texts it has not seen.

    Example: `finecomb train games --detector boxscore -o weights.json`
    """
    factory = find_detector(detector)
    if factory.training is None:
        raise FinecombError(
            f"--detector {factory.name}: has nothing to fit; {join_names(TRAINING_BY_DETECTOR)} can be fitted"
        )
    choices = {name: training.options for name, training in TRAINING_BY_DETECTOR.items()}
    reject_unknown_options(values.given, {factory.name: factory.training.options}, choices)
    options: Any = values.build_options(factory.training.options)
    if real is not None:
        options = _add_real_texts(factory, options, real, from_)
    whole = read(study, from_)
    fitted = factory.training.fit(whole, _gold_annotations(whole, gold), gold, options)
    if output:
        _write_weights(fitted, output)
    if as_json_:
        typer.echo(as_json(fitted.rows, fitted.signature, list(fitted.notes)))
        return
    for note in fitted.notes:
        print_note(note)
    if fitted.rows:
        print_table(fitted.rows, fitted.title)
    print_note(fitted.signature)
    if output:
        print_outcome(output, f"weights fitted on {format_count(fitted.texts, 'text')}")


def _add_real_texts(factory: Factory, options: Any, real: Path, from_: str) -> Any:
    """Options with the texts of `--real` in them."""
    if factory.training is None or not factory.training.real:
        owners = join_names(name for name, training in TRAINING_BY_DETECTOR.items() if training.real)
        raise FinecombError(f"--real does not apply to {factory.name}; it applies to {owners}")
    texts = tuple(document.text for document in read(real, from_).iter_documents())
    return replace(options, texts=texts)


def _write_weights(fitted: FittedDetector, output: Path) -> None:
    """One file, or a folder of files."""
    if not fitted.files:
        write_file(output, fitted.weights)
        return
    if output.exists() and not output.is_dir():
        raise FinecombError(f"{output}: is a file, and this detector needs a folder; name another one")
    output.mkdir(parents=True, exist_ok=True)
    for name, content in fitted.files.items():
        write_file(output / name, content)


def _gold_annotations(study: Study, name: str) -> list[Annotation]:
    kinds = {annotator.id: annotator.kind for annotator in study.iter_annotators()}
    if name and name not in kinds:
        raise FinecombError(f"no annotator is called {name!r}{did_you_mean(name, kinds)}")
    wanted = {name} if name else {id for id, kind in kinds.items() if kind == "gold"}
    if not wanted:
        raise FinecombError("the study has no annotator of kind gold; say who is with --gold")
    return [annotation for annotation in study.submitted_work().iter_annotations() if annotation.annotator in wanted]
