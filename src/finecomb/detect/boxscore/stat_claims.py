"""Claims about the lines of players and teams: counts, shooting lines, percentages, wins and losses."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from finecomb.detect.boxscore.claims import Claim, Entity, Mention, Slip
from finecomb.detect.boxscore.discourse import PatternMatch, Scene
from finecomb.detect.boxscore.reading import table
from finecomb.detect.boxscore.record import Player, Team

_FEWEST_POINTS = 60  # fewer are never a team's total


def beyond(found: PatternMatch) -> str:
    """`average` or `combined` when a count sums up several games, else empty."""
    if found.before("averaged") or found.then("per_game"):
        return "average"
    return "combined" if found.before("combined") and found.scene.has("several") else ""


def value_of(entity: Entity, field: str | None) -> int | None:
    """What the record says of a player or team; None when it says nothing."""
    if isinstance(entity, Player):
        return entity.count(field) if field else None
    return entity.line.get(field) if isinstance(entity, Team) and field else None


def field_of(entity: Entity, statistic: str) -> str | None:
    """The record's field for a statistic; None when it does not count it for such an entity."""
    known: dict[str, str] = table("statistics")["counts"].get(statistic, {})
    return known.get("player" if isinstance(entity, Player) else "team")


# --- counts -------------------------------------------------------------------------------------------------------


def counts(scene: Scene) -> Iterator[Claim]:
    """`21 points`, `a 12-rebound`, `a pair of steals`, by player or team."""
    for found in scene.find("count"):
        number, at = found.at("n"), found.at("s")
        if number is None or at is None or beyond(found) or found.then("not_a_total"):
            continue
        if not found.before("not_exact", 24) or found.before("exact", 30):
            yield from _counts(found, number, scene.words[at].value, _whose(found, number))


def _whose(found: PatternMatch, number: int) -> tuple[Mention, ...]:
    """The subject, unless `from` or `by` names somebody right after."""
    scene, after = found.scene, found.then("given_by")
    at = after.at("w") if after else None
    subject = scene.subjects[number]
    if after is None or at is None or (scene.words[at].code != "P" and not scene.team(at)):
        return subject
    named = (scene.names[at], scene.names[at + 2]) if after["q"] else (scene.names[at],)
    return named if after["by"] != "for" else subject or named


def _counts(found: PatternMatch, number: int, statistic: str, whose: tuple[Mention, ...]) -> Iterator[Claim]:
    scene = found.scene
    one = partial(_count, scene, number, statistic)
    players = tuple(name for name in whose if name.is_player)
    if whose and not players and found.before("of_some", 50):
        if found.before("of_reserves", 50):
            yield Claim(whose[:1], partial(_bench_count, scene, number, statistic))
    elif len(players) < 2:
        yield from (Claim((name,), one) for name in whose[:1])
    elif found.before("together", 60):
        yield Claim(players, partial(_sum, scene, number, statistic))
    elif _each(found):
        yield from (Claim((name,), one) for name in players)
    else:
        yield Claim(players[-1:], one)


def _each(found: PatternMatch) -> bool:
    """`a pair of 16-point efforts`, `15 points apiece`."""
    start, end = max(0, found.match.start() - 60), found.match.end() + 30
    return any(start <= each.match.start() and each.match.end() <= end for each in found.scene.find("each"))


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
    claim = f"{entity}: {scene.said(number)} {statistic}"
    known = (name for name, holds in flags.items() if holds)
    yield from scene.wrong_number(number, f"{kind}.{statistic}", claim, value, f"{field} of {entity}", *known)


def _total(players: list[Player], field: str | None) -> int | None:
    values = [value_of(player, field) for player in players]
    return None if None in values or not values else sum(value for value in values if value is not None)


def _bench_count(scene: Scene, number: int, statistic: str, team: Entity) -> Iterator[Slip]:
    """`the bench chipped in 58 points`: the sum over those who did not start."""
    played = scene.game.of(team) if isinstance(team, Team) else []
    field = table("statistics")["counts"][statistic]["player"]
    total = _total([player for player in played if player.starter is False], field)
    if total is not None:
        claim = f"the bench of {team}: {scene.said(number)} {statistic}"
        yield from scene.wrong_number(number, "bench.sum", claim, total, f"{field} of those without START_POSITION")


