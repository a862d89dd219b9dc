"""Cells of a study's design: requirements, matching texts, and problems that prevent a cell from being filled."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from finecomb.core.errors import did_you_mean
from finecomb.core.protocol import Protocol
from finecomb.core.records import Answers, Design
from finecomb.core.scales import is_among

CONDITION_FACTOR = "condition"
"""Factor whose values are the protocol's conditions; every other factor is a field of document meta."""
HUMAN_MODEL = "human"
"""Value of `model` for texts written by people; such texts match the cells of every model."""
MetaByDocument = Mapping[str, Mapping[str, Any]]
"""Meta of each document, by document ID."""
EligibleAnswers = Mapping[str, tuple[Any, ...]]
"""Accepted answers, by survey question."""


@dataclass(frozen=True, slots=True)
class DesignCell:
    """One combination of a design's factors that people are assigned to."""

    name: str
    """Values of the factors, e.g. `examples/gpt3/news`."""
    factors: Mapping[str, str]
    people: int
    """Number of accepted people required."""
    pay: float | None
    """Pay per person."""
    texts: int | None
    """Texts per person; None, where neither design nor protocol sets it, means all texts."""
    training: str
    """Condition of the protocol whose training material is shown."""
    eligible: Sequence[EligibleAnswers] = ()
    """Survey answers required of each person; all entries must hold."""
    reopen: bool = True
    """True if the cell reopens for a new person when one of its people is excluded."""

    @property
    def condition(self) -> str:
        """Condition of the cell's people; empty if the design has no conditions."""
        return self.factors.get(CONDITION_FACTOR, "")

    @property
    def meta_factors(self) -> dict[str, str]:
        """Factors that are fields of document meta."""
        return {name: value for name, value in self.factors.items() if name != CONDITION_FACTOR}

    def accepts_text(self, meta: Mapping[str, Any]) -> bool:
        """Return True if a text with this meta belongs to the cell; human texts belong to the cells of every model."""
        return all(
            str(meta.get(name, "")) == value or (name == "model" and meta.get("model") == HUMAN_MODEL)
            for name, value in self.meta_factors.items()
        )

    def matching_document_ids(self, metas: MetaByDocument) -> list[str]:
        """Return the IDs of the texts that belong to the cell."""
        return [id for id, meta in metas.items() if self.accepts_text(meta)]

    def accepts_annotator(self, survey: Answers) -> bool:
        """Return True if a person with these survey answers is eligible for the cell."""
        return all(
            is_among(survey.get(question), answers) for needed in self.eligible for question, answers in needed.items()
        )


def design_cells(design: Design, protocol: Protocol | None = None) -> list[DesignCell]:
    """Return every cell of a design, block by block; `protocol` provides the texts per person if the design does not.

    >>> cross = Design(cross={"condition": ("none", "examples"), "domain": ("news",)}, people=130)
    >>> [cell.name for cell in design_cells(cross)]
    ['none/news', 'examples/news']
    """
    texts = design.texts or (protocol.work.texts if protocol else None)
    first = list(design.blocks[0].factors)
    cells: list[DesignCell] = []
    for block in design.blocks:
        names = sorted(block.factors, key=lambda name: first.index(name) if name in first else len(first))
        people = block.people or design.people
        for values in itertools.product(*(block.factors[name] for name in names)):
            factors = dict(zip(names, values, strict=True))
            assert people is not None
            cell = DesignCell(
                name="/".join(values),
                factors=factors,
                people=people,
                pay=design.pay if block.pay is None else block.pay,
                texts=block.texts or texts,
                training=block.training or factors.get(CONDITION_FACTOR, ""),
                eligible=tuple(needed for needed in (design.eligible, block.eligible) if needed),
                reopen=design.reopen,
            )
            cells.append(cell)
    return cells


# --- design problems ----------------------------------------------------------------------------------------------


def design_problems(design: Design, protocol: Protocol, metas: MetaByDocument) -> list[str]:
    """Return a message for each reason why the cells of a design cannot be filled."""
    if protocol.work.unit in ("annotation", "mark"):
        judged = f"protocol {protocol.id} judges {protocol.work.unit}s"
        return [f"design: cells are filled with texts, but {judged}; remove design"]
    cells = design_cells(design, protocol)
    first, problems = design.blocks[0].factors, list[str]()
    for block in design.blocks[1:]:
        if set(block.factors) != set(first):
            ours, theirs = (", ".join(sorted(factors)) for factors in (first, block.factors))
            problems.append(
                f"design: some cells have the factors {ours}, others {theirs}; all cells must have the same factors"
            )
    for factors, count in Counter(tuple(sorted(cell.factors.items())) for cell in cells).items():
        if count > 1:
            values = ", ".join(f"{name} {value}" for name, value in factors)
            problems.append(f"design: {count} cells have the same factors ({values}); list each combination once")
    if problems:  # the checks below assume that all cells have the same factors
        return problems
    problems += [*_factor_problems(cells, protocol, metas), *_eligibility_problems(cells, protocol)]
    for cell in cells:
        count, needed = len(cell.matching_document_ids(metas)), cell.texts or 1
        if count < needed:
            what = ", ".join(f"{name} {value}" for name, value in cell.meta_factors.items()) or "all texts"
            fit = f"{count} text matches" if count == 1 else f"{count} texts match"
            problems.append(
                f"design: cell {cell.name} needs {needed} texts per person, but {fit} ({what}); add matching texts"
            )
    return problems


def _factor_problems(cells: Sequence[DesignCell], protocol: Protocol, metas: MetaByDocument) -> Iterator[str]:
    names = sorted({name for meta in metas.values() for name in meta})
    for name in cells[0].meta_factors:
        if metas and name not in names:
            near = did_you_mean(name, [CONDITION_FACTOR, *names])
            yield f"design: factor {name!r} is neither `condition` nor a meta field of any text{near}"
    for name in protocol.work.within:
        if name not in cells[0].factors:
            why = f"protocol {protocol.id} gives each person texts with the same {name}"
            yield f"design: factor {name!r} is missing, but {why}; add the factor to the cells"
    conditions = [condition.name for condition in protocol.conditions]
    if conditions and CONDITION_FACTOR not in cells[0].factors:
        why = f"protocol {protocol.id} has conditions ({', '.join(conditions)})"
        yield f"design: factor 'condition' is missing, but {why}; add the factor to the cells"
    for name in dict.fromkeys(name for cell in cells for name in (cell.condition, cell.training) if name):
        if name not in conditions:
            what = f"condition {name!r} is not in protocol {protocol.id}"
            yield f"design: {what}{did_you_mean(name, conditions) if conditions else ', which has no conditions'}"


def _eligibility_problems(cells: Iterable[DesignCell], protocol: Protocol) -> Iterator[str]:
    questions = {question.name: question for question in protocol.survey}
    needed = {question: answers for cell in cells for group in cell.eligible for question, answers in group.items()}
    for name, answers in needed.items():
        if name not in questions:
            near = did_you_mean(name, questions)
            yield (
                f"design: eligibility uses the survey question {name!r}, which protocol {protocol.id} does not "
                f"have{near}"
            )
            continue
        strange = [problem for answer in answers if (problem := questions[name].answer_problem(answer))]
        if strange:
            yield f"design: eligibility by {name!r}: {strange[0]}"
