"""Salvage of a SQLite file with damaged pages: every row that can still be read is copied to a new file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from finecomb.collection.database.connection import decode_text
from finecomb.core.errors import FinecombError

_MAX_BLIND_ROWS = 1_000  # row numbers that are tried before a table counts as lost
_MAX_GAP_ROWS = 1_000_000  # row numbers that are tried one by one between two damaged pages


@dataclass(frozen=True, slots=True)
class LostRows:
    """Rows of one table that could not be read, by their first and last row number; 0 if their number is unknown."""

    table: str
    first: int
    last: int

    def __str__(self) -> str:
        """Return the table and its row numbers."""
        rows = f"rows {self.first:,} to {self.last:,}" if self.last else "an unknown number of rows"
        return f"table {self.table}, {rows}"


def find_page_damage(file: Path) -> str:
    """Return SQLite's description of damaged pages, or an empty string for a sound file."""
    try:
        with closing(_connect_readonly(file)) as connection:
            (problem,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if problem == "ok" else str(problem)


def salvage_database(file: Path, target: Path) -> list[LostRows]:
    """Copy all readable rows of a damaged file to the new file `target`, and return those that were lost."""
    lost: list[LostRows] = []
    with closing(_connect_readonly(file)) as old, closing(sqlite3.connect(target)) as new:
        new.execute("PRAGMA foreign_keys = OFF")
        try:
            schema = old.execute(
                "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
            ).fetchall()
        except sqlite3.DatabaseError as error:
            raise FinecombError(
                f"{file}: the list of tables is damaged ({error}), so nothing can be salvaged; restore a backup"
            ) from None
        tables = [(name, sql) for kind, name, sql in schema if kind == "table"]
        for name, sql in tables:
            new.execute(sql)
            if sql.rstrip().upper().endswith("WITHOUT ROWID"):
                for row in _iter_rows_by_key(old, name, lost):
                    new.execute(f'INSERT OR IGNORE INTO "{name}" VALUES ({_places(row)})', row)
                continue
            for row in _iter_readable_rows(old, name, lost):
                new.execute(f'INSERT INTO "{name}" (rowid, {_columns(old, name)}) VALUES ({_places(row)})', row)
        for kind, _, sql in schema:
            if kind != "table":
                new.execute(sql)
        (version,) = old.execute("PRAGMA user_version").fetchone()
        new.execute(f"PRAGMA user_version = {version}")
        _delete_orphans(new, lost)
        new.commit()
    return lost


def _connect_readonly(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=ro", uri=True)
    connection.text_factory = decode_text
    return connection


def _columns(connection: sqlite3.Connection, table: str) -> str:
    return ", ".join(f'"{row[1]}"' for row in connection.execute(f'PRAGMA table_info("{table}")'))


def _places(row: tuple[object, ...]) -> str:
    # Text with invalid bytes is bound as bytes and stored as text again, exactly as it was.
    return ", ".join("CAST(? AS TEXT)" if isinstance(value, _RawText) else "?" for value in row)


class _RawText(bytes):
    """Bytes of a text column that are not valid UTF-8."""


def _iter_readable_rows(
    connection: sqlite3.Connection, table: str, lost: list[LostRows]
) -> Iterator[tuple[object, ...]]:
    """Yield rows with their row number: from the start, from the end, then one by one between the damaged pages."""
    columns = _columns(connection, table)
    lower, upper = -(2**63), 2**63 - 1
    is_whole = True
    try:
        for row in connection.execute(f'SELECT rowid, {columns} FROM "{table}" NOT INDEXED ORDER BY rowid'):
            yield _raw_row(row)
            lower = row[0]
    except sqlite3.DatabaseError:
        is_whole = False
    if is_whole:
        return
    backwards = f'SELECT rowid, {columns} FROM "{table}" NOT INDEXED WHERE rowid > ? ORDER BY rowid DESC'
    try:
        for row in connection.execute(backwards, (lower,)):
            yield _raw_row(row)
            upper = row[0]
    except sqlite3.DatabaseError:
        pass
    first, last = max(lower + 1, 1), min(upper - 1, max(lower + 1, 1) + _MAX_GAP_ROWS)
    missing: list[int] = []
    one = f'SELECT rowid, {columns} FROM "{table}" NOT INDEXED WHERE rowid = ?'
    for number in range(first, last + 1):
        try:
            found = connection.execute(one, (number,)).fetchone()
        except sqlite3.DatabaseError:
            missing.append(number)
            if lower < 0 and upper == 2**63 - 1 and len(missing) == number >= _MAX_BLIND_ROWS:
                lost.append(LostRows(table, 0, 0))  # the first page of the table is damaged
                return
            continue
        if found is not None:
            yield _raw_row(found)
        elif upper == 2**63 - 1:
            break  # past the last row
    lost.extend(_ranges(table, missing))


def _iter_rows_by_key(connection: sqlite3.Connection, table: str, lost: list[LostRows]) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a table without row numbers, from the start and from the end up to the damaged pages."""
    keys = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")') if row[5]]
    for direction in ("ASC", "DESC"):
        order = ", ".join(f'"{key}" {direction}' for key in keys)
        try:
            for row in connection.execute(f'SELECT * FROM "{table}" ORDER BY {order}'):
                yield _raw_row(row)
        except sqlite3.DatabaseError:
            continue
        return
    lost.append(LostRows(table, 0, 0))


def _raw_row(row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(
        _RawText(value.encode("utf-8", "surrogateescape"))
        if isinstance(value, str) and any("\udc80" <= character <= "\udcff" for character in value)
        else value
        for value in row
    )


def _ranges(table: str, numbers: list[int]) -> Iterator[LostRows]:
    start = 0
    for index, number in enumerate(numbers):
        if index + 1 == len(numbers) or numbers[index + 1] != number + 1:
            yield LostRows(table, numbers[start], number)
            start = index + 1


def _delete_orphans(connection: sqlite3.Connection, lost: list[LostRows]) -> None:
    """Delete rows that refer to a lost row, and list them as lost, until no row refers to a missing one."""
    while rows := sorted({(row[0], row[1]) for row in connection.execute("PRAGMA foreign_key_check")}):
        for table in sorted({name for name, _ in rows}):
            numbers = [number for name, number in rows if name == table]
            connection.executemany(f'DELETE FROM "{table}" WHERE rowid = ?', [(number,) for number in numbers])
            lost.extend(_ranges(table, numbers))
