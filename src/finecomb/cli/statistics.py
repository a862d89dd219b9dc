"""Commands about numbers: measure, agree, test, power."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from finecomb import formats, protocols
from finecomb.agreement.agree import FAMILIES
from finecomb.agreement.agree import MEASURES as AGREEMENTS
from finecomb.agreement.agree import agree as agreed
from finecomb.agreement.comment_codes import coder_agreement, comment_codes
from finecomb.agreement.gamma.measured import GammaSettings
from finecomb.agreement.human_or_machine import human_or_machine, score_histogram, score_tests
from finecomb.cli.filters import (
    Annotators,
    BackOff,
    By,
    Draws,
    Drop,
    Kinds,
    Labels,
    Merge,
    Protocol,
    Rounds,
    Seed,
    Tokens,
    Where,
    filters,
    names,
)
from finecomb.cli.shared import AsJson, From, StudyPath, app, counted, done, err, out, read, say
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.estimate import Finding
from finecomb.core.records import Annotator
from finecomb.core.study import Study
from finecomb.engine.pool import cores
from finecomb.measure.audit import audit_annotations, audited
from finecomb.measure.audit import audit_sample as draw_audit
from finecomb.measure.compare import compare
from finecomb.measure.counts import meta_names
from finecomb.measure.crossed import crossed, pivot
from finecomb.measure.measures import MEASURES
from finecomb.measure.measures import measure as measured
from finecomb.measure.metrics import metrics
from finecomb.measure.overlap import depth, noticed
from finecomb.measure.power import power as planned
from finecomb.measure.power import score_power
from finecomb.measure.ratings import count_rating
from finecomb.measure.variation import variation
from finecomb.measure.view import View, view
from finecomb.people.trust import trust
from finecomb.report.tables import as_json, finding_rows, print_rows, rows_of

Level = Annotated[
    Literal["token", "char", "sentence", "segment", "document", "item"],
    typer.Option(help="What is counted as marked or not; `item`: marks that belong together."),
]
T = TypeVar("T")
OtherStudy = Annotated[
    Path | None, typer.Option("--audit", help="A study with `audit` verdicts on this one's marks.", show_default=False)
]


def _print(findings: Sequence[Finding], as_json_: bool, title: str) -> None:
    """A table with the signature that its rows share below it, or one JSON object."""
    rows, signature = finding_rows(findings)
    if as_json_:
        typer.echo(as_json(rows, signature))
        return
    print_rows(out, rows, title, "Nothing to show.")
    if signature:
        say(f"{signature} (95% intervals; with --json each row adds what is particular to it)")


def _default_by(seen: View, by: str) -> list[str]:
    """What was asked, else `model` where documents have it."""
    return names(by) or (["model"] if "model" in meta_names(seen.study) else [])


def _known(wanted: Sequence[str], known: Sequence[str]) -> None:
    for name in wanted:
        if name not in known:
            raise FinecombError(f"no measure is called {name!r}{did_you_mean(name, known)}")


SPECIAL = ("variation", "depth", "noticed", "count-rating", "crossed")


@app.command()
def measure(
    study: StudyPath,
    measures: Annotated[
        str, typer.Option("--measure", "-m", help=f"With commas: {', '.join([*MEASURES, *SPECIAL])}.")
    ] = "coverage,count",
    by: By = "",
    labels: Labels = None,
    drop: Drop = None,
    where: Where = None,
    back_off: BackOff = "label",
    merge: Merge = None,
    protocol: Protocol = "",
    annotators: Annotators = None,
    kinds: Kinds = None,
    rounds: Rounds = "first",
    unit: Annotated[
        Literal["token", "char", "sentence", "segment", "document"], typer.Option(help="What is covered.")
    ] = "token",
    tokens: Tokens = "words",
    overlap: Annotated[
        Literal["add", "union"], typer.Option(help="A token in two marks counts twice, or once.")
    ] = "add",
    average: Annotated[
        Literal["annotation", "document", "pooled"],
        typer.Option(help="Mean over annotations, mean of document means, or all tokens in one pot."),
    ] = "annotation",
    antecedents: Annotated[bool, typer.Option(help="Count antecedents as covered too.")] = False,
    missing: Annotated[
        Literal["undefined", "leave-out"], typer.Option(help="Marks without severity or weight: no value, or left out.")
    ] = "undefined",
    target: Annotated[float | None, typer.Option(help="Test each value against this one.", show_default=False)] = None,
    sizes: Annotated[str, typer.Option(help="For variation: numbers of documents.")] = "25,50,100",
    replace: Annotated[bool, typer.Option(help="For variation: draw documents with replacement.")] = True,
    question: Annotated[str, typer.Option(help="For count-rating: the document's question.")] = "rating",
    normalise: Annotated[
        Literal["column", "label"], typer.Option(help="For crossed: shares of each column, or of each label.")
    ] = "column",
    grid: Annotated[bool, typer.Option("--grid", help="With two --by columns: one across, one down.")] = False,
    audit: OtherStudy = None,
    audit_sample: Annotated[
        int | None,
        typer.Option(
            "--audit-sample",
            min=1,
            help="Draw so many marks of each label and system to be judged.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="For --audit-sample: the study to write.", show_default=False)
    ] = None,
    resample: Annotated[
        Literal["documents", "two-way"],
        typer.Option(help="Intervals over documents, or over documents and annotators."),
    ] = "documents",
    draws: Draws = 1000,
    seed: Seed = 0,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """How often and how much: coverage, counts, rates, scores, by label and by system, each with its interval.

    Examples: `finecomb measure demo-study --by model` ·
    `finecomb measure demo-study --measure coverage --drop grammar-usage:1 --overlap union --tokens whitespace` ·
    `finecomb measure demo-study --measure variation --sizes 4,8,16`
    """
    chosen = filters(protocol, labels, drop, where, annotators, kinds, rounds, back_off, merge)
    whole = read(study, from_)
    seen = view(whole, chosen)
    asked = names(measures)
    _known(asked, [*MEASURES, *SPECIAL])
    columns = _default_by(seen, by)
    if audit_sample:
        _draw_audit(whole, seen, audit_sample, columns, output, seed)
        return
    plain = [name for name in asked if name in MEASURES]
    found: list[Finding] = []
    if plain:
        found += measured(
            seen, plain, columns, unit=unit, tokens=tokens, overlap=overlap, antecedents=antecedents, average=average,
            missing=missing, target=target, resample=resample, draws=draws, seed=seed,
        )  # fmt: skip
    special: dict[str, Callable[[], list[Finding]]] = {
        "variation": lambda: variation(seen, _numbers(sizes), columns, replace=replace, draws=draws, seed=seed),
        "depth": lambda: depth(seen, columns, tokens=tokens, draws=draws, seed=seed),
        "noticed": lambda: noticed(seen, columns, tokens=tokens, draws=draws, seed=seed),
        "count-rating": lambda: count_rating(seen, question, draws=draws, seed=seed),
        "crossed": lambda: crossed(
            seen, columns[0] if columns else "topic", normalise=normalise, draws=draws, seed=seed
        ),
    }
    for name in asked:
        found += special[name]() if name in special else []
    if audit:
        found += audited(seen, read(audit), columns, draws=draws, seed=seed)
    if grid and not as_json_:
        _print_grid(found, columns)
    else:
        _print(found, as_json_, "Measures")


def _print_grid(found: Sequence[Finding], columns: Sequence[str]) -> None:
    """Each measure of all marks together as a grid, as for decoding settings."""
    if len(columns) < 2:
        raise FinecombError("--grid needs two columns, e.g. --by temperature,top_p")
    whole = [finding for finding in found if finding.columns["label"] == "any"]
    for name in dict.fromkeys(str(finding.columns["measure"]) for finding in whole):
        own = [finding for finding in whole if finding.columns["measure"] == name]
        print_rows(out, rows_of(pivot(own, list(columns[:-1]), columns[-1])), f"{name}, {columns[-1]} across")


def _draw_audit(whole: Study, seen: View, count: int, columns: Sequence[str], output: Path | None, seed: int) -> None:
    """Write the study with drafts of an audit in it: one annotation about each mark drawn, still without a verdict."""
    if output is None:
        raise FinecombError("--audit-sample needs -o: the study to write")
    protocol, auditor = protocols.shipped("audit"), Annotator(id="auditor", kind="human")
    sample = draw_audit(seen, count, columns, seed)
    drafts = audit_annotations(sample, auditor.id, protocol.id)
    formats.save(itertools.chain(whole.items(), [protocol, auditor], drafts), output)
    done(output, f"{counted(len(sample), 'mark')} to be judged by {auditor.id!r} under {protocol.id}")


def _numbers(text: str) -> list[int]:
    try:
        return [int(each) for each in names(text)]
    except ValueError:
        raise FinecombError(f"{text!r}: expected whole numbers with commas, e.g. 25,50,100") from None


@app.command()
def agree(
    study: StudyPath,
    measures: Annotated[
        str, typer.Option("--measure", "-m", help=f"With commas: {', '.join(AGREEMENTS)}.")
    ] = "alpha,two-agree",
    level: Level = "token",
    by: By = "",
    who: Annotated[bool, typer.Option("--who", help="Whom to trust: each annotator against the rest.")] = False,
    labels: Labels = None,
    drop: Drop = None,
    where: Where = None,
    back_off: BackOff = "label",
    merge: Merge = None,
    protocol: Protocol = "",
    annotators: Annotators = None,
    kinds: Kinds = None,
    rounds: Rounds = "first",
    tokens: Tokens = "words",
    boundaries: Annotated[
        Literal["marked", "union"], typer.Option(help="Spans as marked, or widened to the union of those that overlap.")
    ] = "marked",
    align: Annotated[str, typer.Option(help="For items: by source `item`, by `overlap`, or by `gamma`.")] = "item",
    convention: Annotated[str, typer.Option(help="For items: which ratings count; see the docs on kappa.")] = "marked",
    question: Annotated[str, typer.Option(help="Agreement on the answers to this question.", show_default=False)] = "",
    overlap: Annotated[
        Literal["add", "union"], typer.Option(help="For f1: overlapping marks add up, or count once.")
    ] = "add",
    gamma: Annotated[
        list[str] | None,
        typer.Option(
            "--gamma",
            help="For gamma: NAME=VALUE, e.g. sampler=statistical or precision=0.02; may be repeated.",
            show_default=False,
        ),
    ] = None,
    draws: Draws = 1000,
    seed: Seed = 0,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """How far annotators agree, by label: alpha, two-agree, kappas, pairwise F1, gamma, each under its own name.

    Examples: `finecomb agree demo-study` · `finecomb agree demo-study --measure f1,kappa-cohen --level char` ·
    `finecomb agree demo-study --measure gamma,gamma-cat --gamma precision=0.02` · `finecomb agree demo-study --who`
    """
    chosen = filters(protocol, labels, drop, where, annotators, kinds, rounds, back_off, merge)
    seen = view(read(study, from_), chosen)
    if who:
        _print(trust(seen, tokens=tokens, seed=seed), as_json_, "Whom to trust")
        return
    asked = names(measures)
    _known(asked, [*AGREEMENTS, *FAMILIES])
    found = agreed(
        seen, asked, level, tokens, by=names(by), question=question, overlap=overlap, boundaries=boundaries,
        align=align, convention=convention, gamma=GammaSettings.parsed(gamma or ()), workers=cores(), watch=_texts,
        draws=draws, seed=seed,
    )  # fmt: skip
    _print(found, as_json_, "Agreement")


def _texts(done: Iterable[T], total: int) -> Iterator[T]:
    """Pass results on with a bar on standard error, shown only to people."""
    columns = (BarColumn(), TextColumn("{task.completed:,} of {task.total:,} texts"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        yield from progress.track(done, total=total)


@app.command("test")
def run_tests(
    study: StudyPath,
    what: Annotated[
        Literal["systems", "metrics", "human-or-machine", "scores", "histogram", "codes", "coders"],
        typer.Option(
            "--what",
            "-w",
            help="Systems compared, scalar metrics against people, or a table of a human-or-machine study.",
        ),
    ] = "systems",
    by: By = "",
    statistic: Annotated[
        str, typer.Option("--measure", "-m", help="For systems: a measure, or answer:NAME.")
    ] = "coverage",
    pairing: Annotated[
        Literal["auto", "yes", "no"], typer.Option("--paired", help="Pair texts of one prompt.")
    ] = "auto",
    key: Annotated[str, typer.Option(help="Document meta that pairs texts.", show_default=False)] = "",
    question: Annotated[str, typer.Option(help="For metrics: the question that people answered.")] = "rating",
    correction: Annotated[Literal["holm", "bonferroni", "none"], typer.Option(help="For many comparisons.")] = "holm",
    each: Annotated[bool, typer.Option("--each-label", help="For systems: every label too.")] = False,
    labels: Labels = None,
    drop: Drop = None,
    where: Where = None,
    back_off: BackOff = "label",
    protocol: Protocol = "",
    annotators: Annotators = None,
    kinds: Kinds = None,
    tokens: Tokens = "words",
    overlap: Annotated[
        Literal["add", "union"], typer.Option(help="A token in two marks counts twice, or once.")
    ] = "add",
    draws: Draws = 10_000,
    seed: Seed = 0,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Are two systems different? Can people tell human from machine? Permutation and classical tests, corrected.

    Examples: `finecomb test demo-study --measure count` ·
    `finecomb test turing-study --what human-or-machine --by domain`
    """
    whole = read(study, from_)
    if what == "metrics":
        given = names(by)[0] if names(by) else "model"
        if draws > 1000:
            say("metrics are resampled 1,000 times; every draw ranks all texts again")
        _print(metrics(whole, question, given, min(draws, 1000), seed), as_json_, "Metrics against people")
        return
    if what in ("codes", "coders"):
        table = comment_codes(whole, names(by), draws=draws, seed=seed) if what == "codes" else coder_agreement(whole)
        _print(table, as_json_, "Comment codes")
        return
    seen = view(whole, filters(protocol, labels, drop, where, annotators, kinds, back_off=back_off))
    columns = names(by)
    if seen.study.annotations.is_empty():
        raise FinecombError(f"{study}: has no annotations to test")
    if what == "systems" and len(columns) > 1:
        raise FinecombError(f"--by {by}: systems are told apart by one column; choose others with --where")
    if what == "systems":
        rows = ["any", *(seen.categories if each else ())]
        found = compare(
            seen,
            columns[0] if columns else "model",
            statistic,
            rows,
            pairing,
            key,
            correction,
            tokens,
            overlap,
            draws,
            seed,
        )
    elif what == "scores":
        found = score_tests(seen, columns[0] if columns else "condition", columns[1:])
    elif what == "histogram":
        found = score_histogram(seen, columns or ("model", "domain"))
    else:
        found = human_or_machine(seen, columns or ("model", "domain"), draws=draws, seed=seed)
    _print(found, as_json_, what.capitalize())


