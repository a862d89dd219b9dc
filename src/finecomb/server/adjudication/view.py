"""Data for the adjudication pages: texts, disputes and the second pass."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import polars as pl

from finecomb.api.judges import GoldAlignment
from finecomb.api.monitoring import (
    dispute_count_by_document,
    find_disputes,
    is_adjudication_finished,
    pair_disputes_with_decisions,
    select_work_to_adjudicate,
)
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
from finecomb.server.researchers.snapshot import Snapshot, label_looks
from finecomb.statistics.gold.disputes import Dispute, DisputeCount, DisputeDecision
from finecomb.statistics.gold.gold_merge import GOLD_ANNOTATOR_ID
from finecomb.statistics.selection.view import View

MIN_VOTES = 2
"""Default number of votes an error needs for `finecomb gold` to keep it."""
_MAX_ROWS = 500  # maximum number of rows in the list


# --- list of texts ------------------------------------------------------------------------------------------------


T = TypeVar("T")


@dataclass(slots=True)
class PerTextCache(Generic[T]):
    """Cache of one value per text. A value is valid until another annotation of its text is submitted."""

    compute: Callable[[View], Mapping[str, T]]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _prints: dict[str, str] = field(default_factory=dict)
    _values: dict[str, T] = field(default_factory=dict)

    def values_by_text(self, view: View) -> Mapping[str, T]:
        """Return the value of each text in a view, recomputing values only for texts that changed."""
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
    """Cache of the number of disputes per text, and of the disputes of texts with decisions."""

    counts: PerTextCache[DisputeCount] = field(default_factory=lambda: PerTextCache(dispute_count_by_document))
    disputes: PerTextCache[tuple[Dispute, ...]] = field(default_factory=lambda: PerTextCache(find_disputes))


def build_adjudication_list(snapshot: Snapshot, cache: DisputeCache) -> schema.AdjudicationList:
    """Build the list of submitted texts, those with the most open disputes first."""
    if not snapshot.protocol.labels:
        why = f"{snapshot.protocol.title} does not ask for marks, so there is nothing to adjudicate."
        return schema.AdjudicationList(rows=(), total=0, done=0, why=why)
    view = select_work_to_adjudicate(snapshot.study, snapshot.protocol.id)
    # Gold annotations from adjudication or another source, including drafts
    is_gold = (pl.col("annotator") == GOLD_ANNOTATOR_ID) & (pl.col("protocol") == snapshot.protocol.id)
    is_about_text = (pl.col("round") == 0) & pl.col("about").is_null()
    golds = {
        gold.document: gold for gold in snapshot.study.filter_annotations(is_gold & is_about_text).iter_annotations()
    }
    checks = set(snapshot.study.settings.attention_checks)
    counts = {id: count for id, count in cache.counts.values_by_text(view).items() if id not in checks}
    decisions = {
        id: adjudication_storage.decisions_by_dispute(gold)
        for id, gold in golds.items()
        if adjudication_storage.is_gold_from_adjudication(gold)
    }
    read = set(view.study.documents["id"])
    touched = [id for id, decisions_of_text in decisions.items() if decisions_of_text and id in read]
    places = cache.disputes.values_by_text(view.restrict_to_documents(pl.Series(touched))) if touched else {}
    decided = {id: pair_disputes_with_decisions(places[id], decisions[id]) for id in touched}
    readers = dict(view.study.annotations.group_by("document").len().iter_rows())
    starts = dict(view.study.documents.select("id", "text").iter_rows())
    rows = [
        _adjudication_row(id, starts[id], readers[id], count, decided.get(id), golds.get(id))
        for id, count in counts.items()
    ]
    order = {id: position for position, id in enumerate(starts)}
    rows.sort(key=lambda row: (row.state != "open", -row.differ, -row.agreed, order[row.id]))
    done = sum(row.state == "done" for row in rows)
    return schema.AdjudicationList(rows=tuple(rows[:_MAX_ROWS]), total=len(rows), done=done)


def _adjudication_row(
    id: str,
    text: str,
    readers: int,
    count: DisputeCount,
    standing: Sequence[DisputeDecision] | None,
    gold: Annotation | None,
) -> schema.AdjudicationRow:
    """Build the row of a text from its decisions, or from its number of disputes when nothing has been decided."""
    is_submitted = gold is not None and gold.status == "submitted"
    is_elsewhere = standing is None and gold is not None and not adjudication_storage.is_gold_from_adjudication(gold)
    if standing is None:
        is_done, open_count, agreed = is_submitted and not count.disputes, count.disputes, count.agreed
    else:
        open_ = [decided.dispute for decided in standing if decided.decision is None]
        is_done, open_count = is_submitted and is_adjudication_finished(standing), len(open_)
        agreed = sum(place.agreed for place in open_)
    places = count.disputes if standing is None else len(standing)
    return schema.AdjudicationRow(
        id=id,
        start=shorten(text, 160),
        places=places,
        decided=places - open_count,
        discuss=sum(decided.decision is not None and not decided.is_settled for decided in standing or ()),
        differ=open_count - agreed,
        agreed=agreed,
        readers=readers,
        state="elsewhere" if is_elsewhere else "done" if is_done else "open",
    )


# --- one text -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DisputedText:
    """Text under adjudication, with its current disputes."""

    document: Document
    protocol: Protocol
    seen: View
    places: tuple[Dispute, ...]
    gold: Annotation | None
    seed: int

    @property
    def decisions(self) -> tuple[DisputeDecision, ...]:
        """Disputes paired with their decisions, in text order."""
        return pair_disputes_with_decisions(self.places, adjudication_storage.decisions_by_dispute(self.gold))

    @property
    def adjudication_text(self) -> AdjudicationText:
        """Text to adjudicate, in the form used for storing decisions."""
        ids = self.seen.study.annotations["id"].to_list()
        return AdjudicationText(self.document.id, self.protocol.id, self.places, tuple(ids))

    @property
    def shuffled_annotators(self) -> list[str]:
        """Annotators of the text, in a shuffled order that is the same on every call."""

        def sort_key(id: str) -> bytes:
            return hashlib.sha256(f"{self.seed}\0{self.document.id}\0{id}".encode()).digest()

        return sorted(self.seen.study.annotations["annotator"].unique(), key=sort_key)


def load_disputed_text(store: Store, id: str, align: GoldAlignment) -> DisputedText:
    """Load a text with its current annotations and decisions."""
    head = store.head
    if id in head.settings.attention_checks:
        raise ProblemError(
            "refused", "This text is an attention check. Its answers are known and need no adjudication."
        )
    try:
        document = store.get_document(id)
    except FinecombError:
        raise ProblemError("not-found", f"Document {id!r} does not exist.") from None
    every = store.read_annotations(annotation_table.c.document == id)
    study = Study.from_items([head.settings, *head.protocols.values(), document, *store.read_annotators(), *every])
    view = select_work_to_adjudicate(study, head.protocol.id)
    if view.study.annotations.is_empty():
        raise ProblemError("not-found", "No annotator has submitted this text yet.")
    gold = store.read(adjudication_storage.find_gold_annotation, id, head.protocol.id)
    return DisputedText(document, head.protocol, view, find_disputes(view, align)[id], gold, head.settings.seed)


def build_adjudication_page(text: DisputedText) -> schema.AdjudicatePage:
    """Build the page of one text with its disputes."""
    marks = {mark.id: mark for mark in text.gold.marks} if text.gold else {}
    numbers = {id: number for number, id in enumerate(text.shuffled_annotators, 1)}
    cards = []
    for standing in text.decisions:
        position = standing.dispute.text_position
        if standing.decision is not None and not standing.dispute.opinions:
            # An error added by the adjudicator is at the position of its gold mark.
            spans = [span for id in standing.decision.gold for span in marks[id].spans]
            position = min(((span.start, span.end) for span in spans), default=position)
        cards.append((position, _dispute_card(standing, marks, numbers)))
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


def numbered_opinions(place: Dispute, numbers: Mapping[str, int]) -> list[tuple[int, Mark]]:
    """Return the marks of a dispute with the numbers of their annotators, sorted by number."""
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
    """Return the fields of a mark that are sent to the browser."""
    return {name: getattr(mark, name) for name in schema.AdjudicatedMark.model_fields}
