"""A game parsed from a RotoWire-style record: teams, players and periods."""

from __future__ import annotations

import datetime
import functools
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from finecomb.annotators.detectors.boxscore.game_record import SEASON_FIELD, SIDES, parse_game_date, team_name

QUARTERS = (1, 2, 3, 4)
_NAME_SUFFIXES = {"jr", "sr", "ii", "iii", "iv", "v"}


@dataclass(frozen=True, eq=False)
class Team:
    """A team of the game. `line` holds the team's statistics by field."""

    name: str
    city: str
    side: str
    line: Mapping[str, int]

    def __str__(self) -> str:
        return f"{self.city} {self.name}".strip()


@dataclass(frozen=True, eq=False)
class Player:
    """A player's row of the box score."""

    name: str
    team: Team | None = None
    starter: bool | None = None
    line: Mapping[str, int] = field(default_factory=dict)
    absent: bool = False
    """True for a player listed with `N/A` in every field, who did not play."""

    def __str__(self) -> str:
        return self.name

    @property
    def has_played(self) -> bool:
        """True if the record has any statistic above zero for the player."""
        return bool(self.line.get("MIN")) or any(self.line.values())

    def statistic(self, name: str) -> int | None:
        """Return a statistic of the player, or None if it is unknown."""
        return 0 if self.absent else self.line.get(name)

    @functools.cached_property
    def name_words_without_suffix(self) -> tuple[str, ...]:
        """The words of the name without dots and suffixes. For example, `J.J. Barea Jr.` gives `JJ`, `Barea`."""
        words = tuple(re.sub(r"[.,]", "", word) for word in self.name.split())
        return words[:-1] if len(words) > 1 and words[-1].lower() in _NAME_SUFFIXES else words


@dataclass(frozen=True, slots=True)
class TeamSeason:
    """A team's next game and its earlier results in the season."""

    opponent: str = ""
    """The next opponent, empty if unknown."""
    host: str = ""
    """The home team of the next game."""
    day: datetime.date | None = None
    results: str = ""
    """`W` or `L` for each earlier game, oldest first."""


@dataclass(frozen=True, eq=False)
class Game:
    """The facts of one game. Facts missing from the record are unknown and never checked."""

    home: Team
    vis: Team
    players: tuple[Player, ...]
    date: datetime.date | None = None
    problems: tuple[str, ...] = field(default=())
    season: Mapping[str, TeamSeason] = field(default_factory=dict)
    """Season data by side, empty if none was given."""

    @property
    def teams(self) -> tuple[Team, Team]:
        """Both teams, home team first."""
        return self.home, self.vis

    def opponent(self, team: Team) -> Team:
        """Return the opponent of a team."""
        return self.vis if team is self.home else self.home

    def final_points(self, team: Team) -> int | None:
        """Return the final score of a team."""
        return team.line.get("TEAM-PTS")

    @property
    def winner(self) -> Team | None:
        """The team with more points, None if unknown."""
        home, vis = self.final_points(self.home), self.final_points(self.vis)
        if home is None or vis is None or home == vis:
            return None
        return self.home if home > vis else self.vis

    def quarter_points(self, team: Team, quarters: tuple[int, ...]) -> int | None:
        """Return the points of a team in the given quarters."""
        values = [team.line.get(f"TEAM-PTS_QTR{quarter}") for quarter in quarters]
        return None if None in values else sum(value for value in values if value is not None)

    @property
    def has_overtime(self) -> bool | None:
        """True if the game went to overtime, None if unknown."""
        total, regular = self.final_points(self.home), self.quarter_points(self.home, QUARTERS)
        return None if total is None or regular is None else total != regular

    def team_players_who_played(self, team: Team) -> list[Player]:
        """Return the players of a team who played."""
        return [player for player in self.players if player.team is team and player.has_played]


