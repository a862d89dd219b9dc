"""What is wrong with the way in which a study wants its texts drawn."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from finecomb.core.errors import did_you_mean
from finecomb.core.protocol import Protocol
from finecomb.core.records import Settings


def allocation_problems(
    settings: Settings, protocol: Protocol, metas: Mapping[str, Mapping[str, Any]], annotators: Collection[str]
) -> list[str]:
    """Everything that would keep texts from being drawn as `allocation` says, in words."""
    if settings.allocation is None:
        return []
    return [*_conflicting_settings(settings, protocol), *_unknown_names(settings, protocol, metas, annotators)]


def _conflicting_settings(settings: Settings, protocol: Protocol) -> Iterator[str]:
    """Other settings that decide which text comes next."""
    if settings.design is not None:
        yield "allocation: a design decides who reads what; leave one of them out"
    if settings.quotas:
        yield "allocation: quotas would leave texts without any chance to be drawn; leave one of them out"
    if protocol.work.within:
        yield f"allocation: protocol {protocol.id} keeps everybody to texts of one kind; leave it out"
    if protocol.work.unit in ("annotation", "mark"):
        yield f"allocation: texts are drawn, but {protocol.id} judges {protocol.work.unit}s; leave it out"


def _unknown_names(
    settings: Settings, protocol: Protocol, metas: Mapping[str, Mapping[str, Any]], annotators: Collection[str]
) -> Iterator[str]:
    allocation = settings.allocation
    assert allocation is not None
    names = sorted({name for meta in metas.values() for name in meta})
    for name in allocation.strata:
        if metas and name not in names:
            yield f"allocation: no text has meta {name!r}{did_you_mean(name, names)}"
    for judge in allocation.judges:
        if judge not in annotators:
            yield f"allocation: judge {judge!r} is no annotator of the study{did_you_mean(judge, annotators)}"
    kind, _, question = allocation.measure.partition(":")
    questions = [one.name for one in protocol.document_questions]
    if kind == "answer" and question not in questions:
        yield f"allocation: {protocol.id} asks no {question!r} of the whole text{did_you_mean(question, questions)}"
