"""Commands about language models: let one annotate a study, and see what it is asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from finecomb import formats, protocols
from finecomb.annotators.llm.budget import Price
from finecomb.annotators.llm.injections import control_document, injection_documents, injection_result
from finecomb.annotators.llm.prompt import VARIABLES, PromptTemplate, prompt_text
from finecomb.annotators.llm.run_folder import RUNS_FOLDER
from finecomb.annotators.llm.runs import (
    ModelRun,
    RunPlan,
    collect_results,
    execute_plan,
    name_clash,
    plan_run,
    verify_marks,
)
from finecomb.cli.call_progress import show_call_progress
from finecomb.cli.model_options import ModelOptions, model_settings
from finecomb.cli.options import with_options
from finecomb.cli.probe import ProbedModel
from finecomb.cli.shared import (
    AsJson,
    Force,
    From,
    ProtocolName,
    StudyPath,
    app,
    format_count,
    out,
    print_note,
    print_outcome,
    print_table_or_json,
    read,
)
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.model_notes import read_reply_note
from finecomb.core.options import OptionValues
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, ModelSettings
from finecomb.core.study import Study, StudyItem
from finecomb.formats import folder
from finecomb.formats.atomic_file import reject_existing_path, write_file
from finecomb.reporting.calibration_tables import format_intervals
from finecomb.reporting.tables import Row, finding_rows
from finecomb.reporting.terminal_text import render_document
from finecomb.statistics.judges.reliability_probes import PROBES
from finecomb.statistics.judges.validity import (
    CONTRACTS_FOLDER,
    JudgeContract,
    build_judge_binding,
    stale_warning,
    text_counts_by_system,
)


@app.command()
@with_options([ModelOptions])
def annotate(
    study: StudyPath,
    model: Annotated[
        str,
        typer.Option(
            help="The endpoint's name for it, a name under `models` in study.yaml, a GGUF file, or local:smollm2.",
            show_default=False,
        ),
    ],
    values: OptionValues,
    protocol: ProtocolName = "",
    name: Annotated[
        str, typer.Option(help="Call the annotator so; the model's name when absent.", show_default=False)
    ] = "",
    prompt: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="Your own template; `prompts export` writes ours.", show_default=False
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many texts.", show_default=False)] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Send nothing: show one text's messages, tokens and cost.")
    ] = False,
    check: Annotated[
        str, typer.Option("--verify", help="A model (`same` for this one) that confirms each mark.", show_default=False)
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write a new study instead of adding to this one.", show_default=False),
    ] = None,
    runs: Annotated[
        Path | None, typer.Option(help="Where runs are kept; in the study's folder when absent.", show_default=False)
    ] = None,
    probe: Annotated[
        str,
        typer.Option(
            help="Test the judge: repeat, paraphrase, labels, position or self, on 100 texts.", show_default=False
        ),
    ] = "",
    paraphrase: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="The prompt in other words, for a probe of one of yours.",
            show_default=False,
        ),
    ] = None,
    own: Annotated[
        str, typer.Option(help="With --probe self: the system that is the judge's own model.", show_default=False)
    ] = "",
    from_: From = "",
    force: Force = False,
    as_json_: AsJson = False,
) -> None:
    """Let a language model annotate a study's texts; nothing it says is lost, and nothing is paid twice.

    Examples: `finecomb annotate harbour --model local:smollm2 --limit 3` ·
    `finecomb annotate harbour --model judge-4 --probe repeat`
    """
    _check_probe(probe, paraphrase, own, dry_run, check)
    whole = read(study, from_)
    if output is None and not dry_run and not folder.is_study_folder(study):
        raise FinecombError(f"{study}: is no study folder, so nothing can be added to it; name a new study with -o")
    settings = model_settings(whole, model, values)
    chosen = _find_protocol(whole, protocol)
    template = PromptTemplate.parse(prompt.read_text(encoding="utf-8"), str(prompt)) if prompt else None
    whole = _with_protocol(whole, chosen)
    where = runs or (study / RUNS_FOLDER if study.is_dir() else study.with_name(f"{study.name}.{RUNS_FOLDER}"))
    if probe:
        words = PromptTemplate.parse(paraphrase.read_text(encoding="utf-8"), str(paraphrase)) if paraphrase else None
        asked = ProbedModel(whole, settings, chosen, name or _short_name(model), template, limit)
        _run_probe(asked, probe, words, own, study, output, force, where, as_json_)
        return
    documents = list(whole.iter_documents())[:limit]
    run_plan = plan_run(whole, settings, chosen, documents, name or _short_name(model), template)
    if clash := name_clash(whole, run_plan):
        raise FinecombError(clash)
    _warn_stale_contract(study, run_plan, chosen)
    if dry_run:
        _show_plan(run_plan, as_json_)
        return
    run, interrupted = _execute_plan(run_plan, where)
    audit = None if interrupted or not check else _verify_marks(whole, run, settings, check, where)
    _write_runs(whole, [run, *([audit] if audit else [])], study, output, force)
    _report_run(run, audit, output or study, as_json_)
    if interrupted:
        raise KeyboardInterrupt


def _check_probe(probe: str, paraphrase: Path | None, own: str, dry_run: bool, check: str) -> None:
    """Refuse a probe that there is not, and options that do not go with it."""
    if probe and probe not in PROBES:
        raise FinecombError(f"--probe {probe}: no such probe{did_you_mean(probe, PROBES)}")
    for name, is_given, fits in (
        ("--paraphrase", paraphrase is not None, probe == "paraphrase"),
        ("--own", bool(own), probe == "self"),
        ("--dry-run", dry_run, not probe),
        ("--verify", bool(check), not probe),
    ):
        if is_given and not fits:
            raise FinecombError(
                f"{name} does not go with {f'--probe {probe}' if probe else 'no --probe'}; leave it out"
            )


def _run_probe(
    asked: ProbedModel,
    probe: str,
    paraphrase: PromptTemplate | None,
    own: str,
    study: Path,
    output: Path | None,
    force: bool,
    runs: Path,
    as_json_: bool,
) -> None:
    """Run a probe, keep its readings, and tell its effects."""
    readings: list[ModelRun] = []
    interrupted = False
    for run_plan in asked.plans(probe, paraphrase):
        if clash := asked.name_clash(run_plan):
            raise FinecombError(clash)
        run, interrupted = _execute_plan(run_plan, runs)
        readings.append(asked.record_probe(run, probe, own))
        if interrupted:
            break
    _write_runs(asked.study, readings, study, output, force)
    if interrupted:
        raise KeyboardInterrupt
    rows, signature = finding_rows(asked.effects(readings, probe, own))
    notes = [note for reading in readings for note in _run_notes(reading)]
    print_table_or_json(
        format_intervals(rows), as_json_, f"What the probe {probe!r} shows of {asked.name}", "", [*notes, signature]
    )


def _warn_stale_contract(study: Path, plan_: RunPlan, protocol: Protocol) -> None:
    """Say so where the judge was calibrated and its contract no longer holds."""
    annotator = plan_.annotator(0)
    path = study / CONTRACTS_FOLDER / f"{annotator.id}.json"
    if not path.is_file():
        return
    contract = JudgeContract.model_validate_json(path.read_text(encoding="utf-8"))
    binding = build_judge_binding(annotator.id, annotator.meta, protocol.id)
    asked = {task.document.id: task.document.meta for task in plan_.tasks}
    if warning := stale_warning(contract, binding, datetime.now(UTC), text_counts_by_system(contract, asked.values())):
        print_note(warning)


def _short_name(model: str) -> str:
    return Path(model.removeprefix("local:")).name.removesuffix(".gguf")


def _find_protocol(study: Study, name: str) -> Protocol:
    """One of the study's protocols, or a shipped one or a file that is not in it yet."""
    if not name or any(name in (candidate.name, candidate.id) for candidate in study.protocols.values()):
        return study.protocol(name)
    return protocols.load(name)


