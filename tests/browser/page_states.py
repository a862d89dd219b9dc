"""Every page in every state that people meet, and how each is reached: one list for the contact sheet and for axe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

import finecomb as fc
from finecomb.annotators.detectors.boxscore.game_record import Season, add_neighbouring_games
from finecomb.annotators.simulated.demo_study import build_demo_study
from finecomb.core.records import ONBOARDING_PHASES, Document, ModelSettings, Settings
from finecomb.core.study import Study
from finecomb.reporting.marked_text import document_page_html, study_html
from finecomb.server.annotators.schema import ErrorResponse
from finecomb.server.error_responses import MESSAGE_BY_CODE, STATUS_BY_CODE
from tests.browser import onboarding_session
from tests.browser.live_server import BrowserAnnotator, Server
from tests.browser.researcher_studies import (
    make_design_study,
    make_judge_study,
    make_model_study,
    record_arrivals,
    run_models,
)
from tests.browser.studies import BOX, FERRY, PROMPT, REPORT, STORY, make_document, make_game_record
from tests.onboarding_client import KnowsSolution, knows_everything, knows_nothing

LONG_TEXT = " ".join([FERRY] * 6)
Visit = Callable[[Page, Server], None]


@dataclass(frozen=True)
class PageState:
    """A page of a study that is served: which study, what to do before one looks, and whether one has to sign in."""

    name: str
    study: Callable[[], Study]
    visit: Visit
    is_for_researchers: bool = False


@dataclass(frozen=True)
class FileState:
    """A page that is a file: `make` writes it into a folder and says where it is."""

    name: str
    make: Callable[[Path], Path]


# --- studies -----------------------------------------------------------------------------------------------------


def scarecrow_study() -> Study:
    return _make_study("scarecrow", *_make_documents("d", LONG_TEXT, context={"prompt": PROMPT}))


def accuracy_study() -> Study:
    return _make_study("accuracy", *_make_documents("r", REPORT, data=BOX))


def box_score_study() -> Study:
    """Game reports with their box scores and the games around them."""
    games = [
        make_game_record("2025-11-14"),
        make_game_record("2025-11-18", ("Eastgate", "Owls"), 2),
        make_game_record("2025-11-25"),
    ]
    season = Season.from_records(games)
    words = f"The Gulls (4-1) beat the Northfield Millers (2-3). {REPORT}"
    return _make_study(
        "accuracy",
        *(make_document(f"g{at}", words, data=add_neighbouring_games(game, season)) for at, game in enumerate(games)),
    )


def snac_study() -> Study:
    return _make_study("snac", *_make_documents("s", "\n".join(STORY)))


def german_study() -> Study:
    """Texts to mark on German pages; the protocol's own words stay as they are."""
    protocol = fc.protocol("scarecrow").model_copy(update={"name": "vogelscheuche", "language": "de"})
    settings = Settings(title="Hafennachrichten", protocols=(protocol.id,), annotators=99, skip=ONBOARDING_PHASES)
    return Study.from_items([settings, protocol, *_make_documents("d", LONG_TEXT, context={"prompt": PROMPT})])


def german_onboarding_study() -> Study:
    """Everything that comes before the work, on German pages."""
    protocol = fc.protocol("accuracy").model_copy(update={"name": "genauigkeit", "language": "de"})
    return onboarding_session.onboarding_study(protocol, make_document("r1", REPORT, data=BOX), annotators=99)


def likert_study() -> Study:
    return _make_study("likert", *_make_documents("l", FERRY, context={"prompt": PROMPT}))


def preference_study() -> Study:
    pair = {"prompt": PROMPT, "a": LONG_TEXT, "b": LONG_TEXT.upper()}
    return _make_study("preference", *_make_documents("p", "", context=pair))


def sections_study() -> Study:
    return _make_study("sections", *_make_documents("a", LONG_TEXT))


def accuracy_onboarding_study() -> Study:
    """Everything that comes before the work, for as many people as come."""
    protocol = fc.protocol("accuracy")
    return onboarding_session.onboarding_study(protocol, make_document("r1", REPORT, data=BOX), annotators=99)


