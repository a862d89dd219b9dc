"""Price files: prices of models per million tokens, edited by the user and dated. None are shipped."""

from __future__ import annotations

import fnmatch
import hashlib
import os
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Literal

from finecomb.core.errors import FinecombError
from finecomb.core.protocol_yaml import parse_yaml
from finecomb.core.records import ModelRates, Record

PRICE_FILE = "prices.yaml"
"""Name of the price file, in a study's folder or in the user's folder for settings."""
MAX_AGE_DAYS = 90
"""Age in days from which prices should be compared with the provider's page again."""
TEMPLATE = """\
# Prices of language models in US dollars per million tokens. Finecomb ships no figures, because they change:
# copy them from the provider's page, and note the address and the day. The first entry that matches is used.
#
# - host: api.example.com      # host of the endpoint, or "*"
#   model: model-name*         # name at the endpoint; * stands for any characters
#   input: 0.00
#   output: 0.00               # includes reasoning
#   cache_read: 0.00           # default: as input
#   cache_write: 0.00          # default: twice input
#   cache_write_1h: 0.00       # default: twice input
#   batch: 1                   # factor on all prices in batches
#   above: {tokens: 200000, input: 1, output: 1}   # factors for long prompts
#   since: 2026-01-01          # first day on which the prices apply
#   checked: 2026-01-01        # day on which you compared them with the page
#   source: https://example.com/pricing
format: finecomb-prices/1
prices: []
"""


class PriceFile(Record):
    """The content of a price file."""

    format: Literal["finecomb-prices/1"]
    prices: tuple[ModelRates, ...] = ()


def user_price_file() -> Path:
    """Return the path of the user's price file."""
    folder = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder) / "finecomb" / PRICE_FILE


def read_prices(file: Path) -> tuple[ModelRates, ...]:
    """Return the entries of a price file, each with the hash of the file."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FinecombError(f"{file}: cannot be read ({error}); expected a price file") from None
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    entries = parse_yaml(PriceFile, text, str(file)).prices
    return tuple(entry.model_copy(update={"file": digest}) for entry in entries)


def find_rates(host: str, model: str, files: Iterable[Path], today: date) -> ModelRates | None:
    """Return the first entry for a model at a host that is valid today, or None."""
    for file in files:
        for entry in read_prices(file) if file.is_file() else ():
            is_valid = entry.since is None or entry.since <= today
            if is_valid and entry.host in ("*", host) and fnmatch.fnmatchcase(model, entry.model):
                return entry
    return None


def price_age_note(rates: ModelRates, today: date) -> str:
    """Return a note if the prices were not checked recently, or an empty string."""
    if rates.checked is None:
        return f"the price of {rates.model} has no date; add `checked` to the price file"
    age = (today - rates.checked).days
    return f"the price of {rates.model} was checked {age} days ago" if age > MAX_AGE_DAYS else ""
