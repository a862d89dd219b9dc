"""The command that makes exercises and tests from adjudicated texts of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from finecomb.cli.shared import Force, From, StudyPath, app, format_count, print_notes, print_outcome, read
from finecomb.collection.exercises import exercise_from_gold, solvability_warnings, with_test, with_training
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.practice import Exercise
from finecomb.core.protocol_text import format_yaml
from finecomb.core.study import Study
from finecomb.formats.atomic_file import reject_existing_path, write_file


@app.command()
def exercise(
    study: StudyPath,
    documents: Annotated[
        list[str], typer.Argument(metavar="DOCUMENT", help="Ids of adjudicated texts.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The protocol to write.", show_default=False)],
    to: Annotated[
        Literal["training", "test"],
        typer.Option(help="More exercises with feedback, or the test that decides who may work."),
    ] = "training",
    gold: Annotated[
        str, typer.Option(help="Whose marks are the solution; gold, or the only annotator, when absent.")
    ] = "",
    share: Annotated[
        float | None,
        typer.Option("--pass", min=0.01, max=1, help="For a test: share of the errors to be found; 0.7 when absent."),
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="For a test: share of marks that must be right; 0.25 when absent."),
    ] = None,
    protocol: Annotated[str, typer.Option("--protocol", "-p", help="Which of the study's protocols.")] = "",
    from_: From = "",
    force: Force = False,
) -> None:
    """Exercises or a test from texts of your own whose errors are known: writes the protocol with them.

    Example: `finecomb exercise my-study tea-1 tea-2 --to test -o my-protocol.yaml`
    """
    if to == "training" and (share is not None or precision is not None):
        raise FinecombError("--pass and --precision are for a test; add --to test or leave them out")
    reject_existing_path(output, force)
    whole = read(study, from_)
    chosen = whole.protocol(protocol or _default_protocol(whole))
    exercises = [_build_exercise(whole, id, gold, chosen.id) for id in documents]
    if to == "training":
        changed = with_training(chosen, exercises)
    else:
        changed = with_test(
            chosen, exercises, 0.7 if share is None else share, 0.25 if precision is None else precision
        )
    print_notes(solvability_warnings(changed, exercises))
    write_file(output, format_yaml(changed))
    errors = format_count(sum(len(one.solutions) for one in exercises), "error")
    print_outcome(output, f"protocol {changed.id} with {format_count(len(exercises), 'exercise')}, {errors} to find")


def _default_protocol(study: Study) -> str:
    return study.settings.protocols[0] if study.settings.protocols else ""


def _build_exercise(study: Study, id: str, gold: str, protocol: str) -> Exercise:
    from finecomb.statistics.gold.gold_and_judges import find_gold_annotator

    document = next((one for one in study.iter_documents() if one.id == id), None)
    if document is None:
        raise FinecombError(f"no text is called {id!r}{did_you_mean(id, study.documents['id'].head(5000))}")
    annotator = gold or find_gold_annotator(study)
    chosen = [
        one
        for one in study.iter_annotations()
        if (one.document, one.annotator, one.protocol) == (id, annotator, protocol) and one.status == "submitted"
    ]
    if not chosen:
        raise FinecombError(
            f"{id}: has no annotation of {annotator!r}; adjudicate it first, or name others with --gold"
        )
    return exercise_from_gold(document, chosen[0])
