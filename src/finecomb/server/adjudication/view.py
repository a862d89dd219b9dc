"""What researchers see when they decide about gold: texts that want it, their places, and the second pass."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import polars as pl

from finecomb.collection import adjudication_storage
from finecomb.collection.adjudication_storage import AdjudicationText
from finecomb.collection.database.store import Store
from finecomb.collection.database.tables import annotation as annotation_table
from finecomb.core.errors import FinecombError, shorten
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.study import Study
from finecomb.server.adjudication import schema
from finecomb.server.error_responses import ProblemError
from finecomb.server.researchers.schema import Figure
from finecomb.server.researchers.snapshot import Snapshot, label_looks
from finecomb.statistics.agreement import second_pass_changes as passes
from finecomb.statistics.gold.disputes import (
    Dispute,
    DisputeCount,
    DisputeDecision,
    dispute_count_by_document,
    dispute_decisions,
    find_disputes,
    is_adjudication_finished,
)
from finecomb.statistics.gold.gold_merge import GOLD
from finecomb.statistics.selection.view import Filters, Rounds, View, view

MIN_VOTES = 2
"""With how many votes `finecomb gold` keeps an error unless told otherwise."""
_MAX_ROWS = 500  # rows of the list


def human_work_to_adjudicate(study: Study, protocol: Protocol) -> View:
    """What is adjudicated: the work that people handed in; of several passes the last, once a second one was begun."""
    which: Rounds = "last" if study.settings.round else "first"
    return view(study, Filters(protocol=protocol.id, kinds=("human",), rounds=which))


# --- which texts --------------------------------------------------------------------------------------------------


T = TypeVar("T")


@dataclass(slots=True)
class PerTextCache(Generic[T]):
    """What `compute` gives for each text of a view, kept until somebody hands in something else there."""

    compute: Callable[[View], Mapping[str, T]]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _prints: dict[str, str] = field(default_factory=dict)
    _values: dict[str, T] = field(default_factory=dict)

    def values_by_text(self, view: View) -> Mapping[str, T]:
        """The value of every text of a view; only texts that changed are computed again."""
        handed_in = pl.struct("id", "submitted", "round").implode()
        rows = view.study.annotations.group_by("document").agg(handed_in.alias("print")).iter_rows()
        prints = {document: repr(print_) for document, print_ in rows}
        with self._lock:
            changed = [id for id in view.study.documents["id"] if self._prints.get(id) != prints[id]]
            if changed:
                self._values |= self.compute(view.restrict_to_documents(pl.Series(changed)))
                self._prints |= {id: prints[id] for id in changed}
            return {id: self._values[id] for id in prints}


@dataclass(slots=True)
class DisputeCache:
    """Places of texts: how many there are in each, and the places themselves where something was decided."""

    counts: PerTextCache[DisputeCount] = field(default_factory=lambda: PerTextCache(dispute_count_by_document))
    disputes: PerTextCache[tuple[Dispute, ...]] = field(default_factory=lambda: PerTextCache(find_disputes))


def adjudication_list(snapshot: Snapshot, cache: DisputeCache) -> schema.AdjudicationList:
    """The texts that people handed in, those with most to decide first."""
    if not snapshot.protocol.labels:
        why = f"{snapshot.protocol.title} asks for no marks, so there is nothing to adjudicate."
        return schema.AdjudicationList(rows=(), total=0, done=0, why=why)
    view = human_work_to_adjudicate(snapshot.study, snapshot.protocol)
    golds = {gold.document: gold for gold in _gold_annotations(snapshot)}
    checks = set(snapshot.study.settings.attention_checks)
    counts = {id: count for id, count in cache.counts.values_by_text(view).items() if id not in checks}
    decided = _decisions_by_text(view, golds, cache)
    readers = dict(view.study.annotations.group_by("document").len().iter_rows())
    starts = dict(view.study.documents.select("id", "text").iter_rows())
    rows = [
        _decided_row(id, starts[id], readers[id], decided[id], golds[id])
        if id in decided
        else _undecided_row(id, starts[id], readers[id], count, golds.get(id))
        for id, count in counts.items()
    ]
    order = {id: at for at, id in enumerate(starts)}
    rows.sort(key=lambda row: (row.state != "open", -row.differ, -row.agreed, order[row.id]))
    done = sum(row.state == "done" for row in rows)
    return schema.AdjudicationList(rows=tuple(rows[:_MAX_ROWS]), total=len(rows), done=done)


def _decisions_by_text(
    view: View, golds: Mapping[str, Annotation], cache: DisputeCache
) -> Mapping[str, tuple[DisputeDecision, ...]]:
    """The places, with what was decided, of the texts in which something was."""
    decisions = {
        id: adjudication_storage.decisions_by_dispute(gold)
        for id, gold in golds.items()
        if adjudication_storage.is_adjudicated_here(gold)
    }
    read = set(view.study.documents["id"])
    touched = [id for id, made in decisions.items() if made and id in read]
    if not touched:
        return {}
    places = cache.disputes.values_by_text(view.restrict_to_documents(pl.Series(touched)))
    return {id: dispute_decisions(places[id], decisions[id]) for id in touched}


def _gold_annotations(snapshot: Snapshot) -> Iterator[Annotation]:
    """Gold annotations by people's decisions or from elsewhere, drafts too."""
    is_gold = (pl.col("annotator") == GOLD) & (pl.col("protocol") == snapshot.protocol.id) & (pl.col("round") == 0)
    return snapshot.study.filter_annotations(is_gold & pl.col("about").is_null()).iter_annotations()


