"""Text generation from prompts with a model and a grid of decoding parameters."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal

from finecomb import formats
from finecomb.annotators.llm.blocking import RunInterrupted
from finecomb.annotators.llm.chat import ChatMessage
from finecomb.annotators.llm.model_options import build_model_settings
from finecomb.annotators.llm.providers import find_provider
from finecomb.annotators.llm.run_folder import RUNS_FOLDER
from finecomb.api.models import MODEL_OPTIONS, Numbers, run_until_interrupted
from finecomb.api.parameters import Count, PositiveInt, StudyLike, as_study, changed_parameters, public
from finecomb.api.progress import Progress
from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.core.results import Table
from finecomb.core.study import Study
from finecomb.corpora.generation.decoding import Variation, decoding_grid, parse_numbers
from finecomb.corpora.generation.generation import (
    GenerationPlan,
    GenerationRun,
    GenerationSettings,
    GenerationTask,
    Interface,
    plan_generation,
)
from finecomb.corpora.generation.lengths import LengthRule
from finecomb.corpora.generation.priming import DELIMITER, Priming
from finecomb.corpora.generation.run_reports import decoding_rows, generation_notes, plan_notes

# --- text generation -------------------------------------------------------------------------------------------------


class GeneratedTexts(Table):
    """Generated texts: one row per combination of decoding parameters.

    Attributes
    ----------
    study : Study
        The texts; empty after a dry run.
    plan : GenerationPlan
        The texts that the run generates, with their parameters.
    run : GenerationRun or None
        The run; None for a dry run.
    messages : tuple of ChatMessage
        The messages for the first text; only for a dry run.
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
    """Generate texts from prompts with a model, for each combination of decoding parameters; runs can be resumed.

    Parameters
    ----------
    prompts : Study, path, DataFrame or list of dicts
        Documents with prompts (see `finecomb prepare`), or a text file with one prompt per line.
    model : str
        Model: `local:smollm2`, a GGUF file, a transformers model, or a name at the endpoint.
        A transformers model is a name or a folder.
    top_p : number, str or sequence of numbers, default 0.96
        Values of top-p (nucleus sampling), comma-separated.
    temperature : number, str or sequence of numbers, default 1
        Sampling temperatures, comma-separated; 0 is greedy decoding.
    frequency_penalty : number, str or sequence of numbers, default 0
        Frequency penalties, comma-separated, subtracted from a token's logit per occurrence.
    vary : {"independently", "cross"}, default "independently"
        Vary top-p and temperature one at a time (`independently`), or in all pairs (`cross`).
        While one of them varies, the other is fixed: top-p at 0.96, temperature at 1.
    words : str, default "80-145"
        Words per text, as `MIN-MAX`; texts end after the sentence that reaches `MIN`.
        A text is sampled again if no sentence ends within this length.
    to_end : bool, default False
        Generate until the model ends the text, without a word limit.
    priming : Study, path, DataFrame or list of dicts, optional
        Human texts shown before every prompt; generated copies of them are dropped.
    delimiter : str
        Separator between priming texts; a generated text ends at the first separator.
    tries : int, default 20
        Maximum number of attempts to sample a text of the required length.
    sections : bool, default False
        Convert section markers in the generated texts to sections; see `prepare --sections`.
    runtime : {"transformers", "gguf"}, default "transformers"
        Library that runs a local model: `transformers` or `gguf` (llama.cpp, for a GGUF file).
    interface : {"completions", "chat"}, default "completions"
        Endpoint type: `completions` (continues the text) or `chat` (prompted to continue it).
    name : str
        Name of the system, stored as `meta.model` of each text (default: the model's name).
    limit : int, optional
        Maximum number of prompts to use, in order (default: all).
    output : path, optional
        Output file for the texts: `.jsonl` or another format that `finecomb formats` lists.
    force : bool, default False
        Replace the output of an earlier run.
    runs : path, optional
        Folder for replies, so that an interrupted run can be resumed (default: `OUTPUT.runs`).
    dry_run : bool, default False
        Write nothing; show the first prompt and the decoding parameters.
    base_url : str
        URL of an OpenAI-compatible endpoint (default: run a local model).
        For example `http://localhost:8080/v1`.
    key_env : str
        Environment variable with the endpoint's API key; the key itself is never stored.
    samples : int, default 1
        Number of texts per prompt and decoding setting (greedy decoding: always 1).
    max_tokens : int, default 2048
        Maximum tokens per text generated to its end; texts that have not ended by then are dropped.
    price : str or two numbers
        Prices as `IN,OUT`, in US dollars per million input and output tokens.
    budget : float, optional
        Budget in US dollars; calls that could exceed it are not made.
    concurrency : int, default 8
        Maximum number of simultaneous calls or, for a local model, of texts per batch.
    requests_per_minute : float, optional
        Maximum number of calls per minute.
    tokens_per_minute : float, optional
        Maximum number of tokens sent per minute (estimated).
    timeout : float, default 120
        Timeout per call in seconds.
    attempts : int, default 6
        Maximum attempts per call.
    context_tokens : int, optional
        Context size of the model in tokens, if the model does not report it.
    seed : int, default 0
        Random seed from which the seed of each text is derived.
    progress : bool or callable, default False
        Show progress on standard error.
        A function is called with the numbers of finished and total texts instead.

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
        raise ParameterError(f"{param('words')} and {param('to_end')} cannot be used together")
    if not to_end and "max_tokens" in chosen:
        raise ParameterError(
            f"{param('max_tokens')} requires {param('to_end')}; otherwise {param('words')} sets the length",
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
        runtime="http" if model_choice.base_url or find_provider(model).base_url else runtime,
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
        counts = Counter(task.decoding.name for task in plan.tasks())
        rows = [{"setting": setting, "texts": count} for setting, count in counts.items()]
        return GeneratedTexts(rows, plan, title="Planned texts", notes=plan_notes(plan), messages=first)
    target = Path(output) if output else None
    journals = Path(runs) if runs else target and target.with_name(f"{target.name}.{RUNS_FOLDER}")
    if target and target.exists() and not force and not (journals and (journals / plan.folder_name()).exists()):
        raise FinecombError(
            f"{target} already exists and belongs to another run; choose another name or pass {param('force')}"
        )
    run, is_interrupted = run_until_interrupted(functools.partial(GenerationTask, plan), journals, progress, "texts")
    if target and run.documents:
        formats.save_records(run.documents, target, force=True)
    title = f"Texts of {settings.system_name()}"
    result = GeneratedTexts(decoding_rows(run), plan, run, title=title, notes=generation_notes(run))
    if is_interrupted:
        raise RunInterrupted(result)
    return result
