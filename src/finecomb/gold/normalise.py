"""Differences that are no difference of opinion, removed before marks are merged: sizes, slips against the guide."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import polars as pl

from finecomb.core.frames import SPANS, STRINGS, entries, json_cell, list_cell, part_texts, spans_cell, spans_of
from finecomb.core.protocol import Guideline, Protocol, Trim
from finecomb.core.span import Span
from finecomb.measure.view import View

Texts = Mapping[tuple[str, str], str]
"""The words of a document's part, by document and part."""


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
    origins: dict[str, str]
    """For each mark that a rule made by splitting another: the id of that other."""
    breaches: int
    """How many marks the guidelines change or, where they were not applied, would change."""


class _Claim(NamedTuple):
    """What a mark says that a rule may change."""

    id: str
    label: str | None
    spans: tuple[Span, ...]
    quotes: tuple[str, ...]
    answers: str | None
    """As JSON."""


def normalise(view: View, guidelines: bool = True) -> Normalised:
    """Trim every span and, with `guidelines`, apply the protocol's rules: relabel a weekday, split `30-20` in two."""
    assert view.protocol is not None
    texts = part_texts(view.study.documents)
    changes: list[Normalisation] = []
    edits: dict[int, tuple[_Claim, ...]] = {}
    breaches = 0
    columns = ("id", "label", "spans", "quotes", "answers", "document", "annotator")
    for at, (id, label, spans, quotes, answers, *owner) in enumerate(view.study.marks.select(columns).iter_rows()):
        claim = _Claim(id, label, spans_of(spans), tuple(quotes), answers)
        trimmed_claim = _trimmed(claim, owner[0], texts, view.protocol.trim)
        rule, guided = _guided(trimmed_claim, view.protocol)
        steps = [("trim", claim, (trimmed_claim,)), (rule, trimmed_claim, guided)]
        breaches += guided != (trimmed_claim,)
        for name, before, after in steps if guidelines else steps[:1]:
            if after != (before,):
                changes.append(_change(owner, before, name, after))
                edits[at] = after
    marks = _edited(view.study.marks, edits)
    given = {at: view.study.marks["id"][at] for at in edits}
    origins = {claim.id: given[at] for at, claims in edits.items() for claim in claims if claim.id != given[at]}
    return Normalised(replace(view, study=replace(view.study, marks=marks)), tuple(changes), origins, breaches)


def _edited(marks: pl.DataFrame, edits: Mapping[int, Sequence[_Claim]]) -> pl.DataFrame:
    """The frame of marks with other rows in place of those edited."""
    if not edits:
        return marks
    rows = [(at, *_cells(claim)) for at, claims in edits.items() for claim in claims]
    names = ["id", "label", "spans", "quotes", "answers"]
    cells = pl.DataFrame(rows, schema=["at", *names], schema_overrides={"at": pl.UInt32}, orient="row")
    cells = cells.with_columns(
        pl.col("label", "answers").cast(pl.String),
        pl.col("spans").str.json_decode(SPANS),
        pl.col("quotes").str.json_decode(STRINGS),
    )
    numbered = marks.with_row_index("at")
    rest = numbered.filter(~pl.col("at").is_in(list(edits)))
    edited = cells.join(numbered.drop(names), on="at", how="left", maintain_order="left").select(numbered.columns)
    return pl.concat([rest, edited]).sort("at", maintain_order=True).drop("at")


def _cells(claim: _Claim) -> tuple[str, str | None, str, str, str | None]:
    return claim.id, claim.label, spans_cell(claim.spans), list_cell(claim.quotes), claim.answers


def _change(owner: Sequence[Any], before: _Claim, rule: str, after: tuple[_Claim, ...]) -> Normalisation:
    """What a rule did to a mark of that document and annotator."""
    words = " + ".join(_described(claim, before.label) for claim in after)
    document, annotator = owner
    return Normalisation(document, annotator, before.id, rule, _described(before, after[0].label), words)


def _described(claim: _Claim, other: str | None) -> str:
    """The words, and the label where that is what changes."""
    return " … ".join(claim.quotes) + (f" ({claim.label})" if claim.label != other else "")


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
    words_left = text[start : span.end].rstrip(trim.trailing).rstrip()
    while words_left != (fewer := words_left.rstrip(trim.trailing).rstrip()):
        words_left = fewer
    return Span(start, start + len(words_left), span.part) if words_left else span


def _trimmed(claim: _Claim, document: str, texts: Texts, trim: Trim) -> _Claim:
    spans = tuple(trimmed(span, texts.get((document, span.part), ""), trim) for span in claim.spans)
    if spans == claim.spans:
        return claim
    quotes = tuple(span.of(texts.get((document, span.part), "")) for span in spans)
    return claim._replace(spans=spans, quotes=quotes)


# --- guidelines --------------------------------------------------------------------------------------------------


def _guided(claim: _Claim, protocol: Protocol) -> tuple[str, tuple[_Claim, ...]]:
    """The first guideline that fits, and what it makes of a mark."""
    for rule in protocol.guidelines if len(claim.spans) == 1 else ():
        match = re.fullmatch(rule.quote, claim.quotes[0])
        if match and (not rule.labels or claim.label in rule.labels):
            split = rule.action == "split"
            return rule.name, tuple(_split(claim, match, rule)) if split else (claim._replace(label=rule.to),)
    return "", (claim,)


def _split(claim: _Claim, match: re.Match[str], rule: Guideline) -> Iterator[_Claim]:
    """One mark for each group that the rule's expression captured; a correction of the same form is split likewise."""
    span, answers = claim.spans[0], entries(claim.answers)
    corrected = re.fullmatch(rule.quote, str(answers.get("correction", "")))
    for group in range(1, len(match.groups()) + 1):
        start, end = match.span(group)
        if start >= 0:
            place = (Span(span.start + start, span.start + end, span.part),)
            answers |= {"correction": corrected[group]} if corrected else {}
            yield _Claim(f"{claim.id}.{group}", claim.label, place, (match[group],), json_cell(answers))