def _sum(scene: Scene, number: int, statistic: str, *players: Entity) -> Iterator[Slip]:
    """`X and Y combined for 42 points`."""
    field = field_of(players[0], statistic)
    total = _total([player for player in players if isinstance(player, Player)], field)
    if total is not None:
        who = " and ".join(map(str, players))
        claim = f"{who} together: {scene.said(number)} {statistic}"
        yield from scene.wrong_number(number, "players.sum", claim, total, f"{field} of {who}")


def bare(scene: Scene) -> Iterator[Claim]:
    """`chipped in 13`, where points go without saying."""
    for found in scene.find("bare"):
        number, whose = found.at("n"), found.whose_at("n")
        if number is not None and len(whose) == 1 and whose[0].is_player:
            yield Claim(whose, partial(_count, scene, number, "points"))


# --- shooting -----------------------------------------------------------------------------------------------------


def shooting(scene: Scene) -> Iterator[Claim]:
    """`8 - for - 12`, `3 - of - 5 from long range`, `( 7 - 14 FG , 2 - 5 3Pt )`."""
    lines = table("statistics")["lines"]
    for found in scene.find("shooting"):
        made, tried, at = found.at("made"), found.at("tried"), found.at("where")
        line = scene.words[at].value if at is not None and scene.words[at].value in lines else None
        if made is None or tried is None or beyond(found) or not _is_line(found, line):
            continue
        whose = scene.subjects[made]
        if whose and not (len(whose) > 1 and found.before("combined")):
            yield Claim(whose[-1:], partial(_line, scene, made, tried, line or "field goals"))


def _is_line(found: PatternMatch, line: str | None) -> bool:
    """Whether two numbers are makes and attempts: `of` or `for` between them, or a shooting word behind them."""
    if not found["of"]:
        return found["where"].startswith("L") and line is not None
    return line is not None or (not found["where"] and found.then("shooting_alone") is not None)


def _line(scene: Scene, made: int, tried: int, line: str, player: Entity) -> Iterator[Slip]:
    if isinstance(player, Player):
        claim = f"{player}: {scene.said(made)} of {scene.said(tried)} {line}"
        for number, field in zip((made, tried), table("statistics")["lines"][line]["player"], strict=True):
            value = player.count(field)
            if value is not None:
                yield from scene.wrong_number(number, f"player.line {line}", claim, value, f"{field} of {player}")


def percentages(scene: Scene) -> Iterator[Claim]:
    """`48 percent from the field`, by team or player."""
    for found in scene.find("percent", "percent_there"):
        number, at = found.at("n"), found.at("l")
        if number is None or at is None or beyond(found) or found.before("percent_unclear"):
            continue
        after = found.then("percent_of")
        team = after.team("t") if after else None
        whose = (team,) if team else scene.subjects[number][:1]
        if whose and scene.words[at].value in table("statistics")["lines"]:
            yield Claim(whose, partial(_percent, scene, number, scene.words[at].value))


def _percent(scene: Scene, number: int, line: str, entity: Entity) -> Iterator[Slip]:
    field = table("statistics")["lines"][line]["percent"]["player" if isinstance(entity, Player) else "team"]
    value, said = value_of(entity, field), scene.words[number].value
    if value is not None:
        near = ["near"] if abs(value - said) == 1 else []
        claim = f"{entity}: {said} percent, {line}"
        yield from scene.wrong_number(number, "percent", claim, value, f"{field} of {entity}", *near)


# --- wins and losses ----------------------------------------------------------------------------------------------


def records(scene: Scene) -> Iterator[Claim]:
    """`Hawks ( 28 - 20 )`, `improved to 28 - 20`: wins and losses after the game."""
    for found in scene.find("record", "record_now"):
        won, lost = found.at("won"), found.at("lost")
        name = found.team("t") if found["t"] else next(iter(found.whose_at("won")), None)
        if name and not name.is_player and won is not None and lost is not None:
            yield Claim((name,), partial(_record, scene, won, lost))


def _record(scene: Scene, won: int, lost: int, team: Entity) -> Iterator[Slip]:
    claim = f"{team}: {scene.said(won)}-{scene.said(lost)}"
    for number, field in ((won, "TEAM-WINS"), (lost, "TEAM-LOSSES")):
        value = value_of(team, field)
        if value is not None:
            where = f"{field} of {team}"
            yield from scene.wrong_number(number, "team.record", claim, value, where, unit=f"record {won}")


FAMILY = (counts, bare, shooting, percentages, records)
