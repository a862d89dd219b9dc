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
from finecomb.cli.filters import Draws, Seed, Where, filter_study, parse_pair, split_names
from finecomb.cli.options import NoOptions, with_options
from finecomb.cli.shared import (
    AsJson,
    Force,
    From,
    app,
    err,
    format_count,
    out,
    print_note,
    print_signature,
    print_table,
    read,
    resume_note,
)
from finecomb.core.errors import FinecombError, did_you_mean, shorten
from finecomb.core.estimate import Signature
from finecomb.core.options import OptionValues, reject_unknown_options
from finecomb.core.records import Document
from finecomb.core.study import Study
from finecomb.corpora.critics import human_judgements, synthetic
from finecomb.corpora.critics.base import Critic, Statistic, render_annotated_text, state_steps
from finecomb.corpora.critics.comparison import (
    Comparison,
    combine_splits,
    compare,
    contrast_systems,
    correct_p_values,
    describe_dropped,
    describe_unused,
    domain_warning,
)
from finecomb.corpora.critics.critic_certainty import certainty_row
from finecomb.corpora.critics.critic_power import PowerPoint, describe_power, power_curve
from finecomb.corpora.critics.criticism import (
    Criticism,
    fit_critic,
    is_for_fitting,
    score_real_and_systems,
    scores_by_system,
    unseen_real_documents,
)
from finecomb.corpora.critics.diversity import diversity_rows, never_used_rows
from finecomb.corpora.critics.human_judgements import REAL
from finecomb.corpora.critics.outliers import Outlier, outliers
from finecomb.corpora.critics.progress import track, use_progress_watcher
from finecomb.corpora.critics.storage import (
    CRITICS,
    critic_class,
    import_attribute,
    load,
    option_names,
    parse_fit_options,
    required_user_code,
    save,
)
from finecomb.corpora.critics.surprising_spans import calibrate_surprises
from finecomb.engine.options import PartitionOptions
from finecomb.engine.partitions import Executor, unfinished_folder
from finecomb.reporting.tables import Row, as_json, frame_rows
from finecomb.statistics.inference.permutation_tests import Correction

_MAX_OUTLIERS = 20  # outliers printed
_EXCERPT_MARGIN = 30  # characters on each side of a short step in an excerpt
_MAX_CALIBRATION_DOCUMENTS = 300  # held-out real documents that say which surprises are usual