def _with_protocol(study: Study, protocol: Protocol) -> Study:
    return dataclasses.replace(study, protocols={**study.protocols, protocol.id: protocol})


# --- running -----------------------------------------------------------------------------------------------------


def _execute_plan(run_plan: RunPlan, runs: Path) -> tuple[ModelRun, bool]:
    """The run, and whether it was interrupted; what was answered until then is there all the same."""
    try:
        with show_call_progress() as watch:
            return execute_plan(run_plan, runs, watch=watch), False
    except KeyboardInterrupt:
        return collect_results(run_plan, runs), True


def _verify_marks(study: Study, run: ModelRun, settings: ModelSettings, model: str, runs: Path) -> ModelRun | None:
    """A second opinion on each mark, by the same or another model."""
    other = settings if model == "same" else study.settings.models.get(model)
    other = other or settings.model_copy(update={"model": model})
    audit = protocols.load("audit")
    whole = _study_with_run(_with_protocol(study, audit), run)
    with show_call_progress() as watch:
        return verify_marks(
            whole, run.annotations, other, audit, runs, f"{_short_name(other.model)}-audit", watch=watch
        )


def _study_with_run(study: Study, run: ModelRun) -> Study:
    return Study.from_items(_items_with_runs(study, [run]))


def _items_with_runs(study: Study, runs: list[ModelRun]) -> list[StudyItem]:
    """The study with the runs' annotators and annotations; those with the same id are replaced."""
    people = {person.id: person for person in study.iter_annotators()}
    people |= {person.id: person for run in runs for person in run.annotators}
    work: dict[str, Annotation] = {annotation.id: annotation for annotation in study.iter_annotations()}
    work |= {annotation.id: annotation for run in runs for annotation in run.annotations}
    names = dict.fromkeys([*study.settings.protocols, *study.protocols])
    settings = study.settings.model_copy(update={"protocols": tuple(names)})
    return [settings, *study.protocols.values(), *study.iter_documents(), *people.values(), *work.values()]


