"""Claims about the game: who won, by what score, quarter by quarter, where, when; words that fit one outcome only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from finecomb.annotators.detectors.boxscore.claims import Claim, ClaimCheck, Entity, ErrorCandidate, Mention
from finecomb.annotators.detectors.boxscore.discourse import Mentions, PatternMatch, SentenceContext, implicit_mention
from finecomb.annotators.detectors.boxscore.game import QUARTERS, Game, Team
from finecomb.annotators.detectors.boxscore.report_parser import DAYS, compile_pattern, load_table
from finecomb.annotators.detectors.boxscore.stat_claims import format_count, record_field, record_value

Span = tuple[int, int]
Quarters = tuple[int, ...]
Numbers = tuple[int | None, int | None]


def quarter_fields(quarters: Quarters) -> str:
    """The record's fields for points in these quarters."""
    return ", ".join(f"TEAM-PTS_QTR{quarter}" for quarter in quarters)


def point_lead(game: Game, team: Team, quarters: Quarters) -> int | None:
    """The lead of a team: by how many points it was better in these quarters."""
    mine, theirs = game.quarter_points(team, quarters), game.quarter_points(game.opponent(team), quarters)
    return None if mine is None or theirs is None else mine - theirs


def check_number_pair(
    scene: SentenceContext, numbers: Numbers, values: Numbers, kind: str, where: str, *, either: bool = False
) -> Iterator[ErrorCandidate]:
    """The numbers of a pair that are wrong; `either`: the winner's may stand first if that leaves fewer wrong."""
    (one, two), (first, second) = numbers, values
    if one is None or two is None or first is None or second is None:
        return
    stated = scene.words[one].value, scene.words[two].value
    orders = [(max(first, second), min(first, second)), (first, second)] if either else [(first, second)]
    right = min(orders, key=lambda order: (stated[0] != order[0]) + (stated[1] != order[1]))
    for at, value in zip((one, two), right, strict=True):
        yield from scene.check_number(at, kind, f"the {kind} was {stated[0]}-{stated[1]}", value, where)


# --- who won ------------------------------------------------------------------------------------------------------


def find_result_claims(scene: SentenceContext) -> Iterator[Claim]:
    """`The Ts defeated the Us, 113-107`."""
    if scene.is_about_next_game or scene.has_pattern("earlier_meeting"):
        return
    for match in scene.find_patterns("result"):
        one, two = match.team("t"), match.team("u")
        if one and two:
            yield Claim((one, two), partial(_check_result, match, one, two))
        elif one and scene.first and not scene.names_both_teams:
            yield Claim((one,), partial(_check_unknown_opponent, match))


def _check_result(
    match: PatternMatch, one: Mention, two: Mention, first: Entity, second: Entity
) -> Iterator[ErrorCandidate]:
    game, lost = match.scene.game, bool(match["fell"])
    if not isinstance(first, Team) or not isinstance(second, Team) or game.winner is None:
        return
    right = game.opponent(game.winner) if lost else game.winner
    if first is second:
        blamed, meant = (one, right) if first is not right else (two, game.opponent(right))
        claim = f"the {first} played themselves"
        yield ErrorCandidate(blamed.start, blamed.end, "name", "name.same", claim, str(meant), "TEAM-NAME")
        first, second = right, game.opponent(right)
    elif first is not right:
        claim, fix = f"the {first} {match['w']} the {second}", "defeated" if lost else "lost to"
        swapped = tuple(
            ErrorCandidate(name.start, name.end, "name", "result", claim, str(team), "TEAM-PTS")
            for name, team in ((one, second), (two, first))
            if not name.fixed
        )
        where = f"TEAM-PTS of {first} and {second}"
        yield ErrorCandidate(*match.span("w"), "word", "result", claim, fix, where, otherwise=swapped)
    yield from _check_final_score(match, first, second)


def _check_final_score(match: PatternMatch, first: Team, second: Team) -> Iterator[ErrorCandidate]:
    values = match.scene.game.points(first), match.scene.game.points(second)
    numbers = match.word_index("a"), match.word_index("b")
    yield from check_number_pair(match.scene, numbers, values, "final score", "TEAM-PTS", either=True)


