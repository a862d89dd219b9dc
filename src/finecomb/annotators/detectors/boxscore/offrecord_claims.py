"""Statements that a box score cannot decide: the next game, streaks, averages, standings.

Each is found and named by kind; how often such statements are wrong is counted over games that people have checked.
Where the record has a season, next games and streaks are facts like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from finecomb.annotators.detectors.boxscore import stat_claims
from finecomb.annotators.detectors.boxscore.claims import ErrorCandidate
from finecomb.annotators.detectors.boxscore.discourse import PatternMatch, SentenceContext
from finecomb.annotators.detectors.boxscore.game import Team, TeamSeason
from finecomb.annotators.detectors.boxscore.report_parser import DAYS, compile_pattern

# Pattern, label and kind of short statements that stand for themselves.
SHORT_STATEMENTS = (
    ("personal", "not-checkable", "personal"),
    ("standings", "not-checkable", "standings"),
    ("favorite", "not-checkable", "favorite"),
    ("turned", "word", "turned"),
    ("back_to_back", "word", "back-to-back"),
    ("days_off", "word", "days off"),
)


def make_base_rate_candidate(span: tuple[int, int], label: str, kind: str, claim: str, *flags: str) -> ErrorCandidate:
    """A slip for a statement that the record cannot decide; how often such statements are wrong judges it."""
    return ErrorCandidate(*span, label, kind, claim, basis="base-rate", flags=frozenset(flags))


def _team_season(scene: SentenceContext, team: object) -> TeamSeason:
    """What the season says about a team of the game; nothing where there is none."""
    return scene.game.season.get(team.side, TeamSeason()) if isinstance(team, Team) else TeamSeason()


def _team_name(meaning: object) -> str:
    return meaning.name if isinstance(meaning, Team) else str(meaning)


def _is_among_teams(team: str, meanings: Iterable[object]) -> bool:
    """Whether a season's team is among those that words may mean: `Los Angeles Lakers` is `Lakers`."""
    return any(team == _team_name(meaning) or team.endswith(f" {_team_name(meaning)}") for meaning in meanings)


# --- the next game ------------------------------------------------------------------------------------------------


