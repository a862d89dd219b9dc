"""The command about structure: criticize."""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import polars as pl
import typer
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from finecomb import formats
from finecomb.cli.filters import Draws, Seed, Where, names, pair, part_of
from finecomb.cli.shared import AsJson, Force, From, app, counted, err, out, print_table, read, say
from finecomb.core.errors import FinecombError, did_you_mean, shorten
from finecomb.core.estimate import Signature
from finecomb.core.records import Document
from finecomb.core.study import Study
from finecomb.critics import human_judgments, synthetic
from finecomb.critics.base import Critic, Outlier, Statistic, annotated, outliers, parts
from finecomb.critics.comparison import Comparison, compare, corrected, dropped_words, unused_words
from finecomb.critics.criticism import Criticism, criticism, fitted, is_for_fitting, refuse_overlap, scores_by_system
from finecomb.critics.progress import track, watched
from finecomb.critics.storage import (
    CRITICS,
    checked_options,
    code_needed,
    imported,
    load,
    named,
    option_names,
    save,
)
from finecomb.report.tables import Row, as_json, rows_of

_SHOWN = 20  # outliers printed
_AROUND = 30  # characters on each side of a short step in an excerpt


@app.command()
def criticize(
    real: Annotated[
        Path | None, typer.Argument(help="Real documents, in any format that can be read.", show_default=False)
    ] = None,
    generated: Annotated[
        list[Path] | None, typer.Argument(help="Generated documents, one file a system.", show_default=False)
    ] = None,
    critic: Annotated[
        str,
        typer.Option(
            "--critic",
            "-c",
            help="With commas: sections, coreference, topics, languages, a saved critic's folder, module:Class, or "
            "module:function.",
        ),
    ] = "sections",
    fit: Annotated[
        Path | None,
        typer.Option(
            help="Real documents to fit on; without it, a part of REAL that takes no further part.", show_default=False
        ),
    ] = None,
    fit_share: Annotated[float, typer.Option(min=0.05, max=0.95, help="How large that part is.")] = 0.5,
    by: Annotated[
        str,
        typer.Option(
            "--by", help="Document meta that tells systems apart within a file, e.g. model.", show_default=False
        ),
    ] = "",
    stat: Annotated[
        Statistic | None,
        typer.Option("--stat", help="T(x): nll, plugin or kl; without it, the critic's own.", show_default=False),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE: an option of the critic; may be repeated.", show_default=False),
    ] = None,
    smoothing: Annotated[str, typer.Option(help="For sections: auto or add:X.", show_default=False)] = "",
    merge_repeats: Annotated[
        bool, typer.Option("--merge-repeats", help="For sections: join equal neighbours.")
    ] = False,
    code: Annotated[
        list[str] | None,
        typer.Option(
            "--code",
            help="module:name of your own code that a saved critic needs; nothing a folder names is run without it.",
            show_default=False,
        ),
    ] = None,
    prior: Annotated[
        Literal["markov", "ngram", "gaussian", "dirichlet"], typer.Option(help="For module:function: over its labels.")
    ] = "markov",
    self_test: Annotated[bool, typer.Option("--synthetic", help="The self-test on a process that is known.")] = False,
    show: Annotated[
        str, typer.Option(help="systems, outliers, parts, text, correlations, incoherent, or a table of the critic.")
    ] = "systems",
    document: Annotated[str, typer.Option(help="For parts and text: which document.", show_default=False)] = "",
    beside: Annotated[
        Path | None,
        typer.Option(help="A CSV with a column `system`: other figures to print beside.", show_default=False),
    ] = None,
    readers: Annotated[
        Path | None,
        typer.Option("--people", help="A study with the sections protocol: what readers say.", show_default=False),
    ] = None,
    correction: Annotated[
        Literal["holm", "bonferroni", "none"], typer.Option(help="For many systems and critics.")
    ] = "holm",
    draws: Draws = 1000,
    seed: Seed = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write all tables and figures here.", show_default=False)
    ] = None,
    save_to: Annotated[
        Path | None, typer.Option("--save", help="Keep the fitted critic here.", show_default=False)
    ] = None,
    where: Where = None,
    force: Force = False,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Structure that no single reader sees: do sections, references, topics come together as in real text?

    Examples: `finecomb criticize real.jsonl a.jsonl b.jsonl --critic sections,topics` ·
    `finecomb criticize real.jsonl generated.jsonl --by model --show outliers` · `finecomb criticize --synthetic`
    """
    given = dict(pair("--set", option) for option in set_ or ())
    given |= {"smoothing": smoothing} if smoothing else {}
    given |= {"merge_repeats": "true"} if merge_repeats else {}
    if self_test:
        with _bars():
            _self_test(given, seed, as_json_)
        return
    if real is None or not generated:
        raise FinecombError("give REAL and at least one file of GENERATED documents, or --synthetic")
    _refuse_existing(output, save_to, force)
    corpora = _Corpora(real, generated, fit, fit_share, by, seed, from_, tuple(where or ()))
    wanted = [_choice(name, prior, code or ()) for name in names(critic)]
    _refuse_unneeded_code(code or (), wanted)
    with _bars():
        ready = zip(wanted, _critics(wanted, corpora, given), strict=True)
        criticisms = [corpora.criticism(fitted_critic, isinstance(kind, Critic), stat) for kind, fitted_critic in ready]
        compared = [compare(result.real, result.systems, correction, draws, seed) for result in criticisms]
    rows = corrected(itertools.chain.from_iterable(compared), correction)
    tables = _tables(criticisms, rows, read(readers) if readers else None, beside, corpora)
    if show not in tables and show not in _OF_ONE:
        raise FinecombError(f"--show {show}: there is no such table{did_you_mean(show, [*tables, *_OF_ONE])}")
    title, table_rows = show.capitalize(), tables.get(show, list)()
    if show in _OF_ONE:
        system, chosen = _wanted_document(criticisms[0], corpora, document)
        title += f" of {chosen.id} in {system}"
        table_rows = [row for result in criticisms for row in _OF_ONE[show](result.critic, chosen, stat)]
    signature = Signature.of(
        statistic="criticize", critic=critic, stat=stat, by=by or None, fit="corpus" if fit else fit_share,
        where=" and ".join(where or ()) or None, correction=correction, draws=draws, seed=seed, **given,
    )  # fmt: skip
    _print(table_rows, as_json_, title, str(signature), _notes(criticisms, wanted), running=show == "text")
    if output:
        _write(criticisms, {name: make() for name, make in tables.items()}, output)
    if save_to:
        _save(criticisms, save_to)


def _refuse_existing(output: Path | None, save_to: Path | None, force: bool) -> None:
    """Say so before the work, not after it."""
    for folder in (output, save_to):
        if folder and folder.exists() and not force:
            raise FinecombError(f"{folder}: is there already; --force writes into it")


Tables = dict[str, Callable[[], Sequence[Row]]]
"""By name, made when they are wanted."""


@dataclass(frozen=True, slots=True)
class _Corpora:
    """Where documents come from; they are read as streams, once for each critic, and only those fitted on are kept."""

    real: Path
    generated: Sequence[Path]
    fit: Path | None
    share: float
    by: str
    seed: int
    from_: str
    where: tuple[str, ...] = ()
    """Conditions on generated documents; real ones are what they are compared with, and stay."""

    def for_fitting(self) -> list[Document]:
        """What critics are fitted on."""
        if self.fit is None:
            source = track(self._read(self.real), "reading documents to fit on")
            return [document for document in source if is_for_fitting(document.id, self.share, self.seed)]
        documents = list(track(self._read(self.fit), "reading documents to fit on"))
        refuse_overlap(documents, self._read(self.real))
        return documents

    def held_out(self, whole: bool) -> Iterator[Document]:
        """Real documents that take no part in fitting; all of them when the critic came fitted."""
        whole = whole or self.fit is not None
        return (
            document
            for document in self._read(self.real)
            if whole or not is_for_fitting(document.id, self.share, self.seed)
        )

    def criticism(self, critic: Critic, whole: bool, stat: Statistic | None) -> Criticism:
        """Scores of all of them."""
        if self.by:
            real_scores = criticism(critic, self.held_out(whole), {}, stat)
            documents = itertools.chain.from_iterable(map(self._read, self.generated))
            return replace(real_scores, systems=scores_by_system(critic, documents, self.by, stat))
        systems = {path.stem: self._read(path) for path in self.generated}
        if len(systems) < len(self.generated):
            raise FinecombError("two files of generated documents have the same name; tell systems apart with --by")
        return criticism(critic, self.held_out(whole), systems, stat)

    def documents(self) -> Iterator[tuple[str, Document]]:
        """Every generated document with its system, then every real one."""
        for path in self.generated:
            yield from ((self._system(document, path), document) for document in self._read(path))
        yield from (("real", document) for document in self._read(self.real))

    def _system(self, document: Document, path: Path) -> str:
        return str(document.meta[self.by]) if self.by else path.stem

    def _read(self, path: Path) -> Iterator[Document]:
        if self.where and path in self.generated:
            return part_of(formats.read(path, self.from_), self.where).iter_documents()
        return (item for item in formats.stream(path, self.from_) if isinstance(item, Document))


UnfittedCritic = tuple[str, dict[str, str]]
"""A critic to be fitted, by name, with what the name itself says of its options."""


def _critics(
    wanted: Sequence[UnfittedCritic | Critic], corpora: _Corpora, given: Mapping[str, str]
) -> Iterator[Critic]:
    """Every critic, fitted."""
    unfitted = [choice for choice in wanted if isinstance(choice, tuple)]
    _check_options(unfitted, given)
    documents = corpora.for_fitting() if unfitted else []
    for choice in wanted:
        yield _fitted(choice, documents, corpora.seed, given) if isinstance(choice, tuple) else choice


def _fitted(wanted: UnfittedCritic, documents: Sequence[Document], seed: int, given: Mapping[str, str]) -> Critic:
    """A critic fitted with those of the options that it has."""
    name, extra = wanted
    options = option_names(named(name).fit)
    return fitted(
        name, documents, seed, {option: value for option, value in given.items() if option in options} | extra
    )


def _check_options(wanted: Sequence[UnfittedCritic], given: Mapping[str, str]) -> None:
    """Every option goes to the critics that have it, and some critic must."""
    options = [option for name, _ in wanted for option in option_names(named(name).fit)]
    for option in given:
        if option not in options:
            raise FinecombError(f"--set {option}: no critic that is to be fitted has it{did_you_mean(option, options)}")


def _choice(name: str, prior: str, code: Sequence[str]) -> UnfittedCritic | Critic:
    """A critic to be fitted, or one that is fitted already."""
    if name not in CRITICS and (Path(name) / "critic.json").exists():
        return load(Path(name), code)
    if ":" in name and not isinstance(imported(name, name), type):
        return "own", {"function": name, "kind": prior}
    return name, {}


def _refuse_unneeded_code(code: Sequence[str], wanted: Sequence[UnfittedCritic | Critic]) -> None:
    needed = [name for choice in wanted if isinstance(choice, Critic) for name in code_needed(choice)]
    for name in code:
        if name not in needed:
            raise FinecombError(f"--code {name}: no saved critic among those named with --critic needs it")


# --- what is shown -----------------------------------------------------------------------------------------------


def _tables(
    criticisms: Sequence[Criticism],
    rows: Sequence[Comparison],
    readers: Study | None,
    beside: Path | None,
    corpora: _Corpora,
) -> Tables:
    """Every table there is, by name."""
    figures = human_judgments.figures_from_table(pl.read_csv(beside), str(beside)) if beside else {}
    human = human_judgments.coherent_shares(readers, corpora.by or "model") if readers else {}
    columns = figures | ({"people": human} if human else {})
    tables: Tables = {
        "systems": lambda: human_judgments.with_figures((row.row() for row in rows), columns),
        "outliers": lambda: [row for result in criticisms for row in _outlier_rows(result, corpora)],
    }
    if readers:
        tables["correlations"] = lambda: human_judgments.correlations(
            human_judgments.latent_figures(rows) | figures, human
        )
        tables["incoherent"] = lambda: rows_of(human_judgments.incoherent_organisations(readers))
    for result in criticisms:
        for name, table in result.critic.tables(result.real, result.systems).items():
            tables[name] = functools.partial(rows_of, table)
    return tables


def _outlier_rows(result: Criticism, corpora: _Corpora) -> Iterator[Row]:
    """The most unlikely documents of each system, with a piece of each (the paper's Table 14)."""
    ranked = {
        (system, outlier.id): outlier for system in result.systems for outlier in _outliers(result, system)[:_SHOWN]
    }
    documents = {
        (system, document.id): document for system, document in corpora.documents() if (system, document.id) in ranked
    }
    for (system, id), outlier in ranked.items():
        yield {
            "critic": result.critic.name, "system": system, "document": id, "nats": outlier.value,
            "nats per step": outlier.per_step, "p": outlier.p, "text": _excerpt(result, documents[system, id]),
        }  # fmt: skip


def _outliers(result: Criticism, system: str) -> list[Outlier]:
    return outliers(result.real, result.systems[system])


def _excerpt(result: Criticism, document: Document) -> str:
    """The text of its most unlikely step, with some words around it if it is short; else the beginning."""
    steps = [step for step in parts(result.critic, document, result.real.statistic) if step.text]
    worst = max(steps, key=lambda step: step.nll, default=None)
    if worst is None or worst.start is None or worst.end is None:
        return shorten(document.text)
    if len(worst.text) > _AROUND:
        return shorten(worst.text)
    before, after = document.text[: worst.start][-_AROUND:], document.text[worst.end :][:_AROUND]
    return " ".join(f"... {before}[{worst.text}]{after} ...".split())


def _wanted_document(result: Criticism, corpora: _Corpora, wanted: str) -> tuple[str, Document]:
    """The document asked for and its system; without a wish the most unlikely one of the first system."""
    id = wanted or next((outlier.id for outlier in _outliers(result, next(iter(result.systems)))), "")
    document = next(((system, candidate) for system, candidate in corpora.documents() if candidate.id == id), None)
    if document is None:
        raise FinecombError(f"--document {id}: no document has this id")
    return document


def _part_rows(critic: Critic, document: Document, stat: Statistic | None) -> Iterator[Row]:
    """The steps of one document."""
    for step in parts(critic, document, stat):
        yield {
            "critic": critic.name, "step": step.step, "text": shorten(step.text, 32), "state": step.state,
            "nats": step.nll, "likeliest": step.likeliest, "its nats": step.likeliest_nll,
        }  # fmt: skip


def _text_rows(critic: Critic, document: Document, stat: Statistic | None) -> Iterator[Row]:
    """One document with its steps in place."""
    steps = parts(critic, document, stat)
    if not any(step.text for step in steps):
        raise FinecombError(f"--show text: steps of the {critic.name} critic have no place in the text; see outliers")
    yield {"critic": critic.name, "document": document.id, "text": annotated(document.text, steps)}


_OF_ONE: dict[str, Callable[[Critic, Document, Statistic | None], Iterator[Row]]] = {
    "parts": _part_rows,
    "text": _text_rows,
}
"""What can be shown of one document."""


def _notes(criticisms: Sequence[Criticism], wanted: Sequence[UnfittedCritic | Critic]) -> list[str]:
    """What was lost, and what nobody can check."""
    notes = []
    for result, kind in zip(criticisms, wanted, strict=True):
        sides = {"real": result.real, **result.systems}
        notes += [words for side, scores in sides.items() if (words := dropped_words(side, scores))]
        notes += [words] if (words := unused_words(result.critic)) else []
        if isinstance(kind, Critic):
            notes.append(
                f"the {kind.name} critic came fitted: make sure that it was not fitted on these real documents"
            )
    return notes


def _print(
    rows: Sequence[Row], as_json_: bool, title: str, signature: str, notes: Sequence[str], running: bool = False
) -> None:
    """As JSON, as a table, or as `running` text."""
    if as_json_:
        typer.echo(as_json(rows, signature, notes))
        return
    if running:
        for row in rows:
            out.print(f"{title} ({row['critic']} critic)\n{row['text']}", soft_wrap=True)
    else:
        print_table(rows, title)
    say(f"{signature} (95% intervals; nats)")
    for note in notes:
        say(note)


def _write(criticisms: Sequence[Criticism], tables: Mapping[str, Sequence[Row]], folder: Path) -> None:
    """All tables as CSV and all figures as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        name: svg for result in criticisms for name, svg in result.critic.figures(result.real, result.systems).items()
    }
    for name, rows in tables.items():
        pl.DataFrame(list(rows), infer_schema_length=None).write_csv(folder / f"{name}.csv")
    for name, svg in figures.items():
        (folder / f"{_file_name(name)}.svg").write_text(svg, encoding="utf-8")
    say(f"{folder}: {counted(len(tables), 'table')} and {counted(len(figures), 'figure')} written")


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name)


def _save(criticisms: Sequence[Criticism], folder: Path) -> None:
    """The fitted critic, or each of several in a folder of its name."""
    for result in criticisms:
        place = folder if len(criticisms) == 1 else folder / result.critic.name
        save(result.critic, place)
        code = "".join(f" --code {name}" for name in code_needed(result.critic))
        say(f"{place}: the fitted {result.critic.name} critic; use it with --critic {place}{code}")


def _self_test(given: Mapping[str, str], seed: int, as_json_: bool) -> None:
    """The paper's Table 1 with models that anybody can fit."""
    options = checked_options(synthetic.self_test, given, "synthetic")
    rows = [row.row() for row in synthetic.self_test(np.random.default_rng(seed), **options)]
    notes = [
        "paper: word-level and Latent PPL of its Table 1; 2.28, 64.80 (66.80 in its text) is a transformer's",
        "Latent PPL is over transitions between valid segments; the paper's script drops texts with a bad one",
    ]
    _print(rows, as_json_, "Self-test", str(Signature.of(statistic="synthetic", seed=seed, **given)), notes)


@contextlib.contextmanager
def _bars() -> Iterator[None]:
    """Progress of long work on standard error, shown only to people."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,}"))
    with Progress(*columns, TimeElapsedColumn(), console=err, transient=True, disable=not err.is_terminal) as bars:

        def watch(items: Iterable[object], words: str, total: int | None) -> Iterator[object]:
            task = bars.add_task(words, total=total)
            for item in items:
                yield item
                bars.advance(task)
            bars.remove_task(task)

        with watched(watch):
            yield
