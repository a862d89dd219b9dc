"""Claims about the game: who won, by what score, quarter by quarter, where, when; words that fit one outcome only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from finecomb.annotators.detectors.boxscore.claims import Check, Claim, Entity, Mention, Slip
from finecomb.annotators.detectors.boxscore.discourse import Names, PatternMatch, Scene, fixed
from finecomb.annotators.detectors.boxscore.record import QUARTERS, Game, Team
from finecomb.annotators.detectors.boxscore.report_parser import DAYS, pattern, table
from finecomb.annotators.detectors.boxscore.stat_claims import counted, field_of, value_of

Span = tuple[int, int]
Quarters = tuple[int, ...]
Numbers = tuple[int | None, int | None]


def fields(quarters: Quarters) -> str:
    """The record's fields for points in these quarters."""
    return ", ".join(f"TEAM-PTS_QTR{quarter}" for quarter in quarters)


def lead(game: Game, team: Team, quarters: Quarters) -> int | None:
    """The lead of a team: by how many points it was better in these quarters."""
    mine, theirs = game.scored(team, quarters), game.scored(game.other(team), quarters)
    return None if mine is None or theirs is None else mine - theirs


def pair_slips(
    scene: Scene, numbers: Numbers, values: Numbers, kind: str, where: str, *, either: bool = False
) -> Iterator[Slip]:
    """The numbers of a pair that are wrong; `either`: the winner's may stand first if that leaves fewer wrong."""
    (one, two), (first, second) = numbers, values
    if one is None or two is None or first is None or second is None:
        return
    stated = scene.words[one].value, scene.words[two].value
    orders = [(max(first, second), min(first, second)), (first, second)] if either else [(first, second)]
    right = min(orders, key=lambda order: (stated[0] != order[0]) + (stated[1] != order[1]))
    for at, value in zip((one, two), right, strict=True):
        yield from scene.wrong_number(at, kind, f"the {kind} was {stated[0]}-{stated[1]}", value, where)


# --- who won ------------------------------------------------------------------------------------------------------


def results(scene: Scene) -> Iterator[Claim]:
    """`The Ts defeated the Us, 113-107`."""
    if scene.upcoming or scene.has("earlier_meeting"):
        return
    for match in scene.find("result"):
        one, two = match.team("t"), match.team("u")
        if one and two:
            yield Claim((one, two), partial(_result, match, one, two))
        elif one and scene.first and not scene.names_both_teams:
            yield Claim((one,), partial(_played_stranger, match))


def _result(match: PatternMatch, one: Mention, two: Mention, first: Entity, second: Entity) -> Iterator[Slip]:
    game, lost = match.scene.game, bool(match["fell"])
    if not isinstance(first, Team) or not isinstance(second, Team) or game.winner is None:
        return
    right = game.other(game.winner) if lost else game.winner
    if first is second:
        blamed, meant = (one, right) if first is not right else (two, game.other(right))
        claim = f"the {first} played themselves"
        yield Slip(blamed.start, blamed.end, "name", "name.same", claim, str(meant), "TEAM-NAME")
        first, second = right, game.other(right)
    elif first is not right:
        claim, fix = f"the {first} {match['w']} the {second}", "defeated" if lost else "lost to"
        swapped = tuple(
            Slip(name.start, name.end, "name", "result", claim, str(team), "TEAM-PTS")
            for name, team in ((one, second), (two, first))
            if not name.fixed
        )
        where = f"TEAM-PTS of {first} and {second}"
        yield Slip(*match.span("w"), "word", "result", claim, fix, where, otherwise=swapped)
    yield from _final_score(match, first, second)


def _final_score(match: PatternMatch, first: Team, second: Team) -> Iterator[Slip]:
    values = match.scene.game.points(first), match.scene.game.points(second)
    numbers = match.at("a"), match.at("b")
    yield from pair_slips(match.scene, numbers, values, "final score", "TEAM-PTS", either=True)


def _played_stranger(match: PatternMatch, team: Entity) -> Iterator[Slip]:
    at = match.at("u")
    if isinstance(team, Team) and at is not None:
        other = match.scene.game.other(team)
        claim = f"the {team} played {match.scene.quote(at)}"
        yield Slip(*match.scene.span(at), "name", "result.stranger", claim, str(other), "TEAM-NAME")
        yield from _final_score(match, team, other)


def opponents(scene: Scene) -> Iterator[Claim]:
    """Nobody plays against himself: `the Ts outscored the Ts`."""
    for match in () if scene.upcoming else scene.find("against"):
        team, whose = match.team("t"), match.whose[:1]
        if team and whose and not whose[0].is_player and whose[0] != team:
            yield Claim((whose[0], team), partial(_same, scene, team))


