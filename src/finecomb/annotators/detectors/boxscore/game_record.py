"""The record of a basketball game: a RotoWire box score, the season around it, and the problems of a record."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from finecomb.core.errors import shorten

SIDES = ("home", "vis")
SEASON = "season"
"""Field of a record with the last and the next game of both teams."""
_GAME_FIELDS = ("box_score", "home_name", "vis_name", "home_line", "vis_line")
_DATE_FORMS = ("%m_%d_%y", "%Y-%m-%d", "%m/%d/%y", "%m/%d/%Y")
SeasonKey = Literal["last", "next", "results"]


def game_date(value: Any) -> datetime.date | None:
    """The day of a game, written as in `02_03_17` or `2017-02-03`; None when it is neither.

    >>> game_date("02_03_17").strftime("%A")
    'Friday'
    """
    text = value.strip() if isinstance(value, str) else ""
    for form in _DATE_FORMS:
        try:
            return datetime.datetime.strptime(text, form).date()
        except ValueError:
            continue
    return None


def is_game(data: Any) -> bool:
    """Whether a record means to be a game: it names a box score, a team or a team's line."""
    return isinstance(data, Mapping) and any(name in data for name in _GAME_FIELDS)


def game_problem(data: Any) -> str:
    """Why a record that means to be a game cannot be shown as a box score; empty when it can."""
    if not is_game(data):
        return ""
    for side in SIDES:
        if not team_name(data, side):
            return f"{side}_name is missing"
    if data.get("day") is not None and game_date(data["day"]) is None:
        return f"day {shorten(repr(data['day']), 40)} is no date such as 02_03_17 or 2017-02-03"
    return _box_problem(data["box_score"]) if "box_score" in data else "box_score is missing"


def box_score_problem(data: Any) -> str:
    """The warning of `check` about a record that means to be a game and is not a box score."""
    problem = game_problem(data)
    return f"not a box score: {problem}" if problem else ""


def _box_problem(box: Any) -> str:
    if not isinstance(box, Mapping) or not all(isinstance(column, Mapping) for column in box.values()):
        return "box_score is not an object with a column of values for each statistic"
    players = box.get("PLAYER_NAME")
    if not players:
        return "box_score has no players: its column PLAYER_NAME is missing or empty"
    for name, column in box.items():
        if missing := [key for key in players if key not in column]:
            return f"box_score: column {name} has no value for player {missing[0]} ({players[missing[0]]})"
    return ""


def team_name(data: Mapping[str, Any], side: str) -> str:
    """What a side is called; empty when the record does not say."""
    line = data.get(f"{side}_line")
    named = line.get("TEAM-NAME") if isinstance(line, Mapping) else None
    name = data.get(f"{side}_name") or named
    return name.strip() if isinstance(name, str) else ""


def _is_same_team(name: str, other: str) -> bool:
    """Whether two names are one team's: `Lakers` is `Los Angeles Lakers`."""
    short, long = sorted((name.casefold(), other.casefold()), key=len)
    return bool(short) and (long == short or long.endswith(f" {short}"))


def _points(record: Mapping[str, Any], side: str) -> int | None:
    line = record.get(f"{side}_line")
    points = str(line.get("TEAM-PTS", "")).strip() if isinstance(line, Mapping) else ""
    return int(points) if points.isascii() and points.isdigit() else None


@dataclass(frozen=True, slots=True)
class SeasonGame:
    """One game of a season: when, who, and its record."""

    day: datetime.date
    home: str
    vis: str
    record: Mapping[str, Any] = field(repr=False, hash=False)

    def has_team(self, team: str) -> bool:
        """Whether a team played in it."""
        return _is_same_team(self.home, team) or _is_same_team(self.vis, team)

    def result(self, team: str) -> str:
        """`W` where a team won it, `L` where it lost; empty where the points are not known."""
        home, vis = (_points(self.record, side) for side in SIDES)
        if home is None or vis is None or home == vis:
            return ""
        return "W" if (home > vis) == _is_same_team(self.home, team) else "L"


@dataclass(frozen=True, slots=True)
class Season:
    """The games of a season in the order of their days."""

    games: tuple[SeasonGame, ...] = ()

    @classmethod
    def from_records(cls, records: Iterable[Mapping[str, Any]]) -> Season:
        """The records that have a day and two teams; the others say nothing about before and after."""
        games = [
            SeasonGame(day, team_name(record, "home"), team_name(record, "vis"), record)
            for record in records
            if (day := game_date(record.get("day"))) is not None
        ]
        return cls(tuple(sorted((game for game in games if game.home and game.vis), key=lambda game: game.day)))

    def game(self, day: datetime.date | None, home: str, vis: str) -> SeasonGame | None:
        """The game of two teams on a day."""
        return next(
            (game for game in self.games if game.day == day and game.has_team(home) and game.has_team(vis)), None
        )

    def neighbouring_games(self, team: str, day: datetime.date) -> dict[SeasonKey, Any]:
        """The records of a team's last game before a day and of its next game after it; None where there is none.

        `results` are its results before that day, `W` or `L` for each, the latest last; absent where none is known.
        """
        games = [game for game in self.games if game.has_team(team)]
        before = [game for game in games if game.day < day]
        after = [game.record for game in games if game.day > day]
        known = itertools.takewhile(bool, (game.result(team) for game in reversed(before)))
        results = "".join(known)[::-1]
        around: dict[SeasonKey, Any] = {
            "last": before[-1].record if before else None,
            "next": after[0] if after else None,
        }
        return around | {"results": results} if results else around


def add_season(data: Any, season: Season) -> Any:
    """A game's record with the last and next games of its teams; anything else as it is."""
    day = game_date(data.get("day")) if is_game(data) else None
    if day is None:
        return data
    return {**data, SEASON: {side: season.neighbouring_games(team_name(data, side), day) for side in SIDES}}
