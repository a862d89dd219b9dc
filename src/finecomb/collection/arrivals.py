"""How annotators came: what a platform and a browser told when somebody signed in."""

from __future__ import annotations

from dataclasses import dataclass

PLATFORM_TITLES = {"prolific": "Prolific", "mturk": "Mechanical Turk"}
"""The names of recruiting platforms, as people read them."""


@dataclass(frozen=True, slots=True)
class ArrivalSource:
    """What is known about somebody who opens a link; empty where it is not."""

    platform: str = ""
    worker: str = ""
    """The platform's id of the person."""
    place: str = ""
    """Its id of the study or HIT."""
    session: str = ""
    """Its id of this person's part in it."""
    device: str = ""
    """Keyed hash of a random cookie."""
    address: str = ""
    """Keyed hash of the internet address."""
    submit: str = ""
    """Where the platform wants to be told of the end."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One time that somebody signed in."""

    annotator: str
    at: float
    source: ArrivalSource
