"""The annotator's whole way in a real browser, from the link to the code: passing, failing, leaving and returning."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import finecomb as fc
from finecomb.core.palette import looks
from finecomb.core.practice import Exercise
from finecomb.core.protocol_text import parse_protocol
from finecomb.core.records import Annotator
from tests.browser.accessibility import violations
from tests.browser.arrival import arrive, study_of
from tests.browser.served import Reader, Server, serving
from tests.browser.studies import BOX, REPORT, text, work

pytestmark = pytest.mark.long

WORKER = "5f0c2d7e9a1b"


def people(server: Server) -> list[Annotator]:
    return [each for each in server.study().iter_annotators() if each.kind == "human"]


def mark(reader: Reader, protocol: fc.Protocol, exercise: Exercise, most: int | None = None) -> None:
    """Mark what is known to be wrong, the label by its key."""
    keys = {label: look.key for label, look in looks(protocol).items()}
    for solution in exercise.solutions[:most]:
        reader.select(solution.quote, solution.nth)
        reader.page.locator("[data-text]").focus()
        reader.press(keys[solution.label or ""])
    reader.saved()


# --- rating ------------------------------------------------------------------------------------------------------


def test_turing_from_the_recruiting_link_to_the_code(browser: Browser, tmp_path: Path) -> None:
    documents = [
        text(f"d{n}", f"Text {n} is about a ferry and a lake.", meta={"model": ("human", "m")[n % 2], "domain": "news"})
        for n in range(8)
    ]
    codes = {"platform": "prolific", "completed": "C0MPLETE", "no_consent": "N0THANKS"}
    study = study_of(fc.protocol("turing"), *documents, recruitment=codes)
    with serving(study, tmp_path / "study") as server:
        query = f"?PROLIFIC_PID={WORKER}&STUDY_ID=s1&SESSION_ID=x1"
        unwilling = arrive(browser, server, query.replace(WORKER, "other"))
        unwilling.action("decline")
        unwilling.sees("page=declined")
        expect(unwilling.page.locator("[data-code]")).to_have_text("N0THANKS")
        reader = arrive(browser, server, query)
        page = reader.page
        assert violations(page) == []
        reader.action("start")
        reader.goes_on("instructions")
        for _ in range(100):  # what the arm of the experiment has to practise on; a page may be gone at any moment
            if page.locator("[data-page=task]").count():
                break
            page.evaluate("document.querySelector('.question-list input:enabled, [name^=guess-]:enabled')?.click()")
            page.evaluate("document.querySelector('[data-action=continue]:enabled')?.click()")
            page.wait_for_timeout(300)
        for number in range(1, 6):
            expect(page.locator("[data-action=texts]")).to_contain_text(f"Text {number} of 5", timeout=20_000)
            scale = page.locator("[data-question=rating]")
            reader.press("1")
            before = scale.bounding_box()
            reader.answer("why", "Nobody would make up the hat.")
            reader.press("Escape")
            page.locator("h1, .brand").first.click()
            reader.press("3")
            assert scale.bounding_box() == before  # what follows does not move it
            reader.answer("change", f"I would cut sentence {number}.")
            if number == 1:
                assert violations(page) == []
                scale.locator("label").first.click()
                expect(page.locator("[data-question=why] textarea")).to_have_value("Nobody would make up the hat.")
                scale.locator("label").nth(2).click()
            reader.saved()
            reader.press("Control+Enter")
        reader.sees_the_end()
        expect(page.locator("[data-code]")).to_have_text("C0MPLETE")
        assert "C0MPLETE" in (page.locator("[data-action=back]").get_attribute("href") or "")
        reader.checks_out()
        done = work(server)
        (person,) = people(server)
        assert WORKER not in str([*server.study().items()])
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
    with serving(study_of(protocol, text("r1", REPORT, data=BOX)), tmp_path / "study") as server:
        reader = arrive(browser, server, color_scheme="dark")
        page = reader.page
        reader.action("start")
        reader.sees("step=survey")
        assert violations(page) == []
        reader.answer("gender", "woman")
        reader.action("continue")  # leads to what is missing
        expect(page.locator("[data-question=watch].highlighted input").first).to_be_focused()
        page.reload()
        expect(page.locator("[data-question=gender] input[value=woman]")).to_be_checked(timeout=20_000)
        reader.answer("watch", "weekly")
        reader.answer("play", "never")
        page.context.set_offline(True)
        reader.action("continue")
        reader.sees("note=waiting")
        page.context.set_offline(False)  # kept, and sent by itself
        reader.goes_on("instructions")
        reader.goes_on("training")
        reader.wait_for_text()
        expect(page.locator("[data-practice]")).to_contain_text("Exercise 1 of 1")
        expect(page.locator("[data-action=texts]")).to_have_count(0)
        reader.select_by_keys("Cranes won")
        reader.press("w")
        mark(reader, protocol, practice, 2)
        reader.finish()
        reader.sees("kind=feedback")
        assert [page.locator(f"[data-graded={kind}] li").count() for kind in ("found", "missed", "extra")] == [2, 4, 1]
        assert violations(page) == []
        page.reload()  # the solution can still be looked at
        reader.sees("kind=feedback")
        reader.action("continue")
        reader.goes_on("part-1-1")
        reader.wait_for_text()
        mark(reader, protocol, known, 5)
        elsewhere = Reader(page.context.new_page(), server.address)  # left, and back in another tab
        page.close()
        elsewhere.wait_for_text()
        expect(elsewhere.page.locator("[data-list=marks] button")).to_have_count(5)
        for solution in known.solutions[5:]:
            elsewhere.select(solution.quote, solution.nth)
            elsewhere.label(str(solution.label))
        elsewhere.saved()
        elsewhere.finish()
        elsewhere.sees("passed=true")
        elsewhere.sees("solution")
        assert violations(elsewhere.page) == []
        elsewhere.action("continue")
        elsewhere.wait_for_text()
        assert elsewhere.text == REPORT
        elsewhere.select("27")
        elsewhere.label("number")
        elsewhere.finish()
        elsewhere.sees_the_end()
        passed_code = elsewhere.page.locator("[data-code]").inner_text()
        elsewhere.checks_out()

        second = arrive(browser, server)
        second.action("start")
        second.sees("step=survey")
        second.answer("watch", "never")
        second.answer("play", "never")
        for step in ("survey", "instructions", "training"):
            second.goes_on(step)
        second.wait_for_text()
        second.finish()
        second.finish()  # nothing wrong: said twice
        second.sees("kind=feedback")
        second.action("continue")
        second.goes_on("part-1-1")
        second.wait_for_text()
        mark(second, protocol, known, 1)
        second.finish()
        second.sees("passed=false")
        expect(second.page.locator("[data-after]")).to_contain_text("Your time is paid")
        second.action("continue")
        second.sees("code")
        assert second.page.locator("[data-code]").inner_text() != passed_code
        second.checks_out()
        annotators = people(server)
        (annotation,) = [each for each in work(server) if each.phase == "work"]
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
    with serving(study_of(protocol, text("d1", "It were good.")), tmp_path / "study") as server:
        reader = arrive(browser, server, viewport={"width": 360, "height": 740})
        page = reader.page
        reader.action("start")
        reader.goes_on("training")
        reader.wait_for_text()
        mark_by_keys(reader, "was")
        reader.sees("kind=feedback")
        reader.press("Enter")
        for attempt, option in ((1, "2"), (2, "1")):
            reader.goes_on(f"part-{attempt}-1")
            expect(page.locator("[data-question=answer]")).to_be_visible(timeout=20_000)
            reader.press(option)
            reader.saved()
            reader.press("Control+Enter")
            reader.goes_on(f"part-{attempt}-2")
            reader.wait_for_text()
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
            mark_by_keys(reader, "is")
            reader.sees(f"passed={'true' if option == '1' else 'false'}")
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
            assert violations(page) == []
            reader.action("exercises")
            page.locator("[data-item]").first.click()  # the question, with its answer
            expect(
                page.locator(f"[data-solution] tr[data-same={'true' if option == '1' else 'false'}]")
            ).to_be_visible()
            reader.press("Control+Enter")
        reader.wait_for_text()
        mark_by_keys(reader, "were")
        reader.sees_the_end()
        reader.checks_out()
        (person,) = people(server)
    assert person.qualification
    assert [attempt.score for attempt in person.qualification.attempts] == [6, 10]


def mark_by_keys(reader: Reader, quote: str) -> None:
    reader.select_by_keys(quote)
    reader.press("s")
    reader.saved()
    reader.press("Control+Enter")


def test_sections_are_verified_before_they_are_handed_in(browser: Browser, tmp_path: Path) -> None:
    protocol = fc.protocol("sections")
    assert protocol.training
    first = protocol.training.exercises[0]
    right = [str(unit["section"]) for unit in first.units]
    with serving(study_of(protocol, text("a1", first.text)), tmp_path / "study") as server:
        reader = arrive(browser, server)
        page = reader.page
        reader.action("start")
        reader.goes_on("instructions")
        reader.goes_on("training")
        fields = page.locator("[data-section] select")
        expect(fields).to_have_count(len(right), timeout=20_000)
        reader.finish()  # leads to the first that is missing
        expect(fields.first).to_be_focused()
        for index, kind in enumerate(["other", *right[1:]]):
            fields.nth(index).select_option(kind)
        reader.answer("coherent", "true")
        reader.finish()
        expect(page.locator("[data-verdict=differs]")).to_have_count(1)
        assert violations(page) == []
        fields.first.select_option(right[0])
        reader.finish()
        reader.sees("verified=true")
        reader.saved()
        reader.finish()
        expect(page.locator("[data-practice='2']")).to_be_visible(timeout=20_000)
        reader.checks_out()


LONG = "A sentence that goes on for a while. " * 8
_SHOWN = """() => {
  const [asked, foot] = [".highlighted", ".footer"].map((each) => document.querySelector(each).getBoundingClientRect());
  return asked.top >= 0 && asked.bottom <= foot.top;
}"""


def test_the_letters_of_a_pair_go_by_the_screen(browser: Browser, tmp_path: Path) -> None:
    pairs = [text(f"p{n}", "", context={"a": f"Left {n}. " + LONG, "b": f"Right {n}. " + LONG}) for n in range(6)]
    protocol = fc.protocol("preference")
    with serving(study_of(protocol, *pairs, skip=["consent", "instructions"]), tmp_path / "study") as server:
        reader = arrive(browser, server, viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
        page = reader.page
        reader.action("start")
        for number in range(1, 7):
            expect(page.locator("[data-action=texts]")).to_contain_text(f"{number} of 6", timeout=20_000)
            reader.finish()  # leads to what is missing, and nothing covers that
            page.wait_for_function(_SHOWN)
            assert page.locator(".pair-name").all_inner_texts() == ["A", "B"]
            words = page.locator("[data-question=prefer] label").all_inner_texts()
            assert [each.split()[-1] for each in words[:2]] == ["A", "B"]
            reader.press("1")  # whichever comes first
            reader.saved()
            reader.press("Control+Enter")
        reader.sees_the_end()
        reader.checks_out()
        done = work(server)
    assert [each.answers["prefer"] for each in done] == [each.meta["shown_first"] for each in done]
    assert {each.meta["shown_first"] for each in done} == {"a", "b"}


def test_many_texts_fit_a_phone_and_the_code_outlives_the_study(browser: Browser, tmp_path: Path) -> None:
    texts = [text(f"d{n}", "It were good.") for n in range(40)]
    protocol = parse_protocol(OWN, "own.yaml")
    skip = ["training", "qualification"]
    with serving(study_of(protocol, *texts, skip=skip), tmp_path / "study") as server:
        reader = arrive(browser, server, viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
        reader.join()
        assert reader.page.evaluate("innerWidth") == 360  # else the page was made smaller to fit
    few = study_of(protocol, texts[0], skip=skip)
    with serving(few, tmp_path / "few") as server:
        reader = arrive(browser, server)
        reader.join()
        mark_by_keys(reader, "were")
        reader.sees_the_end()
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
        reader.checks_out()
