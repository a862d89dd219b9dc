"""The commands `agree` and `test`."""

# ruff: noqa: PT028 (`test` is a command, not a test with defaults)

from __future__ import annotations

from typing import Annotated

import typer

from finecomb.api.statistics import agree as fc_agree
from finecomb.api.statistics import test as fc_test
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
from finecomb.cli.shared import AsJson, From, StudyPath, app, print_result, read, shows_progress
from finecomb.cli.statistics import print_pivots
from finecomb.core.errors import FinecombError
from finecomb.core.study import Study


@app.command()
@derive_flags_from(fc_agree, flags={"gamma": ("--gamma",)})
def agree(study: StudyPath, call: PublicFunctionCall, from_: From = "", as_json_: AsJson = False) -> None:
    """Examples: `finecomb agree demo-study` · `finecomb agree demo-study --measure f1,kappa-cohen --level char` ·
    `finecomb agree demo-study --measure gamma,gamma-cat --gamma precision=0.02` · `finecomb agree demo-study --who`
    """
    print_agreement(read(study, from_), call, as_json_)


def print_agreement(study: Study, call: PublicFunctionCall, as_json_: bool) -> None:
    """Compute agreement and print it, for `finecomb agree` and planned tables."""
    print_result(call(study, progress=shows_progress()), as_json_)


@app.command()
@derive_flags_from(fc_test, flags={"what": ("--what", "-w")})
def test(
    study: StudyPath,
    call: PublicFunctionCall,
    grid: Annotated[
        bool,
        typer.Option("--grid", help="For the `human-or-machine` test: print groups in rows and measures in columns."),
    ] = False,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb test demo-study --measure count` ·
    `finecomb test turing-study --what human-or-machine --by domain`
    """
    print_test(read(study, from_), call, grid, as_json_)


test.__test__ = False  # type: ignore[attr-defined]


def print_test(study: Study, call: PublicFunctionCall, grid: bool, as_json_: bool) -> None:
    """Run a test and print it, for `finecomb test` and planned tables."""
    what = call.given.get("what", "systems")
    if grid and what != "human-or-machine":
        raise FinecombError(f"--grid does not apply to {what}; it applies to human-or-machine")
    result = call(study, progress=shows_progress())
    if grid:
        print_pivots(result, result.pivots(), as_json_)
    else:
        print_result(result, as_json_)
