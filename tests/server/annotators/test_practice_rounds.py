"""Tests of practice rounds over HTTP: the solution is sent after the guess, which is stored with its time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from finecomb import protocols
from finecomb.collection.annotator_meta import AnnotatorMeta
from finecomb.collection.database.store import Store
from finecomb.core.records import Document, Settings
from finecomb.core.study import StudyItem
from tests.databases import Client, FakeClock
from tests.onboarding_client import complete_page, next_step, submit_guess, submit_step

TURING = protocols.load("turing")


@pytest.fixture
def items() -> list[StudyItem]:
    texts = [
        Document(id=f"{domain}-{model}-{n}", text=f"A text {n}.", meta={"domain": domain, "model": model})
        for domain in ("news", "recipes")
        for model in ("human", "m")
        for n in range(5)
    ]
    return [Settings(protocols=(TURING.id,), annotators=28), TURING, *texts]


def start_annotator(store: Store, condition: str) -> tuple[Client, Any]:
    """Return a new annotator of a condition at the first page after the instructions."""
    while True:
        client = Client(store).join_study()
        complete_page(client, next_step(client)["page"])
        if store.read_annotators()[-1].condition == condition:
            return client, next_step(client)["page"]


def domain(store: Store) -> str:
    return AnnotatorMeta.from_annotator(store.read_annotators()[-1]).setting["domain"]


def test_the_answer_comes_after_the_guess_and_cannot_be_skipped(store: Store, clock: FakeClock) -> None:
    client, page = start_annotator(store, "examples")
    assert (page["number"], page["of"], page["is_open"]) == (1, 3, False)
    (shown,) = page["examples"]
    assert shown["answers"] == {}
    assert "why" not in shown or shown["why"] == ""
    code, answer = submit_step(client, page["step"])
    assert (code, answer["code"]) == (403, "not-allowed")
    clock.now += 30
    sent = {"change": "c1", "guess": 3, "active": 20.5}
    opened = client.put(f"/api/steps/{page['step']}/guess", json=sent).json()
    assert opened["is_open"]
    assert opened["examples"][0]["why"]
    step = AnnotatorMeta.from_annotator(store.read_annotators()[-1]).find_step_record(TURING.id, page["step"])
    assert step is not None
    assert (step.guess, step.guess_seconds) == (3, 20.5)
    assert step.right is (opened["examples"][0]["answers"]["rating"] == 4)
    assert submit_step(client, page["step"])[0] == 200


def test_only_the_first_guess_is_kept(store: Store) -> None:
    client, page = start_annotator(store, "examples")
    assert submit_guess(client, page, 1)[0] == 200
    assert submit_guess(client, page, 4)[1]["guess"] == 1
    assert next_step(client)["page"]["is_open"]  # also after a reload


@pytest.mark.parametrize("wrong", [9, "a", [1]])
def test_a_guess_that_is_no_answer_is_refused(store: Store, wrong: object) -> None:
    client, page = start_annotator(store, "examples")
    code, answer = submit_guess(client, page, wrong)
    assert (code, answer["code"]) == (422, "refused")
    assert not next_step(client)["page"]["is_open"]


def test_pairs_are_of_the_domain_whose_texts_come_afterwards(store: Store) -> None:
    client, page = start_annotator(store, "comparison")
    texts = []
    while page:
        assert len(page["examples"]) == 2
        texts.append(page["examples"][0]["text"])
        complete_page(client, page)
        page = next_step(client)["page"]
    assert len(texts) == 3
    words = {"news": "Harlow", "recipes": "Ingredients"}[domain(store)]
    assert any(words in text for text in texts)
    task = next_step(client)["task"]
    (annotation,) = [
        one for one in store.read_study().iter_annotations() if one.annotator == store.read_annotators()[-1].id
    ]
    assert annotation.id == task["id"]
    assert annotation.document.startswith(domain(store))


def test_nothing_before_the_guess_says_who_wrote_it(store: Store) -> None:
    client, page = start_annotator(store, "comparison")
    assert "Machine." not in json.dumps(page)
    assert "Human." not in json.dumps(page)
    assert "Machine." in json.dumps(submit_guess(client, page)[1])
