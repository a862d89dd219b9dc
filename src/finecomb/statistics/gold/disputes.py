"""The disputes of a text for adjudication: marks that are one error, the annotators' opinions, the decisions."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from finecomb.core.frames import parse_spans
from finecomb.core.records import Mark
from finecomb.core.span import merge_spans
from finecomb.statistics.gold.decisions import SETTLING_DECISIONS, Decision
from finecomb.statistics.gold.gold_merge import SPLIT, gold, normalise_and_cluster_marks
from finecomb.statistics.selection.view import NO_TYPE, View


@dataclass(frozen=True, slots=True)
class Opinion:
    """One annotator's mark in a dispute."""

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
    """Made of the ids of its marks, so that other marks make another dispute; it stays once it was decided."""
    opinions: tuple[Opinion, ...]
    """In text order."""
    readers: int
    """How many people read the text."""
    merged: Mark | None = None
    """The mark that `finecomb gold` merges the opinions into, however many votes they have."""
    agreed: bool = False
    """Whether everybody, and at least two people, marked the same words with the same label."""

    @property
    def vote_count(self) -> int:
        """How many people marked it."""
        return len({opinion.annotator for opinion in self.opinions})

    @property
    def text_position(self) -> tuple[int, int]:
        """Where it comes in the text; what has no place on it comes last."""
        edges = [(s.start, s.end) for opinion in self.opinions for s in opinion.mark.spans if s.part == "text"]
        return min(edges, default=(1 << 60, 0))


# --- disputes ----------------------------------------------------------------------------------------------------


def find_disputes(view: View, align: str = "auto") -> dict[str, tuple[Dispute, ...]]:
    """The disputes of each text of a view that somebody read, in text order.

    Marks are normalised and aligned as `finecomb.statistics.gold.gold_merge.gold` does it. `auto` goes by the marks'
    `item` in texts
    where one has an item, and by overlap in others.
    """
    disputes_by_document: dict[str, tuple[Dispute, ...]] = dict.fromkeys(view.study.documents["id"], ())
    for by, documents in _documents_by_alignment(view, align):
        if len(documents):
            disputes_by_document |= _disputes_for_alignment(view.restrict_to_documents(documents), by)
    return disputes_by_document


def _documents_by_alignment(view: View, align: str) -> Iterator[tuple[str, pl.Series]]:
    every = view.study.documents["id"]
    if align != "auto":
        yield align, every
        return
    tied = every.is_in(view.study.marks.filter(pl.col("item").is_not_null())["document"].unique().implode())
    yield "item", every.filter(tied)
    yield "overlap", every.filter(~tied)


def _disputes_for_alignment(view: View, by: str) -> dict[str, tuple[Dispute, ...]]:
    merge = gold(view, min_votes=1, align=by)
    marks = {
        mark.id: _restore_missing_label(mark)
        for annotation_record in merge.view.study.iter_annotations()
        for mark in annotation_record.marks
    }
    given = set(view.study.marks["id"])
    merged = iter([mark for annotation_record in merge.study.iter_annotations() for mark in annotation_record.marks])
    groups = merge.clusters.group_by("cluster", maintain_order=True).agg("annotation", "annotator", "mark")
    rows = merge.errors.join(groups, on="cluster", maintain_order="left")
    disputes_by_document: dict[str, list[Dispute]] = {id: [] for id in view.study.documents["id"]}
    unlabelled = view.protocol is not None and view.protocol.unlabelled
    for document, label, readers, *columns in rows.select(
        "document", "label", "readers", "annotation", "annotator", "mark"
    ).iter_rows():
        opinions = tuple(
            Opinion(annotation, who, marks[id], id if id in given else id.rpartition(".")[0])
            for annotation, who, id in zip(*columns, strict=True)
        )
        dispute = Dispute(_dispute_key(opinions), opinions, readers, next(merged))
        named = label != SPLIT and (label != NO_TYPE or unlabelled)
        disputes_by_document[document].append(replace(dispute, agreed=named and _is_unanimous(dispute)))
    return {document: tuple(columns) for document, columns in disputes_by_document.items()}


@dataclass(frozen=True, slots=True)
class DisputeCount:
    """How many disputes a text has."""

    disputes: int = 0
    agreed: int = 0
    """Those on which everybody agrees, see `Dispute.agreed`."""


def dispute_count_by_document(view: View, align: str = "auto") -> dict[str, DisputeCount]:
    """How many disputes each text of a view has: as many as `disputes` gives, without making them.

    For lists of many texts: frames are counted, and a record is made of no mark.
    """
    counts = dict.fromkeys(view.study.documents["id"], DisputeCount())
    for by, documents in _documents_by_alignment(view, align):
        if len(documents):
            counts |= _dispute_counts_for_alignment(view.restrict_to_documents(documents), by)
    return counts


