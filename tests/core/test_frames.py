from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from pydantic_core import to_json

from finecomb.core.frames import json_entry, json_entry_names, meta_entry, parse_json_list, parse_json_object


@pytest.mark.parametrize("value", ["plain", "", "é\n", 3, 3.0, 0.1, True, None, ["b", "a"], {"b": 1, "a": [2]}])
@pytest.mark.parametrize("name", ["severity", "two words", "a.b", "$"])
def test_an_entry_is_the_text_of_the_value_however_it_is_named(name: str, value: Any) -> None:
    frame = pl.DataFrame({"answers": [to_json({"x": 1, name: value}).decode(), None, '{"x":2}']})
    text = value if value is None or isinstance(value, str) else to_json(value).decode()
    assert frame.select(json_entry("answers", name))[name].to_list() == [text, None, None]
    assert frame.rename({"answers": "meta"}).select(meta_entry(name))[name].to_list() == [text, None, None]


def test_meta_keeps_every_digit_of_a_long_number() -> None:
    frame = pl.DataFrame({"meta": ['{"id":12345678901234567890123}']})
    assert frame.select(meta_entry("id"))["id"].to_list() == ["12345678901234567890123"]


def test_a_null_is_empty_and_names_come_in_order() -> None:
    assert (parse_json_object(None), parse_json_list(None), parse_json_list("[[1]]")) == ({}, [], [[1]])
    assert json_entry_names(pl.Series(['{"b":1}', None, '{"a":1,"b":2}'])) == ["b", "a"]
