"""Statements that a box score does not cover: next games, streaks, averages and standings.

Statements are classified by kind, and the ranker uses the rate at which annotators found each kind wrong. If the record
includes the season, next games and streaks are checked like other facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from finecomb.annotators.detectors.boxscore import stat_claims
from finecomb.annotators.detectors.boxscore.claims import ErrorCandidate
from finecomb.annotators.detectors.boxscore.discourse import PatternMatch, SentenceContext
from finecomb.annotators.detectors.boxscore.game import Team, TeamSeason
from finecomb.annotators.detectors.boxscore.report_parser import WEEKDAYS, compile_pattern

# Pattern, label and kind of statements that need no further analysis.
SHORT_STATEMENT_PATTERNS = (
    ("personal", "not-checkable", "personal"),
    ("standings", "not-checkable", "standings"),
    ("favorite", "not-checkable", "favorite"),
    ("turned", "word", "turned"),
    ("back_to_back", "word", "back-to-back"),
    ("days_off", "word", "days off"),
)


def make_base_rate_candidate(span: tuple[int, int], label: str, kind: str, claim: str, *flags: str) -> ErrorCandidate:
    """Build an error candidate whose confidence depends on how often statements of its kind are wrong."""
    return ErrorCandidate(*span, label, kind, claim, basis="base-rate", flags=frozenset(flags))


def _season_of_team(scene: SentenceContext, team: object) -> TeamSeason:
    """Return the season data of a team in the game, empty if unknown."""
    return scene.game.season.get(team.side, TeamSeason()) if isinstance(team, Team) else TeamSeason()


def _entity_team_name(meaning: object) -> str:
    return meaning.name if isinstance(meaning, Team) else str(meaning)


def _is_among_teams(team: str, meanings: Iterable[object]) -> bool:
    """Return whether a season team name matches one of the entities, as `Los Angeles Lakers` matches `Lakers`."""
    return any(
        team == _entity_team_name(meaning) or team.endswith(f" {_entity_team_name(meaning)}") for meaning in meanings
    )


# --- next games ---------------------------------------------------------------------------------------------------


def check_next_game(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    """Find claims about the next game: opponent, city, day, and home or road."""
    if not scene.is_about_next_game:
        return
    yield from _check_next_opponents(scene)
    for index in scene.sentence.indices_with_code("D"):
        day, date, span = scene.words[index].value, scene.game.date, scene.word_span(index)
        wait = (day - date.weekday()) % 7 or 7 if date else None
        claim = f"the next game is on {WEEKDAYS[day]}" + (f", {wait} days later" if wait else "")
        acting = scene.subject_team_at(index)
        following = _season_of_team(scene, acting.options[0] if acting else scene.story.subject).day
        if following is None:
            yield make_base_rate_candidate(span, "name", "next.day", claim, *([f"{wait} days"] if wait else []))
        elif following.weekday() != day:
            yield ErrorCandidate(*span, "name", "season.day", claim, WEEKDAYS[following.weekday()], "season")
    for side, claim in (("home", "the next game is at home"), ("road", "the next game is on the road")):
        for match in scene.find_pattern_matches(f"next_{side}"):
            whose = match.group_subjects("w")
            team = whose[0].options[0] if whose and not whose[0].is_player else scene.story.subject
            first, last = match["w"].split()[0], match["w"].split()[-1]
            flags = (
                f"was {team.side if isinstance(team, Team) else '?'}",
                "by " + (first if last in {"home", "road"} else last),
            )
            host = _season_of_team(scene, team).host
            at_home = isinstance(team, Team) and _is_among_teams(host, [team])
            if not host:
                yield make_base_rate_candidate(match.span("w"), "word", f"next.{side}", claim, *flags)
            elif at_home != (side == "home"):
                right = f"it is {'at home' if at_home else 'on the road'}"
                yield ErrorCandidate(*match.span("w"), "word", f"season.{side}", claim, right, "season")


def _check_next_opponents(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    subject: object = scene.story.subject
    before: list[object] = []
    for index in scene.sentence.indices_with_code("TC"):
        meanings, words = scene.words[index].value, scene.word_quote(index)
        if _is_next_game_subject(scene, index):
            if meanings[0] in before and isinstance(meanings[0], Team):
                yield make_base_rate_candidate(
                    scene.word_span(index), "name", "next.subject", f"{words} play next, which was already said"
                )
            subject = meanings[0]
            before.append(subject)
        elif scene.words[index].code == "C":
            whose = "own" if subject in meanings else "here" if isinstance(meanings[0], Team) else "third"
            if host := _season_of_team(scene, subject).host:
                if not _is_among_teams(host, meanings):
                    claim = f"the next game is in {words}"
                    yield ErrorCandidate(
                        *scene.word_span(index), "name", "season.city", claim, f"the {host} are the home team", "season"
                    )
                continue
            yield make_base_rate_candidate(
                scene.word_span(index), "name", "next.city", f"the next game is in {words}", whose
            )
        elif subject in meanings:
            claim = f"{words} play themselves next"
            yield ErrorCandidate(*scene.word_span(index), "name", "next.self", claim, "another team", "TEAM-NAME")
        elif opponent := _season_of_team(scene, subject).opponent:
            if not _is_among_teams(opponent, meanings):
                claim = f"the next opponent is {words}"
                yield ErrorCandidate(*scene.word_span(index), "name", "season.opponent", claim, opponent, "season")
        else:
            whose = "same opponent" if isinstance(meanings[0], Team) else "third"
            yield make_base_rate_candidate(
                scene.word_span(index), "name", "next.opponent", f"the next opponent is {words}", whose
            )


def _is_next_game_subject(scene: SentenceContext, index: int) -> bool:
    """Return whether a team is the subject of a statement about the next game, rather than the opponent or host."""
    before = " ".join(word.code for word in scene.words[max(0, index - 3) : index])
    after = " ".join(word.code for word in scene.words[index + 1 : index + 3])
    if before.endswith((" with", " with the")):
        return False
    if compile_pattern("next_actor").search(before):
        return True
    acts = compile_pattern("next_acts").match(after) and not compile_pattern("next_against").search(before)
    return bool(acts) or scene.is_subject_team(index)


# --- streaks and totals -------------------------------------------------------------------------------------------


def check_recent_results(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    """Find claims about the results of recent games, such as `won four of their last five`."""
    for match in scene.find_pattern_matches("of_last"):
        index, size = (match.word_index(group) for group in (("n", "m") if match["n"] else ("k", "j")))
        if index is None or size is None:
            continue
        many, of, winning = scene.words[index].value, scene.words[size].value, bool(match["won"])
        results = _season_results_at(match, index)
        if 0 < of <= len(results):
            claim = f"the team {'won' if winning else 'lost'} {many} of its last {of} games"
            true = results[-of:].count("W" if winning else "L")
            yield from scene.check_number_at(index, "season.last", claim, true, "season")
            continue
        flags = [f"of {min(of, 7)}", f"n {many}"]
        whose = scene.word_subjects[index]
        team = whose[0].options[0] if whose else None
        line = team.line if isinstance(team, Team) else {}
        won, lost = line.get("TEAM-WINS"), line.get("TEAM-LOSSES")
        if won is not None and lost is not None:
            last_differs = many == of and (team is scene.game.winner) != winning
            if many > (won if winning else lost) or of > won + lost or last_differs:
                flags.append("impossible")
        claim = f"{many} of the last {of} games"
        yield make_base_rate_candidate(scene.word_span(index), "number", "streak.last", claim, *flags)


def check_streaks(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    """Find streaks, such as `lost three straight` and `six road wins in 17 tries`."""
    for match in scene.find_pattern_matches("in_a_row"):
        start, end = match.span("w")
        outcome, letter = ("won", "W") if match["won"] else ("lost", "L")
        results = _season_results_at(match, match.word_index("w"))
        row = len(results) - len(results.rstrip(letter))
        # A streak as long as the season data may have begun earlier.
        if row < len(results):
            counts = [word.value for word in scene.words if word.code in "NO" and start <= word.start < end]
            if counts and counts[0] != row:
                claim, right = f"the team {match.quote('w')}", f"it has {outcome} {row} in a row"
                yield ErrorCandidate(start, end, "number", "season.row", claim, right, "season")
            continue
        flags = [outcome]
        whose, winner = match.group_subjects("w"), scene.game.winner
        team = whose[0].options[0] if whose else None
        if isinstance(team, Team) and winner is not None:
            flags.append("fits" if (team is winner) == (outcome == "won") else "contradicts")
        yield make_base_rate_candidate((start, end), "number", "streak.row", match.quote("w"), *flags)
    for match in scene.find_pattern_matches("streak"):
        yield make_base_rate_candidate(match.span("w"), "number", "streak.long", match.quote("w"))
    for match in scene.find_pattern_matches("wins_in"):
        for group in ("n", "m"):
            index = match.word_index(group)
            if index is not None:
                yield make_base_rate_candidate(scene.word_span(index), "number", "streak.away", match.quote(), group)


def _season_results_at(match: PatternMatch, index: int | None) -> str:
    """Return the season results of the team at a word, including this game, or an empty string if unknown."""
    whose = match.scene.word_subjects[index] if index is not None else ()
    team, winner = whose[0].options[0] if whose else None, match.scene.game.winner
    before = _season_of_team(match.scene, team).results
    return before + ("W" if team is winner else "L") if before and winner is not None else ""


def check_multi_game_totals(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    """Find multi-game totals, such as `averaging 17 points` and `combined for 42 points over his last two games`."""
    for match in scene.find_pattern_matches("count"):
        kind, index, what = stat_claims.aggregation_kind(match), match.word_index("n"), match.word_index("s")
        if kind and index is not None and what is not None:
            statistic = scene.words[what].value
            claim = f"{kind}: {scene.word_quote(index)} {statistic}"
            season = "season" if any(word in scene.coded_text for word in ("season", "year", "per game")) else "lately"
            yield make_base_rate_candidate(scene.word_span(index), "number", f"sum.{kind}", claim, season, statistic)


def check_ordinals(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    """Find ordinals, such as `his second double-double in a row` and `their 17th win`."""
    for match in scene.find_pattern_matches("nth"):
        yield make_base_rate_candidate(match.span("w"), "number", "nth", match.quote("w"), match["rest"].split()[0])


def check_short_statements(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    """Find scoring runs, standings, favourites, back-to-backs and other short statements."""
    for match in scene.find_pattern_matches("run"):
        for group in "nmkji":
            index = match.word_index(group)
            if index is not None:
                yield make_base_rate_candidate(scene.word_span(index), "number", "run", match.quote(), group)
    for match in scene.find_pattern_matches("game_within"):
        index = match.word_index("n")
        if index is not None and not match["end"]:
            yield make_base_rate_candidate(scene.word_span(index), "number", "run", match.quote(), "within")
    for name, label, kind in SHORT_STATEMENT_PATTERNS:
        for match in scene.find_pattern_matches(name):
            flags = [match["w"].split()[0], *(["upcoming"] if scene.is_about_next_game else [])]
            yield make_base_rate_candidate(match.span("w"), label, kind, match.quote("w"), *flags)


CLAIM_FINDERS = (
    check_next_game,
    check_recent_results,
    check_streaks,
    check_multi_game_totals,
    check_ordinals,
    check_short_statements,
)
