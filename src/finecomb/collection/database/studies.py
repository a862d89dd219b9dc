"""Which studies a database holds, and which one is meant."""

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
    """The key of every study, by name."""
    return dict(transaction.all(_SELECT_STUDIES))


def find_study_key_and_name(transaction: Transaction, place: StudyLocation) -> tuple[int, str]:
    """Key and name of the study that `place` means: the one it names, else the only one."""
    keys = study_keys_by_name(transaction)
    if place.study in keys:
        return keys[place.study], place.study
    if not keys:
        raise FinecombError(f"{place}: holds no study")
    if place.study:
        raise FinecombError(f"{place}: no study has that name{did_you_mean(place.study, keys)}")
    if len(keys) > 1:
        raise FinecombError(f"{place}: holds {len(keys)} studies; say which with #NAME: {', '.join(keys)}")
    ((name, key),) = keys.items()
    return key, name


def find_or_create_study(transaction: Transaction, place: StudyLocation) -> tuple[int, str]:
    """The same, but a study that is not there is made, empty and open."""
    name = place.study or "study"
    if name not in study_keys_by_name(transaction):
        empty, secret = Settings().to_json(), secrets.token_hex(32)
        values = {"name": name, "state": "open", "settings": empty, "imported": empty, "secret": secret, "joining": 1}
        values |= {"changed": 0}
        transaction.run(sa.insert(tables.study).values(**values))
    return study_keys_by_name(transaction)[name], name
