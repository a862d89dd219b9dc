"""Commands derived from public functions: flags, types, defaults and help come from a signature and its docstring.

    @app.command()
    @from_api(agree)
    def agree_command(study: StudyPath, call: ApiCall, from_: From = "", as_json_: AsJson = False) -> None:
        '''Examples: `finecomb agree demo-study`'''
        print_result(call(read(study, from_)), as_json_)

The parameters of the command itself (paths, `--from`, `--json`) stay as they are written. Every other keyword of the
public function becomes a flag of the same name, with the first sentence of its description as help.
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

from finecomb.api.parameters import COMMA_SEPARATED, REPEATED, Bounds, parameter_help
from finecomb.cli.options import is_given

SHORT_FLAGS = {"protocol": "-p", "measure": "-m", "annotator": "-a", "output": "-o", "table": "-t"}
"""Short forms of flags that many commands have."""
NOT_FLAGS = frozenset({"study", "progress"})
"""Keywords that a command passes itself."""


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A public function with the keywords that the user gave as flags."""

    function: Callable[..., Any]
    given: Mapping[str, Any]

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        """Call the function; `more` are keywords that the command passes itself."""
        return self.function(*arguments, **{**self.given, **more})


def from_api(
    function: Callable[..., Any],
    *,
    skip: Collection[str] = (),
    flags: Mapping[str, tuple[str, ...]] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command a flag for every keyword of `function` that it does not have itself and that `skip` does not name.

    `flags` has the spelling of a flag where it is not `--name`, e.g. a second, short one. The parameter `call` of the
    command receives an `ApiCall`.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        command_signature = inspect.signature(command, eval_str=True)
        fixed = [
            parameter for name, parameter in command_signature.parameters.items() if name not in ("call", "context")
        ]
        hidden = {*NOT_FLAGS, *skip, *(parameter.name for parameter in fixed)}
        derived = flag_parameters(function, hidden, flags or {})

        def run(context: typer.Context, **arguments: Any) -> None:
            values = {name: arguments.pop(name) for name in derived}
            given = {name: flag_value(derived[name], values[name]) for name in values if is_given(context, name)}
            if "context" in command_signature.parameters:
                arguments["context"] = context
            command(**arguments, call=ApiCall(function, given))

        context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        parameters = [context, *fixed, *(flag.parameter for flag in derived.values())]
        keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
        run.__signature__ = command_signature.replace(parameters=keywords)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in keywords} | {"return": None}
        run.__name__ = command.__name__
        run.__doc__ = f"{summary_of(function)}\n\n{inspect.cleandoc(command.__doc__ or '')}"
        run.__wrapped__ = command  # type: ignore[attr-defined]
        return run

    return decorate


def summary_of(function: Callable[..., Any]) -> str:
    """Return the first line of a docstring."""
    return inspect.cleandoc(function.__doc__ or "").partition("\n")[0]


@dataclass(frozen=True, slots=True)
class DerivedFlag:
    """A flag made from a keyword of a public function."""

    parameter: inspect.Parameter
    """As Typer reads it."""
    form: Literal["plain", "commas", "repeated"]


def flag_parameters(
    function: Callable[..., Any], hidden: Collection[str], spelling: Mapping[str, tuple[str, ...]]
) -> dict[str, DerivedFlag]:
    """Return the flags of a public function by name."""
    hints = typing.get_type_hints(function, include_extras=True)
    helps = parameter_help(function)
    return {
        name: _derive_flag(name, hints[name], parameter.default, helps.get(name, ""), spelling.get(name))
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in hidden
    }


def _derive_flag(name: str, hint: Any, default: Any, help: str, spelling: tuple[str, ...] | None) -> DerivedFlag:
    checked = next((member for member in (hint, *get_args(hint)) if hasattr(member, "__metadata__")), hint)
    metadata = getattr(checked, "__metadata__", ())
    bounds = next((item for item in metadata if isinstance(item, Bounds)), Bounds())
    kind: Any = get_args(checked)[0] if metadata else hint
    if checked is not hint:  # `PositiveInt | None`: Typer must not see the bounds as a type
        kind = kind | None
    form: Literal["plain", "commas", "repeated"] = "plain"
    if COMMA_SEPARATED in metadata:
        form, kind = "commas", str
        default = default if isinstance(default, str) else ",".join(map(str, default or ()))
    elif REPEATED in metadata:
        form, kind, default = "repeated", list[str] | None, None
    elif _is_path(kind):
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


def _is_path(kind: Any) -> bool:
    """Return whether a type is a path that may also be written as a string."""
    members = {get_origin(member) or member for member in get_args(kind)} or {kind}
    return bool(members & {Path, PathLike})


def flag_value(flag: DerivedFlag, value: Any) -> Any:
    """Return the value of a flag as the public function takes it."""
    if flag.form == "commas":
        return [word.strip() for word in value.split(",") if word.strip()]
    return list(value or ()) if flag.form == "repeated" else value
