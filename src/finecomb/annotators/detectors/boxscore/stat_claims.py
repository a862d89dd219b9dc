"""Claims about the lines of players and teams: counts, shooting lines, percentages, wins and losses."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from finecomb.annotators.detectors.boxscore.claims import Claim, Entity, Mention, Slip
from finecomb.annotators.detectors.boxscore.discourse import PatternMatch, Scene
from finecomb.annotators.detectors.boxscore.record import Player, Team
from finecomb.annotators.detectors.boxscore.report_parser import table

_FEWEST_POINTS = 60  # fewer are never a team's total


def period_kind(match: PatternMatch) -> str:
    """`average` or `combined` when a count sums up several games, else empty."""
    if match.before("averaged") or match.then("per_game"):
        return "average"
    if match.then("over_games_after"):
        return "combined"
    return "combined" if match.before("combined") and match.scene.has("several") else ""


def value_of(entity: Entity, field: str | None) -> int | None:
    """What the record says of a player or team; None when it says nothing."""
    if isinstance(entity, Player):
        return entity.count(field) if field else None
    return entity.line.get(field) if isinstance(entity, Team) and field else None


def field_of(entity: Entity, statistic: str) -> str | None:
    """The record's field for a statistic; None when it does not count it for such an entity."""
    fields: dict[str, str] = table("statistics")["counts"].get(statistic, {})
    return fields.get("player" if isinstance(entity, Player) else "team")


def counted(value: int, statistic: str) -> str:
    """So many of what is counted, in words: `1 steal`, `9 assists`."""
    return f"{value} {statistic.removesuffix('s') if value == 1 else statistic}"


def _the(entity: Entity) -> str:
    return str(entity) if isinstance(entity, Player) else f"the {entity}"


# --- counts -------------------------------------------------------------------------------------------------------


def counts(scene: Scene) -> Iterator[Claim]:
    """`21 points`, `a 12-rebound`, `a pair of steals`, by player or team."""
    for match in scene.find("count"):
        number, what = match.at("n"), match.at("s")
        if number is not None and what is not None and _is_total(match):
            yield from _counts(match, number, scene.words[what].value, _whose(match, number))


_ELSEWHERE = (
    "over_games",
    "pluperfect",
    "share_of",
    "nth_time",
    "season_best",
    "outing_before",
)  # what precedes a count that is no line of this game


def _is_total(match: PatternMatch) -> bool:
    """Whether a count is somebody's total in this game, and not a share of it, a bound, a lead, or another game's."""
    if period_kind(match) or match.then("not_a_total") or any(match.before(name) for name in _ELSEWHERE):
        return False
    if match.before("not_exact", 24) and not match.before("exact", 30):
        return False
    if " more " in match.raw[0] and match.then("more_than"):
        return False
    return not _is_of_another_day(match)


def _is_of_another_day(match: PatternMatch) -> bool:
    """Whether the clause goes on with a day that is not the game's: `scored 40 points on Wednesday`."""
    after, date = match.then("of_another_day"), match.scene.game.date
    day = after.at("d") if after else None
    return day is not None and date is not None and match.scene.words[day].value != date.weekday()


def _whose(match: PatternMatch, number: int) -> tuple[Mention, ...]:
    """The subject, unless `from` or `by` names somebody after, or the words tell what was done to the other team."""
    scene, after = match.scene, match.then("given_by") or match.then("listed_by")
    at = after.at("w") if after else None
    subject = scene.subjects[number]
    done_to_others = {"Spoints": "conceded", "Sturnovers": "forced"}.get(match["s"])
    if done_to_others and match.before(done_to_others, 80):
        return scene.opponents(subject)
    if after is None or at is None or (scene.words[at].code != "P" and not scene.team(at)):
        return subject
    named = (scene.names[at], scene.names[at + 2]) if after["q"] else (scene.names[at],)
    return named if after["by"] != "for" else subject or named