def parse_game(data: Any) -> Game | None:
    """Parse the game in `document.data`, or return None if the data does not name two teams."""
    if not isinstance(data, Mapping):
        return None
    home, vis = (_parse_team(data, side) for side in SIDES)
    if home is None or vis is None:
        return None
    players, problems = _parse_players(data.get("box_score"), home, vis)
    date = parse_game_date(data.get("day"))
    if date is None:
        problems.append("the record has no valid game date")
    season: dict[str, TeamSeason] = {}
    seasons = data.get(SEASON_FIELD)
    for side in SIDES:
        around = seasons.get(side) if isinstance(seasons, Mapping) else None
        if not isinstance(around, Mapping):
            continue
        results, following = around.get("results"), around.get("next")
        known = results if isinstance(results, str) and set(results) <= {"W", "L"} else ""
        season[side] = TeamSeason(results=known)
        if isinstance(following, Mapping):
            host, visitor = (team_name(following, other) for other in SIDES)
            opponent = visitor if host == team_name(data, side) else host
            season[side] = TeamSeason(opponent, host, parse_game_date(following.get("day")), known)
    return Game(home, vis, players, date, tuple(problems), season)


def _parse_team(data: Mapping[str, Any], side: str) -> Team | None:
    line = data.get(f"{side}_line")
    fields = line if isinstance(line, Mapping) else {}
    name = _clean_text(data.get(f"{side}_name")) or _clean_text(fields.get("TEAM-NAME"))
    city = _clean_text(data.get(f"{side}_city")) or _clean_text(fields.get("TEAM-CITY"))
    return Team(name, city, side, _parse_numbers(fields)) if name else None


def _clean_text(value: Any) -> str:
    return value.strip() if isinstance(value, str) and value.strip() != "N/A" else ""


def _parse_number(value: Any) -> int | None:
    """Parse a number or a string of digits. Return None for anything else, such as `N/A`."""
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


def _parse_players(box: Any, home: Team, vis: Team) -> tuple[tuple[Player, ...], list[str]]:
    """Return the players in the order of the record, and the problems of the box score.

    Players who are listed several times with different statistics keep only their name.
    """
    if not isinstance(box, Mapping):
        return (), ["the record has no box score"]
    columns = {name: column for name, column in box.items() if isinstance(column, Mapping)}
    keys = sorted(columns.get("PLAYER_NAME", {}), key=lambda key: (len(key), key))
    rows = [{name: column.get(key) for name, column in columns.items()} for key in keys]
    rows = [row for row in rows if _clean_text(row.get("PLAYER_NAME"))]
    sides = _assign_teams(rows, home, vis)
    counts = Counter(_clean_text(row["PLAYER_NAME"]) for row in rows)
    by_name: dict[str, Player] = {}
    problems = []
    for row, team in zip(rows, sides, strict=True):
        line = _parse_numbers(
            {name: value for name, value in row.items() if not name.endswith(("NAME", "CITY", "POSITION"))}
        )
        starter = None if row.get("START_POSITION") is None else bool(_clean_text(row["START_POSITION"]))
        absent = not line and row.get("MIN") == "N/A"
        player = Player(_clean_text(row["PLAYER_NAME"]), team, starter, line, absent)
        before = by_name.get(player.name)
        if before is None:
            by_name[player.name] = player
        elif before.line != player.line or before.team is not player.team:
            by_name[player.name] = Player(player.name)  # known by name only
            problems.append(
                f"{player.name} is listed {counts[player.name]} times with different statistics, none of which is used"
            )
    return tuple(by_name.values()), list(dict.fromkeys(problems))


def _assign_teams(rows: list[dict[str, Any]], home: Team, vis: Team) -> list[Team | None]:
    """Assign each row to a team by city or, if both teams share a city, by the second block of starters."""
    if home.city != vis.city:
        sides = {home.city: home, vis.city: vis}
        return [sides.get(_clean_text(row.get("TEAM_CITY"))) for row in rows]
    starting = [bool(_clean_text(row.get("START_POSITION"))) for row in rows]
    second = next((index for index in range(1, len(rows)) if starting[index] and not starting[index - 1]), None)
    return [None if second is None else vis if index < second else home for index in range(len(rows))]
