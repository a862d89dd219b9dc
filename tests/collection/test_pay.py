"""Tests of earnings, study costs and pay files."""

from __future__ import annotations

import csv
import io
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.collection import pay
from finecomb.collection.annotator_meta import Bonus
from finecomb.collection.arrivals import Arrival, ArrivalSource
from finecomb.collection.pay import (
    Earnings,
    compute_earnings,
    escape_formula,
    format_pay_file,
    study_cost_so_far,
)
from finecomb.core.records import (
    Attempt,
    QualificationRecord,
    Settings,
)
from tests.collection.rating_studies import PRICED_SETTINGS, SCARECROW, TURING, make_rating, make_rating_study


def test_pay_is_for_texts_handed_in_and_for_taking_part() -> None:
    draft = make_rating(5).model_copy(update={"id": "draft", "status": "draft", "active_seconds": None})
    found = compute_earnings(
        make_rating_study(make_rating(0), make_rating(1), draft, settings=PRICED_SETTINGS),
        [Arrival("b", 0, ArrivalSource())],
        TURING,
    )
    a, b = found
    assert (a.stage, a.texts, a.minutes, a.pay, a.per_hour) == ("done", 2, 2, 2.0, 60.0)
    assert (b.stage, b.texts, b.pay, b.per_hour) == ("working", 0, 0, None)


def test_who_does_not_pass_is_paid_for_taking_part() -> None:
    failed = QualificationRecord(protocol=SCARECROW.id, score=10, passed=False, attempts=(Attempt(round=0, score=10),))
    (one, _) = compute_earnings(make_rating_study(settings=PRICED_SETTINGS, qualification=failed), [], SCARECROW)
    assert SCARECROW.qualification is not None
    assert SCARECROW.qualification.attempts == 1
    assert (one.stage, one.pay) == ("screened-out", 1)
    (other, _) = compute_earnings(
        make_rating_study(settings=PRICED_SETTINGS, qualification=failed), [], TURING
    )  # qualification of another protocol
    assert (other.stage, other.pay) == ("invited", 0)


def test_who_passes_and_finds_no_text_left_is_paid_for_taking_part() -> None:
    passed = QualificationRecord(protocol=SCARECROW.id, score=95, passed=True, attempts=(Attempt(round=0, score=95),))
    (one, _) = compute_earnings(
        make_rating_study(settings=PRICED_SETTINGS, qualification=passed), [Arrival("a", 0, ArrivalSource())], SCARECROW
    )
    assert (one.stage, one.texts, one.pay) == ("working", 0, 1)


def test_time_on_pages_counts() -> None:
    steps = [{"step": "survey", "protocol": TURING.id, "seconds": 60}, {"step": "consent", "protocol": TURING.id}]
    (one, _) = compute_earnings(make_rating_study(make_rating(0), meta={"steps": steps}), [], TURING)
    assert one.minutes == 2


def make_earnings(who: str = "a", worker: str = "w1", amount: float = 0, reason: str = "", pay: float = 2) -> Earnings:
    return Earnings(who, worker, "s1", "done", False, 2, 30.0, pay, Bonus(amount, reason))


def test_cost_is_pay_and_bonus_with_fees_and_staff() -> None:
    found = study_cost_so_far(
        PRICED_SETTINGS,
        [make_earnings(amount=1, reason="well done"), make_earnings("b", pay=4), make_earnings("c", pay=0)],
    )
    assert (found.pay, found.bonus, found.staff) == (6, 1, 60)
    assert found.fees == pytest.approx(1.4)
    assert found.total == pytest.approx(68.4)
    assert found.per_hour == pytest.approx(7)  # median of 6 and 8; unpaid people do not count
    assert study_cost_so_far(Settings(), []).per_hour is None


def make_timed_earnings(
    minutes: float, pay: float = 2, cell: str = "c", excluded: bool = False, bonus: float = 0
) -> Earnings:
    return Earnings("a", "w", "s", "done", excluded, 2, minutes, pay, Bonus(bonus, "r" if bonus else ""), cell=cell)


def test_the_bonus_that_brings_the_median_of_a_cell_up_to_the_floor() -> None:
    people = [
        make_timed_earnings(10),
        make_timed_earnings(8),
        make_timed_earnings(5),
        make_timed_earnings(60, excluded=True),
        make_timed_earnings(5, cell="quick"),
        make_timed_earnings(9, cell=""),
    ]
    slow, quick = pay.cell_hourly_pay(people, 16)
    assert (slow.cell, slow.lacking, len(slow.people)) == ("c", 0.14, 4)
    assert slow.per_hour == pytest.approx(15)
    assert (quick.cell, quick.lacking) == ("quick", 0)
    assert [row.lacking for row in pay.cell_hourly_pay(people, None)] == [0, 0]
    assert pay.cell_hourly_pay([make_timed_earnings(0)], 16)[0].per_hour is None
    assert pay.cell_hourly_pay([make_timed_earnings(5, cell="")], 16) == []


@given(
    st.lists(st.tuples(st.floats(0.5, 200), st.floats(0, 50)), min_size=1, max_size=9),
    st.floats(1, 40).map(lambda value: round(value, 2)),
)
def test_the_bonus_is_the_least_in_cents_that_is_enough(work: list[tuple[float, float]], floor: float) -> None:
    (row,) = pay.cell_hourly_pay([make_timed_earnings(minutes, amount) for minutes, amount in work], floor)

    def median_with(bonus: float) -> float:
        return statistics.median(60 * (amount + bonus) / minutes for minutes, amount in work)

    if row.lacking:
        assert median_with(row.lacking) >= floor - 1e-9
        assert median_with(row.lacking - 0.01) < floor
    else:
        assert median_with(0) >= floor - 0.005


def test_what_lacks_to_the_floor_comes_on_top_of_a_bonus() -> None:
    assert pay.top_up_bonus(Bonus(), 0.5) == Bonus(0.5, "adjustment for the time spent")
    assert pay.top_up_bonus(Bonus(1, "well done"), 0.5) == Bonus(1.5, "well done; adjustment for the time spent")


def test_files_for_platforms() -> None:
    everybody = [
        make_earnings(amount=1.255, reason="=careful, work"),
        make_earnings("b", "w2"),
        make_earnings("c", "", amount=3),
    ]
    assert format_pay_file("prolific", everybody) == "w1,1.26\n"
    assert format_pay_file("mturk", everybody).splitlines()[1] == 'w1,s1,1.26,"\'=careful, work"'
    rows = list(csv.DictReader(io.StringIO(format_pay_file("pay", everybody))))
    assert rows[0] == {
        "worker": "w1",
        "session": "s1",
        "annotator": "a",
        "status": "done",
        "texts": "2",
        "minutes": "30.0",
        "pay": "2.00",
        "bonus": "1.26",
        "reason": "'=careful, work",
        "per_hour": "6.51",
    }


@given(st.text())
def test_no_cell_is_a_formula(cell: str) -> None:
    assert escape_formula(cell)[:1] not in ("=", "+", "-", "@", "\t", "\r") or not cell
    assert escape_formula(cell).endswith(cell)


def test_money_is_rounded_half_up() -> None:
    assert [pay.format_amount(each) for each in (0.005, 0.015, 1.005, 2)] == ["0.01", "0.02", "1.01", "2.00"]
