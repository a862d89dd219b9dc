"""Lookup and creation of studies in a database by name."""

from __future__ import annotations

import secrets

import sqlalchemy as sa

from finecomb.collection.database import tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.location import StudyLocation
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.records import Settings

_SELECT_STUDIES = sa.select(tables.study.c.name, tables.study.c.key).order_by(tables.study.c.key)


def study_keys_by_name(transaction: Transaction) -> dict[str, int]:
    """Return the key of each study in the database, by name."""
    return dict(transaction.fetch_all(_SELECT_STUDIES))


def find_study_key_and_name(transaction: Transaction, place: StudyLocation) -> tuple[int, str]:
    """Return the key and name of the study at a location: the study it names, or the only one."""
    keys = study_keys_by_name(transaction)
    if place.study in keys:
        return keys[place.study], place.study
    if not keys:
        raise FinecombError(f"{place}: contains no study")
    if place.study:
        raise FinecombError(f"{place}: unknown study {place.study!r}{did_you_mean(place.study, keys)}")
    if len(keys) > 1:
        raise FinecombError(f"{place}: contains {len(keys)} studies ({', '.join(keys)}); add #NAME to select one")
    ((name, key),) = keys.items()
    return key, name


def find_or_create_study(transaction: Transaction, place: StudyLocation) -> tuple[int, str]:
    """Return the key and name of the study at a location. If it does not exist, create an empty, open study."""
    name = place.study or "study"
    if name not in study_keys_by_name(transaction):
        empty, secret = Settings().to_json(), secrets.token_hex(32)
        values = {"name": name, "state": "open", "settings": empty, "imported": empty, "secret": secret, "joining": 1}
        values |= {"changed": 0}
        transaction.execute(sa.insert(tables.study).values(**values))
    return study_keys_by_name(transaction)[name], name
