"""Claims about the game: result, score, quarters, venue and date, and words that imply an outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from finecomb.annotators.detectors.boxscore.claims import Claim, ClaimCheck, Entity, ErrorCandidate, Mention
from finecomb.annotators.detectors.boxscore.discourse import (
    Mentions,
    PatternMatch,
    SentenceContext,
    make_implicit_mention,
)
from finecomb.annotators.detectors.boxscore.game import QUARTERS, Game, Team
from finecomb.annotators.detectors.boxscore.report_parser import WEEKDAYS, compile_pattern, load_yaml_table
from finecomb.annotators.detectors.boxscore.stat_claims import format_count, record_field, record_value

Span = tuple[int, int]
Quarters = tuple[int, ...]
NumberPair = tuple[int | None, int | None]


def quarter_fields(quarters: Quarters) -> str:
    """Return the record's fields for points in the given quarters."""
    return ", ".join(f"TEAM-PTS_QTR{quarter}" for quarter in quarters)


def point_lead(game: Game, team: Team, quarters: Quarters) -> int | None:
    """Return a team's point lead over the given quarters, or None if unknown."""
    mine, theirs = game.quarter_points(team, quarters), game.quarter_points(game.opponent(team), quarters)
    return None if mine is None or theirs is None else mine - theirs


def check_number_pair(
    scene: SentenceContext, numbers: NumberPair, values: NumberPair, kind: str, where: str, *, either: bool = False
) -> Iterator[ErrorCandidate]:
    """Yield an error for each wrong number of a pair. With `either`, the numbers may also be in the reverse order."""
    (first_index, second_index), (first, second) = numbers, values
    if first_index is None or second_index is None or first is None or second is None:
        return
    stated = scene.words[first_index].value, scene.words[second_index].value
    orders = [(max(first, second), min(first, second)), (first, second)] if either else [(first, second)]
    right = min(orders, key=lambda order: (stated[0] != order[0]) + (stated[1] != order[1]))
    for index, value in zip((first_index, second_index), right, strict=True):
        yield from scene.check_number_at(index, kind, f"the {kind} was {stated[0]}-{stated[1]}", value, where)


# --- result -------------------------------------------------------------------------------------------------------


def find_result_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find claims about the result, such as `The Ts defeated the Us, 113-107`."""
    if scene.is_about_next_game or scene.matches_pattern("earlier_meeting"):
        return
    for match in scene.find_pattern_matches("result"):
        first_team, second_team = match.team("t"), match.team("u")
        if first_team and second_team:
            yield Claim((first_team, second_team), partial(_check_result, match, first_team, second_team))
        elif first_team and scene.first and not scene.names_both_teams:
            yield Claim((first_team,), partial(_check_unknown_opponent, match))


def _check_result(
    match: PatternMatch, first_name: Mention, second_name: Mention, first: Entity, second: Entity
) -> Iterator[ErrorCandidate]:
    game, lost = match.scene.game, bool(match["fell"])
    if not isinstance(first, Team) or not isinstance(second, Team) or game.winner is None:
        return
    right = game.opponent(game.winner) if lost else game.winner
    if first is second:
        blamed, meant = (first_name, right) if first is not right else (second_name, game.opponent(right))
        claim = f"the {first} played themselves"
        yield ErrorCandidate(blamed.start, blamed.end, "name", "name.same", claim, str(meant), "TEAM-NAME")
        first, second = right, game.opponent(right)
    elif first is not right:
        claim, fix = f"the {first} {match['w']} the {second}", "defeated" if lost else "lost to"
        swapped = tuple(
            ErrorCandidate(name.start, name.end, "name", "result", claim, str(team), "TEAM-PTS")
            for name, team in ((first_name, second), (second_name, first))
            if not name.fixed
        )
        where = f"TEAM-PTS of {first} and {second}"
        yield ErrorCandidate(*match.span("w"), "word", "result", claim, fix, where, otherwise=swapped)
    yield from _check_score(match, "final score", "TEAM-PTS", game.final_points, first)


def _check_score(
    match: PatternMatch, kind: str, where: str, value_of: Callable[[Team], int | None], team: Entity
) -> Iterator[ErrorCandidate]:
    """Check two numbers, groups `a` and `b` of the match, against the values of a team and its opponent."""
    if isinstance(team, Team):
        values = value_of(team), value_of(match.scene.game.opponent(team))
        numbers = match.word_index("a"), match.word_index("b")
        yield from check_number_pair(match.scene, numbers, values, kind, where, either=True)


def _check_unknown_opponent(match: PatternMatch, team: Entity) -> Iterator[ErrorCandidate]:
    index = match.word_index("u")
    if isinstance(team, Team) and index is not None:
        other = match.scene.game.opponent(team)
        claim = f"the {team} played {match.scene.word_quote(index)}"
        yield ErrorCandidate(*match.scene.word_span(index), "name", "result.stranger", claim, str(other), "TEAM-NAME")
        yield from _check_score(match, "final score", "TEAM-PTS", match.scene.game.final_points, team)


def find_self_opponent_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find claims in which a team plays itself, such as `the Ts outscored the Ts`."""

    def check(name: Mention, subject: Entity, opponent: Entity) -> Iterator[ErrorCandidate]:
        if subject is opponent and isinstance(subject, Team):
            claim, right = f"the {subject} played against themselves", str(scene.game.opponent(subject))
            yield ErrorCandidate(name.start, name.end, "name", "name.same", claim, right, "TEAM-NAME")

    for match in () if scene.is_about_next_game else scene.find_pattern_matches("against"):
        team, whose = match.team("t"), match.subjects[:1]
        if team and whose and not whose[0].is_player and whose[0] != team:
            yield Claim((whose[0], team), partial(check, team))


