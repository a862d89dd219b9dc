"""Claims about the lines of players and teams: counts, shooting lines, percentages, wins and losses."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from finecomb.annotators.detectors.boxscore.claims import Claim, Entity, ErrorCandidate, Mention
from finecomb.annotators.detectors.boxscore.discourse import PatternMatch, SentenceContext
from finecomb.annotators.detectors.boxscore.game import Player, Team
from finecomb.annotators.detectors.boxscore.report_parser import load_table

_MIN_TEAM_POINTS = 60  # fewer are never a team's total


def aggregation_kind(match: PatternMatch) -> str:
    """`average` or `combined` when a count sums up several games, else empty."""
    if match.is_preceded_by("averaged") or match.match_after("per_game"):
        return "average"
    if match.match_after("over_games_after"):
        return "combined"
    return "combined" if match.is_preceded_by("combined") and match.scene.has_pattern("several") else ""


def record_value(entity: Entity, field: str | None) -> int | None:
    """What the record says of a player or team; None when it says nothing."""
    if isinstance(entity, Player):
        return entity.count(field) if field else None
    return entity.line.get(field) if isinstance(entity, Team) and field else None


def record_field(entity: Entity, statistic: str) -> str | None:
    """The record's field for a statistic; None when it does not count it for such an entity."""
    fields: dict[str, str] = load_table("statistics")["counts"].get(statistic, {})
    return fields.get("player" if isinstance(entity, Player) else "team")


def format_count(value: int, statistic: str) -> str:
    """So many of what is counted, in words: `1 steal`, `9 assists`."""
    return f"{value} {statistic.removesuffix('s') if value == 1 else statistic}"


def _name_with_article(entity: Entity) -> str:
    return str(entity) if isinstance(entity, Player) else f"the {entity}"


# --- counts -------------------------------------------------------------------------------------------------------


def find_count_claims(scene: SentenceContext) -> Iterator[Claim]:
    """`21 points`, `a 12-rebound`, `a pair of steals`, by player or team."""
    for match in scene.find_patterns("count"):
        number, what = match.word_index("n"), match.word_index("s")
        if number is not None and what is not None and _is_game_total(match):
            yield from _count_claims(match, number, scene.words[what].value, _count_subjects(match, number))


_NON_TOTAL_PATTERNS = (
    "over_games",
    "pluperfect",
    "share_of",
    "nth_time",
    "season_best",
    "outing_before",
)  # what precedes a count that is no line of this game


def _is_game_total(match: PatternMatch) -> bool:
    """Whether a count is somebody's total in this game, and not a share of it, a bound, a lead, or another game's."""
    if (
        aggregation_kind(match)
        or match.match_after("not_a_total")
        or any(match.is_preceded_by(name) for name in _NON_TOTAL_PATTERNS)
    ):
        return False
    if match.is_preceded_by("not_exact", 24) and not match.is_preceded_by("exact", 30):
        return False
    if " more " in match.raw[0] and match.match_after("more_than"):
        return False
    return not _is_about_another_day(match)


def _is_about_another_day(match: PatternMatch) -> bool:
    """Whether the clause goes on with a day that is not the game's: `scored 40 points on Wednesday`."""
    after, date = match.match_after("of_another_day"), match.scene.game.date
    day = after.word_index("d") if after else None
    return day is not None and date is not None and match.scene.words[day].value != date.weekday()


def _count_subjects(match: PatternMatch, number: int) -> tuple[Mention, ...]:
    """The subject, unless `from` or `by` names somebody after, or the words tell what was done to the other team."""
    scene, after = match.scene, match.match_after("given_by") or match.match_after("listed_by")
    at = after.word_index("w") if after else None
    subject = scene.subjects[number]
    done_to_others = {"Spoints": "conceded", "Sturnovers": "forced"}.get(match["s"])
    if done_to_others and match.is_preceded_by(done_to_others, 80):
        return scene.opposing_team(subject)
    if after is None or at is None or (scene.words[at].code != "P" and not scene.team(at)):
        return subject
    named = (
        (scene.mentions_by_word[at], scene.mentions_by_word[at + 2]) if after["q"] else (scene.mentions_by_word[at],)
    )
    return named if after["by"] != "for" else subject or named


