"""A text's places for adjudication: marks that are one error, what each annotator said, and what was decided."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl
from pydantic import Field

from finecomb.core.records import Id, Mark, Record, Text, Time
from finecomb.core.span import union
from finecomb.gold.merge import SPLIT, gold
from finecomb.measure.view import NO_TYPE, View

What = Literal["taken", "merged", "changed", "split", "not-an-error", "discuss", "added"]
"""A reading as it is, all of them merged, one of our own, several marks, none, none yet, one that nobody marked."""
SETTLES: frozenset[What] = frozenset({"taken", "merged", "changed", "split", "not-an-error", "added"})
"""After these nothing is left to be said about a place."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """One annotator's reading of a place."""

    annotation: str
    annotator: str
    mark: Mark
    """After the protocol's rules: trimmed, relabelled, split."""
    origin: str
    """Id of the mark as it was made, before the rules."""


@dataclass(frozen=True, slots=True)
class Dispute:
    """Marks of one text that are one error."""

    key: str
    """Made of the marks in it, so that a place with other readings is another place; kept once it was decided."""
    voices: tuple[Opinion, ...]
    """In text order."""
    readers: int
    """How many people read the text."""
    merged: Mark | None = None
    """What `finecomb gold` makes of the readings, however many votes they have."""
    agreed: bool = False
    """Whether everybody, and at least two people, marked the same words with the same label."""

    @property
    def votes(self) -> int:
        """How many people marked it."""
        return len({voice.annotator for voice in self.voices})

    @property
    def start(self) -> tuple[int, int]:
        """Where it comes in the text; what has no place on it comes last."""
        edges = [(s.start, s.end) for voice in self.voices for s in voice.mark.spans if s.part == "text"]
        return min(edges, default=(1 << 60, 0))


class Decision(Record):
    """What was decided about a place; kept in the gold annotation's `meta.adjudication` under the place's key."""

    what: What
    """The decision."""
    by: Text
    """Who decided."""
    when: Time
    """When, in UTC."""
    version: int = Field(default=1, ge=1)
    """Counts the decisions about the text up to this one."""
    taken: Id | None = None
    """Id of the reading that was taken, or that a changed mark began with."""
    readings: tuple[Id, ...] = ()
    """Ids of all readings that were there, after the protocol's rules."""
    gold: tuple[Id, ...] = ()
    """Ids of the gold marks that came of it."""


# --- places ------------------------------------------------------------------------------------------------------


def places(view: View, align: str = "auto") -> dict[str, tuple[Dispute, ...]]:
    """The places of each text of a view that somebody read, in text order.

    Marks are normalised and aligned as `finecomb.gold.merge.gold` does it. `auto` goes by the marks' `item` in texts
    where one has an item, and by overlap in others.
    """
    found: dict[str, tuple[Dispute, ...]] = dict.fromkeys(view.study.documents["id"], ())
    for by, documents in _by_alignment(view, align):
        if len(documents):
            found |= _aligned(view.of(documents), by)
    return found


def _by_alignment(view: View, align: str) -> Iterator[tuple[str, pl.Series]]:
    every = view.study.documents["id"]
    if align != "auto":
        yield align, every
        return
    tied = every.is_in(view.study.marks.filter(pl.col("item").is_not_null())["document"].unique().implode())
    yield "item", every.filter(tied)
    yield "overlap", every.filter(~tied)


def _aligned(view: View, by: str) -> dict[str, tuple[Dispute, ...]]:
    made = gold(view, min_votes=1, align=by)
    marks = {mark.id: _plain(mark) for each in made.view.study.iter_annotations() for mark in each.marks}
    given = set(view.study.marks["id"])
    merged = iter([mark for each in made.study.iter_annotations() for mark in each.marks])
    groups = made.clusters.group_by("cluster", maintain_order=True).agg("annotation", "annotator", "mark")
    rows = made.errors.join(groups, on="cluster", maintain_order="left")
    found: dict[str, list[Dispute]] = {id: [] for id in view.study.documents["id"]}
    unlabelled = view.protocol is not None and view.protocol.unlabelled
    for document, label, readers, *own in rows.select(
        "document", "label", "readers", "annotation", "annotator", "mark"
    ).iter_rows():
        voices = tuple(
            Opinion(annotation, who, marks[id], id if id in given else id.rpartition(".")[0])
            for annotation, who, id in zip(*own, strict=True)
        )
        place = Dispute(_key(voices), voices, readers, next(merged))
        named = label != SPLIT and (label != NO_TYPE or unlabelled)
        found[document].append(replace(place, agreed=named and _agreed(place)))
    return {document: tuple(own) for document, own in found.items()}


