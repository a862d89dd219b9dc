"""Tests of the relation metric on a fictional game."""

from __future__ import annotations

import pytest

from finecomb.annotators.detectors import find_detector_factory
from finecomb.annotators.detectors.boxscore.game import parse_game
from finecomb.annotators.detectors.boxscore.relation_metric import RelationMetric, RelationOptions, extract_relations
from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.protocols import load_shipped
from tests.annotators.detectors.example_game import game_document, game_record


def tuples(text: str) -> list[tuple[str, str, str, bool]]:
    game = parse_game(game_record())
    assert game is not None
    return [(found.entity, found.value, found.type, found.is_wrong) for found in extract_relations(text, game)]


TEXTS = [
    ("Paul Reyes had 31 points .", [("Paul Reyes", "31", "points", False)]),
    ("Paul Reyes had a 29 - point game .", [("Paul Reyes", "29", "points", True)]),
    ("The Gulls ( 32 - 17 ) won .", [("Harbor City Gulls", "32", "TEAM-WINS", False),
                                     ("Harbor City Gulls", "17", "TEAM-LOSSES", True)]),
    ("They met on Friday .", [("the game", "Friday", "day", False)]),
    ("They met on Monday .", [("the game", "Monday", "day", True)]),
    ("They will play on Monday .", []),
    ("Otto Bahn had 12 points .", [("Otto Bahn", "Otto Bahn", "player", True)]),
    # the nearest mention is not always the right one, which is a known weakness of the metric
    ("Paul Reyes , guarded by Emil Koch , had 31 points .", [("Emil Koch", "31", "points", True)]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_a_number_belongs_to_the_nearest_mention(text: str, expected: list[tuple[str, str, str, bool]]) -> None:
    assert tuples(text) == expected


def test_what_contradicts_the_record_is_marked_with_its_cell() -> None:
    metric = RelationMetric(load_shipped("accuracy"), RelationOptions())
    (mark,) = metric(game_document("Paul Reyes had a steal and two assists .")).marks[1:]
    assert (mark.quotes[0], mark.label, mark.answers["correction"]) == ("two", "number", "7")
    assert (
        mark.answers["comment"] == "The text gives Paul Reyes 2 assists; the record says 7 (cell: AST of Paul Reyes)."
    )


def test_words_contexts_and_double_doubles_are_beyond_it() -> None:
    metric = RelationMetric(load_shipped("accuracy"), RelationOptions())
    assert metric(game_document("The Miners defeated the Gulls . Paul Reyes had a triple - double .")).marks == ()


def test_a_text_without_a_record_is_set_aside_and_other_labels_are_refused() -> None:
    metric = find_detector_factory("relations").make(load_shipped("accuracy"), RelationOptions())
    assert metric(Document(id="bare", text="Paul Reyes had 31 points .")).excluded is not None
    with pytest.raises(
        FinecombError,
        match="relations requires the labels of protocol accuracy; label 'number' is missing from protocol snac@2",
    ):
        RelationMetric(load_shipped("snac"), RelationOptions())
