"""The command that audits marks: draws a sample into a study of its own, and estimates from what auditors said."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finecomb import formats
from finecomb.api.collection import audit as fc_audit
from finecomb.api.collection import draw_audit
from finecomb.cli.derived import ApiCall, from_api
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
    print_result,
    read,
)
from finecomb.core.errors import FinecombError
from finecomb.core.study import Study


@app.command()
@from_api(fc_audit)
def audit(
    study: StudyPath,
    call: ApiCall,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Draw marks, and write the study in which they are judged."),
    ] = None,
    per_label: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum number of marks per label and group (default: 10).", show_default=False),
    ] = None,
    auditors: Annotated[
        int | None, typer.Option(min=1, help="Number of auditors per mark (default: 2).", show_default=False)
    ] = None,
    from_: From = "",
    force: Force = False,
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb audit my-study --per-label 10 --by model -o my-audit` · `finecomb serve my-audit` ·
    `finecomb audit my-audit`
    """
    whole = read(study, from_)
    if output is None:
        _refuse_drawing_options(study, whole, per_label, auditors)
        findings = call(whole)
        if not as_json_:
            print_note(f"{findings.judged_count:,} of {format_count(findings.drawn_count, 'mark')} judged")
        print_result(findings, as_json_)
        return
    if whole.settings.audit is not None:
        raise FinecombError(f"{study}: is an audit already; draw from the study that it was drawn from")
    if "draws" in call.given:
        raise FinecombError("--draws is for the estimate; leave it out where a sample is drawn with -o")
    sample = draw_audit(whole, per_label=per_label or 10, auditors=auditors or 2, **call.given)
    print_notes(sample.notes)
    formats.save(sample.study.items(), output, force=force)
    judges = format_count(auditors or 2, "auditor")
    print_outcome(output, f"{format_count(len(sample), 'mark')} to be judged by {judges} each")
    print_note(f"next: finecomb serve {output}, and afterwards finecomb audit {output}")


def _refuse_drawing_options(study: Path, whole: Study, per_label: int | None, auditors: int | None) -> None:
    if whole.settings.audit is None:
        raise FinecombError(f"{study}: is no audit; draw marks to be judged with -o AUDIT, serve that, then ask again")
    for flag, value in (("--per-label", per_label), ("--auditors", auditors)):
        if value is not None:
            raise FinecombError(f"{flag} is for drawing a sample; the marks of {study} are drawn already")
