"""The cells of a study's design: what each asks for, which texts can be read in it, and what is wrong with a design."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from finecomb.core.errors import did_you_mean
from finecomb.core.protocol import Protocol
from finecomb.core.records import Answers, CellBlock, Design
from finecomb.core.scales import is_among

CONDITION = "condition"
"""The factor whose values are the protocol's conditions; every other one names document meta."""
HUMAN = "human"
"""The model of texts that people wrote; they go with every model."""
Metas = Mapping[str, Mapping[str, Any]]
"""The meta of every document, by id."""
EligibleAnswers = Mapping[str, tuple[Any, ...]]
"""Answers to survey questions that somebody needs, by question."""


@dataclass(frozen=True, slots=True)
class DesignCell:
    """One combination of a design's factors that people are assigned to."""

    name: str
    """The values of its factors, e.g. `examples/gpt3/news`."""
    factors: Mapping[str, str]
    people: int
    """How many accepted people it needs."""
    pay: float | None
    """What one person earns."""
    texts: int | None
    """How many texts one person reads; None where the protocol does not say either: all of them."""
    training: str
    """The condition of the protocol whose material is shown."""
    eligible: Sequence[EligibleAnswers] = ()
    """What people need to have answered in the survey; all of it."""
    reopen: bool = True
    """Whether the place of somebody who is excluded is given to somebody else."""

    @property
    def condition(self) -> str:
        """The condition of its people; empty where the design has none."""
        return self.factors.get(CONDITION, "")

    @property
    def meta_factors(self) -> dict[str, str]:
        """The factors that are document meta."""
        return {name: value for name, value in self.factors.items() if name != CONDITION}

    def accepts_text(self, meta: Mapping[str, Any]) -> bool:
        """Whether a text with that meta can be read here; one that a person wrote goes with every model."""
        return all(
            str(meta.get(name, "")) == value or (name == "model" and meta.get("model") == HUMAN)
            for name, value in self.meta_factors.items()
        )

    def documents(self, metas: Metas) -> list[str]:
        """The texts that can be read here, by id."""
        return [id for id, meta in metas.items() if self.accepts_text(meta)]

    def admits(self, survey: Answers) -> bool:
        """Whether somebody with these answers to the survey may take part here."""
        return all(
            is_among(survey.get(question), answers) for needed in self.eligible for question, answers in needed.items()
        )


def design_cells(design: Design, protocol: Protocol | None = None) -> list[DesignCell]:
    """Every cell of a design, block by block; `protocol` says how many texts a person reads where the design does not.

    >>> cross = Design(cross={"condition": ("none", "examples"), "domain": ("news",)}, people=130)
    >>> [cell.name for cell in design_cells(cross)]
    ['none/news', 'examples/news']
    """
    texts = design.texts or (protocol.work.texts if protocol else None)
    return [cell for block in design.blocks for cell in _block_cells(design, block, texts)]


def _block_cells(design: Design, block: CellBlock, texts: int | None) -> Iterator[DesignCell]:
    first = design.blocks[0].factors
    names = sorted(block.factors, key=lambda name: list(first).index(name) if name in first else len(first))
    for values in itertools.product(*(block.factors[name] for name in names)):
        factors = dict(zip(names, values, strict=True))
        people = block.people or design.people
        assert people is not None
        yield DesignCell(
            name="/".join(values),
            factors=factors,
            people=people,
            pay=design.pay if block.pay is None else block.pay,
            texts=block.texts or texts,
            training=block.training or factors.get(CONDITION, ""),
            eligible=tuple(needed for needed in (design.eligible, block.eligible) if needed),
            reopen=design.reopen,
        )


# --- what is wrong with a design ---------------------------------------------------------------------------------


def design_problems(design: Design, protocol: Protocol, metas: Metas) -> list[str]:
    """Everything that would keep a design from being filled, in words."""
    if protocol.work.unit in ("annotation", "mark"):
        return [f"design: cells are filled with texts, but {protocol.id} judges {protocol.work.unit}s; leave it out"]
    cells = design_cells(design, protocol)
    shape = [*_shape_problems(design), *_overlaps(cells)]
    if shape:
        return shape
    return [
        *_factor_problems(cells[0], protocol, metas),
        *_condition_problems(cells, protocol),
        *_eligibility_problems(cells, protocol),
        *_text_problems(cells, metas),
    ]


def _shape_problems(design: Design) -> Iterator[str]:
    first = design.blocks[0].factors
    for block in design.blocks[1:]:
        if set(block.factors) != set(first):
            ours, theirs = (", ".join(sorted(factors)) for factors in (first, block.factors))
            yield f"design: some cells have the factors {ours}, others {theirs}; every cell needs the same"


def _overlaps(cells: Iterable[DesignCell]) -> Iterator[str]:
    often = Counter(tuple(sorted(cell.factors.items())) for cell in cells)
    for factors, count in often.items():
        if count > 1:
            values = ", ".join(f"{name} {value}" for name, value in factors)
            yield f"design: cells overlap: {count} of them are {values}; name each combination once"


def _factor_problems(cell: DesignCell, protocol: Protocol, metas: Metas) -> Iterator[str]:
    names = sorted({name for meta in metas.values() for name in meta})
    for name in cell.meta_factors:
        if metas and name not in names:
            near = did_you_mean(name, [CONDITION, *names])
            yield f"design: factor {name!r} is neither `condition` nor meta of any text{near}"
    for name in protocol.work.within:
        if name not in cell.factors:
            why = f"protocol {protocol.id} keeps {name} the same for all texts of one person"
            yield f"design: has no factor {name!r}, but {why}; add it to the cells"
    if protocol.conditions and CONDITION not in cell.factors:
        listed = ", ".join(condition.name for condition in protocol.conditions)
        yield f"design: does not say who gets which condition of {protocol.id} ({listed}); add the factor `condition`"


def _condition_problems(cells: Iterable[DesignCell], protocol: Protocol) -> Iterator[str]:
    listed = [condition.name for condition in protocol.conditions]
    for name in dict.fromkeys(name for cell in cells for name in (cell.condition, cell.training) if name):
        if name not in listed:
            what = f"condition {name!r} is not in protocol {protocol.id}"
            yield f"design: {what}{did_you_mean(name, listed) if listed else ', which has no conditions'}"


def _eligibility_problems(cells: Iterable[DesignCell], protocol: Protocol) -> Iterator[str]:
    questions = {question.name: question for question in protocol.survey}
    needed = {question: answers for cell in cells for group in cell.eligible for question, answers in group.items()}
    for name, answers in needed.items():
        if name not in questions:
            near = did_you_mean(name, questions)
            yield f"design: eligibility goes by the survey question {name!r}, which {protocol.id} does not ask{near}"
            continue
        strange = [problem for answer in answers if (problem := questions[name].problem(answer))]
        if strange:
            yield f"design: nobody can be eligible by {name!r}: {strange[0]}"


def _text_problems(cells: Iterable[DesignCell], metas: Metas) -> Iterator[str]:
    for cell in cells:
        count, needed = len(cell.documents(metas)), cell.texts or 1
        if count < needed:
            what = ", ".join(f"{name} {value}" for name, value in cell.meta_factors.items()) or "all of them"
            fit = f"{count} text fits" if count == 1 else f"{count} texts fit"
            yield f"design: cell {cell.name} cannot be filled: {fit} ({what}), but everybody there reads {needed}"
