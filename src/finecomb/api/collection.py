"""Collection of annotations from people: pay, screening, audits, exercises, backups, links, trial runs and serving."""

from __future__ import annotations

import functools
import importlib
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from finecomb import formats
from finecomb.annotators.simulated.simulated_people import CrowdTraits
from finecomb.api.parameters import (
    Bounds,
    Count,
    Names,
    PositiveInt,
    Share,
    StudyLike,
    Values,
    as_names,
    as_study,
    as_values,
    changed_parameters,
    public,
)
from finecomb.api.planned_tests import parse_planned_tests
from finecomb.api.progress import Progress, steps
from finecomb.api.running_server import StudyServer
from finecomb.api.served_studies import ServedStudy, open_database, open_served_study, open_work
from finecomb.collection.database.location import (
    DATABASE_FILENAME,
    existing_database_location,
    parse_location,
    study_database_location,
)
from finecomb.collection.exercises import (
    exercises_from_study,
    protocol_with_qualification_test,
    protocol_with_training_exercises,
    solvability_warnings,
)
from finecomb.collection.pay import (
    Earnings,
    PayFileFormat,
    compute_earnings,
    earnings_from_records,
    format_pay_file,
    pay_file_rows,
)
from finecomb.collection.screened_annotators import people_to_review
from finecomb.collection.screening import screen_annotations as suggest_exclusions
from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.practice import Exercise
from finecomb.core.protocol import Protocol
from finecomb.core.protocol_yaml import format_yaml
from finecomb.core.records import ONBOARDING_PHASES
from finecomb.core.results import Finding, Findings, Table
from finecomb.core.study import Study
from finecomb.core.study_checks import check_items
from finecomb.formats.atomic_file import reject_existing_path, write_file_atomically
from finecomb.formats.folder_storage import (
    database_in_force,
    has_study_files,
    lock_folder,
    move_original_files,
    prepare_original_folder,
)
from finecomb.formats.study_writes import ensure_database
from finecomb.reporting.planned_power import estimate_planned_power
from finecomb.statistics.measures.audit_sampling import DrawnAudit, draw_audit_study
from finecomb.statistics.measures.mark_audit import audited_counts, verdict_counts_by_mark
from finecomb.statistics.selection.view import Filters, view

if TYPE_CHECKING:
    from finecomb.collection.arrivals_storage import PersonalDataCounts
    from finecomb.collection.database.backup import BackupCheck
    from finecomb.collection.database.repair import RepairResult

# --- people ----------------------------------------------------------------------------------------------------------


class PayTable(Table):
    """Payments of annotators; `csv` is the file that a platform accepts."""

    def __init__(self, form: PayFileFormat, people: Iterable[Earnings]) -> None:
        self.earnings = tuple(people)
        """Work and earnings of each person."""
        self.csv = format_pay_file(form, self.earnings)
        super().__init__(pay_file_rows(form, self.earnings), title="Pay")


@public
def pay(
    study: Study | ServedStudy,
    *,
    output: str | PathLike[str] | None = None,
    form: str = "pay",
    db: str = "",
    force: bool = False,
) -> PayTable:
    """Compute the pay of each annotator, with the platform's worker IDs.

    Parameters
    ----------
    study : Study or path
        A study's folder, its SQLite file, or `postgresql://HOST/DATABASE#STUDY`. The records of a `Study` hold no
        worker IDs; those stay in the database.
    output : path, optional
        CSV file to write; only your user account can read it.
    form : {"pay", "tasks", "prolific", "mturk"}, default "pay"
        Rows: `pay` (per person), `tasks` (per task), or bonuses for `prolific` or `mturk`.
        `prolific` and `mturk` have one bonus per line, in the upload format of that platform.
    db : str
        PostgreSQL database that stores the annotations: `postgresql://HOST/DATABASE#STUDY`.
    force : bool, default False
        Replace the file if it exists.

    Returns
    -------
    PayTable
        One row per person, task or bonus; ``.csv`` is the text of the file and ``.earnings`` has every detail.

    Raises
    ------
    ParameterError
        If there is no such form.
    FinecombError
        If the study has not been served yet, or the file exists already.

    Examples
    --------
    >>> import finecomb as fc
    >>> row = fc.pay(fc.demo(readers=2))[0]
    >>> row.status, row.texts, row.pay
    ('done', 16, 0.0)
    """
    chosen = next((name for name in get_args(PayFileFormat) if name == form), None)
    if chosen is None:
        names = get_args(PayFileFormat)
        message = f"unknown {param('form')} {form!r}; choose one of {', '.join(names)}{did_you_mean(form, names)}"
        raise ParameterError(message, parameter="form")
    if output is not None:
        reject_existing_path(Path(output), force)
    if isinstance(study, Study):
        people = earnings_from_records(study)
    else:
        from finecomb.collection import arrivals_storage

        with open_work(study, db) as store:
            with store.database.read_transaction() as transaction:
                arrivals = arrivals_storage.read_all_arrivals(store, transaction)
            people = compute_earnings(store.read_study(), arrivals, store.head.protocol)
    table = PayTable(chosen, people)
    if output is not None:
        write_file_atomically(Path(output), table.csv, private=True)
    return table


