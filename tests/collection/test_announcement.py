"""Tests of the terms shown to annotators: phases, durations, texts and pay."""

from __future__ import annotations

import pytest

from finecomb import protocols
from finecomb.collection.announcement import (
    PHASES_PLACEHOLDER,
    build_participation_terms,
    consent_text,
    researcher_summary_line,
)
from finecomb.core.records import Design, OnboardingPhase, Recruitment, Settings

SCARECROW, TURING = protocols.load("scarecrow"), protocols.load("turing")


def test_a_test_that_is_left_out_is_not_announced() -> None:
    whole = consent_text(SCARECROW, Settings())
    assert "take a qualification test (about 60 minutes)" in whole
    short = consent_text(SCARECROW, Settings(skip=("training", "qualification")))
    assert (
        "First, you will read the instructions (about 15 minutes). Then you will annotate as many texts as you like"
        in short
    )
    assert "test" not in short.replace("texts", "")
    assert "hour" not in short


@pytest.mark.parametrize("name", protocols.names())
def test_no_placeholder_is_left_and_no_protocol_speaks_of_phases_by_itself(name: str) -> None:
    protocol = protocols.load(name)
    skip: tuple[OnboardingPhase, ...] = ("survey", "instructions", "training", "qualification")
    text = consent_text(protocol, Settings(skip=skip))
    assert PHASES_PLACEHOLDER not in text
    assert not any(word in text.lower() for word in ("practis", "qualification", " a test"))
    assert bool(text) == bool(protocol.consent)
    assert consent_text(protocol, Settings(skip=("consent",))) == ""


def test_pay_and_tasks_are_said() -> None:
    hits = Settings(price=3.5, base_pay=40, recruitment=Recruitment(platform="mturk", batch=1))
    text = consent_text(SCARECROW, hits)
    assert "USD 3.50 per text and USD 40.00 for taking part, even if you do not pass the test" in text
    assert "You can take more than one task." in text
    line = researcher_summary_line(build_participation_terms(SCARECROW, hits))
    assert line.startswith("instructions 15 min, practice 15 min, test 60 min, then one text per task")


def test_a_design_says_its_pay_its_texts_its_requirements_and_whether_anybody_practises() -> None:
    cells = [
        {"factors": {"condition": "none", "domain": "news"}},
        {"factors": {"condition": "examples", "domain": "news"}, "pay": 1.75},
    ]
    shape = {
        "people": 2,
        "texts": 3,
        "pay": 1.25,
        "currency": "EUR",
        "requirements": "You are over 18.",
        "cells": cells,
    }
    told = consent_text(TURING, Settings(design=Design.model_validate(shape)))
    assert "between EUR 1.25 and EUR 1.75 for all texts" in told
    assert "perhaps practise (about 5 minutes). Then you will annotate 3 texts" in told
    assert "Eligibility: You are over 18." in told
    untrained = Design.model_validate({**shape, "cells": cells[:1]})
    assert "practise" not in consent_text(TURING, Settings(design=untrained))


def test_without_pay_researchers_read_so() -> None:
    assert researcher_summary_line(build_participation_terms(TURING, Settings())).endswith("; pay not set")


def test_a_protocol_in_another_language_is_left_as_it_is() -> None:
    german = TURING.model_copy(update={"language": "de", "consent": "Sie stimmen zu."})
    assert consent_text(german, Settings()) == "Sie stimmen zu."
