"""The command that damages texts and tells which metrics notice."""

from __future__ import annotations

import functools
import importlib
import json
import math
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from finecomb import protocols
from finecomb.annotators.detectors import Detector, find_detector
from finecomb.annotators.detectors.base import BatchDetector
from finecomb.cli.filters import Draws, Drop, Seed, Where, filter_study, split_names
from finecomb.cli.options import NoOptions, with_options
from finecomb.cli.shared import (
    AsJson,
    From,
    StudyPath,
    app,
    format_count,
    print_note,
    print_notes,
    print_signature,
    read,
    resume_note,
)
from finecomb.cli.shared import print_table as print_rows
from finecomb.core import tokens
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.options import OptionValues, reject_unknown_options
from finecomb.core.records import Document
from finecomb.corpora.critics import storage
from finecomb.corpora.critics.base import Critic, state_steps
from finecomb.corpora.critics.priors import ProjectionError
from finecomb.corpora.stress import (
    CORRUPTIONS,
    METRICS,
    Candidate,
    Metric,
    StressPair,
    corrupt_documents,
    metric_by_name,
)
from finecomb.corpora.stress import run_stress_trial as stressed
from finecomb.corpora.stress.stress_trial import HUMAN
from finecomb.engine.options import PartitionOptions
from finecomb.reporting.tables import Row, as_json, finding_rows

COMMAND_SECONDS = 3600


@app.command()
@with_options([PartitionOptions])
def stress(
    study: StudyPath,
    values: OptionValues,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            help="rouge1, rouge2, rougeL, bleu, chrf, bertscore:MODEL, perplexity:MODEL, mauve:MODEL, detector:NAME, "
            "critic:FOLDER, command:COMMAND, code:MODULE:FUNCTION; may be repeated.",
            show_default=False,
        ),
    ] = None,
    corruptions: Annotated[
        str, typer.Option("--corruption", help="Kinds of damage, with commas; without it, all.", show_default=False)
    ] = "",
    where: Where = None,
    drop: Drop = None,
    draws: Draws = 1000,
    seed: Seed = 0,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Does your metric notice? Texts are damaged in known ways and scored against their references.

    A command gets one JSON object a line (`text`, `references`) and answers with one number a line.

    Example: `finecomb stress study --metric rougeL --metric chrf --corruption shuffled,negated`
    """
    whole = filter_study(read(study, from_), where, drop)
    documents = [document for document in whole.iter_documents() if document.text.strip()]
    if not documents:
        raise FinecombError(f"{study}: has no texts to damage")
    chosen = [_make_metric(name) for name in metrics or ["rouge1", "rouge2", "rougeL"]]
    spread_out = {metric.name: PartitionOptions for metric in [*METRICS.values(), *chosen] if metric.by_text}
    reject_unknown_options(
        values.given, {metric.name: spread_out.get(metric.name, NoOptions) for metric in chosen}, spread_out
    )
    kinds = _parse_corruptions(corruptions)
    pairs = corrupt_documents(documents, kinds, seed)
    if not pairs:
        raise FinecombError(f"{study}: no text can be damaged in this way; `finecomb stress --help` lists the kinds")
    with values.build_options(PartitionOptions).open_executor() as spread:
        table = stressed(pairs, chosen, draws, seed, spread)
    print_notes(resume_note(spread.reused_row_count, "score"))
    _print_stress(table.falls, table.ranks, [*_stress_notes(documents, pairs, kinds, chosen), *table.notes], as_json_)
    if table.failed:
        raise typer.Exit(1)


def _parse_corruptions(text: str) -> list[str]:
    """The kinds of damage that are asked for; all, and a human text as ceiling, where none is named."""
    kinds = split_names(text) or [*CORRUPTIONS, HUMAN]
    for kind in kinds:
        if kind not in CORRUPTIONS and kind != HUMAN:
            raise FinecombError(f"--corruption {kind}: unknown{did_you_mean(kind, [*CORRUPTIONS, HUMAN])}")
    return kinds


def _make_metric(name: str) -> Metric:
    kind, _, rest = name.partition(":")
    makers: dict[str, Callable[[str], Metric]] = {
        "detector": detector_metric,
        "critic": critic_metric,
        "command": command_metric,
        "code": code_metric,
    }
    if kind not in makers:
        return metric_by_name(name)
    if not rest:
        raise FinecombError(f"--metric {kind}: say which, e.g. --metric {kind}:...")
    return makers[kind](rest)


def detector_metric(name: str) -> Metric:
    """Marks of a detector per 100 words; fewer are better."""
    program = _load_detector(name)
    return Metric(
        f"detector:{name}",
        DetectorScore(name),
        higher_is_better=False,
        by_text=True,
        needs_document=True,
        uses_all_cores=isinstance(program, BatchDetector),
        identity=program.signature,
    )


@dataclass(frozen=True, slots=True)
class DetectorScore:
    """Marks of a detector per 100 words."""

    name: str

    def __call__(self, candidates: Sequence[Candidate]) -> list[float]:
        """Each process makes the detector once."""
        program = _load_detector(self.name)
        documents = (_damaged_document(candidate) for candidate in candidates)
        return [100 * len(program(document).marks) / max(1, len(tokens.words(document.text))) for document in documents]


@functools.lru_cache(maxsize=4)
def _load_detector(name: str) -> Detector:
    factory = find_detector(name)
    return factory.make(protocols.load(factory.protocol), factory.options())


def critic_metric(folder: str) -> Metric:
    """A saved critic's mean surprise at a text's structure; less is better."""
    place = Path(folder)
    surprise = CriticSurprise(place, storage.folder_digest(place))
    _load_critic(surprise.folder, surprise.digest)  # a folder without a critic is refused here, and not at every text
    return Metric(
        f"critic:{place.name}",
        surprise,
        higher_is_better=False,
        by_text=True,
        needs_document=True,
        identity=surprise.digest,
    )


@dataclass(frozen=True, slots=True)
class CriticSurprise:
    """A saved critic's mean nats of a step."""

    folder: Path
    digest: str
    """Of the folder's contents, so that a process that has loaded it loads it again when it has changed."""

    def __call__(self, candidates: Sequence[Candidate]) -> list[float]:
        """NaN for a text that cannot be projected."""
        critic = _load_critic(self.folder, self.digest)
        return [self._mean_nats(critic, _damaged_document(candidate)) for candidate in candidates]

    def _mean_nats(self, critic: Critic, document: Document) -> float:
        try:
            steps = state_steps(critic, document)
        except ProjectionError:
            return math.nan
        return sum(step.nll for step in steps) / len(steps) if steps else math.nan