def check_winning_margins(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    """Find wrong winning margins, such as `a 30-point win` and `won by 30`."""
    home, vis = (scene.game.final_points(team) for team in scene.game.teams)
    if home is None or vis is None or scene.is_about_next_game or scene.is_about_other_games:
        return
    for match in scene.find_pattern_matches("margin", "won_by"):
        index = match.word_index("n")
        if index is not None:
            yield from scene.check_number_at(
                index, "margin", f"the margin was {scene.word_quote(index)}", abs(home - vis), "TEAM-PTS"
            )


# --- quarters and halves ------------------------------------------------------------------------------------------


def find_period_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find claims about quarters and halves.

    Examples are `outscored the Ts 37-20 in the fourth quarter`, `a 31-22 lead after one quarter` and `a 33-point first
    quarter`.
    """
    done: set[int | None] = set()
    for match in scene.find_pattern_matches("outscored", "won_period"):
        quarters = parse_quarters(match) or _nearest_quarters(match)
        whose = match.group_subjects("w")
        if quarters and whose and not whose[0].is_player:
            done |= {match.word_index("a"), match.word_index("b")}
            yield Claim(whose[:1], partial(_check_outscored, match, quarters))
    for match in scene.find_pattern_matches("period_score"):
        quarters, whose = parse_quarters(match), match.group_subjects("a")
        if quarters and whose and not whose[0].is_player and match.word_index("a") not in done:
            points_of = partial(scene.game.quarter_points, quarters=quarters)
            check = partial(_check_score, match, "period score", quarter_fields(quarters), points_of)
            yield Claim(whose[:1], check)
    for match in scene.find_pattern_matches("period_points", "points_in_period"):
        if match.is_preceded_by("not_exact", 24):
            continue
        quarters, whose = parse_quarters(match), match.group_subjects("n")
        whose = scene.opposing_team(whose) if match.is_preceded_by("conceded", 80) else whose
        if quarters and whose and not whose[0].is_player:
            yield Claim(whose[:1], partial(_check_period_points, match, quarters))
    for match in scene.find_pattern_matches("game_within"):  # `a one-point game at the end of the third quarter`
        index, last = match.word_index("n"), match.word_index("o")
        if index is not None and last is not None and scene.words[last].value in QUARTERS:
            quarters = tuple(range(1, scene.words[last].value + 1))
            yield Claim((make_implicit_mention(scene.game.home),), partial(_check_period_gap, scene, index, quarters))


def _check_period_gap(scene: SentenceContext, index: int, quarters: Quarters, home: Entity) -> Iterator[ErrorCandidate]:
    ahead = point_lead(scene.game, home, quarters) if isinstance(home, Team) else None
    if ahead is not None:
        claim = f"the teams were {scene.word_quote(index)} points apart"
        yield from scene.check_number_at(index, "period gap", claim, abs(ahead), quarter_fields(quarters))


def parse_quarters(match: PatternMatch) -> Quarters:
    """Return the quarters that a match refers to, empty if unclear."""
    word = match.scene.words
    index, also, after, last = (match.word_index(group) for group in ("o", "o2", "after", "last"))
    if index is not None and (match["into"] or match["until"]):
        count = word[index].value - bool(match["into"])
        size = 2 if match["part"].startswith("half") else 1
        return tuple(range(1, count * size + 1)) if 0 < count * size <= len(QUARTERS) else ()
    if index is not None and match["part"].startswith("half"):
        return {1: (1, 2), 2: (3, 4)}.get(word[index].value, ())
    wanted: Quarters = ()
    if index is not None:
        wanted = (word[index].value,) if also is None else (word[index].value, word[also].value)
    elif after is not None:
        wanted = tuple(range(1, min(word[after].value, 5) + 1))
    elif last is not None:
        wanted = tuple(range(5 - min(word[last].value, 5), 5))
    elif match["half"] or match["late"]:
        wanted = (1, 2) if match["half"] else (4,)
    return wanted if set(wanted) <= set(QUARTERS) else ()


def _nearest_quarters(match: PatternMatch) -> Quarters:
    """Return the period named after a match in the same clause, or otherwise the last period named before it."""
    scene, end = match.scene, match.raw.end()
    clause = compile_pattern("another_clause").search(scene.coded_text, end)
    times = list(scene.find_pattern_matches("when"))
    after = [time for time in times if end <= time.raw.start() < (clause.start() if clause else len(scene.coded_text))]
    before = [time for time in times if time.raw.end() <= match.raw.start()]
    chosen = after[:1] or before[-1:]
    return parse_quarters(chosen[0]) if chosen else ()


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
    first_index, second_index = match.word_index("a"), match.word_index("b")
    yield from check_number_pair(
        scene, (first_index, second_index), values, "period score", quarter_fields(quarters), either=passive
    )
    if first_index is not None and second_index is None:
        claim = f"the {team} outscored the {other} by {scene.word_quote(first_index)}"
        yield from scene.check_number_at(first_index, "period margin", claim, ahead, quarter_fields(quarters))


def _check_period_points(match: PatternMatch, quarters: Quarters, team: Entity) -> Iterator[ErrorCandidate]:
    scene, index = match.scene, match.word_index("n")
    value = scene.game.quarter_points(team, quarters) if isinstance(team, Team) else None
    if value is not None and index is not None:
        claim = f"the {team} scored {scene.word_quote(index)} points in that part of the game"
        yield from scene.check_number_at(index, "period points", claim, value, quarter_fields(quarters))


# --- team comparisons ---------------------------------------------------------------------------------------------


def find_team_comparison_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find team comparisons, such as `won the rebounding battle, 47-43` and `47 boards to the Ts 48`."""
    for match in (
        scene.find_pattern_matches("battle", "outrebounded", "board_edge") if scene.matches_pattern("boards") else ()
    ):
        whose = match.group_subjects("a")
        if whose and not whose[0].is_player:
            check = partial(
                _check_score, match, "rebounding battle", "TEAM-REB", lambda team: team.line.get("TEAM-REB")
            )
            yield Claim(whose[:1], check)
    for match in scene.find_pattern_matches("to_theirs"):
        index, number, team = match.word_index("s"), match.word_index("n"), match.team("t")
        if index is not None and number is not None and team:
            yield Claim((team,), partial(_check_team_statistic, scene, number, scene.words[index].value))
    for match in scene.find_pattern_matches("of_their_own"):
        number = match.word_index("n")
        counted = [word.value for word in scene.words[: number or 0] if word.code.startswith("S")]
        acting = [scene.mentions_by_word[index] for index in scene.subject_team_indices]
        if number is not None and counted and acting:
            yield Claim((acting[0],), partial(_check_team_statistic, scene, number, counted[-1]))


def _check_team_statistic(
    scene: SentenceContext, number: int, statistic: str, team: Entity
) -> Iterator[ErrorCandidate]:
    field = record_field(team, statistic)
    value = record_value(team, field)
    if value is not None:
        claim = f"the {team} had {format_count(scene.words[number].value, statistic)}"
        yield from scene.check_number_at(number, "team.other", claim, value, f"{field} of {team}")


# --- venue and date -----------------------------------------------------------------------------------------------


def find_venue_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find claims about the venue, such as `the host Ts`, `at the A in C`, `a road win`, `at home`."""

    def check(index: int, kind: str, home: Entity) -> Iterator[ErrorCandidate]:
        claim = f"the game was played at {scene.word_quote(index)}"
        yield ErrorCandidate(*scene.word_span(index), "name", kind, claim, f"the {home} were at home", "home_name")

    if scene.is_about_next_game:
        return
    for match in scene.find_pattern_matches("side"):
        team = match.team("t")
        if team:
            yield Claim(
                (team,), partial(_check_home_or_road, match.span("w"), "home" if match["home"] else "vis", "side")
            )
    flags = ("elsewhere",) if scene.is_about_other_games else ()
    for side, name in (("home", "home_crowd"), ("home", "at_home"), ("vis", "on_road")):
        for match in scene.find_pattern_matches(name):
            team = scene.subject_team_at(match.word_index("w"))
            if team:
                yield Claim((team,), partial(_check_home_or_road, match.span("w"), side, name, flags=flags))
    home = scene.game.home
    listed = load_yaml_table("league")["teams"].get(home.name, {}).get("arenas")
    for match in scene.find_pattern_matches("place"):
        for kind, index in (("arena", match.word_index("a")), ("city", match.word_index("c"))):
            if index is not None and home not in scene.words[index].value and (kind == "city" or listed):
                yield Claim((make_implicit_mention(home),), partial(check, index, kind))


def _check_home_or_road(
    span: Span, wanted: str, kind: str, team: Entity, flags: Iterable[str] = ()
) -> Iterator[ErrorCandidate]:
    if isinstance(team, Team) and team.side != wanted:
        claim = f"the {team} {'were at home' if wanted == 'home' else 'were on the road'}"
        right, where = "home" if team.side == "home" else "road", f"{team.side}_name"
        yield ErrorCandidate(*span, "word", kind, claim, right, where, flags=frozenset(flags))


def check_game_days(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    """Find wrong weekdays of the game, such as `on Wednesday`.

    A day in a sentence with a third team belongs to another game. After the first sentence, so does the day on which a
    player acted, as in `Reyes sat out on Wednesday`.
    """
    if scene.game.date is None or scene.is_about_next_game or scene.has_third_team:
        return
    right = scene.game.date.weekday()
    for index in scene.sentence.indices_with_code("D"):
        day, before = scene.words[index].value, scene.coded_text[: scene.sentence.starts[index]]
        whose = () if scene.first else scene.word_subjects[index]
        if day != right and not compile_pattern("another_day").search(before) and not (whose and whose[0].is_player):
            flags = frozenset({"elsewhere"} if scene.is_about_other_games else ())
            yield ErrorCandidate(
                *scene.word_span(index),
                "name",
                "day",
                f"the game was played on {WEEKDAYS[day]}",
                WEEKDAYS[right],
                "day",
                flags=flags,
            )


def check_overtime(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    """Find mentions of overtime in a game that had none."""
    if scene.game.has_overtime is False and not scene.is_about_next_game and not scene.is_about_other_games:
        for match in scene.find_pattern_matches("overtime"):
            if match.is_preceded_by("overtime_unreal"):
                continue
            claim = "the game went to overtime"
            yield ErrorCandidate(*match.span("w"), "word", "overtime", claim, "it did not", "TEAM-PTS")


# --- words that imply an outcome ----------------------------------------------------------------------------------


def find_outcome_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find words that imply a win or a loss, such as `in the win` and `look to bounce back`."""

    def check(match: PatternMatch, group: str, wanted: str, team: Entity) -> Iterator[ErrorCandidate]:
        winner = match.scene.game.winner
        if isinstance(team, Team) and winner is not None and (team is winner) != (wanted == "won"):
            first, *more = match[group].split()
            kind = f"outcome.{wanted}.{first}" if more else f"outcome.{wanted}"
            flags = frozenset({"upcoming"} if match.scene.is_about_next_game else ())
            right = "they lost" if wanted == "won" else "they won"
            yield ErrorCandidate(
                *match.span(group), "word", kind, f"the {team} {wanted}", right, "TEAM-PTS", flags=flags
            )

    for wanted in ("won", "lost"):
        for match in scene.find_pattern_matches(f"says_{wanted}"):
            group = next(name for name in ("w", "w2", "w3") if match[name])
            team = scene.subject_team_at(match.word_index(group))
            negated = compile_pattern("negated").search(scene.coded_text[: match.raw.start(group)])
            if team and not negated and not match.match_after("bounced_from"):
                yield Claim((team,), partial(check, match, group, wanted))


def find_team_form_claims(scene: SentenceContext) -> Iterator[Claim]:
    """Find words about a team's form, such as `struggling` and `one of the best teams`."""
    for match in scene.find_pattern_matches("form"):
        group = "bad" if match["bad"] else "good"
        team = scene.subject_team_at(match.word_index(group))
        if match.is_preceded_by("of_both"):
            names: Mentions = tuple(map(make_implicit_mention, scene.game.teams))
            yield Claim(names, partial(_check_form_of_both_teams, match.span(group), group))
        elif team and not match.is_preceded_by("negated") and not match.is_preceded_by("of_opponent"):
            yield Claim((team,), partial(_check_team_form, scene, match.span(group), group))


def _win_share(team: Entity) -> float | None:
    """Return the share of games won, or None before the fifth game."""
    line = team.line if isinstance(team, Team) else {}
    won, lost = line.get("TEAM-WINS"), line.get("TEAM-LOSSES")
    return won / (won + lost) if won is not None and lost is not None and won + lost >= 5 else None


def _check_form_of_both_teams(span: Span, group: str, *teams: Entity) -> Iterator[ErrorCandidate]:
    shares = [share for team in teams if (share := _win_share(team)) is not None]
    wrong = [(share > 0.5) == (group == "bad") for share in shares]
    if len(shares) == len(teams) and any(wrong):
        claim, where = f"both teams were in {group} form", "TEAM-WINS, TEAM-LOSSES"
        flags = frozenset({"all" if all(wrong) else "one"})
        yield ErrorCandidate(
            *span, "word", f"form.both.{group}", claim, "their win-loss records show otherwise", where, flags=flags
        )


def _check_team_form(scene: SentenceContext, span: Span, group: str, team: Entity) -> Iterator[ErrorCandidate]:
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
    """Find claims about the course of the game.

    Examples are `led for the entirety of the second half`, `pulled away`, `a hot start` and `the key`.
    """
    for name, check in GAME_FLOW_CHECKS.items():
        for match in scene.find_pattern_matches(name):
            team = match.team("t") or scene.subject_team_at(match.word_index("w"))
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
            *match.span("w"), "word", "ahead", f"the {team} led throughout", right, "TEAM-PTS_QTR1 to 4"
        )