def _counts(match: PatternMatch, number: int, statistic: str, whose: tuple[Mention, ...]) -> Iterator[Claim]:
    scene = match.scene
    one = partial(_count, scene, number, statistic)
    players = tuple(name for name in whose if name.is_player)
    if whose and not players and match.before("of_some", 50):
        if match.before("of_reserves", 50):
            yield Claim(whose[:1], partial(_bench_count, scene, number, statistic))
    elif len(players) < 2:
        yield from (Claim((name,), one) for name in whose[:1])
    elif match.before("together", 60) or match.then("between_them"):
        yield Claim(players, partial(_sum, scene, number, statistic))
    elif in_turn := _in_turn(match, players):
        yield Claim((in_turn,), one)
    elif _is_apiece(match):
        yield from (Claim((name,), one) for name in players)
    else:
        yield Claim(players[-1:], one)


def _is_apiece(match: PatternMatch) -> bool:
    """`a pair of 16-point efforts`, `15 points apiece`."""
    start, end = max(0, match.raw.start() - 60), match.raw.end() + 30
    return any(start <= other.raw.start() and other.raw.end() <= end for other in match.scene.find("each"))


def _in_turn(match: PatternMatch, players: tuple[Mention, ...]) -> Mention | None:
    """The player of `X and Y had 34 points and 31 points , respectively`, by the order of the numbers."""
    if not match.scene.has("respectively"):
        return None
    places = [other.raw.start() for other in match.scene.find("count") if other["s"] == match["s"]]
    order = places.index(match.raw.start())
    return players[order] if len(places) == len(players) else None


def _count(scene: Scene, number: int, statistic: str, entity: Entity) -> Iterator[Slip]:
    field = field_of(entity, statistic)
    value, word = value_of(entity, field), scene.words[number]
    kind = "player" if isinstance(entity, Player) else "team"
    if value is None or (kind == "team" and statistic == "points" and word.value < _FEWEST_POINTS):
        return
    flags = {
        "a": word.value == 1 and not value,
        "elsewhere": scene.elsewhere,
        "period": scene.has("when"),
        "absent": isinstance(entity, Player) and entity.absent,
    }
    claim = f"{_the(entity)} had {counted(word.value, statistic)}"
    flag_names = (name for name, holds in flags.items() if holds)
    yield from scene.wrong_number(number, f"{kind}.{statistic}", claim, value, f"{field} of {entity}", *flag_names)


def _total(players: list[Player], field: str | None) -> int | None:
    values = [value_of(player, field) for player in players]
    return None if None in values or not values else sum(value for value in values if value is not None)


def _bench_count(scene: Scene, number: int, statistic: str, team: Entity) -> Iterator[Slip]:
    """`the bench chipped in 58 points`: the sum over those who did not start."""
    played = scene.game.of(team) if isinstance(team, Team) else []
    field = table("statistics")["counts"][statistic]["player"]
    total = _total([player for player in played if player.starter is False], field)
    if total is not None:
        claim = f"the bench of the {team} had {counted(scene.words[number].value, statistic)}"
        yield from scene.wrong_number(number, "bench.sum", claim, total, f"{field} of those without START_POSITION")


def _sum(scene: Scene, number: int, statistic: str, *players: Entity) -> Iterator[Slip]:
    """`X and Y combined for 42 points`."""
    field = field_of(players[0], statistic)
    total = _total([player for player in players if isinstance(player, Player)], field)
    if total is not None:
        who = " and ".join(map(str, players))
        claim = f"{who} had {counted(scene.words[number].value, statistic)} together"
        yield from scene.wrong_number(number, "players.sum", claim, total, f"{field} of {who}")


def bare(scene: Scene) -> Iterator[Claim]:
    """`chipped in 13`, where points go without saying."""
    for match in scene.find("bare"):
        number, whose = match.at("n"), match.whose_at("n")
        if number is not None and len(whose) == 1 and whose[0].is_player:
            yield Claim(whose, partial(_count, scene, number, "points"))


# --- shooting -----------------------------------------------------------------------------------------------------


