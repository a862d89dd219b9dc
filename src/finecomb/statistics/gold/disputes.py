"""Disputes of a text for adjudication: marks of the same error, with the decisions about them."""

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
from finecomb.statistics.gold.gold_merge import SPLIT_LABEL, merge_into_gold, normalise_and_cluster_marks
from finecomb.statistics.selection.view import NO_TYPE_LABEL, View


@dataclass(frozen=True, slots=True)
class DisputedMark:
    """Mark of one annotator in a dispute."""

    annotation: str
    annotator: str
    mark: Mark
    """Mark after the protocol's rules were applied (trimmed, relabelled, split)."""
    origin: str
    """ID of the original mark, before the protocol's rules were applied."""


@dataclass(frozen=True, slots=True)
class Dispute:
    """Marks of one text that refer to the same error."""

    key: str
    """Key built from the IDs of the marks, so that new marks give a new key. A decided dispute keeps its key."""
    opinions: tuple[DisputedMark, ...]
    """Marks of the dispute in text order."""
    readers: int
    """Number of people who annotated the text."""
    merged: Mark | None = None
    """Mark into which `finecomb gold` would merge the opinions, regardless of the number of votes."""
    agreed: bool = False
    """True if all annotators of the text (at least two) marked the same words with the same label."""

    @property
    def vote_count(self) -> int:
        """Number of people who marked the error."""
        return len({opinion.annotator for opinion in self.opinions})

    @property
    def text_position(self) -> tuple[int, int]:
        """Position in the text for sorting; disputes without a position come last."""
        edges = [(s.start, s.end) for opinion in self.opinions for s in opinion.mark.spans if s.part == "text"]
        return min(edges, default=(1 << 60, 0))


# --- disputes ----------------------------------------------------------------------------------------------------


def find_disputes(view: View, align: str = "auto") -> dict[str, tuple[Dispute, ...]]:
    """Return the disputes of each annotated text of a view, in text order.

    Marks are normalised and aligned as in `finecomb.statistics.gold.gold_merge.merge_into_gold`. `auto` aligns by the
    marks' `item` in texts with items, and by overlap in others.
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
    merge = merge_into_gold(view, min_votes=1, align=by)
    marks = {
        mark.id: (mark.model_copy(update={"label": None}) if mark.label == NO_TYPE_LABEL else mark)
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
            DisputedMark(annotation, who, marks[id], id if id in given else id.rpartition(".")[0])
            for annotation, who, id in zip(*columns, strict=True)
        )
        dispute = Dispute(
            hashlib.blake2b(
                "\0".join(sorted(opinion.mark.id for opinion in opinions)).encode(), digest_size=8
            ).hexdigest(),
            opinions,
            readers,
            next(merged),
        )
        named = label != SPLIT_LABEL and (label != NO_TYPE_LABEL or unlabelled)
        disputes_by_document[document].append(replace(dispute, agreed=named and _is_unanimous(dispute)))
    return {document: tuple(columns) for document, columns in disputes_by_document.items()}


@dataclass(frozen=True, slots=True)
class DisputeCount:
    """Number of disputes of a text."""

    disputes: int = 0
    agreed: int = 0
    """Number of disputes with full agreement (see `Dispute.agreed`)."""


def dispute_count_by_document(view: View, align: str = "auto") -> dict[str, DisputeCount]:
    """Count the disputes of each text of a view that `find_disputes` would return, without building records for them.

    This is faster for lists of many texts, since it does not build a record per mark.
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
    is_named = pl.col("label") != SPLIT_LABEL
    if view.protocol is None or not view.protocol.unlabelled:
        is_named &= pl.col("label") != NO_TYPE_LABEL
    by_all = is_named & (pl.col("labels") == 1) & (pl.col("people") == pl.col("readers")) & (pl.col("readers") >= 2)
    agreed = Counter(
        document
        for document, cells in rows.filter(by_all).select("document", "spans").iter_rows()
        if len({tuple(merge_spans(parse_spans(cell))) for cell in cells}) == 1
    )
    totals = rows.group_by("document").len().iter_rows()
    return {document: DisputeCount(total, agreed[document]) for document, total in totals}


