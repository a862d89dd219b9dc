"""From the link to the finish in a real browser: what is exported equals what was marked, character for character."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import finecomb as fc
from finecomb.core.protocol_yaml import parse_protocol
from finecomb.core.records import ONBOARDING_PHASES, Annotation, Annotator, Mark, Offer, Settings
from finecomb.core.span import Span
from finecomb.core.study import Study
from tests.browser.live_server import BrowserAnnotator, join_new_annotator, serve_study
from tests.browser.studies import (
    BOX,
    CHINESE,
    EMOJI,
    FERRY,
    HEBREW,
    MARKUP,
    PROMPT,
    REPORT,
    SECRET,
    STORY,
    THAI,
    assert_quotes_match,
    describe_marks,
    make_document,
    marking_study,
    submitted_annotations,
)


def test_scarecrow_by_mouse(browser: Browser, tmp_path: Path) -> None:
    document = make_document("d1", FERRY, context={"prompt": PROMPT})
    with serve_study(marking_study("scarecrow", document), tmp_path / "study") as server:
        reader = join_new_annotator(browser, server)
        assert reader.text == FERRY
        reader.select_quote("its fiftieth year")
        reader.click_label("self-contradiction")
        reader.answer_question("severity", "3")
        reader.answer_question("explanation", "1911 is more than fifty years ago.")
        reader.pick_antecedent("has run since 1911")
        reader.select_quote("will mark its fiftieth")
        reader.press_keys("n")
        reader.answer_question("severity", "1")
        reader.answer_question("explanation", "Who counts?")
        reader.select_quote("carry")
        reader.press_keys("g")
        reader.answer_question("severity", "2")
        reader.answer_question("explanation", "carries")
        assert reader.text == FERRY  # overlapping marks do not double a word
        reader.wait_until_saved()
        reader.click_finish()
        reader.expect_last_page()
        reader.expect_no_errors()
        (annotation,) = submitted_annotations(server)
    assert describe_marks(annotation) == [
        ("grammar-usage", ("carry",), [[81, 86]]),
        ("needs-google", ("will mark its fiftieth",), [[37, 59]]),
        ("self-contradiction", ("its fiftieth year",), [[47, 64]]),
    ]
    contradiction = next(mark for mark in annotation.marks if mark.label == "self-contradiction")
    assert contradiction.answers == {"severity": 3, "explanation": "1911 is more than fifty years ago."}
    assert contradiction.antecedents is not None
    assert contradiction.antecedents.quotes == ("has run since 1911",)
    assert annotation.active_seconds is not None
    assert annotation.seconds is None or annotation.active_seconds <= annotation.seconds
    assert_quotes_match(annotation, document)


@pytest.mark.long
def test_scarecrow_by_keyboard_only(browser: Browser, tmp_path: Path) -> None:
    with serve_study(
        marking_study("scarecrow", make_document("d1", FERRY, context={"prompt": PROMPT})), tmp_path / "study"
    ) as server:
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        reader = BrowserAnnotator(page, server.open_link)
        expect(page.locator("[data-action=start]")).to_be_visible()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        reader.wait_for_text()
        reader.select_by_keys("its fiftieth year")
        reader.press_keys("s", "3", "Enter")
        page.keyboard.type("Too old.")
        reader.press_keys("Escape", "a")
        reader.select_by_keys("since 1911")
        reader.press_keys("Enter")
        reader.wait_until_saved()
        reader.select_by_keys("carry")
        reader.press_keys("g", "2", "Enter")
        page.keyboard.type("carries")
        reader.press_keys("Escape")
        reader.press_keys("Control+z", "Control+Shift+z")
        reader.wait_until_saved()
        reader.press_keys("Control+Enter")
        reader.expect_last_page()
        reader.expect_no_errors()
        (annotation,) = submitted_annotations(server)
    assert describe_marks(annotation) == [
        ("grammar-usage", ("carry",), [[81, 86]]),
        ("self-contradiction", ("its fiftieth year",), [[47, 64]]),
    ]
    assert [mark.answers for mark in sorted(annotation.marks, key=lambda mark: mark.spans)] == [
        {"severity": 3, "explanation": "Too old."},
        {"severity": 2, "explanation": "carries"},
    ]


@pytest.mark.long
def test_accuracy_with_data_hints_and_corrections(browser: Browser, tmp_path: Path) -> None:
    document = make_document("r1", REPORT, data=BOX)
    with serve_study(marking_study("accuracy", document), tmp_path / "study") as server:
        reader = join_new_annotator(browser, server)
        reader.select_quote("Saturday")
        reader.click_label("word")
        hint = reader.page.locator("[data-hint=weekday-is-name]")
        expect(hint).to_contain_text("The guide calls a weekday a Name.")
        hint.get_by_role("button", name="Change to Name").click()
        reader.answer_question("correction", "Friday")
        reader.select_quote("104-98")
        reader.click_label("number")
        reader.page.locator("[data-hint=two-numbers] button").first.click()
        reader.select_quote("27")
        reader.click_label("number")
        reader.page.get_by_role("tab", name="Players").click()
        reader.page.get_by_role("cell", name="24", exact=True).click()  # a value from the data becomes the correction
        expect(reader.page.locator("[data-question=correction] textarea")).to_have_value("24")
        reader.wait_until_saved()
        reader.click_finish()
        reader.expect_last_page()
        reader.expect_no_errors()
        (annotation,) = submitted_annotations(server)
    assert describe_marks(annotation) == [
        ("name", ("Saturday",), [[37, 45]]),
        ("number", ("104",), [[27, 30]]),
        ("number", ("27",), [[63, 65]]),
        ("number", ("98",), [[31, 33]]),
    ]
    assert {mark.quotes: mark.answers.get("correction") for mark in annotation.marks} == {
        ("Saturday",): "Friday",
        ("104",): None,
        ("98",): None,
        ("27",): "24",
    }
    assert_quotes_match(annotation, document)


@pytest.mark.long
def test_a_prompt_is_read_and_not_marked(browser: Browser, tmp_path: Path) -> None:
    with serve_study(
        marking_study("scarecrow", make_document("d1", FERRY, context={"prompt": PROMPT})), tmp_path / "study"
    ) as server:
        reader = join_new_annotator(browser, server)
        words = PROMPT.split()[0]
        reader.select_quote(words, part="prompt")
        reader.click_label("grammar-usage")
        expect(reader.page.locator("[data-list=marks] button")).to_have_count(0)
        reader.select_quote("carry")
        reader.click_label("redundant")
        reader.pick_antecedent(words, part="prompt")  # what was said before may lie there
        reader.wait_until_saved()
        expect(reader.page.locator("[data-list=marks] button")).to_have_count(1)
        reader.expect_no_errors()


@pytest.mark.long
def test_a_mark_that_gets_another_label_becomes_as_wide_as_that_one(browser: Browser, tmp_path: Path) -> None:
    words = "\n".join(STORY)
    with serve_study(marking_study("snac", make_document("s1", words)), tmp_path / "study") as server:
        reader = join_new_annotator(browser, server)
        reader.select_quote(words.split()[1])
        reader.click_label("char")
        reader.wait_until_saved()
        reader.click_label("scene")
        reader.wait_until_saved()  # and not refused: it is a whole sentence now
        reader.expect_no_errors()
        task = reader.page.locator("[data-task]").get_attribute("data-task")
        fetched = "fetch(`/api/tasks/${task}`).then((answer) => answer.json())"
        relabelled = f"async (task) => (await {fetched}).marks[0].body.label === 'scene'"
        reader.page.wait_for_function(relabelled, arg=task, timeout=20_000)
        received = reader.page.evaluate(f"(task) => {fetched}", task)
    (mark,) = received["marks"]
    start, end = mark["body"]["spans"][0]
    assert mark["body"]["label"] == "scene"
    assert [start, end] in received["sentences"]["text"]


@pytest.mark.long
def test_snac_part_by_part(browser: Browser, tmp_path: Path) -> None:
    words = "\n".join(STORY)
    edges = [(words.index(part), words.index(part) + len(part)) for part in STORY]
    document = make_document("s1", words, segments=[{"start": start, "end": end} for start, end in edges])
    with serve_study(marking_study("snac", document), tmp_path / "study") as server:
        reader = join_new_annotator(browser, server)
        assert reader.text.strip() == STORY[0]
        assert STORY[2] not in reader.page.content()  # later parts are not in the page at all
        task = reader.page.locator("[data-task]").get_attribute("data-task")
        received = reader.page.evaluate("(task) => fetch(`/api/tasks/${task}`).then((answer) => answer.text())", task)
        assert "Elspeth" not in received  # nor does the server send them
        reader.click_finish()
        expect(reader.page.locator("[data-text]")).to_contain_text("Her husband Jonas")
        reader.select_quote("Her husband Jonas")
        reader.click_label("incon")
        reader.pick_antecedent("never married")
        reader.wait_until_saved()
        reader.page.reload()
        reader.wait_for_text()
        expect(reader.page.locator("[data-text]")).to_contain_text("Her husband Jonas")
        reader.click_finish()
        expect(reader.page.locator("[data-text]")).to_contain_text("Elspeth")
        reader.select_quote("Elspeth")
        reader.click_label("char")
        reader.click_finish()
        reader.expect_last_page()
        reader.expect_no_errors()
        (annotation,) = submitted_annotations(server)
    assert describe_marks(annotation) == [
        ("char", ("Elspeth",), [[words.index("Elspeth"), words.index("Elspeth") + 7]]),
        ("incon", ("Her husband Jonas",), [[47, 64]]),
    ]
    inconsistent = next(mark for mark in annotation.marks if mark.label == "incon")
    assert inconsistent.antecedents is not None
    assert [span.to_wire() for span in inconsistent.antecedents.spans] == [[6, 19]]
    assert [(unit.start, unit.end) for unit in annotation.units] == edges  # also the part without a mark was judged


@pytest.mark.long
def test_mqm(browser: Browser, tmp_path: Path) -> None:
    document = make_document(
        "m1", "Das Schiff fahren um acht Uhr ab.", context={"source": "The ship leaves at nine o'clock."}
    )
    protocol = fc.protocol("mqm")
    grammar, number = "fluency/grammar", "accuracy/mistranslation"
    assert {grammar, number} <= {label.name for label in protocol.labels}
    with serve_study(marking_study(protocol, document), tmp_path / "study") as server:
        reader = join_new_annotator(browser, server)
        reader.select_quote("fahren")
        reader.click_label(grammar)
        severities = next(q for q in protocol.questions_for_label(grammar) if q.name == "severity").values
        reader.answer_question("severity", str(severities[0]))
        reader.select_quote("acht")
        reader.click_label(number)
        reader.answer_question("severity", str(severities[1]))
        reader.wait_until_saved()
        reader.click_finish()
        reader.expect_last_page()
        reader.expect_no_errors()
        (annotation,) = submitted_annotations(server)
    assert describe_marks(annotation) == [(number, ("acht",), [[21, 25]]), (grammar, ("fahren",), [[11, 17]])]
    assert {mark.answers["severity"] for mark in annotation.marks} == set(severities[:2])


OWN = """
name: own
version: "1"
title: Our own questions
summary: Everything a protocol can ask for.
labels:
  - {name: phrase, key: p, snap: character}
  - {name: claim, key: c, snap: sentence}
  - {name: gap, key: g}
