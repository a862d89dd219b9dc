"""Sessions are bound to the place of a database, so that a copy does not keep its author's sign-in."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from finecomb.collection.database import tables
from finecomb.collection.database.connection import Transaction

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store


def end_sessions_if_moved(store: Store, transaction: Transaction) -> bool:
    """End all sessions if a SQLite file was moved, copied or restored since it was last served; return whether it was.

    The place is stored in the file's header as `user_version`, which a copy of the file keeps.
    """
    file = store.database.place.file
    if file is None:
        return False
    (known,) = transaction.execute(sa.text("PRAGMA user_version")).fetchone()
    place = _place_number(file)
    if known == place:
        return False
    has_sessions = end_all_sessions(transaction)
    transaction.execute_sql(f"PRAGMA user_version = {place}")
    return has_sessions


def end_all_sessions(transaction: Transaction) -> bool:
    """Delete all sessions and the unused links of researchers, and return whether there were any."""
    sessions = transaction.execute(sa.delete(tables.session)).rowcount
    link = tables.link.c
    unused = (link.kind == "researcher", link.used.is_(None))
    links = transaction.execute(sa.delete(tables.link).where(*unused)).rowcount
    return bool(sessions or links)


def _place_number(file: Path) -> int:
    """Return a number for the machine, the path and the inode of a file; never 0, which marks an unbound file."""
    machine = Path("/etc/machine-id")
    name = machine.read_bytes() if machine.is_file() else b""
    text = f"{file.resolve()}\0{file.stat().st_ino}\0".encode() + name
    return int.from_bytes(hashlib.sha256(text).digest()[:4]) % (2**31 - 1) + 1