def _same(scene: Scene, name: Mention, one: Entity, two: Entity) -> Iterator[Slip]:
    if one is two and isinstance(one, Team):
        claim, right = f"the {one} played against themselves", str(scene.game.other(one))
        yield Slip(name.start, name.end, "name", "name.same", claim, right, "TEAM-NAME")


def margins(scene: Scene) -> Iterator[Slip]:
    """`a 30-point win`, `won by 30`."""
    home, vis = (scene.game.points(team) for team in scene.game.teams)
    if home is None or vis is None or scene.upcoming or scene.elsewhere:
        return
    for match in scene.find("margin", "won_by"):
        at = match.at("n")
        if at is not None:
            yield from scene.wrong_number(
                at, "margin", f"the margin was {scene.quote(at)}", abs(home - vis), "TEAM-PTS"
            )


# --- quarters and halves ------------------------------------------------------------------------------------------


def periods(scene: Scene) -> Iterator[Claim]:
    """`outscored the Ts 37-20 in the fourth quarter`, `a 31-22 lead after one quarter`, `a 33-point first quarter`."""
    done: set[int | None] = set()
    for match in scene.find("outscored", "won_period"):
        quarters = period(match) or _nearest_period(match)
        whose = match.whose_at("w")
        if quarters and whose and not whose[0].is_player:
            done |= {match.at("a"), match.at("b")}
            yield Claim(whose[:1], partial(_outscored, match, quarters))
    for match in scene.find("period_score"):
        quarters, whose = period(match), match.whose_at("a")
        if quarters and whose and not whose[0].is_player and match.at("a") not in done:
            yield Claim(whose[:1], partial(_period_score, match, quarters))
    for match in scene.find("period_points", "points_in_period"):
        if match.before("not_exact", 24):
            continue
        quarters, whose = period(match), match.whose_at("n")
        whose = scene.opponents(whose) if match.before("conceded", 80) else whose
        if quarters and whose and not whose[0].is_player:
            yield Claim(whose[:1], partial(_period_points, match, quarters))
    yield from _within(scene)


def _within(scene: Scene) -> Iterator[Claim]:
    """`a one-point game at the end of the third quarter`."""
    for match in scene.find("game_within"):
        at, last = match.at("n"), match.at("o")
        if at is not None and last is not None and scene.words[last].value in QUARTERS:
            quarters = tuple(range(1, scene.words[last].value + 1))
            yield Claim((fixed(scene.game.home),), partial(_gap, scene, at, quarters))


def _gap(scene: Scene, at: int, quarters: Quarters, home: Entity) -> Iterator[Slip]:
    ahead = lead(scene.game, home, quarters) if isinstance(home, Team) else None
    if ahead is not None:
        claim = f"the teams were {scene.quote(at)} points apart"
        yield from scene.wrong_number(at, "period gap", claim, abs(ahead), fields(quarters))


def period(match: PatternMatch) -> Quarters:
    """Which quarters the words tell of; none when they do not say."""
    word = match.scene.words
    at, also, after, last = (match.at(group) for group in ("o", "o2", "after", "last"))
    if at is not None and (match["into"] or match["until"]):
        return _so_far(word[at].value - bool(match["into"]), 2 if match["part"].startswith("half") else 1)
    if at is not None and match["part"].startswith("half"):
        return {1: (1, 2), 2: (3, 4)}.get(word[at].value, ())
    wanted: Quarters = ()
    if at is not None:
        wanted = (word[at].value,) if also is None else (word[at].value, word[also].value)
    elif after is not None:
        wanted = tuple(range(1, min(word[after].value, 5) + 1))
    elif last is not None:
        wanted = tuple(range(5 - min(word[last].value, 5), 5))
    elif match["half"] or match["late"]:
        wanted = (1, 2) if match["half"] else (4,)
    return wanted if set(wanted) <= set(QUARTERS) else ()


def _so_far(count: int, size: int) -> Quarters:
    """The quarters played after so many quarters or, of size two, halves."""
    return tuple(range(1, count * size + 1)) if 0 < count * size <= len(QUARTERS) else ()


def _nearest_period(match: PatternMatch) -> Quarters:
    """The period told after a match in the same clause, or else the last one before it."""
    scene, end = match.scene, match.raw.end()
    clause = pattern("another_clause").search(scene.view, end)
    times = list(scene.find("when"))
    after = [time for time in times if end <= time.raw.start() < (clause.start() if clause else len(scene.view))]
    before = [time for time in times if time.raw.end() <= match.raw.start()]
    chosen = after[:1] or before[-1:]
    return period(chosen[0]) if chosen else ()


