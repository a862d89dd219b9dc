"""Where researchers decide about gold: texts that want it, their places, decisions; and the second pass."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import polars as pl
from fastapi import APIRouter, Depends, Query, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from finecomb.agreement import second_pass as passes
from finecomb.core.check import conformity, placement
from finecomb.core.errors import FinecombError, shorten
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.study import Study
from finecomb.gold.disputes import Dispute, DisputeDecision, dispute_decisions, disputes, is_finished
from finecomb.gold.merge import GOLD
from finecomb.measure.view import Filters, Rounds, View, view
from finecomb.server.adjudication import schema
from finecomb.server.problems import ProblemError, refused
from finecomb.server.researchers.routes import Editor, Id, Snapshots, Viewer
from finecomb.server.researchers.schema import Figure
from finecomb.server.researchers.snapshot import Snapshot, shown
from finecomb.store import adjudication
from finecomb.store.adjudication import OvertakenError, Ruling, Text
from finecomb.store.store import Store
from finecomb.store.tables import annotation as annotation_table

router = APIRouter(prefix="/api/admin/adjudicate", tags=["researchers"])
MIN_VOTES = 2
"""With how many votes `finecomb gold` keeps an error unless told otherwise."""
_MOST = 500  # rows of the list
Key = Annotated[str, Query(pattern=f"^({schema.KEY})$")]


def people(study: Study, protocol: Protocol) -> View:
    """What is adjudicated: the work that people handed in; of several passes the last, once a second one was begun."""
    which: Rounds = "last" if study.settings.round else "first"
    return view(study, Filters(protocol=protocol.id, kinds=("human",), rounds=which))


# --- which texts --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class DisputeCache:
    """Places of texts, kept until somebody hands in something else there."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _prints: dict[str, object] = field(default_factory=dict)
    _places: dict[str, tuple[Dispute, ...]] = field(default_factory=dict)

    def of(self, seen: View) -> Mapping[str, tuple[Dispute, ...]]:
        """The places of every text of a view; only texts that changed are aligned again."""
        handed_in = pl.struct("id", "submitted", "round").implode()
        rows = seen.study.annotations.group_by("document").agg(handed_in.alias("print")).iter_rows()
        prints = {document: repr(found) for document, found in rows}
        with self._lock:
            changed = [id for id in seen.study.documents["id"] if self._prints.get(id) != prints[id]]
            if changed:
                self._places |= disputes(seen.of(pl.Series(changed)))
                self._prints |= {id: prints[id] for id in changed}
            return {id: self._places[id] for id in prints}


def _kept(request: Request) -> DisputeCache:
    state = request.app.state
    if not hasattr(state, "adjudicated"):
        state.adjudicated = DisputeCache()
    found: DisputeCache = state.adjudicated
    return found


@router.get("/documents")
def wanting(snapshots: Snapshots, _: Viewer, kept: Annotated[DisputeCache, Depends(_kept)]) -> schema.WantingList:
    """Texts that people handed in, those with most to decide first."""
    return _list(
        snapshots.ask(lambda pages: pages.snapshot), kept
    )  # the first look at many texts takes long: others need not wait


def _list(now: Snapshot, kept: DisputeCache) -> schema.WantingList:
    if not now.protocol.labels:
        why = f"{now.protocol.title} asks for no marks, so there is nothing to adjudicate."
        return schema.WantingList(rows=(), total=0, done=0, why=why)
    seen = people(now.study, now.protocol)
    golds = {each.document: each for each in _golds(now)}
    checks = set(now.study.settings.attention_checks)
    found = {id: own for id, own in kept.of(seen).items() if id not in checks}
    readers = dict(seen.study.annotations.group_by("document").len().iter_rows())
    starts = dict(seen.study.documents.select("id", "text").iter_rows())
    rows = [_row(id, starts[id], readers[id], own, golds.get(id)) for id, own in found.items()]
    order = {id: at for at, id in enumerate(starts)}
    rows.sort(key=lambda row: (row.state != "open", -row.differ, -row.agreed, order[row.id]))
    done = sum(row.state == "done" for row in rows)
    return schema.WantingList(rows=tuple(rows[:_MOST]), total=len(rows), done=done)