def _count_claims(match: PatternMatch, number: int, statistic: str, whose: tuple[Mention, ...]) -> Iterator[Claim]:
    scene = match.scene
    one = partial(_check_count, scene, number, statistic)
    players = tuple(name for name in whose if name.is_player)
    if whose and not players and match.is_preceded_by("of_some", 50):
        if match.is_preceded_by("of_reserves", 50):
            yield Claim(whose[:1], partial(_check_bench_count, scene, number, statistic))
    elif len(players) < 2:
        yield from (Claim((name,), one) for name in whose[:1])
    elif match.is_preceded_by("together", 60) or match.match_after("between_them"):
        yield Claim(players, partial(_check_combined_count, scene, number, statistic))
    elif in_turn := _respective_player(match, players):
        yield Claim((in_turn,), one)
    elif _is_per_player(match):
        yield from (Claim((name,), one) for name in players)
    else:
        yield Claim(players[-1:], one)


def _is_per_player(match: PatternMatch) -> bool:
    """`a pair of 16-point efforts`, `15 points apiece`."""
    start, end = max(0, match.raw.start() - 60), match.raw.end() + 30
    return any(start <= other.raw.start() and other.raw.end() <= end for other in match.scene.find_patterns("each"))


def _respective_player(match: PatternMatch, players: tuple[Mention, ...]) -> Mention | None:
    """The player of `X and Y had 34 points and 31 points , respectively`, by the order of the numbers."""
    if not match.scene.has_pattern("respectively"):
        return None
    places = [other.raw.start() for other in match.scene.find_patterns("count") if other["s"] == match["s"]]
    order = places.index(match.raw.start())
    return players[order] if len(places) == len(players) else None


def _check_count(scene: SentenceContext, number: int, statistic: str, entity: Entity) -> Iterator[ErrorCandidate]:
    field = record_field(entity, statistic)
    value, word = record_value(entity, field), scene.words[number]
    kind = "player" if isinstance(entity, Player) else "team"
    if value is None or (kind == "team" and statistic == "points" and word.value < _MIN_TEAM_POINTS):
        return
    flags = {
        "a": word.value == 1 and not value,
        "elsewhere": scene.is_about_other_games,
        "period": scene.has_pattern("when"),
        "absent": isinstance(entity, Player) and entity.absent,
    }
    claim = f"{_name_with_article(entity)} had {format_count(word.value, statistic)}"
    flag_names = (name for name, holds in flags.items() if holds)
    yield from scene.check_number(number, f"{kind}.{statistic}", claim, value, f"{field} of {entity}", *flag_names)


def _players_total(players: list[Player], field: str | None) -> int | None:
    values = [record_value(player, field) for player in players]
    return None if None in values or not values else sum(value for value in values if value is not None)


def _check_bench_count(scene: SentenceContext, number: int, statistic: str, team: Entity) -> Iterator[ErrorCandidate]:
    """`the bench chipped in 58 points`: the sum over those who did not start."""
    played = scene.game.team_players(team) if isinstance(team, Team) else []
    field = load_table("statistics")["counts"][statistic]["player"]
    total = _players_total([player for player in played if player.starter is False], field)
    if total is not None:
        claim = f"the bench of the {team} had {format_count(scene.words[number].value, statistic)}"
        yield from scene.check_number(number, "bench.sum", claim, total, f"{field} of those without START_POSITION")


def _check_combined_count(
    scene: SentenceContext, number: int, statistic: str, *players: Entity
) -> Iterator[ErrorCandidate]:
    """`X and Y combined for 42 points`."""
    field = record_field(players[0], statistic)
    total = _players_total([player for player in players if isinstance(player, Player)], field)
    if total is not None:
        who = " and ".join(map(str, players))
        claim = f"{who} had {format_count(scene.words[number].value, statistic)} together"
        yield from scene.check_number(number, "players.sum", claim, total, f"{field} of {who}")


def find_implicit_point_claims(scene: SentenceContext) -> Iterator[Claim]:
    """`chipped in 13`, where points go without saying."""
    for match in scene.find_patterns("bare"):
        number, whose = match.word_index("n"), match.group_subjects("n")
        if number is not None and len(whose) == 1 and whose[0].is_player:
            yield Claim(whose, partial(_check_count, scene, number, "points"))


# --- shooting -----------------------------------------------------------------------------------------------------


