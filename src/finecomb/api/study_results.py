"""Result classes of the study functions: created studies, problems, counts, protocols and schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

from finecomb import formats
from finecomb.core.errors import ParameterError, Problem, did_you_mean
from finecomb.core.protocol import Protocol
from finecomb.core.results import Result, ResultRow, Table
from finecomb.core.study import Study
from finecomb.formats.study_problems import CheckedStudy
from finecomb.reporting.problem_tables import problem_row

AnyPath: TypeAlias = str | PathLike[str]


class StudyResult(Table):
    """A study that a function created: the study, its counts as the only row, and notes."""

    def __init__(
        self,
        title: str,
        study: Study | None = None,
        *,
        path: Path | None = None,
        format: str = "",
        rows: Iterable[Mapping[str, object]] = (),
        notes: Iterable[str] = (),
    ) -> None:
        super().__init__(rows or ([count_records(study)] if study else [{"path": str(path)}]), title=title, notes=notes)
        self._study, self.path, self._format = study, path, format

    @property
    def study(self) -> Study:
        """The study; if it was written as a stream, it is read on first use."""
        if self._study is None:
            assert self.path is not None
            self._study = formats.read(self.path, self._format)
        return self._study

    def write(self, path: AnyPath, format: str = "", force: bool = False) -> list[str]:
        """Write the study in any format; return notes, for example on content that the format cannot hold."""
        return formats.write(self.study, fspath(path), format, force)


class CreatedStudy(StudyResult):
    """A new study, with the announcement for its annotators."""

    announcement: str
    """Steps, duration and pay of annotators, in one line."""


def count_records(study: Study) -> dict[str, int]:
    """Count the texts, annotators, annotations and marks of a study."""
    frames = {"texts": study.documents, "annotators": study.annotators, "annotations": study.annotations}
    return {name: len(frame) for name, frame in frames.items()} | {"marks": len(study.marks)}


class Problems(Result, list[Problem]):
    """The problems of a study: a list of `Problem` that is also a table."""

    title = "Problems"

    def __init__(self, checked: CheckedStudy) -> None:
        super().__init__(checked.problems)
        self.notes, self.study = checked.notes, checked.study

    @property
    def errors(self) -> list[Problem]:
        """Problems that make the study unusable."""
        return [problem for problem in self if problem.level == "error"]

    @property
    def warnings(self) -> list[Problem]:
        """Problems that leave the study usable."""
        return [problem for problem in self if problem.level == "warning"]

    def rows(self) -> list[ResultRow]:
        """Return one row per problem: level, where, id and message."""
        return [ResultRow(problem_row(problem)) for problem in self]

    def __repr__(self) -> str:
        return Result.__repr__(self) if self else "Problems\n(none)"


class StudyCounts(Result):
    """Counts of a study: totals, and tables by label, group and annotator."""

    def __init__(self, title: str, totals: Mapping[str, int], tables: Mapping[str, Table]) -> None:
        self.title, self.totals, self.tables = title, dict(totals), dict(tables)

    def rows(self) -> list[ResultRow]:
        """Return the totals and the rows of all tables; the column `table` names the table of a row."""
        counted = [ResultRow(table=name, **row) for name, table in self.tables.items() for row in table]
        return [ResultRow(table="totals", **self.totals), *counted]

    def __getitem__(self, name: str) -> Table:
        """Return one of the tables: labels, groups, texts, work or annotators."""
        if name not in self.tables:
            raise ParameterError(f"unknown table {name!r}{did_you_mean(name, self.tables)}")
        return self.tables[name]

    def __repr__(self) -> str:
        totals = [f"  {count:>7,} {name}" for name, count in list(self.totals.items())[:10]]
        return "\n".join([self.title, *totals, f"tables: {', '.join(self.tables)}"])

    def _repr_html_(self) -> str:
        totals = Table([{"": name, "count": count} for name, count in self.totals.items()], title=self.title)
        return "".join(table._repr_html_() for table in (totals, *self.tables.values()) if len(table))


class ProtocolDetails(Result):
    """A protocol with its labels as rows."""

    def __init__(self, protocol: Protocol, notes: Iterable[str] = ()) -> None:
        self.protocol, self.notes = protocol, tuple(notes)
        self.title = f"{protocol.title} ({protocol.id}): {protocol.summary}"[:300]

    def rows(self) -> list[ResultRow]:
        """Return one row per label: name, title, group and gloss."""
        return [
            ResultRow(name=label.name, title=label.title, group=label.group or "", gloss=label.gloss)
            for label in self.protocol.labels
        ]


class JsonSchema(dict[str, Any]):
    """A JSON schema: a dictionary with a short `repr`."""

    def __repr__(self) -> str:
        return f"JsonSchema({self.get('title')}: {', '.join(self.get('properties', {}))})"

    def _repr_html_(self) -> str:
        return f"<code>{self!r}</code>"
