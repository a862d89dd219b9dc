"""Claims about players among others: whose they are, who led, who came next, off the bench, double-doubles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from finecomb.annotators.detectors.boxscore.claims import Claim, Entity, Mention, Slip
from finecomb.annotators.detectors.boxscore.discourse import Names, PatternMatch, Scene, fixed
from finecomb.annotators.detectors.boxscore.record import Game, Player, Team
from finecomb.annotators.detectors.boxscore.report_parser import pattern, table

Span = tuple[int, int]
_MILESTONES = ("PTS", "REB", "AST", "STL", "BLK")
_STARTER = {"starter": True, "T starter": True, "starters": True} | dict.fromkeys(
    ("reserve", "T reserve", "bench player", "T bench player", "reserves", "bench players"), False
)


def points(player: Player) -> int:
    """Points of a player, 0 where the record does not say."""
    return player.count("PTS") or 0


def _scorer(player: Entity) -> Player | None:
    """A player of whom the record knows the team and the points."""
    complete = isinstance(player, Player) and player.team is not None and player.count("PTS") is not None
    return player if complete and isinstance(player, Player) else None


def _role(starter: bool | None) -> str:
    return "he started" if starter else "he came off the bench"


# --- whose player -------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    """A team and players that a sentence says belong together."""

    team: int
    players: tuple[int, ...]
    blame_player: bool
    """Whether a wrong pair is the player's fault: `X was the only other T`."""


def pairs(scene: Scene) -> Iterator[Pair]:
    """Pairs of a team and players that a sentence says belong together, in so many words."""
    if scene.upcoming:
        return
    for name in ("only_of_team", "led_by", "led_team", "team_of"):
        for match in scene.find(name):
            team, players = (
                match.at("t"),
                [position for position in (match.at("p"), match.at("q")) if position is not None],
            )
            if name == "only_of_team" and not players:
                before = [
                    position
                    for position in scene.sentence.indices("P")
                    if scene.sentence.starts[position] < match.raw.start()
                ]
                players = before[-1:]
            if team is not None and scene.team(team) and players:
                yield Pair(team, tuple(players), name == "only_of_team")


def plays_for(scene: Scene) -> Iterator[Claim]:
    """`X led the way for the Ts`, `the Ts were led by X and Y`."""
    earlier: set[int] = set()
    for pair in pairs(scene):
        fresh = [position for position in pair.players if position not in earlier]
        earlier.update(fresh)
        if fresh:
            names = (scene.names[pair.team], *(scene.names[position] for position in fresh))
            yield Claim(names, partial(_plays_for, names, pair.blame_player))


def _plays_for(names: Names, blame_player: bool, team: Entity, *players: Entity) -> Iterator[Slip]:
    strangers = [
        (name, player)
        for name, player in zip(names[1:], players, strict=True)
        if isinstance(player, Player) and player.team not in (None, team)
    ]
    if len(strangers) == len(players) and not blame_player and not names[0].fixed:
        player = strangers[0][1]
        claim, where = f"{player} plays for the {team}", f"TEAM_CITY of {player}"
        place, instead = (names[0].start, names[0].end), tuple(_strangers(team, strangers))
        yield Slip(*place, "name", "plays_for", claim, str(player.team), where, otherwise=instead)
        return
    yield from _strangers(team, strangers)


def _strangers(team: Entity, strangers: Sequence[tuple[Mention, Player]]) -> Iterator[Slip]:
    for name, player in strangers:
        claim, where = f"{player} plays for the {team}", f"TEAM_CITY of {player}"
        yield Slip(name.start, name.end, "context", "plays_for.player", claim, f"he plays for {player.team}", where)


def context(scene: Scene) -> Iterator[Claim]:
    """A player told about among the other team's without a word."""
    if scene.upcoming:
        return
    paired_players = {position for pair in pairs(scene) for position in pair.players}
    last = scene.story.last_team
    for position in scene.sentence.indices("P"):
        name, section = scene.names[position], scene.section(position)
        if position not in paired_players and section is not None and not _is_rival(scene, position):
            yield Claim((name,), partial(_context, scene, position, section, last))
        bearer = name.options[0]
        last = bearer.team if len(name.options) == 1 and isinstance(bearer, Player) else last


