"""The record behind a report: a RotoWire-style box score as teams, players and periods."""

from __future__ import annotations

import datetime
import functools
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from finecomb.annotators.detectors.boxscore.game_record import SEASON, SIDES, game_date, team_name

QUARTERS = (1, 2, 3, 4)
_SUFFIXES = {"jr", "sr", "ii", "iii", "iv", "v"}


@dataclass(frozen=True, eq=False)
class Team:
    """One side of the game; `line` holds what the record counts, by field."""

    name: str
    city: str
    side: str
    line: Mapping[str, int]

    def __str__(self) -> str:
        return f"{self.city} {self.name}".strip()


@dataclass(frozen=True, eq=False)
class Player:
    """One line of the box score."""

    name: str
    team: Team | None = None
    starter: bool | None = None
    line: Mapping[str, int] = field(default_factory=dict)
    absent: bool = False
    """Listed, but with `N/A` for everything: he did not play."""

    def __str__(self) -> str:
        return self.name

    @property
    def has_played(self) -> bool:
        """Whether the record counts anything for him."""
        return bool(self.line.get("MIN")) or any(self.line.values())

    def count(self, name: str) -> int | None:
        """What the record counts for him; None when it does not say."""
        return 0 if self.absent else self.line.get(name)

    @functools.cached_property
    def name_words(self) -> tuple[str, ...]:
        """The name in words without dots and suffixes: `J.J. Barea Jr.` is `JJ`, `Barea`."""
        words = tuple(re.sub(r"[.,]", "", word) for word in self.name.split())
        return words[:-1] if len(words) > 1 and words[-1].lower() in _SUFFIXES else words


@dataclass(frozen=True, slots=True)
class TeamSeason:
    """What a season says about one team around the game: its next game, and its results before."""

    opponent: str = ""
    """Whom it plays next; empty when no season says."""
    host: str = ""
    """Who is at home then."""
    day: datetime.date | None = None
    results: str = ""
    """`W` or `L` for each game before this one, the latest last."""


@dataclass(frozen=True, eq=False)
class Game:
    """What is known about one game. Whatever the record lacks is absent and is never compared with anything."""

    home: Team
    vis: Team
    players: tuple[Player, ...]
    date: datetime.date | None = None
    problems: tuple[str, ...] = field(default=())
    season: Mapping[str, TeamSeason] = field(default_factory=dict)
    """By side; empty where no season was given."""

    @property
    def teams(self) -> tuple[Team, Team]:
        """Home side first."""
        return self.home, self.vis

    def opponent(self, team: Team) -> Team:
        """The opponent."""
        return self.vis if team is self.home else self.home

    def points(self, team: Team) -> int | None:
        """Final score of one side."""
        return team.line.get("TEAM-PTS")

    @property
    def winner(self) -> Team | None:
        """Who scored more; None when the record does not say."""
        home, vis = self.points(self.home), self.points(self.vis)
        if home is None or vis is None or home == vis:
            return None
        return self.home if home > vis else self.vis

    def quarter_points(self, team: Team, quarters: tuple[int, ...]) -> int | None:
        """Points of one side in these quarters."""
        values = [team.line.get(f"TEAM-PTS_QTR{quarter}") for quarter in quarters]
        return None if None in values else sum(value for value in values if value is not None)

    @property
    def has_overtime(self) -> bool | None:
        """Whether four quarters were not enough; None when the record does not say."""
        total, regular = self.points(self.home), self.quarter_points(self.home, QUARTERS)
        return None if total is None or regular is None else total != regular

    def team_players(self, team: Team) -> list[Player]:
        """Those who played for one side."""
        return [player for player in self.players if player.team is team and player.has_played]


def read_game(data: Any) -> Game | None:
    """The game in `document.data`; None when there is nothing that looks like one."""
    if not isinstance(data, Mapping):
        return None
    home, vis = (_team(data, side) for side in SIDES)
    if home is None or vis is None:
        return None
    players, problems = _players(data.get("box_score"), home, vis)
    date, slips = _date(data.get("day"))
    return Game(home, vis, players, date, (*problems, *slips), _season(data))


def _season(data: Mapping[str, Any]) -> dict[str, TeamSeason]:
    """What the record's `season` says by side; see `finecomb.annotators.detectors.boxscore.game_record.add_season`."""
    around = data.get(SEASON)
    sides = {side: around.get(side) for side in SIDES} if isinstance(around, Mapping) else {}
    return {
        side: _team_season(team_name(data, side), value) for side, value in sides.items() if isinstance(value, Mapping)
    }


