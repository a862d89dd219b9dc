"""How a language model is asked, on the command line: for every command that asks one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from finecomb.annotators.llm.model_options import build_model_settings
from finecomb.core.options import OptionValues, option, option_specs
from finecomb.core.records import ModelSettings
from finecomb.core.study import Study


@dataclass(frozen=True)
class ModelOptions:
    """How a model is asked; what is not given comes from `models` in study.yaml, else from the defaults."""

    base_url: str = option("", "An OpenAI-compatible endpoint, e.g. http://localhost:11434/v1.")
    key_env: str = option("", "Environment variable with the endpoint's key; the key itself is written nowhere.")
    samples: int = option(1, "Ask each text so often; each sample is an annotator of its own.", minimum=1)
    temperature: float | None = option(None, "Sent along when given.")
    max_tokens: int = option(2048, "Most tokens of a reply.", minimum=1)
    shots: int = option(0, "Gold texts shown as examples; never the text that is judged.", minimum=0)
    price: str = option("", "IN,OUT: dollars for a million tokens sent and received.")
    budget: float | None = option(None, "Make no call that could cost more than is left of so many dollars.")
    concurrency: int = option(8, "Most calls at a time.", minimum=1)
    requests_per_minute: float | None = option(None, "Most calls a minute.")
    tokens_per_minute: float | None = option(None, "Most tokens sent a minute, as estimated.")
    timeout: float = option(120.0, "Seconds for one call.")
    attempts: int = option(6, "How often a call is tried.", minimum=1)
    context_tokens: int | None = option(None, "Tokens that fit into the model; longer texts are refused beforehand.")
    by_segment: bool = option(False, "Ask part by part.")
    seed: int = option(0, "For shots; also sent to the endpoint.", minimum=0)


def model_settings(study: Study, model: str, values: OptionValues) -> ModelSettings:
    """What study.yaml says of the model, with what was given on the command line on top."""
    given: dict[str, Any] = {name: value for name, value in values.given.items() if name in option_specs(ModelOptions)}
    return build_model_settings(model, given, study.settings.models)