class Screening(Table):
    """Suggested exclusions; `people` has one row per annotator that needs review."""

    def __init__(self, rows: Iterable[Mapping[str, object]], notes: Iterable[str], people: Table) -> None:
        self.people = people
        """Annotators with suggestions or observations: texts, suggested texts, rules, observations."""
        super().__init__(rows, title="Needs review", notes=notes)


@public
def screen(study: StudyLike) -> Screening:
    """List annotations and annotators that you may want to exclude; nothing is changed.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The annotations to screen. A path is read with :func:`read`.

    Returns
    -------
    Screening
        One row per suggestion that no researcher has decided about; ``.people`` has one row per annotator.

    Examples
    --------
    >>> import finecomb as fc
    >>> len(fc.screen(fc.demo()))
    0

    References
    ----------
    Clark et al. (2021), "All That's 'Human' Is Not Gold: Evaluating Human Evaluation of Generated Text".
    """
    whole = as_study(study)
    suggestions = suggest_exclusions(whole)
    waiting = [suggestion for suggestion in suggestions if not suggestion.kept]
    columns = ("annotator", "document", "rule", "question", "reason", "evidence")
    rows = [{name: getattr(suggestion, name) for name in columns} for suggestion in waiting]
    people = [
        {
            "annotator": person.annotator,
            "texts": person.texts,
            "suggested": person.suggested,
            "rules": ", ".join(person.rules),
            "noticed": "; ".join(person.noticed),
        }
        for person in people_to_review(whole, suggestions)
    ]
    kept = len(suggestions) - len(waiting)
    plural = "" if kept == 1 else "s"
    notes = [f"{kept:,} suggestion{plural} omitted, because a researcher decided to keep the work"] if kept else []
    return Screening(rows, notes, Table(people, title="People"))


class PersonalData(Table):
    """Personal data of annotators in a database: one row per kind, with the number of records."""

    def __init__(self, counts: PersonalDataCounts, notes: Iterable[str] = (), backups: Iterable[Path] = ()) -> None:
        kinds = {
            "worker id": counts.workers,
            "arrival": counts.arrivals,
            "session": counts.sessions,
            "personal link": counts.links,
            "name": counts.names,
        }
        self.is_empty = not any(kinds.values())
        """True if the database holds no personal data."""
        self.backups = tuple(backups)
        """Earlier backups that still hold personal data."""
        rows = [{"data": kind, "records": count} for kind, count in kinds.items()]
        super().__init__(rows, title="Personal data", notes=notes)


@public
def forget(study: ServedStudy, *, annotator: Values = (), dry_run: bool = False, db: str = "") -> PersonalData:
    """Remove worker IDs, browser and network traces, sessions, personal links and names; annotations are kept.

    Parameters
    ----------
    study : path
        A study's folder, its SQLite file, or `postgresql://HOST/DATABASE#STUDY`.
    annotator : str or sequence of str
        Remove only the personal data of this annotator; may be repeated.
    dry_run : bool, default False
        Count the records that contain personal data without removing anything.
    db : str
        PostgreSQL database that stores the annotations: `postgresql://HOST/DATABASE#STUDY`.

    Returns
    -------
    PersonalData
        The number of records of each kind that were removed, or would be; ``.backups`` still hold them.

    Raises
    ------
    ParameterError
        If there is no such annotator.
    FinecombError
        If the study has not been served yet.

    Examples
    --------
    >>> import finecomb as fc, tempfile
    >>> from finecomb.api.collection import forget, links
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = fc.write(fc.demo(readers=2), f"{folder}/demo")
    ...     _ = fc.links(f"{folder}/demo", new=1)
    ...     fc.forget(f"{folder}/demo").find(data="personal link").records
    1
    """
    from finecomb.collection import arrivals_storage
    from finecomb.collection.database.backup import list_backups

    named = as_values(annotator)
    with open_work(study, db) as store:
        ids = {person.id for person in store.read_annotators()}
        for id in named:
            if id not in ids:
                raise ParameterError(f"unknown annotator {id!r}{did_you_mean(id, ids)}", parameter="annotator")
        with store.database.read_transaction() as transaction:
            counts = arrivals_storage.count_personal_data(store, transaction, named or None)
        if dry_run or PersonalData(counts).is_empty:
            return PersonalData(counts)
        counts = store.run_study_change_sync(arrivals_storage.forget_personal_data, "finecomb forget", named or None)
        arrivals_storage.vacuum_database(store.database)
    backups = list_backups(existing_database_location(study, db))
    notes = [
        f"{file} is an earlier backup and still holds personal data; delete it when you no longer need it"
        for file in backups
    ]
    notes += [
        "earlier backups and payment files still hold personal data; delete those that you no longer need",
        "a running server keeps people signed in until it is restarted",
    ]
    return PersonalData(counts, notes, backups)