def _outscored(match: PatternMatch, quarters: Quarters, team: Entity) -> Iterator[Slip]:
    scene, game, passive = match.scene, match.scene.game, bool(match["passive"])
    team = game.other(team) if passive and isinstance(team, Team) else team  # `were outscored`
    ahead = lead(game, team, quarters) if isinstance(team, Team) else None
    if ahead is None or not isinstance(team, Team):
        return
    other = game.other(team)
    values = game.scored(team, quarters), game.scored(other, quarters)
    if ahead <= 0:
        claim = f"the {team} outscored the {other}"
        yield Slip(*match.span("w"), "word", "outscored", claim, f"it was {values[0]}-{values[1]}", fields(quarters))
    one, two = match.at("a"), match.at("b")
    yield from pair_slips(scene, (one, two), values, "period score", fields(quarters), either=passive)
    if one is not None and two is None:
        claim = f"the {team} outscored the {other} by {scene.quote(one)}"
        yield from scene.wrong_number(one, "period margin", claim, ahead, fields(quarters))


def _period_score(match: PatternMatch, quarters: Quarters, team: Entity) -> Iterator[Slip]:
    if isinstance(team, Team):
        game = match.scene.game
        values = game.scored(team, quarters), game.scored(game.other(team), quarters)
        numbers = match.at("a"), match.at("b")
        yield from pair_slips(match.scene, numbers, values, "period score", fields(quarters), either=True)


def _period_points(match: PatternMatch, quarters: Quarters, team: Entity) -> Iterator[Slip]:
    scene, at = match.scene, match.at("n")
    value = scene.game.scored(team, quarters) if isinstance(team, Team) else None
    if value is not None and at is not None:
        claim = f"the {team} scored {scene.quote(at)} points in that part of the game"
        yield from scene.wrong_number(at, "period points", claim, value, fields(quarters))


# --- team against team --------------------------------------------------------------------------------------------


def battles(scene: Scene) -> Iterator[Claim]:
    """`won the rebounding battle, 47-43`, `47 boards to the Ts 48`, `13 of their own`."""
    for match in scene.find("battle", "outrebounded", "board_edge") if scene.has("boards") else ():
        whose = match.whose_at("a")
        if whose and not whose[0].is_player:
            yield Claim(whose[:1], partial(_battle, match))
    for match in scene.find("to_theirs"):
        at, number, team = match.at("s"), match.at("n"), match.team("t")
        if at is not None and number is not None and team:
            yield Claim((team,), partial(_theirs, scene, number, scene.words[at].value))
    for match in scene.find("of_their_own"):
        number = match.at("n")
        counted = [word.value for word in scene.words[: number or 0] if word.code.startswith("S")]
        acting = [scene.names[at] for at in scene.teams_acting]
        if number is not None and counted and acting:
            yield Claim((acting[0],), partial(_theirs, scene, number, counted[-1]))


def _battle(match: PatternMatch, team: Entity) -> Iterator[Slip]:
    if isinstance(team, Team):
        values = team.line.get("TEAM-REB"), match.scene.game.other(team).line.get("TEAM-REB")
        numbers = match.at("a"), match.at("b")
        yield from pair_slips(match.scene, numbers, values, "rebounding battle", "TEAM-REB", either=True)


def _theirs(scene: Scene, number: int, statistic: str, team: Entity) -> Iterator[Slip]:
    field = field_of(team, statistic)
    value = value_of(team, field)
    if value is not None:
        claim = f"the {team} had {counted(scene.words[number].value, statistic)}"
        yield from scene.wrong_number(number, "team.other", claim, value, f"{field} of {team}")


# --- where and when -----------------------------------------------------------------------------------------------


def places(scene: Scene) -> Iterator[Claim]:
    """`the host Ts`, `at the A in C`, `a road win`, `at home`."""
    if scene.upcoming:
        return
    for match in scene.find("side"):
        team = match.team("t")
        if team:
            yield Claim((team,), partial(_side, match.span("w"), "home" if match["home"] else "vis", "side"))
    flags = ("elsewhere",) if scene.elsewhere else ()
    for side, name in (("home", "home_crowd"), ("home", "at_home"), ("vis", "on_road")):
        for match in scene.find(name):
            team = scene.team_of(match.at("w"))
            if team:
                yield Claim((team,), partial(_side, match.span("w"), side, name, flags=flags))
    yield from _arenas(scene)