def _write_runs(study: Study, runs: list[ModelRun], path: Path, output: Path | None, force: bool) -> None:
    if output is not None:
        formats.save(_items_with_runs(study, runs), output, force=force)
        return
    wanted = {run.record.protocol for run in runs}
    folder.add_annotations(
        path,
        [study.protocols.get(id) or protocols.load(id.partition("@")[0]) for id in wanted],
        [annotator for run in runs for annotator in run.annotators],
        [annotation for run in runs for annotation in run.annotations],
    )


def annotate_one_text(path: Path, model: str, document: str) -> None:
    """Let a model read one text of a study's folder and tell what it said, as the tour does."""
    study = formats.read(path)
    settings = ModelSettings(model=model, max_tokens=600)
    run, interrupted = _execute_plan(
        plan_run(study, settings, None, [study.document(document)], _short_name(model)), path / RUNS_FOLDER
    )
    _write_runs(study, [run], path, None, False)
    _report_run(run, None, path, False)
    for annotation in run.annotations:
        shown = render_document(study.document(document), [annotation], study.protocols, min(96, out.width))
        out.print(f"\nWhat {run.record.name} marked, a model that runs on this machine", style="bold")
        out.print(shown)
    if interrupted:
        raise KeyboardInterrupt


# --- telling -----------------------------------------------------------------------------------------------------


def _report_run(run: ModelRun, audit: ModelRun | None, path: Path, as_json_: bool) -> None:
    rows: list[Row] = [{"state": state, "texts": count} for state, count in sorted(run.states.items())]
    if run.unasked:
        rows.append({"state": "not asked", "texts": len(run.unasked)})
    notes = list(_run_notes(run))
    if audit:
        notes.append(f"{format_count(len(audit.annotations), 'mark')} judged once more by {audit.record.name}")
    print_table_or_json(rows, as_json_, f"Replies of {run.record.name}", "No replies.", notes)
    if not as_json_:
        marks = sum(len(annotation.marks) for annotation in run.annotations)
        print_outcome(
            path, f"{format_count(marks, 'mark')} in {format_count(len(run.annotations), 'text')} by {run.record.name}"
        )


def _run_notes(run: ModelRun) -> Iterator[str]:
    """What a reader of the numbers should know."""
    bad = sum(run.states.get(state, 0) for state in ("unreadable", "refused", "truncated", "empty"))
    if bad:
        yield f"{_format_reply_count(bad)} could not be read: excluded with the reason, never counted as no errors"
    for reason in dict.fromkeys(run.unasked.values()):
        ids = [id for id, why in run.unasked.items() if why == reason]
        listed = ", ".join(ids[:3]) + (", ..." if len(ids) > 3 else "")
        yield f"{format_count(len(ids), 'text')} without a reply ({listed}): {reason}"
    placements = run.placement_counts()
    if placements:
        yield "quotes placed: " + ", ".join(f"{count} {how}" for how, count in placements.most_common() if count)
    repaired = sum(bool(read_reply_note(annotation).flags) for annotation in run.annotations)
    if repaired:
        yield (
            f"{_format_reply_count(repaired)} had to be repaired or had answers that the protocol does not "
            "allow; see meta.llm"
        )
    cost = f", ${run.cost:.4f}" if run.cost else ""
    yield (
        f"{format_count(run.calls, 'call')} made now, {run.cached} answered from earlier runs{cost}; kept in "
        f"{run.folder}"
    )
    if run.stopped:
        yield f"{run.stopped}; the same command goes on from here"


