"""Claims about players: team membership, leaders and ranks, starters and bench, double-doubles, absences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from finecomb.annotators.detectors.boxscore.claims import Claim, Entity, ErrorCandidate, Mention
from finecomb.annotators.detectors.boxscore.discourse import (
    Mentions,
    PatternMatch,
    SentenceContext,
    make_implicit_mention,
)
from finecomb.annotators.detectors.boxscore.game import Game, Player, Team
from finecomb.annotators.detectors.boxscore.report_parser import compile_pattern, load_yaml_table

Span = tuple[int, int]
_DOUBLE_DOUBLE_FIELDS = ("PTS", "REB", "AST", "STL", "BLK")
_IS_STARTER_BY_ROLE = {"starter": True, "T starter": True, "starters": True} | dict.fromkeys(
    ("reserve", "T reserve", "bench player", "T bench player", "reserves", "bench players"), False
)


def player_points(player: Player) -> int:
    """Return the points of a player, 0 if unknown."""
    return player.statistic("PTS") or 0


def _player_with_known_points(player: Entity) -> Player | None:
    """Return the player if the record has his team and points, otherwise None."""
    if isinstance(player, Player) and player.team is not None and player.statistic("PTS") is not None:
        return player
    return None


def _describe_role(starter: bool | None) -> str:
    return "he started" if starter else "he came off the bench"


# --- team membership ----------------------------------------------------------------------------------------------


class TeamPlayers(NamedTuple):
    """A team and the players that a sentence assigns to it."""

    team: int
    players: tuple[int, ...]
    blame_player: bool
    """True if a wrong pair means that the player's name is wrong, not the team's, as in `X was the only other T`."""


def find_team_players(scene: SentenceContext) -> Iterator[TeamPlayers]:
    """Find the teams and players that a sentence links explicitly."""
    if scene.is_about_next_game:
        return
    for name in ("only_of_team", "led_by", "led_team", "team_of"):
        for match in scene.find_pattern_matches(name):
            team, positions = match.word_index("t"), (match.word_index("p"), match.word_index("q"))
            players = [position for position in positions if position is not None]
            if name == "only_of_team" and not players:
                before = [
                    position
                    for position in scene.sentence.indices_with_code("P")
                    if scene.sentence.starts[position] < match.raw.start()
                ]
                players = before[-1:]
            if team is not None and scene.game_team_at(team) and players:
                yield TeamPlayers(team, tuple(players), name == "only_of_team")


def find_membership_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find claims of team membership, such as `X led the way for the Ts` and `the Ts were led by X and Y`."""

    def check(names: Mentions, blame_player: bool, team: Entity, *players: Entity) -> Iterator[ErrorCandidate]:
        strangers = [
            (name, player)
            for name, player in zip(names[1:], players, strict=True)
            if isinstance(player, Player) and player.team not in (None, team)
        ]
        if len(strangers) == len(players) and not blame_player and not names[0].fixed:
            player = strangers[0][1]
            claim, where = f"{player} plays for the {team}", f"TEAM_CITY of {player}"
            place, instead = (names[0].start, names[0].end), tuple(_flag_wrong_team_players(team, strangers))
            yield ErrorCandidate(*place, "name", "plays_for", claim, str(player.team), where, otherwise=instead)
            return
        yield from _flag_wrong_team_players(team, strangers)

    earlier: set[int] = set()
    for pair in find_team_players(scene):
        fresh = [position for position in pair.players if position not in earlier]
        earlier.update(fresh)
        if fresh:
            names = (scene.mentions_by_word[pair.team], *(scene.mentions_by_word[position] for position in fresh))
            yield Claim(names, partial(check, names, pair.blame_player))


def _flag_wrong_team_players(team: Entity, strangers: Sequence[tuple[Mention, Player]]) -> Iterator[ErrorCandidate]:
    for name, player in strangers:
        claim, where = f"{player} plays for the {team}", f"TEAM_CITY of {player}"
        yield ErrorCandidate(
            name.start, name.end, "context", "plays_for.player", claim, f"he plays for {player.team}", where
        )


def find_implied_team_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find players mentioned among the other team's players without further explanation."""
    if scene.is_about_next_game:
        return
    paired_players = {position for pair in find_team_players(scene) for position in pair.players}
    last = scene.story.last_team
    for position in scene.sentence.indices_with_code("P"):
        name, section = scene.mentions_by_word[position], scene.section_team_at(position)
        before = " ".join(word.code for word in scene.words[max(0, position - 4) : position])
        is_opponent = compile_pattern("against_player").search(before)  # `often matched up against X`
        if position not in paired_players and section is not None and not is_opponent:
            yield Claim((name,), partial(_check_implied_team, scene, position, section, last))
        bearer = name.options[0]
        last = bearer.team if len(name.options) == 1 and isinstance(bearer, Player) else last


