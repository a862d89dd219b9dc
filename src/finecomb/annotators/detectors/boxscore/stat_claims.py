"""Claims about statistics of players and teams: counts, shooting lines, percentages, wins and losses."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from finecomb.annotators.detectors.boxscore.claims import Claim, Entity, ErrorCandidate, Mention
from finecomb.annotators.detectors.boxscore.discourse import PatternMatch, SentenceContext
from finecomb.annotators.detectors.boxscore.game import Player, Team
from finecomb.annotators.detectors.boxscore.report_parser import load_yaml_table

_MIN_TEAM_POINTS = 60  # lower numbers are never a team's total


def aggregation_kind(match: PatternMatch) -> str:
    """Return `average` or `combined` for a count over several games, otherwise an empty string."""
    if match.is_preceded_by("averaged") or match.match_after("per_game"):
        return "average"
    if match.match_after("over_games_after"):
        return "combined"
    return "combined" if match.is_preceded_by("combined") and match.scene.matches_pattern("several") else ""


def record_value(entity: Entity, field: str | None) -> int | None:
    """Return a statistic of a player or team, or None if it is unknown."""
    if isinstance(entity, Player):
        return entity.statistic(field) if field else None
    return entity.line.get(field) if isinstance(entity, Team) and field else None


def record_field(entity: Entity, statistic: str) -> str | None:
    """Return the record's field for a statistic of a player or team, or None."""
    fields: dict[str, str] = load_yaml_table("statistics")["counts"].get(statistic, {})
    return fields.get("player" if isinstance(entity, Player) else "team")


def format_count(value: int, statistic: str) -> str:
    """Format a count with its statistic, such as `1 steal` or `9 assists`."""
    return f"{value} {statistic.removesuffix('s') if value == 1 else statistic}"


def _entity_name_with_article(entity: Entity) -> str:
    return str(entity) if isinstance(entity, Player) else f"the {entity}"


# --- counts -------------------------------------------------------------------------------------------------------


def find_count_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find counts of statistics, such as `21 points`, `a 12-rebound`, `a pair of steals`, by player or team."""
    for match in scene.find_pattern_matches("count"):
        number, what = match.word_index("n"), match.word_index("s")
        if number is None or what is None or not _is_game_total(match):
            continue
        statistic, whose = scene.words[what].value, _subjects_of_count(match, number)
        check = partial(_check_count, scene, number, statistic)
        players = tuple(name for name in whose if name.is_player)
        if whose and not players and match.is_preceded_by("of_some", 50):
            if match.is_preceded_by("of_reserves", 50):
                yield Claim(whose[:1], partial(_check_bench_count, scene, number, statistic))
        elif len(players) < 2:
            yield from (Claim((name,), check) for name in whose[:1])
        elif match.is_preceded_by("together", 60) or match.match_after("between_them"):
            yield Claim(players, partial(_check_combined_count, scene, number, statistic))
        else:
            yield from (Claim((name,), check) for name in _counted_players(match, players))


def _counted_players(match: PatternMatch, players: tuple[Mention, ...]) -> tuple[Mention, ...]:
    """Return which of several players a count is about: one of them in turn, each of them, or the last one."""
    if match.scene.matches_pattern("respectively"):  # `X and Y had 34 points and 31 points , respectively`
        starts = [other.raw.start() for other in match.scene.find_pattern_matches("count") if other["s"] == match["s"]]
        if len(starts) == len(players):
            return (players[starts.index(match.raw.start())],)
    # `a pair of 16-point efforts` and `15 points apiece`
    start, end = max(0, match.raw.start() - 60), match.raw.end() + 30
    is_count_of_each = any(
        start <= other.raw.start() and other.raw.end() <= end for other in match.scene.find_pattern_matches("each")
    )
    return players if is_count_of_each else players[-1:]


# Patterns before counts that are not totals of this game
_NON_TOTAL_PATTERNS = ("over_games", "pluperfect", "share_of", "nth_time", "season_best", "outing_before")


def _is_game_total(match: PatternMatch) -> bool:
    """Return whether a count is a total of this game, not a part, a bound, a lead or a count of another game."""
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
    """Return whether the clause goes on to name a day other than the game's, as in `scored 40 points on Wednesday`."""
    after, date = match.match_after("of_another_day"), match.scene.game.date
    day = after.word_index("d") if after else None
    return day is not None and date is not None and match.scene.words[day].value != date.weekday()


