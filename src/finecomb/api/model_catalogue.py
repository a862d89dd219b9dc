"""Models of providers: what an endpoint offers, a test of one model, and the prices of tokens."""

from __future__ import annotations

from datetime import UTC, datetime
from os import PathLike
from pathlib import Path

from finecomb.annotators.llm.blocking import run_blocking
from finecomb.annotators.llm.endpoint import CallError, EndpointError, require_call_packages
from finecomb.annotators.llm.model_options import build_model_settings
from finecomb.annotators.llm.prices import (
    MAX_AGE_DAYS,
    TEMPLATE,
    find_rates,
    price_age_note,
    read_prices,
    user_price_file,
)
from finecomb.annotators.llm.providers import PROVIDERS, HttpProvider, find_provider
from finecomb.annotators.llm.providers.base import ModelFacts
from finecomb.api.models import MODEL_OPTIONS, Numbers
from finecomb.api.parameters import Count, PositiveInt, Values, changed_parameters, public
from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.records import ModelSettings
from finecomb.core.results import Table
from finecomb.formats.atomic_file import reject_existing_path, write_file_atomically


@public
def list_models(
    prefix: str = "",
    *,
    base_url: str = "",
    key_env: str = "",
    api_version: str = "",
    timeout: float | None = None,
) -> Table:
    """List the models that a provider offers, or the providers if none is given.

    Parameters
    ----------
    prefix : str
        Provider, such as `anthropic`, followed by the start of a model's name if you like, as in `openai:gpt`.
    base_url : str
        URL of an OpenAI-compatible endpoint, such as `http://localhost:11434/v1`.
    key_env : str
        Environment variable with the API key (default: the usual one of the provider).
    api_version : str
        Version of the API, for Azure, Anthropic and Gemini.
    timeout : float, optional
        Timeout per call in seconds (default: 600).

    Returns
    -------
    Table
        One row per model: model, context, max_output and note; or one row per provider.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.list_models().find(provider="anthropic").key
    'ANTHROPIC_API_KEY'
    """
    chosen = changed_parameters(list_models, locals())
    if not prefix and not base_url:
        rows = [
            {
                "provider": provider.name,
                "key": provider.key_env,
                "address": provider.base_url,
                "features": ", ".join(sorted(provider.capabilities - {"chat"})),
            }
            for provider in PROVIDERS.values()
        ]
        return Table(rows, title="Providers of language models")
    provider_name, colon, start = prefix.partition(":")
    known = provider_name in PROVIDERS and (bool(colon) or not base_url or not prefix)
    model = f"{provider_name}:{start or 'any'}" if known else prefix or "any"
    if not known and not base_url:
        raise ParameterError(
            f"unknown provider {provider_name!r}{did_you_mean(provider_name, list(PROVIDERS))}", parameter="prefix"
        )
    settings = build_model_settings(model, {name: chosen[name] for name in MODEL_OPTIONS if name in chosen})
    provider = _require_http_provider(settings)

    async def ask() -> list[ModelFacts]:
        endpoint = provider.open_endpoint(settings)
        try:
            return await endpoint.list_models()
        finally:
            await endpoint.close()

    start = start if known else prefix
    try:
        models = [facts for facts in run_blocking(ask()) if facts.id.startswith(start)]
    except CallError as error:
        raise EndpointError(str(error)) from None
    table = [
        {
            "model": f"{provider.name}:{facts.id}" if known else facts.id,
            "context": facts.context_tokens,
            "max_output": facts.max_output_tokens,
            "note": facts.note,
        }
        for facts in models
    ]
    return Table(table, title=f"Models of {provider.host(settings)}")


