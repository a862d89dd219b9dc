"""Metrics made from other things: a detector, a saved critic, any program, or a function of the user's own."""

from __future__ import annotations

import functools
import importlib
import json
import math
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from finecomb import protocols
from finecomb.annotators.detectors import Detector, find_detector
from finecomb.annotators.detectors.base import BatchDetector
from finecomb.core import tokens
from finecomb.core.errors import ParameterError, param
from finecomb.core.records import Document
from finecomb.corpora.critics import storage
from finecomb.corpora.critics.base import Critic, state_steps
from finecomb.corpora.critics.priors import ProjectionError
from finecomb.corpora.stress.stress_metrics import Candidate, Metric, metric_by_name

COMMAND_SECONDS = 3600


def build_metric(name: str) -> Metric:
    """Return the metric called `NAME`, `NAME:MODEL`, `detector:NAME`, `critic:FOLDER`, `command:...` or `code:...`."""
    kind, _, rest = name.partition(":")
    if kind not in METRIC_MAKERS:
        return metric_by_name(name)
    if not rest:
        raise ParameterError(
            f"{param('metric', kind)}: say which, e.g. {param('metric', f'{kind}:...')}", parameter="metric"
        )
    return METRIC_MAKERS[kind](rest)


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
            raise ParameterError(
                f"{param('metric', f'command:{command}')}: cannot be run: {error.strerror}", parameter="metric"
            ) from None
        if result.returncode:
            last = (result.stderr.strip().split("\n") or [""])[-1]
            raise ParameterError(
                f"{param('metric', f'command:{command}')}: ended with {result.returncode}: {last}", parameter="metric"
            )
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
        raise ParameterError(
            f"{param('metric', f'code:{place}')}: {error}; name it as code:MODULE:FUNCTION", parameter="metric"
        ) from None
    return Metric(f"code:{place}", lambda rows: _parse_scores(list(function(rows)), len(rows), f"code:{place}"))


def _parse_scores(answers: Sequence[object], count: int, name: str) -> list[float]:
    values = [answer for answer in answers if not isinstance(answer, str) or answer.strip()]
    if len(values) != count:
        raise ParameterError(
            f"{param('metric', name)}: gave {len(values)} numbers for {count} texts", parameter="metric"
        )
    try:
        return [float(str(value)) for value in values]
    except ValueError:
        raise ParameterError(
            f"{param('metric', name)}: gave something that is no number; one number a text is wanted",
            parameter="metric",
        ) from None


def _damaged_document(candidate: Candidate) -> Document:
    """The document with the candidate's text; its segments hold no longer where the text is another."""
    document = candidate.document
    same = candidate.text == document.text
    return document if same else document.model_copy(update={"text": candidate.text, "segments": ()})


METRIC_MAKERS: Mapping[str, Callable[[str], Metric]] = {
    "detector": detector_metric,
    "critic": critic_metric,
    "command": command_metric,
    "code": code_metric,
}
"""Makers of metrics by the word before the colon of their names."""
