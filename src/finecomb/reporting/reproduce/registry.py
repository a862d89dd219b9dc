"""Registry of papers and their exhibits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.reporting.reproduce import clark, deng, scarecrow, snac, thomson_reiter
from finecomb.reporting.reproduce.exhibits import Exhibit


@dataclass(frozen=True, slots=True)
class Paper:
    """Paper whose tables and figures can be reproduced."""

    name: str
    title: str
    exhibits: tuple[Exhibit, ...]

    def find_exhibit(self, number: str) -> Exhibit:
        """Return an exhibit by its number, ignoring case."""
        by_number = {exhibit.number.casefold(): exhibit for exhibit in self.exhibits}
        if number.casefold() not in by_number:
            known = [exhibit.number for exhibit in self.exhibits]
            raise FinecombError(f"unknown exhibit {number!r} of {self.name}{did_you_mean(number, known)}")
        return by_number[number.casefold()]


PAPERS: Mapping[str, Paper] = {
    paper.name: paper
    for paper in (
        Paper("scarecrow", "Dou et al. (2022), Scarecrow", scarecrow.EXHIBITS),
        Paper("thomson-reiter", "Thomson and Reiter (2020), accuracy of data-to-text systems", thomson_reiter.EXHIBITS),
        Paper("snac", "Goyal, Li and Durrett (2022), SNaC", snac.EXHIBITS),
        Paper("clark", "Clark et al. (2021), human or machine", clark.EXHIBITS),
        Paper("deng", "Deng, Kuleshov and Rush (2022), model criticism", deng.EXHIBITS),
    )
}
"""Papers by their name on the command line."""


def find_paper(name: str) -> Paper:
    """Return a paper by name, or raise an error that suggests the closest name."""
    if name not in PAPERS:
        raise FinecombError(f"unknown paper {name!r}{did_you_mean(name, PAPERS)}")
    return PAPERS[name]
