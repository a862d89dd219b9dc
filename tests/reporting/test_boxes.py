from __future__ import annotations

from tests.reporting.svg_text_boxes import collisions


def drawing(inside: str) -> str:
    return f'<svg xmlns="http://www.w3.org/2000/svg">{inside}</svg>'


def test_words_in_one_place_collide() -> None:
    assert collisions(drawing('<text x="0" y="10">one</text><text x="2" y="12">two</text>')) == [("one", "two")]


def test_words_apart_do_not_collide_also_when_groups_move_or_turn_them() -> None:
    apart = '<text>one</text><g transform="translate(0,40)"><text>two</text></g>'
    turned = '<text transform="rotate(-45)">long words that are turned</text><text x="60" y="0">right</text>'
    assert collisions(drawing(apart)) == []
    assert collisions(drawing(turned)) == []


def test_words_that_end_where_others_begin_do_not_collide() -> None:
    assert collisions(drawing('<text x="10" text-anchor="end">left</text><text x="14">right</text>')) == []