def check_next_game(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    """Next opponents, cities, days, home or road."""
    if scene.is_about_next_game:
        yield from _check_next_opponents(scene)
        yield from _check_next_days(scene)
        yield from _check_next_venue(scene)


def _check_next_opponents(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    subject: object = scene.story.subject
    before: list[object] = []
    for at in scene.sentence.indices_with_code("TC"):
        meanings, words = scene.words[at].value, scene.quote(at)
        if _is_next_game_subject(scene, at):
            if meanings[0] in before and isinstance(meanings[0], Team):
                yield make_base_rate_candidate(
                    scene.span(at), "name", "next.subject", f"{words} play next, as was said before"
                )
            subject = meanings[0]
            before.append(subject)
        elif scene.words[at].code == "C":
            whose = "own" if subject in meanings else "here" if isinstance(meanings[0], Team) else "third"
            if host := _team_season(scene, subject).host:
                if not _is_among_teams(host, meanings):
                    claim = f"the next game is in {words}"
                    yield ErrorCandidate(
                        *scene.span(at), "name", "season.city", claim, f"the {host} are at home then", "season"
                    )
                continue
            yield make_base_rate_candidate(scene.span(at), "name", "next.city", f"the next game is in {words}", whose)
        elif subject in meanings:
            claim = f"{words} play themselves next"
            yield ErrorCandidate(*scene.span(at), "name", "next.self", claim, "another team", "TEAM-NAME")
        elif opponent := _team_season(scene, subject).opponent:
            if not _is_among_teams(opponent, meanings):
                claim = f"the next opponent is {words}"
                yield ErrorCandidate(*scene.span(at), "name", "season.opponent", claim, opponent, "season")
        else:
            whose = "same opponent" if isinstance(meanings[0], Team) else "third"
            yield make_base_rate_candidate(
                scene.span(at), "name", "next.opponent", f"the next opponent is {words}", whose
            )


def _is_next_game_subject(scene: SentenceContext, at: int) -> bool:
    """Whether the next game is this team's, and not against it or in its city."""
    before = " ".join(word.code for word in scene.words[max(0, at - 3) : at])
    after = " ".join(word.code for word in scene.words[at + 1 : at + 3])
    if before.endswith((" with", " with the")):
        return False
    if compile_pattern("next_actor").search(before):
        return True
    acts = compile_pattern("next_acts").match(after) and not compile_pattern("next_against").search(before)
    return bool(acts) or scene.is_subject(at)


def _check_next_days(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    for at in scene.sentence.indices_with_code("D"):
        day, date = scene.words[at].value, scene.game.date
        wait = (day - date.weekday()) % 7 or 7 if date else None
        claim = f"the next game is on {DAYS[day]}" + (f", {wait} days later" if wait else "")
        acting = scene.subject_team(at)
        following = _team_season(scene, acting.options[0] if acting else scene.story.subject).day
        if following:
            if following.weekday() != day:
                yield ErrorCandidate(*scene.span(at), "name", "season.day", claim, DAYS[following.weekday()], "season")
            continue
        yield make_base_rate_candidate(scene.span(at), "name", "next.day", claim, *([f"{wait} days"] if wait else []))


def _check_next_venue(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    for side, claim in (("home", "the next game is at home"), ("road", "the next game is on the road")):
        for match in scene.find_patterns(f"next_{side}"):
            whose = match.group_subjects("w")
            team = whose[0].options[0] if whose and not whose[0].is_player else scene.story.subject
            first, last = match["w"].split()[0], match["w"].split()[-1]
            verb = first if last in {"home", "road"} else last
            was = team.side if isinstance(team, Team) else "?"
            if host := _team_season(scene, team).host:
                at_home = isinstance(team, Team) and _is_among_teams(host, [team])
                if at_home != (side == "home"):
                    right = f"it is {'at home' if at_home else 'on the road'}"
                    yield ErrorCandidate(*match.span("w"), "word", f"season.{side}", claim, right, "season")
                continue
            yield make_base_rate_candidate(match.span("w"), "word", f"next.{side}", claim, f"was {was}", f"by {verb}")


# --- streaks and sums ---------------------------------------------------------------------------------------------


def check_streaks(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    """`won four of their last five`, `lost three straight`, `six road wins in 17 tries`."""
    for match in scene.find_patterns("of_last"):
        at, size = (
            (match.word_index("n"), match.word_index("m"))
            if match["n"]
            else (match.word_index("k"), match.word_index("j"))
        )
        if at is not None and size is not None:
            many, of = scene.words[at].value, scene.words[size].value
            true = _recent_result_count(match, at, of)
            if true is not None:
                claim = f"the team {'won' if match['won'] else 'lost'} {many} of its last {of} games"
                yield from scene.check_number(at, "season.last", claim, true, "season")
                continue
            flags = [f"of {min(of, 7)}", f"n {many}", *_impossible_streak_flags(match, at, many, of)]
            yield make_base_rate_candidate(
                scene.span(at), "number", "streak.last", f"{many} of the last {of} games", *flags
            )
    for match in scene.find_patterns("in_a_row"):
        flags = ["won" if match["won"] else "lost", *_streak_outcome_flags(match)]
        row = _streak_length(match)
        if row is not None:
            counts = [
                word.value
                for word in scene.words
                if word.code in "NO" and match.span("w")[0] <= word.start < match.span("w")[1]
            ]
            if counts and counts[0] != row:
                kind = "won" if match["won"] else "lost"
                claim, right = f"the team {match.quote('w')}", f"it has {kind} {row} in a row"
                yield ErrorCandidate(*match.span("w"), "number", "season.row", claim, right, "season")
            continue
        yield make_base_rate_candidate(match.span("w"), "number", "streak.row", match.quote("w"), *flags)
    for match in scene.find_patterns("streak"):
        yield make_base_rate_candidate(match.span("w"), "number", "streak.long", match.quote("w"))
    for match in scene.find_patterns("wins_in"):
        for group in ("n", "m"):
            at = match.word_index(group)
            if at is not None:
                yield make_base_rate_candidate(scene.span(at), "number", "streak.away", match.quote(), group)


def _team_results(match: PatternMatch, at: int | None) -> str:
    """Results of the team that a word is said of, this game's among them; empty where no season knows them."""
    whose = match.scene.subjects[at] if at is not None else ()
    team, winner = whose[0].options[0] if whose else None, match.scene.game.winner
    before = _team_season(match.scene, team).results
    return before + ("W" if team is winner else "L") if before and winner is not None else ""


def _recent_result_count(match: PatternMatch, at: int, size: int) -> int | None:
    """How many of its last games a team won, or lost; None where no season knows that many."""
    results = _team_results(match, at)
    return results[-size:].count("W" if match["won"] else "L") if 0 < size <= len(results) else None


def _streak_length(match: PatternMatch) -> int | None:
    """How many games a team has won, or lost, in a row; None where the season does not go back that far."""
    results, letter = _team_results(match, match.word_index("w")), "W" if match["won"] else "L"
    row = len(results) - len(results.rstrip(letter))
    return row if results and row < len(results) else None


def _impossible_streak_flags(match: PatternMatch, at: int, many: int, of: int) -> list[str]:
    """A flag where a team has not won, lost or played that often."""
    whose = match.scene.subjects[at]
    team = whose[0].options[0] if whose else None
    line = team.line if isinstance(team, Team) else {}
    won, lost = line.get("TEAM-WINS"), line.get("TEAM-LOSSES")
    if won is None or lost is None:
        return []
    winning = bool(match["won"])
    last_differs = many == of and (team is match.scene.game.winner) != winning
    return ["impossible"] if many > (won if winning else lost) or of > won + lost or last_differs else []


def _streak_outcome_flags(match: PatternMatch) -> list[str]:
    """Whether a streak goes with the outcome of this game."""
    whose, winner = match.group_subjects("w"), match.scene.game.winner
    team = whose[0].options[0] if whose else None
    if not isinstance(team, Team) or winner is None:
        return []
    return ["fits"] if (team is winner) == bool(match["won"]) else ["contradicts"]


def check_multi_game_totals(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    """`averaging 17 points`, `combined for 42 points over his last two games`."""
    for match in scene.find_patterns("count"):
        kind, at, what = stat_claims.aggregation_kind(match), match.word_index("n"), match.word_index("s")
        if kind and at is not None and what is not None:
            statistic = scene.words[what].value
            claim = f"{kind}: {scene.quote(at)} {statistic}"
            season = "season" if any(word in scene.coded_text for word in ("season", "year", "per game")) else "lately"
            yield make_base_rate_candidate(scene.span(at), "number", f"sum.{kind}", claim, season, statistic)


def check_ordinals(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    """`his second double-double in a row`, `their 17th win`."""
    for match in scene.find_patterns("nth"):
        yield make_base_rate_candidate(match.span("w"), "number", "nth", match.quote("w"), match["rest"].split()[0])


def check_short_statements(scene: SentenceContext) -> Iterator[ErrorCandidate]:
    """Runs, ties, season highs, standings, favorites, back-to-backs."""
    for match in scene.find_patterns("run"):
        for group in "nmkji":
            at = match.word_index(group)
            if at is not None:
                yield make_base_rate_candidate(scene.span(at), "number", "run", match.quote(), group)
    for match in scene.find_patterns("game_within"):
        at = match.word_index("n")
        if at is not None and not match["end"]:
            yield make_base_rate_candidate(scene.span(at), "number", "run", match.quote(), "within")
    for name, label, kind in SHORT_STATEMENTS:
        for match in scene.find_patterns(name):
            flags = [match["w"].split()[0], *(["upcoming"] if scene.is_about_next_game else [])]
            yield make_base_rate_candidate(match.span("w"), label, kind, match.quote("w"), *flags)


CLAIM_FINDERS = (check_next_game, check_streaks, check_multi_game_totals, check_ordinals, check_short_statements)
