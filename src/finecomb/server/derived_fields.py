"""Request fields that correspond to parameters of public functions."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, Field

from finecomb.api.parameters import Bounds, bounds_of, parameter_help


def parameter_field(
    function: Callable[..., Any], name: str, record: type[BaseModel] | None = None, **server: Any
) -> Any:
    """Return a field with the default, bounds and description of a parameter of a public function.

    If the default of the parameter is None, the default and bounds may come from a field of `record`. `server` contains
    the arguments that the server adds or replaces: upper limits, which protect it from large requests, and a
    description if the field accepts fewer values than the parameter.
    """
    bounds = bounds_of(typing.get_type_hints(function, include_extras=True)[name]) or Bounds()
    derived = {
        "default": inspect.signature(function).parameters[name].default,
        "description": parameter_help(function)[name],
        "ge": bounds.min,
        "le": bounds.max,
    }
    if record:
        field = record.model_fields[name]
        limits = ("gt", "ge", "lt", "le")
        derived["default"] = field.default
        derived |= {limit: getattr(item, limit) for item in field.metadata for limit in limits if hasattr(item, limit)}
    return Field(**{**derived, **server})
