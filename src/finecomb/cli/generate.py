"""The command that lets models write texts from prompts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer

from finecomb import formats
from finecomb.annotators.llm.budget import Price
from finecomb.annotators.llm.run_folder import RUNS_FOLDER
from finecomb.api.models import call_progress
from finecomb.cli.model_options import WriterOptions, model_settings
from finecomb.cli.options import with_options
from finecomb.cli.shared import (
    AsJson,
    Force,
    From,
    app,
    format_count,
    out,
    print_outcome,
    print_table_or_json,
    read,
    shows_progress,
)
from finecomb.core.errors import FinecombError
from finecomb.core.options import OptionValues
from finecomb.core.records import Document
from finecomb.core.study import Study
from finecomb.corpora.generation.decoding import Variation, decoding_grid
from finecomb.corpora.generation.generation import (
    GenerationPlan,
    GenerationRun,
    GenerationSettings,
    Interface,
    collect_run,
    generate,
    generation_note,
    plan_generation,
)
from finecomb.corpora.generation.lengths import LengthRule
from finecomb.corpora.generation.priming import DELIMITER, Priming
from finecomb.reporting.tables import Row


@app.command("generate")
@with_options([WriterOptions])
def generate_texts(
    prompts: Annotated[
        Path,
        typer.Argument(
            help="Documents with a prompt, as `finecomb prepare` writes them, or one prompt a line (.txt).",
            show_default=False,
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            help="local:smollm2, a GGUF file, a folder or name that transformers loads, or the endpoint's name for it.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the texts go: .jsonl or any other format.", show_default=False)
    ],
    values: OptionValues,
    top_p: Annotated[str, typer.Option(help="Masses of the nucleus, with commas.")] = "0.96",
    temperature: Annotated[str, typer.Option(help="Temperatures, with commas; 0 is argmax.")] = "1",
    frequency_penalty: Annotated[
        str, typer.Option(help="Taken from a token's logit each time it was sampled; with commas.")
    ] = "0",
    vary: Annotated[
        Variation,
        typer.Option(
            help="One setting at a time, the other at top-p .96 or temperature 1; or every pair of the two: cross."
        ),
    ] = "independently",
    words: Annotated[
        str,
        typer.Option(help="LEAST-MOST: a text ends with the first sentence that reaches LEAST, or is sampled again."),
    ] = "80-145",
    to_end: Annotated[
        bool, typer.Option("--to-end", help="Write every text to its own end; --words does not apply.")
    ] = False,
    priming: Annotated[
        Path | None,
        typer.Option(
            help="Texts by people that stand before every prompt; copies of them are dropped.", show_default=False
        ),
    ] = None,
    delimiter: Annotated[str, typer.Option(help="What stands between priming texts and ends a text.")] = DELIMITER,
    tries: Annotated[int, typer.Option(min=1, help="How often a text is sampled before it is given up.")] = 20,
    sections: Annotated[
        bool, typer.Option("--sections", help="Read sections back from their markers; see `prepare --sections`.")
    ] = False,
    runtime: Annotated[
        Literal["transformers", "gguf"],
        typer.Option(help="What runs a local model: transformers, or llama.cpp for a GGUF file."),
    ] = "transformers",
    interface: Annotated[
        Interface, typer.Option(help="Whether an endpoint goes on with a text, or is asked to in a conversation.")
    ] = "completions",
    name: Annotated[str, typer.Option(help="Call the system so in meta.model.", show_default=False)] = "",
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the first so many prompts.", show_default=False)
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option(
            help="Where journals are kept, so that a run can go on; OUTPUT.runs when absent.", show_default=False
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing: show the first prompt and the settings.")
    ] = False,
    from_: From = "",
    force: Force = False,
    as_json_: AsJson = False,
) -> None:
    """Let a model write texts from prompts, with every setting of decoding; stopped runs go on where they were.

    Example: `finecomb generate prompts.jsonl -o texts.jsonl --model local:smollm2 --top-p .4,.7,.9,.96
    --temperature 0,.4,.7,1 --frequency-penalty 0,1`
    """
    if to_end and words != "80-145":
        raise FinecombError("--words and --to-end contradict each other; leave one of the two out")
    if not to_end and "max_tokens" in values.given:
        raise FinecombError("--max-tokens does not apply without --to-end; the length comes from --words")
    model_choice = model_settings(Study.from_items([]), model, values)
    grid = decoding_grid(
        _parse_numbers(top_p, "--top-p", 0.0, 1.0),
        _parse_numbers(temperature, "--temperature", 0.0, 2.0),
        _parse_numbers(frequency_penalty, "--frequency-penalty", -2.0, 2.0),
        vary,
    )
    settings = GenerationSettings(
        model=model_choice,
        runtime="http" if model_choice.base_url else runtime,
        decodings=tuple(grid),
        rule=None if to_end else LengthRule.parse(words),
        tries=tries,
        interface=interface,
        sections=sections,
        name=name,
    )
    shots = Priming(tuple(read(priming).iter_documents()) if priming else (), delimiter)
    run_plan = plan_generation(settings, list(read(prompts, from_).iter_documents())[:limit], shots)
    if dry_run:
        _show_plan(run_plan, as_json_)
        return
    where = runs or output.with_name(f"{output.name}.{RUNS_FOLDER}")
    is_ours = (where / run_plan.folder_name()).exists()
    if output.exists() and not force and not is_ours:
        raise FinecombError(f"{output}: exists already and is of another run; choose another name or say --force")
    run, interrupted = _execute_plan(run_plan, where)
    if run.documents:
        formats.save(run.documents, output, force=True)
    _report_run(run, output, as_json_)
    if interrupted:
        raise KeyboardInterrupt


def _parse_numbers(text: str, flag: str, low: float, high: float) -> list[float]:
    """Numbers with commas, each once."""
    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        raise FinecombError(f"{flag} {text}: expected numbers with commas, e.g. 0.4,0.7") from None
    for number in numbers:
        if not low <= number <= high or (flag == "--top-p" and number == 0):
            raise FinecombError(
                f"{flag} {number:g}: is outside {'above 0' if flag == '--top-p' else f'{low:g}'} to {high:g}"
            )
    return list(dict.fromkeys(numbers))


def _execute_plan(run_plan: GenerationPlan, runs: Path) -> tuple[GenerationRun, bool]:
    """The run, and whether it was interrupted; what was written until then is there all the same."""
    try:
        with call_progress(shows_progress(), "texts") as watch:
            return generate(run_plan, runs, watch=watch), False
    except KeyboardInterrupt:
        return collect_run(run_plan, runs), True


def _report_run(run: GenerationRun, output: Path, as_json_: bool) -> None:
    print_table_or_json(
        _decoding_rows(run), as_json_, f"Texts of {run.plan.settings.system_name()}", "No texts.", list(_run_notes(run))
    )
    if not as_json_ and run.documents:
        print_outcome(
            output, f"{format_count(len(run.documents), 'text')} from {format_count(len(run.plan.prompts), 'prompt')}"
        )
    if not run.documents and not run.stopped:
        reason = next(iter([*run.dropped.values(), *run.unwritten.values()]), "nothing was asked")
        raise FinecombError(f"no text was written: {reason}")


def _decoding_rows(run: GenerationRun) -> list[Row]:
    """What came of each setting."""
    texts: dict[str, list[Document]] = {decoding.name: [] for decoding in run.plan.settings.decodings}
    for document in run.documents:
        texts[generation_note(document).decoding].append(document)
    dropped = Counter(id.split("/")[-2 if run.plan.settings.model.samples > 1 else -1] for id in run.dropped)
    return [
        {
            "setting": decoding.name,
            "texts": len(texts[decoding.name]),
            "words": _mean([generation_note(document).words for document in texts[decoding.name]]),
            "attempts": _mean([generation_note(document).attempt for document in texts[decoding.name]]),
            "dropped": dropped[decoding.name],
        }
        for decoding in run.plan.settings.decodings
    ]


def _mean(numbers: list[int]) -> float | None:
    return round(sum(numbers) / len(numbers), 1) if numbers else None


def _run_notes(run: GenerationRun) -> Iterator[str]:
    """What a reader of the table should know."""
    for reason, count in Counter(run.dropped.values()).most_common():
        yield f"{format_count(count, 'text')} dropped: {reason}"
    for reason, count in Counter(run.unwritten.values()).most_common():
        yield f"{format_count(count, 'text')} not written yet: {reason}"
    for reason, count in Counter(run.rejected).most_common():
        yield f"{format_count(count, 'sample')} not taken: {reason}"
    cost = f", ${run.cost:.4f}" if run.cost else ""
    yield (
        f"{format_count(run.calls, 'call')} made now, {run.cached} answered from earlier runs{cost}; kept in "
        f"{run.folder}"
    )
    if run.stopped:
        yield f"{run.stopped}; the same command goes on from here"


def _show_plan(run_plan: GenerationPlan, as_json_: bool) -> None:
    """The first prompt, every setting, and what the whole would take if no text had to be sampled again."""
    tasks = run_plan.tasks()
    requests = [run_plan.build_call(task, 0).request for task in tasks]
    settings = run_plan.settings
    price = Price.from_settings(settings.model)
    if not as_json_:
        for message in requests[0].messages:
            out.rule(message.role)
            out.print(message.content, soft_wrap=True)
        out.rule()
    per_setting = Counter(task.decoding.name for task in tasks)
    rows: list[Row] = [{"setting": name, "texts": count} for name, count in per_setting.items()]
    notes = [
        f"{format_count(len(tasks), 'text')} from {format_count(len(run_plan.prompts), 'prompt')}; nothing was sent"
    ]
    if settings.model.price:
        most = sum(price.max_cost(request) for request in requests)
        notes.append(f"at most ${most:.4f} where no text has to be sampled again")
    print_table_or_json(rows, as_json_, "What a run would write", "", notes)
