"""The power of planned tests: repeated with other simulated people in the place of those of a trial run."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from finecomb.annotators.simulated.resimulation import resimulate_study
from finecomb.annotators.simulated.simulated_people import CrowdTraits
from finecomb.core.estimate import Finding
from finecomb.core.study import Study
from finecomb.reporting.tables import Row, finding_rows
from finecomb.statistics.measures.mark_audit import wilson_interval

_ALPHA = 0.05
_IGNORED_COLUMNS = ("df", "why", "signature")


def planned_power(
    study: Study,
    tests: Mapping[str, Callable[[Study], list[Finding]]],
    traits: CrowdTraits,
    seed: int,
    runs: int,
    watch: Callable[[int], None] = lambda count: None,
) -> list[Row]:
    """Return how often each row of each test had p below .05 when other people with the same skill did the work.

    `tests` has the function of each test by its name. `watch` is told how many further repetitions are done.
    """
    protocol = study.protocols[study.settings.protocols[0]] if study.settings.protocols else study.protocol()
    hits: dict[tuple[str, str], list[bool]] = {}
    for run in range(runs):
        with_p = {name for name, _ in hits}
        running = {name: test for name, test in tests.items() if run == 0 or name in with_p}
        if not running:
            break
        repeated = Study.from_items(resimulate_study(study, protocol, traits, seed, run))
        for name, test in running.items():
            with (
                warnings.catch_warnings()
            ):  # a few simulated people may answer all alike, of which SciPy warns each time
                warnings.simplefilter("ignore", RuntimeWarning)
                findings = test(repeated)
            for row in finding_rows(findings)[0]:
                if isinstance(p := row.get("p"), int | float) and math.isfinite(p):
                    hits.setdefault((name, _row_name(row)), []).append(float(p) < _ALPHA)
        watch(1)
    return [_power_row(test, name, found) for (test, name), found in hits.items()]


def _row_name(row: Row) -> str:
    """Return what tells a row from the others of its table: everything in it that is not a number."""
    return " ".join(str(value) for key, value in row.items() if isinstance(value, str) and key not in _IGNORED_COLUMNS)


def _power_row(test: str, name: str, found: Sequence[bool]) -> Row:
    share = sum(found) / len(found)
    low, high = wilson_interval(np.array([share]), np.array([float(len(found))]))
    bounds = {"low": round(float(low[0]), 3), "high": round(float(high[0]), 3)}
    return {"planned": test, "row": name, "power": round(share, 3), **bounds, "runs": len(found)}
