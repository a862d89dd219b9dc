"""Commands about the people of a served study: screen, pay, forget."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finecomb.cli.serve import Db, ServedStudy, work_location
from finecomb.cli.shared import (
    AsJson,
    Force,
    From,
    StudyPath,
    app,
    format_count,
    out,
    print_note,
    print_outcome,
    print_table_or_json,
    read,
)
from finecomb.collection.screened_annotators import ScreenedPerson, screened_people
from finecomb.collection.screening import Suggestion
from finecomb.collection.screening import screen as suggestions
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.formats.atomic_file import reject_existing_path, write_file
from finecomb.reporting.tables import Row, as_json

if TYPE_CHECKING:
    from finecomb.collection.arrivals_storage import PersonalDataCounts
    from finecomb.collection.database.store import Store
    from finecomb.collection.pay import PayFileFormat


@app.command()
def screen(study: StudyPath, from_: From = "", as_json_: AsJson = False) -> None:
    """Work and people that one might not want to count, after Clark et al. (2021). Nothing is changed.

    Example: `finecomb screen my-study`
    """
    whole = read(study, from_)
    all_suggestions = suggestions(whole)
    waiting = [suggestion for suggestion in all_suggestions if not suggestion.kept]
    notes = [
        f"{format_count(len(all_suggestions) - len(waiting), 'suggestion')} left out: kept on the researcher's pages"
    ]
    rows: list[Row] = [_suggestion_row(suggestion) for suggestion in waiting]
    people = [_person_row(person) for person in screened_people(whole, all_suggestions)]
    if as_json_:
        typer.echo(as_json(rows, people=people))
        return
    print_table_or_json(
        rows, as_json_, "To look at", "Nothing to look at.", notes if len(waiting) < len(all_suggestions) else ()
    )
    if people:
        print_table_or_json(people, as_json_, "People", "")


def _person_row(person: ScreenedPerson) -> Row:
    shares = {"texts": person.texts, "suggested": person.suggested, "rules": ", ".join(person.rules)}
    return {"annotator": person.annotator, **shares, "noticed": "; ".join(person.noticed)}


def _suggestion_row(suggestion: Suggestion) -> Row:
    subject = {
        "annotator": suggestion.annotator,
        "document": suggestion.document,
        "rule": suggestion.rule,
        "question": suggestion.question,
    }
    return {**subject, "reason": suggestion.reason, "evidence": suggestion.evidence}


@app.command()
def pay(
    study: ServedStudy,
    output: Annotated[Path, typer.Option("--output", "-o", help="The CSV to write.", show_default=False)],
    form: Annotated[
        str,
        typer.Option(
            "--form",
            help="`pay`: a line each; `tasks`: a line a task (HIT); `prolific`, `mturk`: bonuses as they want them.",
        ),
    ] = "pay",
    db: Db = "",
    force: Force = False,
) -> None:
    """Who is to be paid what, with the platform's worker ids: keep the file to yourself.

    Example: `finecomb pay my-study -o pay.csv`
    """
    from finecomb.collection import arrivals_storage, pay

    if form not in pay.FILENAME_BY_FORMAT:
        raise FinecombError(
            f"--form {form}: choose among "
            f"{', '.join(pay.FILENAME_BY_FORMAT)}{did_you_mean(form, pay.FILENAME_BY_FORMAT)}"
        )
    reject_existing_path(output, force)
    with _open_database(study, db) as store:
        with store.database.read_transaction() as transaction:
            arrivals = arrivals_storage.arrivals(store, transaction)
        people = pay.compute_earnings(store.study(), arrivals, store.head.protocol)
    text = pay.pay_file(_pay_form(form), people)
    write_file(output, text, private=True)
    lines = text.count("\n") - (form != "prolific")  # which wants no heading
    people_ = format_count(lines, "person") if lines == 1 else f"{lines:,} people"
    print_outcome(output, f"written, {format_count(lines, 'line') if form == 'tasks' else people_}")


def _pay_form(name: str) -> PayFileFormat:
    forms: dict[str, PayFileFormat] = {"pay": "pay", "tasks": "tasks", "prolific": "prolific", "mturk": "mturk"}
    return forms[name]


@app.command()
def forget(
    study: ServedStudy,
    annotator: Annotated[
        list[str] | None,
        typer.Option("--annotator", "-a", help="Only this one; may be repeated.", show_default=False),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    db: Db = "",
) -> None:
    """Remove worker ids, traces of browsers and addresses, sessions, personal links and names. The work stays.

    Example: `finecomb forget my-study`
    """
    from finecomb.collection import arrivals_storage

    with _open_database(study, db) as store:
        named = _check_annotators(store, annotator)
        with store.database.read_transaction() as transaction:
            there = arrivals_storage.count_personal_data(store, transaction, named)
        out.print(f"{study}: {_format_personal_data(there)}", soft_wrap=True)
        if there == arrivals_storage.PersonalDataCounts(0, 0, 0, 0, 0):
            return
        if not yes:
            typer.confirm("Remove them for good?", abort=True)
        gone = store.change_study_sync(arrivals_storage.forget_personal_data, "finecomb forget", named)
        arrivals_storage.vacuum_database(store.database)
    print_outcome(study, f"removed {_format_personal_data(gone)}")
    for file in _find_backups(study, db):
        print_note(f"{file} was made before and still holds them; delete it when you no longer need it")
    print_note("backups and files of pay that were made before still hold them; delete those you do not need")
    print_note("a server that runs now remembers who is signed in until it is restarted")


def _find_backups(study: Path, db: str) -> list[Path]:
    """Backups beside a study's file, which hold what was there when they were made."""
    file = work_location(study, db).file
    folder = file.parent if file else Path()
    stem = file.stem if file else work_location(study, db).study or "study"
    return sorted(path for path in folder.glob(f"{stem}.*-*.db") if path != file)


def _format_personal_data(data: PersonalDataCounts) -> str:
    return ", ".join(
        [
            format_count(data.workers, "worker id"),
            format_count(data.arrivals, "arrival"),
            format_count(data.sessions, "session"),
            format_count(data.links, "personal link"),
            format_count(data.names, "name"),
        ]
    )


def _check_annotators(store: Store, annotators: list[str] | None) -> list[str] | None:
    ids = {annotator.id for annotator in store.annotators()}
    for id in annotators or ():
        if id not in ids:
            raise FinecombError(f"no annotator is called {id!r}{did_you_mean(id, ids)}")
    return annotators or None


@contextmanager
def _open_database(study: Path, db: str) -> Iterator[Store]:
    """A study's database as it is, without taking in what is new in its folder."""
    from finecomb.collection.database.store import open_store

    where = work_location(study, db)
    if where.file and not where.file.exists():
        raise FinecombError(f"{where}: no such file; the study has not been served yet")
    store = open_store(where)
    try:
        yield store
    finally:
        store.close()