questions:
  - {name: sure, ask: Are you sure?, scale: yes-no}
document_questions:
  - {name: quality, ask: How good is it?, scale: number, low: 0, high: 10}
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "words", [MARKUP, EMOJI, HEBREW, THAI, CHINESE], ids="markup emoji hebrew thai chinese".split()
)
def test_any_text_stays_as_it_is(browser: Browser, tmp_path: Path, words: str) -> None:
    """A protocol of one's own, characters that other tools lose, and marks over all of them."""
    document = make_document("d1", words)
    with serve_study(marking_study(parse_protocol(OWN, "own.yaml"), document), tmp_path / "study") as server:
        reader = join_new_annotator(browser, server)
        assert reader.text == words
        reader.page.locator("[data-text]").focus()
        onward = "ArrowLeft" if words is HEBREW else "ArrowRight"  # arrows go where they point
        reader.press_keys("Control+Home", *[f"Shift+{onward}"] * 5, "p")
        reader.answer_question("sure", "true")
        reader.page.locator("[data-text]").focus()
        reader.press_keys("Control+Home", *[onward] * 3, *[f"Shift+{onward}"] * 6, "p")
        reader.answer_question("sure", "false")
        reader.page.locator("[data-text]").focus()
        reader.press_keys("Control+Home", "Control+Shift+End", "c")
        reader.answer_question("sure", "true")
        assert reader.text == words
        reader.answer_question("quality", "7")
        reader.wait_until_saved()
        reader.page.reload()
        reader.wait_for_text()
        assert reader.text == words
        reader.click_finish()
        reader.expect_last_page()
        reader.expect_no_errors()
        (annotation,) = submitted_annotations(server)
    assert_quotes_match(annotation, document)
    assert [mark.label for mark in annotation.marks].count("phrase") == 2
    (claim,) = [mark for mark in annotation.marks if mark.label == "claim"]
    assert "".join(claim.quotes).strip() == words.strip()
    assert annotation.answers["quality"] == 7