def shooting(scene: Scene) -> Iterator[Claim]:
    """`8 - for - 12`, `3 - of - 5 from long range`, `( 7 - 14 FG , 2 - 5 3Pt )`."""
    lines = table("statistics")["lines"]
    for match in scene.find("shooting"):
        hits, tried, at = match.at("made"), match.at("tried"), match.at("where")
        line = scene.words[at].value if at is not None and scene.words[at].value in lines else None
        if hits is None or tried is None or not _is_line(match, line) or _is_part(match):
            continue
        whose = scene.subjects[hits]
        if whose and not (len(whose) > 1 and match.before("combined")):
            yield Claim(whose[-1:], partial(_line, scene, hits, tried, line or "field goals"))


def _is_part(match: PatternMatch) -> bool:
    """Whether a line or percentage is of one period, of several games or of another one."""
    told_before = any(match.before(name) for name in ("pluperfect", "outing_before"))
    told_after = period_kind(match) or match.then("in_a_period") or _is_of_another_day(match)
    return bool(told_before or told_after)


def _is_line(match: PatternMatch, line: str | None) -> bool:
    """Whether two numbers are makes and attempts: `of` or `for` between them, or a shooting word behind them."""
    if not match["of"]:
        return match["where"].startswith("L") and line is not None
    return line is not None or (not match["where"] and match.then("shooting_alone") is not None)


def _line(scene: Scene, hits: int, tried: int, line: str, player: Entity) -> Iterator[Slip]:
    if isinstance(player, Player):
        claim = f"{player} made {scene.quote(hits)} of {scene.quote(tried)} {line}"
        for number, field in zip((hits, tried), table("statistics")["lines"][line]["player"], strict=True):
            value = player.count(field)
            if value is not None:
                yield from scene.wrong_number(number, f"player.line {line}", claim, value, f"{field} of {player}")


def percentages(scene: Scene) -> Iterator[Claim]:
    """`48 percent from the field`, by team or player."""
    for match in scene.find("percent", "percent_there"):
        number, at = match.at("n"), match.at("l")
        if number is None or at is None or _is_part(match) or _is_unclear_percentage(match):
            continue
        after = match.then("percent_of")
        team = after.team("t") if after else None
        whose = (team,) if team else scene.subjects[number][:1]
        if whose and scene.words[at].value in table("statistics")["lines"]:
            yield Claim(whose, partial(_percent, scene, number, scene.words[at].value))


def _is_unclear_percentage(match: PatternMatch) -> bool:
    """Whether a percentage is a bound, a season's, or that of a team without one of its players."""
    return match.before("percent_unclear") or match.before("besides") or match.then("percent_of_season") is not None


def _percent(scene: Scene, number: int, line: str, entity: Entity) -> Iterator[Slip]:
    field = table("statistics")["lines"][line]["percent"]["player" if isinstance(entity, Player) else "team"]
    value, percent = value_of(entity, field), scene.words[number].value
    if value is not None:
        near = ["near"] if abs(value - percent) == 1 else []
        claim = f"{_the(entity)} made {percent} percent of {line}"
        yield from scene.wrong_number(number, "percent", claim, value, f"{field} of {entity}", *near)


# --- wins and losses ----------------------------------------------------------------------------------------------


def records(scene: Scene) -> Iterator[Claim]:
    """`Hawks ( 28 - 20 )`, `improved to 28 - 20`: wins and losses after the game."""
    for match in scene.find("record", "record_now"):
        won, lost = match.at("won"), match.at("lost")
        name = match.team("t") if match["t"] else next(iter(match.whose_at("won")), None)
        if name and not name.is_player and won is not None and lost is not None:
            yield Claim((name,), partial(_record, scene, won, lost))


def _record(scene: Scene, won: int, lost: int, team: Entity) -> Iterator[Slip]:
    claim = f"the {team} had {scene.quote(won)} wins and {scene.quote(lost)} losses"
    for number, field in ((won, "TEAM-WINS"), (lost, "TEAM-LOSSES")):
        value = value_of(team, field)
        if value is not None:
            where = f"{field} of {team}"
            yield from scene.wrong_number(number, "team.record", claim, value, where, unit=f"record {won}")


FAMILY = (counts, bare, shooting, percentages, records)
