"""Power of planned tests, estimated by repeating a trial run with new simulated annotators."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping

import numpy as np

from finecomb.annotators.simulated.resimulation import resimulate_study
from finecomb.annotators.simulated.simulated_people import CrowdTraits
from finecomb.core.results import Finding
from finecomb.core.study import Study
from finecomb.reporting.tables import Row, finding_rows
from finecomb.statistics.measures.mark_audit import wilson_interval

_SIGNIFICANCE_LEVEL = 0.05
_IGNORED_COLUMNS = ("df", "why", "signature")


def estimate_planned_power(
    study: Study,
    tests: Mapping[str, Callable[[Study], list[Finding]]],
    traits: CrowdTraits,
    seed: int,
    runs: int,
    watch: Callable[[int], None] = lambda count: None,
) -> list[Row]:
    """Estimate how often each row of each planned test has p < .05 with new simulated annotators of the same skill.

    `tests` maps names to test functions. `watch` receives the number of newly completed runs.
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
            # SciPy warns whenever the few simulated annotators all give the same answer
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                findings = test(repeated)
            for row in finding_rows(findings)[0]:
                if isinstance(p := row.get("p"), int | float) and math.isfinite(p):
                    words = [
                        value for key, value in row.items() if isinstance(value, str) and key not in _IGNORED_COLUMNS
                    ]
                    hits.setdefault((name, " ".join(words)), []).append(float(p) < _SIGNIFICANCE_LEVEL)
        watch(1)
    rows: list[Row] = []
    for (name, row_name), outcomes in hits.items():
        share = sum(outcomes) / len(outcomes)
        low, high = wilson_interval(np.array([share]), np.array([float(len(outcomes))]))
        bounds = {"low": round(float(low[0]), 3), "high": round(float(high[0]), 3)}
        rows.append({"planned": name, "row": row_name, "power": round(share, 3), **bounds, "runs": len(outcomes)})
    return rows