def _check_implied_team(
    scene: SentenceContext, position: int, section: Team, last: Team | None, player: Entity
) -> Iterator[ErrorCandidate]:
    ahead = [number for number in scene.subject_team_indices if number > position]
    # `Despite 22 points from X , the Ts fell short`
    following = scene.mentions_by_word[ahead[0]].options[0] if ahead and scene.matches_pattern("fronted") else None
    if not isinstance(player, Player) or player.team in (None, scene.story.fresh, following):
        return
    strange, switched = player.team is not section, last is not None and player.team is not last
    if strange or switched:
        state = "both" if strange and switched else "strange" if strange else "switched"
        rest = scene.coded_text[scene.sentence.starts[position] + 1 :]
        circumstances = {
            "goes on": compile_pattern("goes_on").match(rest),
            "within": position,
            "no numbers": not any(word.code[0] in "SL" for word in scene.words[position:]),
            "told before": player in scene.story.named.values(),
        }
        around = [name for name, holds in circumstances.items() if holds]
        flags = frozenset({state, *around, *(f"{state}, {flag}" for flag in around)})
        claim, right = f"{player} is one of the {section.name}", f"he plays for {player.team}"
        yield ErrorCandidate(
            *scene.word_span(position), "context", "context", claim, right, f"TEAM_CITY of {player}", flags=flags
        )


# --- leaders ------------------------------------------------------------------------------------------------------


def find_leader_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find claims about leaders, such as `led the team in scoring`, `were led by` and `high-point man`."""
    if scene.is_about_next_game:
        return
    for match in scene.find_pattern_matches("led"):
        what, whose = match["what"], match.group_subjects("w")
        if what == "by":
            after = match.match_after("led_by_one")
            position = after.word_index("p") if after else None
            whose = (scene.mentions_by_word[position],) if position is not None else ()
        if match.match_after("of_season") or len(whose) != 1 or not whose[0].is_player:
            continue
        is_bench = what in {"bench", "reserves", "O unit"} or match.match_after("own_bench")
        if is_bench or match.is_preceded_by("bench_led"):
            scope = "bench"
        else:
            scope = "starters" if what == "starters" else "game" if what.startswith(("all", "both", "game")) else "team"
        yield Claim(whose, partial(_check_leader, scene, match.span("w"), _leader_statistic(match), scope, "led"))
    for match in scene.find_pattern_matches("top_scorer"):
        whose = match.group_subjects("w")[-1:]
        if whose and whose[0].is_player and not match.match_after("of_season"):
            scope = "bench" if match.match_after("of_bench") else "team"
            yield Claim(whose, partial(_check_leader, scene, match.span("w"), "points", scope, "top"))


def _leader_statistic(match: PatternMatch) -> str:
    """Return the statistic that a leader led in (`in scoring`, `with 14 rebounds`), points by default."""
    spoken = match.match_after("led_in")
    if spoken:
        return "rebounds" if spoken["s"] == "rebounding" else spoken["s"].removeprefix("S")
    if match.match_after("led_on_boards"):
        return "rebounds"
    phrase = None if match.match_after("led_in_points") else match.match_after("led_with") or _preceding_count(match)
    return _statistic_in_match(phrase)


def _preceding_count(match: PatternMatch) -> PatternMatch | None:
    """Return the count before a match, as in `his 12 rebounds led all players` and `nine assists were a game-high`."""
    before = compile_pattern("counted_before").search(match.scene.coded_text[: match.raw.start()])
    return PatternMatch(match.scene, before) if before else None


def _statistic_in_match(match: PatternMatch | None) -> str:
    return match["s"] if match and match["s"] in load_yaml_table("statistics")["counts"] else "points"


def leader_candidates(player: Player, game: Game, scope: str) -> list[Player]:
    """Return the players with whom a leader is compared in a scope (game, team, bench or starters)."""
    everybody = [other for other in game.players if other.has_played]
    if scope == "game":
        return everybody
    mates = [other for other in everybody if other.team is player.team]
    wanted = {"bench": False, "starters": True}.get(scope)
    return mates if wanted is None else [other for other in mates if other.starter is wanted]


def _check_leader(
    scene: SentenceContext, span: Span, statistic: str, scope: str, kind: str, player: Entity
) -> Iterator[ErrorCandidate]:
    field = load_yaml_table("statistics")["counts"][statistic]["player"]
    value = player.statistic(field) if isinstance(player, Player) and player.team else None
    others = leader_candidates(player, scene.game, scope) if isinstance(player, Player) else []
    better = [other for other in others if other is not player and (other.statistic(field) or 0) > (value or 0)]
    if value is None or not isinstance(player, Player) or not better:
        return
    best = max(better, key=lambda other: other.statistic(field) or 0)
    most = best.statistic(field) or 0
    flags = {
        f"rank {min(len(better), 3)}": True,
        "starter": scope == "bench" and player.starter,
        "close": most - value <= 2,
        "other than points": statistic != "points",
        "stranger": scene.section_team_at(len(scene.words)) not in (None, player.team),
    }
    claim, where = f"{player} led the {scope} in {statistic}", f"{field} of {best}"
    flag_names = frozenset(name for name, holds in flags.items() if holds)
    yield ErrorCandidate(*span, "word", f"{kind}.{scope}", claim, f"{best} did, with {most}", where, flags=flag_names)


def find_game_high_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find claims of a maximum, such as `a game-high 31 points` and `team-high`."""
    for match in scene.find_pattern_matches("high"):
        whose = match.group_subjects("w")[-1:]
        if whose and whose[0].is_player:
            statistic = _statistic_in_match(match.match_after("high_in") or _preceding_count(match))
            yield Claim(whose, partial(_check_leader, scene, match.span("w"), statistic, match["scope"], "high"))


