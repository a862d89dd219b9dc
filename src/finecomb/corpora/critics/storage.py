"""Registry of critics, and fitted critics saved in a folder as JSON and arrays, without pickle."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from pydantic import TypeAdapter, ValidationError

from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.guarded_json import load_json
from finecomb.core.moved_modules import current_location
from finecomb.corpora.critics.base import Critic
from finecomb.engine.guarded_files import load_arrays
from finecomb.engine.user_code import import_user_code
from finecomb.plugins import Registry
from finecomb.version import __version__

CRITICS = Registry[type[Critic]](
    "critics",
    Critic,
    {
        "sections": "finecomb.corpora.critics.sections:Sections",
        "coreference": "finecomb.corpora.critics.coreference:Coreference",
        "topics": "finecomb.corpora.critics.topics:Topics",
        "languages": "finecomb.corpora.critics.languages:Languages",
        "own": "finecomb.corpora.critics.custom_critic:CustomCritic",
    },
    holds_classes=True,
)
"""Critic classes by name. Users name their own critic `module:Class`, or use `own` with a function."""


def critic_class(name: str) -> type[Critic]:
    """Return the critic class `name`, registered or `module:Class`."""
    kind = CRITICS[name] if name in CRITICS else import_attribute(name, name)
    if not (inspect.isclass(kind) and issubclass(kind, Critic)):
        raise ParameterError(
            f"{param('critic', name)} is not a critic; expected a subclass of finecomb.corpora.critics.Critic",
            parameter="critic",
        )
    return kind


def import_attribute(place: str, name: str) -> Any:
    """Import the attribute that `place` names as `module:attribute`, installed or in a path that the user allowed."""
    module, colon, attribute = place.partition(":")
    if not colon:
        raise FinecombError(f"unknown critic {name!r}{did_you_mean(name, [*CRITICS, 'module:Class'])}")
    return import_user_code(*current_location(module, attribute), "critic", name)


def fit_option_names(fit: Callable[..., Any]) -> list[str]:
    """Return the names of a critic's fit options, the parameters after the documents and the generator."""
    parameters = list(inspect.signature(fit).parameters)
    return parameters[parameters.index("rng") + 1 :]


def parse_fit_options(fit: Callable[..., Any], given: Mapping[str, object], name: str) -> dict[str, Any]:
    """Return options converted to the types that `fit` declares, e.g. from command-line strings."""
    options = fit_option_names(fit)
    hints = get_type_hints(fit)
    checked = {}
    for option, value in given.items():
        if option not in options:
            raise FinecombError(f"the {name} critic has no option {option!r}{did_you_mean(option, options)}")
        try:
            checked[option] = TypeAdapter(hints[option]).validate_python(value)
        except ValidationError as error:
            raise FinecombError(f"{option}={value}: {error.errors()[0]['msg'].lower()}") from None
    return checked


def save(critic: Critic, folder: Path) -> None:
    """Write a fitted critic as `critic.json` and `arrays.npz`."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {}
    state = _extract_arrays(critic.state(), "", arrays)
    head = {
        "critic": registered_name(critic),
        "version": __version__,
        "fitted_on": sorted(critic.fitted_on),
        "usual_surprises": list(critic.usual_surprises),
        "state": state,
    }
    (folder / "critic.json").write_text(json.dumps(head, ensure_ascii=False, indent=1), encoding="utf-8")
    np.savez_compressed(folder / "arrays.npz", **arrays)


def registered_name(critic: Critic) -> str:
    """Return the registered name of a critic's class, or `module:Class`."""
    kind = type(critic)
    name = getattr(kind, "name", "")
    is_registered = name in CRITICS and CRITICS[name] is kind
    return name if is_registered else f"{kind.__module__}:{kind.__qualname__}"


def required_user_code(critic: Critic) -> list[str]:
    """Return the names of user code that loading this critic requires."""
    name = registered_name(critic)
    return [*([] if name in CRITICS else [name]), *critic.user_code_in_state(critic.state())]


def load(folder: Path, code: Collection[str] = ()) -> Critic:
    """Load a critic written by `save`.

    A folder is data: nothing it names is imported, except built-in critics and those of plugins. A critic that needs
    your own code (a class, a function, a resolver, an encoder) is loaded only if you list that code in `code`, each
    time.
    """
    try:
        head = load_json((folder / "critic.json").read_text(encoding="utf-8"))
        name, state = str(head["critic"]), head["state"]
        _reject_unlisted_code([name] if name not in CRITICS else [], code, folder)
        kind = critic_class(name)
        _reject_unlisted_code(kind.user_code_in_state(state), code, folder)
        arrays = load_arrays(folder / "arrays.npz")
        critic = kind.from_state(_restore_arrays(state, arrays))
        object.__setattr__(
            critic, "fitted_on", frozenset(map(str, head.get("fitted_on", ())))
        )  # critics may be frozen dataclasses
        object.__setattr__(critic, "usual_surprises", tuple(map(float, head.get("usual_surprises", ()))))
        return critic
    except FinecombError:
        raise  # includes ParameterError, which is also a ValueError
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FinecombError(f"{folder}: cannot be read as a saved critic ({error}); fit and save it again") from None


def state_digest(critic: Critic) -> str:
    """Return a digest of a critic's saved form; critics with the same digest give the same scores."""
    arrays: dict[str, Any] = {}
    state = _extract_arrays(critic.state(), "", arrays)
    digest = hashlib.blake2b(json.dumps([registered_name(critic), state], sort_keys=True).encode(), digest_size=16)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.dtype}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def folder_digest(folder: Path) -> str:
    """Return a digest of the files of a saved critic, or an empty string if there are no files."""
    files = [folder / name for name in ("critic.json", "arrays.npz")]
    content = b"".join(file.read_bytes() for file in files if file.is_file())
    return hashlib.blake2b(content, digest_size=16).hexdigest() if content else ""


def _reject_unlisted_code(names: Iterable[str], allowed: Collection[str], folder: Path) -> None:
    """Reject a critic's folder if it names user code that the user has not listed as allowed."""
    for name in names:
        if name not in allowed:
            raise FinecombError(
                f"{folder}: the critic runs the code {name!r}, which needs your consent; if you trust it, pass "
                f"{param('code', name)}"
            )


def _extract_arrays(value: Any, path: str, arrays: dict[str, Any]) -> Any:
    """Return the value with each array replaced by a reference, and collect the arrays by path."""
    match value:
        case np.ndarray():
            arrays[path] = value
            return {"$array": path}
        case dict():
            return {key: _extract_arrays(item, f"{path}.{key}".lstrip("."), arrays) for key, item in value.items()}
        case list() | tuple():
            return [_extract_arrays(item, f"{path}.{index}".lstrip("."), arrays) for index, item in enumerate(value)]
    return value


def _restore_arrays(value: Any, arrays: Mapping[str, Any]) -> Any:
    match value:
        case {"$array": str(path)}:
            return arrays[path]
        case dict():
            return {key: _restore_arrays(item, arrays) for key, item in value.items()}
        case list():
            return [_restore_arrays(item, arrays) for item in value]
    return value
