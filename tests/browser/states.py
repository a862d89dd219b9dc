"""Every page in every state that people meet, and how each is reached: one list for the contact sheet and for axe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

import finecomb as fc
from finecomb.core.evidence import Season, with_season
from finecomb.core.records import PHASES, Document, ModelSettings, Settings
from finecomb.core.study import Study
from finecomb.report.marked_text import document_page, study_html
from finecomb.server.annotators.schema import ErrorResponse
from finecomb.server.problems import SAY, STATUS
from finecomb.simulate.demo import demo_study
from tests.browser import arrival
from tests.browser.researcher_studies import ask_models, asked, designed, judged, let_them_come
from tests.browser.served import Reader, Server
from tests.browser.studies import BOX, FERRY, PROMPT, REPORT, STORY, box_game, text
from tests.walking import Knows, everything, nothing

LONG = " ".join([FERRY] * 6)
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


def scarecrow() -> Study:
    return _study("scarecrow", *_documents("d", LONG, context={"prompt": PROMPT}))


def accuracy() -> Study:
    return _study("accuracy", *_documents("r", REPORT, data=BOX))


def box_scores() -> Study:
    """Game reports with their box scores and the games around them."""
    games = [box_game("2025-11-14"), box_game("2025-11-18", ("Eastgate", "Owls"), 2), box_game("2025-11-25")]
    season = Season.of(games)
    words = f"The Gulls (4-1) beat the Northfield Millers (2-3). {REPORT}"
    return _study("accuracy", *(text(f"g{at}", words, data=with_season(game, season)) for at, game in enumerate(games)))


def snac() -> Study:
    return _study("snac", *_documents("s", "\n".join(STORY)))


def german() -> Study:
    """Texts to mark on German pages; the protocol's own words stay as they are."""
    protocol = fc.protocol("scarecrow").model_copy(update={"name": "vogelscheuche", "language": "de"})
    settings = Settings(title="Hafennachrichten", protocols=(protocol.id,), annotators=99, skip=PHASES)
    return Study.from_items([settings, protocol, *_documents("d", LONG, context={"prompt": PROMPT})])


def german_entered() -> Study:
    """Everything that comes before the work, on German pages."""
    protocol = fc.protocol("accuracy").model_copy(update={"name": "genauigkeit", "language": "de"})
    return arrival.study_of(protocol, text("r1", REPORT, data=BOX), annotators=99)


def likert() -> Study:
    return _study("likert", *_documents("l", FERRY, context={"prompt": PROMPT}))


def preference() -> Study:
    pair = {"prompt": PROMPT, "a": LONG, "b": LONG.upper()}
    return _study("preference", *_documents("p", "", context=pair))


def sections() -> Study:
    return _study("sections", *_documents("a", LONG))


def entered() -> Study:
    """Everything that comes before the work, for as many people as come."""
    protocol = fc.protocol("accuracy")
    return arrival.study_of(protocol, text("r1", REPORT, data=BOX), annotators=99)


def taught() -> Study:
    """Scarecrow's lessons, exercises and questions."""
    return arrival.study_of(fc.protocol("scarecrow"), text("d1", FERRY, context={"prompt": PROMPT}), annotators=99)


def demo() -> Study:
    """The demo with simulated annotators, and a model that may be asked."""
    study = Study.from_items(demo_study(5, 0))
    models = {"judge-4": ModelSettings(model="big", base_url="http://127.0.0.1:9/v1", price=(1, 2), budget=2.0)}
    settings = study.settings.model_copy(update={"models": models})
    return Study.from_items([settings, *(item for item in study.items() if not isinstance(item, Settings))])


def empty() -> Study:
    """Nobody has started yet."""
    return _study("scarecrow", text("d1", FERRY))


def _study(protocol: str, *documents: Document) -> Study:
    """A study with room for every reader of the sheet."""
    chosen = fc.protocol(protocol)
    settings = Settings(title="Harbour news", protocols=(chosen.id,), annotators=99, skip=PHASES)
    return Study.from_items([settings, chosen, *documents])


def _documents(prefix: str, words: str, **more: Any) -> list[Document]:
    return [text(f"{prefix}{number}", words, **more) for number in range(3)]