def _subjects_of_count(match: PatternMatch, number: int) -> tuple[Mention, ...]:
    """Return whom a count is about: a name after `from` or `by`, the opponent for conceded counts, or the subject."""
    scene, after = match.scene, match.match_after("given_by") or match.match_after("listed_by")
    index = after.word_index("w") if after else None
    subject = scene.word_subjects[number]
    done_to_others = {"Spoints": "conceded", "Sturnovers": "forced"}.get(match["s"])
    if done_to_others and match.is_preceded_by(done_to_others, 80):
        return scene.opposing_team(subject)
    if after is None or index is None or (scene.words[index].code != "P" and not scene.game_team_at(index)):
        return subject
    named = tuple(scene.mentions_by_word[position] for position in ((index, index + 2) if after["q"] else (index,)))
    return named if after["by"] != "for" else subject or named


def _check_count(scene: SentenceContext, number: int, statistic: str, entity: Entity) -> Iterator[ErrorCandidate]:
    field = record_field(entity, statistic)
    value, word = record_value(entity, field), scene.words[number]
    kind = "player" if isinstance(entity, Player) else "team"
    if value is None or (kind == "team" and statistic == "points" and word.value < _MIN_TEAM_POINTS):
        return
    flags = {
        "a": word.value == 1 and not value,
        "elsewhere": scene.is_about_other_games,
        "period": scene.matches_pattern("when"),
        "absent": isinstance(entity, Player) and entity.absent,
    }
    claim = f"{_entity_name_with_article(entity)} had {format_count(word.value, statistic)}"
    flag_names = (name for name, holds in flags.items() if holds)
    yield from scene.check_number_at(number, f"{kind}.{statistic}", claim, value, f"{field} of {entity}", *flag_names)


def _players_total(players: list[Player], field: str | None) -> int | None:
    values = [record_value(player, field) for player in players]
    return None if None in values or not values else sum(value for value in values if value is not None)


def _check_bench_count(scene: SentenceContext, number: int, statistic: str, team: Entity) -> Iterator[ErrorCandidate]:
    """Check a count of the bench against the sum over reserves, as in `the bench chipped in 58 points`."""
    played = scene.game.team_players_who_played(team) if isinstance(team, Team) else []
    field = load_yaml_table("statistics")["counts"][statistic]["player"]
    total = _players_total([player for player in played if player.starter is False], field)
    if total is not None:
        claim = f"the bench of the {team} had {format_count(scene.words[number].value, statistic)}"
        yield from scene.check_number_at(
            number, "bench.sum", claim, total, f"{field} of players without START_POSITION"
        )


def _check_combined_count(
    scene: SentenceContext, number: int, statistic: str, *players: Entity
) -> Iterator[ErrorCandidate]:
    """Check the sum of several players, as in `X and Y combined for 42 points`."""
    field = record_field(players[0], statistic)
    total = _players_total([player for player in players if isinstance(player, Player)], field)
    if total is not None:
        who = " and ".join(map(str, players))
        claim = f"{who} had {format_count(scene.words[number].value, statistic)} together"
        yield from scene.check_number_at(number, "players.sum", claim, total, f"{field} of {who}")


