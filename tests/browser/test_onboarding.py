"""The annotator's whole way in a real browser, from the link to the code: passing, failing, leaving and returning."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import finecomb as fc
from finecomb.core.palette import label_styles
from finecomb.core.practice import Exercise
from finecomb.core.protocol_yaml import parse_protocol
from finecomb.core.records import Annotator
from tests.browser.accessibility import axe_violations
from tests.browser.live_server import BrowserAnnotator, Server, serve_study
from tests.browser.onboarding_session import onboarding_study, open_join_page
from tests.browser.studies import BOX, REPORT, make_document, submitted_annotations

pytestmark = pytest.mark.long

WORKER = "5f0c2d7e9a1b"


def people(server: Server) -> list[Annotator]:
    return [each for each in server.read_study().iter_annotators() if each.kind == "human"]


def mark(reader: BrowserAnnotator, protocol: fc.Protocol, exercise: Exercise, most: int | None = None) -> None:
    """Mark what is known to be wrong, the label by its key."""
    keys = {label: look.key for label, look in label_styles(protocol).items()}
    for solution in exercise.solutions[:most]:
        reader.select_quote(solution.quote, solution.nth)
        reader.page.locator("[data-text]").focus()
        reader.press_keys(keys[solution.label or ""])
    reader.wait_until_saved()


# --- rating ------------------------------------------------------------------------------------------------------


def test_turing_from_the_recruiting_link_to_the_code(browser: Browser, tmp_path: Path) -> None:
    documents = [
        make_document(
            f"d{n}", f"Text {n} is about a ferry and a lake.", meta={"model": ("human", "m")[n % 2], "domain": "news"}
        )
        for n in range(8)
    ]
    codes = {"platform": "prolific", "completed": "C0MPLETE", "no_consent": "N0THANKS"}
    study = onboarding_study(fc.protocol("turing"), *documents, recruitment=codes)
    with serve_study(study, tmp_path / "study") as server:
        query = f"?PROLIFIC_PID={WORKER}&STUDY_ID=s1&SESSION_ID=x1"
        unwilling = open_join_page(browser, server, query.replace(WORKER, "other"))
        unwilling.click_action("decline")
        unwilling.wait_for("page=declined")
        expect(unwilling.page.locator("[data-code]")).to_have_text("N0THANKS")
        reader = open_join_page(browser, server, query)
        page = reader.page
        assert axe_violations(page) == []
        reader.click_action("start")
        reader.continue_from("instructions")
        for _ in range(100):  # what the arm of the experiment has to practise on; a page may be gone at any moment
            if page.locator("[data-page=task]").count():
                break
            page.evaluate("document.querySelector('.question-list input:enabled, [name^=guess-]:enabled')?.click()")
            page.evaluate("document.querySelector('[data-action=continue]:enabled')?.click()")
            page.wait_for_timeout(300)
        for number in range(1, 6):
            expect(page.locator("[data-action=texts]")).to_contain_text(f"Text {number} of 5", timeout=20_000)
            scale = page.locator("[data-question=rating]")
            reader.press_keys("1")
            before = scale.bounding_box()
            reader.answer_question("why", "Nobody would make up the hat.")
            reader.press_keys("Escape")
            page.locator("h1, .brand").first.click()
            reader.press_keys("3")
            assert scale.bounding_box() == before  # what follows does not move it
            reader.answer_question("change", f"I would cut sentence {number}.")
            if number == 1:
                assert axe_violations(page) == []
                scale.locator("label").first.click()
                expect(page.locator("[data-question=why] textarea")).to_have_value("Nobody would make up the hat.")
                scale.locator("label").nth(2).click()
            reader.wait_until_saved()
            reader.press_keys("Control+Enter")
        reader.expect_last_page()
        expect(page.locator("[data-code]")).to_have_text("C0MPLETE")
        assert "C0MPLETE" in (page.locator("[data-action=back]").get_attribute("href") or "")
        reader.expect_no_errors()
        done = submitted_annotations(server)
        (person,) = people(server)
        assert WORKER not in str([*server.read_study().items()])
    assert [each.answers["rating"] for each in done] == [3] * 5
    assert all("change" in each.answers and "why" not in each.answers for each in done)
    assert person.condition in {each.name for each in fc.protocol("turing").conditions}


# --- survey, training, test --------------------------------------------------------------------------------------


def test_accuracy_passed_and_not_passed(browser: Browser, tmp_path: Path) -> None:
    protocol = fc.protocol("accuracy")
    assert protocol.training
    assert protocol.qualification
    practice = protocol.training.exercises[0]
    known = protocol.qualification.parts[0].exercises[0]
    with serve_study(onboarding_study(protocol, make_document("r1", REPORT, data=BOX)), tmp_path / "study") as server:
        reader = open_join_page(browser, server, color_scheme="dark")
        page = reader.page
        reader.click_action("start")
        reader.wait_for("step=survey")
        assert axe_violations(page) == []
        reader.answer_question("gender", "woman")
        reader.click_action("continue")  # leads to what is missing
        expect(page.locator("[data-question=watch].highlighted input").first).to_be_focused()
        page.reload()
        expect(page.locator("[data-question=gender] input[value=woman]")).to_be_checked(timeout=20_000)
        reader.answer_question("watch", "weekly")
        reader.answer_question("play", "never")
        page.context.set_offline(True)
        reader.click_action("continue")
        reader.wait_for("note=waiting")
        page.context.set_offline(False)  # kept, and sent by itself
        reader.continue_from("instructions")
        reader.continue_from("training")
        reader.wait_for_text()
        expect(page.locator("[data-practice]")).to_contain_text("Exercise 1 of 1")
        expect(page.locator("[data-action=texts]")).to_have_count(0)
        reader.select_by_keys("Cranes won")
        reader.press_keys("w")
        mark(reader, protocol, practice, 2)
        reader.click_finish()
        reader.wait_for("kind=feedback")
        assert [page.locator(f"[data-graded={kind}] li").count() for kind in ("found", "missed", "extra")] == [2, 4, 1]
        assert axe_violations(page) == []
        page.reload()  # the solution can still be looked at
        reader.wait_for("kind=feedback")
        reader.click_action("continue")
        reader.continue_from("part-1-1")
        reader.wait_for_text()
        mark(reader, protocol, known, 5)
        elsewhere = BrowserAnnotator(page.context.new_page(), server.address)  # left, and back in another tab
        page.close()
        elsewhere.wait_for_text()
        expect(elsewhere.page.locator("[data-list=marks] button")).to_have_count(5)
        for solution in known.solutions[5:]:
            elsewhere.select_quote(solution.quote, solution.nth)
            elsewhere.click_label(str(solution.label))
        elsewhere.wait_until_saved()
        elsewhere.click_finish()
        elsewhere.wait_for("passed=true")
        elsewhere.wait_for("solution")
        assert axe_violations(elsewhere.page) == []
        elsewhere.click_action("continue")
        elsewhere.wait_for_text()
        assert elsewhere.text == REPORT
        elsewhere.select_quote("27")
        elsewhere.click_label("number")
        elsewhere.click_finish()
        elsewhere.expect_last_page()
        passed_code = elsewhere.page.locator("[data-code]").inner_text()
        elsewhere.expect_no_errors()

        second = open_join_page(browser, server)
        second.click_action("start")
        second.wait_for("step=survey")
        second.answer_question("watch", "never")
        second.answer_question("play", "never")
        for step in ("survey", "instructions", "training"):
            second.continue_from(step)
        second.wait_for_text()
        second.click_finish()
        second.click_finish()  # nothing wrong: said twice
        second.wait_for("kind=feedback")
        second.click_action("continue")
        second.continue_from("part-1-1")
        second.wait_for_text()
        mark(second, protocol, known, 1)
        second.click_finish()
        second.wait_for("passed=false")
        expect(second.page.locator("[data-after]")).to_contain_text("You will be paid for your time")
        second.click_action("continue")
        second.wait_for("code")
        assert second.page.locator("[data-code]").inner_text() != passed_code
        second.expect_no_errors()
        annotators = people(server)
        (annotation,) = [each for each in submitted_annotations(server) if each.phase == "work"]
    by_result = {each.qualification.passed: each for each in annotators if each.qualification}
    assert set(by_result) == {True, False}
    assert by_result[True].survey == {"gender": "woman", "watch": "weekly", "play": "never"}
    assert annotation.annotator == by_result[True].id


OWN = """
name: own
version: "1"
title: Our own test
summary: A question, an exercise, and a second try.
labels:
  - {name: slip, key: s}