def _golds(now: Snapshot) -> Iterator[Annotation]:
    """Gold annotations by people's decisions or from elsewhere, drafts too."""
    own = (pl.col("annotator") == GOLD) & (pl.col("protocol") == now.protocol.id) & (pl.col("round") == 0)
    return now.study.only(own & pl.col("about").is_null()).iter_annotations()


def _row(id: str, text: str, readers: int, own: Sequence[Dispute], gold: Annotation | None) -> schema.Wanting:
    elsewhere = gold is not None and not adjudication.is_ours(gold)
    standing = dispute_decisions(own, {} if elsewhere else adjudication.decisions(gold))
    open_ = [each.dispute for each in standing if each.decision is None]
    done = gold is not None and gold.status == "submitted" and is_finished(standing)
    return schema.Wanting(
        id=id,
        start=shorten(text, 80),
        places=len(standing),
        decided=len(standing) - len(open_),
        discuss=sum(each.decision is not None and not each.settled for each in standing),
        differ=sum(not place.agreed for place in open_),
        agreed=sum(place.agreed for place in open_),
        readers=readers,
        state="elsewhere" if elsewhere else "done" if done else "open",
    )


# --- one text -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Open:
    """A text on the snapshots: its places as they are now."""

    document: Document
    protocol: Protocol
    seen: View
    places: tuple[Dispute, ...]
    gold: Annotation | None
    seed: int

    @property
    def standing(self) -> tuple[DisputeDecision, ...]:
        """Every place with what was decided, in text order."""
        return dispute_decisions(self.places, adjudication.decisions(self.gold))

    @property
    def text(self) -> Text:
        """As the writer needs it."""
        ids = self.seen.study.annotations["id"].to_list()
        return Text(self.document.id, self.protocol.id, self.places, tuple(ids))

    @property
    def readers(self) -> list[str]:
        """Who read the text, in an order that says nothing and stays the same."""

        def place(id: str) -> bytes:
            return hashlib.sha256(f"{self.seed}\0{self.document.id}\0{id}".encode()).digest()

        return sorted(self.seen.study.annotations["annotator"].unique(), key=place)


def _open(store: Store, id: str, align: schema.Align) -> Open:
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
    seen = people(study, head.protocol)
    if seen.study.annotations.is_empty():
        raise ProblemError("not-found", "Nobody has handed in this text yet.")
    with store.database.reading() as transaction:
        gold = adjudication.adjudicated(store, transaction, id, head.protocol.id)
    return Open(document, head.protocol, seen, disputes(seen, align)[id], gold, head.settings.seed)


@router.get("/document")
def document(snapshots: Snapshots, _: Viewer, id: Id, align: schema.Align = "auto") -> schema.AdjudicatePage:
    """One text with its places. Annotators have numbers in place of names, in an order that says nothing."""
    return _page(_open(snapshots.store, id, align))


def _page(own: Open) -> schema.AdjudicatePage:
    marks = {mark.id: mark for mark in own.gold.marks} if own.gold else {}
    numbers = {id: at for at, id in enumerate(own.readers, 1)}
    cards = [(_start(each, marks), _card(each, marks, numbers)) for each in own.standing]
    return schema.AdjudicatePage(
        id=own.document.id,
        text=own.document.text,
        context=own.document.context,
        data=own.document.data,
        labels=own.protocol.labels,
        looks=shown(own.protocol),
        questions=own.protocol.questions,
        unlabelled=own.protocol.unlabelled,
        readers=len(numbers),
        places=tuple(card for _, card in sorted(cards, key=lambda each: each[0])),
        state="untouched" if own.gold is None else "submitted" if own.gold.status == "submitted" else "draft",
    )


def _start(standing: DisputeDecision, marks: Mapping[str, Mark]) -> tuple[int, int]:
    """Where a place comes in the list: what nobody marked where gold has it."""
    if standing.dispute.opinions or standing.decision is None:
        return standing.dispute.start
    spans = [span for id in standing.decision.gold for span in marks[id].spans]
    return min(((span.start, span.end) for span in spans), default=standing.dispute.start)


def _ordered(place: Dispute, numbers: Mapping[str, int]) -> list[tuple[int, Mark]]:
    """The readings of a place by the numbers of their annotators: the order in which cards count from 1."""
    return sorted(((numbers[voice.annotator], voice.mark) for voice in place.opinions), key=lambda each: each[0])


