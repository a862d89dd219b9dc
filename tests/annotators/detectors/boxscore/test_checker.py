"""Tests of the box-score checker, with sentences about a fictional game."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.annotators.detectors import DETECTORS, detect, find_detector_factory
from finecomb.annotators.detectors.boxscore.checker import BoxScoreChecker, BoxScoreOptions, find_error_candidates
from finecomb.annotators.detectors.boxscore.claims import ErrorCandidate
from finecomb.annotators.detectors.boxscore.game import Game, parse_game
from finecomb.annotators.detectors.boxscore.ranker import load_shipped_ranker
from finecomb.annotators.detectors.boxscore.report_parser import parse_sentences
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotator, Document
from finecomb.core.study import Study
from finecomb.core.study_checks import check_study
from finecomb.protocols import load_shipped
from tests.annotators.detectors.example_game import PLAYERS, game_document, game_record


def game(data: Any = None) -> Game:
    parsed = parse_game(game_record() if data is None else data)
    assert parsed is not None
    return parsed


def proved(text: str, data: Any = None) -> list[ErrorCandidate]:
    """Return the contradictions of the record, except misleading contexts."""
    return [
        candidate
        for candidate in find_error_candidates(text, game(data))
        if candidate.basis == "record" and candidate.kind != "context"
    ]


def marked(text: str, data: Any = None) -> list[tuple[str, str, str]]:
    return sorted(
        (text[candidate.start : candidate.end], candidate.label, candidate.correction)
        for candidate in proved(text, data)
    )


TRUE = [
    "The Harbor City Gulls defeated the Redwater Miners , 104 - 98 , on Friday .",
    "The Gulls ( 32 - 18 ) got off to a hot start , outscoring the Miners 30 - 21 in the first quarter .",
    "The host Gulls led the visiting Miners 54 - 51 at halftime .",
    "Paul Reyes led the way for the Gulls with a game - high 31 points , five rebounds and seven assists .",
    "Reyes finished with 31 points ( 11 - 20 FG , 4 - 9 3Pt , 5 - 6 FT ) in 36 minutes .",
    "Olaf Brandt recorded a double - double , totaling 18 points and 12 rebounds .",
    "Ben Okoro chipped in 15 off the bench .",
    "Ben Okoro led the bench with 15 points on 6 - of - 10 shooting , including 3 - of - 6 from long range .",
    "Four players scored in double figures for Harbor City .",
    "The Gulls shot 48 percent from the field and 37 percent from three - point range .",
    "The Gulls held the Miners to 44 percent shooting and forced them into 15 turnovers .",
    "Rebounding was key for the Gulls , as they won that battle , 45 - 41 .",
    "The Miners were led by Dario Vance , who posted a 27 - point , 11 - rebound double - double .",
    "Emil Koch and Dario Vance combined for 49 points for the Miners .",
    "Emil Koch was second on the team , as he added 22 points and nine assists .",
    "The bench of the Gulls chipped in 24 points .",
    "The Gulls played this game without Carl Dietz .",
    "It was a six - point win for the Gulls in front of their home crowd .",
    "The Gulls will look to build on this win .",
]


@pytest.mark.parametrize("text", TRUE)
def test_what_is_true_is_left_alone(text: str) -> None:
    assert marked(text) == []


WRONG = [
    ("Paul Reyes scored 29 points .", [("29", "number", "31")]),
    ("Paul Reyes had 31 points , a block and a pair of steals .", [("a", "number", "0")]),
    ("Paul Reyes had twenty - nine points and seven assists .", [("twenty - nine", "number", "31")]),
    ("Ben Okoro chipped in 16 .", [("16", "number", "15")]),
    ("Reyes went 11 - for - 21 from the field .", [("21", "number", "20")]),
    ("Reyes had 31 points ( 11 - 20 FG , 3 - 9 3Pt , 5 - 6 FT ) .", [("3", "number", "4")]),
    ("Olaf Brandt added 18 points in 30 minutes .", [("30", "number", "33")]),
    ("Emil Koch and Dario Vance combined for 45 points .", [("45", "number", "49")]),
    ("Ivo Marsh and Theo Quist each scored 10 points .", [("10", "number", "9"), ("10", "number", "9")]),
    ("Paul Reyes and Olaf Brandt had big nights , with the former scoring 31 points and the latter 20 points .",
     [("20", "number", "18")]),
    ("Reyes scored 31 points . He also had nine assists .", [("nine", "number", "7")]),
    ("The Gulls had 25 assists and 14 turnovers .", [("14", "number", "12")]),
    ("The bench of the Gulls chipped in 30 points .", [("30", "number", "24")]),
    ("The Gulls shot 51 percent from the field .", [("51", "number", "48")]),
    ("The Gulls held the Miners to 48 percent from the field .", [("48", "number", "44")]),
    ("The Gulls ( 31 - 18 ) came out strong .", [("31", "number", "32")]),
    ("With the loss , Redwater fell to 17 - 30 .", [("30", "number", "33")]),
    ("The Gulls defeated the Miners , 110 - 98 .", [("110", "number", "104")]),
    ("The Miners defeated the Gulls , 98 - 104 .", [("defeated", "word", "lost to")]),
    ("The Gulls lost to the Miners .", [("lost to", "word", "defeated")]),
    ("The Gulls defeated the Gulls , 104 - 98 .", [("Gulls", "name", "Redwater Miners")]),
    ("The Gulls defeated the Boston Celtics , 104 - 98 .", [("Boston Celtics", "name", "Redwater Miners")]),
    ("The Gulls outscored the Miners 28 - 20 in the third quarter .", [("20", "number", "23")]),
    ("The Gulls outscored the Miners 22 - 24 in the fourth quarter .", [("outscored", "word", "it was 22-24")]),
    ("The Gulls had a 30 - 25 lead after one quarter .", [("25", "number", "21")]),
    ("The Gulls outscored the Miners 56 - 47 in the first half .", [("47", "number", "51"), ("56", "number", "54")]),
    ("The Miners had a 35 - point second quarter .", [("35", "number", "30")]),
    ("It was a 10 - point win for the Gulls .", [("10", "number", "6")]),
    ("The Gulls won the rebounding battle , 48 - 41 .", [("48", "number", "45")]),
    ("Rebounding was key for the Miners .", [("key", "word", "it was 41 against 45")]),
    ("The Miners were the superior shooters .", [("superior", "word", "it was 44 against 48")]),
    ("The game was decided on Monday .", [("Monday", "name", "Friday")]),
    ("The host Miners kept it close .", [("host", "word", "road")]),
    ("It was a big road win for the Gulls .", []),  # the winner is not mentioned before `for the Gulls`
    ("The Gulls picked up a road win .", [("road", "word", "home")]),
    ("The Gulls won in overtime .", [("overtime", "word", "it did not")]),
    ("Olaf Brandt led the team in scoring .", [("led", "word", "Paul Reyes did, with 31")]),
    ("Dario Vance had a game - high 27 points .", [("game - high", "word", "Paul Reyes did, with 31")]),
    ("Theo Quist led the Gulls with six assists .", [("led", "word", "Paul Reyes did, with 7")]),
    ("Ivo Marsh led the bench with nine points .", [("led", "word", "Ben Okoro did, with 15")]),
    ("Olaf Brandt was third on the team , as he had 18 points .", [("third", "number", "2")]),
    ("Paul Reyes led the Gulls with 31 points . Imre Sato was next with 14 points .",
     [("next", "word", "Olaf Brandt did")]),
    ("Paul Reyes posted a double - double .", [("double - double", "word", "he had no double-double")]),
    ("Olaf Brandt posted a triple - double .", [("triple - double", "word", "he had a double-double")]),
    ("Reyes scored 31 points . It was his second double - double in a row .",
     [("second double - double", "number", "he had no double-double")]),
    ("Olaf Brandt came off the bench to score 18 points .", [("off the bench", "word", "he started")]),
    ("Ben Okoro was a starter .", [("starter", "word", "he came off the bench")]),
    ("Paul Reyes scored 31 points . Olaf Brandt was the only other starter in double figures .",
     [("only other", "word", "so were Imre Sato")]),
    ("Luka Novak was the only other starter in double figures .", [("double figures", "word", "he scored 8")]),
    ("Ben Okoro was the only other starter in double figures .", [("starter", "word", "he came off the bench")]),
    ("Six players scored in double figures for Harbor City .", [("Six", "number", "4")]),
    ("The Gulls played this game without Olaf Brandt .", [("without", "word", "he played 33 minutes")]),
    ("Paul Reyes had 31 points in the loss .", [("loss", "word", "they won")]),
    ("The Gulls will look to bounce back .", [("bounce back", "word", "they won")]),
    ("The Miners will look to keep this momentum going .", [("keep this momentum going", "word", "they lost")]),
    ("The Gulls continue to struggle .", [("struggle", "word", "they have 32 wins, 18 losses")]),
    ("The Miners are one of the best teams in the league .", [("best", "word", "they have 17 wins, 33 losses")]),
    ("The Gulls led for the entirety of the second half .", []),
    ("The Miners led for the entirety of the second half .",
     [("led for the entirety", "word", "they trailed by 8")]),
    ("The Gulls battled back in the second half .", [("battled back", "word", "they were ahead by 3 or more")]),
    ("The Miners battled back in the second half .", []),
    ("It was a two - point game at the end of the third quarter .", [("two", "number", "8")]),
    ("The Miners pulled away in the second half .", [("pulled away", "word", "they were outscored by 3"),
                                                     ("pulled away", "word", "they lost")]),
    ("The Miners got off to a hot start .", [("hot start", "word", "they were outscored by 9")]),
    ("The Miners won in front of their home crowd .", [("home", "word", "road")]),
    ("The Gulls did n't have enough .", [("did n't have enough", "word", "they won")]),
    ("Imre Sato had a bench - leading 14 points .", [("bench - leading", "word", "he started")]),
    ("The Gulls forced the Miners into 15 turnovers , while committing 14 of their own .", [("14", "number", "12")]),
    ("The Gulls grabbed 45 boards to the Miners 43 .", [("43", "number", "41")]),
    ("The game was played at Madison Square Garden .", []),  # their arena is unknown
    ("Paul Reyes led the way for the Miners with 31 points .", [("Miners", "name", "Harbor City Gulls")]),
    ("The Gulls were led by Dario Vance and Paul Reyes .",
     [("Dario Vance", "context", "he plays for Redwater Miners")]),
    ("The Gulls outscored the Gulls 30 - 21 in the first quarter .", [("Gulls", "name", "Redwater Miners")]),
    ("Paul Brandt added 18 points and 12 rebounds .", [("Paul Brandt", "name", "Olaf Brandt")]),
    ("Gregor Tallis added 18 points and 12 rebounds .", [("Gregor Tallis", "name", "")]),
    ("The Gulls play the Gulls on Monday in their next game .", [("Gulls", "name", "another team")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), WRONG, ids=[text for text, _ in WRONG])
def test_what_the_record_contradicts_is_marked(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert marked(text) == sorted(expected)


def test_the_name_is_blamed_when_all_numbers_fit_another_player() -> None:
    text = "Theo Quist chipped in 18 points , 12 rebounds and three assists ."
    assert marked(text) == [("Theo Quist", "name", "Olaf Brandt")]


def test_the_reading_that_was_not_taken_is_kept_as_an_alternative() -> None:
    """One wrong name explains three wrong numbers, so marking the numbers counts as the same error."""
    text = "Theo Quist chipped in 18 points , 12 rebounds and three assists ."
    checker = BoxScoreChecker(load_shipped("accuracy"), load_shipped_ranker(), threshold=0)
    name = next(mark for mark in checker(game_document(text)).marks if mark.label == "name")
    ((*members,),) = name.alternatives
    assert [(member.label, member.quotes[0]) for member in members] == [
        ("number", "18"),
        ("number", "12"),
        ("number", "three"),
    ]
    assert all(member.spans[0].extract(text) == member.quotes[0] for member in members)


def test_numbers_are_blamed_when_no_other_player_fits() -> None:
    text = "Theo Quist chipped in nine points , eight rebounds and five assists ."
    assert marked(text) == [("eight", "number", "3"), ("five", "number", "6")]


def test_the_team_is_blamed_when_player_and_record_belong_to_the_other() -> None:
    text = "The Gulls ( 17 - 33 ) were led by Dario Vance , who had 27 points ."
    assert marked(text) == [("Gulls", "name", "Redwater Miners")]


def test_a_player_among_the_others_is_out_of_context() -> None:
    text = "The Gulls were led by Paul Reyes . Dario Vance was next with 27 points ."
    context_slips = [candidate for candidate in find_error_candidates(text, game()) if candidate.kind == "context"]
    assert [text[candidate.start : candidate.end] for candidate in context_slips] == ["Dario Vance"]
    assert context_slips[0].correction == "he plays for Redwater Miners"


BEYOND = [
    ("On deck for the Gulls is a road matchup with the Boston Celtics on Monday .",
     {"road": "next.road", "Boston Celtics": "next.opponent", "Monday": "next.day"}),
    ("The Gulls travel to Boston to play the Celtics on Sunday .",
     {"travel": "next.road", "Boston": "next.city", "Celtics": "next.opponent", "Sunday": "next.day"}),
    ("The Gulls have now won four of their last five games .", {"four": "streak.last"}),
    ("The Miners have lost three straight games .", {"lost three straight games": "streak.row"}),
    ("Reyes scored 31 points . He is averaging 25 points on the season .", {"25": "sum.average"}),
    ("Reyes scored 31 points . He has combined for 60 points over his last two games .", {"60": "sum.combined"}),
    ("Paul Reyes had a season - high 31 points .", {"season - high": "personal"}),
    ("The Gulls remain in second place .", {"second place": "standings"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), BEYOND, ids=[text for text, _ in BEYOND])
def test_what_the_record_cannot_decide_is_a_base_rate(text: str, expected: dict[str, str]) -> None:
    kinds = {
        text[candidate.start : candidate.end]: candidate.kind
        for candidate in find_error_candidates(text, game())
        if candidate.basis == "base-rate"
    }
    assert kinds == expected


def test_a_name_that_two_players_share_means_the_one_named_before() -> None:
    data = game_record()
    data["box_score"]["PLAYER_NAME"]["1"] = "Emil Brandt"
    assert marked("Brandt had 22 points .", data) == []
    assert marked("Olaf Brandt led the bigs . Brandt had 22 points .", data) == [("22", "number", "18")]


def test_text_that_is_not_tokenised_is_read_the_same_way() -> None:
    text = "The Gulls beat the Miners 104-98. Paul Reyes’s 29-point night wasn't enough for a double-double."
    assert marked(text) == [("29", "number", "31"), ("double-double", "word", "he had no double-double")]


# --- the record ---------------------------------------------------------------------------------------------------


def without(*path: str) -> dict[str, Any]:
    data = game_record()
    inner = data
    for name in path[:-1]:
        inner = inner[name]
    del inner[path[-1]]
    return data


@pytest.mark.parametrize("path", [("home_line", "TEAM-PTS"), ("home_line",), ("box_score",), ("box_score", "PTS"),
                                  ("box_score", "TEAM_CITY"), ("box_score", "START_POSITION"), ("day",)])  # fmt: skip
def test_what_the_record_lacks_is_never_contradicted(path: tuple[str, ...]) -> None:
    assert [marked(text, without(*path)) for text in TRUE] == [[]] * len(TRUE)


@pytest.mark.parametrize("data", [None, 7, [], {}, {"home_name": "Gulls"}, {"home_name": "N/A", "vis_name": "Miners"}])
def test_a_text_without_a_record_is_set_aside_with_the_reason(data: Any) -> None:
    checker = BoxScoreChecker(load_shipped("accuracy"), load_shipped_ranker())
    annotation = checker(Document(id="report", text="Paul Reyes scored 40 points .", data=data))
    assert annotation.status == "excluded"
    assert annotation.marks == ()
    assert annotation.excluded is not None
    assert annotation.excluded.reason.startswith("not checked: ")


def test_a_player_listed_twice_with_different_lines_is_not_judged() -> None:
    data = game_record()
    data["box_score"]["PLAYER_NAME"]["0"] = "Paul Reyes"
    assert marked("Paul Reyes scored 40 points .", data) == []
    assert game(data).problems == ("Paul Reyes is listed 2 times with different statistics, none of which is used",)


def test_somebody_who_did_not_play_scored_nothing() -> None:
    assert marked("Carl Dietz scored 12 points .") == [("12", "number", "0")]


def test_teams_of_one_city_are_told_apart_by_their_starters() -> None:
    data = game_record()
    data["home_city"] = "Redwater"
    data["box_score"]["TEAM_CITY"] = dict.fromkeys(data["box_score"]["TEAM_CITY"], "Redwater")
    sides = {player.name: player.team.name for player in game(data).players if player.team}
    assert (sides["Dario Vance"], sides["Leo Frost"], sides["Paul Reyes"]) == ("Miners", "Miners", "Gulls")


# --- marks --------------------------------------------------------------------------------------------------------


def checker(**choices: Any) -> BoxScoreChecker:
    program = find_detector_factory("boxscore").make(load_shipped("accuracy"), BoxScoreOptions(**choices))
    assert isinstance(program, BoxScoreChecker)
    return program


REPORT = (
    "The Gulls defeated the Miners , 104 - 97 , on Friday . Paul Reyes had 29 points and a steal . "
    "Next , the Gulls host the Boston Celtics on Friday ."
)


def test_a_mark_explains_itself() -> None:
    marks = {mark.quotes[0]: mark for mark in checker(basis="all", threshold=0.2)(game_document(REPORT)).marks}
    assert marks["29"].answers == {
        "correction": "31",
        "comment": "The text says that Paul Reyes had 29 points, but the record says 31 (cell: PTS of Paul Reyes).",
    }
    assert marks["29"].basis == "record"
    assert marks["Boston Celtics"].basis == "base-rate"
    assert "The record does not cover this; annotators found " in str(marks["Boston Celtics"].answers["comment"])
    assert all(mark.confidence is not None and 0 <= mark.confidence <= 1 for mark in marks.values())


def test_basis_record_leaves_out_what_is_only_likely() -> None:
    marks = checker()(game_document(REPORT)).marks  # the default
    assert {mark.quotes[0] for mark in marks} == {"97", "29", "a"}
    assert {mark.basis for mark in marks} == {"record"}


CODES = re.compile(r"\b(?:[NOPXTCHAD]|[SL](?:points|rebounds|assists|steals|blocks|minutes|fieldgoals))\b")


def test_no_explanation_has_a_code_in_it() -> None:
    texts = [text for text, _ in WRONG] + [text for text, _ in BEYOND] + ["The Gulls are the third seed ."]
    marks = [mark for text in texts for mark in checker(basis="all", threshold=0.0)(game_document(text)).marks]
    comments = [str(mark.answers["comment"]) for mark in marks]
    assert len(comments) > 80
    assert [comment for comment in comments if CODES.search(comment.partition(" (cell: ")[0])] == []
    assert all("(cell: " in comment for mark, comment in zip(marks, comments, strict=True) if mark.basis == "record")
    assert all(comment.endswith(".") for comment in comments)


PEOPLE = [
    "The Gulls fell to the Miners in their two previous meetings .",
    "Paul Reyes and Emil Koch led all scorers with 31 points and 22 points , respectively .",
    "The Gulls led by as many as 20 points before the break .",
    "Paul Reyes had his fewest points since a nine - point effort last February .",
    "The Sea Eagle went for 31 points and seven assists .",
    "Coach Ben Hollow had his men on the boards for 45 rebounds .",
    "Paul Reyes got the Gulls going after scoring 12 points and adding four rebounds in that first period .",
    "Paul Reyes reached 20 points for the second game in a row .",
    "The Gulls have scored 110 points or more in all four wins .",
    "Paul Reyes returned after resting on Wednesday .",
    "The Miners were in urgent need of a win .",
    "Paul Reyes came back strong for the Gulls .",
]

# Sentences about the same game that were misinterpreted in earlier versions, by the type of misinterpretation.
MISREAD = {
    "a passive": [
        "The Miners were outscored 30 - 21 in the first quarter .",
        "Trailing 54 - 51 at the half , the Miners were outscored by the Gulls 28 - 23 in the third quarter .",
    ],
    "a score so far": [
        "The Gulls led 54 - 51 at the break and 82 - 74 heading into the fourth quarter .",
        "The Gulls led 82 - 74 at the end of the third quarter .",
        "Redwater outscored Harbor City 30 - 24 in the second to pull within three at the half .",
    ],
    "a bound or a lead": [
        "The Gulls led by as many as 17 points in the first half .",
        "Emil Koch hit a three - pointer to cut the lead to two points with 30 seconds left .",
        "Reyes found Brandt for a dunk to make it a seven - point game .",
    ],
    "done to the other team": [
        "The Gulls allowed just 21 points in the first quarter .",
        "The Gulls turned the ball over just 12 times , while forcing 15 turnovers .",
        "The Miners allowed 104 points .",
        "The Miners shot 44 percent from the field and allowed the Gulls to shoot 48 percent from the field .",
    ],
    "a relative clause": [
        "The Miners had no answer for the Gulls , who shot 48 percent from the field .",
        "Koch had 22 points for a Miners team that shot 44 percent from the field .",
    ],
    "an aside": [
        "The Gulls , playing without Dietz for the fifth straight game , had 25 assists .",
        "The second unit , led by Okoro , scored 24 points .",
        "Brandt , who was guarded by Stroud , had 18 points .",
        "Koch had nine assists , but his team had just 20 assists .",
    ],
    "the former and the latter": ["Koch 's bad luck went over to Stroud , as the latter had only 12 points ."],
    "somebody described": [
        "The big man had an 18 - point , 12 - rebound double - double , and Paul Reyes led the team with 31 points .",
    ],
    "a list before its name": [
        "The Miners got 27 points and 11 rebounds from Dario Vance and 22 points and nine assists from Emil Koch .",
        "Koch and Vance had seven turnovers between them .",
    ],
    "a share": [
        "Vance and Koch combined for 49 of the Miners ' 98 points .",
        "Brandt scored 10 of the team 's first 14 points .",
    ],
    "what was missed": [
        "Paul Reyes came three assists and five rebounds short of a triple - double .",
        "Emil Koch was one assist away from a double - double .",
        "Reyes scored 31 points , two shy of his career high of 33 points .",
        "The Miners could not force overtime , as Vance missed a three .",
    ],
    "another game": [
        "Paul Reyes followed up his 40 - point performance Wednesday with 31 points .",
        "Paul Reyes , who scored 40 points on Wednesday , had 31 points this time around .",
        "Reyes had totaled only 19 points in the two games prior , but he went for 31 on Friday .",
        "Imre Sato , coming off a 25 - point effort , had 14 points .",
        "Dietz scored 25 points against the Miners in November .",
        "The Gulls lost to the Miners earlier this season .",
        "The Miners entered Friday having dropped three straight , including a 99 - 95 defeat on Wednesday .",
        "The Gulls beat the Miners . Reyes sat out the entire fourth quarter on Wednesday .",
        "Jon Field returned to the starting lineup after coming off the bench on Wednesday .",
        "The Gulls were looking to bounce back from a loss to the Celtics .",
    ],
    "several games": [
        "Reyes recorded his fifth 30 - point game of the season .",
        "This was the fifth time this season that Reyes scored 30 points .",
        "The Gulls are 10 - 2 when Reyes scores 30 points .",
        "Reyes has now scored 95 points over his last three games .",
        "The Gulls improved to 5 - 0 since Reyes returned from injury .",
        "Emil Koch , the team 's leading scorer on the season , had 22 points .",
        "The Gulls entered the game shooting 45 percent from the field , and shot 48 percent in this one .",
    ],
    "a part of the game": [
        "The Gulls shot 60 percent from the field in the first quarter .",
        "Reyes shot 2 - of - 9 in the second half after going 9 - of - 11 in the first .",
        "Vance had 15 points , seven rebounds and two assists by halftime .",
        "Vance had eight points during a 12 - 0 run .",
    ],
    "the others": [
        "Reyes was 11 - of - 20 from the floor , but the rest of the team went 30 - of - 66 .",
        "Outside of Reyes , the Gulls shot 45 percent from the field .",
        "The Miners were looking to play better against one of the best teams in the league .",
        "The Gulls had four more rebounds and five more assists than the Miners .",
    ],
    "what is led in": [
        "Brandt 's 12 rebounds led all players .",
        "Emil Koch 's nine assists were a game - high .",
        "Olaf Brandt led the Gulls on the boards with 12 rebounds .",
        "Sam Ortiz was the high man off the bench with 13 points .",
        "Ben Okoro was the only Gulls reserve in double figures , finishing with 15 points .",
        "Ortiz provided a spark off the bench with 13 points , while starter Jon Field had 10 .",
    ],
    "two shooting words": ["The Gulls held Vance to 3 - of - 8 shooting from deep ."],
    "two percentages": ["The Gulls out - shot the Miners 48 percent to 44 percent from the field ."],
    "a name": [
        "Former Miner Olaf Brandt had 18 points and 12 rebounds against his old team .",
        "Reyes became the first Gull since Jim Stone to score 30 points in three straight games .",
    ],
    "the win column": ["The Miners host the Nets on Sunday and will look to get back in the win column ."],
}


@pytest.mark.parametrize(("cause", "text"), [(cause, text) for cause, texts in MISREAD.items() for text in texts])
def test_what_was_once_misread_is_read_as_people_mean_it(cause: str, text: str) -> None:
    assert marked(text) == [], cause


STILL_WRONG = [
    ("The Miners were outscored 33 - 21 in the first quarter .", [("33", "number", "30")]),
    ("The Gulls led 84 - 74 heading into the fourth quarter .", [("84", "number", "82")]),
    ("The Gulls forced 14 turnovers .", [("14", "number", "15")]),
    ("The Gulls allowed just 22 points in the first quarter .", [("22", "number", "21")]),
    ("The Miners had no answer for the Gulls , who shot 50 percent from the field .", [("50", "number", "48")]),
    ("The Gulls , led by Paul Reyes , had 24 assists .", [("24", "number", "25")]),
    ("Koch had nine assists , but his team had just 21 assists .", [("21", "number", "20")]),
    ("The Gulls got 18 points and 11 rebounds from Olaf Brandt .", [("11", "number", "12")]),
    ("Koch and Vance had eight turnovers between them .", [("eight", "number", "7")]),
    ("Emil Koch 's nine assists led the Miners , and Brandt 's 12 rebounds led the Gulls .", []),
    ("Dario Vance 's 11 rebounds led all players .", [("led", "word", "Olaf Brandt did, with 12")]),
    ("The Gulls had four players score in double figures , including Theo Quist .",
     [("Theo Quist", "name", "he scored 9")]),
    ("The Gulls have won seven games this season , but this was a road victory .", [("road", "word", "home")]),
    ("The key for Redwater was the rebounding , as they grabbed 45 boards .",
     [("Redwater", "name", "Harbor City Gulls")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), STILL_WRONG, ids=[text for text, _ in STILL_WRONG])
def test_what_is_wrong_in_those_wordings_is_marked(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert marked(text) == expected


@pytest.mark.parametrize("text", PEOPLE)
def test_wordings_of_people_are_not_misread(text: str) -> None:
    assert marked(text) == []


def test_blame_that_could_go_either_way_is_written_as_an_alternative() -> None:
    (name,) = checker(threshold=0.0)(game_document("The Gulls were led by Dario Vance .")).marks
    (verb,) = checker(threshold=0.0)(game_document("The Miners defeated the Gulls .")).marks
    assert (name.quotes, verb.quotes) == (("Dario Vance",), ("defeated",))
    readings = [[other.quotes[0] for other in reading] for reading in (*name.alternatives, *verb.alternatives)]
    assert readings == [["Gulls"], ["Miners", "Gulls"]]


def season() -> dict[str, Any]:
    """Return a record whose season says that the Gulls won three of four games and play in Boston on Sunday."""
    following = {"home_name": "Celtics", "vis_name": "Gulls", "day": "02_05_17"}
    return game_record() | {"season": {"home": {"last": None, "next": following, "results": "WLWW"}, "vis": {}}}


SEASONS = [
    ("The Gulls will visit the Boston Celtics on Sunday .", []),
    ("The Gulls will visit the Denver Nuggets on Monday .", [("Denver Nuggets", "Celtics"), ("Monday", "Sunday")]),
    ("Next , the Gulls will host the Celtics .", [("host", "it is on the road")]),
    ("The Gulls have won three straight games .", []),
    ("The Gulls have won six straight games .", [("won six straight games", "it has won 3 in a row")]),
    ("The Gulls have won four of their last five games .", []),
    ("The Gulls have won three of their last five games .", [("three", "4")]),
]


@pytest.mark.parametrize(("text", "expected"), SEASONS)
def test_a_season_makes_next_games_and_streaks_facts(text: str, expected: list[tuple[str, str]]) -> None:
    found = list(find_error_candidates(text, game(season())))
    assert [(text[candidate.start : candidate.end], candidate.correction) for candidate in found] == expected
    assert {candidate.basis for candidate in found} <= {"record"}


def test_a_report_that_contradicts_the_record_is_trusted_less_elsewhere() -> None:
    next_game = "Next , the Gulls host the Boston Celtics on Wednesday ."
    good = "Paul Reyes had 31 points . " + next_game
    bad = "Paul Reyes had 28 points and three assists . Olaf Brandt had two points . " + next_game
    sure = [
        {mark.quotes[0]: mark.confidence for mark in checker(basis="all", threshold=0.0)(game_document(text)).marks}
        for text in (good, bad)
    ]
    assert (sure[0]["Boston Celtics"] or 0) + 0.3 < (sure[1]["Boston Celtics"] or 0)


def test_a_higher_threshold_marks_a_subset() -> None:
    marked = [
        {mark.spans for mark in checker(threshold=level)(game_document(REPORT)).marks}
        for level in (0.0, 0.5, 0.95, 1.0)
    ]
    assert marked[0] >= marked[1] >= marked[2] >= marked[3]
    assert marked[0] > marked[2]
    assert marked[3] == set()


def test_an_annotation_is_sound_in_a_study() -> None:
    annotations = list(detect([game_document(REPORT)], checker()))
    people = [Annotator(id="boxscore", kind="checker")]
    study = Study.from_items([load_shipped("accuracy"), game_document(REPORT), *people, *annotations])
    assert check_study(study) == []


def test_a_protocol_without_the_labels_is_refused() -> None:
    with pytest.raises(FinecombError, match="label 'number' is missing from protocol snac@2"):
        BoxScoreChecker(load_shipped("snac"), load_shipped_ranker())


def test_an_unknown_detector_is_refused_with_a_suggestion() -> None:
    with pytest.raises(FinecombError, match="did you mean 'boxscore'"):
        find_detector_factory("boxscores")
    assert {"boxscore", "rules"} < set(DETECTORS)


def test_a_sentence_without_an_end_is_read_in_pieces_and_names_that_many_bear_are_not_all_tried() -> None:
    data = game_record()
    names = data["box_score"]["PLAYER_NAME"]
    data["box_score"]["PLAYER_NAME"] = {key: f"{name.split()[0]} Smith" for key, name in names.items()}
    text = "Smith and Smith and Smith and Smith and Smith and Smith combined for 400 points " * 60
    assert len(parse_sentences(text, game(data))) == 3
    assert len(proved(text, data)) == 60  # one sentence has billions of interpretations, too many to enumerate


def test_a_text_without_words_has_no_marks() -> None:
    assert [checker(basis="all")(game_document(text)).marks for text in ("", " ", "\n")] == [(), (), ()]


# --- properties ---------------------------------------------------------------------------------------------------

WORDS = sorted({word for text, _ in WRONG for word in text.split()} | {word for text in TRUE for word in text.split()})
texts = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join),
    st.lists(st.sampled_from([*TRUE, *(text for text, _ in WRONG)]), max_size=4).map(" ".join),
    st.text(max_size=80),
)


@st.composite
def damaged_records(draw: st.DrawFn) -> dict[str, Any]:
    """Return records with fields that are missing, `N/A` or of another type."""
    shuffle = random.Random(draw(st.integers(0, 2**16)))
    worse: list[Any] = ["N/A", "", None, 3, 2.5, "x", [], {}, "999999", True]

    def damage(value: Any, rate: float) -> Any:
        if isinstance(value, dict):
            fields = {key: damage(item, rate) for key, item in value.items() if shuffle.random() > rate / 2}
            return fields if shuffle.random() > rate / 20 else shuffle.choice(worse)
        return shuffle.choice(worse) if shuffle.random() < rate else value

    damaged: Any = damage(game_record(), draw(st.sampled_from([0.0, 0.05, 0.3, 0.9])))
    return damaged if isinstance(damaged, dict) else {}


@given(texts, damaged_records())
def test_any_text_and_any_record_give_marks_that_quote_the_text_and_do_not_overlap(text: str, data: Any) -> None:
    storable = text.replace("\0", "").encode("utf-8", "ignore").decode()
    annotation = checker(threshold=0.0)(Document(id="report", text=storable, data=data))
    places = [mark.spans[0] for mark in annotation.marks]
    assert [mark.quotes[0] for mark in annotation.marks] == [storable[place.start : place.end] for place in places]
    assert all(one.end <= two.start for one, two in itertools.pairwise(places))
    assert all(place.start < place.end for place in places)


@given(texts)
def test_words_cover_the_text_in_order(text: str) -> None:
    words = [word for sentence in parse_sentences(text, game()) for word in sentence.words]
    assert all(one.end <= two.start for one, two in itertools.pairwise(words))
    covered = "".join(text[word.start : word.end] for word in words)
    assert "".join(covered.split()) == "".join(text.split())


def numbers() -> Iterator[tuple[str, str, int]]:
    for name, _, _, _, points, rebounds, assists, *_ in PLAYERS:
        yield from ((name, "points", points), (name, "rebounds", rebounds), (name, "assists", assists))


@given(st.sampled_from(list(numbers())), st.integers(0, 60))
def test_a_count_is_marked_exactly_when_it_is_wrong(fact: tuple[str, str, int], number: int) -> None:
    name, statistic, value = fact
    text = f"{name} had {number} {statistic} ."
    assert marked(text) == ([] if number == value else [(str(number), "number", str(value))])


def fewest_changes(name: str, line: tuple[int, int, int]) -> int:
    """Compute the fewest changes by brute force: no change, or another player who leaves at most one number wrong."""
    wrong = {row[0]: sum(a != b for a, b in zip(row[4:7], line, strict=True)) for row in PLAYERS}
    others = [1 + count for player, count in wrong.items() if player != name and count <= 1]
    return min(wrong[name], *others) if others and wrong[name] > 1 else wrong[name]


lines = st.sampled_from([row[4:7] for row in PLAYERS])
nearly = st.tuples(lines, st.integers(0, 3), st.integers(0, 40)).map(
    lambda drawn: tuple(drawn[2] if at == drawn[1] else value for at, value in enumerate(drawn[0]))
)


@given(st.sampled_from([row[0] for row in PLAYERS]), nearly)
def test_a_sentence_gets_the_fewest_changes(name: str, line: tuple[int, int, int]) -> None:
    text = f"{name} had {line[0]} points , {line[1]} rebounds and {line[2]} assists ."
    assert len(proved(text)) == fewest_changes(name, line)
