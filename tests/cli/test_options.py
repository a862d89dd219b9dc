from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer
from typer.testing import CliRunner

from finecomb.cli.options import with_options
from finecomb.core.errors import FinecombError
from finecomb.core.options import OptionValues, option_field


@dataclass(frozen=True)
class ToyOptions:
    """One of each kind."""

    size: int = option_field(3, help="How big.", minimum=1)
    colour: Literal["red", "blue"] = option_field("red", help="Which colour.")
    sizes: tuple[int, ...] = option_field((1, 2), help="Several.", commas=True)
    names: tuple[str, ...] = option_field((), "--name", "-n", help="Whose.")
    loud: bool = option_field(False, help="Loudly.")
    target: float | None = option_field(None, help="A value.")


def made() -> typer.Typer:
    app = typer.Typer()

    @app.command()
    @with_options([ToyOptions])
    def show(word: Annotated[str, typer.Argument()], values: OptionValues) -> None:
        """Show a toy."""
        typer.echo(f"{word} {dict(values.given)} {values.build_options(ToyOptions)}")

    return app


def shown(*words: str) -> str:
    result = CliRunner().invoke(made(), list(words))
    if isinstance(result.exception, FinecombError):
        return str(result.exception)
    return result.output


def test_only_what_was_given_is_given() -> None:
    assert shown("toy").startswith(f"toy {{}} {ToyOptions()}")
    assert "{'size': 3}" in shown("toy", "--size", "3")


def test_every_kind_of_value_arrives_as_the_dataclass_has_it() -> None:
    words = ["toy", "--colour", "blue", "--sizes", "4, 5", "-n", "a", "--name", "b", "--loud", "--target", "0.5"]
    assert str(ToyOptions(3, "blue", (4, 5), ("a", "b"), True, 0.5)) in shown(*words)


def test_slips_are_refused() -> None:
    assert "is not a comma-separated list of whole numbers" in shown("toy", "--sizes", "4,x")
    assert "Invalid value" in shown("toy", "--colour", "green")
    assert "Invalid value" in shown("toy", "--size", "0")


def test_help_comes_from_the_dataclass() -> None:
    output = shown("--help")
    assert "How big." in output
    assert "Whose." in output