def _card(standing: DisputeDecision, marks: Mapping[str, Mark], numbers: Mapping[str, int]) -> schema.PlaceCard:
    place, decision = standing.dispute, standing.decision
    readings = _ordered(place, numbers)
    ids = [mark.id for _, mark in readings]
    taken = decision.taken if decision else None
    return schema.PlaceCard(
        key=place.key,
        version=decision.version if decision else 0,
        readings=tuple(
            schema.ReadingCard(annotator=number, unlocated=mark.unlocated, **_fields(mark)) for number, mark in readings
        ),
        votes=place.votes,
        readers=len(numbers),
        agreed=place.agreed,
        kept=place.votes >= MIN_VOTES,
        merged=schema.GoldMark(**_fields(place.merged)) if place.merged else None,
        decision=schema.Ruled(
            what=decision.what,
            by=decision.by,
            when=decision.when,
            reading=ids.index(taken) + 1 if taken in ids else None,
        )
        if decision
        else None,
        gold=tuple(schema.GoldMark(**_fields(marks[id])) for id in (decision.gold if decision else ())),
        later=standing.later,
    )


def _fields(mark: Mark | schema.GoldMark) -> dict[str, Any]:
    return {name: getattr(mark, name) for name in schema.GoldMark.model_fields}


# --- deciding -----------------------------------------------------------------------------------------------------


@router.put("/place")
async def decide(
    snapshots: Snapshots, session: Editor, id: Id, place: Key, new: schema.NewRuling, align: schema.Align = "auto"
) -> schema.AdjudicatePage:
    """Decide about one place, or decide otherwise. Deciding the same twice is deciding it once."""
    own = await run_in_threadpool(_open, snapshots.store, id, align)
    return await _write(snapshots, session.who, own, [_ruling(own, _place(own, place, new.what), new)], align)


@router.delete("/place")
async def undo(
    snapshots: Snapshots,
    session: Editor,
    id: Id,
    place: Key,
    base: Annotated[int, Query(ge=0)],
    align: schema.Align = "auto",
) -> schema.AdjudicatePage:
    """Take a decision back; the place is open again."""
    own = await run_in_threadpool(_open, snapshots.store, id, align)
    found = next((each.dispute for each in own.standing if each.dispute.key == place), None)
    return await _write(snapshots, session.who, own, [Ruling(found, base, None)], align) if found else _page(own)


@router.put("/agreed")
async def agreed(
    snapshots: Snapshots, session: Editor, id: Id, wanted: schema.Agreed, align: schema.Align = "auto"
) -> schema.AdjudicatePage:
    """Take places on which all agree, in one go; in a text without any mark, say that gold has none either."""
    own = await run_in_threadpool(_open, snapshots.store, id, align)
    open_ = {each.dispute.key: each.dispute for each in own.standing if each.decision is None}
    settled = {each.dispute.key for each in own.standing if each.decision is not None}
    rulings = []
    for key in dict.fromkeys(wanted.places):
        if key in settled:
            continue
        if key not in open_ or not open_[key].agreed:
            raise ProblemError("conflict", "Not all agree on these places any more. Look at them again.")
        rulings.append(_ruling(own, open_[key], schema.NewRuling(base=0, what="merged")))
    if not rulings and not settled and own.standing:
        raise ProblemError("refused", "Say which places; here people marked something.")
    return await _write(snapshots, session.who, own, rulings, align)


async def _write(
    snapshots: Snapshots, by: str, own: Open, rulings: Sequence[Ruling], align: schema.Align
) -> schema.AdjudicatePage:
    try:
        await snapshots.store.do(adjudication.decide, by, own.text, rulings)
    except OvertakenError as error:
        raise ProblemError("conflict", str(error)) from None
    snapshots.forget()
    return _page(await run_in_threadpool(_open, snapshots.store, own.document.id, align))


def _place(own: Open, key: str, what: str) -> Dispute:
    found = next((each.dispute for each in own.standing if each.dispute.key == key), None)
    if found is None and what == "added" and key.startswith("new-"):
        return Dispute(key, (), len(own.readers))
    if found is None:
        raise ProblemError("conflict", "The readings of this place changed since you opened it. Look at it again.")
    return found


