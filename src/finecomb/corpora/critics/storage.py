"""Which critics there are, and fitted critics in a folder: JSON and arrays, never pickle."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import sys
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from pydantic import TypeAdapter, ValidationError

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.moved_modules import current_location
from finecomb.corpora.critics.base import Critic
from finecomb.version import __version__

CRITICS: dict[str, str] = {
    "sections": "finecomb.corpora.critics.sections:Sections",
    "coreference": "finecomb.corpora.critics.coreference:Coreference",
    "topics": "finecomb.corpora.critics.topics:Topics",
    "languages": "finecomb.corpora.critics.languages:Languages",
    "own": "finecomb.corpora.critics.custom_critic:CustomCritic",
}
"""Shipped critics by name; a user's own is named `module:Class` in the same way, or is `own` with a function."""


def critic_class(name: str) -> type[Critic]:
    """The critic called `name`, one of the shipped ones or `module:Class`."""
    kind = import_attribute(CRITICS.get(name, name), name)
    if not (inspect.isclass(kind) and issubclass(kind, Critic)):
        raise FinecombError(f"--critic {name}: is no critic; a critic is a subclass of finecomb.corpora.critics.Critic")
    return kind


def import_attribute(place: str, name: str) -> Any:
    """What `module:attribute` names, looked for in the current folder too."""
    module, colon, attribute = place.partition(":")
    if not colon:
        raise FinecombError(
            f"no critic is called {name!r}{did_you_mean(name, CRITICS)}; your own is named module:Class"
        )
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        current_module, current_name = current_location(module, attribute)
        return getattr(importlib.import_module(current_module), current_name)
    except ModuleNotFoundError as error:
        raise FinecombError(f"--critic {name}: there is no module {error.name!r} here or installed") from None
    except AttributeError:
        raise FinecombError(f"--critic {name}: {module} has nothing called {attribute!r}") from None


def option_names(fit: Callable[..., Any]) -> list[str]:
    """Names of the options that a critic is fitted with: what follows the documents and the random numbers."""
    parameters = list(inspect.signature(fit).parameters)
    return parameters[parameters.index("rng") + 1 :]


def parse_fit_options(fit: Callable[..., Any], given: Mapping[str, object], name: str) -> dict[str, Any]:
    """Options by name as `fit` wants them, text from the command line turned into its types."""
    options = option_names(fit)
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
    """The name of a critic's class among the registered ones, or `module:Class`."""
    kind = type(critic)
    place = f"{kind.__module__}:{kind.__qualname__}"
    return {registered: name for name, registered in CRITICS.items()}.get(place, place)


def required_user_code(critic: Critic) -> list[str]:
    """Names of the user's code without which a saved critic is not loaded again."""
    name = registered_name(critic)
    return [*([] if name in CRITICS else [name]), *critic.user_code_in_state(critic.state())]


def load(folder: Path, code: Collection[str] = ()) -> Critic:
    """The critic that `save` wrote.

    A folder is data, and nothing it names is imported: only registered critics are made from it. A critic that needs
    your own code (a class, a function, a resolver, an encoder) is made only if you name that code in `code`, each time.
    """
    try:
        head = json.loads((folder / "critic.json").read_text(encoding="utf-8"))
        name, state = str(head["critic"]), head["state"]
        _reject_unlisted_code([name] if name not in CRITICS else [], code, folder)
        kind = critic_class(name)
        _reject_unlisted_code(kind.user_code_in_state(state), code, folder)
        with np.load(folder / "arrays.npz", allow_pickle=False) as stored:
            arrays = dict(stored)
        critic = kind.from_state(_restore_arrays(state, arrays))
        object.__setattr__(critic, "fitted_on", frozenset(map(str, head.get("fitted_on", ()))))  # critics may be frozen
        object.__setattr__(critic, "usual_surprises", tuple(map(float, head.get("usual_surprises", ()))))
        return critic
    except (OSError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise FinecombError(f"{folder}: holds no fitted critic that can be read ({error}); fit it again") from None


def state_digest(critic: Critic) -> str:
    """Of all that a critic would be stored as: two critics that have it in common say the same."""
    arrays: dict[str, Any] = {}
    state = _extract_arrays(critic.state(), "", arrays)
    digest = hashlib.blake2b(json.dumps([registered_name(critic), state], sort_keys=True).encode(), digest_size=16)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.dtype}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def folder_digest(folder: Path) -> str:
    """Of the files of a saved critic; empty where there are none."""
    files = [folder / name for name in ("critic.json", "arrays.npz")]
    content = b"".join(file.read_bytes() for file in files if file.is_file())
    return hashlib.blake2b(content, digest_size=16).hexdigest() if content else ""


def _reject_unlisted_code(names: Iterable[str], allowed: Collection[str], folder: Path) -> None:
    """Refuse a folder that names code which the user did not name too."""
    for name in names:
        if name not in allowed:
            raise FinecombError(
                f"{folder}: names {name!r} as its code, and a folder's word is not enough to run it; if that is code "
                f"of yours, say --code {name}"
            )


def _extract_arrays(value: Any, path: str, arrays: dict[str, Any]) -> Any:
    """The same with every array set aside under its path and a note of it in its place."""
    match value:
        case np.ndarray():
            arrays[path] = value
            return {"$array": path}
        case dict():
            return {key: _extract_arrays(item, f"{path}.{key}".lstrip("."), arrays) for key, item in value.items()}
        case list() | tuple():
            return [_extract_arrays(item, f"{path}.{at}".lstrip("."), arrays) for at, item in enumerate(value)]
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
