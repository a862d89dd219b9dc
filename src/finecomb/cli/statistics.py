"""Commands about numbers: measure and power. Their flags are the options of the registries' rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from finecomb import formats, protocols
from finecomb.cli.filters import FilterOptions, filters, names
from finecomb.cli.options import with_options
from finecomb.cli.shared import AsJson, From, StudyPath, app, counted, done, out, read, say
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.estimate import Finding
from finecomb.core.options import OptionValues, option, option_specs, refuse_others
from finecomb.core.records import Annotator
from finecomb.core.study import Study
from finecomb.measure.audit import audit_annotations, audited
from finecomb.measure.audit import audit_sample as draw_audit
from finecomb.measure.counts import meta_names
from finecomb.measure.crossed import pivot
from finecomb.measure.measures import MEASURES, IntervalOptions, MeasureOptions
from finecomb.measure.measures import measure as measured
from finecomb.measure.registry import PLANS, STATISTICS, WITH_PILOT, WITHOUT_PILOT
from finecomb.measure.view import View, view
from finecomb.report.tables import as_json, finding_rows, print_rows, rows_of


@dataclass(frozen=True)
class AuditOptions(IntervalOptions):
    """Options of counts corrected by an audit."""

    audit: Path | None = option(None, "A study with `audit` verdicts on this one's marks.")


@dataclass(frozen=True)
class AuditSampleOptions:
    """Options of drawing marks to be judged."""

    audit_sample: int | None = option(None, "Draw so many marks of each label and system to be judged.", minimum=1)
    output: Path | None = option(None, "For --audit-sample: the study to write.", "--output", "-o")
    by: tuple[str, ...] = option((), "Document meta or annotator fields, with commas.", commas=True)
    seed: int = option(0, "Same seed, same intervals.")


def measure_choices() -> dict[str, type]:
    """The options of everything that `measure` can be asked for, by name."""
    rows: dict[str, Any] = {**MEASURES, **STATISTICS}
    choices = {name: row.options for name, row in rows.items()}
    return choices | {"--audit": AuditOptions, "--audit-sample": AuditSampleOptions}


def plan_choices() -> dict[str, type]:
    """The options of every plan, by name."""
    return {name: row.options for name, row in PLANS.items()}


def print_findings(findings: Sequence[Finding], as_json_: bool, title: str) -> None:
    """A table with the signature that its rows share below it, or one JSON object."""
    rows, signature = finding_rows(findings)
    if as_json_:
        typer.echo(as_json(rows, signature))
        return
    print_rows(out, rows, title, "Nothing to show.")
    if signature:
        say(f"{signature} (95% intervals; with --json each row adds what is particular to it)")


def _default_by(study: Study, by: Sequence[str]) -> tuple[str, ...]:
    """The columns that were asked for, else `model` where documents have it."""
    return tuple(by) or (("model",) if "model" in meta_names(study) else ())


def _refuse_unknown(wanted: Sequence[str], registry: Iterable[str]) -> None:
    known_names = list(registry)
    for name in wanted:
        if name not in known_names:
            raise FinecombError(f"no measure is called {name!r}{did_you_mean(name, known_names)}")


@app.command()
@with_options([*measure_choices().values(), FilterOptions])
def measure(
    study: StudyPath,
    values: OptionValues,
    measures: Annotated[
        str, typer.Option("--measure", "-m", help=f"With commas: {', '.join([*MEASURES, *STATISTICS])}.")
    ] = "coverage,count",
    grid: Annotated[bool, typer.Option("--grid", help="With two --by columns: one across, one down.")] = False,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """How often and how much: coverage, counts, rates, scores, by label and by system, each with its interval.

    Examples: `finecomb measure demo-study --by model` ·
    `finecomb measure demo-study --measure coverage --drop grammar-usage:1 --overlap union --tokens whitespace` ·
    `finecomb measure demo-study --measure variation --sizes 4,8,16`
    """
    wanted, choices = names(measures), measure_choices()
    _refuse_unknown(wanted, [*MEASURES, *STATISTICS])
    refuse_others(values.given, _chosen_measures(wanted, values), choices)
    whole = read(study, from_)
    part = view(whole, values.of(FilterOptions).filters())
    by = _default_by(part.study, values.given.get("by", ()))
    if "audit_sample" in values.given:
        _draw_audit(whole, part, values.of(AuditSampleOptions, by=by))
        return
    findings = _measured(part, wanted, values, by)
    if "audit" in values.given:
        options = values.of(AuditOptions)
        assert options.audit is not None
        findings += audited(part, read(options.audit), by, draws=options.draws, seed=options.seed)
    if grid and not as_json_:
        _print_grid(findings, by)
    else:
        print_findings(findings, as_json_, "Measures")


def _chosen_measures(wanted: Sequence[str], values: OptionValues) -> dict[str, type]:
    """The options of what was asked for, by name; a sample to be judged is nothing but that."""
    choices = measure_choices()
    if "audit_sample" in values.given:
        return {"--audit-sample": choices["--audit-sample"]}
    extra = ["--audit"] if "audit" in values.given else []
    return {name: choices[name] for name in [*wanted, *extra]}


def _measured(part: View, wanted: Sequence[str], values: OptionValues, by: tuple[str, ...]) -> list[Finding]:
    """Means over annotations all at once, then each other statistic."""
    options = values.of(MeasureOptions, by=by)
    means = [name for name in wanted if name in MEASURES]
    fields = {name: getattr(options, name) for name in values.given if hasattr(options, name) and name != "by"}
    findings = measured(part, means, by, **fields) if means else []
    for name in wanted:
        if name in STATISTICS:
            findings += STATISTICS[name].run(part, values.of(STATISTICS[name].options, by=by))
    return findings


def _print_grid(findings: Sequence[Finding], columns: Sequence[str]) -> None:
    """Each measure of all marks together as a grid, as for decoding settings."""
    if len(columns) < 2:
        raise FinecombError("--grid needs two columns, e.g. --by temperature,top_p")
    whole = [finding for finding in findings if finding.columns["label"] == "any"]
    for name in dict.fromkeys(str(finding.columns["measure"]) for finding in whole):
        rows = [finding for finding in whole if finding.columns["measure"] == name]
        print_rows(out, rows_of(pivot(rows, list(columns[:-1]), columns[-1])), f"{name}, {columns[-1]} across")


def _draw_audit(whole: Study, part: View, options: AuditSampleOptions) -> None:
    """Write the study with drafts of an audit in it: one annotation about each mark drawn, still without a verdict."""
    if options.output is None:
        raise FinecombError("--audit-sample needs -o: the study to write")
    protocol, auditor = protocols.shipped("audit"), Annotator(id="auditor", kind="human")
    sample = draw_audit(part, options.audit_sample or 1, options.by, options.seed)
    drafts = audit_annotations(sample, auditor.id, protocol.id)
    formats.save(itertools.chain(whole.items(), [protocol, auditor], drafts), options.output)
    done(options.output, f"{counted(len(sample), 'mark')} to be judged by {auditor.id!r} under {protocol.id}")


@app.command()
@with_options(plan_choices().values())
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
        _print_reading_plan(study, judges, values.given, from_, as_json_)
        return
    name = WITHOUT_PILOT if study is None else WITH_PILOT
    row, choices = PLANS[name], plan_choices()
    refuse_others(values.given, {name: row.options}, choices)
    pilot = None if study is None else view(read(study, from_), filters(values.given.get("protocol", "")))
    print_findings(row.run(pilot, values.of(row.options)), as_json_, "Power" if study is None else "Planning")


def _print_reading_plan(
    study: Path | None, judges: list[str], given: Mapping[str, Any], from_: str, as_json_: bool
) -> None:
    """How many human texts a half-width needs with judges; the other options are for plans without them."""
    from finecomb.judges.planning import reading_plan

    others = sorted(set(given) - {"half_width", "measure", "protocol"})
    if others:
        flags = ", ".join(option_specs(PLANS[WITH_PILOT].options)[name].flag for name in others)
        raise FinecombError(f"{flags}: not for a plan with --judge, which takes --half-width and --measure")
    if study is None or given.get("half_width") is None:
        raise FinecombError("a plan with --judge needs a pilot and --half-width, e.g. --half-width 0.2")
    pilot, measure = read(study, from_), str(given.get("measure") or "count")
    plan = reading_plan(pilot, judges, float(given["half_width"]), measure, filters(given.get("protocol", "")))
    print_findings(plan, as_json_, "Human texts needed")
