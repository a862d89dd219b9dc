"""Display of study problems, grouped by type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from finecomb.core.errors import Problem, message_template
from finecomb.reporting.tables import Row


def problem_row(problem: Problem) -> Row:
    """Return a problem as a table row."""
    where = problem.where or problem.kind
    return {"level": problem.level, "where": where, "id": problem.id, "message": problem.message}


def grouped_problem_lines(problems: Sequence[Problem], max_per_type: int) -> Iterator[tuple[str, int]]:
    """Yield at most `max_per_type` lines per type, each with the number of similar problems omitted after that line."""
    totals = Counter(map(_problem_type, problems))
    counts: Counter[tuple[str, str]] = Counter()
    for problem in problems:
        kind = _problem_type(problem)
        counts[kind] += 1
        if counts[kind] <= max_per_type:
            yield str(problem), totals[kind] - max_per_type if counts[kind] == max_per_type else 0


def _problem_type(problem: Problem) -> tuple[str, str]:
    return problem.level, message_template(problem)