def _team_season(team: str, around: Mapping[str, Any]) -> TeamSeason:
    results = around.get("results")
    known = results if isinstance(results, str) and set(results) <= {"W", "L"} else ""
    following = around.get("next")
    if not isinstance(following, Mapping):
        return TeamSeason(results=known)
    home, vis = (team_name(following, side) for side in SIDES)
    return TeamSeason(vis if home == team else home, home, game_date(following.get("day")), known)


def _team(data: Mapping[str, Any], side: str) -> Team | None:
    line = data.get(f"{side}_line")
    fields = line if isinstance(line, Mapping) else {}
    name = _clean_text(data.get(f"{side}_name")) or _clean_text(fields.get("TEAM-NAME"))
    city = _clean_text(data.get(f"{side}_city")) or _clean_text(fields.get("TEAM-CITY"))
    return Team(name, city, side, _parse_numbers(fields)) if name else None


def _clean_text(value: Any) -> str:
    return value.strip() if isinstance(value, str) and value.strip() != "N/A" else ""


def _parse_number(value: Any) -> int | None:
    """A count of the record, written as a number or as digits; `N/A` and anything else is unknown."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return round(value)
    match = re.fullmatch(r"\s*(-?\d{1,6})(\.\d+)?\s*", value) if isinstance(value, str) else None
    return round(float(match[0])) if match else None


def _parse_numbers(fields: Mapping[str, Any]) -> dict[str, int]:
    numbers = {name: _parse_number(value) for name, value in fields.items()}
    return {name: value for name, value in numbers.items() if value is not None}


def _players(box: Any, home: Team, vis: Team) -> tuple[tuple[Player, ...], list[str]]:
    """Players in the record's order, visitors first as a rule; a name listed twice with different lines is left out."""
    if not isinstance(box, Mapping):
        return (), ["the record has no box score"]
    columns = {name: column for name, column in box.items() if isinstance(column, Mapping)}
    keys = sorted(columns.get("PLAYER_NAME", {}), key=lambda key: (len(key), key))
    rows = [{name: column.get(key) for name, column in columns.items()} for key in keys]
    rows = [row for row in rows if _clean_text(row.get("PLAYER_NAME"))]
    sides = _assign_teams(rows, home, vis)
    players = [_player(row, team) for row, team in zip(rows, sides, strict=True)]
    return _merge_duplicate_players(players)


def _player(row: Mapping[str, Any], team: Team | None) -> Player:
    line = _parse_numbers(
        {name: value for name, value in row.items() if not name.endswith(("NAME", "CITY", "POSITION"))}
    )
    starter = None if row.get("START_POSITION") is None else bool(_clean_text(row["START_POSITION"]))
    absent = not line and row.get("MIN") == "N/A"
    return Player(_clean_text(row["PLAYER_NAME"]), team, starter, line, absent)


def _merge_duplicate_players(players: list[Player]) -> tuple[tuple[Player, ...], list[str]]:
    counts = Counter(player.name for player in players)
    by_name: dict[str, Player] = {}
    problems = []
    for player in players:
        before = by_name.get(player.name)
        if before is None:
            by_name[player.name] = player
        elif before.line != player.line or before.team is not player.team:
            by_name[player.name] = Player(player.name)  # known to exist, nothing known about him
            problems.append(f"{player.name} is listed {counts[player.name]} times with different lines; none is used")
    return tuple(by_name.values()), list(dict.fromkeys(problems))


def _assign_teams(rows: list[dict[str, Any]], home: Team, vis: Team) -> list[Team | None]:
    """Whose player each row is: by city, or, where both teams share one, by the second block of starters."""
    if home.city != vis.city:
        sides = {home.city: home, vis.city: vis}
        return [sides.get(_clean_text(row.get("TEAM_CITY"))) for row in rows]
    starting = [bool(_clean_text(row.get("START_POSITION"))) for row in rows]
    second = next((at for at in range(1, len(rows)) if starting[at] and not starting[at - 1]), None)
    return [None if second is None else vis if at < second else home for at in range(len(rows))]


def _date(value: Any) -> tuple[datetime.date | None, list[str]]:
    """The day of the game, and what to say where the record has none."""
    day = game_date(value)
    return day, [] if day else ["the record does not say on which day the game was played"]
