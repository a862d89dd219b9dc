from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from finecomb import protocols
from finecomb.core.design import design_cells, design_problems
from finecomb.core.question import Question
from finecomb.core.records import Design, Document, Settings
from finecomb.core.study import Study
from finecomb.core.study_checks import check_study

DOMAINS = ["stories", "news", "recipes"]
CLARK: dict[str, Any] = {
    "people": 130,
    "pay": 1.25,
    "currency": "USD",
    "texts": 5,
    "cells": [
        {"factors": {"condition": "none", "model": ["gpt2", "gpt3"], "domain": DOMAINS}},
        {"factors": {"condition": "instructions", "model": "gpt3", "domain": DOMAINS}},
        {"factors": {"condition": "examples", "model": "gpt3", "domain": DOMAINS}, "pay": 1.75},
        {"factors": {"condition": "comparison", "model": "gpt3", "domain": DOMAINS}, "pay": 2.25},
    ],
}
"""The two studies of Clark et al. (2021), sections 2.3 and 3.1."""
TURING = protocols.load("turing")


def metas(count: int = 5) -> dict[str, dict[str, str]]:
    return {
        f"{domain}-{model}-{n}": {"domain": domain, "model": model}
        for domain in DOMAINS
        for model in ("human", "gpt2", "gpt3")
        for n in range(count)
    }


def test_clarks_design_has_15_cells_of_130_people_for_4225_dollars_in_each_domain() -> None:
    cells = design_cells(Design.model_validate(CLARK), TURING)
    assert len(cells) == 15
    assert len({cell.name for cell in cells}) == 15
    assert sum(cell.people for cell in cells) == 780 + 1170
    assert [cell.pay for cell in cells if cell.factors["domain"] == "news"] == [1.25, 1.25, 1.25, 1.75, 2.25]
    assert cells[0].name == "none/gpt2/stories"
    assert not design_problems(Design.model_validate(CLARK), TURING, metas())


def test_a_cross_is_every_combination() -> None:
    design = Design.model_validate({"cross": {"condition": ["none", "examples"], "domain": ["news"]}, "people": 2})
    assert [cell.factors for cell in design_cells(design)] == [
        {"condition": "none", "domain": "news"},
        {"condition": "examples", "domain": "news"},
    ]


def test_texts_by_people_go_with_every_model() -> None:
    cell = design_cells(Design.model_validate(CLARK), TURING)[0]
    assert cell.accepts_text({"domain": "stories", "model": "human"})
    assert cell.accepts_text({"domain": "stories", "model": "gpt2"})
    assert not cell.accepts_text({"domain": "stories", "model": "gpt3"})
    assert not cell.accepts_text({"domain": "news", "model": "human"})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"cells": []}, "requires either `cross`"),
        ({"people": None}, "number of accepted people"),
        ({"currency": ""}, "the pay currency is missing"),
        ({"cells": [{"factors": {}}]}, "has no factors"),
        ({"cells": [{"factors": {"domain": ["news", "news"]}}]}, "lists 'news' twice"),
        ({"cell": 1}, "Extra inputs"),
    ],
)
def test_a_design_that_says_too_little_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Design.model_validate({**CLARK, **changed})


def block(**factors: object) -> dict[str, Any]:
    return {"factors": {"condition": "none", "model": "gpt3", "domain": "news", **factors}}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"cells": [block(), block(domain=["stories", "news"])]},
            "2 cells have the same factors (condition none, domain",
        ),
        ({"cells": [block(), {"factors": {"condition": "none"}}]}, "all cells must have the same factors"),
        ({"cells": [block(model="gpt4")], "texts": 6}, "none/gpt4/news needs 6 texts per person, but 5 texts match"),
        ({"texts": 11}, "needs 11 texts per person"),
        ({"cells": [block(condition="exampels")]}, "did you mean 'examples'"),
        ({"cells": [{**block(), "training": "practice"}]}, "condition 'practice' is not in protocol turing@"),
        ({"cells": [block(genre="crime")]}, "factor 'genre' is neither"),
        ({"cross": {"domain": ["news"], "model": ["gpt3"]}, "cells": []}, "add the factor to the cells"),
        ({"cross": {"domain": ["news"], "condition": ["none"]}, "cells": []}, "factor 'model' is missing"),
        ({"eligible": {"age": [18]}}, "which protocol turing@"),
    ],
)
def test_a_design_that_cannot_be_filled_is_a_problem(changed: dict[str, Any], message: str) -> None:
    problems = design_problems(Design.model_validate({**CLARK, **changed}), TURING, metas())
    assert problems
    assert message in problems[0]


def test_check_says_so_before_anybody_is_recruited() -> None:
    settings = Settings(protocols=(TURING.id,), design=Design.model_validate({**CLARK, "texts": 99}))
    documents = [Document(id=id, text=id, meta=meta) for id, meta in metas().items()]
    problems = check_study(Study.from_items([settings, TURING, *documents]))
    assert len([problem for problem in problems if "texts per person, but" in problem.message]) == 15


def test_who_is_eligible_is_said_by_the_survey() -> None:
    design = Design.model_validate(
        {**CLARK, "eligible": {"native": True}, "cells": [{**block(), "eligible": {"age": ["adult"]}}]}
    )
    (cell,) = design_cells(design)
    assert cell.accepts_annotator({"native": True, "age": "adult"})
    assert not cell.accepts_annotator({"native": False, "age": "adult"})
    assert not cell.accepts_annotator({"native": True})


def test_an_eligible_answer_that_cannot_be_given_is_named_though_others_can() -> None:
    survey = (Question(name="age", ask="How old are you?", scale="nominal", options=("child", "adult")),)
    design = Design.model_validate({**CLARK, "eligible": {"age": ["adult", "adlut"]}})
    problems = design_problems(design, TURING.model_copy(update={"survey": survey}), metas())
    assert problems == ["design: eligibility by 'age': answer 'adlut' to 'age': expected one of child, adult"]