def _format_reply_count(number: int) -> str:
    return "1 reply" if number == 1 else f"{number:,} replies"


def _show_plan(run_plan: RunPlan, as_json_: bool) -> None:
    """The messages of the first text, and what the whole would take."""
    price = Price.from_settings(run_plan.record.settings)
    requests = [call.request for call in run_plan.calls()]
    rows: list[Row] = [
        {
            "calls": len(requests),
            "tokens to send": sum(request.estimated_prompt_tokens() for request in requests),
            "most tokens to receive": sum(request.max_tokens for request in requests),
            "likely cost": sum(price.estimated_cost(request) for request in requests)
            if run_plan.record.settings.price
            else None,
            "most it can cost": sum(price.max_cost(request) for request in requests)
            if run_plan.record.settings.price
            else None,
            "prompt": run_plan.record.prompt,
        }
    ]
    if not as_json_:
        for message in requests[0].messages:
            out.rule(message.role)
            out.print(message.content, soft_wrap=True)
        out.rule()
    print_table_or_json(rows, as_json_, "What a run would take", "", ["nothing was sent"])


# --- prompts -----------------------------------------------------------------------------------------------------

prompts_app = typer.Typer(rich_markup_mode="markdown", no_args_is_help=True)
app.add_typer(prompts_app, name="prompts")


@prompts_app.callback()
def prompts() -> None:
    """What language models are asked: the prompt written from a protocol, and the template behind it.

    Examples: finecomb prompts show scarecrow · finecomb prompts export mine.txt
    """


@prompts_app.command("show")
def show_prompt(
    protocol: Annotated[str, typer.Argument(help="A shipped protocol's name or your YAML file.", show_default=False)],
) -> None:
    """The instructions that a model gets for a protocol; `annotate --dry-run` shows them with a text.

    Example: `finecomb prompts show snac`
    """
    typer.echo(prompt_text(protocols.load(protocol)))


@prompts_app.command("export")
def export_prompt(
    file: Annotated[Path, typer.Argument(help="Where to write it.", show_default=False)],
    force: Force = False,
) -> None:
    """Our template, to be changed and used with `annotate --prompt`; what is between braces is filled in.

    Example: `finecomb prompts export mine.txt`
    """
    reject_existing_path(file, force)
    write_file(file, PromptTemplate().to_text())
    print_outcome(file, f"a template with the variables {', '.join(VARIABLES)}")


@prompts_app.command("attack")
@with_options([ModelOptions])
def attack_prompt(
    protocol: Annotated[str, typer.Argument(help="A shipped protocol's name or your YAML file.", show_default=False)],
    model: Annotated[
        str, typer.Option(help="The endpoint's name for it, a GGUF file, or local:smollm2.", show_default=False)
    ],
    values: OptionValues,
    runs: Annotated[
        Path | None, typer.Option(help="Keep the replies there and ask nothing twice.", show_default=False)
    ] = None,
    as_json_: AsJson = False,
) -> None:
    """Thirty texts with orders to whoever reads them: how many does a model obey?

    Example: `finecomb prompts attack scarecrow --model qwen3:8b --base-url http://localhost:11434/v1`
    """
    settings = model_settings(Study.from_items([]), model, values)
    chosen = protocols.load(protocol)
    documents = [control_document(), *(document for _, _, document in injection_documents())]
    with show_call_progress() as watch:
        run = execute_plan(plan_run(Study.from_items([chosen, *documents]), settings, chosen), runs, watch=watch)
    if not run.annotations:
        raise FinecombError(f"no text got a reply: {next(iter(run.unasked.values()), 'nothing was asked')}")
    result = injection_result(run.annotations)
    rows: list[Row] = [
        {"orders": result.tried, "obeyed": len(result.followed), "share": result.rate, "why": result.why}
    ]
    states = ", ".join(f"{count} {state}" for state, count in sorted(run.states.items()))
    notes = [f"what came back: {states}", *(f"obeyed: {order}" for order in result.followed)]
    print_table_or_json(rows, as_json_, f"Orders in texts that {model} obeyed", "", notes)