def _arenas(scene: Scene) -> Iterator[Claim]:
    home = scene.game.home
    listed = table("league")["teams"].get(home.name, {}).get("arenas")
    for match in scene.find("place"):
        for kind, at in (("arena", match.at("a")), ("city", match.at("c"))):
            if at is not None and home not in scene.words[at].value and (kind == "city" or listed):
                yield Claim((fixed(home),), partial(_place, scene, at, kind))


def _side(span: Span, wanted: str, kind: str, team: Entity, flags: Iterable[str] = ()) -> Iterator[Slip]:
    if isinstance(team, Team) and team.side != wanted:
        claim = f"the {team} {'were at home' if wanted == 'home' else 'were on the road'}"
        right, where = "home" if team.side == "home" else "road", f"{team.side}_name"
        yield Slip(*span, "word", kind, claim, right, where, flags=frozenset(flags))


def _place(scene: Scene, at: int, kind: str, home: Entity) -> Iterator[Slip]:
    claim = f"the game was played at {scene.quote(at)}"
    yield Slip(*scene.span(at), "name", kind, claim, f"the {home} were at home", "home_name")


def days(scene: Scene) -> Iterator[Slip]:
    """`on Wednesday` of the game itself; with a third team in the sentence it is another game's day.

    So is, after the opening, the day on which a player did something: `Reyes sat out on Wednesday`.
    """
    if scene.game.date is None or scene.upcoming or scene.third_team:
        return
    right = scene.game.date.weekday()
    for at in scene.sentence.indices("D"):
        day, before = scene.words[at].value, scene.view[: scene.sentence.starts[at]]
        whose = () if scene.first else scene.subjects[at]
        if day != right and not pattern("another_day").search(before) and not (whose and whose[0].is_player):
            flags = frozenset({"elsewhere"} if scene.elsewhere else ())
            yield Slip(
                *scene.span(at), "name", "day", f"the game was played on {DAYS[day]}", DAYS[right], "day", flags=flags
            )


def overtimes(scene: Scene) -> Iterator[Slip]:
    """`in overtime`, of a game that had none."""
    if scene.game.overtime is False and not scene.upcoming and not scene.elsewhere:
        for match in scene.find("overtime"):
            if match.before("overtime_unreal"):
                continue
            claim = "the game went to overtime"
            yield Slip(*match.span("w"), "word", "overtime", claim, "it did not", "TEAM-PTS")


# --- words that fit one outcome only ------------------------------------------------------------------------------


def outcomes(scene: Scene) -> Iterator[Claim]:
    """`in the win`, `look to bounce back`, of a team or through a player."""
    for wanted in ("won", "lost"):
        for match in scene.find(f"says_{wanted}"):
            group = next(name for name in ("w", "w2", "w3") if match[name])
            team = scene.team_of(match.at(group))
            negated = pattern("negated").search(scene.view[: match.raw.start(group)])
            if team and not negated and not match.then("bounced_from"):
                yield Claim((team,), partial(_outcome, match, group, wanted))


def _outcome(match: PatternMatch, group: str, wanted: str, team: Entity) -> Iterator[Slip]:
    winner = match.scene.game.winner
    if isinstance(team, Team) and winner is not None and (team is winner) != (wanted == "won"):
        first, *more = match[group].split()
        kind = f"outcome.{wanted}.{first}" if more else f"outcome.{wanted}"
        flags = frozenset({"upcoming"} if match.scene.upcoming else ())
        right = "they lost" if wanted == "won" else "they won"
        yield Slip(*match.span(group), "word", kind, f"the {team} {wanted}", right, "TEAM-PTS", flags=flags)


def forms(scene: Scene) -> Iterator[Claim]:
    """`struggling`, `one of the best teams`, held against wins and losses."""
    for match in scene.find("form"):
        group = "bad" if match["bad"] else "good"
        team = scene.team_of(match.at(group))
        if match.before("of_both"):
            names: Names = tuple(map(fixed, scene.game.teams))
            yield Claim(names, partial(_both_forms, match.span(group), group))
        elif team and not match.before("negated") and not match.before("of_opponent"):
            yield Claim((team,), partial(_form, scene, match.span(group), group))


def _share(team: Entity) -> float | None:
    """Share of games won; None before the fifth game."""
    line = team.line if isinstance(team, Team) else {}
    won, lost = line.get("TEAM-WINS"), line.get("TEAM-LOSSES")
    return won / (won + lost) if won is not None and lost is not None and won + lost >= 5 else None


def _both_forms(span: Span, group: str, *teams: Entity) -> Iterator[Slip]:
    shares = [share for team in teams if (share := _share(team)) is not None]
    wrong = [(share > 0.5) == (group == "bad") for share in shares]
    if len(shares) == len(teams) and any(wrong):
        claim, where = f"both teams were in {group} form", "TEAM-WINS, TEAM-LOSSES"
        flags = frozenset({"all" if all(wrong) else "one"})
        yield Slip(*span, "word", f"form.both.{group}", claim, "wins and losses say otherwise", where, flags=flags)


