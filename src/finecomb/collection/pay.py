"""Earnings and study costs: pay per text, base pay, bonuses, fees and staff.

Submitted work is paid even when it is excluded later, because exclusion affects only the statistics. Worker IDs come
from `arrivals` and appear only in the files for platforms, never in a record.
"""

from __future__ import annotations

import bisect
import csv
import io
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Literal

import polars as pl

from finecomb.collection.annotator_meta import AnnotatorMeta, Bonus
from finecomb.collection.arrivals import Arrival, ArrivalSource
from finecomb.collection.platform_batches import FinishedBatch, finished_batches
from finecomb.core.design import DesignCell, design_cells
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotator, Settings
from finecomb.core.study import Study

ParticipationStage = Literal["invited", "working", "done", "screened-out"]
"""Stage of a participant, excluded or not. `invited` means that the person has not started yet."""
PayFileFormat = Literal["pay", "tasks", "prolific", "mturk"]


@dataclass(frozen=True, slots=True)
class Earnings:
    """Work and earnings of one person."""

    annotator: str
    worker: str
    session: str
    """ID of the person's latest session on the platform."""
    stage: ParticipationStage
    excluded: bool
    texts: int
    """Number of submitted texts."""
    minutes: float
    """Total active minutes, from the survey to the last text."""
    pay: float
    bonus: Bonus
    cell: str = ""
    """Cell of the study's design; empty without a design."""
    base: float = 0
    """Base pay for taking part, which is included in `pay`."""
    platform: str = ""
    place: str = ""
    """ID of the person's latest study or HIT on the platform."""
    tasks: tuple[FinishedBatch, ...] = ()
    """Finished tasks on the platform; empty unless the study is divided into tasks."""
    rewarded: float | None = None
    """Reward that the platform pays; None when it pays everything except the bonus."""

    @property
    def total(self) -> float:
        """Pay plus bonus."""
        return self.pay + self.bonus.amount

    @property
    def unbatched_text_count(self) -> int:
        """Number of submitted texts that do not belong to a finished task."""
        return self.texts - sum(task.texts for task in self.tasks)

    @property
    def bonus_owed(self) -> float:
        """Amount to pay as a bonus: all earnings that the platform's reward does not cover."""
        return self.bonus.amount if self.rewarded is None else max(0.0, round(self.total - self.rewarded, 9))

    @property
    def bonus_reason(self) -> str:
        """Reason for the bonus, as shown to the person."""
        parts = [self.bonus.reason] if self.bonus.amount else []
        if self.rewarded is not None and self.pay > self.rewarded:
            parts += ["taking part"] if self.base else []
            parts += [f"{self.unbatched_text_count} more texts"] if self.unbatched_text_count and self.tasks else []
        return "; ".join(parts) or ("remaining pay" if self.bonus_owed else "")

    @property
    def per_hour(self) -> float | None:
        """Pay plus bonus per active hour; None when the time is unknown."""
        return 60 * self.total / self.minutes if self.minutes > 0 else None


@dataclass(frozen=True, slots=True)
class StudyCost:
    """Costs of a study so far."""

    pay: float
    bonus: float
    fees: float
    staff: float
    per_hour: float | None
    """Median pay per hour over people; None when it is unknown."""

    @property
    def total(self) -> float:
        """Total cost of the study so far."""
        return self.pay + self.bonus + self.fees + self.staff


def compute_earnings(study: Study, arrivals: Sequence[Arrival], protocol: Protocol) -> list[Earnings]:
    """Return the earnings of all people, in the study's order. `protocol` is the current protocol."""
    came: dict[str, list[Arrival]] = {}
    for arrival in arrivals:
        came.setdefault(arrival.annotator, []).append(arrival)
    texts, seconds = text_count_by_annotator(study), _active_seconds_by_annotator(study)
    times, batch = _submission_times_by_annotator(study), study.settings.recruitment.batch
    cells = {cell.name: cell for cell in design_cells(study.settings.design, protocol)} if study.settings.design else {}
    texts_of_all = protocol.work.texts or len(study.documents)
    people = []
    for person in study.iter_annotators():
        if person.kind != "human":
            continue
        done, progress = texts.get(person.id, 0), AnnotatorMeta.from_annotator(person)
        last = came[person.id][-1] if person.id in came else None
        cell = cells.get(person.cell)
        of = (cell.texts if cell else None) or texts_of_all
        stage = _participation_stage(person, done, of, protocol, last is not None or person.id in seconds)
        took = person.qualification
        tested = took is not None and took.protocol == protocol.id and bool(took.attempts)
        source = last.source if last else ArrivalSource()
        tasks = finished_batches(came[person.id], times.get(person.id, ()), batch) if batch and last else []
        people.append(
            Earnings(
                person.id,
                source.worker,
                source.session,
                stage,
                person.excluded is not None,
                done,
                (seconds.get(person.id, 0) + progress.total_step_seconds) / 60,
                _compute_pay(study.settings, done, tested, cell, of),
                progress.bonus,
                cell=person.cell,
                base=study.settings.base_pay if done or tested else 0,
                platform=source.platform,
                place=source.place,
                tasks=tuple(tasks),
                rewarded=_platform_reward(study.settings, len(tasks), stage == "done"),
            )
        )
    return people