def _check_period_lead(kind: str, match: PatternMatch, team: Entity) -> Iterator[ErrorCandidate]:
    if kind == "start":
        quarters: Quarters = (1, 2) if match["half"] else (1,)
    else:
        quarters = parse_quarters(match) or ((4,) if match["part"] == "quarter" else (3, 4))
    ahead = point_lead(match.scene.game, team, quarters) if isinstance(team, Team) else None
    if ahead is not None and (ahead < 0 or (ahead == 0 and kind == "pulled")):
        right = f"they were outscored by {-ahead}" if ahead else "both teams scored the same"
        yield ErrorCandidate(
            *match.span("w"),
            "word",
            kind,
            f"the {team} outscored their opponents in that period",
            right,
            quarter_fields(quarters),
        )


def _check_comeback(match: PatternMatch, team: Entity) -> Iterator[ErrorCandidate]:
    """Yield an error for a comeback if the team did not trail before the period or after an early quarter."""
    if not isinstance(team, Team):
        return
    begun = parse_quarters(match)[:1]
    marks = [tuple(range(1, begun[0]))] if begun and begun[0] > 1 else [(1,), (1, 2), (1, 2, 3)]
    leads = [ahead for quarters in marks if (ahead := point_lead(match.scene.game, team, quarters)) is not None]
    if len(leads) == len(marks) and min(leads) > 0:
        right = f"they were ahead by {min(leads)} or more"
        yield ErrorCandidate(
            *match.span("w"), "word", "comeback", f"the {team} had trailed", right, "TEAM-PTS_QTR1 to 3"
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
    find_self_opponent_claims,
    find_period_claims,
    check_winning_margins,
    find_team_comparison_claims,
    find_venue_claims,
    check_game_days,
    check_overtime,
    find_outcome_claims,
    find_team_form_claims,
    find_game_flow_claims,
)