def _check_unknown_opponent(match: PatternMatch, team: Entity) -> Iterator[ErrorCandidate]:
    at = match.word_index("u")
    if isinstance(team, Team) and at is not None:
        other = match.scene.game.opponent(team)
        claim = f"the {team} played {match.scene.quote(at)}"
        yield ErrorCandidate(*match.scene.span(at), "name", "result.stranger", claim, str(other), "TEAM-NAME")
        yield from _check_final_score(match, team, other)


def find_opponent_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Nobody plays against himself: `the Ts outscored the Ts`."""
    for match in () if scene.is_about_next_game else scene.find_patterns("against"):
        team, whose = match.team("t"), match.subjects[:1]
        if team and whose and not whose[0].is_player and whose[0] != team:
            yield Claim((whose[0], team), partial(_check_same_team, scene, team))


def _check_same_team(scene: SentenceContext, name: Mention, one: Entity, two: Entity) -> Iterator[ErrorCandidate]:
    if one is two and isinstance(one, Team):
        claim, right = f"the {one} played against themselves", str(scene.game.opponent(one))
        yield ErrorCandidate(name.start, name.end, "name", "name.same", claim, right, "TEAM-NAME")


def check_margins(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    """`a 30-point win`, `won by 30`."""
    home, vis = (scene.game.points(team) for team in scene.game.teams)
    if home is None or vis is None or scene.is_about_next_game or scene.is_about_other_games:
        return
    for match in scene.find_patterns("margin", "won_by"):
        at = match.word_index("n")
        if at is not None:
            yield from scene.check_number(
                at, "margin", f"the margin was {scene.quote(at)}", abs(home - vis), "TEAM-PTS"
            )


# --- quarters and halves ------------------------------------------------------------------------------------------


def find_period_claims(scene: SentenceContext) -> Iterator[Claim]:
    """`outscored the Ts 37-20 in the fourth quarter`, `a 31-22 lead after one quarter`, `a 33-point first quarter`."""
    done: set[int | None] = set()
    for match in scene.find_patterns("outscored", "won_period"):
        quarters = parse_period(match) or _nearest_period(match)
        whose = match.group_subjects("w")
        if quarters and whose and not whose[0].is_player:
            done |= {match.word_index("a"), match.word_index("b")}
            yield Claim(whose[:1], partial(_check_outscored, match, quarters))
    for match in scene.find_patterns("period_score"):
        quarters, whose = parse_period(match), match.group_subjects("a")
        if quarters and whose and not whose[0].is_player and match.word_index("a") not in done:
            yield Claim(whose[:1], partial(_check_period_score, match, quarters))
    for match in scene.find_patterns("period_points", "points_in_period"):
        if match.is_preceded_by("not_exact", 24):
            continue
        quarters, whose = parse_period(match), match.group_subjects("n")
        whose = scene.opposing_team(whose) if match.is_preceded_by("conceded", 80) else whose
        if quarters and whose and not whose[0].is_player:
            yield Claim(whose[:1], partial(_check_period_points, match, quarters))
    yield from _find_period_gap_claims(scene)


def _find_period_gap_claims(scene: SentenceContext) -> Iterator[Claim]:
    """`a one-point game at the end of the third quarter`."""
    for match in scene.find_patterns("game_within"):
        at, last = match.word_index("n"), match.word_index("o")
        if at is not None and last is not None and scene.words[last].value in QUARTERS:
            quarters = tuple(range(1, scene.words[last].value + 1))
            yield Claim((implicit_mention(scene.game.home),), partial(_check_period_gap, scene, at, quarters))


def _check_period_gap(scene: SentenceContext, at: int, quarters: Quarters, home: Entity) -> Iterator[ErrorCandidate]:
    ahead = point_lead(scene.game, home, quarters) if isinstance(home, Team) else None
    if ahead is not None:
        claim = f"the teams were {scene.quote(at)} points apart"
        yield from scene.check_number(at, "period gap", claim, abs(ahead), quarter_fields(quarters))


def parse_period(match: PatternMatch) -> Quarters:
    """Which quarters the words tell of; none when they do not say."""
    word = match.scene.words
    at, also, after, last = (match.word_index(group) for group in ("o", "o2", "after", "last"))
    if at is not None and (match["into"] or match["until"]):
        return _quarters_so_far(word[at].value - bool(match["into"]), 2 if match["part"].startswith("half") else 1)
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


def _quarters_so_far(count: int, size: int) -> Quarters:
    """The quarters played after so many quarters or, of size two, halves."""
    return tuple(range(1, count * size + 1)) if 0 < count * size <= len(QUARTERS) else ()


def _nearest_period(match: PatternMatch) -> Quarters:
    """The period told after a match in the same clause, or else the last one before it."""
    scene, end = match.scene, match.raw.end()
    clause = compile_pattern("another_clause").search(scene.coded_text, end)
    times = list(scene.find_patterns("when"))
    after = [time for time in times if end <= time.raw.start() < (clause.start() if clause else len(scene.coded_text))]
    before = [time for time in times if time.raw.end() <= match.raw.start()]
    chosen = after[:1] or before[-1:]
    return parse_period(chosen[0]) if chosen else ()


def _check_outscored(match: PatternMatch, quarters: Quarters, team: Entity) -> Iterator[ErrorCandidate]:
    scene, game, passive = match.scene, match.scene.game, bool(match["passive"])
    team = game.opponent(team) if passive and isinstance(team, Team) else team  # `were outscored`
    ahead = point_lead(game, team, quarters) if isinstance(team, Team) else None
    if ahead is None or not isinstance(team, Team):
        return
    other = game.opponent(team)
    values = game.quarter_points(team, quarters), game.quarter_points(other, quarters)
    if ahead <= 0:
        claim = f"the {team} outscored the {other}"
        yield ErrorCandidate(
            *match.span("w"), "word", "outscored", claim, f"it was {values[0]}-{values[1]}", quarter_fields(quarters)
        )
    one, two = match.word_index("a"), match.word_index("b")
    yield from check_number_pair(scene, (one, two), values, "period score", quarter_fields(quarters), either=passive)
    if one is not None and two is None:
        claim = f"the {team} outscored the {other} by {scene.quote(one)}"
        yield from scene.check_number(one, "period margin", claim, ahead, quarter_fields(quarters))


def _check_period_score(match: PatternMatch, quarters: Quarters, team: Entity) -> Iterator[ErrorCandidate]:
    if isinstance(team, Team):
        game = match.scene.game
        values = game.quarter_points(team, quarters), game.quarter_points(game.opponent(team), quarters)
        numbers = match.word_index("a"), match.word_index("b")
        yield from check_number_pair(
            match.scene, numbers, values, "period score", quarter_fields(quarters), either=True
        )


def _check_period_points(match: PatternMatch, quarters: Quarters, team: Entity) -> Iterator[ErrorCandidate]:
    scene, at = match.scene, match.word_index("n")
    value = scene.game.quarter_points(team, quarters) if isinstance(team, Team) else None
    if value is not None and at is not None:
        claim = f"the {team} scored {scene.quote(at)} points in that part of the game"
        yield from scene.check_number(at, "period points", claim, value, quarter_fields(quarters))


# --- team against team --------------------------------------------------------------------------------------------


def find_team_comparison_claims(scene: SentenceContext) -> Iterator[Claim]:
    """`won the rebounding battle, 47-43`, `47 boards to the Ts 48`, `13 of their own`."""
    for match in scene.find_patterns("battle", "outrebounded", "board_edge") if scene.has_pattern("boards") else ():
        whose = match.group_subjects("a")
        if whose and not whose[0].is_player:
            yield Claim(whose[:1], partial(_check_rebounds, match))
    for match in scene.find_patterns("to_theirs"):
        at, number, team = match.word_index("s"), match.word_index("n"), match.team("t")
        if at is not None and number is not None and team:
            yield Claim((team,), partial(_check_team_statistic, scene, number, scene.words[at].value))
    for match in scene.find_patterns("of_their_own"):
        number = match.word_index("n")
        counted = [word.value for word in scene.words[: number or 0] if word.code.startswith("S")]
        acting = [scene.mentions_by_word[at] for at in scene.subject_team_indices]
        if number is not None and counted and acting:
            yield Claim((acting[0],), partial(_check_team_statistic, scene, number, counted[-1]))


def _check_rebounds(match: PatternMatch, team: Entity) -> Iterator[ErrorCandidate]:
    if isinstance(team, Team):
        values = team.line.get("TEAM-REB"), match.scene.game.opponent(team).line.get("TEAM-REB")
        numbers = match.word_index("a"), match.word_index("b")
        yield from check_number_pair(match.scene, numbers, values, "rebounding battle", "TEAM-REB", either=True)


def _check_team_statistic(
    scene: SentenceContext, number: int, statistic: str, team: Entity
) -> Iterator[ErrorCandidate]:
    field = record_field(team, statistic)
    value = record_value(team, field)
    if value is not None:
        claim = f"the {team} had {format_count(scene.words[number].value, statistic)}"
        yield from scene.check_number(number, "team.other", claim, value, f"{field} of {team}")


# --- where and when -----------------------------------------------------------------------------------------------


def find_venue_claims(scene: SentenceContext) -> Iterator[Claim]:
    """`the host Ts`, `at the A in C`, `a road win`, `at home`."""
    if scene.is_about_next_game:
        return
    for match in scene.find_patterns("side"):
        team = match.team("t")
        if team:
            yield Claim(
                (team,), partial(_check_home_or_road, match.span("w"), "home" if match["home"] else "vis", "side")
            )
    flags = ("elsewhere",) if scene.is_about_other_games else ()
    for side, name in (("home", "home_crowd"), ("home", "at_home"), ("vis", "on_road")):
        for match in scene.find_patterns(name):
            team = scene.subject_team(match.word_index("w"))
            if team:
                yield Claim((team,), partial(_check_home_or_road, match.span("w"), side, name, flags=flags))
    yield from _find_arena_claims(scene)


def _find_arena_claims(scene: SentenceContext) -> Iterator[Claim]:
    home = scene.game.home
    listed = load_table("league")["teams"].get(home.name, {}).get("arenas")
    for match in scene.find_patterns("place"):
        for kind, at in (("arena", match.word_index("a")), ("city", match.word_index("c"))):
            if at is not None and home not in scene.words[at].value and (kind == "city" or listed):
                yield Claim((implicit_mention(home),), partial(_check_venue, scene, at, kind))


def _check_home_or_road(
    span: Span, wanted: str, kind: str, team: Entity, flags: Iterable[str] = ()
) -> Iterator[ErrorCandidate]:
    if isinstance(team, Team) and team.side != wanted:
        claim = f"the {team} {'were at home' if wanted == 'home' else 'were on the road'}"
        right, where = "home" if team.side == "home" else "road", f"{team.side}_name"
        yield ErrorCandidate(*span, "word", kind, claim, right, where, flags=frozenset(flags))


def _check_venue(scene: SentenceContext, at: int, kind: str, home: Entity) -> Iterator[ErrorCandidate]:
    claim = f"the game was played at {scene.quote(at)}"
    yield ErrorCandidate(*scene.span(at), "name", kind, claim, f"the {home} were at home", "home_name")


def check_days(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    """`on Wednesday` of the game itself; with a third team in the sentence it is another game's day.

    So is, after the opening, the day on which a player did something: `Reyes sat out on Wednesday`.
    """
    if scene.game.date is None or scene.is_about_next_game or scene.has_third_team:
        return
    right = scene.game.date.weekday()
    for at in scene.sentence.indices_with_code("D"):
        day, before = scene.words[at].value, scene.coded_text[: scene.sentence.starts[at]]
        whose = () if scene.first else scene.subjects[at]
        if day != right and not compile_pattern("another_day").search(before) and not (whose and whose[0].is_player):
            flags = frozenset({"elsewhere"} if scene.is_about_other_games else ())
            yield ErrorCandidate(
                *scene.span(at), "name", "day", f"the game was played on {DAYS[day]}", DAYS[right], "day", flags=flags
            )


def check_overtime(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    """`in overtime`, of a game that had none."""
    if scene.game.has_overtime is False and not scene.is_about_next_game and not scene.is_about_other_games:
        for match in scene.find_patterns("overtime"):
            if match.is_preceded_by("overtime_unreal"):
                continue
            claim = "the game went to overtime"
            yield ErrorCandidate(*match.span("w"), "word", "overtime", claim, "it did not", "TEAM-PTS")


# --- words that fit one outcome only ------------------------------------------------------------------------------


def find_outcome_claims(scene: SentenceContext) -> Iterator[Claim]:
    """`in the win`, `look to bounce back`, of a team or through a player."""
    for wanted in ("won", "lost"):
        for match in scene.find_patterns(f"says_{wanted}"):
            group = next(name for name in ("w", "w2", "w3") if match[name])
            team = scene.subject_team(match.word_index(group))
            negated = compile_pattern("negated").search(scene.coded_text[: match.raw.start(group)])
            if team and not negated and not match.match_after("bounced_from"):
                yield Claim((team,), partial(_check_outcome, match, group, wanted))


def _check_outcome(match: PatternMatch, group: str, wanted: str, team: Entity) -> Iterator[ErrorCandidate]:
    winner = match.scene.game.winner
    if isinstance(team, Team) and winner is not None and (team is winner) != (wanted == "won"):
        first, *more = match[group].split()
        kind = f"outcome.{wanted}.{first}" if more else f"outcome.{wanted}"
        flags = frozenset({"upcoming"} if match.scene.is_about_next_game else ())
        right = "they lost" if wanted == "won" else "they won"
        yield ErrorCandidate(*match.span(group), "word", kind, f"the {team} {wanted}", right, "TEAM-PTS", flags=flags)


def find_form_claims(scene: SentenceContext) -> Iterator[Claim]:
    """`struggling`, `one of the best teams`, held against wins and losses."""
    for match in scene.find_patterns("form"):
        group = "bad" if match["bad"] else "good"
        team = scene.subject_team(match.word_index(group))
        if match.is_preceded_by("of_both"):
            names: Mentions = tuple(map(implicit_mention, scene.game.teams))
            yield Claim(names, partial(_check_form_of_both, match.span(group), group))
        elif team and not match.is_preceded_by("negated") and not match.is_preceded_by("of_opponent"):
            yield Claim((team,), partial(_check_form, scene, match.span(group), group))


def _win_share(team: Entity) -> float | None:
    """Share of games won; None before the fifth game."""
    line = team.line if isinstance(team, Team) else {}
    won, lost = line.get("TEAM-WINS"), line.get("TEAM-LOSSES")
    return won / (won + lost) if won is not None and lost is not None and won + lost >= 5 else None


def _check_form_of_both(span: Span, group: str, *teams: Entity) -> Iterator[ErrorCandidate]:
    shares = [share for team in teams if (share := _win_share(team)) is not None]
    wrong = [(share > 0.5) == (group == "bad") for share in shares]
    if len(shares) == len(teams) and any(wrong):
        claim, where = f"both teams were in {group} form", "TEAM-WINS, TEAM-LOSSES"
        flags = frozenset({"all" if all(wrong) else "one"})
        yield ErrorCandidate(
            *span, "word", f"form.both.{group}", claim, "wins and losses say otherwise", where, flags=flags
        )


def _check_form(scene: SentenceContext, span: Span, group: str, team: Entity) -> Iterator[ErrorCandidate]:
    share = _win_share(team)
    if share is None or not isinstance(team, Team):
        return
    doubt = share - 0.5 if group == "bad" else 0.5 - share
    if doubt > (0 if group == "bad" else -0.05):
        far = "far" if doubt > 0.12 else "near" if doubt > 0 else "fits"
        flags = frozenset({far, "won" if team is scene.game.winner else "lost"})
        right = f"they have {team.line['TEAM-WINS']} wins, {team.line['TEAM-LOSSES']} losses"
        where = f"TEAM-WINS, TEAM-LOSSES of {team}"
        yield ErrorCandidate(
            *span, "word", f"form.{group}", f"the {team} were in {group} form", right, where, flags=flags
        )


def find_game_flow_claims(scene: SentenceContext) -> Iterator[Claim]:
    """How the game went: `led for the entirety of the second half`, `pulled away`, `a hot start`, `the key`."""
    for name, check in GAME_FLOW_CHECKS.items():
        for match in scene.find_patterns(name):
            team = match.team("t") or scene.subject_team(match.word_index("w"))
            if team:
                yield Claim((team,), partial(check, match))


def _check_led_throughout(match: PatternMatch, team: Entity) -> Iterator[ErrorCandidate]:
    if not isinstance(team, Team):
        return
    marks: list[Quarters] = [(1,), (1, 2), (1, 2, 3), QUARTERS]
    marks = marks[{"O half": 1, "O quarter": 2}.get(match["what"], 0) :]
    leads = [ahead for quarters in marks if (ahead := point_lead(match.scene.game, team, quarters)) is not None]
    behind = [ahead for ahead in leads if ahead <= 0]
    if len(leads) == len(marks) and len(behind) > (len(leads) / 2 if match["mostly"] else 0):
        right = f"they trailed by {-min(behind)}" if min(behind) else "the score was level"
        yield ErrorCandidate(
            *match.span("w"), "word", "ahead", f"the {team} led all along", right, "TEAM-PTS_QTR1 to 4"
        )


def _check_period_lead(kind: str, match: PatternMatch, team: Entity) -> Iterator[ErrorCandidate]:
    if kind == "start":
        quarters: Quarters = (1, 2) if match["half"] else (1,)
    else:
        quarters = parse_period(match) or ((4,) if match["part"] == "quarter" else (3, 4))
    ahead = point_lead(match.scene.game, team, quarters) if isinstance(team, Team) else None
    if ahead is not None and (ahead < 0 or (ahead == 0 and kind == "pulled")):
        right = f"they were outscored by {-ahead}" if ahead else "both scored as much"
        yield ErrorCandidate(
            *match.span("w"), "word", kind, f"the {team} were better then", right, quarter_fields(quarters)
        )


def _check_comeback(match: PatternMatch, team: Entity) -> Iterator[ErrorCandidate]:
    """Somebody who battles back has been behind: when the period began, or at the end of any of the first three."""
    if not isinstance(team, Team):
        return
    begun = parse_period(match)[:1]
    marks = [tuple(range(1, begun[0]))] if begun and begun[0] > 1 else [(1,), (1, 2), (1, 2, 3)]
    leads = [ahead for quarters in marks if (ahead := point_lead(match.scene.game, team, quarters)) is not None]
    if len(leads) == len(marks) and min(leads) > 0:
        right = f"they were ahead by {min(leads)} or more"
        yield ErrorCandidate(
            *match.span("w"), "word", "comeback", f"the {team} had been behind", right, "TEAM-PTS_QTR1 to 3"
        )


_COMPARED_STATISTICS = {"TEAM-FG_PCT": "percent of their shots", "TEAM-REB": "rebounds"}


def _check_better_statistic(kind: str, field: str, match: PatternMatch, team: Entity) -> Iterator[ErrorCandidate]:
    if isinstance(team, Team):
        mine, theirs = team.line.get(field), match.scene.game.opponent(team).line.get(field)
        if mine is not None and theirs is not None and mine < theirs:
            claim = f"the {team} had more {_COMPARED_STATISTICS[field]}"
            yield ErrorCandidate(*match.span("w"), "word", kind, claim, f"it was {mine} against {theirs}", field)


GAME_FLOW_CHECKS: dict[str, ClaimCheck] = {
    "ahead": _check_led_throughout,
    "pulled": partial(_check_period_lead, "pulled"),
    "start": partial(_check_period_lead, "start"),
    "comeback": _check_comeback,
    "superior": partial(_check_better_statistic, "superior", "TEAM-FG_PCT"),
    "key": partial(_check_better_statistic, "key", "TEAM-REB"),
    "key_for": partial(_check_better_statistic, "key", "TEAM-REB"),
}
CLAIM_FINDERS = (
    find_result_claims,
    find_opponent_claims,
    find_period_claims,
    check_margins,
    find_team_comparison_claims,
    find_venue_claims,
    check_days,
    check_overtime,
    find_outcome_claims,
    find_form_claims,
    find_game_flow_claims,
)
