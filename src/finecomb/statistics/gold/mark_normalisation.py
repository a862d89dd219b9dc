"""Differences that are no difference of opinion, removed before marks are merged: sizes, slips against the guide."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import polars as pl
import regex

from finecomb.core.frames import (
    SPANS,
    STRINGS,
    json_cell,
    list_cell,
    parse_json_object,
    parse_spans,
    part_texts,
    spans_cell,
)
from finecomb.core.protocol import Guideline, Protocol, Trim
from finecomb.core.safe_patterns import full_match
from finecomb.core.span import Span
from finecomb.statistics.selection.view import View

Texts = Mapping[tuple[str, str], str]
"""The words of a document's part, by document and part."""


class NormalisationChange(NamedTuple):
    """One thing that was changed on the way to gold, and by which rule."""

    document: str
    annotator: str
    mark: str
    rule: str
    """`trim`, the name of a guideline, or `size`."""
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class NormalisedView:
    """A view whose marks follow the protocol's rules."""

    view: View
    changes: tuple[NormalisationChange, ...]
    origins: dict[str, str]
    """For each mark that a rule made by splitting another: the id of that other."""
    breaches: int
    """How many marks the guidelines change or, where they were not applied, would change."""


class _EditableMark(NamedTuple):
    """What a mark says that a rule may change."""

    id: str
    label: str | None
    spans: tuple[Span, ...]
    quotes: tuple[str, ...]
    answers: str | None
    """As JSON."""


_OwnedClaim = tuple[_EditableMark, Sequence[str]]
"""A claim with its document and annotator."""


def normalise_marks(view: View, guidelines: bool = True) -> NormalisedView:
    """Trim every span and, with `guidelines`, apply the protocol's rules: relabel a weekday, split `30-20` in two.

    What somebody marked by itself is not trimmed from the marks around it: the "a" of "a steal". What a correction
    leaves as it is was right: of `30-20` corrected to `28-20` only the 30 is an error.
    """
    assert view.protocol is not None
    if view.protocol.trim == Trim() and not view.protocol.guidelines:
        return NormalisedView(view, (), {}, 0)
    columns = ("id", "label", "spans", "quotes", "answers", "document", "annotator")
    rows = [
        (_EditableMark(id, label, parse_spans(spans), tuple(quotes), answers), owner)
        for id, label, spans, quotes, answers, *owner in view.study.marks.select(columns).iter_rows()
    ]
    trimmed_claims = _trim_marks(rows, part_texts(view.study.documents), view.protocol.trim)
    evidence = _corrected_groups_by_location(zip(trimmed_claims, rows, strict=True), view.protocol)
    changes: list[NormalisationChange] = []
    edits: dict[int, tuple[_EditableMark, ...]] = {}
    breaches = 0
    for at, ((claim, owner), trimmed_claim) in enumerate(zip(rows, trimmed_claims, strict=True)):
        rule, guided = _apply_guidelines(
            trimmed_claim, view.protocol, evidence.get(_split_location(trimmed_claim, owner[0]), frozenset())
        )
        steps = [("trim", claim, (trimmed_claim,)), (rule, trimmed_claim, guided)]
        breaches += guided != (trimmed_claim,)
        for name, before, after in steps if guidelines else steps[:1]:
            if after != (before,):
                changes.append(_build_change(owner, before, name, after))
                edits[at] = after
    marks = _replace_edited_rows(view.study.marks, edits)
    given = {at: rows[at][0].id for at in edits}
    origins = {claim.id: given[at] for at, claims in edits.items() for claim in claims if claim.id != given[at]}
    return NormalisedView(replace(view, study=replace(view.study, marks=marks)), tuple(changes), origins, breaches)


def _replace_edited_rows(marks: pl.DataFrame, edits: Mapping[int, Sequence[_EditableMark]]) -> pl.DataFrame:
    """The frame of marks with other rows in place of those edited."""
    if not edits:
        return marks
    rows = [(at, *_edited_mark_cells(claim)) for at, claims in edits.items() for claim in claims]
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


def _edited_mark_cells(claim: _EditableMark) -> tuple[str, str | None, str, str, str | None]:
    return claim.id, claim.label, spans_cell(claim.spans), list_cell(claim.quotes), claim.answers


def _build_change(
    owner: Sequence[Any], before: _EditableMark, rule: str, after: tuple[_EditableMark, ...]
) -> NormalisationChange:
    """What a rule did to a mark of that document and annotator."""
    words = " + ".join(_describe_mark_edit(claim, before.label) for claim in after)
    document, annotator = owner
    return NormalisationChange(document, annotator, before.id, rule, _describe_mark_edit(before, after[0].label), words)


def _describe_mark_edit(claim: _EditableMark, other: str | None) -> str:
    """The words, and the label where that is what changes."""
    return " … ".join(claim.quotes) + (f" ({claim.label})" if claim.label != other else "")


# --- sizes -------------------------------------------------------------------------------------------------------


