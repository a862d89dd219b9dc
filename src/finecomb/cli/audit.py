"""The command that audits marks: draws a sample into a study of its own, and estimates from what auditors said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from finecomb import formats, protocols
from finecomb.cli.filters import split_names
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
from finecomb.core.protocol import Protocol
from finecomb.core.records import AuditPlan, Settings
from finecomb.core.results import Findings
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_items
from finecomb.statistics.measures.mark_audit import audit_sample, audited_counts, verdict_counts
from finecomb.statistics.measures.study_counts import meta_names
from finecomb.statistics.selection.view import Filters, view


@app.command()
def audit(
    study: StudyPath,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Draw marks, and write the study in which they are judged."),
    ] = None,
    per_label: Annotated[
        int | None,
        typer.Option(min=1, help="Marks of each label and group, at most; 10 when absent.", show_default=False),
    ] = None,
    by: Annotated[
        str, typer.Option(help="Document meta or annotator fields, with commas; model when there.", show_default=False)
    ] = "",
    auditors: Annotated[
        int | None, typer.Option(min=1, help="How many judge each mark; 2 when absent.", show_default=False)
    ] = None,
    protocol: Annotated[str, typer.Option("--protocol", "-p", help="Which of the study's protocols.")] = "",
    draws: Annotated[
        int | None, typer.Option(min=0, help="Resamples behind each interval; 1000 when absent.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same sample and same intervals.")] = 0,
    from_: From = "",
    force: Force = False,
    as_json_: AsJson = False,
) -> None:
    """How many of the marks are right: draw some to be judged, and afterwards correct the counts by what was found.

    Examples: `finecomb audit my-study --per-label 10 --by model -o my-audit` · `finecomb serve my-audit` ·
    `finecomb audit my-audit`
    """
    whole = read(study, from_)
    if output is None:
        _refuse_drawing_options(study, whole, per_label, auditors)
        _print_estimate(whole, split_names(by), protocol, 1000 if draws is None else draws, seed, as_json_)
        return
    if whole.settings.audit is not None:
        raise FinecombError(f"{study}: is an audit already; draw from the study that it was drawn from")
    if draws is not None:
        raise FinecombError("--draws is for the estimate; leave it out where a sample is drawn with -o")
    _draw_sample(whole, output, per_label or 10, split_names(by), auditors or 2, protocol, seed, force)


def _refuse_drawing_options(study: Path, whole: Study, per_label: int | None, auditors: int | None) -> None:
    if whole.settings.audit is None:
        raise FinecombError(f"{study}: is no audit; draw marks to be judged with -o AUDIT, serve that, then ask again")
    for flag, value in (("--per-label", per_label), ("--auditors", auditors)):
        if value is not None:
            raise FinecombError(f"{flag} is for drawing a sample; the marks of {study} are drawn already")


# --- drawing -----------------------------------------------------------------------------------------------------


def _draw_sample(
    whole: Study, output: Path, per_label: int, by: Sequence[str], auditors: int, protocol: str, seed: int, force: bool
) -> None:
    import polars as pl

    located = whole.marks.filter(pl.col("spans").list.len() > 0)
    part = view(_replace_marks(whole, located), Filters(protocol=protocol))
    print_notes(part.notes)
    columns = tuple(by) or (("model",) if "model" in meta_names(whole) else ())
    sample = audit_sample(part, per_label, columns, seed)
    if sample.is_empty():
        raise FinecombError("there are no marks to judge; an audit needs annotations that mark something")
    plan = AuditPlan(marks=tuple(sorted(sample["mark"])), by=columns, per_label=per_label, seed=seed)
    auditing = protocols.load_shipped("audit")
    formats.save(check_items(_audit_items(whole, plan, auditing, auditors)), output, force=force)
    print_outcome(
        output, f"{format_count(len(sample), 'mark')} to be judged by {format_count(auditors, 'auditor')} each"
    )
    print_note(f"next: finecomb serve {output}, and afterwards finecomb audit {output}")


def _replace_marks(study: Study, marks: object) -> Study:
    import dataclasses

    return dataclasses.replace(study, marks=marks)  # type: ignore[arg-type]


def _audit_items(whole: Study, plan: AuditPlan, auditing: Protocol, auditors: int) -> Iterator[StudyItem]:
    """The audited study with the auditing protocol in force; how its own work was run holds no longer."""
    title = f"Audit of {whole.settings.title}" if whole.settings.title else "Audit"
    ids = [id for id in whole.settings.protocols or whole.protocols if id != auditing.id]
    yield Settings(
        title=title, protocols=(auditing.id, *ids), annotators=auditors, audit=plan, seed=whole.settings.seed
    )
    yield auditing
    for item in whole.items():
        if not isinstance(item, Settings) and not (isinstance(item, Protocol) and item.id == auditing.id):
            yield item


# --- the estimate ------------------------------------------------------------------------------------------------


def _print_estimate(whole: Study, by: Sequence[str], protocol: str, draws: int, seed: int, as_json_: bool) -> None:
    plan = whole.settings.audit
    assert plan is not None
    judged = verdict_counts(whole)
    if judged.is_empty():
        raise FinecombError("nobody has judged a mark yet; serve the audit first")
    others = [id for id in whole.settings.protocols[1:] if id in whole.protocols]
    part = view(whole, Filters(protocol=protocol or (others[0] if others else "")))
    print_notes(part.notes)
    if not as_json_:
        print_note(f"{len(judged):,} of {format_count(len(plan.marks), 'mark')} judged")
    columns = tuple(by) or plan.by
    strata = tuple(dict.fromkeys((*columns, *plan.by)))
    findings = audited_counts(part, whole, columns, strata, draws=draws, seed=seed)
    print_result(Findings(findings, title="Audit"), as_json_)