def find_shooting_claims(scene: SentenceContext) -> Iterator[Claim]:
    """`8 - for - 12`, `3 - of - 5 from long range`, `( 7 - 14 FG , 2 - 5 3Pt )`."""
    lines = load_table("statistics")["lines"]
    for match in scene.find_patterns("shooting"):
        hits, tried, at = match.word_index("made"), match.word_index("tried"), match.word_index("where")
        line = scene.words[at].value if at is not None and scene.words[at].value in lines else None
        if hits is None or tried is None or not _is_shooting_line(match, line) or _is_partial_line(match):
            continue
        whose = scene.subjects[hits]
        if whose and not (len(whose) > 1 and match.is_preceded_by("combined")):
            yield Claim(whose[-1:], partial(_check_shooting_line, scene, hits, tried, line or "field goals"))


def _is_partial_line(match: PatternMatch) -> bool:
    """Whether a line or percentage is of one period, of several games or of another one."""
    told_before = any(match.is_preceded_by(name) for name in ("pluperfect", "outing_before"))
    told_after = aggregation_kind(match) or match.match_after("in_a_period") or _is_about_another_day(match)
    return bool(told_before or told_after)


def _is_shooting_line(match: PatternMatch, line: str | None) -> bool:
    """Whether two numbers are makes and attempts: `of` or `for` between them, or a shooting word behind them."""
    if not match["of"]:
        return match["where"].startswith("L") and line is not None
    return line is not None or (not match["where"] and match.match_after("shooting_alone") is not None)


def _check_shooting_line(
    scene: SentenceContext, hits: int, tried: int, line: str, player: Entity
) -> Iterator[ErrorCandidate]:
    if isinstance(player, Player):
        claim = f"{player} made {scene.quote(hits)} of {scene.quote(tried)} {line}"
        for number, field in zip((hits, tried), load_table("statistics")["lines"][line]["player"], strict=True):
            value = player.count(field)
            if value is not None:
                yield from scene.check_number(number, f"player.line {line}", claim, value, f"{field} of {player}")


def find_percentage_claims(scene: SentenceContext) -> Iterator[Claim]:
    """`48 percent from the field`, by team or player."""
    for match in scene.find_patterns("percent", "percent_there"):
        number, at = match.word_index("n"), match.word_index("l")
        if number is None or at is None or _is_partial_line(match) or _is_unclear_percentage(match):
            continue
        after = match.match_after("percent_of")
        team = after.team("t") if after else None
        whose = (team,) if team else scene.subjects[number][:1]
        if whose and scene.words[at].value in load_table("statistics")["lines"]:
            yield Claim(whose, partial(_check_percentage, scene, number, scene.words[at].value))


def _is_unclear_percentage(match: PatternMatch) -> bool:
    """Whether a percentage is a bound, a season's, or that of a team without one of its players."""
    return (
        match.is_preceded_by("percent_unclear")
        or match.is_preceded_by("besides")
        or match.match_after("percent_of_season") is not None
    )


def _check_percentage(scene: SentenceContext, number: int, line: str, entity: Entity) -> Iterator[ErrorCandidate]:
    field = load_table("statistics")["lines"][line]["percent"]["player" if isinstance(entity, Player) else "team"]
    value, percent = record_value(entity, field), scene.words[number].value
    if value is not None:
        near = ["near"] if abs(value - percent) == 1 else []
        claim = f"{_name_with_article(entity)} made {percent} percent of {line}"
        yield from scene.check_number(number, "percent", claim, value, f"{field} of {entity}", *near)


# --- wins and losses ----------------------------------------------------------------------------------------------


def find_win_loss_claims(scene: SentenceContext) -> Iterator[Claim]:
    """`Hawks ( 28 - 20 )`, `improved to 28 - 20`: wins and losses after the game."""
    for match in scene.find_patterns("record", "record_now"):
        won, lost = match.word_index("won"), match.word_index("lost")
        name = match.team("t") if match["t"] else next(iter(match.group_subjects("won")), None)
        if name and not name.is_player and won is not None and lost is not None:
            yield Claim((name,), partial(_check_win_loss, scene, won, lost))


def _check_win_loss(scene: SentenceContext, won: int, lost: int, team: Entity) -> Iterator[ErrorCandidate]:
    claim = f"the {team} had {scene.quote(won)} wins and {scene.quote(lost)} losses"
    for number, field in ((won, "TEAM-WINS"), (lost, "TEAM-LOSSES")):
        value = record_value(team, field)
        if value is not None:
            where = f"{field} of {team}"
            yield from scene.check_number(number, "team.record", claim, value, where, unit=f"record {won}")


CLAIM_FINDERS = (
    find_count_claims,
    find_implicit_point_claims,
    find_shooting_claims,
    find_percentage_claims,
    find_win_loss_claims,
)
