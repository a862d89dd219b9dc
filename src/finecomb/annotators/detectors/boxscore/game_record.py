"""The record of a basketball game: a RotoWire box score, the neighbouring games of the season, and validation."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from finecomb.core.errors import shorten

SIDES = ("home", "vis")
SEASON_FIELD = "season"
"""Field of a game record that holds the last and next games of both teams."""
_GAME_FIELDS = ("box_score", "home_name", "vis_name", "home_line", "vis_line")
_DATE_FORMATS = ("%m_%d_%y", "%Y-%m-%d", "%m/%d/%y", "%m/%d/%Y")
SeasonKey = Literal["last", "next", "results"]


def parse_game_date(value: Any) -> datetime.date | None:
    """Parse the date of a game, written as `02_03_17` or `2017-02-03`, or return None.

    >>> parse_game_date("02_03_17").strftime("%A")
    'Friday'
    """
    text = value.strip() if isinstance(value, str) else ""
    for form in _DATE_FORMATS:
        try:
            return datetime.datetime.strptime(text, form).date()
        except ValueError:
            continue
    return None


def is_game_record(data: Any) -> bool:
    """Return whether data looks like a game record, with a box score, a team name or team statistics."""
    return isinstance(data, Mapping) and any(name in data for name in _GAME_FIELDS)


def game_record_problem(data: Any) -> str:
    """Return why a game record cannot be shown as a box score, or an empty string."""
    if not is_game_record(data):
        return ""
    for side in SIDES:
        if not team_name(data, side):
            return f"{side}_name is missing"
    if data.get("day") is not None and parse_game_date(data["day"]) is None:
        return f"day {shorten(repr(data['day']), 40)} is not a date such as 02_03_17 or 2017-02-03"
    if "box_score" not in data:
        return "box_score is missing"
    box = data["box_score"]
    if not isinstance(box, Mapping) or not all(isinstance(column, Mapping) for column in box.values()):
        return "box_score must be an object with one column per statistic"
    players = box.get("PLAYER_NAME")
    if not players:
        return "box_score column PLAYER_NAME is missing or empty"
    for name, column in box.items():
        if missing := [key for key in players if key not in column]:
            return f"box_score column {name} has no value for player {missing[0]} ({players[missing[0]]})"
    return ""


def box_score_warning(data: Any) -> str:
    """Return the warning that `check` reports for an invalid game record, or an empty string."""
    problem = game_record_problem(data)
    return f"not a box score: {problem}" if problem else ""


def team_name(data: Mapping[str, Any], side: str) -> str:
    """Return the name of a side's team, or an empty string if it is missing."""
    line = data.get(f"{side}_line")
    named = line.get("TEAM-NAME") if isinstance(line, Mapping) else None
    name = data.get(f"{side}_name") or named
    return name.strip() if isinstance(name, str) else ""


def _is_same_team(name: str, other: str) -> bool:
    """Return whether two names belong to the same team, as `Lakers` and `Los Angeles Lakers` do."""
    short, long = sorted((name.casefold(), other.casefold()), key=len)
    return bool(short) and (long == short or long.endswith(f" {short}"))


@dataclass(frozen=True, slots=True)
class SeasonGame:
    """A game of a season with its date, teams and record."""

    day: datetime.date
    home: str
    vis: str
    record: Mapping[str, Any] = field(repr=False, hash=False)

    def has_team(self, team: str) -> bool:
        """Return whether a team played in the game."""
        return _is_same_team(self.home, team) or _is_same_team(self.vis, team)

    def result(self, team: str) -> str:
        """Return `W` if the team won, `L` if it lost, and an empty string if unknown."""
        points: list[int] = []
        for side in SIDES:
            line = self.record.get(f"{side}_line")
            text = str(line.get("TEAM-PTS", "")).strip() if isinstance(line, Mapping) else ""
            points += [int(text)] if text.isascii() and text.isdigit() else []
        if len(points) < 2 or points[0] == points[1]:
            return ""
        return "W" if (points[0] > points[1]) == _is_same_team(self.home, team) else "L"


@dataclass(frozen=True, slots=True)
class Season:
    """The games of a season by date."""

    games: tuple[SeasonGame, ...] = ()

    @classmethod
    def from_records(cls, records: Iterable[Mapping[str, Any]]) -> Season:
        """Build a season from the records that have a date and two teams. Other records are ignored."""
        games = [
            SeasonGame(day, team_name(record, "home"), team_name(record, "vis"), record)
            for record in records
            if (day := parse_game_date(record.get("day"))) is not None
        ]
        return cls(tuple(sorted((game for game in games if game.home and game.vis), key=lambda game: game.day)))

    def find_game(self, day: datetime.date | None, home: str, vis: str) -> SeasonGame | None:
        """Return the game of two teams on a day, or None."""
        return next(
            (game for game in self.games if game.day == day and game.has_team(home) and game.has_team(vis)), None
        )

    def neighbouring_games(self, team: str, day: datetime.date) -> dict[SeasonKey, Any]:
        """Return the records of a team's last game before a day and next game after it, as `last` and `next`.

        A game that does not exist is None. `results` has `W` or `L` for each earlier game, oldest first. It starts
        after the most recent game without a known result and is absent if that leaves no game.
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


def add_neighbouring_games(data: Any, season: Season) -> Any:
    """Return a game record with the last and next games of its teams added. Other data is returned unchanged."""
    day = parse_game_date(data.get("day")) if is_game_record(data) else None
    if day is None:
        return data
    return {**data, SEASON_FIELD: {side: season.neighbouring_games(team_name(data, side), day) for side in SIDES}}