def find_implicit_point_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find numbers that imply points, such as `chipped in 13`."""
    for match in scene.find_pattern_matches("bare"):
        number, whose = match.word_index("n"), match.group_subjects("n")
        if number is not None and len(whose) == 1 and whose[0].is_player:
            yield Claim(whose, partial(_check_count, scene, number, "points"))


# --- shooting -----------------------------------------------------------------------------------------------------


def find_shooting_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find shooting lines, such as `8 - for - 12`, `3 - of - 5 from long range`, `( 7 - 14 FG , 2 - 5 3Pt )`."""

    def check(hits: int, tried: int, line: str, player: Entity) -> Iterator[ErrorCandidate]:
        if isinstance(player, Player):
            claim = f"{player} made {scene.word_quote(hits)} of {scene.word_quote(tried)} {line}"
            for number, field in zip(
                (hits, tried), load_yaml_table("statistics")["lines"][line]["player"], strict=True
            ):
                value = player.statistic(field)
                if value is not None:
                    yield from scene.check_number_at(
                        number, f"player.line {line}", claim, value, f"{field} of {player}"
                    )

    lines = load_yaml_table("statistics")["lines"]
    for match in scene.find_pattern_matches("shooting"):
        hits, tried, index = match.word_index("made"), match.word_index("tried"), match.word_index("where")
        line = scene.words[index].value if index is not None and scene.words[index].value in lines else None
        # `of`, `for` or a shooting word shows that two numbers are makes and attempts.
        if match["of"]:
            is_line = line is not None or (not match["where"] and match.match_after("shooting_alone") is not None)
        else:
            is_line = line is not None and match["where"].startswith("L")
        if hits is None or tried is None or not is_line or _is_not_whole_game_line(match):
            continue
        whose = scene.word_subjects[hits]
        if whose and not (len(whose) > 1 and match.is_preceded_by("combined")):
            yield Claim(whose[-1:], partial(check, hits, tried, line or "field goals"))


def _is_not_whole_game_line(match: PatternMatch) -> bool:
    """Return whether a line or percentage covers one period, several games or another game."""
    told_before = any(match.is_preceded_by(name) for name in ("pluperfect", "outing_before"))
    told_after = aggregation_kind(match) or match.match_after("in_a_period") or _is_about_another_day(match)
    return bool(told_before or told_after)


def find_percentage_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find shooting percentages, such as `48 percent from the field`, by team or player."""

    def check(number: int, line: str, entity: Entity) -> Iterator[ErrorCandidate]:
        field = load_yaml_table("statistics")["lines"][line]["percent"][
            "player" if isinstance(entity, Player) else "team"
        ]
        value, percent = record_value(entity, field), scene.words[number].value
        if value is not None:
            near = ["near"] if abs(value - percent) == 1 else []
            claim = f"{_entity_name_with_article(entity)} made {percent} percent of {line}"
            yield from scene.check_number_at(number, "percent", claim, value, f"{field} of {entity}", *near)

    for match in scene.find_pattern_matches("percent", "percent_there"):
        number, index = match.word_index("n"), match.word_index("l")
        is_unclear = match.is_preceded_by("percent_unclear") or match.is_preceded_by("besides")
        if is_unclear or match.match_after("percent_of_season") or _is_not_whole_game_line(match):
            continue
        if number is None or index is None:
            continue
        after = match.match_after("percent_of")
        team = after.team("t") if after else None
        whose = (team,) if team else scene.word_subjects[number][:1]
        if whose and scene.words[index].value in load_yaml_table("statistics")["lines"]:
            yield Claim(whose, partial(check, number, scene.words[index].value))


# --- wins and losses ----------------------------------------------------------------------------------------------


def find_win_loss_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find win-loss records after the game, such as `Hawks ( 28 - 20 )` and `improved to 28 - 20`."""

    def check(won: int, lost: int, team: Entity) -> Iterator[ErrorCandidate]:
        claim = f"the {team} had {scene.word_quote(won)} wins and {scene.word_quote(lost)} losses"
        for number, field in ((won, "TEAM-WINS"), (lost, "TEAM-LOSSES")):
            value = record_value(team, field)
            if value is not None:
                where = f"{field} of {team}"
                yield from scene.check_number_at(number, "team.record", claim, value, where, unit=f"record {won}")

    for match in scene.find_pattern_matches("record", "record_now"):
        won, lost = match.word_index("won"), match.word_index("lost")
        name = match.team("t") if match["t"] else next(iter(match.group_subjects("won")), None)
        if name and not name.is_player and won is not None and lost is not None:
            yield Claim((name,), partial(check, won, lost))


CLAIM_FINDERS = (
    find_count_claims,
    find_implicit_point_claims,
    find_shooting_claims,
    find_percentage_claims,
    find_win_loss_claims,
)
