"""Planned tests: lines under `planned` in study.yaml that begin with `test`."""

from __future__ import annotations

import argparse
import shlex
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from finecomb.api.parameters import SELECTION, build_filters, literal_choices
from finecomb.core.errors import FinecombError, param
from finecomb.core.options import OptionValues, merge_option_specs, reject_unknown_options
from finecomb.core.results import Finding
from finecomb.core.study import Study
from finecomb.core.study_checks import planned_table_problem
from finecomb.statistics.comparisons.registry import TESTS
from finecomb.statistics.selection.view import View, view

_SHORT_FLAGS = {"protocol": "-p", "annotator": "-a"}
_REPEATED = ("label", "drop", "where", "merge", "annotator", "kind")
_IGNORED = ("--engine", "--workers", "--partitions", "--from", "--format", "--table-out", "--plot")
"""Flags that choose the engine or the output and change no number."""
_IGNORED_SWITCHES = (("--grid",), ("--json",), ("--verbose", "-v"))


@dataclass(frozen=True)
class PlannedTest:
    """A planned test, parsed from its line in study.yaml."""

    line: str
    what: str
    options: Mapping[str, Any]
    """Options of the test that the line sets, by name."""
    selection: Mapping[str, Any]
    """Keywords that select annotations."""

    def run(self, study: Study, resample: bool = True) -> list[Finding]:
        """Run the test on a study; without `resample`, omit intervals that p does not depend on."""
        row = TESTS[self.what]
        try:
            choices = {name: test.options for name, test in TESTS.items()}
            reject_unknown_options(self.options, {self.what: row.options}, choices)
            if self.selection and row.reads is not View:
                raise FinecombError(f"{param(next(iter(self.selection)))} does not apply to {self.what}")
            part = view(study, build_filters(self.selection)) if row.reads is View else study
            if isinstance(part, View) and part.study.annotations.is_empty():
                raise FinecombError("the study has no annotations to test")
            no_draws = {"draws": 0} if self.what == "human-or-machine" and not resample else {}
            options: Any = OptionValues({**self.options, **no_draws}).build_options(row.options)
            return row.run(part, options)
        except FinecombError as error:
            raise FinecombError(
                f"planned {self.line!r}: {error.format_message(param)}"
            ) from None  # keeps parameters marked, so that the caller can format them


class _LineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise FinecombError(message)


def parse_planned_test(line: str) -> PlannedTest | None:
    """Parse a line of `planned`; return None for a line that is not a test.

    >>> parse_planned_test("test --what scores --by condition").options
    {'by': ('condition',)}
    """
    if problem := planned_table_problem(line):
        raise FinecombError(problem)
    command, *words = shlex.split(line)
    if command != "test":
        return None
    specs = merge_option_specs(row.options for row in TESTS.values())
    try:
        parser = _LineParser(add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
        parser.add_argument("--what", "-w", choices=tuple(TESTS), default="systems")
        for name in SELECTION:
            flags = [f"--{name.replace('_', '-')}", *([_SHORT_FLAGS[name]] if name in _SHORT_FLAGS else [])]
            parser.add_argument(*flags, dest=name, action="append" if name in _REPEATED else "store")
        for spec in specs.values():
            flags = list(spec.flags or [spec.flag])
            if spec.kind is bool:
                parser.add_argument(*flags, dest=spec.name, action=argparse.BooleanOptionalAction)
            else:
                kind: Any = int if spec.kind is int else str
                parser.add_argument(*flags, dest=spec.name, type=kind, choices=literal_choices(spec.kind) or None)
        for flag in _IGNORED:
            parser.add_argument(flag, dest="ignored")
        for switch in _IGNORED_SWITCHES:
            parser.add_argument(*switch, dest="ignored", action="store_true")
        values = vars(parser.parse_args(words))
    except FinecombError as error:
        raise FinecombError(f"planned {line!r}: {error}") from None
    options = {name: value for name, value in values.items() if name in specs}
    for name, value in options.items():
        if typing.get_origin(specs[name].kind) is tuple:  # several values are comma-separated
            options[name] = tuple(word.strip() for word in value.split(",") if word.strip())
    selection = {name: value for name, value in values.items() if name in SELECTION}
    return PlannedTest(line, values["what"], options, selection)


def parse_planned_tests(planned: Sequence[str]) -> list[PlannedTest]:
    """Parse the tests among planned tables; raise an error for an invalid line."""
    return [test for test in map(parse_planned_test, planned) if test is not None]
