"""Normalisation of marks before merging: trimming of spans, and application of the protocol's guidelines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import polars as pl
import regex

from finecomb.core.frames import (
    SPANS_TYPE,
    STRING_LIST_TYPE,
    encode_json_cell,
    encode_list_cell,
    encode_spans_cell,
    parse_json_object,
    parse_spans,
    text_by_part,
)
from finecomb.core.protocol import Guideline, Protocol, Trim
from finecomb.core.safe_patterns import full_match_with_timeout
from finecomb.core.span import Span
from finecomb.statistics.selection.view import View

Texts = Mapping[tuple[str, str], str]
"""Text of each document part, by document ID and name of the part."""


class NormalisationChange(NamedTuple):
    """Change that a rule made to a mark before it was merged into gold."""

    document: str
    annotator: str
    mark: str
    rule: str
    """Rule that made the change: `trim`, the name of a guideline, or `size`."""
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class NormalisedView:
    """View in which the protocol's rules have been applied to the marks."""

    view: View
    changes: tuple[NormalisationChange, ...]
    origins: dict[str, str]
    """ID of the original mark, by the ID of each mark that was split from it."""
    breaches: int
    """Number of marks that the guidelines changed or, if they were not applied, would have changed."""


class _EditableMark(NamedTuple):
    """Fields of a mark that a rule may change."""

    id: str
    label: str | None
    spans: tuple[Span, ...]
    quotes: tuple[str, ...]
    answers: str | None
    """Answers as JSON."""


_OwnedClaim = tuple[_EditableMark, Sequence[str]]
"""Mark with the IDs of its document and annotator."""


def normalise_marks(view: View, guidelines: bool = True) -> NormalisedView:
    """Trim all spans and, with `guidelines`, apply the protocol's rules, e.g. relabel a weekday or split `30-20`.

    Words that an annotator marked on their own are not trimmed from overlapping marks, e.g. the "a" of "a steal". Words
    that a correction leaves unchanged are not errors: if `30-20` is corrected to `28-20`, only the 30 is an error.
    """
    assert view.protocol is not None
    if view.protocol.trim == Trim() and not view.protocol.guidelines:
        return NormalisedView(view, (), {}, 0)
    columns = ("id", "label", "spans", "quotes", "answers", "document", "annotator")
    rows = [
        (_EditableMark(id, label, parse_spans(spans), tuple(quotes), answers), owner)
        for id, label, spans, quotes, answers, *owner in view.study.marks.select(columns).iter_rows()
    ]
    trimmed_claims = _trim_marks(rows, text_by_part(view.study.documents), view.protocol.trim)
    evidence = _corrected_groups_by_location(zip(trimmed_claims, rows, strict=True), view.protocol)
    changes: list[NormalisationChange] = []
    edits: dict[int, tuple[_EditableMark, ...]] = {}
    breaches = 0
    for index, ((claim, owner), trimmed_claim) in enumerate(zip(rows, trimmed_claims, strict=True)):
        rule, guided = _apply_guidelines(
            trimmed_claim, view.protocol, evidence.get(_split_location(trimmed_claim, owner[0]), frozenset())
        )
        steps = [("trim", claim, (trimmed_claim,)), (rule, trimmed_claim, guided)]
        breaches += guided != (trimmed_claim,)
        for name, before, after in steps if guidelines else steps[:1]:
            if after != (before,):
                words = " + ".join(_describe_mark_edit(claim, before.label) for claim in after)
                document, annotator = owner
                changes.append(
                    NormalisationChange(
                        document, annotator, before.id, name, _describe_mark_edit(before, after[0].label), words
                    )
                )
                edits[index] = after
    marks = _replace_edited_rows(view.study.marks, edits)
    given = {index: rows[index][0].id for index in edits}
    origins = {
        claim.id: given[index] for index, claims in edits.items() for claim in claims if claim.id != given[index]
    }
    return NormalisedView(replace(view, study=replace(view.study, marks=marks)), tuple(changes), origins, breaches)


def _replace_edited_rows(marks: pl.DataFrame, edits: Mapping[int, Sequence[_EditableMark]]) -> pl.DataFrame:
    """Return the marks table with the rows of edited marks replaced."""
    if not edits:
        return marks
    rows = [
        (index, *(claim.id, claim.label, encode_spans_cell(claim.spans), encode_list_cell(claim.quotes), claim.answers))
        for index, claims in edits.items()
        for claim in claims
    ]
    names = ["id", "label", "spans", "quotes", "answers"]
    cells = pl.DataFrame(rows, schema=["at", *names], schema_overrides={"at": pl.UInt32}, orient="row")
    cells = cells.with_columns(
        pl.col("label", "answers").cast(pl.String),
        pl.col("spans").str.json_decode(SPANS_TYPE),
        pl.col("quotes").str.json_decode(STRING_LIST_TYPE),
    )
    numbered = marks.with_row_index("at")
    unedited = numbered.filter(~pl.col("at").is_in(list(edits)))
    edited = cells.join(numbered.drop(names), on="at", how="left", maintain_order="left").select(numbered.columns)
    return pl.concat([unedited, edited]).sort("at", maintain_order=True).drop("at")