@app.command()
@with_options([PartitionOptions])
def criticize(
    values: OptionValues,
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
        str,
        typer.Option(
            help="With commas: systems, contrasts, diversity, unused, outliers, parts, text, correlations, incoherent, "
            "power, certainty, or tables of the critic."
        ),
    ] = "systems",
    document: Annotated[str, typer.Option(help="For parts and text: which document.", show_default=False)] = "",
    system: Annotated[str, typer.Option(help="For parts and text: of which system, or real.", show_default=False)] = "",
    cluster: Annotated[
        str,
        typer.Option(
            help="Document meta, e.g. prompt: documents that share it change sides and are resampled together.",
            show_default=False,
        ),
    ] = "",
    paired: Annotated[
        bool, typer.Option("--paired", help="Compare real and generated documents of one --cluster, or of one id.")
    ] = False,
    splits: Annotated[
        int, typer.Option(min=1, help="Ways to cut REAL into fitting and held-out documents; medians are reported.")
    ] = 1,
    beside: Annotated[
        Path | None,
        typer.Option(help="A CSV with a column `system`: other figures to print beside.", show_default=False),
    ] = None,
    word_ppl: Annotated[
        str,
        typer.Option(help="A causal model, by name or folder: perplexity by words, beside.", show_default=False),
    ] = "",
    mauve: Annotated[
        str,
        typer.Option(help="An encoder, by name or folder: MAUVE beside, where mauve-text is installed."),
    ] = "",
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
    drop: Annotated[list[str] | None, typer.Option("--drop", hidden=True)] = None,
    force: Force = False,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Structure that no single reader sees: do sections, references, topics come together as in real text?

    Examples: `finecomb criticize real.jsonl a.jsonl b.jsonl --critic sections,topics` ·
    `finecomb criticize real.jsonl generated.jsonl --by model --show outliers` ·
    `finecomb criticize real.jsonl --show power,certainty` · `finecomb criticize --synthetic`
    """
    if drop:
        raise FinecombError(
            f"--drop {drop[0]}: leaves out marks, and critics read texts only; choose texts with --where"
        )
    given = dict(parse_pair("--set", option) for option in set_ or ())
    given |= {"smoothing": smoothing} if smoothing else {}
    given |= {"merge_repeats": "true"} if merge_repeats else {}
    if self_test:
        reject_unknown_options(
            values.given, {"--synthetic": NoOptions}, {"REAL and GENERATED documents": PartitionOptions}
        )
        with _show_progress_bars():
            _run_self_test(given, seed, as_json_)
        return
    shows = split_names(show)
    if real is None or not (generated or set(shows) <= set(_CRITIC_TABLES)):
        raise FinecombError(
            "give REAL and at least one file of GENERATED documents, or --synthetic; --show power,certainty needs REAL "
            "alone"
        )
    generated = generated or []
    _refuse_existing(output, save_to, force)
    corpora = _Corpora(real, generated, fit, fit_share, by, seed, from_, cluster, tuple(where or ()))
    wanted = [_resolve_critic(name, prior, code or ()) for name in split_names(critic)]
    _refuse_unneeded_code(code or (), wanted)
    _check_options([choice for choice in wanted if isinstance(choice, tuple)], given)
    _check_table_names(wanted, shows, (document, system), readers is not None)
    _check_splits(wanted, splits)
    _check_files([real, *generated, fit, beside, readers])
    study = read(readers) if readers else None
    figures = human_judgements.metric_values_from_table(pl.read_csv(beside), str(beside)) if beside else {}
    test = _TestSettings(correction, draws, seed, paired)
    figures |= _model_figures(corpora, word_ppl, mauve)
    with values.build_options(PartitionOptions).open_executor(unfinished_folder(output) if output else None) as spread:
        with _show_progress_bars():
            criticisms, rows = _compare_over_splits(wanted, corpora, given, stat, test, splits, save_to, spread)
            tables = _build_tables(criticisms, rows, study, figures, corpora, test)
            ability = _CriticDiagnostics(criticisms, wanted, corpora, stat, spread)
            tables |= {"power": ability.power_rows, "certainty": ability.certainty_rows}
        signature = Signature.from_fields(
            statistic="criticize", critic=critic, stat=stat, by=by or None, fit="corpus" if fit else fit_share,
            cluster=cluster or None, paired=paired or None, splits=splits if splits > 1 else None,
            where=" and ".join(where or ()) or None, word_ppl=word_ppl or None, mauve=mauve or None,
            correction=correction, draws=draws, seed=seed, **given,
        )  # fmt: skip
        notes = (
            resume_note(spread.reused_row_count, "text")
            + _criticism_notes(criticisms, wanted)
            + (describe_power(ability.power_points) if "power" in shows else [])
        )
        for place, name in enumerate(shows, 1):
            title, table_rows = _title_and_rows(name, tables, criticisms, corpora, (document, system), stat)
            ending = (str(signature), notes) if place == len(shows) else ("", [])
            _print_rows(table_rows, as_json_, title, *ending, running=name == "text")
        if output:
            _write_output(criticisms, {name: make() for name, make in tables.items()}, output)


@dataclass(frozen=True, slots=True)
class _TestSettings:
    """How systems are tested."""

    correction: Correction
    draws: int
    seed: int
    paired: bool

    def comparisons(self, result: Criticism) -> list[Comparison]:
        """Systems against real documents."""
        return compare(result.real, result.systems, self.correction, self.draws, self.seed, self.paired)

    def contrast_rows(self, criticisms: Sequence[Criticism]) -> list[Row]:
        """Systems against each other, by every critic."""
        rows = [
            row
            for result in criticisms
            for row in contrast_systems(result.systems, self.correction, self.draws, self.seed)
        ]
        return [row.row() for row in correct_p_values(rows, self.correction)]


@dataclass(frozen=True)
class _CriticDiagnostics:
    """What critics could see, by their own held-out real documents."""

    criticisms: Sequence[Criticism]
    wanted: Sequence[UnfittedCritic | Critic]
    corpora: _Corpora
    stat: Statistic | None
    spread: Executor

    @functools.cached_property
    def power_points(self) -> list[PowerPoint]:
        """Power curves of all critics; the smallest system says how many generated documents there are."""
        return [
            point
            for result, held_out in self._held_out()
            for point in power_curve(
                result.critic, held_out, _smallest_system_size(result), self.stat, self.corpora.seed, spread=self.spread
            )
        ]

    def power_rows(self) -> list[Row]:
        """For `--show power`."""
        return [point.row() for point in self.power_points]

    def certainty_rows(self) -> list[Row]:
        """For `--show certainty`: real documents and every system, by every critic."""
        rows: list[Row] = []
        for result, held_out in self._held_out():
            rows.append(certainty_row(result.critic, REAL, held_out, self.spread))
            documents = sorted(self.corpora.generated_documents(), key=lambda pair: pair[0])
            for system, pairs in itertools.groupby(documents, key=lambda pair: pair[0]):
                rows.append(certainty_row(result.critic, system, [document for _, document in pairs], self.spread))
        return rows

    def _held_out(self) -> Iterator[tuple[Criticism, list[Document]]]:
        for result, choice in zip(self.criticisms, self.wanted, strict=True):
            yield result, self.corpora.unseen_real_documents(result.critic, isinstance(choice, Critic))


def _smallest_system_size(result: Criticism) -> int:
    return min((len(scores.ids) for scores in result.systems.values()), default=0)


def _compare_over_splits(
    wanted: Sequence[UnfittedCritic | Critic],
    corpora: _Corpora,
    given: Mapping[str, str],
    stat: Statistic | None,
    test: _TestSettings,
    splits: int,
    save_to: Path | None,
    spread: Executor,
) -> tuple[list[Criticism], list[Comparison]]:
    """Criticisms by the first split of the real documents, and comparisons over all splits."""
    first: list[Criticism] = []
    compared: list[list[Comparison]] = []
    for number in range(splits):
        part = replace(corpora, seed=corpora.seed + number)
        critics = list(_fit_critics(wanted, part, given))
        if save_to and not number:
            _save_critics(critics, save_to)  # before anything else can fail
        pairs = zip(wanted, critics, strict=True)
        results = [part.score_systems(critic, isinstance(choice, Critic), stat, spread) for choice, critic in pairs]
        if save_to and not number:
            for critic, choice in zip(critics, wanted, strict=True):
                calibrate_surprises(
                    critic, part.unseen_real_documents(critic, isinstance(choice, Critic), _MAX_CALIBRATION_DOCUMENTS)
                )
            _save_critics(critics, save_to, again=True)  # now with what is usual in real documents
        first = first or results
        compared.append([row for result in results for row in test.comparisons(result)])
    return first, combine_splits(compared, test.correction)


def _title_and_rows(
    name: str,
    tables: Tables,
    criticisms: Sequence[Criticism],
    corpora: _Corpora,
    wish: tuple[str, str],
    stat: Statistic | None,
) -> tuple[str, Sequence[Row]]:
    """The title and the rows of what was asked for."""
    if name in _DOCUMENT_TABLES:
        system, chosen = _find_document(criticisms[0], corpora, *wish)
        rows = [row for result in criticisms for row in _DOCUMENT_TABLES[name](result.critic, chosen, stat)]
        return f"{name.capitalize()} of {chosen.id} in {system}", rows
    if name not in tables:
        raise FinecombError(f"--show {name}: there is no such table{did_you_mean(name, [*tables, *_DOCUMENT_TABLES])}")
    return name.capitalize(), tables[name]()


def _model_figures(corpora: _Corpora, word_ppl: str, mauve: str) -> dict[str, dict[str, float]]:
    """Perplexity by words and MAUVE of every system and of real documents, where a model for them is named.

    The MAUVE of real documents is that of one half of them against the other.
    """
    if not (word_ppl or mauve):
        return {}
    from finecomb.corpora.stress import stress_metrics

    texts: dict[str, list[str]] = {}
    for system, document in corpora.documents():
        texts.setdefault(system, []).append(document.text)
    figures: dict[str, dict[str, float]] = {}
    if word_ppl:
        figures["word ppl"] = {
            system: stress_metrics.corpus_perplexity(word_ppl, rows)
            for system, rows in track(texts.items(), "perplexity")
        }
    if mauve:
        real = texts[REAL]
        sides = {system: (real, rows) for system, rows in texts.items()} | {REAL: (real[::2], real[1::2])}
        figures["mauve"] = {
            system: stress_metrics.mauve(mauve, *pair) for system, pair in track(sides.items(), "MAUVE")
        }
    return figures


# --- what cannot be done, found before a critic is fitted --------------------------------------------------------

_CRITIC_TABLES = ("power", "certainty")  # tables about the critic itself
_COMMON_TABLES = ("systems", "contrasts", "diversity", "unused", "outliers", *_CRITIC_TABLES)
_HUMAN_TABLES = ("correlations", "incoherent")


def _check_table_names(
    wanted: Sequence[UnfittedCritic | Critic], shows: Sequence[str], wish: tuple[str, str], has_readers: bool
) -> None:
    kinds = [type(choice) if isinstance(choice, Critic) else critic_class(choice[0]) for choice in wanted]
    known = [*_COMMON_TABLES, *_DOCUMENT_TABLES, *(_HUMAN_TABLES if has_readers else ())]
    known += [name for kind in kinds for name in kind.table_names]
    other_tables = any(kind.tables is not Critic.tables and not kind.table_names for kind in kinds)
    for name in shows:
        if name in _HUMAN_TABLES and not has_readers:
            raise FinecombError(f"--show {name}: needs --people, a study with the sections protocol")
        if name not in known and not other_tables:
            raise FinecombError(f"--show {name}: there is no such table{did_you_mean(name, known)}")
    for flag, value in zip(("--document", "--system"), wish, strict=True):
        if value and not set(shows) & set(_DOCUMENT_TABLES):
            raise FinecombError(f"{flag} {value}: goes with --show parts or --show text")


def _check_splits(wanted: Sequence[UnfittedCritic | Critic], splits: int) -> None:
    if splits > 1 and any(isinstance(choice, Critic) for choice in wanted):
        raise FinecombError(f"--splits {splits}: a critic that came fitted cannot be fitted to other documents")


def _check_files(paths: Iterable[Path | None]) -> None:
    for path in paths:
        if path is not None and not path.exists() and "://" not in str(path):
            raise FinecombError(f"{path}: no such file or folder")


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
    cluster: str = ""
    where: tuple[str, ...] = ()
    """Conditions on generated documents; real ones are what they are compared with, and stay."""

    def fitting_documents(self) -> list[Document]:
        """What critics are fitted on."""
        if self.fit is None:
            source = track(self._read_documents(self.real), "reading documents to fit on")
            return [document for document in source if is_for_fitting(document.id, self.share, self.seed)]
        return list(track(self._read_documents(self.fit), "reading documents to fit on"))

    def held_out(self, whole: bool) -> Iterator[Document]:
        """Real documents that take no part in fitting; all of them when the critic came fitted."""
        whole = whole or self.fit is not None
        return (
            document
            for document in self._read_documents(self.real)
            if whole or not is_for_fitting(document.id, self.share, self.seed)
        )

    def unseen_real_documents(self, critic: Critic, whole: bool, max_count: int | None = None) -> list[Document]:
        """Held-out real documents, at most so many, without those whose text the critic was fitted on."""
        return list(itertools.islice(unseen_real_documents(self.held_out(whole), critic.fitted_on, []), max_count))

    def score_systems(self, critic: Critic, whole: bool, stat: Statistic | None, spread: Executor) -> Criticism:
        """Scores of all of them."""
        if self.by:
            real_scores = score_real_and_systems(critic, self.held_out(whole), {}, stat, self.cluster, spread)
            documents = itertools.chain.from_iterable(map(self._read_documents, self.generated))
            systems = scores_by_system(critic, documents, self.by, stat, self.cluster, spread)
            return replace(real_scores, systems=systems)
        files = {path.stem: self._read_documents(path) for path in self.generated}
        if len(files) < len(self.generated):
            raise FinecombError("two files of generated documents have the same name; tell systems apart with --by")
        return score_real_and_systems(critic, self.held_out(whole), files, stat, self.cluster, spread)

    def documents(self) -> Iterator[tuple[str, Document]]:
        """Every generated document with its system, then every real one."""
        yield from self.generated_documents()
        yield from ((REAL, document) for document in self._read_documents(self.real))

    def generated_documents(self) -> Iterator[tuple[str, Document]]:
        """Every generated document with its system."""
        for path in self.generated:
            yield from ((self._system_name(document, path), document) for document in self._read_documents(path))

    def _system_name(self, document: Document, path: Path) -> str:
        return str(document.meta[self.by]) if self.by else path.stem

    def _read_documents(self, path: Path) -> Iterator[Document]:
        if self.where and path in self.generated:
            return filter_study(formats.read(path, self.from_), self.where).iter_documents()
        return (item for item in formats.stream(path, self.from_) if isinstance(item, Document))


UnfittedCritic = tuple[str, dict[str, str]]
"""A critic to be fitted, by name, with what the name itself says of its options."""


def _fit_critics(
    wanted: Sequence[UnfittedCritic | Critic], corpora: _Corpora, given: Mapping[str, str]
) -> Iterator[Critic]:
    """Every critic, fitted."""
    unfitted = [choice for choice in wanted if isinstance(choice, tuple)]
    documents = corpora.fitting_documents() if unfitted else []
    for choice in wanted:
        yield _fit_critic(choice, documents, corpora.seed, given) if isinstance(choice, tuple) else choice


def _fit_critic(wanted: UnfittedCritic, documents: Sequence[Document], seed: int, given: Mapping[str, str]) -> Critic:
    """A critic fitted with those of the options that it has."""
    name, extra = wanted
    options = option_names(critic_class(name).fit)
    return fit_critic(
        name, documents, seed, {option: value for option, value in given.items() if option in options} | extra
    )


def _check_options(wanted: Sequence[UnfittedCritic], given: Mapping[str, str]) -> None:
    """Every option goes to the critics that have it, and some critic must."""
    options = [option for name, _ in wanted for option in option_names(critic_class(name).fit)]
    for option in given:
        if option not in options:
            raise FinecombError(f"--set {option}: no critic that is to be fitted has it{did_you_mean(option, options)}")


def _resolve_critic(name: str, prior: str, code: Sequence[str]) -> UnfittedCritic | Critic:
    """A critic to be fitted, or one that is fitted already."""
    if name not in CRITICS and (Path(name) / "critic.json").exists():
        return load(Path(name), code)
    if ":" in name and not isinstance(import_attribute(name, name), type):
        return "own", {"function": name, "kind": prior}
    return name, {}


def _refuse_unneeded_code(code: Sequence[str], wanted: Sequence[UnfittedCritic | Critic]) -> None:
    needed = [name for choice in wanted if isinstance(choice, Critic) for name in required_user_code(choice)]
    for name in code:
        if name not in needed:
            raise FinecombError(f"--code {name}: no saved critic among those named with --critic needs it")


# --- what is shown -----------------------------------------------------------------------------------------------


def _build_tables(
    criticisms: Sequence[Criticism],
    rows: Sequence[Comparison],
    readers: Study | None,
    figures: human_judgements.MetricValues,
    corpora: _Corpora,
    test: _TestSettings,
) -> Tables:
    """Every table there is, by name."""
    human = human_judgements.coherent_shares(readers, corpora.by or "model") if readers else {}
    columns = {**figures, **({"people": human} if human else {})}
    tables: Tables = {
        "systems": lambda: human_judgements.add_metric_columns((row.row() for row in rows), columns),
        "contrasts": lambda: test.contrast_rows(criticisms),
        "diversity": lambda: [row for result in criticisms for row in diversity_rows(result, test.draws, test.seed)],
        "unused": lambda: [row for result in criticisms for row in never_used_rows(result)],
        "outliers": lambda: [row for result in criticisms for row in _outlier_rows(result, corpora)],
    }
    if readers:
        tables["correlations"] = lambda: human_judgements.correlations(
            {**human_judgements.latent_values_by_system(rows), **figures}, human
        )
        tables["incoherent"] = lambda: frame_rows(human_judgements.incoherent_organisations(readers))
    for result in criticisms:
        for name, table in result.critic.tables(result.real, result.systems).items():
            tables[name] = functools.partial(frame_rows, table)
    return tables


def _outlier_rows(result: Criticism, corpora: _Corpora) -> Iterator[Row]:
    """The most unlikely documents of each system, with a piece of each (the paper's Table 14)."""
    ranked = {
        (system, outlier.id): outlier
        for system in result.systems
        for outlier in _system_outliers(result, system)[:_MAX_OUTLIERS]
    }
    documents = {
        (system, document.id): document for system, document in corpora.documents() if (system, document.id) in ranked
    }
    for (system, id), outlier in ranked.items():
        yield {
            "critic": result.critic.name, "system": system, "document": id, "nats": outlier.value,
            "nats per step": outlier.per_step, "usual": outlier.usual, "p": outlier.p,
            "text": _excerpt(result, documents[system, id]),
        }  # fmt: skip


def _system_outliers(result: Criticism, system: str) -> list[Outlier]:
    return outliers(result.real, result.systems[system])


def _excerpt(result: Criticism, document: Document) -> str:
    """The text of its most unlikely step, with some words around it if it is short; else the beginning."""
    steps = [step for step in state_steps(result.critic, document, result.real.statistic) if step.text]
    worst = max(steps, key=lambda step: step.nll, default=None)
    if worst is None or worst.start is None or worst.end is None:
        return shorten(document.text)
    if len(worst.text) > _EXCERPT_MARGIN:
        return shorten(worst.text)
    before, after = document.text[: worst.start][-_EXCERPT_MARGIN:], document.text[worst.end :][:_EXCERPT_MARGIN]
    return " ".join(f"... {before}[{worst.text}]{after} ...".split())


def _find_document(result: Criticism, corpora: _Corpora, wanted: str, of: str) -> tuple[str, Document]:
    """The document asked for and its system; without a wish the most unlikely one of the system, or of the first."""
    if of and of not in (REAL, *result.systems):
        raise FinecombError(f"--system {of}: there is no such system{did_you_mean(of, [REAL, *result.systems])}")
    system = of or ("" if wanted else next(iter(result.systems)))
    scores = result.real if system in ("", REAL) else result.systems[system]
    id = wanted or next((outlier.id for outlier in outliers(result.real, scores)), "")
    places = ((name, document) for name, document in corpora.documents() if not system or name == system)
    place = next(((name, document) for name, document in places if document.id == id), None)
    if place is None:
        raise FinecombError(f"--document {id}: no document{f' of {system}' if system else ''} has this id")
    return place


def _step_rows(critic: Critic, document: Document, stat: Statistic | None) -> Iterator[Row]:
    """The steps of one document."""
    for step in state_steps(critic, document, stat):
        yield {
            "critic": critic.name, "step": step.step, "text": shorten(step.text, 32), "state": step.state,
            "nats": step.nll, "likeliest": step.likeliest, "its nats": step.likeliest_nll,
        }  # fmt: skip


def _text_rows(critic: Critic, document: Document, stat: Statistic | None) -> Iterator[Row]:
    """One document with its steps in place."""
    steps = state_steps(critic, document, stat)
    if not any(step.text for step in steps):
        raise FinecombError(f"--show text: steps of the {critic.name} critic have no place in the text; see outliers")
    yield {"critic": critic.name, "document": document.id, "text": render_annotated_text(document.text, steps)}


_DOCUMENT_TABLES: dict[str, Callable[[Critic, Document, Statistic | None], Iterator[Row]]] = {
    "parts": _step_rows,
    "text": _text_rows,
}
"""What can be shown of one document."""


def _criticism_notes(criticisms: Sequence[Criticism], wanted: Sequence[UnfittedCritic | Critic]) -> list[str]:
    """What was lost, and what nobody can check."""
    notes = []
    for result, kind in zip(criticisms, wanted, strict=True):
        sides = {"real": result.real, **result.systems}
        notes += [words for side, scores in sides.items() if (words := describe_dropped(side, scores))]
        notes += [words for side, scores in sides.items() if (words := domain_warning(side, scores, result.real))]
        notes += [words] if (words := describe_unused(result.critic)) else []
        notes += [f"the {result.critic.name} critic: {caution}" for caution in result.critic.cautions]
        if isinstance(kind, Critic) and not kind.fitted_on:
            notes.append(
                f"the {kind.name} critic came fitted and does not say on what: make sure that it was not fitted on "
                "these real documents"
            )
    return notes


def _print_rows(
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
    print_signature(signature, " (95% intervals; nats)")
    for note in notes:
        print_note(note)


def _write_output(criticisms: Sequence[Criticism], tables: Mapping[str, Sequence[Row]], folder: Path) -> None:
    """All tables as CSV and all figures as SVG."""
    from finecomb.reporting.figures.critic_figures import critic_figures

    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        name: svg
        for result in criticisms
        for name, svg in critic_figures(result.critic, result.real, result.systems).items()
    }
    for name, rows in tables.items():
        pl.DataFrame(list(rows), infer_schema_length=None).write_csv(folder / f"{name}.csv")
    for name, svg in figures.items():
        (folder / f"{_file_name(name)}.svg").write_text(svg, encoding="utf-8")
    print_note(f"{folder}: {format_count(len(tables), 'table')} and {format_count(len(figures), 'figure')} written")


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name)