@public
def test_model(
    model: str,
    *,
    base_url: str = "",
    key_env: str = "",
    api_version: str = "",
    temperature: float | None = None,
    effort: str = "",
    thinking_tokens: Count | None = None,
    extra: Values = (),
    price: Numbers = (),
    timeout: float | None = None,
    attempts: PositiveInt | None = None,
) -> Table:
    """Test a model with a few calls for about a cent: parameters, schema, context, determinism, logprobs and price.

    Parameters
    ----------
    model : str
        Model, such as `anthropic:NAME`, or its name at `base_url`.
    base_url : str
        URL of an OpenAI-compatible endpoint, such as `http://localhost:11434/v1`.
    key_env : str
        Environment variable with the API key (default: the usual one of the provider).
    api_version : str
        Version of the API, for Azure, Anthropic and Gemini.
    temperature : float, optional
        Sampling temperature to try (default: 0).
    effort : str
        Reasoning effort to try, such as `low`.
    thinking_tokens : int, optional
        Maximum number of reasoning tokens to try.
    extra : str or sequence of str
        Further parameter of requests as `NAME=VALUE`; can be repeated.
    price : str or two numbers
        Prices as `IN,OUT`, in US dollars per million input and output tokens.
    timeout : float, optional
        Timeout per call in seconds (default: 600).
    attempts : int, optional
        Maximum attempts per call (default: 6).

    Returns
    -------
    Table
        One row per check: check, result and detail.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.test_model("local:smollm2")
    Traceback (most recent call last):
    finecomb.core.errors.ParameterError: model=local:smollm2: only models that are reached over HTTP can be tested
    """
    chosen = changed_parameters(test_model, locals())
    settings = build_model_settings(model, {name: chosen[name] for name in MODEL_OPTIONS if name in chosen})
    provider = _require_http_provider(settings)
    settings = with_file_rates(settings, None)
    from finecomb.annotators.llm.model_probe import ModelProbe

    async def ask() -> ModelProbe:
        endpoint = provider.open_endpoint(settings)
        try:
            probe = ModelProbe(endpoint, settings)
            await probe.run()
            return probe
        finally:
            await endpoint.close()

    try:
        probe = run_blocking(ask())
    except CallError as error:
        raise EndpointError(str(error)) from None
    cost = f", ${probe.cost:.4f}" if probe.price.is_known or probe.cost else ", price unknown"
    return Table(probe.rows, title=f"Test of {model}", notes=[f"{probe.calls} calls made{cost}"])


test_model.__test__ = False  # type: ignore[attr-defined]


@public
def prices(*, file: str | PathLike[str] | None = None, create: bool = False) -> Table:
    """List the prices of models in a price file, which you edit; no prices are shipped.

    Parameters
    ----------
    file : path, optional
        Price file (default: `finecomb/prices.yaml` in your folder for settings).
        The file `prices.yaml` in a study's folder takes precedence for that study.
    create : bool, default False
        Write a price file without figures, ready to be edited.

    Returns
    -------
    Table
        One row per entry: host, model, prices in US dollars per million tokens, date and source.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.prices(file="no-such-prices.yaml")
    Traceback (most recent call last):
    finecomb.core.errors.FinecombError: no-such-prices.yaml does not exist; create=True writes a file to edit
    """
    path = Path(file) if file else user_price_file()
    if create:
        reject_existing_path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file_atomically(path, TEMPLATE)
    if not path.is_file():
        raise FinecombError(f"{path} does not exist; {param('create', True)} writes a file to edit")
    today = datetime.now(UTC).date()
    entries = read_prices(path)
    rows = [
        {
            "host": entry.host,
            "model": entry.model,
            "input": float(entry.input),
            "output": float(entry.output),
            "cache_read": None if entry.cache_read is None else float(entry.cache_read),
            "cache_write": None if entry.cache_write is None else float(entry.cache_write),
            "batch": None if entry.batch is None else float(entry.batch),
            "checked": entry.checked.isoformat() if entry.checked else "",
            "source": entry.source,
        }
        for entry in entries
    ]
    notes = [f"file: {path}", *filter(None, (price_age_note(entry, today) for entry in entries))]
    if not rows:
        notes.append(f"the file has no prices yet; copy them from the provider's page (valid for {MAX_AGE_DAYS} days)")
    return Table(rows, title="Prices per million tokens", notes=notes)


def _require_http_provider(settings: ModelSettings) -> HttpProvider:
    """Return the provider of a model, or raise an error if it is not reached over HTTP."""
    provider = find_provider(settings.model)
    if not isinstance(provider, HttpProvider):
        raise ParameterError(
            f"{param('model', settings.model)}: only models that are reached over HTTP can be tested",
            parameter="model",
        )
    require_call_packages()
    provider.host(settings)
    return provider


def with_file_rates(settings: ModelSettings, folder: Path | None) -> ModelSettings:
    """Return the settings with the prices of the model from the study's or the user's price file."""
    provider = find_provider(settings.model)
    if settings.price or not isinstance(provider, HttpProvider):
        return settings
    files = [*([folder / "prices.yaml"] if folder else []), user_price_file()]
    today = datetime.now(UTC).date()
    rates = find_rates(provider.host(settings), provider.model_name(settings.model), files, today)
    return settings.model_copy(update={"rates": rates})
