"""Settings of a language model from the options that a user gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from finecomb.core.errors import ParameterError, param
from finecomb.core.protocol_text import explain_validation_error
from finecomb.core.records import ModelSettings


def build_model_settings(
    model: str, given: Mapping[str, Any], models: Mapping[str, ModelSettings] | None = None
) -> ModelSettings:
    """Return what `models` in study.yaml says of the model, with the given options on top."""
    base = (models or {}).get(model) or ModelSettings(model=model)
    values = dict(given)
    if "price" in values:
        values["price"] = parse_price(values["price"])
    try:
        return ModelSettings.model_validate({**base.model_dump(), **values})
    except ValidationError as error:
        problem = error.errors()[0]
        name = str(problem["loc"][0])
        raise ParameterError(
            f"{param(name)}: {explain_validation_error(problem, ModelSettings)}", parameter=name
        ) from None


def parse_price(price: str | Sequence[float | str]) -> tuple[float, float]:
    """Return dollars per million tokens sent and received, from `IN,OUT` or two numbers.

    >>> parse_price("0.15,0.60"), parse_price((1, 2))
    ((0.15, 0.6), (1.0, 2.0))
    """
    parts = price.split(",") if isinstance(price, str) else list(price)
    try:
        sent, received = (float(part) for part in parts)
    except ValueError:
        text = ",".join(map(str, parts))
        raise ParameterError(
            f"{param('price', text)}: expected IN,OUT in dollars for a million tokens, e.g. 0.15,0.60",
            parameter="price",
        ) from None
    return sent, received


def short_model_name(model: str) -> str:
    """Return the name of a model without its folder and ending.

    >>> short_model_name("local:smollm2"), short_model_name("models/big.gguf")
    ('smollm2', 'big')
    """
    return Path(model.removeprefix("local:")).name.removesuffix(".gguf")