@pytest.mark.long
def test_discontinuous_marks_gaps_resizing_and_deleting(browser: Browser, tmp_path: Path) -> None:
    words = "The bridge was built in 1932 and opened in 1929."
    with serve_study(
        marking_study(parse_protocol(OWN, "own.yaml"), make_document("d1", words)), tmp_path / "study"
    ) as server:
        reader = join_new_annotator(browser, server)
        reader.select_by_keys("bridge")
        reader.press_keys("p")
        reader.answer_question("sure", "true")
        reader.page.locator("[data-text]").focus()
        reader.press_keys("+")
        reader.select_by_keys("opened")
        reader.press_keys("Enter")
        reader.move_caret(words.index(" and"))
        reader.press_keys("^", "g")
        reader.answer_question("sure", "true")
        reader.select_by_keys("built")
        reader.press_keys("p", "]", "]", "[")  # by characters, as the label says, and never ending in a space
        reader.answer_question("sure", "true")
        reader.select_by_keys("The")
        reader.press_keys("p", "Delete")
        reader.press_keys("Control+z")
        reader.press_keys("Control+Shift+z")
        reader.answer_question("quality", "1")
        reader.wait_until_saved()
        reader.click_finish()
        reader.expect_last_page()
        reader.expect_no_errors()
        (annotation,) = submitted_annotations(server)
    assert describe_marks(annotation) == [
        ("gap", ("",), [[28, 28]]),
        ("phrase", ("bridge", "opened"), [[4, 10], [33, 39]]),
        ("phrase", ("built i",), [[15, 22]]),
    ]


