"""The command that rehearses a study: pretended people walk the real server before anybody is paid."""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finecomb import formats
from finecomb.annotators.simulated.simulated_people import CrowdTraits
from finecomb.cli.planned_tests import planned_problems, power_rows, print_planned_tables
from finecomb.cli.shared import AsJson, Force, StudyPath, app, out, print_note, print_outcome, print_table_or_json, read
from finecomb.collection import pay as pay_rules
from finecomb.collection.database.location import DATABASE_FILENAME, parse_location
from finecomb.core.errors import FinecombError
from finecomb.core.study import Study
from finecomb.core.study_checks import check_items
from finecomb.reporting.tables import Row

if TYPE_CHECKING:
    from finecomb.server.rehearsal import Rehearsal, Visit

_REPORT_INTERVAL = 100  # people between two lines about how far a rehearsal is
_MAX_ARRIVALS = 20_000  # people, where nobody says how many come


@app.command()
def rehearse(
    study: StudyPath,
    arrivals: Annotated[
        int, typer.Option(min=0, help="How many people come; 0 lets them come until every cell is full.")
    ] = 0,
    rejected: Annotated[
        float, typer.Option(min=0, max=0.95, help="Share of people whose work is rejected: they copy the text.")
    ] = 0.0,
    careless: Annotated[
        float, typer.Option(min=0, max=0.95, help="Share of people who click without reading; rejected too.")
    ] = 0.0,
    leaves: Annotated[float, typer.Option(min=0, max=0.95, help="Share of people who stop before the end.")] = 0.0,
    skill: Annotated[
        list[str] | None,
        typer.Option(
            help="How often people are right, e.g. 0.6, or in one condition: examples=0.7; may be repeated.",
            show_default=False,
        ),
    ] = None,
    bias: Annotated[
        float, typer.Option(min=0, max=1, help="How often who is wrong takes the highest answer rather than any.")
    ] = 0.0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Keep the rehearsed study there, for any table.", show_default=False),
    ] = None,
    runs: Annotated[
        int,
        typer.Option(min=0, help="How often planned tests are repeated with other people, for their power; 0: never."),
    ] = 50,
    seed: Annotated[int, typer.Option(help="Same seed, same people.")] = 0,
    force: Force = False,
    as_json_: AsJson = False,
) -> None:
    """A dress rehearsal by pretended people on the real server: does the design fill, what does it cost and find?

    The tables in `planned` of study.yaml are computed, and of planned tests the power.

    Example: `finecomb rehearse my-study --rejected 0.186 --leaves 0.05 -o rehearsed`
    """
    traits = CrowdTraits(_parse_skills(skill or []), bias, rejected, careless, leaves)
    whole = read(study)
    if not arrivals and whole.settings.design is None:
        raise FinecombError("the study has no design to be filled; say how many people come with --arrivals")
    if output and output.exists() and not force:
        raise FinecombError(f"{output}: is there already; choose another name or use --force")
    if problems := planned_problems(whole.settings.planned):
        raise FinecombError("\n".join(problems))
    rehearsal = _run_rehearsal(whole, traits, arrivals or _MAX_ARRIVALS, seed)
    rows = _cell_rows(rehearsal) or _outcome_rows(rehearsal)
    title = "Cells" if rehearsal.states else "People"
    print_table_or_json(
        rows,
        as_json_,
        title,
        "Nobody came.",
        [] if as_json_ else _rehearsal_notes(rehearsal, whole.settings.effective_currency),
    )
    if output:  # before the tables, so that nothing that stops one of them loses the walk
        formats.save(rehearsal.study.items(), output, force=force)
        if not as_json_:
            print_outcome(output, "the rehearsed study; every command reads it")
    is_complete = as_json_ or _print_planned_tests(rehearsal, traits, seed, runs)
    if not is_complete or (rehearsal.states and not rehearsal.is_filled):
        raise typer.Exit(1)