def earnings_from_records(study: Study) -> list[Earnings]:
    """Return the earnings of all people, computed without arrivals and therefore without worker IDs."""
    protocol = study.protocols[study.settings.protocols[0]] if study.settings.protocols else study.protocol()
    return compute_earnings(study, (), protocol)


def _platform_reward(settings: Settings, tasks: int, is_done: bool) -> float | None:
    """Return the reward paid by the platform, per finished task or for completing the study; None when none is set."""
    recruitment = settings.recruitment
    if recruitment.batch is not None:
        reward = recruitment.reward if recruitment.reward is not None else (settings.price or 0) * recruitment.batch
        return reward * tasks
    return None if recruitment.reward is None else recruitment.reward * is_done


def text_count_by_annotator(study: Study) -> dict[str, int]:
    """Return the number of submitted texts of each annotator."""
    handed_in = study.annotations.filter((pl.col("phase") == "work") & (pl.col("status") != "draft"))
    return dict(handed_in.group_by("annotator").len().iter_rows())


def _submission_times_by_annotator(study: Study) -> dict[str, list[float]]:
    """Return the submission times of each person, in seconds since 1970."""
    handed_in = study.annotations.filter(
        (pl.col("phase") == "work") & (pl.col("round") == 0) & pl.col("submitted").is_not_null()
    )
    times = handed_in.select("annotator", at=pl.col("submitted").dt.epoch("us") / 1e6)
    return dict(times.group_by("annotator").agg("at").iter_rows())


def _active_seconds_by_annotator(study: Study) -> dict[str, float]:
    return dict(study.annotations.group_by("annotator").agg(pl.col("active_seconds").sum()).iter_rows())


def _participation_stage(
    annotator: Annotator, done: int, of: int, protocol: Protocol, came: bool
) -> ParticipationStage:
    took, test = annotator.qualification, protocol.qualification
    if not done and took and test and took.protocol == protocol.id and not took.passed:
        has_attempts_left = len(took.attempts) < test.attempts
        if not has_attempts_left:
            return "screened-out"
    if done and done >= of:
        return "done"
    return "working" if came or done else "invited"


def _compute_pay(settings: Settings, texts: int, tested: bool, cell: DesignCell | None = None, of: int = 1) -> float:
    """Compute the pay of a person: pay per submitted text, plus base pay after a text or a qualification attempt.

    The pay of a design cell covers all `of` texts of a person. A person who submitted fewer gets a proportional share.
    """
    base = settings.base_pay if texts or tested else 0
    if cell is not None and cell.pay is not None:
        return base + cell.pay * min(1.0, texts / of)
    return base + (settings.price or 0) * texts


def study_cost_so_far(settings: Settings, people: Iterable[Earnings]) -> StudyCost:
    """Return the costs of a study so far: pay, bonuses, platform fees and staff.

    The median pay per hour covers paid people with a known active time.
    """
    every = list(people)
    pay, bonus = sum(person.pay for person in every), sum(person.bonus.amount for person in every)
    rates = [rate for person in every if person.total and (rate := person.per_hour) is not None]
    return StudyCost(
        pay,
        bonus,
        settings.fees * (pay + bonus),
        settings.staff_minutes * settings.staff_rate / 60,
        statistics.median(rates) if rates else None,
    )


# --- minimum pay per hour ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CellHourlyPay:
    """Hourly pay of the people who completed one design cell, and the bonus needed to raise it to the minimum."""

    cell: str
    per_hour: float | None
    """Median pay per hour over people who are not excluded; None when no active time is known."""
    lacking: float
    """Bonus per person that raises the median to the minimum; 0 when no bonus is needed or no minimum is set."""
    people: tuple[Earnings, ...]
    """Recipients of the bonus: all people who completed the cell, excluded or not."""


def cell_hourly_pay(people: Iterable[Earnings], floor: float | None) -> list[CellHourlyPay]:
    """Return the hourly pay in each design cell that at least one person has completed, sorted by cell name."""
    cells: dict[str, list[Earnings]] = {}
    for person in people:
        if person.cell and person.stage == "done":
            cells.setdefault(person.cell, []).append(person)
    return [_build_cell_hourly_pay(cell, cells[cell], floor) for cell in sorted(cells)]


def _build_cell_hourly_pay(cell: str, done: Sequence[Earnings], floor: float | None) -> CellHourlyPay:
    timed = [person for person in done if person.minutes > 0 and not person.excluded]

    def median_with(cents: int) -> float:
        return statistics.median(60 * (person.total + cents / 100) / person.minutes for person in timed)

    if not timed:
        return CellHourlyPay(cell, None, 0, tuple(done))
    per_hour, cents = median_with(0), 0
    if floor is not None and round(per_hour, 2) < floor:
        most = math.ceil(100 * max(floor * person.minutes / 60 - person.total for person in timed))
        cents = bisect.bisect_left(range(most), True, key=lambda amount: median_with(amount) >= floor)
    return CellHourlyPay(cell, per_hour, cents / 100, tuple(done))