@pytest.mark.long
def test_machine_marks_are_accepted_edited_or_rejected(browser: Browser, tmp_path: Path) -> None:
    document = make_document("r1", REPORT)
    found = [
        Mark(id=f"guess-{at}", spans=(Span(at, at + len(words)),), quotes=(words,), label=label)
        for at, words, label in ((27, "104", "number"), (37, "Saturday", "word"), (63, "27", "number"))
    ]
    machine = Annotator(id=SECRET, kind="detector")
    guesses = Annotation(id="g", document="r1", annotator=SECRET, protocol="accuracy@2", marks=tuple(found))
    settings = Settings(
        protocols=("accuracy@2",), annotators=1, offer=Offer(annotator=SECRET, blind=0), skip=ONBOARDING_PHASES
    )
    study = Study.from_items([settings, fc.protocol("accuracy"), document, machine, guesses])
    with serve_study(study, tmp_path / "study") as server:
        reader = join_new_annotator(browser, server)
        offers = reader.page.locator("[data-list=offers] li")
        expect(offers).to_have_count(3)
        for words, decision in (("104", "reject"), ("27", "accept"), ("Saturday", "edit")):
            offers.filter(has_text=words).get_by_role("button").first.click()
            reader.click_action(decision)
        reader.page.locator("[data-hint=weekday-is-name]").get_by_role("button", name="Change to Name").click()
        expect(offers).to_have_count(0)
        reader.wait_until_saved()
        reader.click_finish()
        reader.expect_last_page()
        reader.expect_no_errors()
        (annotation,) = [each for each in submitted_annotations(server) if each.annotator != SECRET]
    assert {mark.quotes[0]: (mark.label, mark.made_from) for mark in annotation.marks} == {
        "27": ("number", ("guess-63",)),
        "Saturday": ("name", ("guess-37",)),
    }
    assert "guess-27" in str(annotation.meta)  # the rejection is kept, too


@pytest.mark.long
def test_no_errors_and_cannot_judge_are_said_explicitly(browser: Browser, tmp_path: Path) -> None:
    documents = [make_document("d1", "All is well."), make_document("d2", "Nothing can be said here.")]
    with serve_study(marking_study("accuracy", *documents), tmp_path / "study") as server:
        reader = join_new_annotator(browser, server)
        first = reader.text
        reader.click_finish()
        expect(reader.page.get_by_role("alertdialog")).to_be_visible()
        reader.click_finish()
        expect(reader.page.locator("[data-text]")).not_to_contain_text(first, timeout=20_000)
        reader.click_action("cannot")
        reader.page.locator("#because").fill("No data were shown.")
        reader.click_action("cannot-save")
        reader.click_finish()
        reader.expect_last_page()
        reader.expect_no_errors()
        annotations = {each.document: each for each in submitted_annotations(server)}
    empty, unjudged = sorted(annotations.values(), key=lambda each: "cannot_judge" in each.answers)
    assert empty.marks == ()
    assert "cannot_judge" not in empty.answers
    assert unjudged.answers["cannot_judge"] == "No data were shown."
