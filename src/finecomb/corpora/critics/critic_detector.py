"""Detector that marks spans which surprise a saved critic more than almost all spans in human texts do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from finecomb.annotators.detectors.base import DetectorFactory, detector_signature
from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, format_as_flag, param
from finecomb.core.options import option_field
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Exclusion, Mark, Unit
from finecomb.core.sentences import sentence_offsets
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
"""Default labels by critic; the first one that the protocol has is used."""
EXPLANATION_QUESTIONS = ("explanation", "comment")
"""Questions of a protocol in which the detector stores the reason for a mark; the first match is used."""


@dataclass(frozen=True, slots=True)
class CriticDetectorOptions:
    """Options of the critic detector."""

    weights: Path | None = option_field(None)
    threshold: float = option_field(0.99)
    labels_of: str = option_field("snac", "--protocol")
    label: str = option_field("")
    code: tuple[str, ...] = option_field((), commas=True)

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise ParameterError(
                f"{param('threshold')} must be from 0 to 1, found {self.threshold:g}",
                parameter="threshold",
            )


class CriticDetector:
    """Detector of surprising spans. Its confidence is the share of spans in human texts that are less surprising."""

    def __init__(self, protocol: Protocol, critic: Critic, options: CriticDetectorOptions) -> None:
        self.protocol, self.critic, self.threshold = protocol, critic, options.threshold
        if options.label and not protocol.has_label(options.label):
            names = [label.name for label in protocol.labels]
            raise ParameterError(
                f"{param('label', options.label)} is not in protocol {protocol.id}{did_you_mean(options.label, names)}",
                parameter="label",
            )
        self.label = options.label or next(
            (label for label in DEFAULT_LABELS_BY_CRITIC.get(critic.name, ()) if protocol.has_label(label)), None
        )
        self.annotator_id = f"{DETECTOR_NAME}-{critic.name}"
        real_spans = len(critic.usual_surprises)
        self.signature = detector_signature(DETECTOR_NAME, protocol, options, critic=critic.name, real_spans=real_spans)

    @classmethod
    def from_options(cls, protocol: Protocol, options: CriticDetectorOptions) -> CriticDetector:
        """Build the detector from a folder written by `criticize --save`."""
        from finecomb.corpora.critics.storage import load

        if options.weights is None:
            raise FinecombError(
                f"{param('detector', DETECTOR_NAME)} requires a fitted critic; run `finecomb criticize REAL GENERATED "
                f"{param('save', 'FOLDER')}` and pass {param('weights', 'FOLDER')}"
            )
        critic = load(options.weights, options.code)
        if not critic.usual_surprises:
            raise FinecombError(
                f"{options.weights}: the saved critic has no scores of real texts to compare with; save it again with "
                f"`finecomb criticize REAL GENERATED {param('save')}`"
            )
        _check_threshold(options.threshold, len(critic.usual_surprises))
        return cls(protocol, critic, options)

    def __call__(self, document: Document) -> Annotation:
        """Mark the surprising spans of a text and score each sentence by the certainty that it is unusual."""
        from finecomb.corpora.critics.criticism import content_fingerprint
        from finecomb.corpora.critics.priors import ProjectionError
        from finecomb.corpora.critics.surprising_spans import conformal_p_values, find_surprises

        about = {"id": f"{document.id}/{self.annotator_id}", "document": document.id, "annotator": self.annotator_id}
        try:
            surprises = find_surprises(self.critic, document)
        except ProjectionError as error:
            left_out = Exclusion(by=self.annotator_id, reason=error.format_message(format_as_flag))
            return Annotation(**about, protocol=self.protocol.id, status="excluded", excluded=left_out)
        certainties = (1 - conformal_p_values(self.critic, [surprise.nats for surprise in surprises])).tolist()
        pairs = list(zip(surprises, certainties, strict=True))
        problems = (
            ["the critic was fitted on this text"] if content_fingerprint(document) in self.critic.fitted_on else []
        )
        return Annotation(
            **about,
            protocol=self.protocol.id,
            marks=tuple(
                self._build_mark(document, number, surprise, sure)
                for number, (surprise, sure) in enumerate(pairs, 1)
                if sure >= self.threshold
            ),
            units=tuple(
                [
                    Unit(
                        start=start,
                        end=end,
                        scores={
                            ANY_LABEL: round(
                                max(
                                    (sure for spot, sure in pairs if spot.start < end and start < spot.end), default=0.0
                                ),
                                4,
                            )
                        },
                    )
                    for start, end in sentence_offsets(document.text).tolist()
                ]
            ),
            meta={"problems": problems} if problems else {},
        )

    def _build_mark(self, document: Document, number: int, surprise: Surprise, sure: float) -> Mark:
        if not surprise.state:
            reason = f"{self.critic.name}: this sentence does not fit the rest of the text ({surprise.nats:.1f} nats)"
        else:
            expected = f"; expected {surprise.expected}" if surprise.expected not in ("", surprise.state) else ""
            reason = f"{self.critic.name}: {surprise.state} has a surprise of {surprise.nats:.1f} nats here{expected}"
        question_names = {question.name for question in self.protocol.questions_for_label(self.label)}
        question = next((name for name in EXPLANATION_QUESTIONS if name in question_names), None)
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
    """Reject a threshold that cannot be reached with this number of real spans; nothing would ever be marked."""
    max_threshold = real_spans / (1 + real_spans)  # a conformal p-value is at least 1 / (1 + real_spans)
    if threshold > max_threshold:
        raise ParameterError(
            f"{param('threshold')} must be at most {max_threshold:.3f} for a critic with {real_spans} spans of real "
            f"texts, found {threshold:g}; lower it, or save the critic again with more real documents",
            parameter="threshold",
        )


CRITIC_DETECTOR = DetectorFactory(
    name=DETECTOR_NAME,
    title="spans with a structure unlike that of real texts, found by a critic saved with `criticize --save`",
    needs="a text",
    protocol="snac",
    kind="detector",
    options=CriticDetectorOptions,
    make=CriticDetector.from_options,
    protocol_of=lambda options: str(options.labels_of),
)
