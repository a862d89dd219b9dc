"""Tests of game records."""

from __future__ import annotations

from typing import Any

import pytest

from finecomb.annotators.detectors.boxscore.game_record import Season, add_neighbouring_games, game_record_problem
from finecomb.core.record_links import with_links

BOX = {"PLAYER_NAME": {"0": "Lena Brandt"}, "PTS": {"0": "17"}}


def game(day: str = "2017-02-03", home: str = "Foxes", vis: str = "Cranes", **fields: Any) -> dict[str, Any]:
    return {"home_name": home, "vis_name": vis, "day": day, "box_score": BOX} | fields


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, ""),
        ({"home_name": ""}, "home_name is missing"),
        ({"day": "3 February"}, "day '3 February' is not a date"),
        ({"box_score": [1, 2]}, "must be an object with one column per statistic"),
        ({"box_score": {"PTS": {"0": "17"}}}, "box_score column PLAYER_NAME is missing or empty"),
        ({"box_score": {**BOX, "REB": {}}}, "column REB has no value for player 0 (Lena Brandt)"),
    ],
)
def test_a_broken_box_score_says_what_is_broken(fields: dict[str, Any], problem: str) -> None:
    assert game_record_problem(game(**fields)).startswith(problem) or problem in game_record_problem(game(**fields))
    assert bool(game_record_problem(game(**fields))) == bool(problem)


@pytest.mark.parametrize("data", [None, [1, 2], {"weather": "rain"}, "text"])
def test_other_data_is_no_broken_box_score(data: Any) -> None:
    assert game_record_problem(data) == ""


def test_last_and_next_games_are_the_nearest_of_the_team() -> None:
    days = ["2017-01-30", "2017-02-01", "2017-02-03", "2017-02-04", "2017-02-09"]
    games = [game(day, vis="Cranes" if number != 1 else "Owls") for number, day in enumerate(days)]
    season = Season.from_records([*reversed(games), game("2017-02-02", "Cranes", "Harbour Owls"), {"day": "unknown"}])
    data = add_neighbouring_games(games[2], season)
    around = {
        (side, when): record and record["day"]
        for side in data["season"]
        for when, record in data["season"][side].items()
    }
    assert around == {
        ("home", "last"): "2017-02-01",
        ("home", "next"): "2017-02-04",
        ("vis", "last"): "2017-02-02",
        ("vis", "next"): "2017-02-04",
    }


def test_a_missing_game_is_none_and_not_a_guess() -> None:
    season = Season.from_records([game()])
    assert add_neighbouring_games(game(), season)["season"]["home"] == {"last": None, "next": None}
    assert add_neighbouring_games({"weather": "rain"}, season) == {"weather": "rain"}


def test_links_stand_beside_whatever_record_there_is() -> None:
    links = {"Calendar": "https://example.org"}
    assert with_links(None, links) == {"links": links}
    assert with_links([1], links) == {"data": [1], "links": links}
    assert with_links([1], {}) == [1]