def top_up_bonus(bonus: Bonus, lacking: float) -> Bonus:
    """Return a bonus increased by the amount needed to reach the minimum pay."""
    reasons = [bonus.reason, "adjustment for the time spent"]
    return Bonus(round(bonus.amount + lacking, 2), "; ".join(reason for reason in reasons if reason))


# --- files -------------------------------------------------------------------------------------------------------

PayRow = dict[str, object]
"""Row of a pay file. Amounts are floats rounded to the cent, and minutes are rounded to one decimal."""
PAY_COLUMNS = ("worker", "session", "annotator", "status", "texts", "minutes", "pay", "bonus", "reason", "per_hour")
TASK_COLUMNS = ("platform", "place", "session", "worker", "annotator", "task", "texts", "for", "amount")
PROLIFIC_COLUMNS = ("worker", "amount")
MTURK_COLUMNS = ("WorkerId", "AssignmentId", "BonusAmount", "Reason")


def _person_pay_rows(person: Earnings) -> Iterator[tuple[object, ...]]:
    status = f"{person.stage}, excluded" if person.excluded else person.stage
    rate = None if person.per_hour is None else round_amount(person.per_hour)
    yield (
        person.worker, person.session, person.annotator, status, person.texts, round(float(person.minutes), 1),
        round_amount(person.pay), round_amount(person.bonus.amount), person.bonus.reason, rate,
    )  # fmt: skip


def _person_task_rows(person: Earnings) -> Iterator[tuple[object, ...]]:
    """Yield one row for each task that a person finished on the platform, and for each other amount they are owed."""
    who = (person.worker, person.annotator)
    per_text = (person.pay - person.base) / person.texts if person.texts else 0.0
    for task in person.tasks:
        source = task.source
        amount = round_amount(per_text * task.texts)
        yield (source.platform, source.place, source.session, *who, task.number, task.texts, "texts", amount)
    head = (person.platform, person.place, person.session, *who, "")
    if person.unbatched_text_count:
        yield (*head, person.unbatched_text_count, "texts", round_amount(per_text * person.unbatched_text_count))
    if person.base:
        yield (*head, 0, "taking part", round_amount(person.base))
    if person.bonus.amount:
        yield (*head, 0, person.bonus.reason or "bonus", round_amount(person.bonus.amount))


def _person_prolific_rows(person: Earnings) -> Iterator[tuple[object, ...]]:
    if person.bonus_owed > 0 and person.worker:
        yield person.worker, round_amount(person.bonus_owed)


def _person_mturk_rows(person: Earnings) -> Iterator[tuple[object, ...]]:
    if person.bonus_owed > 0 and person.worker:
        yield person.worker, person.session, round_amount(person.bonus_owed), person.bonus_reason


_COLUMNS_AND_ROWS: dict[PayFileFormat, tuple[Sequence[str], Callable[[Earnings], Iterator[tuple[object, ...]]]]] = {
    "pay": (PAY_COLUMNS, _person_pay_rows),
    "tasks": (TASK_COLUMNS, _person_task_rows),
    "prolific": (PROLIFIC_COLUMNS, _person_prolific_rows),
    "mturk": (MTURK_COLUMNS, _person_mturk_rows),
}


def pay_file_rows(form: PayFileFormat, people: Iterable[Earnings]) -> list[PayRow]:
    """Return the rows of a pay file, with amounts as numbers."""
    columns, rows_of = _COLUMNS_AND_ROWS[form]
    return [dict(zip(columns, row, strict=True)) for person in people for row in rows_of(person)]


def round_amount(amount: float) -> float:
    """Round an amount to the cent, half up."""
    return float(format_amount(amount))


def format_amount(amount: float) -> str:
    """Format an amount with two decimals, rounded half up.

    >>> format_amount(0.125), format_amount(7)
    ('0.13', '7.00')
    """
    return str(Decimal(repr(amount)).quantize(Decimal("0.01"), ROUND_HALF_UP))


def escape_formula(cell: str) -> str:
    """Escape a cell that a spreadsheet would read as a formula.

    >>> escape_formula("=1+1"), escape_formula("-5"), escape_formula("fine")
    ("'=1+1", "'-5", 'fine')
    """
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


FILENAME_BY_FORMAT: dict[PayFileFormat, str] = {
    "pay": "pay.csv",
    "tasks": "tasks.csv",
    "prolific": "prolific-bonuses.csv",
    "mturk": "mturk-bonuses.csv",
}
"""File name of each pay file, by format."""


def format_pay_file(form: PayFileFormat, people: Iterable[Earnings]) -> str:
    """Return a pay file as CSV. The file for Prolific has no header, as its upload form requires."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if form != "prolific":
        writer.writerow(_COLUMNS_AND_ROWS[form][0])
    for row in pay_file_rows(form, people):
        cells = [
            f"{value:.{1 if column == 'minutes' else 2}f}"
            if isinstance(value, float)
            else ""
            if value is None
            else str(value)
            for column, value in row.items()
        ]
        writer.writerow([escape_formula(cell) for cell in cells])
    return out.getvalue()