def _save_critics(critics: Sequence[Critic], folder: Path, again: bool = False) -> None:
    """The fitted critic, or each of several in a folder of its name; nothing is said when it is saved again."""
    for critic in critics:
        place = folder if len(critics) == 1 else folder / critic.name
        save(critic, place)
        if again:
            continue
        code = "".join(f" --code {name}" for name in required_user_code(critic))
        print_note(f"{place}: the fitted {critic.name} critic; use it with --critic {place}{code}")


def _run_self_test(given: Mapping[str, str], seed: int, as_json_: bool) -> None:
    """The paper's Table 1 with models that anybody can fit."""
    options = parse_fit_options(synthetic.self_test, given, "synthetic")
    rows = [row.row() for row in synthetic.self_test(np.random.default_rng(seed), **options)]
    notes = [
        "paper: word-level and Latent PPL of its Table 1; 2.28, 64.80 (66.80 in its text) is a transformer's",
        "Latent PPL is over transitions between valid segments; the paper's script drops texts with a bad one",
    ]
    _print_rows(
        rows, as_json_, "Self-test", str(Signature.from_fields(statistic="synthetic", seed=seed, **given)), notes
    )


@contextlib.contextmanager
def _show_progress_bars() -> Iterator[None]:
    """Progress of long work on standard error, shown only to people."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,}"))
    with Progress(*columns, TimeElapsedColumn(), console=err, transient=True, disable=not err.is_terminal) as bars:

        def watch(items: Iterable[object], words: str, total: int | None) -> Iterator[object]:
            task = bars.add_task(words, total=total)
            for item in items:
                yield item
                bars.advance(task)
            bars.remove_task(task)

        with use_progress_watcher(watch):
            yield
