"""Fields of requests have the types, defaults, bounds and descriptions of the parameters of public functions."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import Field, TypeAdapter, ValidationError

import finecomb as fc
from finecomb.api.parameters import Bounds, Share, parameter_help
from finecomb.core.records import ModelSettings, Record
from finecomb.server.derived_fields import parameter_field
from finecomb.server.researchers.run_schema import NewModel, NewRun, RetryRequest
from finecomb.server.researchers.schema import NewLinks

NAME_IN_ANNOTATE = {"first": "limit", "template": "prompt"}
ONLY_HERE = {"document"}
"""The page previews and tries single texts."""
DERIVED = [
    *((NewRun, name, fc.annotate, NAME_IN_ANNOTATE.get(name, name)) for name in ("name", "first", "samples")),
    *((NewRun, name, fc.annotate, name) for name in ("max_tokens", "budget")),
    *((NewModel, name, fc.annotate, name) for name in ("base_url", "temperature")),
    (NewLinks, "count", fc.links, "new"),
]
TypedAs = tuple[type[Record], str, Callable[..., Any], str]


def test_every_field_of_a_run_is_a_parameter_of_annotate() -> None:
    parameters = inspect.signature(fc.annotate).parameters
    assert {NAME_IN_ANNOTATE.get(name, name) for name in NewRun.model_fields} - ONLY_HERE <= set(parameters)


def member_types(hint: Any) -> set[Any]:
    """Return the types of a hint without None, bounds and checks."""
    plain = typing.get_type_hints(type("Holder", (), {"__annotations__": {"hint": hint}}))["hint"]
    return set(typing.get_args(plain) or (plain,)) - {type(None)}


@pytest.mark.parametrize("derived", DERIVED, ids=lambda derived: f"{derived[0].__name__}.{derived[1]}")
def test_a_field_has_the_type_and_description_of_its_parameter(derived: TypedAs) -> None:
    record, name, function, parameter = derived
    field, hint = record.model_fields[name], typing.get_type_hints(function)[parameter]
    assert member_types(field.annotation) == member_types(hint)
    assert field.description == parameter_help(function)[parameter]
    assert record.model_json_schema()["properties"][name]["description"] == field.description


def test_model_options_have_the_defaults_and_bounds_of_model_settings() -> None:
    new = NewRun(model="judge")
    assert (new.samples, new.max_tokens, new.budget) == tuple(
        ModelSettings.model_fields[name].default for name in ("samples", "max_tokens", "budget")
    )
    for wrong in ({"samples": 0}, {"samples": 21}, {"max_tokens": 0}, {"budget": 0}, {"first": 0}):
        with pytest.raises(ValidationError):
            NewRun.model_validate({"model": "judge", **wrong})
    with pytest.raises(ValidationError):
        NewModel(name="big", model="big", temperature=3)
    with pytest.raises(ValidationError):
        RetryRequest(document="d1", max_tokens=0)
    with pytest.raises(ValidationError):
        NewLinks(count=-1)


def sample(share: Share = 0.5, size: Annotated[int, Bounds(2)] | None = None) -> None:
    """Draw a sample.

    Parameters
    ----------
    share : float, default 0.5
        Share of the texts. More are slower.
    size : int, optional
        Number of texts.
    """


class Defaults(Record):
    size: int = Field(default=7, lt=100)


def test_a_field_follows_the_signature_and_its_parameters_section() -> None:
    share = parameter_field(sample, "share")
    assert (share.default, share.description) == (0.5, "Share of the texts.")
    assert TypeAdapter(Annotated[float, share]).json_schema() == {
        "type": "number", "minimum": 0, "maximum": 1, "default": 0.5, "description": "Share of the texts.",
    }  # fmt: skip


def test_a_record_gives_the_default_and_more_bounds_and_the_server_may_lower_them() -> None:
    size = parameter_field(sample, "size", Defaults, le=10, description="Texts.")
    assert TypeAdapter(Annotated[int, size]).json_schema() == {
        "type": "integer", "minimum": 2, "exclusiveMaximum": 100, "maximum": 10, "default": 7, "description": "Texts.",
    }  # fmt: skip