# --- audits and exercises --------------------------------------------------------------------------------------------


class AuditSample(Table):
    """Marks drawn for an audit; `study` is the study in which auditors judge them."""

    def __init__(self, drawn: DrawnAudit) -> None:
        self.study = drawn.study
        """The audited study with the audit protocol in force, ready to be written and served."""
        super().__init__(drawn.sample.iter_rows(named=True), title="Marks to audit", notes=drawn.notes)


@public
def draw_audit(
    study: StudyLike,
    *,
    per_label: PositiveInt = 10,
    by: Names = (),
    auditors: PositiveInt = 2,
    protocol: str = "",
    seed: int = 0,
) -> AuditSample:
    """Sample marks at random and create a study in which auditors judge them.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The annotations to audit. A path is read with :func:`read`.
    per_label : int, default 10
        Maximum number of marks sampled per label and group.
    by : str or sequence of str
        Group by document metadata or annotator fields, comma-separated (default: `model`).
        The default applies only if texts have this field.
    auditors : int, default 2
        Number of auditors per mark.
    protocol : str
        Name of the protocol to use; required if the study has several.
    seed : int, default 0
        Random seed for sampling.

    Returns
    -------
    AuditSample
        One row per mark; ``.study`` is the study to write and serve.

    Raises
    ------
    FinecombError
        If the study is an audit already, or has no marks.

    Examples
    --------
    >>> import finecomb as fc
    >>> drawn = fc.draw_audit(fc.demo(), per_label=1)
    >>> drawn.study.settings.title, len(drawn) == len(drawn.study.settings.audit.marks)
    ('Audit of Saltby: the demo study', True)
    """
    whole = as_study(study)
    if whole.settings.audit is not None:
        raise FinecombError("the study is already an audit; draw from the study that was audited")
    return AuditSample(draw_audit_study(whole, per_label, as_names(by), auditors, protocol, seed))


class AuditFindings(Findings):
    """Estimates from audited marks, with the numbers of drawn and judged marks."""

    def __init__(self, findings: Iterable[Finding], notes: Iterable[str], judged_count: int, drawn_count: int) -> None:
        super().__init__(findings, notes, title="Audit")
        self.judged_count, self.drawn_count = judged_count, drawn_count


@public
def audit(study: StudyLike, *, by: Names = (), protocol: str = "", draws: Count = 1000, seed: int = 0) -> AuditFindings:
    """Estimate the share of legitimate marks from an audited sample, and correct the error counts.

    The sample is drawn with :func:`draw_audit` and judged by auditors on the study server.

    Parameters
    ----------
    study : Study or path
        The audit study with the auditors' judgements. A path is read with :func:`read`.
    by : str or sequence of str
        Group by document metadata or annotator fields, comma-separated (default: `model`).
        The default applies only if texts have this field.
    protocol : str
        Name of the protocol to use; required if the study has several.
    draws : int, default 1000
        Number of resamples per confidence interval.
    seed : int, default 0
        Random seed for sampling and resampling.

    Returns
    -------
    AuditFindings
        One row per measure and label; ``.judged_count`` of ``.drawn_count`` marks were judged.

    Raises
    ------
    FinecombError
        If the study is not an audit, or no mark has been judged.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.audit(fc.demo())
    Traceback (most recent call last):
    finecomb.core.errors.FinecombError: the study is not an audit; draw marks with draw_audit() first

    References
    ----------
    Dou et al. (2022), "Is GPT-3 Text Indistinguishable from Human Text? Scarecrow".
    """
    whole = as_study(study)
    plan = whole.settings.audit
    if plan is None:
        raise FinecombError("the study is not an audit; draw marks with draw_audit() first")
    judged = verdict_counts_by_mark(whole)
    if judged.is_empty():
        raise FinecombError("no mark has been judged yet; serve the audit first")
    others = [id for id in whole.settings.protocols[1:] if id in whole.protocols]
    part = view(whole, Filters(protocol=protocol or (others[0] if others else "")))
    columns = as_names(by) or plan.by
    strata = tuple(dict.fromkeys((*columns, *plan.by)))
    findings = audited_counts(part, whole, columns, strata, draws=draws, seed=seed)
    return AuditFindings(findings, part.notes, len(judged), len(plan.marks))


