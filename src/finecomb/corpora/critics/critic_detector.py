"""A saved critic as a detector: what surprises it more than nearly all of what people write becomes a mark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from finecomb.annotators.detectors.base import Factory, detector_signature
from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, flag_style, param
from finecomb.core.options import option
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Exclusion, Mark, Unit
from finecomb.core.sentences import sentences
from finecomb.core.span import Span

if TYPE_CHECKING:
    from finecomb.corpora.critics.base import Critic
    from finecomb.corpora.critics.surprising_spans import Surprise

DETECTOR_NAME = "critic"
ANY_LABEL, NO_TYPE = "any", "no type"
DEFAULT_LABELS_BY_CRITIC: Mapping[str, Sequence[str]] = {
    "sections": ("scene", "incoherent"),
    "topics": ("scene", "off-prompt"),
    "coreference": ("coref",),
    "languages": ("gram", "grammar-usage"),
}
"""By critic the labels that its marks have where the protocol knows one and no other is asked for."""
EXPLANATION_QUESTIONS = ("explanation", "comment")
"""Questions that take the reason of a mark, where a protocol asks them."""


@dataclass(frozen=True, slots=True)
class CriticDetectorOptions:
    """Options of marking with a critic."""

    weights: Path | None = option(None, "What `train` wrote, or for a critic what `criticize --save` wrote.")
    threshold: float = option(0.99, "Mark only what is at least this sure, from 0 to 1.")
    labels_of: str = option("snac", "For a critic: the protocol whose labels it uses.", "--protocol")
    label: str = option("", "For a critic: the label of its marks.")
    code: tuple[str, ...] = option((), "For a critic: module:name of your own code that it needs.", commas=True)

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise ParameterError(
                f"{param('threshold', f'{self.threshold:g}')}: how sure to be is a number from 0 to 1",
                parameter="threshold",
            )


class CriticDetector:
    """Marks spans that surprise a critic; it is as sure as the share of people's spans that surprise less."""

    def __init__(self, protocol: Protocol, critic: Critic, options: CriticDetectorOptions) -> None:
        self.protocol, self.critic, self.threshold = protocol, critic, options.threshold
        self.label = _choose_label(protocol, critic.name, options.label)
        self.annotator_id = f"{DETECTOR_NAME}-{critic.name}"
        real_spans = len(critic.usual_surprises)
        self.signature = detector_signature(DETECTOR_NAME, protocol, options, critic=critic.name, real_spans=real_spans)

    @classmethod
    def from_options(cls, protocol: Protocol, options: CriticDetectorOptions) -> CriticDetector:
        """From a folder that `criticize --save` wrote."""
        from finecomb.corpora.critics.storage import load

        if options.weights is None:
            raise FinecombError(
                f"{param('detector', DETECTOR_NAME)}: needs a fitted critic; `finecomb criticize REAL GENERATED "
                f"{param('save', 'FOLDER')}`, then {param('weights', 'FOLDER')}"
            )
        critic = load(options.weights, options.code)
        if not critic.usual_surprises:
            raise FinecombError(
                f"{options.weights}: does not say how surprising people's own texts are, so nothing can be called "
                f"unusual; save it again with `finecomb criticize REAL GENERATED {param('save')}`"
            )
        _check_threshold(options.threshold, len(critic.usual_surprises))
        return cls(protocol, critic, options)

    def __call__(self, document: Document) -> Annotation:
        """The marks of one text, and each sentence as a unit with how sure the critic is that it is unusual."""
        from finecomb.corpora.critics.criticism import fingerprint
        from finecomb.corpora.critics.priors import ProjectionError
        from finecomb.corpora.critics.surprising_spans import conformal_p_values, find_surprises

        about = {"id": f"{document.id}/{self.annotator_id}", "document": document.id, "annotator": self.annotator_id}
        try:
            found = find_surprises(self.critic, document)
        except ProjectionError as error:
            left_out = Exclusion(by=self.annotator_id, reason=error.text(flag_style))
            return Annotation(**about, protocol=self.protocol.id, status="excluded", excluded=left_out)
        certainties = (1 - conformal_p_values(self.critic, [surprise.nats for surprise in found])).tolist()
        pairs = list(zip(found, certainties, strict=True))
        problems = ["the critic was fitted on this text"] if fingerprint(document) in self.critic.fitted_on else []
        return Annotation(
            **about,
            protocol=self.protocol.id,
            marks=tuple(
                self._mark(document, number, surprise, sure)
                for number, (surprise, sure) in enumerate(pairs, 1)
                if sure >= self.threshold
            ),
            units=tuple(_sentence_units(document.text, pairs)),
            meta={"problems": problems} if problems else {},
        )

    def _mark(self, document: Document, number: int, surprise: Surprise, sure: float) -> Mark:
        reason = _surprise_reason(self.critic.name, surprise)
        asked = {question.name for question in self.protocol.questions_of(self.label)}
        question = next((name for name in EXPLANATION_QUESTIONS if name in asked), None)
        return Mark(
            id=f"{document.id}/{self.annotator_id}/{number}",
            spans=(Span(surprise.start, surprise.end),),
            quotes=(document.text[surprise.start : surprise.end],),
            label=self.label,
            label_votes=None if self.label else {NO_TYPE: 1},
            answers={question: reason} if question else {},
            confidence=round(sure, 4),
            meta={"nats": round(surprise.nats, 4), "reason": reason},
        )


