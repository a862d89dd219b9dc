"""Commands about numbers: measure and power. Their flags are the options of the registries' rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from finecomb.cli.filters import FilterOptions, split_names
from finecomb.cli.options import with_options
from finecomb.cli.shared import (
    AsJson,
    From,
    StudyPath,
    app,
    plot_findings,
    print_note,
    print_notes,
    print_signature,
    print_table,
    prints_bold,
    read,
)
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.estimate import Finding
from finecomb.core.options import OptionValues, merge_option_specs, option_specs, reject_unknown_options
from finecomb.core.protocol import Protocol
from finecomb.core.results import Findings
from finecomb.core.study import Study
from finecomb.reporting.tables import BestNumber, BestText, Row, as_json, finding_rows, format_interval, frame_rows
from finecomb.statistics.comparisons.system_ranking import BEST_RULE, NO_BEST, BestValue, best_values, sort_by_value
from finecomb.statistics.gold.decisions import decision_notes
from finecomb.statistics.measures.annotation_measures import ANSWER_PREFIX, MEASURES, MeasureOptions, find_measure
from finecomb.statistics.measures.annotation_measures import measure as measured
from finecomb.statistics.measures.cross_tables import pivot
from finecomb.statistics.measures.study_counts import meta_names
from finecomb.statistics.registry import PLANS, STATISTICS, WITH_PILOT, WITHOUT_PILOT
from finecomb.statistics.selection.view import Filters, View, view


def measure_options_by_name() -> dict[str, type]:
    """The options of everything that `measure` can be asked for, by name."""
    rows: dict[str, Any] = {**MEASURES, **STATISTICS}
    return {name: row.options for name, row in rows.items()}


def plan_options_by_name() -> dict[str, type]:
    """The options of every plan, by name."""
    return {name: row.options for name, row in PLANS.items()}


def print_findings(
    findings: Sequence[Finding],
    as_json_: bool,
    title: str,
    quiet_level: bool = False,
    protocol: Protocol | None = None,
    is_best: Callable[[Finding], bool] = lambda finding: False,
) -> None:
    """A table, or one JSON object; with `quiet_level` people need not read in every row that tokens are counted.

    With `--plot` they are drawn too, labels as the protocol says.
    """
    plot_findings(findings, protocol)
    rows, signature = finding_rows(findings)
    rows = [_mark_best(row) if is_best(finding) else row for row, finding in zip(rows, findings, strict=True)]
    if as_json_:
        typer.echo(as_json(rows, signature))
        return
    usual = quiet_level and {row.get("level", "") for row in rows} <= {"", "token"}
    print_table(
        [{name: cell for name, cell in row.items() if name != "level"} for row in rows] if usual else rows, title
    )
    print_notes(findings.notes if isinstance(findings, Findings) else ())
    print_signature(signature, " (95% intervals; with --json each row adds what is particular to it)")


def _mark_best(row: Row) -> Row:
    value = row["value"]
    return {**row, "value": BestNumber(value)} if isinstance(value, float) else row


def _default_columns(study: Study, by: Sequence[str]) -> tuple[str, ...]:
    """The columns that were asked for, else `model` where documents have it; `none` is one row for everything."""
    if tuple(by) == ("none",):
        return ()
    return tuple(by) or (("model",) if "model" in meta_names(study) else ())


def _refuse_unknown_measures(wanted: Sequence[str], registry: Iterable[str]) -> None:
    names_of_rows = [*registry, "answer:NAME"]
    for name in wanted:
        if name not in names_of_rows and not _is_mean(name):
            raise FinecombError(f"no measure is called {name!r}{did_you_mean(name, names_of_rows)}")


def _is_mean(name: str) -> bool:
    """Whether a name is that of a mean over annotations: of the registry, or of answers."""
    return name in MEASURES or (name.startswith(ANSWER_PREFIX) and name != ANSWER_PREFIX)


@app.command()
@with_options([*measure_options_by_name().values(), FilterOptions])
def measure(
    study: StudyPath,
    values: OptionValues,
    measures: Annotated[
        str, typer.Option("--measure", "-m", help=f"With commas: {', '.join([*MEASURES, *STATISTICS])}, answer:NAME.")
    ] = "coverage,count",
    grid: Annotated[
        bool, typer.Option("--grid", help="One --by column across and labels down, or two: one across, one down.")
    ] = False,
    sort: Annotated[
        Literal["name", "value"],
        typer.Option(help="Systems in the order of their names (numbers as numbers), or the lowest value first."),
    ] = "name",
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """How often and how much: coverage, counts, rates, scores, by label and by system, each with its interval.

    Examples: `finecomb measure demo-study --by model` ·
    `finecomb measure demo-study --measure coverage --drop grammar-usage:1 --overlap union --tokens whitespace` ·
    `finecomb measure demo-study --measure variation --sizes 4,8,16`
    """
    wanted, choices = split_names(measures), measure_options_by_name()
    _refuse_unknown_measures(wanted, [*MEASURES, *STATISTICS])
    reject_unknown_options(values.given, _wanted_options_by_name(wanted), choices)
    part = view(read(study, from_), values.build_options(FilterOptions).to_filters())
    print_notes([*part.notes, *decision_notes(part.study)])
    by = _default_columns(part.study, values.given.get("by", ()))
    findings = _compute_measures(part, wanted, values, by)
    if sort == "value":
        findings = sort_by_value(findings, by)
    best = _best_values(part, findings, values, by) if len(by) == 1 and prints_bold() else set()
    if grid and not as_json_:
        plot_findings(findings, part.protocol)
        _print_grid(findings, by, sort == "value", best)
    else:
        print_findings(
            findings, as_json_, "Measures", True, part.protocol, lambda finding: _best_value(finding, by) in best
        )


def _best_values(part: View, findings: Sequence[Finding], values: OptionValues, by: Sequence[str]) -> set[BestValue]:
    """The values that are best beyond chance, and a note of what bold means; a mean of other kinds has no such test."""
    if values.given.get("average", "annotation") == "pooled":
        return set()
    options = {name: values.given[name] for name in ("tokens", "overlap") if name in values.given}
    best = best_values(part, findings, by[0], **options)
    print_note(f"bold: lower than for every other {by[0]}, {BEST_RULE}" if best else f"nothing is bold: {NO_BEST}")
    return best


def _best_value(finding: Finding, by: Sequence[str]) -> BestValue | None:
    if len(by) != 1:
        return None
    return BestValue(*(str(finding.columns.get(name)) for name in ("measure", "label", by[0])))


def _wanted_options_by_name(wanted: Sequence[str]) -> dict[str, type]:
    """The options of what was asked for, by name."""
    choices = measure_options_by_name()
    return {name: find_measure(name).options if _is_mean(name) else choices[name] for name in wanted}


def _compute_measures(part: View, wanted: Sequence[str], values: OptionValues, by: tuple[str, ...]) -> list[Finding]:
    """Means over annotations all at once, then each other statistic."""
    options = values.build_options(MeasureOptions, by=by)
    means = [name for name in wanted if _is_mean(name)]
    taken_by_means = set(merge_option_specs(find_measure(name).options for name in means)) - {"by"}
    fields = {name: getattr(options, name) for name in values.given if name in taken_by_means}
    findings: list[Finding] = measured(part, means, by, **fields) if means else []
    for name in wanted:
        if name in STATISTICS:
            findings += STATISTICS[name].run(part, values.build_options(STATISTICS[name].options, by=by))
    return findings


def _print_grid(
    findings: Sequence[Finding], columns: Sequence[str], as_given: bool, best: Collection[BestValue]
) -> None:
    """Each measure as a grid: of all marks by two columns, as for decoding settings, or labels down and one across."""
    if not columns:
        raise FinecombError("--grid needs one column (labels down) or two, e.g. --by temperature,top_p")
    chosen_rows = [finding for finding in findings if len(columns) == 1 or finding.columns["label"] == "any"]
    down = list(columns[:-1]) or ["label"]
    for name in dict.fromkeys(str(finding.columns["measure"]) for finding in chosen_rows):
        rows = [finding for finding in chosen_rows if finding.columns["measure"] == name]
        sides = [frame_rows(pivot(rows, down, columns[-1], side, as_given)) for side in ("value", "low", "high")]
        paper = [_paper_row(value, low, high, name, best) for value, low, high in zip(*sides, strict=True)]
        print_table(sides[0], f"{name}, {columns[-1]} across", paper=paper)


def _paper_row(values: Row, lows: Row, highs: Row, measure: str, best: Collection[BestValue]) -> Row:
    """A row of a grid with intervals, its best number marked as such."""
    label = str(values.get("label"))
    cells: dict[str, object] = {}
    for name, value in values.items():
        text = format_interval(value, lows[name], highs[name]) if isinstance(value, float) else value
        is_best = BestValue(measure, label, name) in best
        cells[name] = BestText(text) if is_best else text
    return cells


def _pilot_filters(values: OptionValues) -> Filters:
    given = {name: values.given[name] for name in ("protocol", "where", "drop") if name in values.given}
    return Filters(**given)


@app.command()
@with_options(plan_options_by_name().values())
def power(
    values: OptionValues,
    study: Annotated[
        Path | None,
        typer.Argument(help="A pilot; without one, a human-or-machine study is planned.", show_default=False),
    ] = None,
    judges: Annotated[
        list[str] | None,
        typer.Option("--judge", "-j", help="Human texts needed with this judge; may be repeated.", show_default=False),
    ] = None,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """How many documents and annotators: from a pilot's variance components, by simulation.

    Examples: `finecomb power demo-study --half-width 0.05` · `finecomb power demo-study --annotations 100` ·
    `finecomb power`
    """
    if judges:
        _print_reading_plan(study, judges, values, from_, as_json_)
        return
    name = WITHOUT_PILOT if study is None else WITH_PILOT
    row, choices = PLANS[name], plan_options_by_name()
    reject_unknown_options(values.given, {name: row.options}, choices)
    pilot = None if study is None else view(read(study, from_), _pilot_filters(values))
    print_notes(pilot.notes if pilot else ())
    print_findings(
        row.run(pilot, values.build_options(row.options)), as_json_, "Power" if study is None else "Planning"
    )


def _print_reading_plan(
    study: Path | None, judges: list[str], values: OptionValues, from_: str, as_json_: bool
) -> None:
    """How many human texts a half-width needs with judges; the other options are for plans without them."""
    from finecomb.statistics.judges.sample_size import plan_sample_size

    given = values.given
    others = sorted(set(given) - {"half_width", "measure", "protocol"})
    if others:
        flags = ", ".join(option_specs(PLANS[WITH_PILOT].options)[name].flag for name in others)
        raise FinecombError(f"{flags}: not for a plan with --judge, which takes --half-width and --measure")
    if study is None or given.get("half_width") is None:
        raise FinecombError("a plan with --judge needs a pilot and --half-width, e.g. --half-width 0.2")
    pilot, measure = read(study, from_), str(given.get("measure") or "count")
    plan = plan_sample_size(pilot, judges, float(given["half_width"]), measure, _pilot_filters(values))
    print_findings(plan, as_json_, "Human texts needed")