def scarecrow_onboarding_study() -> Study:
    """Scarecrow's lessons, exercises and questions."""
    return onboarding_session.onboarding_study(
        fc.protocol("scarecrow"), make_document("d1", FERRY, context={"prompt": PROMPT}), annotators=99
    )


def demo_study_with_model() -> Study:
    """The demo with simulated annotators, and a model that may be asked."""
    study = Study.from_items(build_demo_study(5, 0))
    models = {"judge-4": ModelSettings(model="big", base_url="http://127.0.0.1:9/v1", price=(1, 2), budget=2.0)}
    settings = study.settings.model_copy(update={"models": models})
    return Study.from_items([settings, *(item for item in study.items() if not isinstance(item, Settings))])


def empty_study() -> Study:
    """Nobody has started yet."""
    return _make_study("scarecrow", make_document("d1", FERRY))


def _make_study(protocol: str, *documents: Document) -> Study:
    """A study with room for every reader of the sheet."""
    chosen = fc.protocol(protocol)
    settings = Settings(title="Harbour news", protocols=(chosen.id,), annotators=99, skip=ONBOARDING_PHASES)
    return Study.from_items([settings, chosen, *documents])


def _make_documents(prefix: str, words: str, **more: Any) -> list[Document]:
    return [make_document(f"{prefix}{number}", words, **more) for number in range(3)]


# --- annotators --------------------------------------------------------------------------------------------------


def _join_study(page: Page, server: Server) -> BrowserAnnotator:
    reader = BrowserAnnotator(page, server.open_link)
    reader.join()
    return reader


def _open_welcome(page: Page, server: Server) -> None:
    page.goto(server.open_link)
    expect(page.locator("[data-action=start]")).to_be_visible(timeout=20_000)


def _open_unmarked_text(page: Page, server: Server) -> None:
    _join_study(page, server)


def _is_phone(page: Page) -> bool:
    return bool(page.evaluate("document.body.classList.contains('phone')"))


def _select_quote(reader: BrowserAnnotator, quote: str) -> None:
    """As a mouse does, or a finger where the page is a phone's."""
    if _is_phone(reader.page):
        reader.long_press(quote.split()[0])
    else:
        reader.select_quote(quote)


def _mark_quote(reader: BrowserAnnotator, quote: str, label: str) -> None:
    _select_quote(reader, quote)
    reader.click_label(label)


def _select_words(page: Page, server: Server) -> None:
    _select_quote(_join_study(page, server), "fiftieth year")


def _make_two_marks(page: Page, server: Server) -> None:
    reader = _join_study(page, server)
    _mark_quote(reader, "will mark", "needs-google")
    if page.locator("[data-action=done]").count():
        reader.click_action("done")
    _mark_quote(reader, "fiftieth year", "self-contradiction")
    reader.answer_question("severity", "3")
    reader.wait_until_saved()


def _start_picking(page: Page, server: Server) -> None:
    _make_two_marks(page, server)
    page.locator("[data-action=pick]").first.click()


def _open_mark_list(page: Page, server: Server) -> None:
    """The list of marks where it is not on the page anyhow."""
    _make_two_marks(page, server)
    if _is_phone(page):
        page.locator("[data-action=done]").click()
        page.locator("[data-action=list]").click()
    elif page.locator("[data-tab=list]").is_visible():
        page.locator("[data-tab=list]").click()


def _mark_offline(page: Page, server: Server) -> None:
    reader = _join_study(page, server)
    page.context.set_offline(True)
    _mark_quote(reader, "fiftieth year", "incoherent")
    expect(page.locator("[data-state=offline]")).to_be_visible(timeout=20_000)


def _make_overlapping_marks(page: Page, server: Server) -> None:
    """Marks that overlap three deep, words left out, and a mark with its earlier words."""
    reader = _join_study(page, server)
    for quote, label in (("mark its fiftieth", "incoherent"), ("its fiftieth year", "redundant")):
        _mark_quote(reader, quote, label)
        _close_mark(reader)
    _mark_quote(reader, "fiftieth year", "self-contradiction")
    reader.answer_question("severity", "2")
    if not _is_phone(page):
        reader.pick_antecedent("since 1911")
    reader.wait_until_saved()


