"""Arrivals: data from the recruiting platform and the browser at each sign-in."""

from __future__ import annotations

from dataclasses import dataclass

PLATFORM_TITLES = {"prolific": "Prolific", "mturk": "Mechanical Turk"}
"""Display names of recruiting platforms."""


@dataclass(frozen=True, slots=True)
class ArrivalSource:
    """Platform, browser and address from which a person opens a link. Unknown fields are empty."""

    platform: str = ""
    worker: str = ""
    """ID of the person on the platform."""
    place: str = ""
    """ID of the study or HIT on the platform."""
    session: str = ""
    """ID of the person's submission or assignment on the platform."""
    device: str = ""
    """Keyed hash of a random cookie that identifies the browser."""
    address: str = ""
    """Keyed hash of the IP address."""
    submit: str = ""
    """URL to which the platform expects the completed assignment."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One sign-in of an annotator."""

    annotator: str
    at: float
    source: ArrivalSource
