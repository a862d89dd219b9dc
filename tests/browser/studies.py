"""Small studies that tests in the browser serve, and what comes back from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import finecomb as fc
from finecomb.core.records import ONBOARDING_PHASES, Annotation, Document, Settings
from finecomb.core.study import Study
from tests.browser.live_server import Server

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


def marking_study(protocol: str | fc.Protocol, *documents: Document) -> Study:
    """A study for marking: nothing comes before the work."""
    chosen = fc.protocol(protocol) if isinstance(protocol, str) else protocol
    settings = Settings(title="Harbour news", protocols=(chosen.id,), annotators=3, skip=ONBOARDING_PHASES)
    return Study.from_items([settings, chosen, *documents])


def make_document(id: str, words: str, **more: object) -> Document:
    return Document.model_validate({"id": id, "text": words, "meta": {"model": SECRET}} | more)


def submitted_annotations(server: Server) -> list[Annotation]:
    return [each for each in server.read_study().iter_annotations() if each.status == "submitted"]


def describe_marks(annotation: Annotation) -> list[tuple[str | None, Sequence[str], list[object]]]:
    return sorted((mark.label, mark.quotes, [span.to_wire() for span in mark.spans]) for mark in annotation.marks)


def assert_quotes_match(annotation: Annotation, document: Document) -> None:
    for mark in annotation.marks:
        for span, quote in zip(mark.spans, mark.quotes, strict=True):
            assert span.extract(document.part_text(span.part) or "") == quote


def make_game_record(day: str, home: tuple[str, str] = ("Northfield", "Millers"), shift: int = 0) -> dict[str, Any]:
    """A made-up game of the Harbour Gulls as RotoWire writes one: columns under the numbers of players."""
    names = ["Dana Okafor", "Mika Sorn", "Ray Castell", "Joon Abara", "Eli Weiss", "Per Lunde", "Will Tarn"]
    others = ["Tomas Reyl", "Luis Prado", "Andre Voss", "Cole Hart", "Sam Idris", "Ben Okoye", "Ivo Grand"]
    players = [*names, *others]
    numbers = {
        "MIN": [36, 34, 31, 28, 27, 22, None, 38, 35, 30, 29, 26, 20, None],
        "PTS": [24 + shift, 22, 19, 15, 7, 9, None, 31, 18, 17, 14, 10, 8, None],
        "FGM": [9, 8, 7, 6, 2, 3, None, 12, 7, 8, 5, 4, 3, None],
        "FGA": [17, 15, 12, 9, 8, 8, None, 22, 16, 13, 10, 9, 7, None],
        "FG3M": [2, 3, 1, 0, 1, 1, None, 3, 2, 0, 2, 1, 1, None],
        "FG3A": [5, 7, 3, 0, 4, 3, None, 8, 6, 0, 4, 3, 2, None],
        "FTM": [4, 3, 4, 3, 2, 2, None, 4, 2, 1, 2, 1, 1, None],
        "FTA": [4, 4, 5, 6, 2, 2, None, 5, 2, 3, 2, 2, 1, None],
        "OREB": [3, 0, 1, 4, 0, 2, None, 1, 0, 5, 2, 1, 1, None],
        "DREB": [8, 4, 5, 5, 3, 6, None, 7, 5, 7, 5, 5, 4, None],
        "REB": [11, 4, 6, 9, 3, 8, None, 8, 5, 12, 7, 6, 5, None],
        "AST": [5, 7, 2, 1, 4, 3, None, 3, 6, 1, 2, 5, 2, None],
        "TO": [2, 3, 1, 2, 1, 0, None, 3, 4, 1, 2, 2, 1, None],
        "STL": [1, 2, 0, 0, 1, 1, None, 1, 2, 0, 0, 1, 0, None],
        "BLK": [1, 0, 1, 2, 0, 0, None, 0, 0, 2, 1, 0, 1, None],
        "PF": [3, 2, 4, 5, 1, 2, None, 2, 3, 4, 3, 2, 3, None],
    }
    cities = ["Harbour"] * 7 + [home[0]] * 7
    starts = [*"FFCGG", "N/A", "N/A"] * 2
    columns = {"PLAYER_NAME": players, "TEAM_CITY": cities, "START_POSITION": starts, **numbers}
    return {
        "day": day,
        "vis_city": "Harbour",
        "vis_name": "Gulls",
        "home_city": home[0],
        "home_name": home[1],
        "box_score": {
            name: {str(at): "N/A" if value is None else str(value) for at, value in enumerate(values)}
            for name, values in columns.items()
        },
        "vis_line": _team_line(29, 26, 24, 25, 4, 1),
        "home_line": _team_line(21, 26, 27, 24, 2, 3),
    }


def _team_line(*numbers: int) -> dict[str, str]:
    *quarters, wins, losses = numbers
    fields = {f"TEAM-PTS_QTR{number}": points for number, points in enumerate(quarters, 1)}
    fields |= {"TEAM-PTS": sum(quarters), "TEAM-WINS": wins, "TEAM-LOSSES": losses}
    return {name: str(value) for name, value in fields.items()}