def _hover_over_marks(page: Page, server: Server) -> None:
    """The pointer on words of several marks."""
    _make_overlapping_marks(page, server)
    if _is_phone(page):
        return
    page.keyboard.press("Escape")
    page.locator(".piece[data-mark*=' ']").last.hover()
    expect(page.locator(".hover")).to_be_visible()


def _close_mark(reader: BrowserAnnotator) -> None:
    if _is_phone(reader.page):
        reader.click_action("done")


def _delete_mark(page: Page, server: Server) -> None:
    _make_two_marks(page, server)
    page.locator("[data-action=delete]").first.click()
    expect(page.locator(".toast")).to_be_visible()


def _answer_with_error(code: str) -> Visit:
    """The server answers a mark with this problem."""

    def visit(page: Page, server: Server) -> None:
        reader = _join_study(page, server)
        body = ErrorResponse(code=code, say=MESSAGE_BY_CODE[code]).model_dump_json()  # type: ignore[index]
        answer = {"status": STATUS_BY_CODE[code], "content_type": "application/json", "body": body}  # type: ignore[index]
        page.route("**/api/tasks/**/marks/**", lambda route: route.fulfill(**answer))
        _mark_quote(reader, "fiftieth year", "incoherent")
        expect(page.locator(f"[data-note={code}], [data-state=refused]").first).to_be_visible(timeout=20_000)
        expect(page.locator(".top [data-state]")).to_contain_text("rejected", ignore_case=True)

    return visit


def _open_second_tab(page: Page, server: Server) -> None:
    _join_study(page, server)
    other = page.context.new_page()
    other.goto(page.url)
    expect(page.locator("[data-note=elsewhere]")).to_be_visible(timeout=20_000)


def _open_by_action(action: str, shown: str) -> Visit:
    """What one button of the page opens."""

    def visit(page: Page, server: Server) -> None:
        reader = _join_study(page, server)
        if _is_phone(page) and not page.locator(f"[data-action={action}]").count():
            return  # a phone does not have it
        reader.click_action(action)
        expect(page.locator(shown).first).to_be_visible(timeout=20_000)

    return visit


def _open_guide(page: Page, server: Server) -> None:
    _join_study(page, server).click_action("guide")
    expect(page.locator("dialog h1").first).to_be_visible()


def _mark_text_with_data(page: Page, server: Server) -> None:
    reader = _join_study(page, server)
    _mark_quote(reader, "Saturday", "name")
    reader.wait_until_saved()


def _finish_part(page: Page, server: Server) -> None:
    _join_study(page, server).click_finish()
    expect(page.locator(".previous-parts")).to_be_visible()


def _open_question(page: Page, server: Server) -> None:
    page.goto(server.open_link)
    page.locator("[data-action=start]").click()
    expect(page.locator("[data-question], [data-section]").first).to_be_visible(timeout=20_000)


def _finish_all_texts(page: Page, server: Server) -> None:
    reader = _join_study(page, server)
    for number in range(1, 4):
        expect(page.locator("[data-action=texts]")).to_contain_text(f"{number} of 3", timeout=20_000)
        reader.click_finish()
        reader.click_finish()  # nothing wrong: said twice
    reader.expect_last_page()


def _advance_to_step(step: str, shown: str, knows: KnowsSolution = knows_everything) -> Visit:
    """Somebody who went on to a step, or to an exercise, which shows this."""

    def visit(page: Page, server: Server) -> None:
        reader = BrowserAnnotator(page, server.open_link)
        reader.click_action("start")
        expect(page.locator("[data-page=join]")).to_have_count(0, timeout=20_000)
        onboarding_session.advance_to(reader, server, server.read_study().protocol(), step, knows)
        expect(page.locator(shown).first).to_be_visible(timeout=20_000)

    return visit


