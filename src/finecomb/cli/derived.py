"""Commands derived from public functions: flags, types, defaults and help come from a signature and its docstring.

    @app.command()
    @derive_flags_from(agree)
    def agree_command(study: StudyPath, call: PublicFunctionCall, from_: From = "", as_json_: AsJson = False) -> None:
        '''Examples: `finecomb agree demo-study`'''
        print_result(call(read(study, from_)), as_json_)

Parameters that the command declares itself (paths, `--from`, `--json`) are kept. Every other keyword of the public
function becomes a flag of the same name, whose help is the first sentence of the keyword's description.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from finecomb.api.parameters import COMMA_SEPARATED, REPEATED, Bounds, bounds_of, parameter_help
from finecomb.cli.options import is_given

SHORT_FLAGS = {"protocol": "-p", "measure": "-m", "annotator": "-a", "output": "-o", "table": "-t"}
"""Short forms of flags that many commands share."""
NOT_FLAGS = frozenset({"study", "progress"})
"""Keyword arguments that commands set on their own and that therefore have no flag."""


@dataclass(frozen=True, slots=True)
class PublicFunctionCall:
    """A public function with the keyword arguments that the user passed as flags."""

    function: Callable[..., Any]
    given: Mapping[str, Any]

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        """Call the function; `more` holds the keyword arguments that the command adds."""
        return self.function(*arguments, **{**self.given, **more})


def derive_flags_from(
    function: Callable[..., Any],
    *,
    skip: Collection[str] = (),
    flags: Mapping[str, tuple[str, ...]] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds one flag per keyword argument of `function` to a command.

    Keywords that the command declares itself or that `skip` names get no flag. `flags` has the spelling of flags that
    are not `--name`, for example with a short form. The command's parameter `call` receives a `PublicFunctionCall`.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        command_signature = inspect.signature(command, eval_str=True)
        fixed = [each for name, each in command_signature.parameters.items() if name not in ("call", "context")]
        hidden = {*NOT_FLAGS, *skip, *(parameter.name for parameter in fixed)}
        derived = flag_parameters(function, hidden, flags or {})

        def bind_call(context: typer.Context, arguments: Mapping[str, Any]) -> dict[str, Any]:
            """Return the command's own arguments, and `call`: the public function with the derived arguments."""
            own = {name: value for name, value in arguments.items() if name not in derived}
            given = {name: flag_value(derived[name], arguments[name]) for name in derived if is_given(context, name)}
            return own | {"call": PublicFunctionCall(function, given)}

        def run(context: typer.Context, **arguments: Any) -> None:
            if "context" in command_signature.parameters:
                arguments["context"] = context
            command(**bind_call(context, arguments))

        context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        declared = (context, *fixed, *(flag.parameter for flag in derived.values()))
        keywords = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in declared]
        run.__signature__ = command_signature.replace(parameters=keywords)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in keywords} | {"return": None}
        run.__name__ = command.__name__
        summary = inspect.cleandoc(function.__doc__ or "").partition("\n")[0]
        run.__doc__ = f"{summary}\n\n{inspect.cleandoc(command.__doc__ or '')}"
        run.__wrapped__ = command  # type: ignore[attr-defined]
        run.bind_call = bind_call  # type: ignore[attr-defined]
        return run

    return decorate


@dataclass(frozen=True, slots=True)
class DerivedFlag:
    """A flag derived from a keyword argument of a public function."""

    parameter: inspect.Parameter
    """The parameter in the form that Typer reads."""
    form: Literal["plain", "commas", "repeated"]


def flag_parameters(
    function: Callable[..., Any], hidden: Collection[str], spelling: Mapping[str, tuple[str, ...]]
) -> dict[str, DerivedFlag]:
    """Return the flags of a public function, by keyword."""
    hints, helps = typing.get_type_hints(function, include_extras=True), parameter_help(function)
    return {
        name: _derive_flag(name, hints[name], parameter.default, helps.get(name, ""), spelling.get(name))
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in hidden
    }


def _derive_flag(name: str, hint: Any, default: Any, help: str, spelling: tuple[str, ...] | None) -> DerivedFlag:
    checked = next((member for member in (hint, *get_args(hint)) if hasattr(member, "__metadata__")), hint)
    metadata = getattr(checked, "__metadata__", ())
    bounds = bounds_of(hint) or Bounds()
    kind: Any = get_args(checked)[0] if metadata else hint
    if checked is not hint:  # `PositiveInt | None`: Typer would misread the bounds as a type
        kind = kind | None
    form: Literal["plain", "commas", "repeated"] = "plain"
    if COMMA_SEPARATED in metadata:
        form, kind = "commas", str
        default = default if isinstance(default, str) else ",".join(map(str, default or ()))
    elif REPEATED in metadata:
        form, kind, default = "repeated", list[str] | None, None
    elif {Path, PathLike} & ({get_origin(member) or member for member in get_args(kind)} or {kind}):
        kind = Path | None if default is None else Path
    flag = f"--{name.strip('_').replace('_', '-')}"
    if spelling is None:
        both = f"{flag}/--no{flag[1:]}" if kind is bool and default else flag
        spelling = (both, *([SHORT_FLAGS[name]] if name in SHORT_FLAGS else ()))
    if default is inspect.Parameter.empty:
        default = ...
    option = typer.Option(
        *spelling, help=help, min=bounds.min, max=bounds.max, show_default=default not in (None, "", ..., False)
    )
    parameter = inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is ... else default,
        annotation=Annotated[kind, option],
    )
    return DerivedFlag(parameter, form)


def flag_value(flag: DerivedFlag, value: Any) -> Any:
    """Convert the value of a flag to the type that the public function takes."""
    if flag.form == "commas":
        return [word.strip() for word in value.split(",") if word.strip()]
    return list(value or ()) if flag.form == "repeated" else value
