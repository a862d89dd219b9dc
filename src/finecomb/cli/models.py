"""Commands for the models of providers: `models` and `prices`."""

from __future__ import annotations

from typing import Annotated

import typer

from finecomb.api.model_catalogue import list_models as fc_list_models
from finecomb.api.model_catalogue import prices as fc_prices
from finecomb.api.model_catalogue import test_model as fc_test_model
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
from finecomb.cli.shared import AsJson, app, print_table_or_json

models_app = typer.Typer(rich_markup_mode="markdown", no_args_is_help=True)
app.add_typer(models_app, name="models")


@models_app.callback()
def models() -> None:
    """List the models of a provider, or test one of them with a few cheap calls.

    Examples: finecomb models list anthropic · finecomb models test openai:NAME
    """


@models_app.command("list")
@derive_flags_from(fc_list_models)
def list_models(
    call: PublicFunctionCall,
    prefix: Annotated[
        str,
        typer.Argument(help="Provider, or the start of a model's name (default: list providers).", show_default=False),
    ] = "",
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb models list` · `finecomb models list --base-url http://localhost:11434/v1`"""
    result = call(prefix)
    print_table_or_json(result.rows(), as_json_, result.title, "No models.", result.notes)


@models_app.command("test")
@derive_flags_from(fc_test_model)
def test_model(
    model: Annotated[str, typer.Argument(help="Model, such as `anthropic:NAME`.", show_default=False)],
    call: PublicFunctionCall,
    as_json_: AsJson = False,
) -> None:
    """Example: `finecomb models test qwen3:8b --base-url http://localhost:11434/v1`"""
    result = call(model)
    print_table_or_json(result.rows(), as_json_, result.title, "No checks.", result.notes)


test_model.__test__ = False  # type: ignore[attr-defined]


@app.command()
@derive_flags_from(fc_prices)
def prices(call: PublicFunctionCall, as_json_: AsJson = False) -> None:
    """Examples: `finecomb prices --create` · `finecomb prices`"""
    result = call()
    print_table_or_json(result.rows(), as_json_, result.title, "No prices.", result.notes)