def _check_threshold(threshold: float, real_spans: int) -> None:
    """Refuse to be surer than so many spans of real texts allow, as nothing would ever be marked."""
    most = real_spans / (1 + real_spans)
    if threshold > most:
        raise ParameterError(
            f"{param('threshold', f'{threshold:g}')}: the critic knows {real_spans} spans of real texts, which make it "
            f"at most {most:.3f} sure; lower it, or save the critic again with more real documents",
            parameter="threshold",
        )


def _choose_label(protocol: Protocol, critic: str, wanted: str) -> str | None:
    """The label that is asked for, or the first usual one that the protocol has; None where it has none of them."""
    if wanted and not protocol.has_label(wanted):
        names = [label.name for label in protocol.labels]
        raise ParameterError(
            f"{param('label', wanted)}: is not in protocol {protocol.id}{did_you_mean(wanted, names)}",
            parameter="label",
        )
    return wanted or next(
        (label for label in DEFAULT_LABELS_BY_CRITIC.get(critic, ()) if protocol.has_label(label)), None
    )


def _surprise_reason(critic: str, surprise: Surprise) -> str:
    if not surprise.state:
        return f"{critic}: this sentence does not fit the rest of the text ({surprise.nats:.1f} nats)"
    expected = f"; expected {surprise.expected}" if surprise.expected not in ("", surprise.state) else ""
    return f"{critic}: {surprise.state} has {surprise.nats:.1f} nats here{expected}"


def _sentence_units(text: str, pairs: Sequence[tuple[Surprise, float]]) -> list[Unit]:
    """Sentences, each as sure as the surest surprise in it; 0 where there is none."""
    return [
        Unit(start=int(start), end=int(end), scores={ANY_LABEL: round(_max_certainty(pairs, int(start), int(end)), 4)})
        for start, end in sentences(text)
    ]


def _max_certainty(pairs: Sequence[tuple[Surprise, float]], start: int, end: int) -> float:
    return max((sure for surprise, sure in pairs if surprise.start < end and start < surprise.end), default=0.0)


CRITIC_DETECTOR = Factory(
    name=DETECTOR_NAME,
    title="spans whose structure is unlike that of real texts, by a critic that `criticize --save` kept",
    needs="a text",
    protocol="snac",
    kind="detector",
    options=CriticDetectorOptions,
    make=CriticDetector.from_options,
    protocol_of=lambda options: str(options.labels_of),
)
