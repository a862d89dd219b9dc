"""The protocols that come with Finecomb: one YAML file each, read by name."""

from __future__ import annotations

import functools
from importlib import resources
from pathlib import Path

from finecomb.core.errors import ProtocolError, did_you_mean
from finecomb.core.protocol import Protocol
from finecomb.core.protocol_text import parse_protocol


@functools.cache
def names() -> tuple[str, ...]:
    """The names of the shipped protocols, in alphabetical order."""
    files = resources.files(__package__).iterdir()
    return tuple(sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml")))


@functools.cache
def load_shipped(name: str) -> Protocol:
    """The shipped protocol called `name`, e.g. `scarecrow`, or `scarecrow@1` for an earlier version."""
    bare, _, version = name.partition("@")
    if bare not in names():
        raise ProtocolError(f"no protocol is called {name!r}{did_you_mean(bare, names())}")
    earlier = resources.files(__package__) / "earlier"
    if version and (earlier / f"{name}.yaml").is_file():  # studies may have begun with it
        return parse_protocol((earlier / f"{name}.yaml").read_text(encoding="utf-8"), f"{name}.yaml")
    text = (resources.files(__package__) / f"{bare}.yaml").read_text(encoding="utf-8")
    protocol = parse_protocol(text, f"{bare}.yaml")
    if version in ("", protocol.version):
        return protocol
    files = sorted(file.name.removesuffix(".yaml") for file in earlier.iterdir())
    versions = [*(file.partition("@")[2] for file in files if file.startswith(f"{bare}@")), protocol.version]
    raise ProtocolError(f"protocol {bare} comes in version {' or '.join(versions)}, not {version}")


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
    return load_shipped(name)
