from __future__ import annotations

import pytest
from pydantic import ValidationError

from finecomb.core.errors import FinecombError
from finecomb.corpora.generation.decoding import Decoding, decoding_grid

TOP_PS, TEMPERATURES, PENALTIES = [0.4, 0.7, 0.9, 0.96], [0, 0.4, 0.7, 1], [0, 1]


def test_independent_variation_gives_the_fourteen_settings_of_the_paper() -> None:
    grid = decoding_grid(TOP_PS, TEMPERATURES, PENALTIES)
    assert len(grid) == 14
    assert {setting.name for setting in grid if setting.frequency_penalty == 0} == {
        "p0.4-t1-f0",
        "p0.7-t1-f0",
        "p0.9-t1-f0",
        "p0.96-t1-f0",
        "argmax-f0",
        "p0.96-t0.4-f0",
        "p0.96-t0.7-f0",
    }
    assert sum(setting.is_argmax for setting in grid) == 2  # once for each penalty


def test_crossed_settings_have_every_pair_and_argmax_once() -> None:
    grid = decoding_grid(TOP_PS, TEMPERATURES, [0], "cross")
    assert len(grid) == 4 * 3 + 1
    assert len(set(grid)) == len(grid)


def test_a_single_value_is_no_variation() -> None:
    assert [setting.name for setting in decoding_grid([0.9], [1], [0])] == ["p0.9-t1-f0"]
    assert [setting.name for setting in decoding_grid([0.4, 0.7], [1], [0])] == ["p0.4-t1-f0", "p0.7-t1-f0"]
    assert [setting.name for setting in decoding_grid([0.9], [0.4, 0.7], [0])] == ["p0.9-t0.4-f0", "p0.9-t0.7-f0"]
    assert [setting.name for setting in decoding_grid([0.9], [0], [1])] == ["argmax-f1"]


def test_argmax_has_no_nucleus_in_its_meta() -> None:
    assert Decoding(temperature=0).meta() == {"top_p": None, "temperature": 0.0, "frequency_penalty": 0.0}


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(FinecombError, match="each require at least one value"):
        decoding_grid([], [1], [0])
    with pytest.raises(ValidationError):
        Decoding(top_p=0)
