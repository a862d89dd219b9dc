"""Gamma and comparisons of systems by an engine: whoever works, and after whatever end, the same numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from finecomb.annotators.simulated.demo_study import build_demo_study
from finecomb.core.errors import FinecombError
from finecomb.core.results import Findings
from finecomb.core.study import Study
from finecomb.engine.engines import LostItem
from finecomb.engine.partitions import Executor
from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.agreement.gamma.text_gamma import GammaSettings
from finecomb.statistics.comparisons.system_comparison import compare_systems_pairwise
from finecomb.statistics.selection.view import View, view
from tests.engine.faulty_work import InterruptedEngine, PicklingEngine

Run = Callable[..., Findings]


@functools.cache
def demo(seed: int = 0) -> View:
    return view(Study.from_items(build_demo_study(2, seed)))


def gammas(spread: Executor | None, study: View | None = None, seed: int = 0, **settings: Any) -> Findings:
    gamma = GammaSettings(**{"samples": 2, **settings})
    return agree(study or demo(), ["gamma", "gamma-texts", "gamma-k"], gamma=gamma, draws=20, seed=seed, spread=spread)


def comparisons(spread: Executor | None, study: View | None = None, seed: int = 0, **options: Any) -> Findings:
    choices = {"statistic": "count", "labels": ["any", "redundant"], "draws": 50, **options}
    return compare_systems_pairwise(study or demo(), seed=seed, spread=spread, **choices)


RUNS: Mapping[str, Run] = {"agree": gammas, "test": comparisons}
CHANGES: Mapping[str, list[dict[str, Any]]] = {
    "agree": [{"samples": 3}, {"alpha": 2.0}, {"categories": "groups"}, {"seed": 1}],
    "test": [{"draws": 60}, {"pairing": "no"}, {"seed": 1}],
}


def numbers(findings: Findings) -> str:
    """All that is in findings, to the last digit."""
    return repr(findings.rows())


@functools.cache
def alone(name: str) -> str:
    return numbers(RUNS[name](None))


@pytest.mark.parametrize("name", RUNS)
def test_it_does_not_matter_in_which_order_parts_are_done(name: str) -> None:
    assert numbers(RUNS[name](Executor(PicklingEngine()))) == alone(name)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_was_cut_off_does_only_what_is_left(name: str, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        RUNS[name](Executor.from_folder(InterruptedEngine(3), tmp_path / "p"))
    assert len(list((tmp_path / "p").glob("0*"))) == 3
    engine = InterruptedEngine()
    spread = Executor.from_folder(engine, tmp_path / "p")
    assert numbers(RUNS[name](spread)) == alone(name)
    assert spread.reused_row_count == 3
    third = InterruptedEngine()
    assert numbers(RUNS[name](Executor.from_folder(third, tmp_path / "p"))) == alone(name)
    assert not third.items
    assert len(list((tmp_path / "p").glob("0*"))) == 3 + len(engine.items)


@pytest.mark.parametrize(("name", "change"), [(name, change) for name in RUNS for change in CHANGES[name]])
def test_what_changed_in_between_is_done_anew(name: str, change: dict[str, Any], tmp_path: Path) -> None:
    RUNS[name](Executor.from_folder(InterruptedEngine(), tmp_path / "p"))
    spread = Executor.from_folder(InterruptedEngine(), tmp_path / "p")
    assert numbers(RUNS[name](spread, **change)) == numbers(RUNS[name](None, **change))
    assert spread.reused_row_count == 0


@pytest.mark.parametrize("name", RUNS)
def test_another_study_is_done_anew(name: str, tmp_path: Path) -> None:
    RUNS[name](Executor.from_folder(InterruptedEngine(), tmp_path / "p"))
    other = demo(1)
    assert numbers(RUNS[name](Executor.from_folder(InterruptedEngine(), tmp_path / "p"), other)) == numbers(
        RUNS[name](None, other)
    )


class LosingEngine:
    """Loses every item."""

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        yield from (LostItem("died") for _ in items)


@pytest.mark.parametrize(
    ("name", "message"),
    [("agree", "gamma cannot be computed for text '.*': died"), ("test", "cannot be compared: died")],
)
def test_a_number_without_a_part_that_nobody_survives_would_be_another_number(name: str, message: str) -> None:
    with pytest.raises(FinecombError, match=message):
        RUNS[name](Executor(LosingEngine()))