class ExerciseProtocol(Table):
    """A protocol with exercises from adjudicated texts: one row per exercise, with its number of errors."""

    def __init__(self, protocol: Protocol, exercises: Sequence[Exercise], notes: Iterable[str]) -> None:
        self.protocol, self.exercises = protocol, tuple(exercises)
        rows = [{"exercise": exercise.name, "errors": len(exercise.solutions)} for exercise in exercises]
        super().__init__(rows, title=f"Exercises of {protocol.id}", notes=notes)

    def to_yaml(self) -> str:
        """Return the protocol as YAML text, from which :func:`new` creates studies."""
        return format_yaml(self.protocol)


@public
def exercise(
    study: StudyLike,
    documents: Values,
    *,
    to: Literal["training", "test"] = "training",
    gold: str = "",
    pass_: Annotated[float, Bounds(0.01, 1)] = 0.7,
    precision: Share = 0.25,
    protocol: str = "",
) -> ExerciseProtocol:
    """Create a protocol with exercises or a qualification test from adjudicated texts.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The study with the adjudicated texts. A path is read with :func:`read`.
    documents : str or sequence of str
        IDs of the adjudicated texts to use.
    to : {"training", "test"}, default "training"
        Create exercises with feedback (`training`) or a qualification test (`test`).
    gold : str
        Annotator whose marks are the solution (default: `gold`, or the only annotator).
    pass_ : float, default 0.7
        For a qualification test: share of the errors that an annotator must find to pass.
    precision : float, default 0.25
        For a qualification test: share of the annotator's marks that must be correct to pass.
    protocol : str
        Name of the protocol to use; required if the study has several.

    Returns
    -------
    ExerciseProtocol
        One row per exercise; ``.protocol`` is the protocol with the exercises and ``.to_yaml()`` its file.

    Raises
    ------
    ParameterError
        If a text has no annotation that can be the solution, or an option of a test is given for training.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.exercise(fc.demo(), "harbour-b", to="test", pass_=0.5).protocol.qualification.pass_at
    50.0
    """
    chosen = changed_parameters(exercise, locals())
    if to == "training" and (wrong := [name for name in ("pass_", "precision") if name in chosen]):
        raise ParameterError(
            f"{param('pass_')} and {param('precision')} require {param('to', 'test')}",
            parameter=wrong[0],
        )
    whole = as_study(study)
    first = whole.settings.protocols[0] if whole.settings.protocols else ""
    original = whole.protocol(protocol or first)
    exercises = exercises_from_study(whole, as_values(documents), original, gold)
    if to == "training":
        changed = protocol_with_training_exercises(original, exercises)
    else:
        changed = protocol_with_qualification_test(original, exercises, pass_, precision)
    return ExerciseProtocol(changed, exercises, solvability_warnings(changed, exercises))


# --- databases -------------------------------------------------------------------------------------------------------


@public
def backup(study: ServedStudy, *, output: str | PathLike[str] | None = None) -> Path:
    """Write a consistent snapshot of a study's database to one SQLite file, even while the study is being served.

    Parameters
    ----------
    study : path
        A study's folder, its SQLite file, or `postgresql://HOST/DATABASE#STUDY`.
    output : path, optional
        Backup file to write (default: named after the study and the time).

    Returns
    -------
    Path
        The backup, which only you can read.

    Raises
    ------
    FinecombError
        If the study has not been served yet, or the file exists already.

    Examples
    --------
    >>> import finecomb as fc, tempfile
    >>> from finecomb.api.collection import backup, links, verify_backup
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = fc.write(fc.demo(readers=2), f"{folder}/demo")
    ...     _ = fc.links(f"{folder}/demo", new=1)
    ...     fc.verify_backup(fc.backup(f"{folder}/demo")).studies
    ('study',)
    """
    from finecomb.collection.database.backup import back_up_database, new_backup_path

    location = existing_database_location(study)
    target = new_backup_path(location) if output is None else Path(output)
    with open_database(location, readonly=location.file is not None) as database:
        back_up_database(database, target)
    return target


class BackupReport(Table):
    """A backup that is intact: one row per study."""

    def __init__(self, check: BackupCheck) -> None:
        self.studies, self.row_count = check.studies, check.rows
        self.sealed = check.sealed
        """Time when the backup was made; empty for a backup of an earlier version, which has no checksum."""
        super().__init__(({"study": name} for name in check.studies), title="Backup")