def _is_unanimous(dispute: Dispute) -> bool:
    same = {(opinion.mark.label, tuple(merge_spans(opinion.mark.spans))) for opinion in dispute.opinions}
    return len(same) == 1 and dispute.vote_count == dispute.readers >= 2


# --- decisions ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DisputeDecision:
    """Dispute with its decision, if any."""

    dispute: Dispute
    decision: Decision | None = None
    later: int = 0
    """Number of marks added after the decision."""

    @property
    def is_settled(self) -> bool:
        """True if the dispute is closed by a decision other than `discuss`."""
        return self.decision is not None and self.decision.what in SETTLING_DECISIONS


def pair_disputes_with_decisions(
    disputed: Sequence[Dispute], decisions: Mapping[str, Decision]
) -> tuple[DisputeDecision, ...]:
    """Pair each dispute with its decision, if any, in text order; marks added by adjudicators come last.

    Marks that are submitted later do not change decided disputes. A mark belongs to the dispute whose decision lists
    it, or to the one whose decision lists the mark that it was made from (in a second pass, or by accepting a mark).
    Marks aligned with such a mark join the same dispute. All other marks form disputes of their own.
    """
    claims = {id: key for key, decision in decisions.items() for id in decision.readings}
    joined: dict[str, list[tuple[Dispute, DisputedMark]]] = {key: [] for key in decisions}
    states: list[DisputeDecision] = []
    for dispute in disputed:
        owners = [_find_decided_dispute_key(opinion, claims) for opinion in dispute.opinions]
        first = next((owner for owner in owners if owner is not None), None)
        if first is None:
            states.append(DisputeDecision(dispute))
        for opinion, owner in zip(dispute.opinions, owners, strict=True):
            if first is not None:
                joined[owner or first].append((dispute, opinion))
    readers = max((dispute.readers for dispute in disputed), default=0)
    states += [_build_dispute_decision(key, decisions[key], members, readers) for key, members in joined.items()]
    return tuple(sorted(states, key=lambda state: state.dispute.text_position))


def _find_decided_dispute_key(opinion: DisputedMark, claims: Mapping[str, str]) -> str | None:
    """Return the key of the decided dispute that a mark belongs to, or None."""
    piece = opinion.mark.id.removeprefix(
        opinion.origin
    )  # a mark split by a rule has the ID of the original plus a suffix
    ids = (opinion.mark.id, *(f"{id}{piece}" for id in opinion.mark.made_from))
    return next((claims[id] for id in ids if id in claims), None)


def _build_dispute_decision(
    key: str, decision: Decision, members: Sequence[tuple[Dispute, DisputedMark]], readers: int
) -> DisputeDecision:
    opinions = tuple(opinion for _, opinion in members)
    claimed = dict.fromkeys(decision.readings, key)
    later = sum(_find_decided_dispute_key(opinion, claimed) is None for opinion in opinions)
    dispute = members[0][0] if members else Dispute(key, (), readers)
    same = {opinion.mark.id for opinion in dispute.opinions} == {opinion.mark.id for opinion in opinions}
    return DisputeDecision(
        replace(dispute, key=key, opinions=opinions, agreed=dispute.agreed and same), decision, later
    )


def is_adjudication_finished(decisions: Iterable[DisputeDecision]) -> bool:
    """Return True if all disputes of a text are closed, so that its gold can be submitted."""
    return all(decision.is_settled for decision in decisions)


# --- gold marks --------------------------------------------------------------------------------------------------


def gold_marks_of_dispute(document: str, dispute: Dispute, chosen: Sequence[Mark]) -> tuple[Mark, ...]:
    """Return the gold marks of a dispute, with new IDs, votes, and the IDs of the marks that they were made from.

    Without a majority label, `label_votes` holds the votes per label.
    """
    labels = [opinion.mark.label or NO_TYPE_LABEL for opinion in dispute.opinions]
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
