"""Every protocol in a real browser, from the recruiting link to the code, and what the researcher has afterwards.

What would take minutes by hand is entered over HTTP in the same session. `test_onboarding` walks turing, accuracy
and the first exercise of sections.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

import finecomb as fc
from finecomb.collection import onboarding
from finecomb.core.practice import Choice, Exercise
from finecomb.core.protocol import Protocol
from finecomb.core.records import ONBOARDING_PHASES, Annotation, Annotator, Document, Mark, Settings
from finecomb.core.span import Span
from finecomb.core.study import Study
from tests.browser.live_server import BrowserAnnotator, Server, serve_study
from tests.browser.onboarding_session import advance_to, onboarding_study, open_join_page
from tests.browser.studies import FERRY, PROMPT, STORY, assert_quotes_match, describe_marks, make_document
from tests.onboarding_client import knows_nothing

pytestmark = pytest.mark.long

CODES = {"platform": "prolific", "completed": "C0MPLETE", "screened_out": "SCREENED", "no_consent": "N0THANKS"}


def recruited(protocol: Protocol, *documents: Document, **settings: object) -> Study:
    return onboarding_study(protocol, *documents, recruitment=CODES, **settings)


def come(browser: Browser, server: Server, worker: str = "5f0c2d7e9a1b") -> BrowserAnnotator:
    """Somebody sent by Prolific, who agrees to take part."""
    reader = open_join_page(browser, server, f"?PROLIFIC_PID={worker}&STUDY_ID=s1&SESSION_ID=of{worker}")
    reader.click_action("start")
    expect(reader.page.locator("[data-page=join]")).to_have_count(0, timeout=20_000)
    return reader


def leave(reader: BrowserAnnotator, code: str = "C0MPLETE") -> None:
    """The last page, with the code for Prolific and the way back there."""
    expect(reader.page.locator("[data-code]")).to_have_text(code, timeout=20_000)
    back = reader.page.locator("[data-action=back]").get_attribute("href")
    assert back == f"https://app.prolific.com/submissions/complete?cc={code}"
    reader.expect_no_errors()


def export(server: Server) -> Study:
    """What the researcher gets as one file: whole, without problems, and without worker ids."""
    file = server.folder.parent / "export.jsonl"
    fc.write(server.read_study(), file)
    assert "5f0c2d7e9a1b" not in file.read_text()
    study = fc.read(file)
    assert [each for each in fc.check(study) if each.level == "error"] == []
    return study


def work(study: Study, phase: str = "work") -> list[Annotation]:
    return [each for each in study.iter_annotations() if each.phase == phase and each.status == "submitted"]


def person(study: Study) -> Annotator:
    (found,) = [each for each in study.iter_annotators() if each.kind == "human"]
    return found


def steps(annotator: Annotator, protocol: Protocol) -> list[str]:
    """The pages somebody has been through, each with its version and times."""
    kept: Any = annotator.meta["steps"]
    assert all(each["protocol"] == protocol.id and each["done"] for each in kept)
    assert all(each["shown"] <= each["done"] for each in kept if each["step"] != "consent")
    return [each["step"] for each in kept]


def exercise(protocol: Protocol, name: str) -> Any:
    (found,) = [
        each.given for each in onboarding.practice_items_by_document(protocol).values() if each.given.name == name
    ]
    assert isinstance(found, Exercise | Choice)
    return found


# --- marking -----------------------------------------------------------------------------------------------------


def test_scarecrow_passed_and_failed(browser: Browser, tmp_path: Path) -> None:
    protocol = fc.protocol("scarecrow")
    document = make_document("d1", FERRY, context={"prompt": PROMPT})
    with serve_study(recruited(protocol, document), tmp_path / "study") as server:
        reader = come(browser, server)
        page = reader.page
        reader.continue_from("instructions")
        reader.continue_from("training")
        advance_to(reader, server, protocol, "part-1-1")
        reader.continue_from("part-1-1")
        reader.wait_for("step")  # the first type is explained
        advance_to(reader, server, protocol, "exercise-1")
        reader.wait_for_text()
        expect(page.locator("[data-practice]")).to_contain_text("1 of 5")
        (known,) = exercise(protocol, "exercise-1").solutions
        reader.select_quote(known.quote)
        reader.click_label(known.label)
        reader.answer_question("severity", "1")
        reader.answer_question("explanation", "Three players have.")
        reader.wait_until_saved()
        reader.click_finish()
        reader.wait_for("step")  # the next type is explained
        advance_to(reader, server, protocol, "choice-1")
        reader.answer_question("answer", exercise(protocol, "choice-1").answer)
        reader.wait_until_saved()
        reader.click_finish()
        expect(page.locator("[data-practice='2']")).to_be_visible(timeout=20_000)
        advance_to(reader, server, protocol, "result-1")
        reader.wait_for("passed=true")
        expect(page.locator(".total")).to_contain_text("100")
        reader.click_action("continue")
        reader.wait_for_text()
        assert reader.text == FERRY
        reader.select_quote("its fiftieth year")
        reader.click_label("self-contradiction")
        reader.answer_question("severity", "3")
        reader.answer_question("explanation", "1911 is more than fifty years ago.")
        reader.pick_antecedent("has run since 1911")
        reader.wait_until_saved()
        reader.click_finish()
        reader.expect_last_page()
        leave(reader)

        other = come(browser, server, "a1")
        advance_to(other, server, protocol, "result-1", lambda name, nth: name.startswith("exercise"))
        other.wait_for("passed=false")
        expect(other.page.locator(".total")).to_contain_text("50")
        expect(other.page.locator(".total")).to_contain_text("90")  # what was needed
        expect(other.page.locator("[data-after]")).to_contain_text("You will be paid for your time")
        other.wait_for("solution")
        other.click_action("continue")
        leave(other, "SCREENED")
        study = export(server)
    by_result = {each.qualification.passed: each for each in study.iter_annotators() if each.qualification}
    assert [(passed, each.qualification.score) for passed, each in by_result.items() if each.qualification] == [
        (True, 100),
        (False, 50),
    ]
    for each in by_result.values():
        walked = steps(each, protocol)
        explained = [step for step in walked if step.startswith("label-")]
        assert len(explained) == 10  # each type before its exercise
        parts = [f"part-1-{number}" for number in range(1, 6)]
        assert [step for step in walked if step not in explained] == [
            *("consent", "instructions", "training"),
            *parts,
            "result-1",
        ]
    (done,) = work(study)
    assert done.annotator == by_result[True].id
    assert describe_marks(done) == [("self-contradiction", ("its fiftieth year",), [[47, 64]])]
    assert done.marks[0].answers == {"severity": 3, "explanation": "1911 is more than fifty years ago."}
    assert done.marks[0].antecedents
    assert done.marks[0].antecedents.quotes == ("has run since 1911",)
    assert (len(work(study, "training")), len(work(study, "qualification"))) == (4, 42)


def test_snac_passed_and_failed(browser: Browser, tmp_path: Path) -> None:
    protocol = fc.protocol("snac")
    words = "\n".join(STORY)
    edges = [(words.index(part), words.index(part) + len(part)) for part in STORY]
    document = make_document("s1", words, segments=[{"start": start, "end": end} for start, end in edges])
    with serve_study(recruited(protocol, document), tmp_path / "study") as server:
        reader = come(browser, server)
        page = reader.page
        reader.continue_from("instructions")
        reader.continue_from("training")
        reader.wait_for_text()
        reader.click_finish()  # nothing in the first part
        expect(page.locator("[data-text]")).to_contain_text("Conrad")
        reader.select_quote("Conrad")
        reader.click_label("char")
        reader.click_finish()
        expect(page.locator("[data-text]")).to_contain_text("On the last day")
        reader.select_quote("does not charge anybody for the trip")
        reader.click_label("rep")
        reader.pick_antecedent("lets the passengers ride for free")
        reader.wait_until_saved()
        reader.click_finish()
        reader.wait_for("kind=feedback")
        assert [page.locator(f"[data-graded={kind}] li").count() for kind in ("found", "missed")] == [2, 2]
        reader.click_action("continue")
        reader.continue_from("part-1-1")
        reader.wait_for_text()
        advance_to(reader, server, protocol, "result-1", lambda name, nth: nth != 0)
        reader.wait_for("passed=true")
        expect(page.locator(".total")).to_contain_text("87.5")
        expect(page.locator("[data-graded=missed]")).to_contain_text(exercise(protocol, "boxing-gym").solutions[0].why)
        reader.click_action("continue")
        reader.wait_for_text()
        reader.click_finish()
        expect(page.locator("[data-text]")).to_contain_text("Her husband Jonas")
        reader.select_quote("Her husband Jonas")
        reader.click_label("incon")
        reader.pick_antecedent("never married")
        reader.click_finish()
        expect(page.locator("[data-text]")).to_contain_text("Elspeth")
        reader.wait_until_saved()
        reader.click_finish()
        reader.expect_last_page()
        leave(reader)

        other = come(browser, server, "a1")
        advance_to(other, server, protocol, "result-1", knows_nothing)
        other.wait_for("passed=false")
        expect(other.page.locator(".total")).to_contain_text("50")
        expect(other.page.locator("[data-after]")).to_contain_text("You will be paid for your time")
        other.click_action("continue")
        leave(other, "SCREENED")
        study = export(server)
    scores = {each.id: each.qualification.score for each in study.iter_annotators() if each.qualification}
    (done,) = work(study)
    assert sorted(scores.values()) == [0, 87.5]
    assert scores[done.annotator] == 87.5
    assert describe_marks(done) == [("incon", ("Her husband Jonas",), [[47, 64]])]
    assert [(unit.start, unit.end) for unit in done.units] == edges
    assert_quotes_match(done, document)


def test_mqm(browser: Browser, tmp_path: Path) -> None:
    protocol = fc.protocol("mqm")
    document = make_document(
        "m1", "Das Schiff fahren um acht Uhr ab.", context={"source": "The ship leaves at nine o'clock."}
    )
    with serve_study(recruited(protocol, document), tmp_path / "study") as server:
        reader = come(browser, server)
        reader.wait_for("step=survey")
        reader.answer_question("native", "true")
        reader.answer_question("years", "12")
        for step in ("survey", "instructions", "training"):
            reader.continue_from(step)
        reader.wait_for_text()
        reader.select_quote("Thursday")
        reader.click_label("accuracy/mistranslation")
        reader.answer_question("severity", "major")
        reader.select_quote("einschließlich", part="source")
        reader.click_label("accuracy/omission")
        reader.answer_question("severity", "minor")
        reader.wait_until_saved()
        reader.click_finish()
        reader.wait_for("kind=feedback")
        graded = [reader.page.locator(f"[data-graded={kind}] li").count() for kind in ("found", "missed", "extra")]
        assert graded == [2, 2, 0]
        reader.click_action("continue")
        reader.wait_for_text()
        reader.select_quote("acht")
        reader.click_label("accuracy/mistranslation")
        reader.answer_question("severity", "major")
        reader.wait_until_saved()
        reader.click_finish()
        reader.expect_last_page()
        leave(reader)
        study = export(server)
    assert person(study).survey == {"native": True, "years": 12}
    assert steps(person(study), protocol) == ["consent", "survey", "instructions", "training"]
    (done,) = work(study)
    assert describe_marks(done) == [("accuracy/mistranslation", ("acht",), [[21, 25]])]
    assert done.marks[0].answers == {"severity": "major"}
    (practised,) = work(study, "training")
    assert {span.part for mark in practised.marks for span in mark.spans} == {"text", "source"}


# --- rating ------------------------------------------------------------------------------------------------------


def test_likert(browser: Browser, tmp_path: Path) -> None:
    protocol = fc.protocol("likert")
    documents = [make_document(f"d{n}", f"{FERRY} Text {n}.") for n in range(2)]
    with serve_study(recruited(protocol, *documents), tmp_path / "study") as server:
        reader = come(browser, server)
        reader.continue_from("instructions")
        for number in (1, 2):
            expect(reader.page.locator("[data-action=texts]")).to_contain_text(f"Text {number} of 2", timeout=20_000)
            reader.press_keys(str(number + 2))
            if number == 1:
                reader.answer_question("reason", "The year does not fit.")
            reader.wait_until_saved()
            reader.press_keys("Control+Enter")
        reader.expect_last_page()
        leave(reader)
        study = export(server)
    done = sorted(work(study), key=lambda each: int(str(each.meta["order"])))
    assert [dict(each.answers) for each in done] == [
        {"coherence": 3, "reason": "The year does not fit."},
        {"coherence": 4},
    ]
    assert steps(person(study), protocol) == ["consent", "instructions"]
    assert all(each.active_seconds is not None for each in done)


def test_preference_names_the_text_that_was_preferred(browser: Browser, tmp_path: Path) -> None:
    protocol = fc.protocol("preference")
    pairs = [
        make_document(f"p{n}", "", context={"prompt": PROMPT, "a": f"Good text {n}.", "b": f"Bad text {n}."})
        for n in range(4)
    ]
    with serve_study(recruited(protocol, *pairs, seed=2), tmp_path / "study") as server:
        reader = come(browser, server)
        reader.continue_from("instructions")
        first = []
        for number in range(1, 5):
            expect(reader.page.locator("[data-action=texts]")).to_contain_text(f"Text {number} of 4", timeout=20_000)
            first.append("a" if "Good" in reader.page.locator("article.sheet").first.inner_text() else "b")
            better = reader.page.locator("article.sheet", has_text="Good text")
            reader.press_keys("1" if "A" in str(better.get_attribute("aria-label")) else "2")  # the letter on the page
            reader.wait_until_saved()
            reader.press_keys("Control+Enter")
        reader.expect_last_page()
        leave(reader)
        done = sorted(work(export(server)), key=lambda each: int(str(each.meta["order"])))
    assert [each.answers["prefer"] for each in done] == ["a"] * 4
    assert [each.meta["shown_first"] for each in done] == first
    assert set(first) == {"a", "b"}


def test_sections_to_the_code(browser: Browser, tmp_path: Path) -> None:
    protocol = fc.protocol("sections")
    first = exercise(protocol, "foot-bath")
    kinds = [str(unit["section"]) for unit in first.units]
    with serve_study(recruited(protocol, first.to_document("a1")), tmp_path / "study") as server:
        reader = come(browser, server)
        reader.continue_from("instructions")
        advance_to(reader, server, protocol, "work")
        fields = reader.page.locator("[data-section] select")
        expect(fields).to_have_count(len(kinds), timeout=20_000)
        for index, kind in enumerate([*kinds[:-1], "unclear"]):
            fields.nth(index).select_option(kind)
        reader.answer_question("coherent", "false")
        reader.answer_question("reason", "The end cannot be told.")
        reader.wait_until_saved()
        reader.click_finish()
        reader.expect_last_page()
        leave(reader)
        study = export(server)
    (done,) = work(study)
    assert [unit.answers["section"] for unit in done.units] == [*kinds[:-1], "unclear"]
    assert done.answers == {"coherent": False, "reason": "The end cannot be told."}
    assert len(work(study, "training")) == 4


# --- other people's work -----------------------------------------------------------------------------------------


def rated() -> Study:
    """Explanations to be coded."""
    turing = fc.protocol("turing")
    said = {"ann": {"rating": 1, "why": "The hat is too odd."}, "bea": {"rating": 4, "change": "It says it twice."}}
    made = [
        Annotation(id=f"w/{who}", document="d1", annotator=who, protocol=turing.id, answers=answers)
        for who, answers in said.items()
    ]
    people = [Annotator(id=who, kind="human") for who in said]
    return recruited_to_judge("comments", [turing, make_document("d1", FERRY), *people, *made])


def recruited_to_judge(name: str, items: Any, **more: object) -> Study:
    judging = fc.protocol(name)
    others = [each.id for each in items if isinstance(each, Protocol)]
    settings = {"title": "Harbour news", "protocols": [judging.id, *others], "recruitment": CODES, **more}
    return Study.from_items([Settings.model_validate(settings), judging, *items])


def test_comments_are_coded(browser: Browser, tmp_path: Path) -> None:
    with serve_study(rated(), tmp_path / "study") as server:
        reader = come(browser, server)
        reader.continue_from("instructions")
        for number in (1, 2):
            expect(reader.page.locator("[data-action=texts]")).to_contain_text(f"{number} of 2", timeout=20_000)
            is_first = "odd" in reader.page.locator("[data-about]").inner_text()
            reader.answer_question("codes", "common-sense" if is_first else "repetition")
            if is_first:
                reader.answer_question("codes", "genre")
            reader.wait_until_saved()
            reader.press_keys("Control+Enter")
        reader.expect_last_page()
        leave(reader)
        study = export(server)
    coded = {each.about: each.answers["codes"] for each in work(study) if each.protocol == "comments@1"}
    assert {about: sorted(codes) for about, codes in coded.items()} == {  # type: ignore[arg-type]
        "w/ann": ["common-sense", "genre"],
        "w/bea": ["repetition"],
    }


def test_marks_are_audited(browser: Browser, tmp_path: Path) -> None:
    demo = fc.demo()
    made = next(each for each in demo.iter_annotations() if len(each.marks) > 2 and each.annotator == "reader-1")
    reader_1 = next(each for each in demo.iter_annotators() if each.id == made.annotator)
    items = [*demo.protocols.values(), demo.document(made.document), reader_1, made]
    marks = {mark.id for mark in made.marks}
    with serve_study(recruited_to_judge("audit", items), tmp_path / "study") as server:
        reader = come(browser, server)
        reader.continue_from("instructions")
        for number in range(1, len(marks) + 1):
            expect(reader.page.locator("[data-action=texts]")).to_contain_text(f"{number} of", timeout=20_000)
            reader.answer_question("verdict", "legitimate" if number > 1 else "not-legitimate")
            reader.wait_until_saved()
            reader.press_keys("Control+Enter")
        reader.expect_last_page()
        leave(reader)
        judged = [each for each in work(export(server)) if each.protocol == "audit@1"]
    assert {each.about for each in judged} == marks
    in_order = sorted(judged, key=lambda each: int(str(each.meta["order"])))
    assert [each.answers["verdict"] for each in in_order] == ["not-legitimate"] + ["legitimate"] * (len(marks) - 1)


# --- the second pass ---------------------------------------------------------------------------------------------


def first_pass(protocol: Protocol) -> Study:
    document = make_document("d1", FERRY, context={"prompt": PROMPT})
    quotes = {"ash": "carry", "bo": "its fiftieth year"}
    made = [
        Annotation(id=f"d1/{who}", document="d1", annotator=who, protocol=protocol.id, marks=(_marked(who, quote),))
        for who, quote in quotes.items()
    ]
    people = [Annotator(id=who, kind="human") for who in quotes]
    settings = Settings(title="Harbour news", protocols=(protocol.id,), annotators=2, round=1, skip=ONBOARDING_PHASES)
    return Study.from_items([settings, protocol, document, *people, *made])


def _marked(who: str, quote: str) -> Mark:
    at = FERRY.index(quote)
    answers = {"severity": 2, "explanation": f"{who} thinks so."}
    spans = (Span(at, at + len(quote)),)
    return Mark(id=f"m/{who}", spans=spans, quotes=(quote,), label="grammar-usage", answers=answers)


def test_the_second_pass(browser: Browser, tmp_path: Path) -> None:
    protocol = fc.protocol("scarecrow")
    with serve_study(first_pass(protocol), tmp_path / "study") as server:
        command = [str(Path(sys.executable).with_name("finecomb")), "links", str(server.folder), "--name", "ash"]
        said = subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout
        link = next(word for word in said.split() if "/join/" in word)
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        reader = BrowserAnnotator(page, server.address + link[link.index("/join/") :])
        reader.join()
        assert "bo" not in reader.page.locator("body").inner_text().split()
        (offer,) = page.locator("[data-list=offers] li").all()
        offer.get_by_role("button").first.click()
        reader.click_action("accept")
        page.locator("[data-list=marks] button", has_text="carry").first.click()
        reader.click_action("delete")
        reader.wait_until_saved()
        reader.click_finish()
        reader.wait_for("code")
        reader.expect_no_errors()
        study = export(server)
    both = {each.round: each for each in work(study) if each.annotator == "ash"}
    assert [mark.quotes for mark in both[0].marks] == [("carry",)]  # as it was
    assert [(mark.quotes, mark.made_from) for mark in both[1].marks] == [(("its fiftieth year",), ("m/bo",))]
    assert both[1].made_from == (both[0].id,)