# --- annotators --------------------------------------------------------------------------------------------------


def _joined(page: Page, server: Server) -> Reader:
    reader = Reader(page, server.open_link)
    reader.join()
    return reader


def _welcome(page: Page, server: Server) -> None:
    page.goto(server.open_link)
    expect(page.locator("[data-action=start]")).to_be_visible(timeout=20_000)


def _unmarked(page: Page, server: Server) -> None:
    _joined(page, server)


def _is_phone(page: Page) -> bool:
    return bool(page.evaluate("document.body.classList.contains('phone')"))


def _select(reader: Reader, quote: str) -> None:
    """As a mouse does, or a finger where the page is a phone's."""
    if _is_phone(reader.page):
        reader.long_press(quote.split()[0])
    else:
        reader.select(quote)


def _mark(reader: Reader, quote: str, label: str) -> None:
    _select(reader, quote)
    reader.label(label)


def _selecting(page: Page, server: Server) -> None:
    _select(_joined(page, server), "fiftieth year")


def _marked(page: Page, server: Server) -> None:
    reader = _joined(page, server)
    _mark(reader, "will mark", "needs-google")
    if page.locator("[data-action=done]").count():
        reader.action("done")
    _mark(reader, "fiftieth year", "self-contradiction")
    reader.answer("severity", "3")
    reader.saved()


def _picking(page: Page, server: Server) -> None:
    _marked(page, server)
    page.locator("[data-action=pick]").first.click()


def _listed(page: Page, server: Server) -> None:
    """The list of marks where it is not on the page anyhow."""
    _marked(page, server)
    if _is_phone(page):
        page.locator("[data-action=done]").click()
        page.locator("[data-action=list]").click()
    elif page.locator("[data-tab=list]").is_visible():
        page.locator("[data-tab=list]").click()


def _offline(page: Page, server: Server) -> None:
    reader = _joined(page, server)
    page.context.set_offline(True)
    _mark(reader, "fiftieth year", "incoherent")
    expect(page.locator("[data-state=offline]")).to_be_visible(timeout=20_000)


def _crowded(page: Page, server: Server) -> None:
    """Marks that overlap three deep, words left out, and a mark with its earlier words."""
    reader = _joined(page, server)
    for quote, label in (("mark its fiftieth", "incoherent"), ("its fiftieth year", "redundant")):
        _mark(reader, quote, label)
        _let_go(reader)
    _mark(reader, "fiftieth year", "self-contradiction")
    reader.answer("severity", "2")
    if not _is_phone(page):
        reader.pick("since 1911")
    reader.saved()


def _hovered(page: Page, server: Server) -> None:
    """The pointer on words of several marks."""
    _crowded(page, server)
    if _is_phone(page):
        return
    page.keyboard.press("Escape")
    page.locator(".piece[data-mark*=' ']").last.hover()
    expect(page.locator(".hover")).to_be_visible()


def _let_go(reader: Reader) -> None:
    if _is_phone(reader.page):
        reader.action("done")


def _deleted(page: Page, server: Server) -> None:
    _marked(page, server)
    page.locator("[data-action=delete]").first.click()
    expect(page.locator(".toast")).to_be_visible()


def _answered(code: str) -> Visit:
    """The server answers a mark with this problem."""

    def visit(page: Page, server: Server) -> None:
        reader = _joined(page, server)
        body = ErrorResponse(code=code, say=SAY[code]).model_dump_json()  # type: ignore[index]
        answer = {"status": STATUS[code], "content_type": "application/json", "body": body}  # type: ignore[index]
        page.route("**/api/tasks/**/marks/**", lambda route: route.fulfill(**answer))
        _mark(reader, "fiftieth year", "incoherent")
        expect(page.locator(f"[data-note={code}], [data-state=refused]").first).to_be_visible(timeout=20_000)
        expect(page.locator(".top [data-state]")).to_contain_text("not accepted", ignore_case=True)

    return visit


def _two_tabs(page: Page, server: Server) -> None:
    _joined(page, server)
    other = page.context.new_page()
    other.goto(page.url)
    expect(page.locator("[data-note=elsewhere]")).to_be_visible(timeout=20_000)


