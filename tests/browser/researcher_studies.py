"""Studies that only researchers look at: a design that fills, runs of language models, judges to be calibrated."""

from __future__ import annotations

import functools
import json
import random
import time
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from playwright.sync_api import Page, expect

import finecomb as fc
from finecomb.annotators.llm.endpoint_consent import confirm_endpoint
from finecomb.annotators.simulated.demo_study import (
    build_demo_document,
    build_demo_study,
    build_demo_truth,
    load_demo_texts,
)
from finecomb.annotators.simulated.simulated_annotators import SimulatedAnnotator, simulate_annotations
from finecomb.collection import arrivals_storage
from finecomb.collection.arrivals import ArrivalSource
from finecomb.collection.database import tables
from finecomb.collection.database.location import DATABASE_FILENAME, parse_location
from finecomb.collection.database.store import open_store
from finecomb.collection.design_cells import with_cell
from finecomb.core.design import DesignCell, design_cells
from finecomb.core.protocol import Work
from finecomb.core.records import (
    ONBOARDING_PHASES,
    Annotation,
    Annotator,
    Design,
    Document,
    Exclusion,
    ModelSettings,
    Settings,
)
from finecomb.core.study import Study
from finecomb.protocols import load_shipped
from tests.annotators.llm.scripted_server import ScriptedAnswer, ScriptedServer, extract_text
from tests.browser.live_server import Server

DAY = 86_400.0

# --- a design that fills -----------------------------------------------------------------------------------------

DESIGN = Design(
    cross={
        "condition": ("examples", "none"),
        "topic": ("harbour", "market", "school", "weather"),
        "model": ("comb-small", "comb-medium", "comb-large", "human"),
    },
    people=8,
    pay=2.0,
    currency="USD",
    texts=2,
)
REASONS = ("Much too fast", "Missed planted errors", "Much too fast", "Asked to leave")


@dataclass(frozen=True)
class Participant:
    """Somebody who came to a study with a design."""

    annotator: Annotator
    texts: int
    """How many they handed in."""
    seconds: float
    """For each text."""
    is_working: bool = False


def make_design_study() -> Study:
    """A study with a design whose cells are filled to a different degree, with people lost, excluded and at work."""
    protocol = fc.protocol("turing").model_copy(update={"work": Work(texts=2)})
    settings = Settings(
        title="Harbour news",
        protocols=(protocol.id,),
        design=DESIGN,
        skip=ONBOARDING_PHASES,
        fees=0.2,
        lease=45,
        pay_floor=15,
        budget=750,
    )
    documents = [
        Document(id=f"{topic}-{model}-{number}", text="word " * 120, meta={"topic": topic, "model": model})
        for topic in DESIGN.cross["topic"]
        for model in DESIGN.cross["model"]
        for number in range(2)
    ]
    people = design_participants()
    work = [annotation for comer in people for annotation in _rating_annotations(comer, protocol.id)]
    return Study.from_items([settings, protocol, *documents, *(comer.annotator for comer in people), *work])


@functools.cache
def design_participants() -> tuple[Participant, ...]:
    """Everybody who came, in the order in which they came."""
    chance = random.Random(7)
    cells = design_cells(DESIGN)
    people = [person for at, cell in enumerate(cells) for person in _cell_participants(cell, at, chance)]
    chance.shuffle(people)
    return tuple(people)


def _cell_participants(cell: DesignCell, at: int, chance: random.Random) -> list[Participant]:
    block, row, column = at // 16, at % 16 // 4, at % 4
    accepted = max(0, min(8, 10 - 2 * row - column - 2 * block + chance.randrange(3))) if at < 31 else 0
    slow = cell.name == "none/school/human"
    people = [
        _make_participant(cell, at, number, 2, 251 if slow else chance.uniform(205, 235)) for number in range(accepted)
    ]
    if 0 < accepted < 8 and chance.random() < 0.4:
        people.append(_make_participant(cell, at, 8, 1, 220, is_working=True))
    if chance.random() < 0.5:
        people.append(_make_participant(cell, at, 9, 2, 40, why=chance.choice(REASONS)))
    if chance.random() < 0.4:
        people.append(_make_participant(cell, at, 10, 1, 200))
    return people


def _make_participant(
    cell: DesignCell, at: int, number: int, texts: int, seconds: float, why: str = "", is_working: bool = False
) -> Participant:
    excluded = Exclusion(by="ed", reason=why) if why else None
    person = Annotator(id=f"reader-{at + 1}-{number + 1}", kind="human", platform="prolific", excluded=excluded)
    return Participant(with_cell(person, cell), texts, seconds, is_working)


def _rating_annotations(comer: Participant, protocol: str) -> list[Annotation]:
    who, factors = comer.annotator.id, comer.annotator.factors
    return [
        Annotation(
            id=f"{who}/{number}",
            document=f"{factors['topic']}-{factors['model']}-{number}",
            annotator=who,
            protocol=protocol,
            answers={"rating": 1 + number},
            active_seconds=comer.seconds,
        )
        for number in range(comer.texts)
    ]