@public
def verify_backup(file: str | PathLike[str]) -> BackupReport:
    """Check that a backup is intact and unchanged since it was made.

    Parameters
    ----------
    file : path
        Backup file, as written by :func:`backup`.

    Returns
    -------
    BackupReport
        Its ``studies``, its ``row_count``, and when it was ``sealed``.

    Raises
    ------
    FinecombError
        If the backup is damaged, was changed, or was made by a later version.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.verify_backup("no-such-backup.db")
    Traceback (most recent call last):
    finecomb.core.errors.FinecombError: no-such-backup.db: no such file
    """
    from finecomb.collection.database.backup import verify_backup

    return BackupReport(verify_backup(Path(file)))


@public
def restore(file: str | PathLike[str], study: ServedStudy, *, force: bool = False) -> Path | None:
    """Replace a study's database with a backup; stop the server first.

    Parameters
    ----------
    file : path
        Backup file, as written by :func:`backup`.
    study : path
        A study's folder, its SQLite file, or `postgresql://HOST/DATABASE#STUDY`.
    force : bool, default False
        Replace an existing database; a copy of the old one is kept.

    Returns
    -------
    Path or None
        A copy of the database that was replaced; None where there was none.

    Raises
    ------
    ParameterError
        If there is a database already and `force` is not given.
    FinecombError
        If the backup is damaged, or the study is being served.

    Examples
    --------
    >>> import finecomb as fc, tempfile
    >>> from finecomb.api.collection import backup, links, restore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = fc.write(fc.demo(readers=2), f"{folder}/demo")
    ...     _ = fc.links(f"{folder}/demo", new=1)
    ...     copy = fc.restore(fc.backup(f"{folder}/demo"), f"{folder}/demo", force=True)
    ...     copy.name.startswith("study.replaced-")
    True
    """
    from finecomb.collection.database.backup import restore_backup as replace_database

    if not Path(file).is_file():
        raise FinecombError(f"{Path(file)}: file not found")
    path = Path(study)
    if not path.is_dir():
        return replace_database(Path(file), study_database_location(study), force)
    if has_study_files(path) and database_in_force(path) is not None:
        ensure_database(path)  # files of an earlier version would be read together with the restored database
    with lock_folder(path):
        if has_study_files(path) and database_in_force(path) is None:
            prepare_original_folder(path, DATABASE_FILENAME)
        replaced = replace_database(Path(file), study_database_location(study), force)
        move_original_files(path)
    return replaced


class RepairReport(Table):
    """Unreadable records, one row each: kind, id, outcome and reason."""

    def __init__(self, result: RepairResult) -> None:
        self.backup = result.backup
        """Copy of the database before the repair; None if nothing changed."""
        self.aside = result.aside
        """File with the removed or changed records; None if nothing changed."""
        notes = []
        if result.rows:
            notes.append(f"the previous database is kept in {result.backup}")
            notes.append(f"removed and changed records are kept in {result.aside}")
        self.lost = [str(rows) for rows in result.lost]
        """Rows on damaged pages of the SQLite file that could not be read."""
        if result.damaged:
            notes.append(f"pages of the file were damaged; it is kept as {result.damaged}, and its rows were copied")
            notes += [f"lost: {rows}" for rows in self.lost]
            notes += [] if self.lost else ["no row was lost"]
        super().__init__(map(asdict, result.rows), title="Repaired records", notes=notes)


@public
def repair(study: ServedStudy) -> RepairReport:
    """Repair stored records that cannot be read, or set them aside in a file; a backup is made first.

    Parameters
    ----------
    study : path
        A study's folder, its SQLite file, or `postgresql://HOST/DATABASE#STUDY`.

    Returns
    -------
    RepairReport
        One row per record that could not be read; empty where every record can be read.

    Raises
    ------
    FinecombError
        If the study has not been served yet, or is being served.

    Examples
    --------
    >>> import finecomb as fc, tempfile
    >>> from finecomb.api.collection import links, repair
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = fc.write(fc.demo(readers=2), f"{folder}/demo")
    ...     _ = fc.links(f"{folder}/demo", new=1)
    ...     len(fc.repair(f"{folder}/demo"))
    0
    """
    from finecomb.collection.database.repair import repair_study as repair_database
    from finecomb.collection.database.repair import replace_damaged_file, require_study
    from finecomb.collection.database.serving_lock import hold_study_lock
    from finecomb.collection.database.store import migrate_database

    location = existing_database_location(study)
    require_study(location)  # before a lock is left next to a file that is not a study
    with hold_study_lock(location, "repair"):
        lost, damaged = replace_damaged_file(location)
        with open_database(location) as database:
            migrate_database(database)
            return RepairReport(replace(repair_database(database), lost=lost, damaged=damaged))


