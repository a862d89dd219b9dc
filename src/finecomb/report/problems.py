"""Problems for people: errors each, warnings that are alike counted together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from finecomb.core.errors import Problem
from finecomb.report.tables import Row

_PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")


def problem_row(problem: Problem) -> Row:
    """A problem as a row of a table."""
    where = problem.where or problem.kind
    return {"level": problem.level, "where": where, "id": problem.id, "message": problem.message}


def problem_lines(problems: Sequence[Problem], most: int) -> Iterator[tuple[str, int]]:
    """Each line to print and how many like it are left out after it: errors all, of each kind of warning `most`."""
    totals = Counter(_kind(problem) for problem in problems)
    counts: Counter[str] = Counter()
    for problem in problems:
        kind = _kind(problem)
        counts[kind] += 1
        if problem.level == "error":
            yield str(problem), 0
        elif counts[kind] <= most:
            yield str(problem), totals[kind] - most if counts[kind] == most else 0


def _kind(problem: Problem) -> str:
    """What is left of a message without names and numbers."""
    return _PARTICULAR.sub("", problem.message)