def _parse_skills(words: list[str]) -> dict[str, float]:
    skills = {"": 0.6}
    for word in words:
        condition, equals, number = word.rpartition("=")
        try:
            skills[condition if equals else ""] = float(number)
        except ValueError:
            raise FinecombError(f"--skill {word}: expected a share, e.g. 0.6, or CONDITION=SHARE") from None
    return skills


def _print_planned_tests(rehearsal: Rehearsal, traits: CrowdTraits, seed: int, runs: int) -> bool:
    """Print the planned tables and the power of the planned tests; says whether every table could be made."""
    planned = rehearsal.study.settings.planned
    if not planned:
        print_note("no tables are planned; name them in study.yaml, e.g. planned: [test --what scores --by condition]")
        return True
    made = print_planned_tables(rehearsal.study, planned)
    rows = power_rows(rehearsal.study, made, traits, seed, runs)
    if rows:
        out.print()
        print_table_or_json(rows, False, "Power of the planned tests", "")
    return len(made) == len(planned)


def _visit_reporter(visits: Iterator[int], places: int) -> Callable[[Visit], None]:
    """Says now and then how far a long rehearsal is."""

    def watch(visit: Visit) -> None:
        number = next(visits)
        if number % _REPORT_INTERVAL == 0:
            done_ = f"; {places:,} people are needed" if places else ""
            print_note(f"{number:,} people came{done_}")

    return watch


def _run_rehearsal(whole: Study, traits: CrowdTraits, arrivals: int, seed: int) -> Rehearsal:
    from finecomb.collection.database.store import open_store
    from finecomb.server.rehearsal import RehearsalClock, rehearse, without_people

    clock = RehearsalClock()
    with tempfile.TemporaryDirectory() as temporary:
        store = open_store(
            parse_location(Path(temporary) / DATABASE_FILENAME),
            check_items(without_people(whole)),
            clock,
            durable=False,
        )
        places = sum(place.cell.people for place in store.assignment_plan().cells.values())
        try:
            return rehearse(store, clock, traits, arrivals, seed, _visit_reporter(itertools.count(1), places))
        finally:
            store.close()


def _cell_rows(rehearsal: Rehearsal) -> list[Row]:
    earned = {person.annotator: person.total for person in _earnings(rehearsal)}
    cost: dict[str, float] = {}
    for person in rehearsal.study.iter_annotators():
        cost[person.cell] = cost.get(person.cell, 0.0) + earned.get(person.id, 0.0)
    return [
        {
            "cell": state.cell.name,
            "needed": state.cell.people,
            "accepted": state.accepted,
            "rejected": state.excluded,
            "left": state.gone + state.working,
            "pay": state.cell.pay,
            "cost": round(cost.get(state.cell.name, 0.0), 2),
        }
        for state in rehearsal.states
    ]


def _outcome_rows(rehearsal: Rehearsal) -> list[Row]:
    outcomes = Counter(visit.outcome for visit in rehearsal.visits)
    return [{"outcome": outcome, "people": count} for outcome, count in outcomes.items()]


def _earnings(rehearsal: Rehearsal) -> list[pay_rules.Earnings]:
    study = rehearsal.study
    protocol = study.protocols[study.settings.protocols[0]] if study.settings.protocols else study.protocol()
    return pay_rules.compute_earnings(study, (), protocol)


def _rehearsal_notes(rehearsal: Rehearsal, money: str) -> list[str]:
    """What the rehearsal says in words: people, cost, pay per hour, and what screening would have noticed."""
    came = [visit for visit in rehearsal.visits if visit.annotator]
    rejected = {visit.annotator for visit in came if visit.rejected}
    cost = pay_rules.cost(rehearsal.study.settings, _earnings(rehearsal))
    rate = f", {money} {cost.per_hour:.2f} an hour (median)" if cost.per_hour is not None else ""
    left = sum(visit.outcome == "left" for visit in came)
    share = f" ({len(rejected) / len(came):.1%})" if came else ""
    return [
        f"{len(came):,} people came: {len(rejected):,} rejected{share}, {left:,} left before the end",
        f"cost: {money} {cost.total:,.2f} with fees{rate}; rejected people are paid too",
    ]