def _undecided_row(
    id: str, text: str, readers: int, count: DisputeCount, gold: Annotation | None
) -> schema.AdjudicationRow:
    """A text in which nothing was decided here."""
    elsewhere = gold is not None and not adjudication_storage.is_adjudicated_here(gold)
    done = gold is not None and gold.status == "submitted" and not count.disputes
    return schema.AdjudicationRow(
        id=id,
        start=shorten(text, 160),
        places=count.disputes,
        decided=0,
        discuss=0,
        differ=count.disputes - count.agreed,
        agreed=count.agreed,
        readers=readers,
        state="elsewhere" if elsewhere else "done" if done else "open",
    )


def _decided_row(
    id: str, text: str, readers: int, standing: Sequence[DisputeDecision], gold: Annotation
) -> schema.AdjudicationRow:
    """A text in which something was decided."""
    open_ = [decided.dispute for decided in standing if decided.decision is None]
    return schema.AdjudicationRow(
        id=id,
        start=shorten(text, 160),
        places=len(standing),
        decided=len(standing) - len(open_),
        discuss=sum(decided.decision is not None and not decided.is_settled for decided in standing),
        differ=sum(not place.agreed for place in open_),
        agreed=sum(place.agreed for place in open_),
        readers=readers,
        state="done" if gold.status == "submitted" and is_adjudication_finished(standing) else "open",
    )


# --- one text -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DisputedText:
    """A text that is being adjudicated: its places as they are now."""

    document: Document
    protocol: Protocol
    seen: View
    places: tuple[Dispute, ...]
    gold: Annotation | None
    seed: int

    @property
    def decisions(self) -> tuple[DisputeDecision, ...]:
        """Every place with what was decided, in text order."""
        return dispute_decisions(self.places, adjudication_storage.decisions_by_dispute(self.gold))

    @property
    def storage_text(self) -> AdjudicationText:
        """As the writer needs it."""
        ids = self.seen.study.annotations["id"].to_list()
        return AdjudicationText(self.document.id, self.protocol.id, self.places, tuple(ids))

    @property
    def shuffled_annotators(self) -> list[str]:
        """Who read the text, in an order that says nothing and stays the same."""

        def sort_key(id: str) -> bytes:
            return hashlib.sha256(f"{self.seed}\0{self.document.id}\0{id}".encode()).digest()

        return sorted(self.seen.study.annotations["annotator"].unique(), key=sort_key)


def load_disputed_text(store: Store, id: str, align: schema.Align) -> DisputedText:
    """Read a text and everything said about it, as it is now."""
    head = store.head
    if id in head.settings.attention_checks:
        raise ProblemError("refused", "This text is an attention check: its answers are known and need no deciding.")
    try:
        document = store.document(id)
    except FinecombError:
        raise ProblemError("not-found", f"No document is called {id!r}.") from None
    every = store.annotations(annotation_table.c.document == id)
    study = Study.from_items([head.settings, *head.protocols.values(), document, *store.annotators(), *every])
    view = human_work_to_adjudicate(study, head.protocol)
    if view.study.annotations.is_empty():
        raise ProblemError("not-found", "Nobody has handed in this text yet.")
    with store.database.read_transaction() as transaction:
        gold = adjudication_storage.find_gold_annotation(store, transaction, id, head.protocol.id)
    return DisputedText(document, head.protocol, view, find_disputes(view, align)[id], gold, head.settings.seed)