def _is_rival(scene: Scene, position: int) -> bool:
    """Whether a player is named as somebody's opponent: `often matched up against X`."""
    return bool(
        pattern("against_player").search(" ".join(word.code for word in scene.words[max(0, position - 4) : position]))
    )


def _told_ahead(scene: Scene, position: int) -> Entity | None:
    """The team that a sentence goes on with: `Despite 22 points from X , the Ts fell short`."""
    ahead = [number for number in scene.teams_acting if number > position] if scene.has("fronted") else []
    return scene.names[ahead[0]].options[0] if ahead else None


def _context(scene: Scene, position: int, section: Team, last: Team | None, player: Entity) -> Iterator[Slip]:
    if not isinstance(player, Player) or player.team in (None, scene.story.fresh, _told_ahead(scene, position)):
        return
    strange, switched = player.team is not section, last is not None and player.team is not last
    if strange or switched:
        state = "both" if strange and switched else "strange" if strange else "switched"
        told = ["told before"] if player in scene.story.named.values() else []
        around = [*_surroundings(scene, position), *told]
        flags = frozenset({state, *around, *(f"{state}, {flag}" for flag in around)})
        claim, right = f"{player} is one of the {section.name}", f"he plays for {player.team}"
        yield Slip(*scene.span(position), "context", "context", claim, right, f"TEAM_CITY of {player}", flags=flags)


def _surroundings(scene: Scene, position: int) -> list[str]:
    """Whether words go on with a list of one team's players, the name is inside the sentence, numbers follow."""
    rest = scene.view[scene.sentence.starts[position] + 1 :]
    numbers = any(word.code[0] in "SL" for word in scene.words[position:])
    flags = {"goes on": pattern("goes_on").match(rest), "within": position, "no numbers": not numbers}
    return [name for name, holds in flags.items() if holds]


# --- who led ------------------------------------------------------------------------------------------------------


def leads(scene: Scene) -> Iterator[Claim]:
    """`led the team in scoring`, `were led by`, `led the bench`, `high-point man`."""
    if scene.upcoming:
        return
    for match in scene.find("led"):
        whose = _led_by(match) if match["what"] == "by" else match.whose_at("w")
        if match.then("of_season"):
            continue
        if len(whose) == 1 and whose[0].is_player:
            yield Claim(whose, partial(_top, scene, match.span("w"), _led_in(match), _scope(match), "led"))
    for match in scene.find("top_scorer"):
        whose = match.whose_at("w")[-1:]
        if whose and whose[0].is_player and not match.then("of_season"):
            scope = "bench" if match.then("of_bench") else "team"
            yield Claim(whose, partial(_top, scene, match.span("w"), "points", scope, "top"))


def _led_by(match: PatternMatch) -> Names:
    after = match.then("led_by_one")
    position = after.at("p") if after else None
    return (match.scene.names[position],) if position is not None else ()


def _scope(match: PatternMatch) -> str:
    what = match["what"]
    if what in {"bench", "reserves", "O unit"} or match.then("own_bench") or match.before("bench_led"):
        return "bench"
    return "starters" if what == "starters" else "game" if what.startswith(("all", "both", "game")) else "team"


def _led_in(match: PatternMatch) -> str:
    """What was led in: `in scoring`, `with 14 rebounds`; points unless said."""
    spoken = match.then("led_in")
    if spoken:
        return "rebounds" if spoken["s"] == "rebounding" else spoken["s"].removeprefix("S")
    if match.then("led_on_boards"):
        return "rebounds"
    phrase = None if match.then("led_in_points") else match.then("led_with") or _counted_before(match)
    return _statistic(phrase)


def _counted_before(match: PatternMatch) -> PatternMatch | None:
    """What was counted right before: `his 12 rebounds led all players`, `nine assists were a game-high`."""
    before = pattern("counted_before").search(match.scene.view[: match.raw.start()])
    return PatternMatch(match.scene, before) if before else None


def _statistic(match: PatternMatch | None) -> str:
    return match["s"] if match and match["s"] in table("statistics")["counts"] else "points"


def rivals(player: Player, game: Game, scope: str) -> list[Player]:
    """Those who could have led instead, himself among them."""
    everybody = [other for other in game.players if other.played]
    if scope == "game":
        return everybody
    mates = [other for other in everybody if other.team is player.team]
    wanted = {"bench": False, "starters": True}.get(scope)
    return mates if wanted is None else [other for other in mates if other.starter is wanted]