def _plain(mark: Mark) -> Mark:
    """As annotators made it: a view calls the absence of a label by a name."""
    return mark.model_copy(update={"label": None}) if mark.label == NO_TYPE else mark


def _key(voices: Iterable[Opinion]) -> str:
    return hashlib.blake2b("\0".join(sorted(voice.mark.id for voice in voices)).encode(), digest_size=8).hexdigest()


def _agreed(place: Dispute) -> bool:
    same = {(voice.mark.label, tuple(union(voice.mark.spans))) for voice in place.voices}
    return len(same) == 1 and place.votes == place.readers >= 2


# --- what was decided --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DisputeDecision:
    """A place and what was decided about it."""

    place: Dispute
    decision: Decision | None = None
    later: int = 0
    """How many readings came in since then."""

    @property
    def settled(self) -> bool:
        """Whether nothing is left to be said; what was left for discussion is not settled."""
        return self.decision is not None and self.decision.what in SETTLES


def standings(places: Sequence[Dispute], decisions: Mapping[str, Decision]) -> tuple[DisputeDecision, ...]:
    """Every place as it stands, in text order; those that nobody marked come last.

    Decided places stay as they are, whatever comes in later. A mark belongs to the place in whose decision it was a
    reading, or was made from one (a second pass, an accepted mark). Others aligned with such marks join that place,
    and whatever is left makes places of its own.
    """
    claims = {id: key for key, decision in decisions.items() for id in decision.readings}
    joined: dict[str, list[tuple[Dispute, Opinion]]] = {key: [] for key in decisions}
    found: list[DisputeDecision] = []
    for place in places:
        owners = [_owner(voice, claims) for voice in place.voices]
        first = next((owner for owner in owners if owner is not None), None)
        if first is None:
            found.append(DisputeDecision(place))
        for voice, owner in zip(place.voices, owners, strict=True):
            if first is not None:
                joined[owner or first].append((place, voice))
    readers = max((place.readers for place in places), default=0)
    found += [_decided(key, decisions[key], own, readers) for key, own in joined.items()]
    return tuple(sorted(found, key=lambda each: each.place.start))


def _owner(voice: Opinion, claims: Mapping[str, str]) -> str | None:
    """The decided place that a reading belongs to."""
    piece = voice.mark.id.removeprefix(voice.origin)  # of a mark that a rule has split
    ids = (voice.mark.id, *(f"{id}{piece}" for id in voice.mark.made_from))
    return next((claims[id] for id in ids if id in claims), None)


def _decided(key: str, decision: Decision, own: Sequence[tuple[Dispute, Opinion]], readers: int) -> DisputeDecision:
    voices = tuple(voice for _, voice in own)
    claimed = dict.fromkeys(decision.readings, key)
    later = sum(_owner(voice, claimed) is None for voice in voices)
    whole = own[0][0] if own else Dispute(key, (), readers)
    same = {voice.mark.id for voice in whole.voices} == {voice.mark.id for voice in voices}
    return DisputeDecision(replace(whole, key=key, voices=voices, agreed=whole.agreed and same), decision, later)


def finished(standing: Iterable[DisputeDecision]) -> bool:
    """Whether the gold of a text can be handed in: every place is settled."""
    return all(each.settled for each in standing)


# --- gold marks --------------------------------------------------------------------------------------------------


def gold_marks(document: str, place: Dispute, chosen: Sequence[Mark]) -> tuple[Mark, ...]:
    """The marks chosen for a place as gold keeps them: with ids of their own, votes, and what they were made from.

    Where the annotators had no majority for a label, `label_votes` says what they gave.
    """
    labels = [voice.mark.label or NO_TYPE for voice in place.voices]
    counts = {label: labels.count(label) for label in dict.fromkeys(labels)}
    split = bool(counts) and 2 * max(counts.values()) <= len(labels)
    provenance = {
        "votes": place.votes,
        "label_votes": counts if split else None,
        "made_from": tuple(dict.fromkeys(voice.origin for voice in place.voices)),
        "item": None,
    }
    ids = (f"{document}/adjudicated/{place.key}{'' if n == 1 else f'.{n}'}" for n in itertools.count(1))
    return tuple(mark.model_copy(update={"id": id, **provenance}) for id, mark in zip(ids, chosen, strict=False))
