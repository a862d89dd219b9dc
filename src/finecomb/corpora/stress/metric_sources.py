"""Metrics built from a detector, a saved critic, a command or a user's function."""

from __future__ import annotations

import functools
import json
import math
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from finecomb import protocols
from finecomb.annotators.detectors import Detector, find_detector_factory
from finecomb.annotators.detectors.base import BatchDetector
from finecomb.core import tokens
from finecomb.core.errors import ParameterError, param, shorten
from finecomb.core.records import Document
from finecomb.corpora.critics import storage
from finecomb.corpora.critics.base import Critic, state_steps
from finecomb.corpora.critics.priors import ProjectionError
from finecomb.corpora.stress.stress_metrics import Candidate, Metric, metric_by_name
from finecomb.engine.user_code import import_user_code

COMMAND_TIMEOUT_SECONDS = 3600
_METRIC_EXAMPLES = {"detector": "NAME", "critic": "FOLDER", "command": "PROGRAM", "code": "MODULE:FUNCTION"}


def build_metric(name: str) -> Metric:
    """Return the metric called `NAME`, `NAME:MODEL`, `detector:NAME`, `critic:FOLDER`, `command:...` or `code:...`."""
    kind, _, argument = name.partition(":")
    if kind not in METRIC_MAKERS:
        return metric_by_name(name)
    if not argument:
        raise ParameterError(
            f"{param('metric', kind)} requires a value, e.g. {param('metric', f'{kind}:{_METRIC_EXAMPLES[kind]}')}",
            parameter="metric",
        )
    return METRIC_MAKERS[kind](argument)


def detector_metric(name: str) -> Metric:
    """Return a metric: the number of a detector's marks per 100 words; lower is better."""
    program = _load_detector(name)
    return Metric(
        f"detector:{name}",
        DetectorMarkRate(name),
        higher_is_better=False,
        by_text=True,
        needs_document=True,
        uses_all_cores=isinstance(program, BatchDetector),
        identity=program.signature,
    )


@dataclass(frozen=True, slots=True)
class DetectorMarkRate:
    """Marks of a detector per 100 words."""

    name: str

    def __call__(self, candidates: Sequence[Candidate]) -> list[float]:
        """Score candidates with the detector, which each process loads once."""
        program = _load_detector(self.name)
        documents = (_candidate_document(candidate) for candidate in candidates)
        return [
            100 * len(program(document).marks) / max(1, tokens.count_words(document.text)) for document in documents
        ]


@functools.lru_cache(maxsize=4)
def _load_detector(name: str) -> Detector:
    factory = find_detector_factory(name)
    return factory.make(protocols.load(factory.protocol), factory.options())


def critic_metric(folder: str) -> Metric:
    """Return a metric: the mean surprise of a saved critic at a text's structure; lower is better."""
    path = Path(folder)
    surprise = CriticSurprise(path, storage.folder_digest(path))
    _load_critic(surprise.folder, surprise.digest)  # reject a folder without a critic here instead of for each text
    return Metric(
        f"critic:{path.name}",
        surprise,
        higher_is_better=False,
        by_text=True,
        needs_document=True,
        identity=surprise.digest,
    )


@dataclass(frozen=True, slots=True)
class CriticSurprise:
    """Mean surprise of a saved critic in nats per step."""

    folder: Path
    digest: str
    """Digest of the folder's contents; if it changes, processes load the critic again."""

    def __call__(self, candidates: Sequence[Candidate]) -> list[float]:
        """Score candidates; NaN for texts that the critic cannot project."""
        critic = _load_critic(self.folder, self.digest)
        values: list[float] = []
        for candidate in candidates:
            try:
                steps = state_steps(critic, _candidate_document(candidate))
            except ProjectionError:
                steps = []
            values.append(sum(step.nll for step in steps) / len(steps) if steps else math.nan)
        return values


@functools.lru_cache(maxsize=4)
def _load_critic(folder: Path, digest: str) -> Critic:
    return storage.load(folder)


def command_metric(command: str) -> Metric:
    """Return a metric computed by a program that reads candidates as JSON lines and prints one number per line."""

    def score(candidates: Sequence[Candidate]) -> list[float]:
        lines = [json.dumps({"text": row.text, "references": row.references}, ensure_ascii=False) for row in candidates]
        words = shlex.split(command)
        try:
            result = subprocess.run(
                words,
                input="\n".join(lines),
                capture_output=True,
                text=True,
                timeout=COMMAND_TIMEOUT_SECONDS,
                check=False,
            )
        except OSError as error:
            raise ParameterError(
                f"{param('metric', f'command:{command}')} cannot be run: {error.strerror}", parameter="metric"
            ) from None
        if result.returncode:
            last = (result.stderr.strip().split("\n") or [""])[-1]
            raise ParameterError(
                f"{param('metric', f'command:{command}')} failed with exit code {result.returncode}: {last}",
                parameter="metric",
            )
        return _parse_scores(result.stdout.split("\n"), len(candidates), f"command:{command}")

    return Metric(f"command:{command}", score)


def code_metric(place: str) -> Metric:
    """Return a metric computed by a user's function, given as `module:function`, from a list of candidates."""
    module, _, attribute = place.partition(":")
    if not (module and attribute):
        raise ParameterError(f"{param('metric', f'code:{place}')}: expected code:MODULE:FUNCTION", parameter="metric")
    function = import_user_code(module, attribute, "metric", f"code:{place}")
    return Metric(f"code:{place}", lambda rows: _parse_scores(list(function(rows)), len(rows), f"code:{place}"))


def _parse_scores(answers: Sequence[object], count: int, name: str) -> list[float]:
    values = [answer for answer in answers if not isinstance(answer, str) or answer.strip()]
    if len(values) != count:
        raise ParameterError(
            f"{param('metric', name)}: expected {count} numbers, one per text, found {len(values)}", parameter="metric"
        )
    scores = []
    for value in values:
        try:
            scores.append(float(str(value)))
        except ValueError:
            raise ParameterError(
                f"{param('metric', name)}: expected one number per text, found {shorten(str(value), 40)!r}",
                parameter="metric",
            ) from None
    return scores


def _candidate_document(candidate: Candidate) -> Document:
    """Return the candidate's document with the candidate's text; if the text has changed, segments are omitted."""
    document = candidate.document
    same = candidate.text == document.text
    return document if same else document.model_copy(update={"text": candidate.text, "segments": ()})


METRIC_MAKERS: Mapping[str, Callable[[str], Metric]] = {
    "detector": detector_metric,
    "critic": critic_metric,
    "command": command_metric,
    "code": code_metric,
}
"""Functions that build a metric, by the prefix of its name."""