def find_rank_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find claims about ranks, such as `was second on the team`, `was next`, `right behind him`."""
    for match in scene.find_pattern_matches("rank"):
        ordinal, whose = match.word_index("o"), match.group_subjects("o")[-1:]
        if ordinal is not None and whose and whose[0].is_player:
            yield Claim(whose, partial(_check_rank, scene, ordinal))
    for match in scene.find_pattern_matches("next_in_line"):
        whose = match.group_subjects("w")
        if len(whose) == 1 and whose[0].is_player:
            yield Claim(whose, partial(_check_next_in_rank, scene, match.span("w"), match["w"].split()[0]))


def _check_rank(scene: SentenceContext, ordinal: int, entity: Entity) -> Iterator[ErrorCandidate]:
    player = _player_with_known_points(entity)
    if not player:
        return
    others = [player_points(other) for other in leader_candidates(player, scene.game, "team") if other is not player]
    best = 1 + sum(value > player_points(player) for value in others)
    worst = 1 + sum(value >= player_points(player) for value in others)
    if not best <= scene.words[ordinal].value <= worst:
        claim = f"{player} ranked number {scene.words[ordinal].value} in points on his team"
        flags = frozenset({f"rank {min(best, 4)}"})
        yield ErrorCandidate(
            *scene.word_span(ordinal), "number", "rank", claim, str(best), f"PTS of {player.team}", flags=flags
        )


def _check_next_in_rank(scene: SentenceContext, span: Span, how: str, entity: Entity) -> Iterator[ErrorCandidate]:
    player = _player_with_known_points(entity)
    if not player:
        return
    named = [option for name in scene.mentions_by_word.values() for option in name.options if option is not entity]
    earlier = (*scene.story.recent_players, *named)
    better = [
        other for other in leader_candidates(player, scene.game, "team") if player_points(other) > player_points(player)
    ]
    untold = [other for other in better if other not in earlier]
    if untold or not better:
        flags = frozenset({
            f"behind {min(len(untold), 2)}" if better else "leader", *(["told before"] if player in earlier else []),
        })  # fmt: skip
        right = f"{untold[0]} did" if untold else "he led"
        claim, where = f"{player} came next in points", f"PTS of {player.team}"
        yield ErrorCandidate(*span, "word", f"next.{how}", claim, right, where, flags=flags)


# --- double-doubles, bench and other claims -----------------------------------------------------------------------


def find_double_double_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find claims such as `a double-double` and `his second triple-double`."""

    def check(span: Span, size: str, ordinal: int | None, player: Entity) -> Iterator[ErrorCandidate]:
        values = [player.statistic(field) for field in _DOUBLE_DOUBLE_FIELDS] if isinstance(player, Player) else [None]
        reached = sum((value or 0) >= 10 for value in values)
        right = reached == 2 if size == "double" else reached >= 3
        if right or None in values:
            return
        fix = {2: "he had a double-double", 3: "he had a triple-double"}.get(reached, f"he had no {size}-double")
        claim, where = f"{player} had a {size}-double", f"{', '.join(_DOUBLE_DOUBLE_FIELDS)} of {player}"
        if ordinal is not None:
            yield ErrorCandidate(scene.words[ordinal].start, span[1], "number", f"{size}.ordinal", claim, fix, where)
        else:
            yield ErrorCandidate(
                *span, "word", size, claim, fix, where, flags=frozenset({f"reached {min(reached, 3)}"})
            )

    for match in scene.find_pattern_matches("double"):
        whose = match.group_subjects("w")[-1:] or (
            () if scene.matches_pattern("described") else _first_following_player(match)
        )
        if whose and whose[0].is_player and not match.is_preceded_by("double_missed", 40):
            first = match.word_index("w")
            # An ordinal such as `second` may precede the match.
            ordinal = first - 1 if first and scene.words[first - 1].code == "O" else None
            yield Claim(whose, partial(check, match.span("w"), match["size"], ordinal))