def _describe_mark_edit(claim: _EditableMark, other: str | None) -> str:
    """Return the words of a mark, with the label if the edit changes it."""
    return " … ".join(claim.quotes) + (f" ({claim.label})" if claim.label != other else "")


# --- trimming ----------------------------------------------------------------------------------------------------


def trim_span(span: Span, text: str, trim: Trim) -> Span:
    """Remove the protocol's leading words and trailing characters from a span, unless nothing would be left.

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
    """Trim all marks, but keep words that any annotator marked on their own."""
    if trim == Trim():
        return [claim for claim, _ in rows]
    bare: dict[tuple[str, str], list[Span]] = {}
    for claim, (document, _) in rows:
        for span, quote in zip(claim.spans, claim.quotes, strict=False):
            # True if a mark consists only of words and characters that the protocol trims
            if not any(
                word not in trim.leading
                for word in re.sub(f"[{re.escape(trim.trailing)} ]+", " ", quote).lower().split()
            ):
                bare.setdefault((document, span.part), []).append(span)
    return [_trim_mark(claim, document, texts, trim, bare) for claim, (document, _) in rows]


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
    """Trim a span, unless an annotator marked only the words to be trimmed, or a correction changes them."""
    shorter = trim_span(span, text, trim)
    if shorter == span:
        return span
    edges = (Span(span.start, shorter.start, span.part), Span(shorter.end, span.end, span.part))
    if any(edge.overlap_length(other) for edge in edges for other in bare):
        return span
    corrects = edges[0].extract(text).strip() and _is_determiner_correction(claim, shorter.extract(text), trim)
    return span if corrects else shorter


def _is_determiner_correction(claim: _EditableMark, rest: str, trim: Trim) -> bool:
    """Return True if a correction replaces the words before `rest` by a number or another determiner."""
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
"""Document ID and span of the words that a rule splits."""


def _split_location(claim: _EditableMark, document: str) -> SplitLocation:
    return document, claim.spans[0] if len(claim.spans) == 1 else None


def _corrected_groups_by_location(
    claims: Iterable[tuple[_EditableMark, _OwnedClaim]], protocol: Protocol
) -> dict[SplitLocation, frozenset[int]]:
    """Return, for each location that a rule splits, the pieces that any annotator's correction changes."""
    wrong: dict[SplitLocation, frozenset[int]] = {}
    if any(rule.action == "split" for rule in protocol.guidelines):
        for claim, (_, (document, _)) in claims:
            rule, match = _first_matching_guideline(claim, protocol)
            if rule is not None and match is not None and rule.action == "split":
                place = _split_location(claim, document)
                wrong[place] = wrong.get(place, frozenset()) | _corrected_groups(claim, match, rule)
    return wrong


def _corrected_groups(claim: _EditableMark, match: regex.Match[str], rule: Guideline) -> frozenset[int]:
    """Return the pieces that a mark's correction changes; empty if the correction does not match the rule."""
    corrected = full_match_with_timeout(rule.quote, str(parse_json_object(claim.answers).get("correction", "")))
    groups = range(1, len(match.groups()) + 1)
    return frozenset(group for group in groups if corrected and corrected[group] != match[group])


def _first_matching_guideline(
    claim: _EditableMark, protocol: Protocol
) -> tuple[Guideline, regex.Match[str]] | tuple[None, None]:
    """Return the first guideline that applies to a mark, with the match of its pattern, or (None, None)."""
    for rule in protocol.guidelines if len(claim.spans) == 1 else ():
        match = full_match_with_timeout(rule.quote, claim.quotes[0])
        if match and (not rule.labels or claim.label in rule.labels):
            return rule, match
    return None, None


def _apply_guidelines(
    claim: _EditableMark, protocol: Protocol, wrong: frozenset[int]
) -> tuple[str, tuple[_EditableMark, ...]]:
    """Apply the first matching guideline to a mark; `wrong` are the pieces that other annotators corrected."""
    rule, match = _first_matching_guideline(claim, protocol)
    if rule is None or match is None:
        return "", (claim,)
    if rule.action == "split":
        return rule.name, tuple(_split_mark(claim, match, rule, wrong)) or (claim,)
    return rule.name, (claim._replace(label=rule.to),)


def _split_mark(
    claim: _EditableMark, match: regex.Match[str], rule: Guideline, wrong: frozenset[int]
) -> Iterator[_EditableMark]:
    """Yield one mark per group captured by the rule; a correction of the same form is split in the same way.

    Pieces that the mark's own correction leaves unchanged are not errors and are omitted. A mark without such a
    correction keeps the pieces that other annotators corrected, or all pieces if none did.
    """
    span, answers = claim.spans[0], parse_json_object(claim.answers)
    corrected = full_match_with_timeout(rule.quote, str(answers.get("correction", "")))
    every = frozenset(range(1, len(match.groups()) + 1))
    for group in sorted(_corrected_groups(claim, match, rule) if corrected else wrong or every):
        start, end = match.span(group)
        if start >= 0:
            place = (Span(span.start + start, span.start + end, span.part),)
            answers |= {"correction": corrected[group]} if corrected else {}
            yield _EditableMark(f"{claim.id}.{group}", claim.label, place, (match[group],), encode_json_cell(answers))
