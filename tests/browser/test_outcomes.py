"""What somebody is shown about their own work: after a test that was not passed, and after each text of a training."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

import finecomb as fc
from finecomb.core.palette import label_styles
from tests.browser.live_server import join_new_annotator, serve_study
from tests.browser.onboarding_session import advance_to, onboarding_study, open_join_page
from tests.browser.studies import FERRY, STORY, make_document
from tests.browser.studies import marking_study as plain_study

pytestmark = pytest.mark.long
LOST = {"exercise-3": "redundant", "exercise-6": "bad-math"}


def test_a_failed_test_names_the_kinds_to_read_again_and_explains_points(browser: Browser, tmp_path: Path) -> None:
    """It named numbers of exercises, which tell nobody what to read."""
    protocol = fc.protocol("scarecrow")
    titles = {label: look.title for label, look in label_styles(protocol).items()}
    with serve_study(onboarding_study(protocol, make_document("d1", FERRY)), tmp_path / "study") as server:
        reader = open_join_page(browser, server)
        page = reader.page
        reader.click_action("start")
        reader.wait_for("step=instructions")
        advance_to(reader, server, protocol, "result-1", lambda name, nth: name not in LOST and name != "task")
        reader.wait_for("passed=false")
        kinds = page.locator("[data-kind-again]")
        named = kinds.evaluate_all("all => all.map((each) => each.dataset.kindAgain)")
        assert set(LOST.values()) <= set(named)
        assert named == [label for label in titles if label in named]  # in the order of the protocol
        for label in LOST.values():
            expect(page.locator(f"[data-kind-again={label}]")).to_contain_text(titles[label])
        tasks = page.locator("[data-item]").evaluate_all("all => all.map((each) => each.dataset.item)")
        assert len(tasks) == len(set(tasks))  # an exercise with errors of several kinds was listed under each of them
        parts = page.locator(".score-parts .part-row")
        assert protocol.qualification
        expect(parts).to_have_count(len(protocol.qualification.parts))
        explained = page.locator(".score-parts .part-note").all_inner_texts()
        assert len(explained) == len(protocol.qualification.parts)
        assert all("points" in words for words in explained)
        page.locator("[data-kind-again=redundant] [data-action=define]").click()
        expect(page.locator("dialog")).to_contain_text(titles["redundant"])
        page.keyboard.press("Escape")
        page.locator("[data-kind-again=redundant] [data-item]").first.click()
        expect(page.locator("[data-solution]")).to_be_visible()
        for width, height in ((768, 1024), (360, 740)):  # where the list is below the text, the next step is in sight
            page.set_viewport_size({"width": width, "height": height})
            expect(page.locator("[data-action=continue]")).to_be_in_viewport(ratio=1)
        reader.expect_no_errors()


def marked_words(side: Locator) -> list[str]:
    """What is marked on one side, piece by piece, in the order of the text."""
    return [words.strip() for words in side.locator(".piece").all_inner_texts()]


def test_own_marks_stand_beside_the_solution_after_a_training_text(browser: Browser, tmp_path: Path) -> None:
    protocol = fc.protocol("snac")
    with serve_study(onboarding_study(protocol, make_document("s1", "\n".join(STORY))), tmp_path / "study") as server:
        reader = open_join_page(browser, server)
        page = reader.page
        reader.click_action("start")
        reader.continue_from("instructions")
        reader.continue_from("training")
        reader.wait_for_text()
        reader.click_finish()
        expect(page.locator("[data-text]")).to_contain_text("Conrad")
        reader.select_quote("Conrad")
        reader.click_label("char")
        reader.select_quote("turn it")
        reader.click_label("gram")
        reader.click_finish()
        expect(page.locator("[data-text]")).to_contain_text("On the last day")
        reader.wait_until_saved()
        reader.click_finish()
        reader.wait_for("kind=feedback")
        own, known = page.locator("[data-side=own]"), page.locator("[data-side=known]")
        assert marked_words(own) == ["Conrad", "turn it"]
        assert marked_words(known) == ["Conrad", "the flood", "does not charge anybody for the trip", "tie"]
        left, right = own.bounding_box(), known.bounding_box()
        assert left
        assert right
        assert left["y"] == right["y"]
        assert left["x"] + left["width"] <= right["x"]  # side by side
        page.set_viewport_size({"width": 360, "height": 740})
        above, below = own.bounding_box(), known.bounding_box()
        assert above
        assert below
        assert above["y"] + above["height"] <= below["y"]  # one below the other where there is no room
        reader.expect_no_errors()


def test_flags_of_snac_begin_as_the_names_in_the_palette_do(browser: Browser, tmp_path: Path) -> None:
    """Flags came from the paper's short names, which the palette does not show."""
    with serve_study(plain_study("snac", make_document("s1", "\n".join(STORY))), tmp_path / "study") as server:
        page = join_new_annotator(browser, server).page
        labels = page.locator("[data-label]")
        expect(labels).to_have_count(7)
        shown = [[line.strip() for line in label.inner_text().splitlines() if line.strip()] for label in labels.all()]
    for lines in shown:
        (flag,) = [line for line in lines if len(line) == 2]
        name = max(lines, key=len)
        initials = "".join(word[0] for word in name.upper().split())
        assert name.upper().startswith(flag) or initials.startswith(flag), (flag, name)
