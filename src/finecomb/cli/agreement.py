"""Commands about how far numbers can be trusted: agree and test. Their flags are the options of registries' rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from finecomb.cli.filters import FilterOptions, names
from finecomb.cli.options import NoOptions, is_given, with_options
from finecomb.cli.shared import AsJson, From, StudyPath, app, draw, err, print_table, read, say_all, went_on
from finecomb.cli.statistics import print_findings
from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Finding
from finecomb.core.findings import Findings
from finecomb.core.options import OptionValues, option, refuse_others
from finecomb.engine.options import PartitionOptions
from finecomb.reporting.tables import Row
from finecomb.statistics.agreement.agreement import agree as agreed
from finecomb.statistics.agreement.agreement import measure_names
from finecomb.statistics.agreement.agreement_options import AgreeOptions
from finecomb.statistics.agreement.gamma.text_gamma import GammaSettings
from finecomb.statistics.agreement.rating_sources import SOURCES, source_type
from finecomb.statistics.agreement.registry import MEASURES as AGREEMENTS
from finecomb.statistics.annotator_quality import trust
from finecomb.statistics.comparisons.registry import TESTS
from finecomb.statistics.selection.view import View, view

if TYPE_CHECKING:
    TestName = str
else:
    TestName = Literal[tuple(TESTS)]


@dataclass(frozen=True)
class TrustOptions:
    """Options of whom to trust."""

    tokens: str = option("words", "words, whitespace, or spacy:NAME.")
    seed: int = option(0, "Same seed, same intervals.")


def agree_choices() -> dict[str, type]:
    """The options of everything that `agree` can be asked for, by name."""
    choices = {name: row.options for name, row in AGREEMENTS.items()}
    return choices | {source.noun: source.options_type for source in SOURCES} | {"--who": TrustOptions}


def test_choices() -> dict[str, type]:
    """The options of every test, by name."""
    return {name: row.options for name, row in TESTS.items()}


@app.command()
@with_options([*agree_choices().values(), FilterOptions, PartitionOptions])
def agree(
    context: typer.Context,
    study: StudyPath,
    values: OptionValues,
    measures: Annotated[
        str, typer.Option("--measure", "-m", help=f"With commas: {', '.join(AGREEMENTS)}.")
    ] = "alpha,two-agree",
    who: Annotated[bool, typer.Option("--who", help="Whom to trust: each annotator against the rest.")] = False,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """How far annotators agree, by label: alpha, two-agree, kappas, pairwise F1, gamma, each under its own name.

    Examples: `finecomb agree demo-study` · `finecomb agree demo-study --measure f1,kappa-cohen --level char` ·
    `finecomb agree demo-study --measure gamma,gamma-cat --gamma precision=0.02` · `finecomb agree demo-study --who`
    """
    if who and is_given(context, "measures"):
        raise FinecombError("--measure does not apply to --who; leave one of the two out")
    wanted = [] if who else measure_names(names(measures))
    spread_out = {name: PartitionOptions for name in AGREEMENTS if name.startswith("gamma")}
    refuse_others(values.given, {name: spread_out.get(name, NoOptions) for name in wanted or ["--who"]}, spread_out)
    gamma = GammaSettings.parsed(values.given.get("settings", ()))
    options = values.of(AgreeOptions, gamma=gamma, watch=_texts)
    refuse_others(values.given, _chosen_agreements(wanted, options), agree_choices())
    part = view(read(study, from_), values.of(FilterOptions).filters())
    say_all(part.notes)
    if who:
        options_of_trust = values.of(TrustOptions)
        print_findings(
            trust(part, tokens=options_of_trust.tokens, seed=options_of_trust.seed), as_json_, "Whom to trust"
        )
        return
    given = {name: getattr(options, name) for name in values.given if hasattr(options, name)}
    with values.of(PartitionOptions).spread() as spread:
        findings = agreed(part, wanted, **{**given, "gamma": gamma, "watch": options.watch, "spread": spread})
        say_all(went_on(spread.found, "text"))
        print_findings(findings, as_json_, "Agreement", protocol=part.protocol)


def _chosen_agreements(wanted: Sequence[str], options: AgreeOptions) -> dict[str, type]:
    """The options of the measures that were asked for and of what they read, by name."""
    if not wanted:
        return {"--who": TrustOptions}
    source = source_type(options)
    return {**{name: AGREEMENTS[name].options for name in wanted}, source.noun: source.options_type}


def _texts(done: Iterable[int], total: int) -> Iterator[int]:
    """Pass on how many texts are done, with a bar on standard error, shown only to people."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TextColumn("{task.completed:,} of {task.total:,} texts"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        bar = progress.add_task("", total=total)
        for count in done:
            progress.advance(bar, count)
            yield count