def _open_feedback(page: Page, server: Server) -> None:
    _advance_to_step("training", "[data-step=training]")(page, server)
    reader = BrowserAnnotator(page, page.url)
    reader.continue_from("training")
    reader.wait_for_text()
    _mark_quote(reader, "Cranes", "name")
    if _is_phone(page):
        reader.click_action("done")
    reader.wait_until_saved()
    reader.click_finish()
    reader.wait_for("kind=feedback")


def _fail_qualification(page: Page, server: Server) -> None:
    _advance_to_step("result-1", "[data-passed=false]", knows_nothing)(page, server)
    page.locator("[data-action=continue]").click()
    expect(page.locator("[data-code]")).to_be_visible(timeout=20_000)


# --- researchers -------------------------------------------------------------------------------------------------


def sign_in_researcher(browser: Browser, server: Server) -> Any:
    """The cookies of a researcher who followed the link."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.admin_link)
    page.get_by_role("button").first.click()
    page.wait_for_load_state("networkidle")
    return context.storage_state()


def _open_admin_page(address: str, wait: str = "main") -> Visit:
    def visit(page: Page, server: Server) -> None:
        page.goto(f"{server.address}/admin#/{address}")
        expect(page.locator(wait).first).to_be_visible(timeout=60_000)
        page.wait_for_load_state("networkidle")

    return visit


def _open_span_details(page: Page, server: Server) -> None:
    """A document with what people said about one place."""
    _open_admin_page("documents/bakery-b", ".text-body [data-at]")(page, server)
    page.locator(".text-body .depth").first.click()


def _open_adjudication(page: Page, server: Server) -> None:
    _open_admin_page("adjudicate", "a[href*='adjudicate/']")(page, server)
    page.locator("a[href*='adjudicate/']").first.click()
    expect(page.locator("[data-gold], .card").first).to_be_visible(timeout=30_000)
    page.wait_for_load_state("networkidle")


def _open_design(page: Page, server: Server) -> None:
    """A design that fills, with the cell that is paid least."""
    record_arrivals(server)
    _open_admin_page("design", "[data-cell]")(page, server)
    expect(page.locator(".days")).to_be_visible(timeout=30_000)


def _select_design_cell(page: Page, server: Server) -> None:
    _open_design(page, server)
    page.locator("[data-cell='none/school/human']").click()
    expect(page.locator("[data-chosen]")).to_be_visible()


def _open_run_failures(page: Page, server: Server) -> None:
    """A run's replies that are of no use, opened under it."""
    run_models(page, server)
    page.locator("[data-run=judge-4] [data-action=failures]").click()
    expect(page.locator("[data-failures] [data-raw]")).to_be_visible(timeout=30_000)


def _open_calibration(page: Page, server: Server) -> None:
    _open_admin_page("calibrate/judge-4", "[data-action=check]")(page, server)


def _run_calibration(page: Page, server: Server) -> None:
    _open_calibration(page, server)
    title = page.locator("[data-judge=judge-4] h1")
    if not title.count():
        page.locator("[data-action=check]").click()
    expect(title).to_contain_text("judge-4: too few texts to decide", timeout=120_000)


def _open_address(path: str) -> Visit:
    def visit(page: Page, server: Server) -> None:
        page.goto(f"{server.address}{path}")
        page.wait_for_load_state("networkidle")
        expect(page.locator("h1")).to_be_visible()

    return visit


def _open_sign_in(page: Page, server: Server) -> None:
    page.goto(server.admin_link)


