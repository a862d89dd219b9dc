"""Links in the data of a text: addresses that annotators can open, by title."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LINKS_KEY = "links"
"""Field of a record that holds links, by title."""


def get_links(data: Any) -> dict[str, str]:
    """Return the links in a record, by title."""
    links = data.get(LINKS_KEY) if isinstance(data, Mapping) else None
    return {str(title): str(address) for title, address in links.items()} if isinstance(links, Mapping) else {}


def with_links(data: Any, links: Mapping[str, str]) -> Any:
    """Return a record with links added; a record that is not an object is stored as `data` next to the links."""
    if not links:
        return data
    fields = dict(data) if isinstance(data, Mapping) else {} if data is None else {"data": data}
    return {**fields, LINKS_KEY: dict(links)}
