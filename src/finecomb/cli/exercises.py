"""The command `exercise`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finecomb.api.collection import exercise as fc_exercise
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
from finecomb.cli.shared import Force, From, StudyPath, app, format_count, print_notes, print_outcome, read
from finecomb.formats.atomic_file import reject_existing_path, write_file_atomically


@app.command()
@derive_flags_from(fc_exercise)
def exercise(
    study: StudyPath,
    documents: Annotated[
        list[str], typer.Argument(metavar="DOCUMENT", help="IDs of the adjudicated texts to use.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Protocol file to write.", show_default=False)],
    call: PublicFunctionCall,
    from_: From = "",
    force: Force = False,
) -> None:
    """Example: `finecomb exercise my-study tea-1 tea-2 --to test -o my-protocol.yaml`"""
    reject_existing_path(output, force)
    exercises = call(read(study, from_), documents)
    print_notes(exercises.notes)
    write_file_atomically(output, exercises.to_yaml())
    errors = format_count(sum(row.errors for row in exercises), "error")
    print_outcome(
        output,
        f"protocol {exercises.protocol.id} with {format_count(len(exercises), 'exercise')} and {errors} to find",
    )