def record_arrivals(server: Server, days: int = 11) -> None:
    """Write down when everybody came, over the days before now, and who is at work; the server starts with that."""
    if (server.folder / "came").exists():
        return
    server.stop()
    (server.folder / "came").touch()
    moment = [0.0]
    store = open_store(parse_location(server.folder / "study.db"), clock=lambda: moment[0])
    try:
        with store.database.write_transaction() as transaction:
            for number, comer in enumerate(design_participants()):
                moment[0] = time.time() - days * DAY * (1 - ((number + 1) / len(design_participants())) ** 0.8)
                arrivals_storage.record_arrival_and_consent(
                    store, transaction, comer.annotator.id, ArrivalSource(platform="prolific")
                )
                if comer.is_working:
                    here = sa.and_(tables.annotator.c.study == store.key, tables.annotator.c.id == comer.annotator.id)
                    transaction.execute(sa.update(tables.annotator).where(here).values(held=time.time() + DAY))
    finally:
        store.close()
    server.start()


# --- runs of language models -------------------------------------------------------------------------------------

_MODEL_OPTIONS = {"price": (3.0, 6.0), "attempts": 1, "concurrency": 1}


@functools.cache
def model_endpoint() -> ScriptedServer:
    """A model that reads the demo's texts: it knows most errors, and now and then its reply is of no use."""
    server = ScriptedServer(_model_reply)
    server.__enter__()  # until the tests end
    return server


def _model_reply(body: dict[str, Any], number: int) -> ScriptedAnswer:
    text = extract_text(body)
    at = next((at for at, demo in enumerate(load_demo_texts()) if demo.text.strip() == text.strip()), 0)
    marks = [_reply_mark(error.quote, error.label) for error in load_demo_texts()[at].errors]
    if body["model"] == "mini":
        if at % 3 == 1:
            return ScriptedAnswer(
                "Here are the errors I found: the second sentence repeats the first.", usage=(640, 40)
            )
        marks = [{**mark, "quote": mark["quote"].replace(" the ", " that ")} for mark in marks]
    if at == 2:
        return ScriptedAnswer("I'm sorry, but I can't help with that.", usage=(640, 20))
    if at == 5:
        reply = json.dumps({"marks": [*marks, _reply_mark("a line", "incoherent")]}, indent=1)
        return ScriptedAnswer(reply[: len(reply) * 3 // 5], finish="length", usage=(640, 1200))
    if at == 7:
        return ScriptedAnswer("", usage=(640, 0))
    return ScriptedAnswer(json.dumps({"marks": marks}), usage=(640, 60 + 40 * len(marks)))


def _reply_mark(quote: str, label: str | None) -> dict[str, Any]:
    return {"quote": quote, "before": "", "after": "", "label": label, "severity": 2, "explanation": "Does not fit."}


def make_model_study() -> Study:
    """The demo study with three language models that can be asked."""
    study = Study.from_items(build_demo_study(5, 0))
    models = {
        name: ModelSettings(model=model, base_url=model_endpoint().url, budget=budget, **_MODEL_OPTIONS)
        for name, model, budget in (("judge-4", "big", 2.0), ("judge-mini", "mini", 1.0), ("judge-short", "big", 0.045))
    }
    settings = study.settings.model_copy(update={"models": models})
    return Study.from_items([settings, *(item for item in study.items() if not isinstance(item, Settings))])


_START = """async (models) => {
  const me = await (await fetch("/api/admin/session")).json();
  const headers = { "X-Finecomb-Token": me.csrf, "Content-Type": "application/json" };
  for (const model of models)
    await fetch("/api/admin/runs", { method: "POST", headers, body: JSON.stringify(model) });
}"""


def run_models(page: Page, server: Server) -> None:
    """Three runs, the last of which stops at its budget; made once for each server."""
    page.goto(f"{server.address}/admin#/runs")
    expect(page.locator("[data-sent]")).to_be_visible(timeout=60_000)
    if page.locator("[data-run]").count() == 0:
        for model in server.read_study().settings.models.values():
            for place in (server.folder, server.folder / DATABASE_FILENAME):
                confirm_endpoint(model, place)
        runs = [("judge-4", 2.0, 2048), ("judge-mini", 1.0, 2048), ("judge-short", 0.045, 2048)]
        page.evaluate(_START, [{"model": name, "budget": sum, "max_tokens": most} for name, sum, most in runs])
        page.reload()
    for name, state in (("judge-4", "finished"), ("judge-mini", "finished"), ("judge-short", "stopped")):
        expect(page.locator(f"[data-run={name}][data-state={state}]")).to_be_visible(timeout=60_000)


# --- a judge to be calibrated ------------------------------------------------------------------------------------


def make_judge_study() -> Study:
    """The demo with ten readers and a language model that finds some kinds of errors and misses others."""
    protocol = load_shipped("scarecrow")
    texts = load_demo_texts()
    documents = [build_demo_document(text) for text in texts]
    truth = {text.id: build_demo_truth(text, protocol) for text in texts}
    judge = SimulatedAnnotator("judge-4", recall=0.6, precision=0.8, jitter=0.5, confusion=0.15)
    machine = Annotator(id="judge-4", kind="llm", meta={"model": "big-2026-08-01", "prompt": "3f2a77d1"})
    work = simulate_annotations(documents, truth, [judge], protocol, seed=3)
    return Study.from_items([*build_demo_study(10, 0), machine, *work])
