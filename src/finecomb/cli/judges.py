"""Commands about judges: may one stand in, do its marks vanish with the error, what judges and people say."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from finecomb.cli.filters import Draws, Labels, Protocol, Seed, Tokens, Where, build_filters, split_names
from finecomb.cli.model_options import ModelOptions, model_settings
from finecomb.cli.options import with_options
from finecomb.cli.output import OUTPUT
from finecomb.cli.shared import (
    AsJson,
    From,
    StudyPath,
    app,
    err,
    out,
    plot_findings,
    print_note,
    print_outcome,
    print_table,
    read,
)
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.estimate import Finding
from finecomb.core.options import OptionValues
from finecomb.core.study import Study
from finecomb.formats.atomic_file import write_file
from finecomb.reporting.calibration_tables import (
    CalibrationTable,
    build_calibration_tables,
    calibration_page,
    format_intervals,
    select_figure_findings,
    select_summary_tables,
)
from finecomb.reporting.tables import Row, as_json, finding_rows
from finecomb.statistics.judges.anchoring_effect import anchoring_findings
from finecomb.statistics.judges.calibration import Calibration, CalibrationOptions
from finecomb.statistics.judges.calibration import calibrate as calibrated
from finecomb.statistics.judges.calibration_record import CALIBRATIONS_FOLDER, CalibrationRecord, calibration_record
from finecomb.statistics.judges.counterfactual_validation import JudgeFunction, validation_texts
from finecomb.statistics.judges.counterfactual_validation import validate as validated
from finecomb.statistics.judges.estimates import Estimates
from finecomb.statistics.judges.estimates import estimate_means as estimated
from finecomb.statistics.judges.validity import CONTRACTS_FOLDER, stale_conditions
from finecomb.statistics.measures.unit_grid import Level

JudgeName = Annotated[str, typer.Option("--judge", "-j", help="The annotator to be judged.", show_default=False)]
JudgeNames = Annotated[
    list[str] | None, typer.Option("--judge", "-j", help="A judge by name; may be repeated.", show_default=False)
]
People = Annotated[
    list[str] | None,
    typer.Option("--people", help="Whom to compare with; without it, everybody human.", show_default=False),
]


@app.command()
def calibrate(
    study: StudyPath,
    judge: JudgeName,
    people: People = None,
    epsilon: Annotated[float, typer.Option(min=0, max=1, help="How much worse than a person it may be.")] = 0.15,
    margin: Annotated[float, typer.Option(min=0, max=1, help="How much lower its agreement may be.")] = 0.1,
    score: Annotated[
        Literal["", "typed-f1", "char-f1", "accuracy", "rmse"],
        typer.Option(help="What the test scores; typed-f1 for marks, accuracy for answers.", show_default=False),
    ] = "",
    question: Annotated[str, typer.Option(help="Compare answers to this question.", show_default=False)] = "",
    levels: Annotated[str, typer.Option(help="Levels of agreement, with commas.")] = "token,sentence,document",
    gold: Annotated[str, typer.Option(help="Score against this annotator too.", show_default=False)] = "",
    by: Annotated[str, typer.Option(help="Document meta that names the system.")] = "model",
    own: Annotated[str, typer.Option(help="The system that is the judge's own model.", show_default=False)] = "",
    gamma: Annotated[bool, typer.Option(help="Gamma too, of at most 40 texts.")] = True,
    helped: Annotated[bool, typer.Option("--help-effect", help="Its marks were offered: what did that do?")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Every table, not only those that fit a screen.")] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write the page here.", show_default=False)] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the contract in the study's folder.")] = False,
    days: Annotated[int, typer.Option(min=1, help="How many days the contract holds.")] = 30,
    labels: Labels = None,
    where: Where = None,
    protocol: Protocol = "",
    tokens: Tokens = "words",
    draws: Draws = 1000,
    seed: Seed = 0,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """May a judge stand in for people? Agreement, the alternative annotator test, bias, misses, probes, and an answer.

    Examples: `finecomb calibrate demo-study --judge reader-1` ·
    `finecomb calibrate STUDY --judge gpt --html gpt.html --keep`
    """
    _check_score(score, question)
    whole = read(study, from_)
    options = CalibrationOptions(
        epsilon, margin, score, question, _parse_levels(levels), tuple(people or ()), gold, by, tokens, draws, seed,
        gamma, own,
    )  # fmt: skip
    result = calibrated(whole, judge, options, build_filters(protocol, labels, where=where))
    parts = build_calibration_tables(result)
    if helped:
        rows, _ = finding_rows(anchoring_findings(whole, judge))
        parts.append(CalibrationTable("help", "What its marks do to people who see them", rows))
    record = calibration_record(result, datetime.now(UTC), days)
    contract = record.contract
    plot_findings(select_figure_findings(result), next(iter(whole.protocols.values()), None))
    _print_calibration(result, parts, everything, as_json_)
    if html:
        page = calibration_page(result, stale_conditions(contract, result.binding, contract.made, {}))
        write_file(html, page)
        if not as_json_:
            print_outcome(html, "written")
    if keep:
        _write_calibration(study, record, as_json_)


def _check_score(score: str, question: str) -> None:
    of_marks = score in ("typed-f1", "char-f1")
    if score and question and of_marks:
        raise FinecombError(f"--score {score} is for marks, --question for answers: take accuracy or rmse")
    if score and not question and not of_marks:
        raise FinecombError(f"--score {score} is for answers: say which with --question, or take typed-f1 or char-f1")


def _parse_levels(text: str) -> tuple[Level, ...]:
    levels: tuple[Level, ...] = ("token", "char", "sentence", "segment", "document")
    chosen = split_names(text)
    for name in chosen:
        if name not in levels:
            raise FinecombError(f"--levels {name}: no such level{did_you_mean(name, levels)}")
    return tuple(level for level in levels if level in chosen)


def _print_calibration(result: Calibration, parts: list[CalibrationTable], everything: bool, as_json_: bool) -> None:
    if as_json_:
        rows = [{"section": section.key, **row} for section in parts for row in section.rows]
        typer.echo(as_json(rows, str(result.signature), [result.paragraph, *result.notes]))
        return
    (out if OUTPUT.format == "table" else err).print(result.paragraph, soft_wrap=True)
    for section in parts if everything else select_summary_tables(parts):
        if OUTPUT.format == "table":
            out.print()
        shown = format_intervals(section.rows)
        print_table(shown, section.title, "", flat=section.rows, paper=shown)
    for note in result.notes:
        print_note(note)
    print_note(f"{result.signature} (95% intervals over texts)")


def _write_calibration(study: Path, record: CalibrationRecord, quiet: bool) -> None:
    """Write contract and calibration into the study's folder."""
    if not study.is_dir():
        raise FinecombError(f"{study} is not a folder, so a contract cannot be kept there; take --json or --html")
    name = f"{record.judge.replace('/', '-')}.json"
    for kind, content in ((CALIBRATIONS_FOLDER, record), (CONTRACTS_FOLDER, record.contract)):
        path = study / kind / name
        path.parent.mkdir(exist_ok=True)
        write_file(path, content.model_dump_json(indent=1))
    if not quiet:
        print_outcome(path, f"{record.verdict}; holds for {record.contract.days} days")


