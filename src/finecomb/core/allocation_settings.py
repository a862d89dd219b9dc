"""Checks of the setting `allocation`, by which the next text for an annotator is drawn."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from finecomb.core.errors import did_you_mean
from finecomb.core.protocol import Protocol
from finecomb.core.records import Settings


def allocation_problems(
    settings: Settings, protocol: Protocol, metas: Mapping[str, Mapping[str, Any]], annotators: Collection[str]
) -> list[str]:
    """Return a message for each reason why texts cannot be drawn as `allocation` requires."""
    allocation, problems = settings.allocation, list[str]()
    if allocation is None:
        return []
    if settings.design is not None:
        problems.append("cannot be used together with design, which assigns texts to annotators; remove one of them")
    if settings.quotas:
        problems.append(
            "cannot be used together with quotas, which give some texts no chance to be drawn; remove one of them"
        )
    if protocol.work.within:
        fields = ", ".join(protocol.work.within)
        problems.append(f"protocol {protocol.id} gives each person texts with the same {fields}; remove allocation")
    if protocol.work.unit in ("annotation", "mark"):
        problems.append(f"draws texts, but protocol {protocol.id} judges {protocol.work.unit}s; remove allocation")
    names = sorted({name for meta in metas.values() for name in meta})
    for name in allocation.strata:
        if metas and name not in names:
            problems.append(f"no text has the meta field {name!r}{did_you_mean(name, names)}")
    for judge in allocation.judges:
        if judge not in annotators:
            problems.append(f"judge {judge!r} is not an annotator in the study{did_you_mean(judge, annotators)}")
    kind, _, question = allocation.measure.partition(":")
    questions = [item.name for item in protocol.document_questions]
    if kind == "answer" and question not in questions:
        near = did_you_mean(question, questions)
        problems.append(f"protocol {protocol.id} has no document question {question!r}{near}")
    return [f"allocation: {problem}" for problem in problems]