def _first_following_player(match: PatternMatch) -> Mentions:
    """Return the first player named after a match."""
    after = match.match_after("player_ahead")
    position = after.word_index("p") if after else None
    return (match.scene.mentions_by_word[position],) if position is not None else ()


def find_bench_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find claims about starters and reserves, such as `off the bench`, `led the second unit`, `starter`."""

    def check(span: Span, starter: bool, player: Entity) -> Iterator[ErrorCandidate]:
        if isinstance(player, Player) and player.has_played and player.starter is (not starter):
            claim = f"{player} {'started' if starter else 'came off the bench'}"
            kind, where = "starter" if starter else "bench", f"START_POSITION of {player}"
            yield ErrorCandidate(*span, "word", kind, claim, _describe_role(player.starter), where)

    reserves = [(False, match) for match in scene.find_pattern_matches("bench", "led_bench")]
    starters = [(True, match) for match in scene.find_pattern_matches("starter", "led_starters")]
    for starter, match in reserves + starters:
        whose = match.group_subjects("w")[-1:]
        opens = scene.coded_text[: match.raw.start()].strip() in {"coming", "playing", ""}
        named = match.match_after("named_next")  # `starter X had 10`
        if ((not whose or not whose[0].is_player) and opens) or named:
            whose = _first_following_player(match)
        in_general = match.is_preceded_by("bench_in_general", 60) or match.match_after("bench_often")
        if whose and whose[0].is_player and not in_general:
            yield Claim(whose, partial(check, match.span("w"), starter))


def find_only_other_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find claims such as `the only other starter in double figures`."""
    for match in scene.find_pattern_matches("only_other"):
        whose = match.group_subjects("w")[-2:]
        if not whose or not whose[0].is_player:
            later = [
                position
                for position in scene.sentence.indices_with_code("P")
                if scene.sentence.starts[position] > match.raw.start()
            ]
            whose = (scene.mentions_by_word[later[0]],) if later else ()
        if whose and not compile_pattern("not_reached").search(match["rest"]):
            yield Claim(whose, partial(_check_only_other, match))


def _check_only_other(match: PatternMatch, *players: Entity) -> Iterator[ErrorCandidate]:
    """Yield one error at most: the wrong role, too few points, or other players who also qualify."""
    player, role = _player_with_known_points(players[0]), _IS_STARTER_BY_ROLE.get(match["who"])
    if not player:
        return
    points_field = f"PTS of {player}"
    if role is not None and player.starter is (not role):
        claim, where = f"{player} was a {match.quote('who')}", f"START_POSITION of {player}"
        yield ErrorCandidate(*match.span("who"), "word", "only.role", claim, _describe_role(player.starter), where)
        return
    if all(isinstance(other, Player) and player_points(other) < 10 for other in players):
        claim, right = f"{player} scored in double figures", f"he scored {player_points(player)}"
        yield ErrorCandidate(*match.span("d"), "word", "only.figures", claim, right, points_field)
        return
    mates = [
        mate
        for mate in leader_candidates(player, match.scene.game, "team")
        if player_points(mate) >= 10 and mate not in players and (role is None or mate.starter == role)
    ]
    others = [mate for mate in mates if mate not in match.scene.story.recent_players]
    if others:
        start, end = match.span("w")
        end = match.span("o")[1] if match["o"] else end
        claim = f"{player} was the only other {match.quote('who')} in double figures"
        right, where = f"so were {', '.join(map(str, others))}", f"PTS of {player.team}"
        flags = frozenset({f"others {min(len(others), 3)}", f"mates {min(len(mates), 4)}"})
        yield ErrorCandidate(start, end, "word", "only.other", claim, right, where, flags=flags)


