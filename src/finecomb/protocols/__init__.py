"""The protocols that come with Finecomb: one YAML file each, read by name."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from finecomb.core.errors import ProtocolError, did_you_mean
from finecomb.core.protocol import Protocol
from finecomb.core.protocol_text import parse_protocol

EARLIER: Mapping[str, Mapping[str, Any]] = {
    "accuracy@1": {"marks_on": None},
    "mqm@1": {"marks_on": None},
    "scarecrow@1": {"marks_on": None},
    "snac@1": {"marks_on": None},
}
"""Earlier versions of shipped protocols, which studies may have begun with: what they say otherwise than today's."""


@functools.cache
def names() -> tuple[str, ...]:
    """The names of the shipped protocols, in alphabetical order."""
    files = resources.files(__package__).iterdir()
    return tuple(sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml")))


@functools.cache
def shipped(name: str) -> Protocol:
    """The shipped protocol called `name`, e.g. `scarecrow` or `scarecrow@1`."""
    bare, _, version = name.partition("@")
    if bare not in names():
        raise ProtocolError(f"no protocol is called {name!r}{did_you_mean(bare, names())}")
    text = (resources.files(__package__) / f"{bare}.yaml").read_text(encoding="utf-8")
    protocol = parse_protocol(text, f"{bare}.yaml")
    if version in ("", protocol.version):
        return protocol
    if name not in EARLIER:
        versions = [*(id.partition("@")[2] for id in EARLIER if id.startswith(f"{bare}@")), protocol.version]
        raise ProtocolError(f"protocol {bare} comes in version {' or '.join(versions)}, not {version}")
    return Protocol(**{**dict(protocol), "version": version, **EARLIER[name]})


def load(name: str) -> Protocol:
    """A shipped protocol by name, or one of your own by the path of its YAML file."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        try:
            return parse_protocol(path.read_text(encoding="utf-8-sig"), str(path))
        except OSError as error:
            raise ProtocolError(f"{path}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise ProtocolError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
    return shipped(name)