training:
  intro: Try one first.
  exercises:
    - name: try
      ask: Mark the slip.
      text: We was here.
      label: slip
      solutions: [{quote: was, label: slip, why: We were.}]
qualification:
  pass_at: 10
  attempts: 2
  parts:
    - name: choices
      title: A question
      points: 4
      choices:
        - name: which
          text: She go home.
          quote: go
          ask: What is it?
          options: [slip, nothing]
          answer: slip
          feedback: She goes.
    - name: exercises
      title: An exercise
      points: 6
      exercises:
        - {name: find, text: They is late., solutions: [{quote: is, label: slip, why: They are.}]}
"""


def test_a_test_is_tried_again_by_keyboard_on_a_phone_sized_page(browser: Browser, tmp_path: Path) -> None:
    protocol = parse_protocol(OWN, "own.yaml")
    with serve_study(onboarding_study(protocol, make_document("d1", "It were good.")), tmp_path / "study") as server:
        reader = open_join_page(browser, server, viewport={"width": 360, "height": 740})
        page = reader.page
        reader.click_action("start")
        reader.continue_from("training")
        reader.wait_for_text()
        mark_by_keys(reader, "was")
        reader.wait_for("kind=feedback")
        reader.press_keys("Enter")
        for attempt, option in ((1, "2"), (2, "1")):
            reader.continue_from(f"part-{attempt}-1")
            expect(page.locator("[data-question=answer]")).to_be_visible(timeout=20_000)
            reader.press_keys(option)
            reader.wait_until_saved()
            reader.press_keys("Control+Enter")
            reader.continue_from(f"part-{attempt}-2")
            reader.wait_for_text()
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
            mark_by_keys(reader, "is")
            reader.wait_for(f"passed={'true' if option == '1' else 'false'}")
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
            assert axe_violations(page) == []
            reader.click_action("exercises")
            page.locator("[data-item]").first.click()  # the question, with its answer
            expect(
                page.locator(f"[data-solution] tr[data-same={'true' if option == '1' else 'false'}]")
            ).to_be_visible()
            reader.press_keys("Control+Enter")
        reader.wait_for_text()
        mark_by_keys(reader, "were")
        reader.expect_last_page()
        reader.expect_no_errors()
        (person,) = people(server)
    assert person.qualification
    assert [attempt.score for attempt in person.qualification.attempts] == [6, 10]


def mark_by_keys(reader: BrowserAnnotator, quote: str) -> None:
    reader.select_by_keys(quote)
    reader.press_keys("s")
    reader.wait_until_saved()
    reader.press_keys("Control+Enter")


def test_sections_are_verified_before_they_are_handed_in(browser: Browser, tmp_path: Path) -> None:
    protocol = fc.protocol("sections")
    assert protocol.training
    first = protocol.training.exercises[0]
    right = [str(unit["section"]) for unit in first.units]
    with serve_study(onboarding_study(protocol, make_document("a1", first.text)), tmp_path / "study") as server:
        reader = open_join_page(browser, server)
        page = reader.page
        reader.click_action("start")
        reader.continue_from("instructions")
        reader.continue_from("training")
        fields = page.locator("[data-section] select")
        expect(fields).to_have_count(len(right), timeout=20_000)
        reader.click_finish()  # leads to the first that is missing
        expect(fields.first).to_be_focused()
        for index, kind in enumerate(["other", *right[1:]]):
            fields.nth(index).select_option(kind)
        reader.answer_question("coherent", "true")
        reader.click_finish()
        expect(page.locator("[data-verdict=differs]")).to_have_count(1)
        assert axe_violations(page) == []
        fields.first.select_option(right[0])
        reader.click_finish()
        reader.wait_for("verified=true")
        reader.wait_until_saved()
        reader.click_finish()
        expect(page.locator("[data-practice='2']")).to_be_visible(timeout=20_000)
        reader.expect_no_errors()


LONG = "A sentence that goes on for a while. " * 8
_SHOWN = """() => {
  const [asked, foot] = [".highlighted", ".footer"].map((each) => document.querySelector(each).getBoundingClientRect());
  return asked.top >= 0 && asked.bottom <= foot.top;
}"""


def test_the_letters_of_a_pair_go_by_the_screen(browser: Browser, tmp_path: Path) -> None:
    pairs = [
        make_document(f"p{n}", "", context={"a": f"Left {n}. " + LONG, "b": f"Right {n}. " + LONG}) for n in range(6)
    ]
    protocol = fc.protocol("preference")
    with serve_study(
        onboarding_study(protocol, *pairs, skip=["consent", "instructions"]), tmp_path / "study"
    ) as server:
        reader = open_join_page(browser, server, viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
        page = reader.page
        reader.click_action("start")
        for number in range(1, 7):
            expect(page.locator("[data-action=texts]")).to_contain_text(f"{number} of 6", timeout=20_000)
            reader.click_finish()  # leads to what is missing, and nothing covers that
            page.wait_for_function(_SHOWN)
            assert page.locator(".pair-name").all_inner_texts() == ["A", "B"]
            words = page.locator("[data-question=prefer] label").all_inner_texts()
            assert [each.split()[-1] for each in words[:2]] == ["A", "B"]
            reader.press_keys("1")  # whichever comes first
            reader.wait_until_saved()
            reader.press_keys("Control+Enter")
        reader.expect_last_page()
        reader.expect_no_errors()
        done = submitted_annotations(server)
    assert [each.answers["prefer"] for each in done] == [each.meta["shown_first"] for each in done]
    assert {each.meta["shown_first"] for each in done} == {"a", "b"}


def test_many_texts_fit_a_phone_and_the_code_outlives_the_study(browser: Browser, tmp_path: Path) -> None:
    texts = [make_document(f"d{n}", "It were good.") for n in range(40)]
    protocol = parse_protocol(OWN, "own.yaml")
    skip = ["training", "qualification"]
    with serve_study(onboarding_study(protocol, *texts, skip=skip), tmp_path / "study") as server:
        reader = open_join_page(browser, server, viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
        reader.join()
        assert reader.page.evaluate("innerWidth") == 360  # else the page was made smaller to fit
    few = onboarding_study(protocol, texts[0], skip=skip)
    with serve_study(few, tmp_path / "few") as server:
        reader = open_join_page(browser, server)
        reader.join()
        mark_by_keys(reader, "were")
        reader.expect_last_page()
        code = reader.page.locator("[data-code]").inner_text()
        researcher = browser.new_context().new_page()
        researcher.goto(server.admin_link)
        researcher.get_by_role("button", name="Sign in").click()
        close = """async () => {
          const { csrf } = await (await fetch("/api/admin/session")).json();
          const headers = { "X-Finecomb-Token": csrf, "content-type": "application/json" };
          const body = JSON.stringify({ state: "closed" });
          return (await fetch("/api/admin/state", { method: "PUT", headers, body })).status;
        }"""
        assert researcher.evaluate(close) < 300
        reader.page.reload()
        expect(reader.page.locator("[data-code]")).to_have_text(code, timeout=20_000)
        reader.expect_no_errors()