def _opened(action: str, shown: str) -> Visit:
    """What one button of the page opens."""

    def visit(page: Page, server: Server) -> None:
        reader = _joined(page, server)
        if _is_phone(page) and not page.locator(f"[data-action={action}]").count():
            return  # a phone does not have it
        reader.action(action)
        expect(page.locator(shown).first).to_be_visible(timeout=20_000)

    return visit


def _guide(page: Page, server: Server) -> None:
    _joined(page, server).action("guide")
    expect(page.locator("dialog h1").first).to_be_visible()


def _data(page: Page, server: Server) -> None:
    reader = _joined(page, server)
    _mark(reader, "Saturday", "name")
    reader.saved()


def _parts(page: Page, server: Server) -> None:
    _joined(page, server).finish()
    expect(page.locator(".previous-parts")).to_be_visible()


def _question(page: Page, server: Server) -> None:
    page.goto(server.open_link)
    page.locator("[data-action=start]").click()
    expect(page.locator("[data-question], [data-section]").first).to_be_visible(timeout=20_000)


def _finished(page: Page, server: Server) -> None:
    reader = _joined(page, server)
    for number in range(1, 4):
        expect(page.locator("[data-action=texts]")).to_contain_text(f"{number} of 3", timeout=20_000)
        reader.finish()
        reader.finish()  # nothing wrong: said twice
    reader.sees_the_end()


def _came_to(step: str, shown: str, knows: Knows = everything) -> Visit:
    """Somebody who went on to a step, or to an exercise, which shows this."""

    def visit(page: Page, server: Server) -> None:
        reader = Reader(page, server.open_link)
        reader.action("start")
        expect(page.locator("[data-page=join]")).to_have_count(0, timeout=20_000)
        arrival.go_to(reader, server, server.study().protocol(), step, knows)
        expect(page.locator(shown).first).to_be_visible(timeout=20_000)

    return visit


def _feedback(page: Page, server: Server) -> None:
    _came_to("training", "[data-step=training]")(page, server)
    reader = Reader(page, page.url)
    reader.goes_on("training")
    reader.wait_for_text()
    _mark(reader, "Cranes", "name")
    if _is_phone(page):
        reader.action("done")
    reader.saved()
    reader.finish()
    reader.sees("kind=feedback")


def _turned_away(page: Page, server: Server) -> None:
    _came_to("result-1", "[data-passed=false]", nothing)(page, server)
    page.locator("[data-action=continue]").click()
    expect(page.locator("[data-code]")).to_be_visible(timeout=20_000)


# --- researchers -------------------------------------------------------------------------------------------------


def signed_in(browser: Browser, server: Server) -> Any:
    """The cookies of a researcher who followed the link."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.admin_link)
    page.get_by_role("button").first.click()
    page.wait_for_load_state("networkidle")
    return context.storage_state()


def _researcher(address: str, wait: str = "main") -> Visit:
    def visit(page: Page, server: Server) -> None:
        page.goto(f"{server.address}/admin#/{address}")
        expect(page.locator(wait).first).to_be_visible(timeout=60_000)
        page.wait_for_load_state("networkidle")

    return visit


def _framed(page: Page, server: Server) -> None:
    """A document with what people said about one place."""
    _researcher("documents/bakery-b", ".text-body [data-at]")(page, server)
    page.locator(".text-body .depth").first.click()


def _adjudication(page: Page, server: Server) -> None:
    _researcher("adjudicate", "a[href*='adjudicate/']")(page, server)
    page.locator("a[href*='adjudicate/']").first.click()
    expect(page.locator("[data-gold], .card").first).to_be_visible(timeout=30_000)
    page.wait_for_load_state("networkidle")


def _designed(page: Page, server: Server) -> None:
    """A design that fills, with the cell that is paid least."""
    let_them_come(server)
    _researcher("design", "[data-cell]")(page, server)
    expect(page.locator(".days")).to_be_visible(timeout=30_000)


def _cell_chosen(page: Page, server: Server) -> None:
    _designed(page, server)
    page.locator("[data-cell='none/school/human']").click()
    expect(page.locator("[data-chosen]")).to_be_visible()


def _failure_opened(page: Page, server: Server) -> None:
    """A run's replies that are of no use, opened under it."""
    ask_models(page, server)
    page.locator("[data-run=judge-4] [data-action=failures]").click()
    expect(page.locator("[data-failures] [data-raw]")).to_be_visible(timeout=30_000)


