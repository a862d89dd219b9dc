"""Commands about numbers: measure, agree, test, power. Their flags are the options of the registries' rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from finecomb import formats, protocols
from finecomb.agreement.agree import agree as agreed
from finecomb.agreement.agree import measure_names
from finecomb.agreement.agree_options import AgreeOptions
from finecomb.agreement.gamma.measured import GammaSettings
from finecomb.agreement.measures import MEASURES as AGREEMENTS
from finecomb.agreement.registry import TESTS
from finecomb.agreement.sources import SOURCES, source_type
from finecomb.cli.filters import FilterOptions, filters, names
from finecomb.cli.options import is_given, with_options
from finecomb.cli.shared import AsJson, From, StudyPath, app, counted, done, err, out, read, say
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.estimate import Finding
from finecomb.core.options import OptionValues, option, refuse_others
from finecomb.core.records import Annotator
from finecomb.core.study import Study
from finecomb.engine.pool import cores
from finecomb.measure.audit import audit_annotations, audited
from finecomb.measure.audit import audit_sample as draw_audit
from finecomb.measure.counts import meta_names
from finecomb.measure.crossed import pivot
from finecomb.measure.measures import MEASURES, IntervalOptions, MeasureOptions
from finecomb.measure.measures import measure as measured
from finecomb.measure.registry import PLANS, STATISTICS, WITH_PILOT, WITHOUT_PILOT
from finecomb.measure.view import View, view
from finecomb.people.trust import trust
from finecomb.report.tables import as_json, finding_rows, print_rows, rows_of

T = TypeVar("T")


@dataclass(frozen=True)
class NoOptions:
    """Options of what has none."""


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


@dataclass(frozen=True)
class TrustOptions:
    """Options of whom to trust."""

    tokens: str = option("words", "words, whitespace, or spacy:NAME.")
    seed: int = option(0, "Same seed, same intervals.")


def measure_choices() -> dict[str, type]:
    """The options of everything that `measure` can be asked for, by name."""
    rows: dict[str, Any] = {**MEASURES, **STATISTICS}
    choices = {name: row.options for name, row in rows.items()}
    return choices | {"--audit": AuditOptions, "--audit-sample": AuditSampleOptions}


def agree_choices() -> dict[str, type]:
    """The options of everything that `agree` can be asked for, by name."""
    choices = {name: row.options for name, row in AGREEMENTS.items()}
    return choices | {source.noun: source.options_type for source in SOURCES} | {"--who": TrustOptions}


def test_choices() -> dict[str, type]:
    """The options of every test, by name."""
    return {name: row.options for name, row in TESTS.items()}


def plan_choices() -> dict[str, type]:
    """The options of every plan, by name."""
    return {name: row.options for name, row in PLANS.items()}


def _print(findings: Sequence[Finding], as_json_: bool, title: str) -> None:
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
        _print(findings, as_json_, "Measures")


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
@with_options([*agree_choices().values(), FilterOptions])
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
    gamma = GammaSettings.parsed(values.given.get("settings", ()))
    options = values.of(AgreeOptions, gamma=gamma, workers=cores(), watch=_texts)
    refuse_others(values.given, _chosen_agreements(wanted, options), agree_choices())
    part = view(read(study, from_), values.of(FilterOptions).filters())
    if who:
        chosen = values.of(TrustOptions)
        _print(trust(part, tokens=chosen.tokens, seed=chosen.seed), as_json_, "Whom to trust")
        return
    _print(agreed(part, wanted, **vars(options)), as_json_, "Agreement")


def _chosen_agreements(wanted: Sequence[str], options: AgreeOptions) -> dict[str, type]:
    """The options of the measures that were asked for and of what they read, by name."""
    if not wanted:
        return {"--who": TrustOptions}
    source = source_type(options)
    return {**{name: AGREEMENTS[name].options for name in wanted}, source.noun: source.options_type}


def _texts(done: Iterable[T], total: int) -> Iterator[T]:
    """Pass results on with a bar on standard error, shown only to people."""
    columns = (BarColumn(), TextColumn("{task.completed:,} of {task.total:,} texts"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        yield from progress.track(done, total=total)


@app.command("test")
@with_options([*test_choices().values(), FilterOptions])
def run_tests(
    study: StudyPath,
    values: OptionValues,
    what: Annotated[
        Literal["systems", "metrics", "human-or-machine", "scores", "histogram", "codes", "coders"],
        typer.Option(
            "--what",
            "-w",
            help="Systems compared, scalar metrics against people, or a table of a human-or-machine study.",
        ),
    ] = "systems",
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
    whole = read(study, from_)
    part = view(whole, values.of(FilterOptions).filters()) if row.reads is View else whole
    if isinstance(part, View) and part.study.annotations.is_empty():
        raise FinecombError(f"{study}: has no annotations to test")
    _print(row.run(part, values.of(row.options)), as_json_, _TITLES.get(what, what.capitalize()))


_TITLES = {"metrics": "Metrics against people", "codes": "Comment codes", "coders": "Comment codes"}


@app.command()
@with_options(plan_choices().values())
def power(
    values: OptionValues,
    study: Annotated[
        Path | None,
        typer.Argument(help="A pilot; without one, a human-or-machine study is planned.", show_default=False),
    ] = None,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """How many documents and annotators: from a pilot's variance components, by simulation.

    Examples: `finecomb power demo-study --half-width 0.05` · `finecomb power demo-study --budget 100` ·
    `finecomb power`
    """
    name = WITHOUT_PILOT if study is None else WITH_PILOT
    row, choices = PLANS[name], plan_choices()
    refuse_others(values.given, {name: row.options}, choices)
    pilot = None if study is None else view(read(study, from_), filters(values.given.get("protocol", "")))
    _print(row.run(pilot, values.of(row.options)), as_json_, "Power" if study is None else "Planning")
