"""Parameters of public functions: types that say how a value is checked and written, and the text that describes them.

The signature and the Parameters section of a public function are the one source of its parameters. `public` checks the
values of a call, the command line derives its flags from the same types, and tests compare the rest.
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, get_args, get_origin

from finecomb.core.errors import ParameterError, did_you_mean, param

COMMA_SEPARATED, REPEATED = "comma-separated", "repeated"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the greatest value of a number; None where there is no bound."""

    min: float | None = None
    max: float | None = None


Names = Annotated[str | Sequence[str], COMMA_SEPARATED]
"""One name or several; one string may hold several with commas between them."""
Values = Annotated[str | Sequence[str], REPEATED]
"""One value or several; a string is one value, whatever it contains."""
Count = Annotated[int, Bounds(0)]
"""A whole number from 0."""
PositiveInt = Annotated[int, Bounds(1)]
Share = Annotated[float, Bounds(0, 1)]
"""A number from 0 to 1."""
NonNegative = Annotated[float, Bounds(0)]

P = ParamSpec("P")
R = TypeVar("R")


def public(function: Callable[P, R]) -> Callable[P, R]:
    """Check the values of a public function against its types: choices of a Literal, and bounds of numbers.

    A whole number becomes a float where the type is float.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        checks = _checks_of(function)
        try:
            bound = signature.bind(*arguments, **keywords)
        except TypeError:
            _refuse_unknown_keywords(function.__name__, keywords, list(signature.parameters))
            raise
        for name, value in bound.arguments.items():
            if name in checks and value is not None:
                checks[name](name, value)
        for name in _float_parameters(function) & bound.arguments.keys():
            if type(bound.arguments[name]) is int:  # 1 and 1.0 have one signature, as on the command line
                bound.arguments[name] = float(bound.arguments[name])
        return function(*bound.args, **bound.kwargs)

    return call


def _refuse_unknown_keywords(function: str, keywords: Mapping[str, Any], names: Sequence[str]) -> None:
    for name in keywords:
        if name not in names:
            raise ParameterError(f"{function}() has no parameter {name!r}{did_you_mean(name, names)}", parameter=name)


@functools.cache
def _checks_of(function: Callable[..., Any]) -> dict[str, Callable[[str, Any], None]]:
    """Return the checks of a function's parameters by name; made on the first call, since evaluating types is slow."""
    hints = typing.get_type_hints(function, include_extras=True)
    return {name: check for name, hint in hints.items() if name != "return" and (check := _check_of(hint))}


@functools.cache
def _float_parameters(function: Callable[..., Any]) -> frozenset[str]:
    """Return the parameters that are a float, or a float or None."""
    hints = typing.get_type_hints(function)
    members_by_name = {name: set(get_args(hint) or [hint]) for name, hint in hints.items()}
    return frozenset(name for name, members in members_by_name.items() if members - {type(None)} == {float})


def _check_of(hint: Any) -> Callable[[str, Any], None] | None:
    for member in (hint, *get_args(hint)):
        bounds = [item for item in getattr(member, "__metadata__", ()) if isinstance(item, Bounds)]
        if bounds:
            return functools.partial(_check_bounds, bounds[0])
    choices = literal_choices(hint)
    return functools.partial(_check_choice, choices) if choices else None


def literal_choices(hint: Any) -> tuple[Any, ...]:
    """Return the values that a Literal allows, also where None is allowed beside them; empty for other types."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    members = [member for member in get_args(hint) if member is not type(None)]
    return literal_choices(members[0]) if len(members) == 1 and get_origin(hint) is not tuple else ()


def _check_choice(choices: tuple[Any, ...], name: str, value: Any) -> None:
    if isinstance(value, str) and value not in choices:
        listed = ", ".join(map(str, choices))
        raise ParameterError(f"{param(name)} must be one of {listed}, found {value!r}", parameter=name)


def _check_bounds(bounds: Bounds, name: str, value: Any) -> None:
    if bounds.min is not None and value < bounds.min:
        raise ParameterError(f"{param(name)} must be at least {bounds.min:g}, found {value:g}", parameter=name)
    if bounds.max is not None and value > bounds.max:
        raise ParameterError(f"{param(name)} must be at most {bounds.max:g}, found {value:g}", parameter=name)


def changed_parameters(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of `values` (usually `locals()`) that differ from the default of the parameter of that name.

    An option that does not apply is refused only when it is given: its default changes nothing.
    """
    parameters = inspect.signature(function).parameters
    return {
        name: value
        for name, value in values.items()
        if name in parameters and parameters[name].default is not inspect.Parameter.empty
        and value != parameters[name].default
    }  # fmt: skip


# --- docstrings ------------------------------------------------------------------------------------------------------

_PARAMETER_LINE = re.compile(r"^(\*{0,2}\w+(?:, \w+)*) : ")


def parameter_descriptions(function: Callable[..., Any]) -> dict[str, str]:
    """Return the description of each parameter in the Parameters section of a NumPy-style docstring.

    >>> def f(draws: int = 0) -> None:
    ...     '''Summary.
    ...
    ...     Parameters
    ...     ----------
    ...     draws : int, default 0
    ...         Resamples per interval.
    ...         None are drawn for 0.
    ...     '''
    >>> parameter_descriptions(f)
    {'draws': 'Resamples per interval. None are drawn for 0.'}
    """
    lines = inspect.cleandoc(function.__doc__ or "").splitlines()
    if "Parameters" not in lines:
        return {}
    start = lines.index("Parameters") + 2
    descriptions: dict[str, list[str]] = {}
    names: list[str] = []
    for line, following in zip(lines[start:], [*lines[start + 1 :], ""], strict=False):
        if following.startswith("---"):
            break
        if found := _PARAMETER_LINE.match(line):
            names = found[1].split(", ")
            descriptions |= {name: [] for name in names}
        elif line.strip():
            for name in names:
                descriptions[name].append(line.strip())
    return {name: " ".join(words) for name, words in descriptions.items()}


def parameter_help(function: Callable[..., Any]) -> dict[str, str]:
    """Return the first sentence of each parameter's description, as the command line shows it."""
    return {
        name: re.split(r"(?<=[.!?])\s+(?=[A-Z`])", text, maxsplit=1)[0]
        for name, text in parameter_descriptions(function).items()
    }