def find_double_figure_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find claims such as `six players scored in double figures`."""
    for match in scene.find_pattern_matches("double_figures"):
        number, after = match.word_index("n"), match.match_after("for_team")
        acting = next((name for name in match.group_subjects("n") if not name.is_player), None)
        team = (after.team("t") if after else None) or match.team("t") or acting
        if number is not None and team:
            yield Claim((team,), partial(_check_double_figures, match, number))
        included = match.match_after("among_them")
        position = included.word_index("p") if included else None
        if position is not None:
            yield Claim((make_implicit_mention(f"word {position}"),), partial(_check_included_player, scene, position))


def _check_double_figures(match: PatternMatch, number: int, team: Entity) -> Iterator[ErrorCandidate]:
    scene, wanted = match.scene, _IS_STARTER_BY_ROLE.get(match["role"])
    played = scene.game.team_players_who_played(team) if isinstance(team, Team) else []
    if any(other.statistic("PTS") is None for other in played):
        return
    who = [other for other in played if player_points(other) >= 10 and wanted in (None, other.starter)]
    right = (
        {len(who) - 1, sum(other not in scene.story.recent_players for other in who)} if match["other"] else {len(who)}
    )
    if played and scene.words[number].value not in right:
        claim = f"{scene.word_quote(number)} {match['role']} of the {team} scored in double figures"
        yield from scene.check_number_at(number, "double figures", claim, len(who), f"PTS of {team}")


def _check_included_player(scene: SentenceContext, position: int, _: Entity) -> Iterator[ErrorCandidate]:
    """Yield an error for X in `six players scored in double figures , including X` if X did not."""
    player = _player_with_known_points(scene.mentions_by_word[position].options[0])
    if player and len(scene.mentions_by_word[position].options) == 1 and player_points(player) < 10:
        claim, where = f"{player} scored in double figures", f"PTS of {player}"
        yield ErrorCandidate(
            *scene.word_span(position), "name", "figures.included", claim, f"he scored {player_points(player)}", where
        )


def find_absence_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find claims such as `played without X` about players who did play."""

    def check(span: Span, player: Entity) -> Iterator[ErrorCandidate]:
        if isinstance(player, Player) and player.has_played:
            claim, right = f"{player} did not play", f"he played {player.statistic('MIN')} minutes"
            yield ErrorCandidate(*span, "word", "without", claim, right, f"MIN of {player}")

    for match in scene.find_pattern_matches("without"):
        position = match.word_index("p")
        if position is not None and not scene.is_about_next_game:
            yield Claim((scene.mentions_by_word[position],), partial(check, match.span("w")))


def find_unknown_player_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find names that are not in the record, or that combine two names."""

    def check(position: int, _: Entity) -> Iterator[ErrorCandidate]:
        word = scene.words[position]
        kind, correction = ("name.odd", str(word.value[0])) if word.code == "P" else ("name.unknown", "")
        yield ErrorCandidate(
            *scene.word_span(position),
            "name",
            kind,
            f"{scene.word_quote(position)} took part",
            correction,
            "PLAYER_NAME",
        )

    for position, word in enumerate(scene.words):
        if not word.odd or word.code not in "PX" or not scene.game.players or scene.matches_pattern("missing"):
            continue
        before = " ".join(other.code for other in scene.words[max(0, position - 2) : position])
        if word.code == "P" or (_is_participant(scene, position) and not compile_pattern("no_player").search(before)):
            yield Claim((make_implicit_mention(f"word {position}"),), partial(check, position))


def _is_participant(scene: SentenceContext, position: int) -> bool:
    """Return whether an unknown person has statistics, leads a group of players, or is paired with a player."""
    start, name = scene.sentence.starts[position], scene.mentions_by_word[position]
    numbers = any(
        name in scene.word_subjects[n] for n, word in enumerate(scene.words) if word.code == "N" and n > position
    )
    crew = compile_pattern("crew").match(scene.coded_text, start + 1)
    return numbers or crew is not None or scene.coded_text[:start].endswith("P and ")


CLAIM_FINDERS = (
    find_membership_claims,
    find_implied_team_claims,
    find_leader_claims,
    find_game_high_claims,
    find_rank_claims,
    find_double_double_claims,
    find_bench_claims,
    find_only_other_claims,
    find_double_figure_claims,
    find_absence_claims,
    find_unknown_player_claims,
)
