"""Commands about how far numbers can be trusted: agree and test."""

# ruff: noqa: PT028 (`test` is a command, not a test with defaults)

from __future__ import annotations

from typing import Annotated

import typer

from finecomb.api.statistics import agree as fc_agree
from finecomb.api.statistics import test as fc_test
from finecomb.cli.derived import ApiCall, from_api
from finecomb.cli.shared import AsJson, From, StudyPath, app, print_result, read, shows_progress
from finecomb.cli.statistics import print_pivots
from finecomb.core.errors import FinecombError


@app.command()
@from_api(fc_agree, flags={"gamma": ("--gamma",)})
def agree(study: StudyPath, call: ApiCall, from_: From = "", as_json_: AsJson = False) -> None:
    """Examples: `finecomb agree demo-study` · `finecomb agree demo-study --measure f1,kappa-cohen --level char` ·
    `finecomb agree demo-study --measure gamma,gamma-cat --gamma precision=0.02` · `finecomb agree demo-study --who`
    """
    print_result(call(read(study, from_), progress=shows_progress()), as_json_)


@app.command()
@from_api(fc_test, flags={"what": ("--what", "-w")})
def test(
    study: StudyPath,
    call: ApiCall,
    grid: Annotated[
        bool, typer.Option("--grid", help="Groups down and measures across, as papers print human-or-machine tables.")
    ] = False,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb test demo-study --measure count` ·
    `finecomb test turing-study --what human-or-machine --by domain`
    """
    what = call.given.get("what", "systems")
    if grid and what != "human-or-machine":
        raise FinecombError(f"--grid does not apply to {what}; it applies to human-or-machine")
    result = call(read(study, from_))
    if grid and not as_json_:
        print_pivots(result, result.pivots())
    else:
        print_result(result, as_json_)


test.__test__ = False  # type: ignore[attr-defined]
