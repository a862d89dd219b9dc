"""What people earn and what a study costs: pay for texts handed in, for taking part, bonuses, fees and staff.

Pay is for work that was handed in, also when it was set aside later: whether somebody is paid is not for a statistic to
decide. Worker ids come from `arrivals` and go into the files that platforms ask for, never into a record.
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
"""`invited` has done nothing yet; whether somebody is excluded is said beside it."""
PayFileFormat = Literal["pay", "tasks", "prolific", "mturk"]


@dataclass(frozen=True, slots=True)
class Earnings:
    """What one person did and earns."""

    annotator: str
    worker: str
    session: str
    """The platform's latest for this person."""
    stage: ParticipationStage
    excluded: bool
    texts: int
    """Handed in."""
    minutes: float
    """Of active time on everything, from the survey to the last text."""
    pay: float
    bonus: Bonus
    cell: str = ""
    """Of the study's design; empty without one."""
    base: float = 0
    """The part of the pay that is for taking part."""
    platform: str = ""
    place: str = ""
    """The platform's latest id of the study or HIT."""
    tasks: tuple[FinishedBatch, ...] = ()
    """Finished tasks on the platform, where the study is cut into such."""
    rewarded: float | None = None
    """What the platform itself pays for finished tasks; None where it pays everything but the bonus."""

    @property
    def total(self) -> float:
        """Pay and bonus."""
        return self.pay + self.bonus.amount

    @property
    def unbatched_text_count(self) -> int:
        """Texts handed in that belong to no finished task."""
        return self.texts - sum(task.texts for task in self.tasks)

    @property
    def bonus_owed(self) -> float:
        """What is to be paid as a bonus: everything beyond what the platform itself pays."""
        return self.bonus.amount if self.rewarded is None else max(0.0, round(self.total - self.rewarded, 9))

    @property
    def bonus_reason(self) -> str:
        """Why a bonus is owed, in words for its receiver."""
        parts = [self.bonus.reason] if self.bonus.amount else []
        if self.rewarded is not None and self.pay > self.rewarded:
            parts += ["taking part"] if self.base else []
            parts += [f"{self.unbatched_text_count} more texts"] if self.unbatched_text_count and self.tasks else []
        return "; ".join(parts) or ("the rest of the pay" if self.bonus_owed else "")

    @property
    def per_hour(self) -> float | None:
        """Pay and bonus over active time; None where no time is known."""
        return 60 * self.total / self.minutes if self.minutes > 0 else None


@dataclass(frozen=True, slots=True)
class StudyCost:
    """What a study costs so far."""

    pay: float
    bonus: float
    fees: float
    staff: float
    per_hour: float | None
    """Median over people."""

    @property
    def total(self) -> float:
        """All of it."""
        return self.pay + self.bonus + self.fees + self.staff


def compute_earnings(study: Study, arrivals: Sequence[Arrival], protocol: Protocol) -> list[Earnings]:
    """Everybody, in the study's order; `protocol` is the one in force."""
    came: dict[str, list[Arrival]] = {}
    for arrival in arrivals:
        came.setdefault(arrival.annotator, []).append(arrival)
    texts, seconds, times = (
        _text_count_by_annotator(study),
        _active_seconds_by_annotator(study),
        _submission_times_by_annotator(study),
    )
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
        tested = _has_attempted_test(person, protocol)
        source = last.source if last else ArrivalSource()
        tasks = _finished_platform_batches(study.settings, came.get(person.id, ()), times.get(person.id, ()))
        people.append(
            Earnings(
                person.id,
                source.worker,
                source.session,
                stage,
                person.excluded is not None,
                done,
                (seconds.get(person.id, 0) + progress.step_seconds) / 60,
                _compute_pay(study.settings, done, tested, cell, of),
                progress.bonus,
                cell=person.cell,
                base=study.settings.base_pay if done or tested else 0,
                platform=source.platform,
                place=source.place,
                tasks=tasks,
                rewarded=_platform_reward(study.settings, len(tasks), stage == "done"),
            )
        )
    return people