@public
def links(
    study: ServedStudy,
    *,
    new: Count = 0,
    name: Values = (),
    researcher: str = "",
    db: str = "",
    public_url: str = "http://127.0.0.1:8000",
) -> Table:
    """Create personal links for annotators; each link is shown once, and only its hash is stored.

    Parameters
    ----------
    study : path
        A study's folder, its SQLite file, or `postgresql://HOST/DATABASE#STUDY`.
    new : int, default 0
        Number of new annotators to create links for.
    name : str or sequence of str
        Name of a new or existing annotator to create a link for; may be repeated.
    researcher : str
        Name of a researcher to create a one-time sign-in link for.
    db : str
        PostgreSQL database that stores the annotations: `postgresql://HOST/DATABASE#STUDY`.
    public_url : str, default "http://127.0.0.1:8000"
        Public URL of the server if it runs behind a proxy, such as `https://example.org`.

    Returns
    -------
    Table
        One row per link: annotator (or researcher) and link.

    Raises
    ------
    ParameterError
        If no recipient is given, the researcher is unknown, or links for both groups are requested.

    Examples
    --------
    >>> import finecomb as fc, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = fc.write(fc.demo(readers=2), f"{folder}/demo")
    ...     [row.annotator for row in fc.links(f"{folder}/demo", new=1, name="ann")]
    ['ann', 'reader-3']
    """
    from finecomb.collection.researcher_actions_storage import create_personal_links, renew_invitation

    names, address = as_values(name), public_url.rstrip("/")
    if researcher and (new or names):
        raise ParameterError(
            f"{param('researcher', 'NAME')} cannot be combined with links for annotators",
            parameter="researcher",
        )
    if not researcher and not new and not names:
        raise ParameterError(
            f"no recipient is given; pass {param('new', 3)} for three new annotators, or {param('name', 'ann')}",
            parameter="new",
        )
    rows: list[dict[str, object]]
    with open_served_study(study, db) as store:
        if researcher:
            token = store.run_job_sync(renew_invitation, "finecomb links", researcher)
            rows = [{"researcher": researcher, "link": f"{address}/sign-in/{token}"}]
        else:
            made = store.run_job_sync(create_personal_links, "finecomb links", new, names)
            rows = [{"annotator": link.annotator, "link": f"{address}/join/{link.token}"} for link in made]
    return Table(rows, title="Links")


# --- the server ------------------------------------------------------------------------------------------------------
#
# `rehearse`, `serve` and `preview` run the study server, which is above `api` in the layers. They are the only
# exceptions to the order of the layers, and they import the server by its name inside the function, so that nothing
# else here needs it.


class TrialRun(Table):
    """A trial run by simulated participants: one row per cell of the design, or per outcome without a design."""

    def __init__(self, rehearsal: Any, traits: CrowdTraits, seed: int) -> None:
        self.study: Study = rehearsal.study
        """Study with the annotations of the simulated participants."""
        self.visits = tuple(rehearsal.visits)
        """Outcome of each participant's visit."""
        self.is_filled: bool = rehearsal.is_filled
        """True if every cell of the design is complete, or if there is no design."""
        self.has_design = bool(rehearsal.states)
        self.power = Table(title="Power of the planned tests")
        """Share of repetitions in which each row of the planned tests had p below .05, once computed."""
        self._traits, self._seed = traits, seed
        title = "Cells" if rehearsal.states else "People"
        super().__init__(rehearsal.rows(), title=title, notes=rehearsal.notes())

    def compute_power(self, runs: int = 50, progress: Progress = False, planned: Sequence[str] | None = None) -> Table:
        """Repeat the planned tests with other simulated participants, and store and return their power.

        `planned` are lines such as `test --what scores --by condition`, by default those in study.yaml. A test that
        cannot be computed from the trial run is omitted; a note of the table gives the reason.
        """
        tests, notes = {}, []
        for test in parse_planned_tests(self.study.settings.planned if planned is None else planned):
            try:
                test.run(self.study, resample=False)
            except FinecombError as error:
                notes.append(str(error))
            else:
                tests[test.line] = functools.partial(test.run, resample=False)
        with steps(progress, "repetitions", runs) as advance:
            rows = estimate_planned_power(self.study, tests, self._traits, self._seed, runs, advance)
        self.power = Table(rows, title="Power of the planned tests", notes=notes)
        return self.power


