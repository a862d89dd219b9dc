"""Settings of a language model from user options and study.yaml."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from finecomb.annotators.llm.chunks import parse_chunk
from finecomb.annotators.llm.providers import find_provider
from finecomb.core.errors import ParameterError, param
from finecomb.core.guarded_json import load_json
from finecomb.core.protocol_yaml import explain_validation_error
from finecomb.core.records import ModelSettings

_PROTECTED_FIELDS = ("model", "messages", "prompt", "input", "contents", "stream")


def build_model_settings(
    model: str, given: Mapping[str, Any], models: Mapping[str, ModelSettings] | None = None
) -> ModelSettings:
    """Return the model's settings from `models` in study.yaml, overridden by the given options."""
    base = (models or {}).get(model) or ModelSettings(model=model)
    values = dict(given)
    if "chunk" in values:
        values["chunk"] = parse_chunk(values["chunk"])
    if "price" in values:
        values["price"] = parse_price(values["price"])
    if "extra" in values:
        values["extra"] = parse_extra(values["extra"])
    base_url = values.get("base_url") or base.base_url
    if "?api-version=" in base_url:  # as copied from the Azure portal
        values["base_url"], _, version = base_url.partition("?api-version=")
        values.setdefault("api_version", version)
    try:
        return ModelSettings.model_validate({**base.model_dump(), **values})
    except ValidationError as error:
        problem = error.errors()[0]
        name = str(problem["loc"][0])
        raise ParameterError(
            f"{param(name)}: {explain_validation_error(problem, ModelSettings)}", parameter=name
        ) from None


def parse_extra(extra: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    """Parse further parameters from `NAME=VALUE` strings or a mapping; values that are not JSON stay strings.

    >>> parse_extra(["top_k=20", "service_tier=flex"])
    {'top_k': 20, 'service_tier': 'flex'}
    """
    values: dict[str, Any] = {}
    for item in extra.items() if isinstance(extra, Mapping) else (text.partition("=")[::2] for text in extra):
        name, value = item
        if not isinstance(extra, Mapping):
            if not name or not value:
                raise ParameterError(
                    f"{param('extra', name)}: expected NAME=VALUE, for example top_k=20", parameter="extra"
                )
            with contextlib.suppress(ValueError):
                value = load_json(value)
        if name.partition(".")[0] in _PROTECTED_FIELDS:
            raise ParameterError(f"{param('extra', name)}: {name} cannot be replaced", parameter="extra")
        values[name] = value
    return values


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
            f"{param('price', text)}: expected IN,OUT in dollars per million tokens, for example 0.15,0.60",
            parameter="price",
        ) from None
    return sent, received


def short_model_name(model: str) -> str:
    """Return a model's name without the prefix of its provider, its folder and its file extension.

    >>> short_model_name("local:smollm2"), short_model_name("models/big.gguf")
    ('smollm2', 'big')
    """
    return Path(find_provider(model).model_name(model)).name.removesuffix(".gguf")