def earnings_from_records(study: Study) -> list[Earnings]:
    """Return what everybody earns by the records of a study alone, which hold no worker ids."""
    protocol = study.protocols[study.settings.protocols[0]] if study.settings.protocols else study.protocol()
    return compute_earnings(study, (), protocol)


def _finished_platform_batches(
    settings: Settings, arrivals: Sequence[Arrival], times: Sequence[float]
) -> tuple[FinishedBatch, ...]:
    size = settings.recruitment.batch
    return tuple(finished_batches(arrivals, times, size)) if size and arrivals else ()


def _platform_reward(settings: Settings, tasks: int, is_done: bool) -> float | None:
    """What the platform itself pays somebody: its reward for each finished task, or for taking part to the end."""
    recruitment = settings.recruitment
    if recruitment.batch is not None:
        reward = recruitment.reward if recruitment.reward is not None else (settings.price or 0) * recruitment.batch
        return reward * tasks
    return None if recruitment.reward is None else recruitment.reward * is_done


def _text_count_by_annotator(study: Study) -> dict[str, int]:
    handed_in = study.annotations.filter((pl.col("phase") == "work") & (pl.col("status") != "draft"))
    return dict(handed_in.group_by("annotator").len().iter_rows())


def _submission_times_by_annotator(study: Study) -> dict[str, list[float]]:
    """When each person handed texts in, in seconds since 1970."""
    handed_in = study.annotations.filter(
        (pl.col("phase") == "work") & (pl.col("round") == 0) & pl.col("submitted").is_not_null()
    )
    times = handed_in.select("annotator", at=pl.col("submitted").dt.epoch("us") / 1e6)
    return dict(times.group_by("annotator").agg("at").iter_rows())


def _active_seconds_by_annotator(study: Study) -> dict[str, float]:
    return dict(study.annotations.group_by("annotator").agg(pl.col("active_seconds").sum()).iter_rows())


def _participation_stage(one: Annotator, done: int, of: int, protocol: Protocol, came: bool) -> ParticipationStage:
    if not done and _is_screened_out(one, protocol):
        return "screened-out"
    if done and done >= of:
        return "done"
    return "working" if came or done else "invited"


def _is_screened_out(one: Annotator, protocol: Protocol) -> bool:
    """Whether somebody did not pass and has no attempt left."""
    took, test = one.qualification, protocol.qualification
    if took is None or test is None or took.protocol != protocol.id or took.passed:
        return False
    return len(took.attempts) >= test.attempts


def _has_attempted_test(one: Annotator, protocol: Protocol) -> bool:
    """Whether somebody went through the qualification, also when there was no text left for them then."""
    took = one.qualification
    return took is not None and took.protocol == protocol.id and bool(took.attempts)


def _compute_pay(settings: Settings, texts: int, tested: bool, cell: DesignCell | None = None, of: int = 1) -> float:
    """Every text handed in is paid, and taking part to who handed in one or went through the qualification.

    The pay of a cell of the design is for all `of` texts of a person; who handed in some of them gets that share.
    """
    base = settings.base_pay if texts or tested else 0
    if cell is not None and cell.pay is not None:
        return base + cell.pay * min(1.0, texts / of)
    return base + (settings.price or 0) * texts