# --- validate ----------------------------------------------------------------------------------------------------


@app.command()
@with_options([ModelOptions])
def validate(
    study: StudyPath,
    judge: Annotated[
        str,
        typer.Option(
            "--judge", "-j", help="A detector, or a language model as `annotate --model` takes it.", show_default=False
        ),
    ],
    values: OptionValues,
    gold: Annotated[str, typer.Option(help="Who is gold, where it is not clear.", show_default=False)] = "",
    draws: Draws = 1000,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Does a judge's mark vanish when the error is corrected? Gold corrections written in, the judge run again.

    Examples: `finecomb validate games --judge boxscore` ·
    `finecomb validate games --judge qwen3:8b --base-url http://localhost:11434/v1`
    """
    whole = read(study, from_)
    seed = int(values.given.get("seed", 0))
    result = validated(whole, _make_judge(whole, judge, gold, values, study), judge, gold, draws, seed)
    rows, signature = finding_rows(result.findings)
    if as_json_:
        typer.echo(as_json(rows, signature, result.notes))
        return
    print_table(format_intervals(rows), "Marks before and after the correction", flat=rows)
    for note in (*result.notes, f"{signature} (95% intervals over texts)"):
        print_note(note)


def _make_judge(study: Study, name: str, gold: str, values: OptionValues, path: Path) -> JudgeFunction:
    """A detector made for the study, or a language model that has read what is needed."""
    from finecomb import protocols
    from finecomb.annotators.detectors import detectors_by_name

    options = [name for name in values.given if name not in ("seed",)]
    if name not in detectors_by_name():
        is_model = name in study.settings.models or name.startswith("local:") or "base_url" in values.given
        if not is_model:
            names = [*detectors_by_name(), *study.settings.models]
            way = "detectors can, and models with --base-url"
            raise FinecombError(f"{name!r} cannot be run again from here; {way}{did_you_mean(name, names)}")
        return _make_model_judge(study, name, gold, values, path)
    if options:
        raise FinecombError(f"--{options[0].replace('_', '-')} is for language models; {name} is a detector")
    factory = detectors_by_name()[name]
    versions = [protocol for protocol in study.protocols.values() if protocol.name == factory.protocol]
    return factory.make(versions[-1] if versions else protocols.load(factory.protocol), factory.options())


def _make_model_judge(study: Study, name: str, gold: str, values: OptionValues, path: Path) -> JudgeFunction:
    """A language model as a function: all texts are put to it at once, and nothing is paid twice."""
    from finecomb.annotators.llm.runs import execute_plan, plan_run

    wanted = validation_texts(study, gold)
    protocol = study.protocols[wanted.protocol]
    settings = model_settings(study, name, values)
    if settings.shots:
        raise FinecombError(
            f"{name} is shown {settings.shots} gold texts, which tell it the corrections; ask it without --shots"
        )
    settings = settings.model_copy(update={"samples": 1})
    texts = Study.from_items([protocol, *wanted.documents])
    run = execute_plan(plan_run(texts, settings, protocol, name=name), path / "runs" if path.is_dir() else None)
    readings = {annotation.document: annotation for annotation in run.annotations if not annotation.excluded}
    missing = [document.id for document in wanted.documents if document.id not in readings]
    if missing:
        why = next(iter(run.unasked.values()), "its reply could not be read")
        raise FinecombError(
            f"{name} did not read {len(missing)} of {len(wanted.documents)} texts ({missing[0]!r}): {why};"
            " the same command goes on from here"
        )
    return lambda document: readings[document.id]


# --- estimate ----------------------------------------------------------------------------------------------------


@app.command()
def estimate(
    study: StudyPath,
    judges: JudgeNames = None,
    measures: Annotated[str, typer.Option("--measure", "-m", help="With commas; answer:NAME for a rating.")] = "count",
    by: Annotated[str, typer.Option("--by", help="Document meta that names systems.", show_default=False)] = "",
    strata: Annotated[
        str, typer.Option(help="Document meta held in fixed shares, with commas; or none.", show_default=False)
    ] = "",
    people: People = None,
    each_label: Annotated[bool, typer.Option("--each-label", help="Every label too.")] = False,
    labels: Labels = None,
    where: Where = None,
    protocol: Protocol = "",
    tokens: Tokens = "words",
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """What many cheap judges and a few people say together, with intervals that hold, and what the judges were worth.

    Examples: `finecomb estimate STUDY --judge gpt --measure count,coverage` ·
    `finecomb estimate STUDY --judge gpt --by model --strata topic`
    """
    fixed = None if not strata else () if strata == "none" else tuple(split_names(strata))
    result = estimated(
        read(study, from_), judges or (), split_names(measures), by, strata=fixed, people=people or (),
        by_label=each_label,
        filters=build_filters(protocol, labels, where=where), tokens=tokens,
    )  # fmt: skip
    _print_estimates(result, as_json_)


def _print_estimates(result: Estimates, as_json_: bool) -> None:
    plot_findings(result.findings)
    rows, signature = finding_rows(result.findings)
    if as_json_:
        typer.echo(as_json(rows, signature, result.notes))
        return
    print_table([_estimate_row(finding) for finding in result.findings], "Estimates", flat=rows)
    for note in (*result.notes, f"{signature} (95% intervals)"):
        print_note(note)


def _estimate_row(finding: Finding) -> Row:
    """The interval beside its number, and texts as whole numbers."""
    columns = dict(finding.columns)
    visible = {name: value for name, value in columns.items() if not name.startswith("added") and name != "advice"}
    whole = {name: round(value) if isinstance(value, float) else value for name, value in visible.items()}
    added = [columns.get(name) for name in ("added", "added_low", "added_high")]
    texts = (
        f"{added[0]:+.0f} [{added[1]:+.0f}, {added[2]:+.0f}]"
        if all(isinstance(number, float) for number in added)
        else ""
    )
    estimate = {"value": finding.estimate.short(), "why": finding.estimate.why}
    return {**whole, **estimate, "judges add": texts, "advice": columns.get("advice", "")}