PAGE_STATES = (
    PageState("join", scarecrow_study, _open_welcome),
    PageState("marking-empty", scarecrow_study, _open_unmarked_text),
    PageState("marking-selecting", scarecrow_study, _select_words),
    PageState("marking", scarecrow_study, _make_two_marks),
    PageState("marking-list", scarecrow_study, _open_mark_list),
    PageState("marking-offline", scarecrow_study, _mark_offline),
    PageState("marking-crowded", scarecrow_study, _make_overlapping_marks),
    PageState("marking-hovered", scarecrow_study, _hover_over_marks),
    PageState("marking-deleted", scarecrow_study, _delete_mark),
    PageState("marking-refused", scarecrow_study, _answer_with_error("refused")),
    PageState("marking-lease-over", scarecrow_study, _answer_with_error("lease-over")),
    PageState("marking-two-tabs", scarecrow_study, _open_second_tab),
    PageState("reading-settings", scarecrow_study, _open_by_action("settings", "#set-language")),
    PageState("texts", scarecrow_study, _open_by_action("texts", ".popover.texts")),
    PageState("cannot-judge", scarecrow_study, _open_by_action("cannot", "#because")),
    PageState("no-errors", scarecrow_study, _open_by_action("finish", ".asking")),
    PageState("picking", scarecrow_study, _start_picking),
    PageState("guide", scarecrow_study, _open_guide),
    PageState("end", scarecrow_study, _finish_all_texts),
    PageState("join-unknown", scarecrow_study, _open_address("/join/nobody-knows-this")),
    PageState("not-found", scarecrow_study, _open_address("/nowhere")),
    PageState("signed-out", scarecrow_study, _open_address("/admin")),
    PageState("sign-in", scarecrow_study, _open_sign_in),
    PageState("sign-in-used", scarecrow_study, _open_address("/sign-in/nobody-knows-this")),
    PageState("german-join", german_study, _open_welcome),
    PageState("german-marking", german_study, _make_two_marks),
    PageState("german-offline", german_study, _mark_offline),
    PageState("german-picking", german_study, _start_picking),
    PageState("german-survey", german_onboarding_study, _advance_to_step("survey", "[data-step=survey]")),
    PageState("german-solution", german_onboarding_study, _open_feedback),
    PageState("german-failed", german_onboarding_study, _advance_to_step("result-1", "[data-solution]", knows_nothing)),
    PageState("data", accuracy_study, _mark_text_with_data),
    PageState("box-score", box_score_study, _mark_text_with_data),
    PageState("parts", snac_study, _finish_part),
    PageState("rating", likert_study, _open_question),
    PageState("preference", preference_study, _open_question),
    PageState("sections", sections_study, _open_question),
    PageState("consent", accuracy_onboarding_study, _open_welcome),
    PageState("survey", accuracy_onboarding_study, _advance_to_step("survey", "[data-step=survey]")),
    PageState("instructions", accuracy_onboarding_study, _advance_to_step("instructions", "[data-step=instructions]")),
    PageState("training", accuracy_onboarding_study, _advance_to_step("training", "[data-step=training]")),
    PageState("training-solution", accuracy_onboarding_study, _open_feedback),
    PageState("qualification", accuracy_onboarding_study, _advance_to_step("part-1-1", "[data-step=part-1-1]")),
    PageState(
        "qualification-passed",
        accuracy_onboarding_study,
        _advance_to_step("result-1", "[data-passed=true] [data-solution]"),
    ),
    PageState(
        "qualification-failed",
        accuracy_onboarding_study,
        _advance_to_step("result-1", "[data-passed=false] [data-solution]", knows_nothing),
    ),
    PageState("turned-away", accuracy_onboarding_study, _fail_qualification),
    PageState("lesson", scarecrow_onboarding_study, _advance_to_step("label-1-exercise-6", "[data-step]")),
    PageState("exercise", scarecrow_onboarding_study, _advance_to_step("exercise-1", "[data-practice]")),
    PageState("choice", scarecrow_onboarding_study, _advance_to_step("choice-1", "[data-practice]")),
    PageState("failed", scarecrow_onboarding_study, _advance_to_step("result-1", "[data-passed=false]", knows_nothing)),
    PageState("overview", demo_study_with_model, _open_admin_page("overview", ".figures"), True),
    PageState("design", demo_study_with_model, _open_admin_page("design", "h1"), True),
    PageState("documents", demo_study_with_model, _open_admin_page("documents", "a.doc"), True),
    PageState("document", demo_study_with_model, _open_admin_page("documents/bakery-b", ".text-body [data-at]"), True),
    PageState("document-framed", demo_study_with_model, _open_span_details, True),
    PageState("annotators", demo_study_with_model, _open_admin_page("annotators", "table"), True),
    PageState("annotator", demo_study_with_model, _open_admin_page("annotators/reader-1", "h1"), True),
    PageState("runs", demo_study_with_model, _open_admin_page("runs", "[data-sent]"), True),
    PageState("adjudicate-list", demo_study_with_model, _open_admin_page("adjudicate", "table"), True),
    PageState("adjudicate", demo_study_with_model, _open_adjudication, True),
    PageState("settings", demo_study_with_model, _open_admin_page("settings", ".card"), True),
    PageState("export", demo_study_with_model, _open_admin_page("export", ".card"), True),
    PageState("log", demo_study_with_model, _open_admin_page("log", "main"), True),
    PageState("design-filling", make_design_study, _open_design, True),
    PageState("design-cell", make_design_study, _select_design_cell, True),
    PageState("annotators-recruited", make_design_study, _open_admin_page("annotators", "table"), True),
    PageState("runs-done", make_model_study, run_models, True),
    PageState("runs-failure", make_model_study, _open_run_failures, True),
    PageState("calibrate-unchecked", make_judge_study, _open_calibration, True),
    PageState("calibrate", make_judge_study, _run_calibration, True),
    PageState("overview-empty", empty_study, _open_admin_page("overview", "h1"), True),
    PageState("document-empty", empty_study, _open_admin_page("documents/d1", ".text-body"), True),
    PageState("annotators-empty", empty_study, _open_admin_page("annotators", "h1"), True),
)


