"""Commands about how far numbers can be trusted: agree and test. Their flags are the options of registries' rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from finecomb.api.statistics import agree as fc_agree
from finecomb.cli.derived import ApiCall, from_api
from finecomb.cli.filters import FilterOptions
from finecomb.cli.options import NoOptions, with_options
from finecomb.cli.shared import (
    AsJson,
    From,
    StudyPath,
    app,
    plot_findings,
    print_notes,
    print_result,
    print_table,
    read,
    resume_note,
    shows_progress,
)
from finecomb.cli.statistics import print_findings
from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Finding
from finecomb.core.options import OptionValues, option, reject_unknown_options
from finecomb.core.results import Findings
from finecomb.engine.options import PartitionOptions
from finecomb.reporting.tables import Row
from finecomb.statistics.agreement.rating_sources import SOURCES
from finecomb.statistics.agreement.registry import MEASURES as AGREEMENTS
from finecomb.statistics.comparisons.registry import TESTS
from finecomb.statistics.selection.view import View, view

if TYPE_CHECKING:
    TestName = str
else:
    TestName = Literal[tuple(TESTS)]


@dataclass(frozen=True)
class AnnotatorQualityOptions:
    """Options of whom to trust."""

    tokens: str = option("words", "words, whitespace, or spacy:NAME.")
    seed: int = option(0, "Same seed, same intervals.")


def agree_options_by_name() -> dict[str, type]:
    """The options of everything that `agree` can be asked for, by name."""
    choices = {name: row.options for name, row in AGREEMENTS.items()}
    return choices | {source.noun: source.options_type for source in SOURCES} | {"--who": AnnotatorQualityOptions}


def test_options_by_name() -> dict[str, type]:
    """The options of every test, by name."""
    return {name: row.options for name, row in TESTS.items()}


@app.command()
@from_api(fc_agree, flags={"gamma": ("--gamma",)})
def agree(study: StudyPath, call: ApiCall, from_: From = "", as_json_: AsJson = False) -> None:
    """Examples: `finecomb agree demo-study` · `finecomb agree demo-study --measure f1,kappa-cohen --level char` ·
    `finecomb agree demo-study --measure gamma,gamma-cat --gamma precision=0.02` · `finecomb agree demo-study --who`
    """
    print_result(call(read(study, from_), progress=shows_progress()), as_json_)


@app.command("test")
@with_options([*test_options_by_name().values(), FilterOptions, PartitionOptions])
def run_tests(
    study: StudyPath,
    values: OptionValues,
    what: Annotated[
        TestName,
        typer.Option(
            "--what",
            "-w",
            help="Systems compared, scalar metrics against people, or a table of a human-or-machine study.",
        ),
    ] = "systems",
    grid: Annotated[
        bool, typer.Option("--grid", help="Groups down and measures across, as papers print human-or-machine tables.")
    ] = False,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Are two systems different? Can people tell human from machine? Permutation and classical tests, corrected.

    Examples: `finecomb test demo-study --measure count` ·
    `finecomb test turing-study --what human-or-machine --by domain`
    """
    row = TESTS[what]
    reject_unknown_options(values.given, {what: row.options}, test_options_by_name())
    readers = {name: FilterOptions for name, test in TESTS.items() if test.reads is View}
    reject_unknown_options(values.given, {what: readers.get(what, NoOptions)}, readers)
    spread_out = {name: PartitionOptions for name, test in TESTS.items() if hasattr(test.options, "spread")}
    reject_unknown_options(values.given, {what: spread_out.get(what, NoOptions)}, spread_out)
    whole = read(study, from_)
    part = view(whole, values.build_options(FilterOptions).to_filters()) if row.reads is View else whole
    if isinstance(part, View):
        print_notes(part.notes)
        if part.study.annotations.is_empty():
            raise FinecombError(f"{study}: has no annotations to test")
    if grid and what != "human-or-machine":
        raise FinecombError(f"--grid does not apply to {what}; it applies to human-or-machine")
    with values.build_options(PartitionOptions).open_executor() as spread:
        options: Any = values.build_options(row.options, spread=spread)
        findings, title = row.run(part, options), _TITLE_BY_TEST.get(what, what.capitalize())
        print_notes(resume_note(spread.reused_row_count, "comparison"))
        if grid and not as_json_:
            by = values.given.get("by", ())
            _print_grid(
                findings, row.run(part, values.build_options(row.options, by=by[:1])) if len(by) > 1 else [], title
            )
        else:
            print_findings(findings, as_json_, title, protocol=part.protocol if isinstance(part, View) else None)


def _print_grid(findings: Sequence[Finding], overall: Sequence[Finding], title: str) -> None:
    """Groups down and measures across; `overall` as for `wide_rows`."""
    plot_findings(findings)
    print_table(wide_rows(findings, overall), title)
    print_notes(findings.notes if isinstance(findings, Findings) else ())


def wide_rows(findings: Sequence[Finding], overall: Sequence[Finding] = ()) -> list[Row]:
    """One row per group with a column for each measure; a star where accuracy differs from chance, p corrected.

    `overall` are the findings of the first column of groups alone: their accuracy stands in the first row of each.
    """
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for finding in findings:
        about = {name: cell for name, cell in finding.columns.items() if name not in (*_TEST_COLUMNS, *_SIZE_COLUMNS)}
        row = rows.setdefault(
            tuple(about.values()), {**about, **dict.fromkeys(_MEASURE_COLUMNS), **_sample_sizes(finding)}
        )
        row[str(finding.columns["measure"])] = _star_if_significant(finding)
    return _add_overall_accuracy(list(rows.values()), overall)


def _add_overall_accuracy(rows: Sequence[Row], overall: Sequence[Finding]) -> list[Row]:
    """Rows with the accuracy of all that have the same first column, once for each."""
    values = {
        next(cell for name, cell in finding.columns.items() if name != "measure"): _star_if_significant(finding)
        for finding in overall
        if finding.columns["measure"] == "accuracy"
    }
    wide: list[Row] = []
    for row in rows:
        (name, group), *rest = row.items()
        wide.append({name: group, "overall": values.pop(group, ""), **dict(rest)} if overall else row)
    return wide


def _star_if_significant(finding: Finding) -> object:
    p, value = finding.columns.get("p_adjusted"), finding.estimate.value
    return f"{value:.3f}{'*' if p < SIGNIFICANCE_LEVEL else ''}" if isinstance(p, float) else value


def _sample_sizes(finding: Finding) -> dict[str, object]:
    return {name: finding.columns[name] for name in _SIZE_COLUMNS if name in finding.columns}


_MEASURE_COLUMNS = ("accuracy", "f1", "precision", "recall", "alpha", "% human", "% confident")
"""Measures of a human-or-machine study in the order in which Clark et al. (2021) print them."""
_SIZE_COLUMNS = ("evaluators", "judgements")
_TEST_COLUMNS = ("measure", "statistic", "df", "p", "p_adjusted")
SIGNIFICANCE_LEVEL = 0.05
"""Below this a corrected p gets a star."""


_TITLE_BY_TEST = {"metrics": "Metrics against people", "codes": "Comment codes", "coders": "Comment codes"}