def study_cost(settings: Settings, people: Iterable[Earnings]) -> StudyCost:
    """Pay and bonus, the platform's share of both, and staff.

    Median pay per hour is over those whose active time is known and who are paid at all.
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


# --- the floor ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CellHourlyPay:
    """What the people of one cell of a design who are done were paid for an hour, and what they lack to the floor."""

    cell: str
    per_hour: float | None
    """Median over those who were not excluded; None where no time is known."""
    lacking: float
    """The bonus for each of them that brings the median up to the floor; 0 where it is there or there is no floor."""
    people: tuple[Earnings, ...]
    """Who would get it: everybody who is done, excluded or not."""


def cell_hourly_pay(people: Iterable[Earnings], floor: float | None) -> list[CellHourlyPay]:
    """The pay of each cell in which somebody is done, by name."""
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
    """A bonus with what lacked to the floor on top."""
    reasons = [bonus.reason, "pay for the time that it took"]
    return Bonus(round(bonus.amount + lacking, 2), "; ".join(reason for reason in reasons if reason))


# --- files -------------------------------------------------------------------------------------------------------

PayRow = dict[str, object]
"""A line of a file; amounts are floats to the cent, and other numbers as a spreadsheet shows them."""
PAY_COLUMNS = ("worker", "session", "annotator", "status", "texts", "minutes", "pay", "bonus", "reason", "per_hour")
TASK_COLUMNS = ("platform", "place", "session", "worker", "annotator", "task", "texts", "for", "amount")
PROLIFIC_COLUMNS = ("worker", "amount")
MTURK_COLUMNS = ("WorkerId", "AssignmentId", "BonusAmount", "Reason")


def _person_rows(person: Earnings) -> Iterator[tuple[object, ...]]:
    status = f"{person.stage}, excluded" if person.excluded else person.stage
    rate = None if person.per_hour is None else round_amount(person.per_hour)
    yield (
        person.worker, person.session, person.annotator, status, person.texts, round(float(person.minutes), 1),
        round_amount(person.pay), round_amount(person.bonus.amount), person.bonus.reason, rate,
    )  # fmt: skip


def _ledger_rows(person: Earnings) -> Iterator[tuple[object, ...]]:
    """Yield each finished task on the platform, and what a person is owed for anything else."""
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


def _prolific_rows(person: Earnings) -> Iterator[tuple[object, ...]]:
    if person.bonus_owed > 0 and person.worker:
        yield person.worker, round_amount(person.bonus_owed)


def _mturk_rows(person: Earnings) -> Iterator[tuple[object, ...]]:
    if person.bonus_owed > 0 and person.worker:
        yield person.worker, person.session, round_amount(person.bonus_owed), person.bonus_reason


_COLUMNS_AND_ROWS: dict[PayFileFormat, tuple[Sequence[str], Callable[[Earnings], Iterator[tuple[object, ...]]]]] = {
    "pay": (PAY_COLUMNS, _person_rows),
    "tasks": (TASK_COLUMNS, _ledger_rows),
    "prolific": (PROLIFIC_COLUMNS, _prolific_rows),
    "mturk": (MTURK_COLUMNS, _mturk_rows),
}


def pay_rows(form: PayFileFormat, people: Iterable[Earnings]) -> list[PayRow]:
    """Return the lines of one of the files, with numbers as numbers."""
    columns, rows_of = _COLUMNS_AND_ROWS[form]
    return [dict(zip(columns, row, strict=True)) for person in people for row in rows_of(person)]


def round_amount(amount: float) -> float:
    """Return an amount to the cent, rounded half up."""
    return float(format_amount(amount))


def format_amount(amount: float) -> str:
    """To the cent, rounded half up.

    >>> format_amount(0.125), format_amount(7)
    ('0.13', '7.00')
    """
    return str(Decimal(repr(amount)).quantize(Decimal("0.01"), ROUND_HALF_UP))


def _cell_text(column: str, value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}" if column == "minutes" else f"{value:.2f}"
    return "" if value is None else str(value)


def escape_formula(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula.

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
"""The files, by what they are called."""


def format_pay_file(form: PayFileFormat, people: Iterable[Earnings]) -> str:
    """Return one of the files as text; that for Prolific has no header, as its form wants it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if form != "prolific":
        writer.writerow(_COLUMNS_AND_ROWS[form][0])
    for row in pay_rows(form, people):
        writer.writerow([escape_formula(_cell_text(column, value)) for column, value in row.items()])
    return out.getvalue()