def build_adjudication_page(text: DisputedText) -> schema.AdjudicatePage:
    """A text with its places, as it goes to the browser."""
    marks = {mark.id: mark for mark in text.gold.marks} if text.gold else {}
    numbers = {id: at for at, id in enumerate(text.shuffled_annotators, 1)}
    cards = [(_sort_position(decided, marks), _dispute_card(decided, marks, numbers)) for decided in text.decisions]
    return schema.AdjudicatePage(
        id=text.document.id,
        text=text.document.text,
        context=text.document.context,
        data=text.document.data,
        labels=text.protocol.labels,
        looks=label_looks(text.protocol),
        questions=text.protocol.questions,
        unlabelled=text.protocol.unlabelled,
        readers=len(numbers),
        places=tuple(card for _, card in sorted(cards, key=lambda decided: decided[0])),
        state="untouched" if text.gold is None else "submitted" if text.gold.status == "submitted" else "draft",
    )


def _sort_position(standing: DisputeDecision, marks: Mapping[str, Mark]) -> tuple[int, int]:
    """Where a place comes in the list: what nobody marked where gold has it."""
    if standing.dispute.opinions or standing.decision is None:
        return standing.dispute.text_position
    spans = [span for id in standing.decision.gold for span in marks[id].spans]
    return min(((span.start, span.end) for span in spans), default=standing.dispute.text_position)


def numbered_opinions(place: Dispute, numbers: Mapping[str, int]) -> list[tuple[int, Mark]]:
    """The readings of a place by the numbers of their annotators: the order in which cards count from 1."""
    return sorted(((numbers[voice.annotator], voice.mark) for voice in place.opinions), key=lambda reading: reading[0])


def _dispute_card(
    standing: DisputeDecision, marks: Mapping[str, Mark], numbers: Mapping[str, int]
) -> schema.DisputeCard:
    place, decision = standing.dispute, standing.decision
    readings = numbered_opinions(place, numbers)
    ids = [mark.id for _, mark in readings]
    taken = decision.taken if decision else None
    return schema.DisputeCard(
        key=place.key,
        version=decision.version if decision else 0,
        readings=tuple(
            schema.OpinionCard(annotator=number, unlocated=mark.unlocated, **browser_mark_fields(mark))
            for number, mark in readings
        ),
        votes=place.vote_count,
        readers=len(numbers),
        agreed=place.agreed,
        kept=place.vote_count >= MIN_VOTES,
        merged=schema.AdjudicatedMark(**browser_mark_fields(place.merged)) if place.merged else None,
        decision=schema.DecisionCard(
            what=decision.what,
            by=decision.by,
            when=decision.when,
            reading=ids.index(taken) + 1 if taken in ids else None,
        )
        if decision
        else None,
        gold=tuple(
            schema.AdjudicatedMark(**browser_mark_fields(marks[id])) for id in (decision.gold if decision else ())
        ),
        later=standing.later,
    )


def browser_mark_fields(mark: Mark | schema.AdjudicatedMark) -> dict[str, Any]:
    """The fields of a mark that the browser gets."""
    return {name: getattr(mark, name) for name in schema.AdjudicatedMark.model_fields}


# --- the second pass ----------------------------------------------------------------------------------------------


def second_pass_view(snapshot: Snapshot) -> schema.SecondPass:
    """How far the second pass is, and what it changed."""
    protocol = snapshot.protocol.id
    far = passes.second_pass_progress(snapshot.study, protocol)
    compared = passes.compare_passes(snapshot.study, Filters(protocol=protocol, kinds=("human",))) if far.done else None
    rows = compared.marks.iter_rows(named=True) if compared else ()
    return schema.SecondPass(
        round=snapshot.study.settings.round,
        wanted=far.wanted,
        begun=far.begun,
        done=far.done,
        rows=tuple(
            schema.SecondPassRow(**row | {"annotator": snapshot.name_by_annotator.get(row["annotator"], "")})
            for row in rows
        ),
        agreement={finding.columns["pass"]: Figure.from_estimate(finding.estimate) for finding in compared.agreement}
        if compared
        else {},
        notes=compared.notes if compared else (),
    )