@functools.lru_cache(maxsize=4)
def _load_critic(folder: Path, digest: str) -> Critic:
    return storage.load(folder)


def command_metric(command: str) -> Metric:
    """Any program: candidates as JSON lines on its standard input, a number a line on its standard output."""

    def score(candidates: Sequence[Candidate]) -> list[float]:
        lines = [json.dumps({"text": row.text, "references": row.references}, ensure_ascii=False) for row in candidates]
        words = shlex.split(command)
        try:
            result = subprocess.run(
                words, input="\n".join(lines), capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
            )
        except OSError as error:
            raise FinecombError(f"--metric command:{command}: cannot be run: {error.strerror}") from None
        if result.returncode:
            last = (result.stderr.strip().split("\n") or [""])[-1]
            raise FinecombError(f"--metric command:{command}: ended with {result.returncode}: {last}")
        return _parse_scores(result.stdout.split("\n"), len(candidates), f"command:{command}")

    return Metric(f"command:{command}", score)


def code_metric(place: str) -> Metric:
    """Your own function of a list of candidates, by `module:function`, named here by you."""
    module, _, attribute = place.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        function: Any = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise FinecombError(f"--metric code:{place}: {error}; name it as code:MODULE:FUNCTION") from None
    return Metric(f"code:{place}", lambda rows: _parse_scores(list(function(rows)), len(rows), f"code:{place}"))


def _parse_scores(answers: Sequence[object], count: int, name: str) -> list[float]:
    values = [answer for answer in answers if not isinstance(answer, str) or answer.strip()]
    if len(values) != count:
        raise FinecombError(f"--metric {name}: gave {len(values)} numbers for {count} texts")
    try:
        return [float(str(value)) for value in values]
    except ValueError:
        raise FinecombError(f"--metric {name}: gave something that is no number; one number a text is wanted") from None


def _damaged_document(candidate: Candidate) -> Document:
    """The document with the candidate's text; its segments hold no longer where the text is another."""
    document = candidate.document
    same = candidate.text == document.text
    return document if same else document.model_copy(update={"text": candidate.text, "segments": ()})


def _stress_notes(
    documents: Sequence[Document], pairs: Sequence[StressPair], kinds: Sequence[str], metrics: Sequence[Metric]
) -> list[str]:
    """Who was left out, and why."""
    notes = []
    bare = sum(not document.references for document in documents)
    if bare and any(metric.needs_references for metric in metrics):
        notes.append(f"{format_count(bare, 'text')} without references: not scored by metrics that compare with them")
    if HUMAN in kinds and not any(pair.corruption == HUMAN for pair in pairs):
        notes.append("no human ceiling: it needs texts with two references or more")
    return notes


def _print_stress(falls: Any, ranks: Any, notes: Sequence[str], as_json_: bool) -> None:
    rows, signature = finding_rows(falls)
    rank_rows, rank_signature = finding_rows(ranks)
    if as_json_:
        whole: dict[str, Any] = json.loads(as_json(rows, signature, notes))
        typer.echo(json.dumps(whole | {"ranks": json.loads(as_json(rank_rows, rank_signature))["table"]}, indent=1))
        return
    print_rows([_rename_value(row, "fall") for row in rows], "How far each metric falls when a text is damaged")
    print_rows(
        [_rename_value(row, "correlation") for row in rank_rows], "Rank correlation of damage done and fall seen"
    )
    for note in notes:
        print_note(note)
    print_note("fall: positive where the metric noticed; fooled: share of texts whose damaged version it ranks higher")
    print_signature(signature, " (95% intervals over texts)")


def _rename_value(row: Row, name: str) -> Row:
    return {name if key == "value" else key: value for key, value in row.items()}