# --- files -------------------------------------------------------------------------------------------------------


def _write_report_page(folder: Path) -> Path:
    from finecomb.reporting.site.report_content import build_report_source
    from finecomb.reporting.site.report_folder import write_report

    if not (folder / "report").exists():
        write_report(build_report_source(fc.demo(), "demo", draws=100), folder / "report", "1 May 2026")
    return folder / "report" / "index.html"


def _report_text_page(folder: Path) -> Path:
    return _write_report_page(folder).parent / "texts" / "1.html"


def _report_text_list(folder: Path) -> Path:
    return _write_report_page(folder).parent / "texts.html"


def _write_validation_page(folder: Path) -> Path:
    from finecomb.reporting.validation_pages import write_validation_report
    from finecomb.statistics.gold.scores import score_judges_against_gold

    if not (folder / "validation").exists():
        write_validation_report(score_judges_against_gold(fc.demo(readers=4), draws=50), folder / "validation")
    return folder / "validation" / "index.html"


def _validation_text_page(folder: Path) -> Path:
    return _write_validation_page(folder).parent / "texts" / "00001.html"


def _text_page_writer(readers: int) -> Callable[[Path], Path]:
    """`show --html` of a text with the marks of so many people."""

    def make(folder: Path) -> Path:
        study = fc.demo(readers=4)
        (document,) = study.iter_first_documents(1)
        file = folder / f"shown-{readers}.html"
        file.write_text(
            document_page_html(document, study.annotations_on(document.id)[:readers], study.protocols), "utf-8"
        )
        return file

    return make


def _write_notebook_page(folder: Path) -> Path:
    """A notebook that is dark, whatever the device."""
    file = folder / "notebook.html"
    view = "<meta name=viewport content='width=device-width'>"
    head = f"<!doctype html><html lang=en><meta charset=utf-8>{view}<title>Notebook</title>"
    body = "<body data-jp-theme-light=false style='background:#111;color:#ddd'><main><h1>Notebook</h1><h2>Study</h2>"
    file.write_text(f"{head}{body}{study_html(fc.demo(readers=2))}</main></body></html>", "utf-8")
    return file


FILE_STATES = (
    FileState("report", _write_report_page),
    FileState("report-text", _report_text_page),
    FileState("report-texts", _report_text_list),
    FileState("score-report", _write_validation_page),
    FileState("score-report-text", _validation_text_page),
    FileState("show-one", _text_page_writer(1)),
    FileState("show-several", _text_page_writer(4)),
    FileState("notebook-dark", _write_notebook_page),
)
