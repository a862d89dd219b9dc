"""The command `audit`: draw a sample of marks, and compute estimates from the auditors' judgements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finecomb import formats
from finecomb.api.collection import audit as fc_audit
from finecomb.api.collection import draw_audit
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
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


@app.command()
@derive_flags_from(fc_audit)
def audit(
    study: StudyPath,
    call: PublicFunctionCall,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Audit study to write, with a sample of marks for auditors to judge."),
    ] = None,
    per_label: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="With `--output`: maximum number of marks per label and group (default: 10).",
            show_default=False,
        ),
    ] = None,
    auditors: Annotated[
        int | None,
        typer.Option(min=1, help="With `--output`: number of auditors per mark (default: 2).", show_default=False),
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
        if whole.settings.audit is None:
            raise FinecombError(
                f"{study} is not an audit; draw a sample with -o AUDIT, serve it, then run this command on it"
            )
        for flag, value in (("--per-label", per_label), ("--auditors", auditors)):
            if value is not None:
                raise FinecombError(
                    f"{flag} applies only when a sample is drawn; the sample of {study} has already been drawn"
                )
        findings = call(whole)
        if not as_json_:
            print_note(f"{findings.judged_count:,} of {format_count(findings.drawn_count, 'mark')} judged")
        print_result(findings, as_json_)
        return
    if whole.settings.audit is not None:
        raise FinecombError(f"{study} is already an audit; draw from the study that was audited")
    if "draws" in call.given:
        raise FinecombError("--draws applies to the estimate and cannot be used with -o, which draws a sample")
    sample = draw_audit(whole, per_label=per_label or 10, auditors=auditors or 2, **call.given)
    print_notes(sample.notes)
    formats.save_records(sample.study.items(), output, force=force)
    judges = format_count(auditors or 2, "auditor")
    print_outcome(output, f"{format_count(len(sample), 'mark')} to judge, {judges} each")
    print_note(f"next: finecomb serve {output}, then finecomb audit {output}")