def _form(scene: Scene, span: Span, group: str, team: Entity) -> Iterator[Slip]:
    share = _share(team)
    if share is None or not isinstance(team, Team):
        return
    doubt = share - 0.5 if group == "bad" else 0.5 - share
    if doubt > (0 if group == "bad" else -0.05):
        far = "far" if doubt > 0.12 else "near" if doubt > 0 else "fits"
        flags = frozenset({far, "won" if team is scene.game.winner else "lost"})
        right = f"they have {team.line['TEAM-WINS']} wins, {team.line['TEAM-LOSSES']} losses"
        where = f"TEAM-WINS, TEAM-LOSSES of {team}"
        yield Slip(*span, "word", f"form.{group}", f"the {team} were in {group} form", right, where, flags=flags)


def courses(scene: Scene) -> Iterator[Claim]:
    """How the game went: `led for the entirety of the second half`, `pulled away`, `a hot start`, `the key`."""
    for name, check in COURSES.items():
        for match in scene.find(name):
            team = match.team("t") or scene.team_of(match.at("w"))
            if team:
                yield Claim((team,), partial(check, match))


def _ahead(match: PatternMatch, team: Entity) -> Iterator[Slip]:
    if not isinstance(team, Team):
        return
    marks: list[Quarters] = [(1,), (1, 2), (1, 2, 3), QUARTERS]
    marks = marks[{"O half": 1, "O quarter": 2}.get(match["what"], 0) :]
    leads = [ahead for quarters in marks if (ahead := lead(match.scene.game, team, quarters)) is not None]
    behind = [ahead for ahead in leads if ahead <= 0]
    if len(leads) == len(marks) and len(behind) > (len(leads) / 2 if match["mostly"] else 0):
        right = f"they trailed by {-min(behind)}" if min(behind) else "the score was level"
        yield Slip(*match.span("w"), "word", "ahead", f"the {team} led all along", right, "TEAM-PTS_QTR1 to 4")


def _better(kind: str, match: PatternMatch, team: Entity) -> Iterator[Slip]:
    if kind == "start":
        quarters: Quarters = (1, 2) if match["half"] else (1,)
    else:
        quarters = period(match) or ((4,) if match["part"] == "quarter" else (3, 4))
    ahead = lead(match.scene.game, team, quarters) if isinstance(team, Team) else None
    if ahead is not None and (ahead < 0 or (ahead == 0 and kind == "pulled")):
        right = f"they were outscored by {-ahead}" if ahead else "both scored as much"
        yield Slip(*match.span("w"), "word", kind, f"the {team} were better then", right, fields(quarters))


def _came_back(match: PatternMatch, team: Entity) -> Iterator[Slip]:
    """Somebody who battles back has been behind: when the period began, or at the end of any of the first three."""
    if not isinstance(team, Team):
        return
    begun = period(match)[:1]
    marks = [tuple(range(1, begun[0]))] if begun and begun[0] > 1 else [(1,), (1, 2), (1, 2, 3)]
    leads = [ahead for quarters in marks if (ahead := lead(match.scene.game, team, quarters)) is not None]
    if len(leads) == len(marks) and min(leads) > 0:
        right = f"they were ahead by {min(leads)} or more"
        yield Slip(*match.span("w"), "word", "comeback", f"the {team} had been behind", right, "TEAM-PTS_QTR1 to 3")


_COMPARED = {"TEAM-FG_PCT": "percent of their shots", "TEAM-REB": "rebounds"}


def _more(kind: str, field: str, match: PatternMatch, team: Entity) -> Iterator[Slip]:
    if isinstance(team, Team):
        mine, theirs = team.line.get(field), match.scene.game.other(team).line.get(field)
        if mine is not None and theirs is not None and mine < theirs:
            claim = f"the {team} had more {_COMPARED[field]}"
            yield Slip(*match.span("w"), "word", kind, claim, f"it was {mine} against {theirs}", field)


COURSES: dict[str, Check] = {
    "ahead": _ahead,
    "pulled": partial(_better, "pulled"),
    "start": partial(_better, "start"),
    "comeback": _came_back,
    "superior": partial(_more, "superior", "TEAM-FG_PCT"),
    "key": partial(_more, "key", "TEAM-REB"),
    "key_for": partial(_more, "key", "TEAM-REB"),
}
FAMILY = (results, opponents, periods, margins, battles, places, days, overtimes, outcomes, forms, courses)