@public
def rehearse(
    study: StudyLike,
    *,
    arrivals: Count = 0,
    rejected: Annotated[float, Bounds(0, 0.95)] = 0.0,
    careless: Annotated[float, Bounds(0, 0.95)] = 0.0,
    leaves: Annotated[float, Bounds(0, 0.95)] = 0.0,
    skill: Values = (),
    bias: Share = 0.0,
    output: str | PathLike[str] | None = None,
    runs: Count = 50,
    seed: int = 0,
    force: bool = False,
    progress: Progress = False,
) -> TrialRun:
    """Run simulated participants through the real server to check a study's design, cost and statistical power.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        Study to test with simulated participants. A path is read with :func:`read`; nothing is changed there.
    arrivals : int, default 0
        Number of simulated participants (0 = until every cell of the design is full).
    rejected : float, default 0.0
        Share of simulated participants who copy the text as a reason; their work is rejected.
    careless : float, default 0.0
        Share of simulated participants who click without reading; their work is rejected.
    leaves : float, default 0.0
        Share of simulated participants who leave before the end.
    skill : str or sequence of str
        Share of correct answers, as `0.6` or per condition (`CONDITION=0.6`); may be repeated.
        For example `examples=0.7` for the condition `examples` (default: 0.6 for all conditions).
    bias : float, default 0.0
        Share of wrong answers that are the last option of the scale instead of a random one.
    output : path, optional
        Study to write, including the annotations of the simulated participants.
    runs : int, default 50
        Number of simulated repetitions of the planned tests, to estimate power (0 = none).
    seed : int, default 0
        Random seed for the simulated participants.
    force : bool, default False
        Replace the output if it exists.
    progress : bool or callable, default False
        Show progress on standard error.
        A function is called with the numbers of finished and needed people instead.

    Returns
    -------
    TrialRun
        One row per cell of the design; ``.study`` has the simulated work and ``.power`` the power of planned tests.

    Raises
    ------
    ParameterError
        If a skill is not a share, or the study has no design and `arrivals` is not given.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.rehearse(fc.demo(readers=2), arrivals=1).find(outcome="done").people
    1

    References
    ----------
    Clark et al. (2021), "All That's 'Human' Is Not Gold: Evaluating Human Evaluation of Generated Text".
    """
    skills = {"": 0.6}
    for word in as_values(skill):
        condition, equals, number = word.rpartition("=")
        try:
            skills[condition if equals else ""] = float(number)
        except ValueError:
            message = f"{param('skill', word)}: expected a share such as 0.6, or CONDITION=SHARE"
            raise ParameterError(message, parameter="skill") from None
    traits = CrowdTraits(skills, bias, rejected, careless, leaves)
    whole = as_study(study)
    if not arrivals and whole.settings.design is None:
        raise ParameterError(
            f"the study has no design; pass the number of participants with {param('arrivals')}",
            parameter="arrivals",
        )
    if output is not None and Path(output).exists() and not force:
        raise ParameterError(
            f"{Path(output)} already exists; choose another name or pass {param('force')}", parameter="output"
        )
    parse_planned_tests(
        whole.settings.planned
    )  # invalid planned tests are reported before the first participant arrives
    trial = TrialRun(_simulate_visits(whole, traits, arrivals or _MAX_ARRIVALS, seed, progress), traits, seed)
    if output is not None:  # written before the power, so that an interruption does not lose the trial run
        formats.save_records(trial.study.items(), Path(output), force=force)
    if runs:
        trial.compute_power(runs, progress)
    return trial


_MAX_ARRIVALS = 20_000
"""Maximum number of participants of a trial run that continues until the design is complete."""


def _simulate_visits(whole: Study, traits: CrowdTraits, arrivals: int, seed: int, progress: Progress) -> Any:
    from finecomb.collection.database.store import open_store

    server = importlib.import_module("finecomb.server.rehearsal")
    clock = server.RehearsalClock()
    with tempfile.TemporaryDirectory() as temporary:
        location = parse_location(Path(temporary) / DATABASE_FILENAME)
        store = open_store(location, check_items(server.items_without_human_work(whole)), clock, durable=False)
        try:
            needed = sum(place.cell.people for place in store.assignment_plan().cells.values())
            with steps(progress, "people", needed or None) as advance:
                return server.rehearse(store, clock, traits, arrivals, seed, lambda visit: advance(1))
        finally:
            store.close()