def _dispute_counts_for_alignment(view: View, by: str) -> dict[str, DisputeCount]:
    normal, clusters, errors = normalise_and_cluster_marks(view, by, min_votes=1)
    marks = normal.view.study.marks.select("label", "spans", mark="id")
    opinions = clusters.select("cluster", "annotator", "mark").join(marks, on="mark", how="left", maintain_order="left")
    same = opinions.group_by("cluster").agg(
        people=pl.col("annotator").n_unique(), labels=pl.col("label").n_unique(), spans="spans"
    )
    rows = errors.select("cluster", "document", "label", "readers").join(same, on="cluster", how="left")
    is_named = pl.col("label") != SPLIT
    if view.protocol is None or not view.protocol.unlabelled:
        is_named &= pl.col("label") != NO_TYPE
    by_all = is_named & (pl.col("labels") == 1) & (pl.col("people") == pl.col("readers")) & (pl.col("readers") >= 2)
    agreed = Counter(
        document
        for document, cells in rows.filter(by_all).select("document", "spans").iter_rows()
        if len({tuple(merge_spans(parse_spans(cell))) for cell in cells}) == 1
    )
    totals = rows.group_by("document").len().iter_rows()
    return {document: DisputeCount(total, agreed[document]) for document, total in totals}


def _restore_missing_label(mark: Mark) -> Mark:
    """As annotators made it: a view calls the absence of a label by a name."""
    return mark.model_copy(update={"label": None}) if mark.label == NO_TYPE else mark


def _dispute_key(opinions: Iterable[Opinion]) -> str:
    return hashlib.blake2b(
        "\0".join(sorted(opinion.mark.id for opinion in opinions)).encode(), digest_size=8
    ).hexdigest()


def _is_unanimous(dispute: Dispute) -> bool:
    same = {(opinion.mark.label, tuple(merge_spans(opinion.mark.spans))) for opinion in dispute.opinions}
    return len(same) == 1 and dispute.vote_count == dispute.readers >= 2


# --- what was decided --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DisputeDecision:
    """A dispute and the decision about it, if there is one."""

    dispute: Dispute
    decision: Decision | None = None
    later: int = 0
    """How many opinions came in since then."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to be said; what was left for discussion is not settled."""
        return self.decision is not None and self.decision.what in SETTLING_DECISIONS


def dispute_decisions(disputed: Sequence[Dispute], decisions: Mapping[str, Decision]) -> tuple[DisputeDecision, ...]:
    """Every dispute with its decision, in text order; those that nobody marked come last.

    Decided disputes stay as they are, whatever comes in later. A mark belongs to the dispute in whose decision it is
    listed, or from whose marks it was made (a second pass, an accepted mark). Others aligned with such marks join that
    dispute, and the rest make disputes of their own.
    """
    claims = {id: key for key, decision in decisions.items() for id in decision.readings}
    joined: dict[str, list[tuple[Dispute, Opinion]]] = {key: [] for key in decisions}
    states: list[DisputeDecision] = []
    for dispute in disputed:
        owners = [_decided_dispute_key(opinion, claims) for opinion in dispute.opinions]
        first = next((owner for owner in owners if owner is not None), None)
        if first is None:
            states.append(DisputeDecision(dispute))
        for opinion, owner in zip(dispute.opinions, owners, strict=True):
            if first is not None:
                joined[owner or first].append((dispute, opinion))
    readers = max((dispute.readers for dispute in disputed), default=0)
    states += [_build_dispute_decision(key, decisions[key], members, readers) for key, members in joined.items()]
    return tuple(sorted(states, key=lambda state: state.dispute.text_position))


def _decided_dispute_key(opinion: Opinion, claims: Mapping[str, str]) -> str | None:
    """The key of the decided dispute that an opinion belongs to."""
    piece = opinion.mark.id.removeprefix(opinion.origin)  # of a mark that a rule has split
    ids = (opinion.mark.id, *(f"{id}{piece}" for id in opinion.mark.made_from))
    return next((claims[id] for id in ids if id in claims), None)


def _build_dispute_decision(
    key: str, decision: Decision, members: Sequence[tuple[Dispute, Opinion]], readers: int
) -> DisputeDecision:
    opinions = tuple(opinion for _, opinion in members)
    claimed = dict.fromkeys(decision.readings, key)
    later = sum(_decided_dispute_key(opinion, claimed) is None for opinion in opinions)
    whole = members[0][0] if members else Dispute(key, (), readers)
    same = {opinion.mark.id for opinion in whole.opinions} == {opinion.mark.id for opinion in opinions}
    return DisputeDecision(replace(whole, key=key, opinions=opinions, agreed=whole.agreed and same), decision, later)


def is_adjudication_finished(decisions: Iterable[DisputeDecision]) -> bool:
    """Whether the gold of a text can be handed in: every dispute is settled."""
    return all(decision.is_settled for decision in decisions)


# --- gold marks --------------------------------------------------------------------------------------------------


def gold_marks_of_dispute(document: str, dispute: Dispute, chosen: Sequence[Mark]) -> tuple[Mark, ...]:
    """The marks that gold keeps for a dispute: with ids of their own, votes, and what they were made from.

    Where the annotators had no majority for a label, `label_votes` says what they gave.
    """
    labels = [opinion.mark.label or NO_TYPE for opinion in dispute.opinions]
    counts = {label: labels.count(label) for label in dict.fromkeys(labels)}
    split = bool(counts) and 2 * max(counts.values()) <= len(labels)
    provenance = {
        "votes": dispute.vote_count,
        "label_votes": counts if split else None,
        "made_from": tuple(dict.fromkeys(opinion.origin for opinion in dispute.opinions)),
        "item": None,
    }
    ids = (f"{document}/adjudicated/{dispute.key}{'' if n == 1 else f'.{n}'}" for n in itertools.count(1))
    return tuple(mark.model_copy(update={"id": id, **provenance}) for id, mark in zip(ids, chosen, strict=False))
