"""Small studies that tests in the browser serve, and what comes back from them."""

from __future__ import annotations

from collections.abc import Sequence

import finecomb as fc
from finecomb.core.records import PHASES, Annotation, Document, Settings
from finecomb.core.study import Study
from tests.browser.served import Server

FERRY = "The ferry, which has run since 1911, will mark its fiftieth year this spring. It carry 40 people a night."
PROMPT = "The ferry will stop running after dark."
MARKUP = 'If x<y and z>w then <b>"stop"</b> & wait; {{7*7}} <script>alert(1)</script> ends.'
EMOJI = "A 👩‍👩‍👧 family 🇳🇴 said café and nai\u0308ve words 𝒜 here."
HEBREW = "הספינה יצאה מהנמל בשעה שמונה בבוקר, ואז חזרה."
THAI, CHINESE = "เรือออกจากท่าเวลาแปดโมงเช้า", "渡轮早上八点离开港口，然后又回来了。"
SECRET = "secret-model-9000"
REPORT = "The Gulls beat the Millers 104-98 on Saturday. Dana Okafor had 27 points."
BOX = {
    "game": {"date": "Fri 14 Nov", "place": "Millhouse"},
    "players": [{"player": "Dana Okafor", "points": 24}, {"player": "Mika Sorn", "points": 22}],
}
STORY = (
    "Marta never married. She keeps the salt works.",
    "Her husband Jonas returns. He brings a bell.",
    "Elspeth shouts at the hearing.",
)


def study_of(protocol: str | fc.Protocol, *documents: Document) -> Study:
    """A study for marking: nothing comes before the work."""
    chosen = fc.protocol(protocol) if isinstance(protocol, str) else protocol
    settings = Settings(title="Harbour news", protocols=(chosen.id,), annotators=3, skip=PHASES)
    return Study.from_items([settings, chosen, *documents])


def text(id: str, words: str, **more: object) -> Document:
    return Document.model_validate({"id": id, "text": words, "meta": {"model": SECRET}} | more)


def work(server: Server) -> list[Annotation]:
    return [each for each in server.study().iter_annotations() if each.status == "submitted"]


def marked(annotation: Annotation) -> list[tuple[str | None, Sequence[str], list[object]]]:
    return sorted((mark.label, mark.quotes, [span.on_wire() for span in mark.spans]) for mark in annotation.marks)


def quotes_hold(annotation: Annotation, document: Document) -> None:
    for mark in annotation.marks:
        for span, quote in zip(mark.spans, mark.quotes, strict=True):
            assert span.of(document.part(span.part) or "") == quote
