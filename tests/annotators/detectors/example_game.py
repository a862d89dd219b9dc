"""A fictional game in the format of a RotoWire record."""

from __future__ import annotations

from typing import Any

from finecomb.core.records import Document

FIELDS = "MIN PTS REB AST STL BLK TO PF FGM FGA FG3M FG3A FTM FTA FG_PCT FG3_PCT FT_PCT".split()
# name, city, starter, then the values of FIELDS
PLAYERS = [
    ("Dario Vance", "Redwater", "F", 38, 27, 11, 4, 1, 2, 3, 2, 10, 22, 3, 8, 4, 4, 45, 38, 100),
    ("Emil Koch", "Redwater", "G", 36, 22, 3, 9, 2, 0, 4, 3, 8, 17, 2, 6, 4, 5, 47, 33, 80),
    ("Noah Stroud", "Redwater", "C", 30, 12, 8, 1, 0, 1, 1, 4, 5, 9, 0, 0, 2, 4, 56, 0, 50),
    ("Jon Field", "Redwater", "G", 28, 10, 2, 2, 1, 0, 2, 1, 4, 10, 1, 4, 1, 1, 40, 25, 100),
    ("Max Adler", "Redwater", "F", 25, 6, 4, 3, 0, 0, 1, 2, 3, 7, 0, 2, 0, 0, 43, 0, 0),
    ("Sam Ortiz", "Redwater", "N/A", 24, 13, 5, 1, 0, 0, 2, 2, 5, 11, 2, 5, 1, 2, 45, 40, 50),
    ("Leo Frost", "Redwater", "N/A", 19, 8, 8, 0, 1, 1, 2, 3, 3, 8, 1, 3, 1, 2, 38, 33, 50),
    ("Paul Reyes", "Harbor City", "G", 36, 31, 5, 7, 2, 0, 3, 2, 11, 20, 4, 9, 5, 6, 55, 44, 83),
    ("Olaf Brandt", "Harbor City", "C", 33, 18, 12, 3, 0, 2, 1, 3, 8, 14, 0, 0, 2, 3, 57, 0, 67),
    ("Imre Sato", "Harbor City", "F", 31, 14, 4, 2, 1, 0, 2, 1, 5, 11, 2, 5, 2, 2, 45, 40, 100),
    ("Theo Quist", "Harbor City", "G", 27, 9, 3, 6, 0, 0, 2, 2, 3, 8, 1, 4, 2, 2, 38, 25, 100),
    ("Luka Novak", "Harbor City", "F", 24, 8, 6, 1, 0, 1, 1, 4, 4, 7, 0, 1, 0, 1, 57, 0, 0),
    ("Ben Okoro", "Harbor City", "N/A", 29, 15, 4, 2, 0, 0, 2, 1, 6, 10, 3, 6, 0, 0, 60, 50, 0),
    ("Ivo Marsh", "Harbor City", "N/A", 20, 9, 11, 4, 1, 1, 1, 2, 4, 9, 0, 1, 1, 2, 44, 0, 50),
]
ABSENT = ("Carl Dietz", "Harbor City")


def team_line(city: str, name: str, **values: int) -> dict[str, str]:
    return {"TEAM-CITY": city, "TEAM-NAME": name, **{f"TEAM-{field}": str(value) for field, value in values.items()}}


HOME = team_line(
    "Harbor City", "Gulls", PTS=104, PTS_QTR1=30, PTS_QTR2=24, PTS_QTR3=28, PTS_QTR4=22,
    REB=45, AST=25, TOV=12, FG_PCT=48, FG3_PCT=37, FT_PCT=79, WINS=32, LOSSES=18,
)  # fmt: skip
VISITORS = team_line(
    "Redwater", "Miners", PTS=98, PTS_QTR1=21, PTS_QTR2=30, PTS_QTR3=23, PTS_QTR4=24,
    REB=41, AST=20, TOV=15, FG_PCT=44, FG3_PCT=30, FT_PCT=81, WINS=17, LOSSES=33,
)  # fmt: skip


def game_record() -> dict[str, Any]:
    """Return the record of a game on a Friday: Harbor City Gulls 104, Redwater Miners 98."""
    rows = [dict(zip(("PLAYER_NAME", "TEAM_CITY", "START_POSITION", *FIELDS), row, strict=True)) for row in PLAYERS]
    absent = dict.fromkeys(("START_POSITION", *FIELDS), "N/A")
    rows.append({"PLAYER_NAME": ABSENT[0], "TEAM_CITY": ABSENT[1], **absent})
    box = {name: {str(key): str(row[name]) for key, row in enumerate(rows)} for name in rows[0]}
    return {
        "home_name": "Gulls", "home_city": "Harbor City", "home_line": dict(HOME),
        "vis_name": "Miners", "vis_city": "Redwater", "vis_line": dict(VISITORS),
        "day": "02_03_17", "box_score": box,
    }  # fmt: skip


def game_document(text: str, id: str = "report") -> Document:
    return Document(id=id, text=text, data=game_record())