def _not_calibrated(page: Page, server: Server) -> None:
    _researcher("calibrate/judge-4", "[data-action=check]")(page, server)


def _calibrated(page: Page, server: Server) -> None:
    _not_calibrated(page, server)
    title = page.locator("[data-judge=judge-4] h1")
    if not title.count():
        page.locator("[data-action=check]").click()
    expect(title).to_contain_text("judge-4 may", timeout=120_000)


def _address(path: str) -> Visit:
    def visit(page: Page, server: Server) -> None:
        page.goto(f"{server.address}{path}")
        page.wait_for_load_state("networkidle")
        expect(page.locator("h1")).to_be_visible()

    return visit


def _sign_in(page: Page, server: Server) -> None:
    page.goto(server.admin_link)


STATES = (
    PageState("join", scarecrow, _welcome),
    PageState("marking-empty", scarecrow, _unmarked),
    PageState("marking-selecting", scarecrow, _selecting),
    PageState("marking", scarecrow, _marked),
    PageState("marking-list", scarecrow, _listed),
    PageState("marking-offline", scarecrow, _offline),
    PageState("marking-crowded", scarecrow, _crowded),
    PageState("marking-hovered", scarecrow, _hovered),
    PageState("marking-deleted", scarecrow, _deleted),
    PageState("marking-refused", scarecrow, _answered("refused")),
    PageState("marking-lease-over", scarecrow, _answered("lease-over")),
    PageState("marking-two-tabs", scarecrow, _two_tabs),
    PageState("reading-settings", scarecrow, _opened("settings", "#set-language")),
    PageState("texts", scarecrow, _opened("texts", ".popover.texts")),
    PageState("cannot-judge", scarecrow, _opened("cannot", "#because")),
    PageState("no-errors", scarecrow, _opened("finish", ".asking")),
    PageState("picking", scarecrow, _picking),
    PageState("guide", scarecrow, _guide),
    PageState("end", scarecrow, _finished),
    PageState("join-unknown", scarecrow, _address("/join/nobody-knows-this")),
    PageState("not-found", scarecrow, _address("/nowhere")),
    PageState("signed-out", scarecrow, _address("/admin")),
    PageState("sign-in", scarecrow, _sign_in),
    PageState("sign-in-used", scarecrow, _address("/sign-in/nobody-knows-this")),
    PageState("german-join", german, _welcome),
    PageState("german-marking", german, _marked),
    PageState("german-offline", german, _offline),
    PageState("german-picking", german, _picking),
    PageState("german-survey", german_entered, _came_to("survey", "[data-step=survey]")),
    PageState("german-solution", german_entered, _feedback),
    PageState("german-failed", german_entered, _came_to("result-1", "[data-solution]", nothing)),
    PageState("data", accuracy, _data),
    PageState("box-score", box_scores, _data),
    PageState("parts", snac, _parts),
    PageState("rating", likert, _question),
    PageState("preference", preference, _question),
    PageState("sections", sections, _question),
    PageState("consent", entered, _welcome),
    PageState("survey", entered, _came_to("survey", "[data-step=survey]")),
    PageState("instructions", entered, _came_to("instructions", "[data-step=instructions]")),
    PageState("training", entered, _came_to("training", "[data-step=training]")),
    PageState("training-solution", entered, _feedback),
    PageState("qualification", entered, _came_to("part-1-1", "[data-step=part-1-1]")),
    PageState("qualification-passed", entered, _came_to("result-1", "[data-passed=true] [data-solution]")),
    PageState("qualification-failed", entered, _came_to("result-1", "[data-passed=false] [data-solution]", nothing)),
    PageState("turned-away", entered, _turned_away),
    PageState("lesson", taught, _came_to("label-1-exercise-6", "[data-step]")),
    PageState("exercise", taught, _came_to("exercise-1", "[data-practice]")),
    PageState("choice", taught, _came_to("choice-1", "[data-practice]")),
    PageState("failed", taught, _came_to("result-1", "[data-passed=false]", nothing)),
    PageState("overview", demo, _researcher("overview", ".figures"), True),
    PageState("design", demo, _researcher("design", "h1"), True),
    PageState("documents", demo, _researcher("documents", "a.doc"), True),
    PageState("document", demo, _researcher("documents/bakery-b", ".text-body [data-at]"), True),
    PageState("document-framed", demo, _framed, True),
    PageState("annotators", demo, _researcher("annotators", "table"), True),
    PageState("annotator", demo, _researcher("annotators/reader-1", "h1"), True),
    PageState("runs", demo, _researcher("runs", "[data-sent]"), True),
    PageState("adjudicate-list", demo, _researcher("adjudicate", "table"), True),
    PageState("adjudicate", demo, _adjudication, True),
    PageState("settings", demo, _researcher("settings", ".card"), True),
    PageState("export", demo, _researcher("export", ".card"), True),
    PageState("log", demo, _researcher("log", "main"), True),
    PageState("design-filling", designed, _designed, True),
    PageState("design-cell", designed, _cell_chosen, True),
    PageState("annotators-recruited", designed, _researcher("annotators", "table"), True),
    PageState("runs-done", asked, ask_models, True),
    PageState("runs-failure", asked, _failure_opened, True),
    PageState("calibrate-unchecked", judged, _not_calibrated, True),
    PageState("calibrate", judged, _calibrated, True),
    PageState("overview-empty", empty, _researcher("overview", "h1"), True),
    PageState("document-empty", empty, _researcher("documents/d1", ".text-body"), True),
    PageState("annotators-empty", empty, _researcher("annotators", "h1"), True),
)