def trim_span(span: Span, text: str, trim: Trim) -> Span:
    """The span without the protocol's leading words and trailing characters; unchanged when nothing would be left.

    >>> text = "won at the Arena."
    >>> trim_span(Span(7, 17), text, Trim(leading=("a", "the"), trailing=".,")).extract(text)
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


def _trim_marks(rows: Sequence[_OwnedClaim], texts: Texts, trim: Trim) -> list[_EditableMark]:
    """Every claim without what the protocol trims; words that somebody marked by themselves stay on all marks."""
    if trim == Trim():
        return [claim for claim, _ in rows]
    bare: dict[tuple[str, str], list[Span]] = {}
    for claim, (document, _) in rows:
        for span, quote in zip(claim.spans, claim.quotes, strict=False):
            if _has_only_trimmable_words(quote, trim):
                bare.setdefault((document, span.part), []).append(span)
    return [_trim_mark(claim, document, texts, trim, bare) for claim, (document, _) in rows]


def _has_only_trimmable_words(quote: str, trim: Trim) -> bool:
    """Whether a mark has nothing but words and characters that the protocol trims from others."""
    return not any(
        word not in trim.leading for word in re.sub(f"[{re.escape(trim.trailing)} ]+", " ", quote).lower().split()
    )


def _trim_mark(
    claim: _EditableMark, document: str, texts: Texts, trim: Trim, bare: Mapping[tuple[str, str], Sequence[Span]]
) -> _EditableMark:
    spans = tuple(
        _trim_span_unless_marked(
            span, texts.get((document, span.part), ""), trim, bare.get((document, span.part), ()), claim
        )
        for span in claim.spans
    )
    if spans == claim.spans:
        return claim
    quotes = tuple(span.extract(texts.get((document, span.part), "")) for span in spans)
    return claim._replace(spans=spans, quotes=quotes)


def _trim_span_unless_marked(span: Span, text: str, trim: Trim, bare: Sequence[Span], claim: _EditableMark) -> Span:
    """The trimmed span, unless somebody marked only what would go, or a correction shows that it is what is wrong."""
    shorter = trim_span(span, text, trim)
    if shorter == span:
        return span
    edges = (Span(span.start, shorter.start, span.part), Span(shorter.end, span.end, span.part))
    if any(edge.overlap_length(other) for edge in edges for other in bare):
        return span
    corrects = edges[0].extract(text).strip() and _is_determiner_correction(claim, shorter.extract(text), trim)
    return span if corrects else shorter


def _is_determiner_correction(claim: _EditableMark, rest: str, trim: Trim) -> bool:
    """Whether a correction changes the words before `rest`: to a number, or to another of those words."""
    words = str(parse_json_object(claim.answers).get("correction", "")).lower().split()
    if not words or len(claim.spans) != 1:
        return False
    if _NUMBER.fullmatch(words[0]):
        return not _NUMBER.match(rest.lower())
    return words[0] in trim.leading and words[1:] == rest.lower().split() and words != claim.quotes[0].lower().split()


_NUMBER = re.compile(
    r"(?:[0-9][0-9.,]*|no|zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|several)\b"
)


# --- guidelines --------------------------------------------------------------------------------------------------

SplitLocation = tuple[str, Span | None]
"""A document and the words that a rule splits there."""


def _split_location(claim: _EditableMark, document: str) -> SplitLocation:
    return document, claim.spans[0] if len(claim.spans) == 1 else None


def _corrected_groups_by_location(
    claims: Iterable[tuple[_EditableMark, _OwnedClaim]], protocol: Protocol
) -> dict[SplitLocation, frozenset[int]]:
    """For words that a rule splits: the pieces that anybody's correction changes."""
    wrong: dict[SplitLocation, frozenset[int]] = {}
    if any(rule.action == "split" for rule in protocol.guidelines):
        for claim, (_, (document, _)) in claims:
            rule, match = _first_matching_guideline(claim, protocol)
            if rule is not None and match is not None and rule.action == "split":
                place = _split_location(claim, document)
                wrong[place] = wrong.get(place, frozenset()) | _corrected_groups(claim, match, rule)
    return wrong


def _corrected_groups(claim: _EditableMark, match: regex.Match[str], rule: Guideline) -> frozenset[int]:
    """The pieces that a correction of the same form changes; none where there is no such correction."""
    corrected = full_match(rule.quote, str(parse_json_object(claim.answers).get("correction", "")))
    groups = range(1, len(match.groups()) + 1)
    return frozenset(group for group in groups if corrected and corrected[group] != match[group])


def _first_matching_guideline(
    claim: _EditableMark, protocol: Protocol
) -> tuple[Guideline, regex.Match[str]] | tuple[None, None]:
    """The first guideline that fits a mark, and how."""
    for rule in protocol.guidelines if len(claim.spans) == 1 else ():
        match = full_match(rule.quote, claim.quotes[0])
        if match and (not rule.labels or claim.label in rule.labels):
            return rule, match
    return None, None


def _apply_guidelines(
    claim: _EditableMark, protocol: Protocol, wrong: frozenset[int]
) -> tuple[str, tuple[_EditableMark, ...]]:
    """The first guideline that fits, and what it makes of a mark; `wrong` are the pieces that others corrected."""
    rule, match = _first_matching_guideline(claim, protocol)
    if rule is None or match is None:
        return "", (claim,)
    if rule.action == "split":
        return rule.name, tuple(_split_mark(claim, match, rule, wrong)) or (claim,)
    return rule.name, (claim._replace(label=rule.to),)


def _split_mark(
    claim: _EditableMark, match: regex.Match[str], rule: Guideline, wrong: frozenset[int]
) -> Iterator[_EditableMark]:
    """One mark for each group that the rule's expression captured; a correction of the same form is split likewise.

    Pieces that the mark's own correction leaves as they are were right. A mark without such a correction means the
    pieces that others corrected there, and all of them where nobody did.
    """
    span, answers = claim.spans[0], parse_json_object(claim.answers)
    corrected = full_match(rule.quote, str(answers.get("correction", "")))
    every = frozenset(range(1, len(match.groups()) + 1))
    for group in sorted(_corrected_groups(claim, match, rule) if corrected else wrong or every):
        start, end = match.span(group)
        if start >= 0:
            place = (Span(span.start + start, span.start + end, span.part),)
            answers |= {"correction": corrected[group]} if corrected else {}
            yield _EditableMark(f"{claim.id}.{group}", claim.label, place, (match[group],), json_cell(answers))