def _top(scene: Scene, span: Span, statistic: str, scope: str, kind: str, player: Entity) -> Iterator[Slip]:
    field = table("statistics")["counts"][statistic]["player"]
    value = player.count(field) if isinstance(player, Player) and player.team else None
    others = rivals(player, scene.game, scope) if isinstance(player, Player) else []
    better = [other for other in others if other is not player and (other.count(field) or 0) > (value or 0)]
    if value is None or not isinstance(player, Player) or not better:
        return
    best = max(better, key=lambda other: other.count(field) or 0)
    most = best.count(field) or 0
    flags = {
        f"rank {min(len(better), 3)}": True,
        "starter": scope == "bench" and player.starter,
        "close": most - value <= 2,
        "other than points": statistic != "points",
        "stranger": scene.section(len(scene.words)) not in (None, player.team),
    }
    claim, where = f"{player} led the {scope} in {statistic}", f"{field} of {best}"
    flag_names = frozenset(name for name, holds in flags.items() if holds)
    yield Slip(*span, "word", f"{kind}.{scope}", claim, f"{best} did, with {most}", where, flags=flag_names)


def highs(scene: Scene) -> Iterator[Claim]:
    """`a game-high 31 points`, `team-high`."""
    for match in scene.find("high"):
        whose = match.whose_at("w")[-1:]
        if whose and whose[0].is_player:
            statistic = _statistic(match.then("high_in") or _counted_before(match))
            yield Claim(whose, partial(_top, scene, match.span("w"), statistic, match["scope"], "high"))


def ranks(scene: Scene) -> Iterator[Claim]:
    """`was second on the team`, `was next`, `right behind him`."""
    for match in scene.find("rank"):
        ordinal, whose = match.at("o"), match.whose_at("o")[-1:]
        if ordinal is not None and whose and whose[0].is_player:
            yield Claim(whose, partial(_rank, scene, ordinal))
    for match in scene.find("next_in_line"):
        whose = match.whose_at("w")
        if len(whose) == 1 and whose[0].is_player:
            yield Claim(whose, partial(_next, scene, match.span("w"), match["w"].split()[0]))


def _rank(scene: Scene, ordinal: int, entity: Entity) -> Iterator[Slip]:
    player = _scorer(entity)
    if not player:
        return
    others = [points(other) for other in rivals(player, scene.game, "team") if other is not player]
    best = 1 + sum(value > points(player) for value in others)
    worst = 1 + sum(value >= points(player) for value in others)
    if not best <= scene.words[ordinal].value <= worst:
        claim = f"{player} was number {scene.words[ordinal].value} of his team in points"
        flags = frozenset({f"rank {min(best, 4)}"})
        yield Slip(*scene.span(ordinal), "number", "rank", claim, str(best), f"PTS of {player.team}", flags=flags)


def _next(scene: Scene, span: Span, how: str, entity: Entity) -> Iterator[Slip]:
    named = [option for name in scene.names.values() for option in name.options if isinstance(option, Player)]
    player, earlier = _scorer(entity), (*scene.story.recent_players, *(other for other in named if other is not entity))
    if not player:
        return
    better = [other for other in rivals(player, scene.game, "team") if points(other) > points(player)]
    untold = [other for other in better if other not in earlier]
    if untold or not better:
        flags = {
            f"behind {min(len(untold), 2)}" if better else "leader",
            *(["told before"] if player in earlier else []),
        }
        right = f"{untold[0]} did" if untold else "he led"
        claim, where = f"{player} came next in points", f"PTS of {player.team}"
        yield Slip(*span, "word", f"next.{how}", claim, right, where, flags=frozenset(flags))


# --- double-doubles, bench, others --------------------------------------------------------------------------------


def doubles(scene: Scene) -> Iterator[Claim]:
    """`a double-double`, `his second triple-double`."""
    for match in scene.find("double"):
        whose = match.whose_at("w")[-1:] or (() if scene.has("described") else _ahead(match))
        if whose and whose[0].is_player and not match.before("double_missed", 40):
            yield Claim(whose, partial(_double, scene, match.span("w"), match["size"], _ordinal(match)))