def _ruling(own: Open, place: Dispute, new: schema.NewRuling) -> Ruling:
    """A decision as it is written, checked against text and protocol."""
    numbers = {id: at for at, id in enumerate(own.readers, 1)}
    readings = [mark for _, mark in _ordered(place, numbers)]
    if new.reading is not None and new.reading > len(readings):
        raise ProblemError("refused", f"This place has {len(readings)} readings, not {new.reading}.")
    taken = readings[new.reading - 1] if new.reading is not None else None
    if (new.what == "added") != (not place.opinions) and new.what in ("added", "taken", "merged"):
        raise ProblemError("refused", "What nobody marked is added; what somebody marked is taken or changed.")
    chosen = tuple(_checked(own, place.key, _chosen(place, taken, new), sent=bool(new.marks)))
    return Ruling(place, new.base, new.what, chosen, taken.id if taken else None)


_COUNTS = {"changed": (1, 1), "added": (1, 1), "split": (2, 20)}


def _chosen(place: Dispute, taken: Mark | None, new: schema.NewRuling) -> Sequence[Mark]:
    """The marks that a decision puts into gold."""
    least, most = _COUNTS.get(new.what, (0, 0))
    if not least <= len(new.marks) <= most:
        needs = "two marks or more" if new.what == "split" else "one mark" if least else "no marks"
        raise ProblemError("refused", f"This decision takes {needs}, not {len(new.marks)}.")
    if new.what == "taken":
        if taken is None:
            raise ProblemError("refused", "Say which reading is taken.")
        return (taken,)
    if new.what == "merged":
        if place.merged is None:
            raise ProblemError("refused", "These readings cannot be merged; take one of them or change it.")
        if place.merged.label_votes:
            raise ProblemError("refused", "No label was given by most. Choose one.")
        return (place.merged,)
    return [_sent(f"{place.key}.{at}", mark) for at, mark in enumerate(new.marks, 1)]


def _sent(id: str, mark: schema.GoldMark) -> Mark:
    try:
        return Mark(id=id, **_fields(mark))
    except ValidationError as error:
        raise refused("This mark", error) from None


def _checked(own: Open, key: str, marks: Iterable[Mark], sent: bool) -> Iterator[Mark]:
    """The marks, each checked like everybody's; `sent` ones may only answer what is asked."""
    for mark in marks:
        if mark.label is None and not own.protocol.unlabelled:
            raise ProblemError("refused", "This mark has no label. Choose one.")
        strange = set(mark.answers) - {question.name for question in own.protocol.questions_of(mark.label)}
        if sent and strange:
            raise ProblemError("refused", f"This mark was not accepted: {min(strange)!r} is not asked there.")
        alone = Annotation(id=key, document=own.document.id, annotator=GOLD, protocol=own.protocol.id, marks=(mark,))
        for found in (placement(alone, own.document), conformity(alone, own.protocol)):
            for level, message in found:
                if level == "error":
                    raise ProblemError("refused", f"This mark was not accepted: {message.partition(': ')[2]}.")
        yield mark


# --- the second pass ----------------------------------------------------------------------------------------------


@router.get("/rounds")
def second_pass(snapshots: Snapshots, _: Viewer) -> schema.SecondPass:
    """How far the second pass is, and what it changed."""
    return _second_pass(snapshots.ask(lambda pages: pages.snapshot))


def _second_pass(now: Snapshot) -> schema.SecondPass:
    protocol = now.protocol.id
    far = passes.progress(now.study, protocol)
    compared = passes.rounds(now.study, Filters(protocol=protocol, kinds=("human",))) if far.done else None
    rows = compared.marks.iter_rows(named=True) if compared else ()
    return schema.SecondPass(
        round=now.study.settings.round,
        wanted=far.wanted,
        begun=far.begun,
        done=far.done,
        rows=tuple(schema.PassRow(**row | {"annotator": now.names.get(row["annotator"], "")}) for row in rows),
        agreement={each.columns["pass"]: Figure.of(each.estimate) for each in compared.agreement} if compared else {},
        notes=compared.notes if compared else (),
    )