# --- files -------------------------------------------------------------------------------------------------------


def _report(folder: Path) -> Path:
    from finecomb.report.site.content import source
    from finecomb.report.site.folder import write_report

    if not (folder / "report").exists():
        write_report(source(fc.demo(), "demo", draws=100), folder / "report", "1 May 2026")
    return folder / "report" / "index.html"


def _report_text(folder: Path) -> Path:
    return _report(folder).parent / "texts" / "1.html"


def _report_texts(folder: Path) -> Path:
    return _report(folder).parent / "texts.html"


def _validation(folder: Path) -> Path:
    from finecomb.gold.score import score
    from finecomb.report.validation import write_report

    if not (folder / "validation").exists():
        write_report(score(fc.demo(readers=4), draws=50), folder / "validation")
    return folder / "validation" / "index.html"


def _validation_text(folder: Path) -> Path:
    return _validation(folder).parent / "texts" / "00001.html"


def _shown(readers: int) -> Callable[[Path], Path]:
    """`show --html` of a text with the marks of so many people."""

    def make(folder: Path) -> Path:
        study = fc.demo(readers=4)
        (document,) = study.iter_documents_head(1)
        file = folder / f"shown-{readers}.html"
        file.write_text(document_page(document, study.annotations_on(document.id)[:readers], study.protocols), "utf-8")
        return file

    return make


def _notebook(folder: Path) -> Path:
    """A notebook that is dark, whatever the device."""
    file = folder / "notebook.html"
    view = "<meta name=viewport content='width=device-width'>"
    head = f"<!doctype html><html lang=en><meta charset=utf-8>{view}<title>Notebook</title>"
    body = "<body data-jp-theme-light=false style='background:#111;color:#ddd'><main><h1>Notebook</h1><h2>Study</h2>"
    file.write_text(f"{head}{body}{study_html(fc.demo(readers=2))}</main></body></html>", "utf-8")
    return file


FILES = (
    FileState("report", _report),
    FileState("report-text", _report_text),
    FileState("report-texts", _report_texts),
    FileState("score-report", _validation),
    FileState("score-report-text", _validation_text),
    FileState("show-one", _shown(1)),
    FileState("show-several", _shown(4)),
    FileState("notebook-dark", _notebook),
)