@app.command("test")
@with_options([*test_choices().values(), FilterOptions, PartitionOptions])
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
    refuse_others(values.given, {what: row.options}, test_choices())
    readers = {name: FilterOptions for name, test in TESTS.items() if test.reads is View}
    refuse_others(values.given, {what: readers.get(what, NoOptions)}, readers)
    spread_out = {name: PartitionOptions for name, test in TESTS.items() if hasattr(test.options, "spread")}
    refuse_others(values.given, {what: spread_out.get(what, NoOptions)}, spread_out)
    whole = read(study, from_)
    part = view(whole, values.of(FilterOptions).filters()) if row.reads is View else whole
    if isinstance(part, View):
        say_all(part.notes)
        if part.study.annotations.is_empty():
            raise FinecombError(f"{study}: has no annotations to test")
    if grid and what != "human-or-machine":
        raise FinecombError(f"--grid does not apply to {what}; it applies to human-or-machine")
    with values.of(PartitionOptions).spread() as spread:
        options: Any = values.of(row.options, spread=spread)
        findings, title = row.run(part, options), _TITLES.get(what, what.capitalize())
        say_all(went_on(spread.found, "comparison"))
        if grid and not as_json_:
            by = values.given.get("by", ())
            _print_grid(findings, row.run(part, values.of(row.options, by=by[:1])) if len(by) > 1 else [], title)
        else:
            print_findings(findings, as_json_, title, protocol=part.protocol if isinstance(part, View) else None)


def _print_grid(findings: Sequence[Finding], overall: Sequence[Finding], title: str) -> None:
    """Groups down and measures across; `overall` as for `wide_rows`."""
    draw(findings)
    print_table(wide_rows(findings, overall), title)
    say_all(findings.notes if isinstance(findings, Findings) else ())


def wide_rows(findings: Sequence[Finding], overall: Sequence[Finding] = ()) -> list[Row]:
    """One row per group with a column for each measure; a star where accuracy differs from chance, p corrected.

    `overall` are the findings of the first column of groups alone: their accuracy stands in the first row of each.
    """
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for finding in findings:
        about = {name: cell for name, cell in finding.columns.items() if name not in (*_OF_TESTS, *_SIZES)}
        row = rows.setdefault(tuple(about.values()), {**about, **dict.fromkeys(_ACROSS), **_sizes(finding)})
        row[str(finding.columns["measure"])] = _starred(finding)
    return _with_overall(list(rows.values()), overall)


def _with_overall(rows: Sequence[Row], overall: Sequence[Finding]) -> list[Row]:
    """Rows with the accuracy of all that have the same first column, once for each."""
    values = {
        next(cell for name, cell in finding.columns.items() if name != "measure"): _starred(finding)
        for finding in overall
        if finding.columns["measure"] == "accuracy"
    }
    wide: list[Row] = []
    for row in rows:
        (name, group), *rest = row.items()
        wide.append({name: group, "overall": values.pop(group, ""), **dict(rest)} if overall else row)
    return wide


def _starred(finding: Finding) -> object:
    p, value = finding.columns.get("p_adjusted"), finding.estimate.value
    return f"{value:.3f}{'*' if p < LEVEL else ''}" if isinstance(p, float) else value


def _sizes(finding: Finding) -> dict[str, object]:
    return {name: finding.columns[name] for name in _SIZES if name in finding.columns}


_ACROSS = ("accuracy", "f1", "precision", "recall", "alpha", "% human", "% confident")
"""Measures of a human-or-machine study in the order in which Clark et al. (2021) print them."""
_SIZES = ("evaluators", "judgements")
_OF_TESTS = ("measure", "statistic", "df", "p", "p_adjusted")
LEVEL = 0.05
"""Below this a corrected p gets a star."""


_TITLES = {"metrics": "Metrics against people", "codes": "Comment codes", "coders": "Comment codes"}
