"""Commands about detectors: list them, let them mark a study, fit them to texts that people have checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from finecomb import formats, protocols
from finecomb.cli.filters import Drop, Where, part_of
from finecomb.cli.options import with_options
from finecomb.cli.shared import (
    AsJson,
    Force,
    From,
    StudyPath,
    app,
    counted,
    done,
    emit,
    print_table,
    progress,
    read,
    say,
)
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.options import OptionValues, listed, refuse_others
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.study import Item, Study
from finecomb.detect import DETECTORS, Detector, Factory, FittedDetector, named
from finecomb.detect import detect as detected
from finecomb.detect.journal import MarkingJournal, journal_file
from finecomb.report.tables import Row, as_json

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
        for factory in DETECTORS.values()
    ]
    emit(rows, as_json_, "Detectors", "No detectors.")


@app.command()
@with_options([factory.options for factory in DETECTORS.values()])
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
    factory = named(detector)
    refuse_others(values.given, {factory.name: factory.options}, {row.name: row.options for row in DETECTORS.values()})
    options: Any = values.of(factory.options)
    whole = part_of(read(study, from_), where, drop)
    protocol = _protocol(whole, factory.protocol_of(options) if factory.protocol_of else factory.protocol)
    program = factory.make(protocol, options)
    if whole.documents.is_empty():
        raise FinecombError(f"{study}: has no documents yet")
    documents = (item for item in progress(whole.iter_documents()) if isinstance(item, Document))
    annotations = _marked(documents, program, output)
    if output:
        fitted_texts, id = getattr(program, "fitted_texts", ()), getattr(program, "annotator_id", "")
        checker = factory.annotator(program.signature, fitted_texts, id)
        formats.save(_with(whole, checker, protocol, annotations), output, force=force)
        journal_file(output).unlink(missing_ok=True)
    _report(annotations, program.signature, output, as_json_)


def _marked(documents: Iterable[Document], program: Detector, output: Path | None) -> list[Annotation]:
    """All annotations; with an output they are written down one by one, and a run that was cut off goes on."""
    if output is None:
        return list(detected(documents, program))
    journal = MarkingJournal(journal_file(output), program.signature)
    if journal.entries:
        say(f"{journal.file}: {counted(len(journal.entries), 'text')} marked by an earlier run that was cut off")
    return list(journal.annotations(documents, program))


def _protocol(study: Study, name: str) -> Protocol:
    """The study's own protocol of the name the detector needs, or the shipped one."""
    candidates = [candidate for candidate in study.protocols.values() if candidate.name == name]
    return candidates[-1] if candidates else protocols.load(name)


def _with(study: Study, checker: Annotator, protocol: Protocol, annotations: Sequence[Annotation]) -> list[Item]:
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


def _report(annotations: Sequence[Annotation], signature: str, output: Path | None, as_json_: bool) -> None:
    rows = [_row(annotation, mark) for annotation in annotations for mark in annotation.marks]
    notes = list(_notes(annotations))
    if as_json_:
        typer.echo(as_json(rows, signature, notes))
        return
    for note in notes:
        say(note)
    if output:
        checked = sum(annotation.status == "submitted" for annotation in annotations)
        done(output, f"{counted(len(rows), 'mark')} in {counted(checked, 'text')}; `finecomb show` explains each")
    else:
        print_table(rows, "Marks", "Nothing to mark.")
        say(signature)


def _row(annotation: Annotation, mark: Mark) -> Row:
    answers = {name: mark.answers.get(name, "") for name in ("correction", "comment")}
    about = {"document": annotation.document, "label": mark.label, "quote": " … ".join(mark.quotes)}
    return {**about, "basis": mark.basis, "confidence": mark.confidence, **answers}


def _notes(annotations: Sequence[Annotation]) -> list[str]:
    """What could not be checked, by reason, and what is odd about records."""
    reasons: dict[str, list[str]] = {}
    for annotation in annotations:
        problems = annotation.meta.get("problems", [])
        texts = [str(problem) for problem in problems] if isinstance(problems, list) else []
        for reason in [annotation.excluded.reason] if annotation.excluded else texts:
            reasons.setdefault(reason, []).append(annotation.document)
    return [
        f"{counted(len(where), 'text')} ({', '.join(where[:3])}{', ...' if len(where) > 3 else ''}): {reason}"
        for reason, where in reasons.items()
    ]


TRAININGS = {factory.name: factory.training for factory in DETECTORS.values() if factory.training}


@app.command()
@with_options([training.options for training in TRAININGS.values()])
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
    factory = named(detector)
    if factory.training is None:
        raise FinecombError(f"--detector {factory.name}: has nothing to fit; {listed(TRAININGS)} can be fitted")
    choices = {name: training.options for name, training in TRAININGS.items()}
    refuse_others(values.given, {factory.name: factory.training.options}, choices)
    options: Any = values.of(factory.training.options)
    if real is not None:
        options = _with_real(factory, options, real, from_)
    whole = read(study, from_)
    fitted = factory.training.fit(whole, _gold(whole, gold), gold, options)
    if output:
        _write_weights(fitted, output)
    if as_json_:
        typer.echo(as_json(fitted.rows, fitted.signature, list(fitted.notes)))
        return
    for note in fitted.notes:
        say(note)
    if fitted.rows:
        print_table(fitted.rows, fitted.title)
    say(fitted.signature)
    if output:
        done(output, f"weights fitted on {counted(fitted.texts, 'text')}")


def _with_real(factory: Factory, options: Any, real: Path, from_: str) -> Any:
    """Options with the texts of `--real` in them."""
    if factory.training is None or not factory.training.real:
        owners = listed(name for name, training in TRAININGS.items() if training.real)
        raise FinecombError(f"--real does not apply to {factory.name}; it applies to {owners}")
    texts = tuple(document.text for document in read(real, from_).iter_documents())
    return replace(options, texts=texts)


def _write_weights(fitted: FittedDetector, output: Path) -> None:
    """One file, or a folder of files."""
    if not fitted.files:
        output.write_text(fitted.weights, encoding="utf-8")
        return
    if output.exists() and not output.is_dir():
        raise FinecombError(f"{output}: is a file, and this detector needs a folder; name another one")
    output.mkdir(parents=True, exist_ok=True)
    for name, content in fitted.files.items():
        (output / name).write_bytes(content)


def _gold(study: Study, name: str) -> list[Annotation]:
    kinds = {annotator.id: annotator.kind for annotator in study.iter_annotators()}
    if name and name not in kinds:
        raise FinecombError(f"no annotator is called {name!r}{did_you_mean(name, kinds)}")
    wanted = {name} if name else {id for id, kind in kinds.items() if kind == "gold"}
    if not wanted:
        raise FinecombError("the study has no annotator of kind gold; say who is with --gold")
    return [annotation for annotation in study.work().iter_annotations() if annotation.annotator in wanted]
