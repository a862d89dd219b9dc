"""Command-line flags from options dataclasses (see `finecomb.core.options`).

The flags that the user passed reach the command as `OptionValues`:

    @app.command()
    @with_options([CoverageOptions, CountOptions])
    def measure(study: StudyPath, values: OptionValues) -> None: ...
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable
from dataclasses import make_dataclass
from typing import Annotated, Any

import typer

from finecomb.core.errors import FinecombError
from finecomb.core.options import OptionSpec, OptionValues, merge_option_specs, option_field


def with_options(choices: Iterable[type]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds one flag per option of `choices` to a command, and fills its parameter `values`."""
    specs = merge_option_specs(choices)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(context: typer.Context, **arguments: Any) -> None:
            flags = {name: arguments.pop(name) for name in specs}
            given = {name: parse_value(specs[name], flags[name]) for name in flags if is_given(context, name)}
            if takes_context:
                arguments["context"] = context
            command(**arguments, values=OptionValues(given))

        signature = inspect.signature(command, eval_str=True)
        takes_context = "context" in signature.parameters
        fixed = [parameter for name, parameter in signature.parameters.items() if name not in ("values", "context")]
        parameters = [_CONTEXT_PARAMETER, *fixed, *(flag_parameter(spec) for spec in specs.values())]
        keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
        run.__signature__ = signature.replace(parameters=keywords)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in keywords} | {"return": None}
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__wrapped__ = command  # type: ignore[attr-defined]
        return run

    return decorate


def further_options(function: Callable[..., Any], choices: Iterable[type]) -> type:
    """Return a dataclass of those options of `choices` that are not keyword arguments of a public function.

    They belong to detectors of other packages, so that adding such a detector requires no change here.
    """
    keywords = {f"--{name.replace('_', '-')}" for name in inspect.signature(function).parameters}
    specs = [spec for spec in merge_option_specs(choices).values() if spec.flag not in keywords]
    fields = [
        (
            spec.name,
            spec.kind,
            option_field(spec.default, *spec.flags, help=spec.help, minimum=spec.minimum, commas=spec.commas),
        )
        for spec in specs
    ]
    return make_dataclass("FurtherOptions", fields, frozen=True)


_CONTEXT_PARAMETER = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)


def is_given(context: typer.Context, name: str) -> bool:
    """Return True if the user passed this parameter instead of leaving it at its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")


def flag_parameter(spec: OptionSpec) -> inspect.Parameter:
    """Return the command parameter for an option, in the form that Typer reads."""
    many = typing.get_origin(spec.kind) is tuple
    kind: Any = spec.kind
    default: Any = spec.default
    if many and spec.commas:
        kind, default = str, ",".join(map(str, spec.default))
    elif many:
        kind, default = list[str] | None, list(spec.default) or None
    flags = spec.flags or (
        (f"{spec.flag}/--no{spec.flag[1:]}",) if spec.kind is bool and spec.default else (spec.flag,)
    )
    has_default = default not in (None, "")
    flag = typer.Option(*flags, help=spec.help, min=spec.minimum, show_default=has_default)
    return inspect.Parameter(
        spec.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, flag]
    )


def parse_value(spec: OptionSpec, value: Any) -> Any:
    """Convert the value of a flag to the type of the option."""
    if typing.get_origin(spec.kind) is not tuple:
        return value
    if not spec.commas:
        return tuple(value or ())
    words = [word.strip() for word in value.split(",") if word.strip()]
    return (
        tuple(_parse_whole_number(word, value) for word in words) if int in typing.get_args(spec.kind) else tuple(words)
    )


def _parse_whole_number(word: str, text: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise FinecombError(
            f"{text!r} is not a comma-separated list of whole numbers; use, for example, 25,50,100"
        ) from None
