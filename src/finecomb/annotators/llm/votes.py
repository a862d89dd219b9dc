"""Marks by votes: samples of a model, or a jury of models, merged into one annotator with confidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from finecomb.annotators.llm.runs import ModelRun
from finecomb.core.errors import ParameterError, did_you_mean, param
from finecomb.core.model_notes import META_KEY
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Mark
from finecomb.core.span import TEXT_PART, Span
from finecomb.core.study import Study

VOTE_SUFFIX = "#vote"
"""End of the ID of the annotator that holds the marks by votes."""


def check_vote(study: Study, protocol: Protocol, samples: int, jury: Sequence[str]) -> None:
    """Raise an error if a vote is not possible: one member, no marks, or an unknown member of the jury."""
    if samples < 2 and not jury:
        raise ParameterError(
            f"{param('vote')} requires {param('samples')} of at least 2, or {param('jury')}", parameter="vote"
        )
    if protocol.work.unit not in ("document", "segment") or not (protocol.labels or protocol.unlabelled):
        raise ParameterError(f"{param('vote')} requires a protocol with marks, found {protocol.id}", parameter="vote")
    # A judge that shares marks with people cannot be compared with them, so people are not members.
    programs = (annotator for annotator in study.iter_annotators() if annotator.kind in ("llm", "detector", "checker"))
    known = [annotator.id for annotator in programs if not annotator.id.endswith(VOTE_SUFFIX)]
    for member in jury:
        if member not in known:
            raise ParameterError(
                f"{param('jury')}: the study has no model or detector {member!r}{did_you_mean(member, known)}",
                parameter="jury",
            )


def vote_on_run(study: Study, run: ModelRun, min_share: float, jury: Sequence[str] = ()) -> ModelRun:
    """Return the votes on a run's texts as a run with one annotator, and an annotation per text with a reply.

    The samples of the run vote, together with the annotators of the study that are named as `jury`.
    """
    name = "+".join([run.record.name, *jury]) + VOTE_SUFFIX
    facts = {"samples": len(run.annotators), "min_share": min_share, **({"jury": list(jury)} if jury else {})}
    meta = {key: value for key, value in run.annotators[0].meta.items() if key != "sample"}
    work: dict[str, list[Annotation]] = {annotation.document: [] for annotation in run.annotations}
    others = (
        annotation
        for annotation in study.submitted_work().iter_annotations()
        if annotation.annotator in jury and annotation.protocol == run.record.protocol
    )
    for annotation in (*run.annotations, *others):
        if annotation.status == "submitted" and annotation.document in work:
            work[annotation.document].append(annotation)
    annotations = []
    for document, members in work.items():
        if not members:
            continue
        id = "/".join((name, run.record.protocol, document))
        marks = vote_on_marks([member.marks for member in members], study.document(document).text, min_share, id)
        annotations.append(
            Annotation(
                id=id,
                document=document,
                annotator=name,
                protocol=run.record.protocol,
                marks=tuple(marks),
                made_from=tuple(member.id for member in members),
                submitted=max((member.submitted for member in members if member.submitted), default=None),
                meta={"members": len(members)},
            )
        )
    annotator = Annotator(id=name, kind="llm", meta={**meta, **facts})
    return replace(run, annotators=(annotator,), annotations=tuple(annotations))


def vote_on_marks(samples: Sequence[Sequence[Mark]], text: str, min_share: float, prefix: str) -> list[Mark]:
    """Return the marks that at least `min_share` of the samples made, in text order.

    Marks of different samples count as one error if they have the same label and share at least half of the words of
    the shorter one. The position is the median start and end of the votes, and `confidence` is their share of the
    samples. Marks without a position cannot be compared and are omitted.
    """
    groups: list[list[tuple[int, Mark]]] = []
    for number, marks in enumerate(samples):
        for mark in marks:
            if not mark.spans or mark.spans[0].part != TEXT_PART:
                continue
            candidates = [
                group
                for group in groups
                if all(other != number for other, _ in group) and _is_same_error(group[0][1], mark)
            ]
            if candidates:
                max(candidates, key=lambda group: _shared_length(group[0][1], mark)).append((number, mark))
            else:
                groups.append([(number, mark)])
    needed = max(1, math.ceil(min_share * len(samples) - 1e-9))
    voted = [[mark for _, mark in group] for group in groups if len(group) >= needed]
    merged = sorted((_median_span(group), group[0].label or "", index) for index, group in enumerate(voted))
    return [
        voted[index][0].model_copy(
            update={
                "id": f"{prefix}/{number}",
                "spans": (span,),
                "quotes": (span.extract(text),),
                "votes": len(voted[index]),
                "confidence": len(voted[index]) / len(samples),
                "made_from": tuple(mark.id for mark in voted[index]),
                # The note on the location is about the quote of one sample.
                "meta": {key: value for key, value in voted[index][0].meta.items() if key != META_KEY},
            }
        )
        for number, (span, _, index) in enumerate(merged)
    ]


def _median_span(marks: Sequence[Mark]) -> Span:
    """Return the median start and end; in a tie, those of the shorter position."""
    starts, ends = [mark.spans[0].start for mark in marks], [mark.spans[-1].end for mark in marks]
    start, end = math.ceil(median(starts)), math.floor(median(ends))
    # A median between two values would cut a word, so the nearest given value is used.
    return Span(min(starts, key=lambda at: (abs(at - start), -at)), min(ends, key=lambda at: (abs(at - end), at)))


def _shared_length(mark: Mark, other: Mark) -> int:
    start = max(mark.spans[0].start, other.spans[0].start)
    return min(mark.spans[-1].end, other.spans[-1].end) - start


def _is_same_error(mark: Mark, other: Mark) -> bool:
    shortest = min(one.spans[-1].end - one.spans[0].start for one in (mark, other))
    return mark.label == other.label and _shared_length(mark, other) >= max(1, shortest / 2)
