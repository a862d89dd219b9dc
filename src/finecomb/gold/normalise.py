"""Differences that are no difference of opinion, removed before marks are merged: sizes, slips against the guide."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from finecomb.core import frames
from finecomb.core.protocol import Guideline, Protocol, Trim
from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.span import Span
from finecomb.measure.view import View


class Normalisation(NamedTuple):
    """One thing that was changed on the way to gold, and by which rule."""

    document: str
    annotator: str
    mark: str
    rule: str
    """`trim`, the name of a guideline, or `size`."""
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Normalised:
    """A view whose marks follow the protocol's rules."""

    view: View
    changes: tuple[Normalisation, ...]
    marks: dict[str, Mark]
    """The marks of the view by id."""
    origins: dict[str, str]
    """For each mark that a rule made by splitting another: the id of that other."""


def normalise(view: View, guidelines: bool = True) -> Normalised:
    """Trim every span and, with `guidelines`, apply the protocol's rules: relabel a weekday, split `30-20` in two."""
    protocol = view.protocol
    assert protocol is not None
    changes: list[Normalisation] = []
    origins: dict[str, str] = {}
    marks: dict[str, Mark] = {}
    rows = []
    documents = {document.id: document for document in view.study.iter_documents()}
    for annotation in view.study.iter_annotations():
        for given in annotation.marks:
            mark = _trimmed(given, documents[annotation.document], protocol.trim)
            changes += _changes(annotation, given, "trim", (mark,))
            for made in _guided(mark, protocol, annotation, changes) if guidelines else (mark,):
                rows.append(frames.mark_row(made, annotation))
                marks[made.id] = made
                origins |= {made.id: given.id} if made.id != given.id else {}
    study = replace(view.study, marks=frames.frame(frames.MARKS, rows))
    return Normalised(replace(view, study=study), tuple(changes), marks, origins)


def _changes(annotation: Annotation, before: Mark, rule: str, after: tuple[Mark, ...]) -> Iterator[Normalisation]:
    """What a rule did to a mark, if anything."""
    if after != (before,):
        shown = " + ".join(_shown(mark, before.label) for mark in after)
        yield Normalisation(
            annotation.document, annotation.annotator, before.id, rule, _shown(before, after[0].label), shown
        )


def _shown(mark: Mark, other: str | None) -> str:
    """The words, and the label where that is what changes."""
    return " … ".join(mark.quotes) + (f" ({mark.label})" if mark.label != other else "")


# --- sizes -------------------------------------------------------------------------------------------------------


def trimmed(span: Span, text: str, trim: Trim) -> Span:
    """The span without the protocol's leading words and trailing characters; unchanged when nothing would be left.

    >>> text = "won at the Arena."
    >>> trimmed(Span(7, 17), text, Trim(leading=("a", "the"), trailing=".,")).of(text)
    'Arena'
    """
    if trim == Trim():
        return span
    words = "|".join(map(re.escape, trim.leading))
    leading = re.compile(rf"\s*(?:(?:{words})\s+)*" if words else r"\s*", re.IGNORECASE).match(
        text, span.start, span.end
    )
    start = leading.end() if leading else span.start
    kept = text[start : span.end].rstrip(trim.trailing).rstrip()
    while kept != (less := kept.rstrip(trim.trailing).rstrip()):
        kept = less
    return Span(start, start + len(kept), span.part) if kept else span


def _trimmed(mark: Mark, document: Document, trim: Trim) -> Mark:
    spans = tuple(trimmed(span, document.part(span.part) or "", trim) for span in mark.spans)
    if spans == mark.spans:
        return mark
    quotes = tuple(span.of(document.part(span.part) or "") for span in spans)
    return mark.model_copy(update={"spans": spans, "quotes": quotes})


# --- guidelines --------------------------------------------------------------------------------------------------


def _guided(mark: Mark, protocol: Protocol, annotation: Annotation, changes: list[Normalisation]) -> tuple[Mark, ...]:
    """What the first guideline that fits makes of a mark."""
    for rule in protocol.guidelines:
        found = re.fullmatch(rule.quote, mark.quotes[0]) if len(mark.spans) == 1 else None
        if found and (not rule.labels or mark.label in rule.labels):
            made = (
                _split(mark, found, rule) if rule.action == "split" else (mark.model_copy(update={"label": rule.to}),)
            )
            changes += _changes(annotation, mark, rule.name, made)
            return made
    return (mark,)


def _split(mark: Mark, found: re.Match[str], rule: Guideline) -> tuple[Mark, ...]:
    """One mark for each group that the rule's expression captured; a correction of the same form is split likewise."""
    span = mark.spans[0]
    corrected = re.fullmatch(rule.quote, str(mark.answers.get("correction", "")))
    made = []
    for group in range(1, len(found.groups()) + 1):
        start, end = found.span(group)
        if start >= 0:
            answers = {**mark.answers, **({"correction": corrected[group]} if corrected else {})}
            place = {"spans": (Span(span.start + start, span.start + end, span.part),), "quotes": (found[group],)}
            made.append(mark.model_copy(update={"id": f"{mark.id}.{group}", "answers": answers, **place}))
    return tuple(made)
