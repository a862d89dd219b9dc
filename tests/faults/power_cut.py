"""Power cuts: what a process wrote to SQLite is logged, and replayed up to a cut that drops unsynced writes.

`python -m tests.faults.power_cut DATABASE ACKNOWLEDGEMENTS COUNT` saves annotations under the preloaded library.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).with_name("power_cut.c")
_HEAD = struct.Struct("<4q")
_SECTOR = 512


def build_library(folder: Path) -> Path:
    """Compile the library that logs writes."""
    target = folder / "power_cut.so"
    command = [shutil.which("gcc") or "cc", "-shared", "-fPIC", "-O1", "-o", str(target), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return target


@dataclass
class LoggedFile:
    """Content of a file in the cache of the operating system, and what has reached the disk."""

    cached: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    unsynced: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Writes since the last sync, as offset and data; None as data truncates the file."""

    def apply(self, offset: int, data: bytes | None) -> None:
        _change(self.cached, offset, data)
        self.unsynced.append((offset, data))

    def sync(self) -> None:
        self.durable, self.unsynced = bytes(self.cached), []

    def after_power_cut(self, rng: random.Random) -> bytes:
        """Return what a disk may hold: all synced data, and any sectors of later writes."""
        content = bytearray(self.durable)
        for offset, data in self.unsynced:
            if data is None:
                if rng.random() < 0.5:
                    _change(content, offset, None)
                continue
            for start in range(0, len(data), _SECTOR):
                if rng.random() < 0.5:
                    _change(content, offset + start, data[start : start + _SECTOR])
        return bytes(content)


def _change(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        content.extend(bytes(offset - len(content)))
        return
    content.extend(bytes(max(0, offset + len(data) - len(content))))
    content[offset : offset + len(data)] = data


def iter_log(log: Path) -> Iterator[tuple[int, str, str, int, bytes]]:
    """Yield the position after each record, and its operation, file name, offset and data."""
    content, at = log.read_bytes(), 0
    while at + _HEAD.size <= len(content):
        operation, name_length, offset, length = _HEAD.unpack_from(content, at)
        start = at + _HEAD.size
        name = content[start : start + name_length].decode()
        start += name_length
        data = content[start : start + length]
        at = start + length
        yield at, chr(operation), Path(name).name, offset, data


def replay(log: Path, cut: int, folder: Path, rng: random.Random) -> None:
    """Write the files as a power cut at a position of the log may leave them."""
    files: dict[str, LoggedFile] = {}
    for position, operation, name, offset, data in iter_log(log):
        if position > cut:
            break
        if operation == "u":
            files.pop(name, None)
            continue
        file = files.setdefault(name, LoggedFile())
        if operation == "s":
            file.sync()
        else:
            file.apply(offset, None if operation == "t" else data)
    for name, file in files.items():
        (folder / name).write_bytes(file.after_power_cut(rng))


def save_annotations(database: Path, acknowledgements: Path, count: int) -> None:
    """Save annotations one by one, and note each with the size of the log at its acknowledgement."""
    import finecomb as fc
    from finecomb.collection.database.location import parse_location
    from finecomb.collection.database.store import open_store
    from finecomb.collection.machine_work_storage import upsert_machine_work
    from finecomb.core.records import Annotation, Annotator

    store = open_store(parse_location(database), list(fc.demo(readers=2).items()))
    document = next(iter(fc.demo(readers=2).iter_documents()))
    log = Path(os.environ["POWER_CUT_LOG"])
    store.run_job_sync(upsert_machine_work, [Annotator(id="load", kind="detector")], [])
    with acknowledgements.open("w") as file:
        for number in range(count):
            protocol = store.head.protocol.id
            annotation = Annotation(
                id=f"load-{number}", document=document.id, annotator="load", protocol=protocol, round=number
            )
            store.run_job_sync(upsert_machine_work, [], [annotation])
            file.write(f"{annotation.id} {log.stat().st_size}\n")
    store.close()


if __name__ == "__main__":
    save_annotations(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
