"""Links beside the record of a text: addresses that annotators can open, by title."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LINKS = "links"
"""Field of a record with addresses to open beside it, by title."""


def links_of(data: Any) -> dict[str, str]:
    """The addresses that open beside a record, by title."""
    links = data.get(LINKS) if isinstance(data, Mapping) else None
    return {str(title): str(address) for title, address in links.items()} if isinstance(links, Mapping) else {}


def with_links(data: Any, links: Mapping[str, str]) -> Any:
    """A record with addresses that open beside it; a record that is no object stands beside them as `data`."""
    if not links:
        return data
    fields = dict(data) if isinstance(data, Mapping) else {} if data is None else {"data": data}
    return {**fields, LINKS: dict(links)}
