"""Shipped protocols, one YAML file each, and those of plugins, loaded by name."""

from __future__ import annotations

import functools
from importlib import resources
from pathlib import Path

from finecomb.core.errors import ProtocolError, did_you_mean
from finecomb.core.protocol import Protocol
from finecomb.core.protocol_yaml import parse_protocol
from finecomb.plugins import Registry

_FOLDER = resources.files(__package__)


def _parse_shipped_file(name: str) -> Protocol:
    return parse_protocol((_FOLDER / name).read_text(encoding="utf-8"), name.removeprefix("earlier/"))


PROTOCOLS = Registry[Protocol](
    "protocols",
    Protocol,
    {name.removesuffix(".yaml"): name for name in sorted(file.name for file in _FOLDER.iterdir()) if ".yaml" in name},
    load=_parse_shipped_file,
)
"""Protocols by name, each in its current version."""


def names() -> tuple[str, ...]:
    """Return the names of the shipped protocols in alphabetical order, then those of plugins."""
    return tuple(PROTOCOLS)


@functools.cache
def load_shipped(name: str) -> Protocol:
    """Load a shipped protocol by name, e.g. `scarecrow`, or `scarecrow@1` for an earlier version."""
    bare, _, version = name.partition("@")
    if bare not in PROTOCOLS:
        raise ProtocolError(f"unknown protocol {name!r}{did_you_mean(bare, PROTOCOLS)}")
    earlier = _FOLDER / "earlier"
    if version and (earlier / f"{name}.yaml").is_file():  # studies may have started with it
        return _parse_shipped_file(f"earlier/{name}.yaml")
    protocol = PROTOCOLS[bare]
    if version in ("", protocol.version):
        return protocol
    files = sorted(file.name.removesuffix(".yaml") for file in earlier.iterdir())
    versions = [*(file.partition("@")[2] for file in files if file.startswith(f"{bare}@")), protocol.version]
    raise ProtocolError(f"protocol {bare} has no version {version}; use {' or '.join(versions)}")


def load(name: str) -> Protocol:
    """Load a shipped protocol by name, or a custom one by the path of its YAML file."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        try:
            return parse_protocol(path.read_text(encoding="utf-8-sig"), str(path))
        except OSError as error:
            raise ProtocolError(f"{path}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise ProtocolError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
    return load_shipped(name)