def _ahead(match: PatternMatch) -> Names:
    """The first player named after."""
    after = match.then("player_ahead")
    position = after.at("p") if after else None
    return (match.scene.names[position],) if position is not None else ()


def _ordinal(match: PatternMatch) -> int | None:
    """Number of the word before, if it is `second` or the like."""
    first = match.at("w")
    return first - 1 if first and match.scene.words[first - 1].code == "O" else None


def _double(scene: Scene, span: Span, size: str, ordinal: int | None, player: Entity) -> Iterator[Slip]:
    values = [player.count(field) for field in _MILESTONES] if isinstance(player, Player) else [None]
    reached = sum((value or 0) >= 10 for value in values)
    right = reached == 2 if size == "double" else reached >= 3
    if right or None in values:
        return
    fix = {2: "he had a double-double", 3: "he had a triple-double"}.get(reached, f"he had no {size}-double")
    claim, where = f"{player} had a {size}-double", f"{', '.join(_MILESTONES)} of {player}"
    if ordinal is not None:
        yield Slip(scene.words[ordinal].start, span[1], "number", f"{size}.ordinal", claim, fix, where)
    else:
        yield Slip(*span, "word", size, claim, fix, where, flags=frozenset({f"reached {min(reached, 3)}"}))


def bench(scene: Scene) -> Iterator[Claim]:
    """`off the bench`, `led the second unit`, `starter`."""
    reserves, starters = scene.find("bench", "led_bench"), scene.find("starter", "led_starters")
    for starter, match in [
        *((False, reserve) for reserve in reserves),
        *((True, starter_match) for starter_match in starters),
    ]:
        whose = match.whose_at("w")[-1:]
        opens = scene.view[: match.raw.start()].strip() in {"coming", "playing", ""}
        named = match.then("named_next")  # `starter X had 10`
        if ((not whose or not whose[0].is_player) and opens) or named:
            whose = _ahead(match)
        in_general = match.before("bench_in_general", 60) or match.then("bench_often")
        if whose and whose[0].is_player and not in_general:
            yield Claim(whose, partial(_bench, match.span("w"), starter))


def _bench(span: Span, starter: bool, player: Entity) -> Iterator[Slip]:
    if isinstance(player, Player) and player.played and player.starter is (not starter):
        claim = f"{player} {'started' if starter else 'came off the bench'}"
        kind, where = "starter" if starter else "bench", f"START_POSITION of {player}"
        yield Slip(*span, "word", kind, claim, _role(player.starter), where)


def only_other(scene: Scene) -> Iterator[Claim]:
    """`the only other starter in double figures`."""
    for match in scene.find("only_other"):
        whose = match.whose_at("w")[-2:]
        if not whose or not whose[0].is_player:
            later = [
                position
                for position in scene.sentence.indices("P")
                if scene.sentence.starts[position] > match.raw.start()
            ]
            whose = (scene.names[later[0]],) if later else ()
        if whose and not pattern("not_reached").search(match["rest"]):
            yield Claim(whose, partial(_only, match))


def _only(match: PatternMatch, *players: Entity) -> Iterator[Slip]:
    """One thing is wrong at a time: he was no starter, or scored too little, or was not the only one."""
    player, role = _scorer(players[0]), _STARTER.get(match["who"])
    if not player:
        return
    if role is not None and player.starter is (not role):
        claim, where = f"{player} was a {match.quote('who')}", f"START_POSITION of {player}"
        yield Slip(*match.span("who"), "word", "only.role", claim, _role(player.starter), where)
    elif all(isinstance(other, Player) and points(other) < 10 for other in players):
        claim, where = f"{player} scored in double figures", f"PTS of {player}"
        yield Slip(*match.span("d"), "word", "only.figures", claim, f"he scored {points(player)}", where)
    else:
        yield from _others(match, player, role, players)


def _others(match: PatternMatch, player: Player, role: bool | None, players: tuple[Entity, ...]) -> Iterator[Slip]:
    scene = match.scene
    mates = [mate for mate in rivals(player, scene.game, "team") if points(mate) >= 10 and mate not in players]
    mates = [mate for mate in mates if role is None or mate.starter == role]
    others = [mate for mate in mates if mate not in scene.story.recent_players]
    if others:
        start, end = match.span("w")
        end = match.span("o")[1] if match["o"] else end
        claim = f"{player} was the only other {match.quote('who')} in double figures"
        right, where = f"so were {', '.join(map(str, others))}", f"PTS of {player.team}"
        flags = frozenset({f"others {min(len(others), 3)}", f"mates {min(len(mates), 4)}"})
        yield Slip(start, end, "word", "only.other", claim, right, where, flags=flags)