@app.command()
def power(
    study: Annotated[
        Path | None,
        typer.Argument(help="A pilot; without one, a human-or-machine study is planned.", show_default=False),
    ] = None,
    measure_: Annotated[str, typer.Option("--measure", "-m", help="What will be measured.")] = "coverage",
    label: Annotated[str, typer.Option(help="Of which label.")] = "any",
    half_width: Annotated[
        float | None, typer.Option(help="Documents for an interval this wide to each side.", show_default=False)
    ] = None,
    difference: Annotated[
        float | None, typer.Option(help="Documents to find a difference of this size.", show_default=False)
    ] = None,
    budget: Annotated[
        int | None, typer.Option(help="Annotations to spread: ten annotators or three?", show_default=False)
    ] = None,
    annotators: Annotated[str, typer.Option(help="Numbers of annotators to try.")] = "1,2,3,5,10",
    wanted: Annotated[float, typer.Option(help="Wanted chance of finding the difference.")] = 0.8,
    evaluators: Annotated[int, typer.Option(help="Without a pilot: how many evaluators.")] = 130,
    texts: Annotated[int, typer.Option(help="Without a pilot: texts each.")] = 5,
    protocol: Protocol = "",
    runs: Annotated[int, typer.Option(help="Simulated studies.")] = 2000,
    seed: Seed = 0,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """How many documents and annotators: from a pilot's variance components, by simulation.

    Examples: `finecomb power demo-study --half-width 0.05` · `finecomb power demo-study --budget 100` ·
    `finecomb power`
    """
    if study is None:
        _print(score_power(evaluators=evaluators, texts=texts, runs=runs, seed=seed), as_json_, "Power")
        return
    pilot = view(read(study, from_), filters(protocol))
    found = planned(
        pilot, measure_, label, half_width, difference, budget, _numbers(annotators), wanted, runs=runs, seed=seed
    )
    _print(found, as_json_, "Planning")