@public
def serve(
    study: ServedStudy,
    *,
    host: str = "127.0.0.1",
    port: Annotated[int, Bounds(0, 65535)] = 8000,
    db: str = "",
    public_url: str = "",
    trusted_proxies: Names = (),
    key_env: Values = (),
    workers: Annotated[int, Bounds(1, 64)] = 1,
    log_format: str = "text",
    block: bool = False,
) -> StudyServer:
    """Collect annotations from people: serve a study with a link for researchers and one for annotators.

    Parameters
    ----------
    study : path
        A study's folder, its SQLite file, or `postgresql://HOST/DATABASE#STUDY`.
    host : str, default "127.0.0.1"
        Address to listen on; `0.0.0.0` accepts connections from other machines.
    port : int, default 8000
        Port to listen on; 0 selects a free port.
    db : str
        PostgreSQL database that stores the annotations: `postgresql://HOST/DATABASE#STUDY`.
    public_url : str
        Public URL of the server if it runs behind a proxy, such as `https://example.org`.
    trusted_proxies : str or sequence of str
        IP addresses or networks of proxies on other machines or in containers, comma-separated.
        A proxy on this machine is trusted if `public_url` is set. Limits per address count the clients of a trusted
        proxy one by one, and those of any other proxy as one.
    key_env : str or sequence of str
        Environment variable with an API key that model runs may use; may be repeated.
    workers : int, default 1
        Number of server processes; more than one requires PostgreSQL.
    log_format : {"text", "json"}, default "text"
        Log format: `text`, or `json` with one line per request and without personal data.
    block : bool, default False
        Wait until the server is stopped by Ctrl-C or a signal, instead of returning at once.
        Otherwise the server runs in the background.

    Returns
    -------
    StudyServer
        The running server: ``.links``, ``.url``, ``.wait()`` and ``.stop()``; a ``with`` statement stops it.

    Raises
    ------
    ParameterError
        If the port is taken, or several workers are asked for without PostgreSQL.
    FinecombError
        If there is no such study, or it is being served already.

    Examples
    --------
    >>> import finecomb as fc, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = fc.write(fc.demo(readers=2), f"{folder}/demo")
    ...     with fc.serve(f"{folder}/demo", port=0) as server:
    ...         sorted(server.links)
    ['annotators', 'researchers']
    """
    if log_format not in ("text", "json"):
        raise ParameterError(f"{param('log_format', log_format)}: expected text or json", parameter="log_format")
    server = importlib.import_module("finecomb.server.study_server")
    settings = server.ServeSettings(
        host, port, db, public_url, as_values(key_env), workers, log_format, as_names(trusted_proxies)
    )
    running: StudyServer = server.start_study_server(Path(study), settings)
    if block:
        running.wait()
    return running


@public
def preview(
    protocol: str | PathLike[str],
    *,
    host: str = "127.0.0.1",
    port: Annotated[int, Bounds(0, 65535)] = 8000,
    skip: Values = (),
    block: bool = False,
) -> StudyServer:
    """Show the pages of a protocol as annotators see them, from instructions to example texts; nothing is stored.

    A YAML file is shown on phone and tablet next to its text, and again whenever it is saved.

    Parameters
    ----------
    protocol : str or path
        Name of a shipped protocol (see `finecomb protocols`), or a YAML file.
    host : str, default "127.0.0.1"
        Address to listen on; `0.0.0.0` accepts connections from other machines.
    port : int, default 8000
        Port to listen on; 0 selects a free port.
    skip : str or sequence of str
        Phases to omit, comma-separated, such as `consent`, `survey` or `training`.
        The phases are `consent`, `survey`, `instructions`, `training` and `qualification`.
    block : bool, default False
        Wait until the server is stopped by Ctrl-C or a signal, instead of returning at once.
        Otherwise the server runs in the background.

    Returns
    -------
    StudyServer
        The running server: ``.links["preview"]``, ``.wait()`` and ``.stop()``; a ``with`` statement stops it.

    Raises
    ------
    ParameterError
        If there is no such phase, or the port is taken.

    Examples
    --------
    >>> import finecomb as fc
    >>> with fc.preview("snac", port=0) as server:
    ...     server.links["preview"].startswith(f"{server.url}/join/")
    True
    """
    chosen = {word for value in as_values(skip) for word in as_names(value)}
    for word in sorted(chosen):
        if word not in ONBOARDING_PHASES:
            listed = f"{', '.join(ONBOARDING_PHASES)}{did_you_mean(word, ONBOARDING_PHASES)}"
            raise ParameterError(f"{param('skip', word)}: expected one of {listed}", parameter="skip")
    phases = tuple(phase for phase in ONBOARDING_PHASES if phase in chosen)
    server = importlib.import_module("finecomb.server.study_server")
    running: StudyServer = server.start_preview(fspath(protocol), phases, host, port)
    if block:
        running.wait()
    return running
