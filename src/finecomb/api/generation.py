"""Generation of texts from prompts, with a model and a grid of decoding parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal

from finecomb import formats
from finecomb.annotators.llm.blocking import RunInterrupted
from finecomb.annotators.llm.chat import ChatMessage
from finecomb.annotators.llm.model_options import build_model_settings
from finecomb.annotators.llm.run_folder import RUNS_FOLDER
from finecomb.api.coercion import StudyLike, as_study
from finecomb.api.models import MODEL_OPTIONS, Numbers, call_progress
from finecomb.api.parameters import Count, PositiveInt, changed_parameters, public
from finecomb.api.progress import Progress
from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.core.results import Table
from finecomb.core.study import Study
from finecomb.corpora.generation.decoding import Variation, decoding_grid, parse_numbers
from finecomb.corpora.generation.generation import (
    GenerationPlan,
    GenerationRun,
    GenerationSettings,
    Interface,
    collect_run,
    plan_generation,
)
from finecomb.corpora.generation.generation import generate as write_texts
from finecomb.corpora.generation.lengths import LengthRule
from finecomb.corpora.generation.priming import DELIMITER, Priming
from finecomb.corpora.generation.run_reports import decoding_rows, generation_notes, plan_notes, plan_rows

# --- text generation -------------------------------------------------------------------------------------------------


class GeneratedTexts(Table):
    """Generated texts: one row per setting of decoding.

    Attributes
    ----------
    study : Study
        The texts; empty after a dry run.
    plan : GenerationPlan
        Everything that the run writes.
    run : GenerationRun or None
        The run; None for a dry run.
    messages : tuple of ChatMessage
        The messages for the first text; only of a dry run.
    """

    def __init__(
        self,
        rows: Iterable[Mapping[str, object]],
        plan: GenerationPlan,
        run: GenerationRun | None = None,
        *,
        title: str,
        notes: Iterable[str],
        messages: Sequence[ChatMessage] = (),
    ) -> None:
        super().__init__(rows, title=title, notes=notes)
        self.plan, self.run, self.messages = plan, run, tuple(messages)
        self.study = Study.from_items(run.documents if run else ())


@public
def generate(
    prompts: StudyLike,
    model: str,
    *,
    top_p: Numbers = (0.96,),
    temperature: Numbers = (1,),
    frequency_penalty: Numbers = (0,),
    vary: Variation = "independently",
    words: str = "80-145",
    to_end: bool = False,
    priming: StudyLike | None = None,
    delimiter: str = DELIMITER,
    tries: PositiveInt = 20,
    sections: bool = False,
    runtime: Literal["transformers", "gguf"] = "transformers",
    interface: Interface = "completions",
    name: str = "",
    limit: PositiveInt | None = None,
    output: str | PathLike[str] | None = None,
    force: bool = False,
    runs: str | PathLike[str] | None = None,
    dry_run: bool = False,
    base_url: str = "",
    key_env: str = "",
    samples: PositiveInt = 1,
    max_tokens: int = 2048,
    price: Numbers = (),
    budget: float | None = None,
    concurrency: PositiveInt = 8,
    requests_per_minute: float | None = None,
    tokens_per_minute: float | None = None,
    timeout: float = 120.0,
    attempts: PositiveInt = 6,
    context_tokens: int | None = None,
    seed: Count = 0,
    progress: Progress = False,
) -> GeneratedTexts:
    """Generate texts from prompts with a model, for each setting of the decoding parameters; stopped runs resume.

    Parameters
    ----------
    prompts : Study, path, DataFrame or list of dicts
        Documents with a prompt, as `finecomb prepare` writes them, or one prompt per line (.txt).
    model : str
        local:smollm2, a GGUF file, a folder or name that transformers loads, or the endpoint's name for it.
    top_p : number, str or sequence of numbers, default 0.96
        Probability masses of the nucleus, comma-separated.
    temperature : number, str or sequence of numbers, default 1
        Temperatures, comma-separated; 0 is argmax.
    frequency_penalty : number, str or sequence of numbers, default 0
        Penalties per earlier occurrence of a token, comma-separated.
    vary : {"independently", "cross"}, default "independently"
        One setting at a time, the other at top-p .96 or temperature 1; or every pair of the two: cross.
    words : str, default "80-145"
        MIN-MAX words; a text ends with the first sentence that reaches MIN, or is sampled again.
    to_end : bool, default False
        Write every text to its own end; the length in words does not apply.
    priming : Study, path, DataFrame or list of dicts, optional
        Texts by people that precede every prompt; copies of them are dropped.
    delimiter : str
        Separator between priming texts, which also ends a text.
    tries : int, default 20
        Maximum samples per text before it is given up.
    sections : bool, default False
        Read sections back from their markers; see `prepare --sections`.
    runtime : {"transformers", "gguf"}, default "transformers"
        Library that runs a local model: transformers, or llama.cpp for a GGUF file.
    interface : {"completions", "chat"}, default "completions"
        Whether an endpoint continues a text, or is asked to in a conversation.
    name : str
        Name of the system in meta.model (default: the model's name).
    limit : int, optional
        Use only the first prompts, as many as this number.
    output : path, optional
        File for the texts: .jsonl or any other format.
    force : bool, default False
        Replace an existing output of another run.
    runs : path, optional
        Folder for journals, so that an interrupted run resumes (default: OUTPUT.runs).
    dry_run : bool, default False
        Write nothing; show the first prompt and the settings.
    base_url : str
        Address of an OpenAI-compatible endpoint, such as http://localhost:8080/v1; without it, a local model.
    key_env : str
        Environment variable with the endpoint's key; the key itself is written nowhere.
    samples : int, default 1
        Number of texts per prompt and setting; argmax has one.
    max_tokens : int, default 2048
        With to_end: maximum tokens of a text; one that has not ended by then is dropped.
    price : str or two numbers
        IN,OUT: US dollars per million tokens sent and received.
    budget : float, optional
        Budget in US dollars; no call is made that could exceed it.
    concurrency : int, default 8
        Maximum calls at a time; for a local model, texts written side by side.
    requests_per_minute : float, optional
        Maximum calls per minute.
    tokens_per_minute : float, optional
        Maximum tokens sent per minute, as estimated.
    timeout : float, default 120
        Seconds per call.
    attempts : int, default 6
        Maximum attempts per call.
    context_tokens : int, optional
        Tokens that fit into the model, where it does not say so itself.
    seed : int, default 0
        Seed from which the seed of every text is made.
    progress : bool or callable, default False
        Show progress on standard error, or call a function with the texts done and all texts.

    Returns
    -------
    GeneratedTexts
        Texts, words and attempts per setting; ``.study`` holds the texts, ``.notes`` why others were not written.

    Raises
    ------
    ParameterError
        If options contradict each other or a number is out of range.
    FinecombError
        If there are no prompts, or `output` holds the texts of another run.
    RunInterrupted
        If a run with journals is interrupted; ``.result`` holds the texts written until then.

    Examples
    --------
    >>> import finecomb as fc
    >>> prompts = [{"id": "a", "text": "The ferry left the harbour."}]
    >>> plan = fc.generate(prompts, "m", base_url="http://localhost:8080/v1", top_p=[0.4, 0.96], dry_run=True)
    >>> [row.setting for row in plan]
    ['p0.4-t1-f0', 'p0.96-t1-f0']

    References
    ----------
    Dou et al. (2022), "Is GPT-3 Text Indistinguishable from Human Text? Scarecrow: A Framework for Scrutinizing
    Machine Text".
    """
    chosen = changed_parameters(generate, locals())
    if to_end and "words" in chosen:
        raise ParameterError(f"{param('words')} and {param('to_end')} contradict each other; leave one of the two out")
    if not to_end and "max_tokens" in chosen:
        raise ParameterError(
            f"{param('max_tokens')} does not apply without {param('to_end')}; the length comes from {param('words')}",
            parameter="max_tokens",
        )
    asked = {option: chosen[option] for option in MODEL_OPTIONS if option in chosen and option != "temperature"}
    model_choice = build_model_settings(model, asked)
    grid = decoding_grid(
        parse_numbers("top_p", top_p, 0.0, 1.0),
        parse_numbers("temperature", temperature, 0.0, 2.0),
        parse_numbers("frequency_penalty", frequency_penalty, -2.0, 2.0),
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
    shots = Priming(() if priming is None else tuple(as_study(priming, "priming").iter_documents()), delimiter)
    plan = plan_generation(settings, list(as_study(prompts, "prompts").iter_documents())[:limit], shots)
    if dry_run:
        first = plan.build_call(plan.tasks()[0], 0).request.messages
        title = "What a run would write"
        return GeneratedTexts(plan_rows(plan), plan, title=title, notes=plan_notes(plan), messages=first)
    target = Path(output) if output else None
    journals = Path(runs) if runs else target and target.with_name(f"{target.name}.{RUNS_FOLDER}")
    if target and target.exists() and not force and not (journals and (journals / plan.folder_name()).exists()):
        raise FinecombError(
            f"{target}: exists already and is of another run; choose another name or say {param('force')}"
        )
    return _write_texts(plan, target, journals, progress)


def _write_texts(plan: GenerationPlan, output: Path | None, runs: Path | None, progress: Progress) -> GeneratedTexts:
    """Return the texts of a plan, and write them; those of an interrupted run come with the interruption."""
    is_interrupted = False
    try:
        with call_progress(progress, "texts") as watch:
            run = write_texts(plan, runs, watch=watch)
    except KeyboardInterrupt:
        if runs is None:
            raise
        run, is_interrupted = collect_run(plan, runs), True
    if output and run.documents:
        formats.save(run.documents, output, force=True)
    title = f"Texts of {plan.settings.system_name()}"
    result = GeneratedTexts(decoding_rows(run), plan, run, title=title, notes=generation_notes(run))
    if is_interrupted:
        raise RunInterrupted(result)
    return result