def double_figures(scene: Scene) -> Iterator[Claim]:
    """`six players scored in double figures`."""
    for match in scene.find("double_figures"):
        number, after = match.at("n"), match.then("for_team")
        acting = next((name for name in match.whose_at("n") if not name.is_player), None)
        team = (after.team("t") if after else None) or match.team("t") or acting
        if number is not None and team:
            yield Claim((team,), partial(_figures, match, number))
        included = match.then("among_them")
        position = included.at("p") if included else None
        if position is not None:
            yield Claim((fixed(f"word {position}"),), partial(_included, scene, position))


def _figures(match: PatternMatch, number: int, team: Entity) -> Iterator[Slip]:
    scene, wanted = match.scene, _STARTER.get(match["role"])
    played = scene.game.of(team) if isinstance(team, Team) else []
    if any(other.count("PTS") is None for other in played):
        return
    who = [other for other in played if points(other) >= 10 and wanted in (None, other.starter)]
    right = (
        {len(who) - 1, sum(other not in scene.story.recent_players for other in who)} if match["other"] else {len(who)}
    )
    if played and scene.words[number].value not in right:
        claim = f"{scene.quote(number)} {match['role']} of the {team} scored in double figures"
        yield from scene.wrong_number(number, "double figures", claim, len(who), f"PTS of {team}")


def _included(scene: Scene, position: int, _: Entity) -> Iterator[Slip]:
    """`six players scored in double figures , including X`, who did not."""
    player = _scorer(scene.names[position].options[0])
    if player and len(scene.names[position].options) == 1 and points(player) < 10:
        claim, where = f"{player} scored in double figures", f"PTS of {player}"
        yield Slip(*scene.span(position), "name", "figures.included", claim, f"he scored {points(player)}", where)


def without(scene: Scene) -> Iterator[Claim]:
    """`played without X`, who did play."""
    for match in scene.find("without"):
        position = match.at("p")
        if position is not None and not scene.upcoming:
            yield Claim((scene.names[position],), partial(_without, match.span("w")))


def _without(span: Span, player: Entity) -> Iterator[Slip]:
    if isinstance(player, Player) and player.played:
        claim, right = f"{player} did not play", f"he played {player.count('MIN')} minutes"
        yield Slip(*span, "word", "without", claim, right, f"MIN of {player}")


def strangers(scene: Scene) -> Iterator[Claim]:
    """A name that the record lacks, or that is put together from two."""
    for position, word in enumerate(scene.words):
        if not word.odd or word.code not in "PX" or not scene.game.players or scene.has("missing"):
            continue
        before = " ".join(other.code for other in scene.words[max(0, position - 2) : position])
        if word.code == "P" or (_takes_part(scene, position) and not pattern("no_player").search(before)):
            yield Claim((fixed(f"word {position}"),), partial(_stranger, scene, position))


def _takes_part(scene: Scene, position: int) -> bool:
    """Whether an unknown person is given numbers, a team's crew or a player as companion."""
    start, name = scene.sentence.starts[position], scene.names[position]
    numbers = any(name in scene.subjects[n] for n, word in enumerate(scene.words) if word.code == "N" and n > position)
    crew = pattern("crew").match(scene.view, start + 1)
    return numbers or crew is not None or scene.view[:start].endswith("P and ")


def _stranger(scene: Scene, position: int, _: Entity) -> Iterator[Slip]:
    word = scene.words[position]
    kind, correction = ("name.odd", str(word.value[0])) if word.code == "P" else ("name.unknown", "")
    yield Slip(*scene.span(position), "name", kind, f"{scene.quote(position)} took part", correction, "PLAYER_NAME")


def paired(scene: Scene) -> Mention | None:
    """The team that the sentence last said to have a player."""
    team_pairs = list(pairs(scene))
    return scene.names[team_pairs[-1].team] if team_pairs else None


FAMILY = (plays_for, context, leads, highs, ranks, doubles, bench, only_other, double_figures, without, strangers)
