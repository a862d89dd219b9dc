"""Corpora of texts: metrics under stress, critics of structure, and preparation."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl

from finecomb import formats
from finecomb.api.coercion import StudyLike, as_names, as_study, as_values
from finecomb.api.parameters import Bounds, Count, Names, PositiveInt, Share, Values, changed_parameters, public
from finecomb.api.progress import Progress, resume_note, track
from finecomb.api.selection import select_part
from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.core.estimate import Signature
from finecomb.core.options import join_names
from finecomb.core.records import Document
from finecomb.core.results import Table
from finecomb.corpora.critics import human_judgements
from finecomb.corpora.critics.base import Statistic
from finecomb.corpora.critics.critic_choices import check_critics, resolve_critic
from finecomb.corpora.critics.critic_corpora import CriticCorpora, DocumentSource
from finecomb.corpora.critics.critic_power import describe_power
from finecomb.corpora.critics.critic_run import (
    CriticTables,
    compare_over_splits,
    criticism_notes,
    model_figures,
    run_self_test,
)
from finecomb.corpora.critics.critic_tables import (
    CRITIC_TABLES,
    ComparisonSettings,
    CriticDiagnostics,
    DocumentChoice,
    build_tables,
    check_table_names,
    title_and_rows,
)
from finecomb.corpora.critics.progress import use_progress_watcher
from finecomb.corpora.generation.lengths import LengthRule
from finecomb.corpora.generation.priming import MAX_OVERLAP, Priming
from finecomb.corpora.preparation import Preparation, PreparationResult, PromptKind
from finecomb.corpora.preparation import prepare as prepare_documents
from finecomb.corpora.stress import METRICS, Metric, corrupt_documents, run_stress_trial
from finecomb.corpora.stress.metric_sources import build_metric
from finecomb.corpora.stress.stress_trial import MetricFalls, check_corruptions, exclusion_notes
from finecomb.engine.options import PartitionOptions
from finecomb.engine.partitions import unfinished_partitions_folder

# --- stress ----------------------------------------------------------------------------------------------------------


@public
def stress(
    study: StudyLike,
    *,
    metric: Values = ("rouge1", "rouge2", "rougeL"),
    corruption: Names = (),
    where: Values = (),
    drop: Values = (),
    draws: Count = 1000,
    seed: int = 0,
    engine: str = "local",
    workers: PositiveInt | None = None,
    partitions: str | PathLike[str] | None = None,
    progress: Progress = False,
) -> MetricFalls:
    """Damage texts in known ways and measure how far each metric falls.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The texts to damage, with references for metrics that compare with them.
    metric : str or sequence of str, default ("rouge1", "rouge2", "rougeL")
        Metric, such as rougeL, chrf, bertscore:MODEL or detector:NAME; may be repeated.
        There are rouge1, rouge2, rougeL, bleu, chrf, bertscore:MODEL, perplexity:MODEL, mauve:MODEL, detector:NAME,
        critic:FOLDER, command:COMMAND and code:MODULE:FUNCTION. A command reads one JSON object per line (`text`,
        `references`) and writes one number per line.
    corruption : str or sequence of str
        Kinds of damage, comma-separated (default: all, and another human text as ceiling).
    where : str or sequence of str
        Condition on texts, annotators, annotations or marks, such as model=gpt2; may be repeated.
    drop : str or sequence of str
        Omit a label or group, or one severity of it (grammar-usage:1); may be repeated.
    draws : int, default 1000
        Resamples per interval.
    seed : int, default 0
        Seed of the damage and of the resamples.
    engine : str, default "local"
        Where scores are computed: local processes, ray, or ray:ADDRESS of a cluster.
    workers : int, optional
        Number of processes; changes no number.
    partitions : path, optional
        Folder for finished parts, so that an interrupted run resumes.
    progress : bool or callable, default False
        Show progress on standard error, or call a function with the metrics done and all metrics.

    Returns
    -------
    MetricFalls
        One row per metric and corruption; ``.ranks`` has the rank correlation of damage and fall per metric.

    Raises
    ------
    ParameterError
        If a metric or corruption is unknown, or an option does not apply to the metrics.

    Examples
    --------
    >>> import finecomb as fc
    >>> falls = fc.stress(fc.demo(), metric="detector:rules", corruption="repeated", draws=0)
    >>> falls.find(metric="detector:rules").value > 0  # it notices sentences that are repeated
    True
    """
    chosen = changed_parameters(stress, locals())
    whole = as_study(study)
    source = whole.origin or "the study"
    part = select_part(whole, as_values(where), as_values(drop))
    documents = [document for document in part.iter_documents() if document.text.strip()]
    if not documents:
        raise FinecombError(f"{source}: has no texts to damage")
    metrics = [build_metric(name) for name in as_values(metric)]
    _refuse_engine_of_metrics(chosen, metrics)
    corruptions = check_corruptions(as_names(corruption))
    pairs = corrupt_documents(documents, corruptions, seed)
    if not pairs:
        raise FinecombError(f"{source}: no text can be damaged in this way; `finecomb stress --help` lists the kinds")
    work = PartitionOptions(engine, workers, Path(partitions) if partitions else None)
    with work.open_executor() as executor:
        table = run_stress_trial(
            pairs, metrics, draws, seed, executor, lambda items: track(items, progress, "metrics", len(items))
        )
    notes = exclusion_notes(documents, pairs, corruptions, metrics)
    return MetricFalls(table, notes, executor.reused_row_count)


_ENGINE = ("engine", "workers", "partitions")


def _refuse_engine_of_metrics(chosen: Iterable[str], metrics: Sequence[Metric]) -> None:
    """Refuse options of the engine where every metric has to see all texts at once."""
    if any(metric.by_text for metric in metrics):
        return
    for name in _ENGINE:
        if name in chosen:
            raise ParameterError(
                f"{param(name)} does not apply to {join_names(metric.name for metric in metrics)}; "
                f"it applies to {join_names(METRICS)}",
                parameter=name,
            )


# --- criticize -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """A file of texts in a named format; where a path alone is given, the format is guessed."""

    path: Path
    format: str = ""


@public
def criticize(
    real: StudyLike | CorpusFile | None = None,
    generated: Mapping[str, StudyLike] | Sequence[StudyLike | CorpusFile] | StudyLike | CorpusFile = (),
    *,
    critic: Names = "sections",
    fit: StudyLike | CorpusFile | None = None,
    fit_share: Annotated[float, Bounds(0.05, 0.95)] = 0.5,
    by: str = "",
    stat: Statistic | None = None,
    set_: Values = (),
    smoothing: str = "",
    merge_repeats: bool = False,
    code: Values = (),
    prior: Literal["markov", "ngram", "gaussian", "dirichlet"] = "markov",
    synthetic: bool = False,
    show: Names = "systems",
    document: str = "",
    system: str = "",
    cluster: str = "",
    paired: bool = False,
    splits: PositiveInt = 1,
    beside: str | PathLike[str] | pl.DataFrame | None = None,
    word_ppl: str = "",
    mauve: str = "",
    people: StudyLike | None = None,
    correction: Literal["holm", "bonferroni", "none"] = "holm",
    draws: Count = 1000,
    seed: int = 0,
    output: str | PathLike[str] | None = None,
    save: str | PathLike[str] | None = None,
    where: Values = (),
    force: bool = False,
    engine: str = "local",
    workers: PositiveInt | None = None,
    partitions: str | PathLike[str] | None = None,
    progress: Progress = False,
) -> CriticTables:
    """Compare the structure of generated texts with that of real ones: sections, references, topics.

    Parameters
    ----------
    real : Study, path, DataFrame or list of dicts
        Real documents. Files are read as streams.
    generated : mapping of names to corpora, sequence of paths, or one corpus
        Generated documents, one file or one entry per system.
    critic : str or sequence of str, default "sections"
        Critics, comma-separated: sections, coreference, topics, languages, FOLDER or module:NAME.
        A folder holds a saved critic; `module:Class` and `module:function` are of your own.
    fit : Study, path, DataFrame or list of dicts, optional
        Real documents to fit on (default: a share of REAL that takes no further part).
    fit_share : float, default 0.5
        Share of REAL used for fitting.
    by : str
        Document meta that tells systems apart within a file, such as model.
    stat : {"nll", "plugin", "kl"}, optional
        Statistic T(x): nll, plugin or kl (default: that of the critic).
    set_ : str or sequence of str
        NAME=VALUE: an option of the critic; may be repeated.
    smoothing : str
        For sections: auto or add:X.
    merge_repeats : bool, default False
        For sections: join equal neighbours.
    code : str or sequence of str
        module:name of your own code that a saved critic needs; may be repeated.
        Nothing that a folder names is run without it.
    prior : {"markov", "ngram", "gaussian", "dirichlet"}, default "markov"
        For module:function: prior over its labels.
    synthetic : bool, default False
        Run the self-test on a known process instead.
    show : str or sequence of str, default "systems"
        Tables, comma-separated: systems, contrasts, diversity, unused, outliers, parts, text and others.
        There are also correlations and incoherent (with people), power, certainty, and tables of the critic.
    document : str
        For parts and text: ID of the document.
    system : str
        For parts and text: system of the document, or real.
    cluster : str
        Document meta, such as prompt: documents that share it are resampled together.
    paired : bool, default False
        Compare real and generated documents of the same cluster, or of the same ID.
    splits : int, default 1
        Ways to split REAL into fitting and held-out documents; medians are reported.
    beside : path or DataFrame, optional
        CSV with a column `system`: other numbers to print next to ours.
    word_ppl : str
        Causal model, by name or folder, whose perplexity by words is added.
    mauve : str
        Encoder, by name or folder, whose MAUVE is added; needs mauve-text.
    people : Study or path, optional
        Study with the sections protocol: judgements of people.
    correction : {"holm", "bonferroni", "none"}, default "holm"
        Correction of p-values for many systems and critics.
    draws : int, default 1000
        Resamples per interval.
    seed : int, default 0
        Seed of the split, the fit and the resamples.
    output : path, optional
        Folder for all tables and figures.
    save : path, optional
        Folder for the fitted critic.
    where : str or sequence of str
        Condition on generated texts, such as model=gpt2 or 'top_p >= 0.9'; may be repeated.
    force : bool, default False
        Write into folders that exist.
    engine : str, default "local"
        Where documents are scored: local processes, ray, or ray:ADDRESS of a cluster.
    workers : int, optional
        Number of processes; changes no number.
    partitions : path, optional
        Folder for finished parts, so that an interrupted run resumes.
    progress : bool or callable, default False
        Show progress on standard error, or call a function with the steps done and all steps of each stage.

    Returns
    -------
    CriticTables
        The first table of ``show``; ``.tables`` has all of them by name, ``.criticisms`` the fitted critics and scores.

    Raises
    ------
    ParameterError
        If a critic, a table or an option is unknown, or options contradict each other.

    Examples
    --------
    >>> import finecomb as fc
    >>> small = ["training=100", "evaluation=20", "states=8", "segments=100", "length=6"]
    >>> [row.source for row in fc.criticize(synthetic=True, set_=small)][:2]
    ['P_data', 'drawn texts']

    References
    ----------
    Deng, Kuleshov and Rush (2022), "Model Criticism for Long-Form Text Generation".
    """
    engine_options = {"engine": engine, "workers": workers, "partitions": partitions}
    options = _critic_options(as_values(set_), smoothing, merge_repeats)
    if synthetic:
        _refuse_engine_of_self_test(changed_parameters(criticize, engine_options))
        with _watch_critics(progress):
            return run_self_test(options, seed)
    shows = list(dict.fromkeys(as_names(show)))
    conditions = as_values(where)
    systems = _document_sources(generated, conditions)
    if real is None or not (systems or set(shows) <= set(CRITIC_TABLES)):
        raise FinecombError(
            f"give REAL and at least one file of GENERATED documents, or {param('synthetic')}; "
            f"{param('show', 'power,certainty')} needs REAL alone"
        )
    folder, save_to = (Path(path) if path else None for path in (output, save))
    _refuse_existing((folder, save_to), force)
    fitting = None if fit is None else _document_source(fit)
    corpora = CriticCorpora(_document_source(real), systems, fitting, fit_share, by, seed, cluster)
    wanted = [resolve_critic(name, prior, as_values(code)) for name in as_names(critic)]
    check_critics(wanted, options, as_values(code), splits)
    choice = DocumentChoice(document, system)
    check_table_names(wanted, shows, choice, people is not None)
    _check_files([real, *_members(generated), fit, beside, people])
    readers = as_study(people, "people") if people is not None else None
    settings = ComparisonSettings(correction, draws, seed, paired)
    work = PartitionOptions(engine, workers, Path(partitions) if partitions else None)
    with (
        work.open_executor(unfinished_partitions_folder(folder) if folder else None) as executor,
        _watch_critics(progress),
    ):
        figures = _figures_of(beside) | model_figures(corpora, word_ppl, mauve)
        criticisms, rows, saved = compare_over_splits(
            wanted, corpora, options, stat, settings, splits, save_to, executor
        )
        tables = build_tables(criticisms, rows, readers, figures, corpora, settings)
        ability = CriticDiagnostics(criticisms, wanted, corpora, stat, executor)
        tables |= {"power": ability.power_rows, "certainty": ability.certainty_rows}
        notes = [
            *resume_note(executor.reused_row_count, "text"),  # before tables reuse parts of this very run
            *criticism_notes(criticisms, wanted),
            *(describe_power(ability.power_points) if "power" in shows else []),
        ]
        titled = {name: title_and_rows(name, tables, criticisms, corpora, choice, stat) for name in shows}
        written: list[Path] = []
        if folder:
            from finecomb.reporting.critic_folder import write_critic_folder  # figures are loaded only when wanted

            written = write_critic_folder(criticisms, {name: make() for name, make in tables.items()}, folder)
    signature = Signature.from_fields(
        statistic="criticize", critic=",".join(as_names(critic)), stat=stat, by=by or None,
        fit=fit_share if fit is None else "corpus", cluster=cluster or None, paired=paired or None,
        splits=splits if splits > 1 else None, where=" and ".join(conditions) or None, word_ppl=word_ppl or None,
        mauve=mauve or None, correction=correction, draws=draws, seed=seed, **options,
    )  # fmt: skip
    return CriticTables(
        {name: Table(table_rows, title=title) for name, (title, table_rows) in titled.items()},
        criticisms,
        notes=notes,
        signature=str(signature),
        saved=saved,
        written=written,
    )


def _critic_options(pairs: Sequence[str], smoothing: str, merge_repeats: bool) -> dict[str, str]:
    """Return options of critics by name from NAME=VALUE and from the two that have a keyword of their own."""
    options = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        if not (name and value):
            example = param("set_", "model=gpt2")
            raise ParameterError(f"{param('set_', pair)}: expected NAME=VALUE, e.g. {example}", parameter="set_")
        options[name] = value
    options |= {"smoothing": smoothing} if smoothing else {}
    return options | ({"merge_repeats": "true"} if merge_repeats else {})


def _refuse_engine_of_self_test(chosen: Iterable[str]) -> None:
    for name in _ENGINE:
        if name in chosen:
            raise ParameterError(
                f"{param(name)} does not apply to {param('synthetic')}; it applies to REAL and GENERATED documents",
                parameter=name,
            )


def _document_sources(generated: Any, where: Sequence[str]) -> list[DocumentSource]:
    """Return the corpora of systems: a mapping has their names, a list one file each; a list of dicts is one corpus."""
    names = generated if isinstance(generated, Mapping) else itertools.repeat("")
    return [
        _document_source(corpus, where, str(name)) for name, corpus in zip(names, _members(generated), strict=False)
    ]


def _members(generated: Any) -> list[Any]:
    """Return the corpora that were given, each as it was given."""
    if isinstance(generated, Mapping):
        return list(generated.values())
    is_list = isinstance(generated, list | tuple)
    is_table = is_list and generated and all(isinstance(row, Mapping) for row in generated)
    return list(generated) if is_list and not is_table else [generated]


def _document_source(corpus: Any, where: Sequence[str] = (), name: str = "") -> DocumentSource:
    """Return a corpus that can be read again and again; a file is streamed, unless a condition needs all of it."""
    if isinstance(corpus, str | PathLike):
        corpus = CorpusFile(Path(fspath(corpus)))
    if not isinstance(corpus, CorpusFile):
        part = select_part(as_study(corpus), where)
        return DocumentSource(name or Path(part.origin).stem or "generated", part.iter_documents)

    def read() -> Iterator[Document]:
        if where:
            return select_part(formats.read(corpus.path, corpus.format), where).iter_documents()
        return (item for item in formats.stream(corpus.path, corpus.format) if isinstance(item, Document))

    return DocumentSource(name or corpus.path.stem, read)


def _check_files(corpora: Iterable[Any]) -> None:
    """Refuse files that do not exist, before a critic is fitted."""
    for corpus in corpora:
        path = corpus.path if isinstance(corpus, CorpusFile) else corpus
        if isinstance(path, str | PathLike) and not Path(fspath(path)).exists() and "://" not in str(path):
            raise FinecombError(f"{path}: no such file or folder")


def _refuse_existing(folders: Iterable[Path | None], force: bool) -> None:
    """Refuse to write into folders that exist before the work, not after it."""
    for folder in folders:
        if folder and folder.exists() and not force:
            raise FinecombError(f"{folder}: is there already; {param('force')} writes into it")


def _figures_of(beside: str | PathLike[str] | pl.DataFrame | None) -> dict[str, dict[str, float]]:
    """Return other numbers of systems from a table."""
    if beside is None:
        return {}
    table = beside if isinstance(beside, pl.DataFrame) else pl.read_csv(fspath(beside))
    return human_judgements.metric_values_from_table(
        table, "beside" if isinstance(beside, pl.DataFrame) else str(beside)
    )


@contextlib.contextmanager
def _watch_critics(progress: Progress) -> Iterator[None]:
    """Show each stage of a criticism: as one of several bars on standard error, or to the caller's function."""
    if progress is False:
        yield
        return
    if callable(progress):
        with use_progress_watcher(lambda items, words, total: track(items, progress, words, total)):
            yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,}"))
    with Bars(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bars:

        def watch(items: Iterable[object], words: str, total: int | None) -> Iterator[object]:
            task = bars.add_task(words, total=total)
            for item in items:
                yield item
                bars.advance(task)
            bars.remove_task(task)

        with use_progress_watcher(watch):
            yield


# --- prepare ---------------------------------------------------------------------------------------------------------


@public
def prepare(
    texts: StudyLike | CorpusFile | Sequence[StudyLike | CorpusFile] | Sequence[Document],
    *,
    prompt: PromptKind | None = None,
    start: str = "",
    words: str = "",
    priming: StudyLike | Sequence[Document] | None = None,
    overlap: Share = MAX_OVERLAP,
    balance: Names = (),
    per_cell: PositiveInt | None = None,
    seed: Count = 0,
    detokenise: bool = False,
    keep_duplicates: bool = False,
    sections: Literal["with-titles", "without-titles", "read"] | None = None,
) -> PreparationResult:
    """Prepare texts for a study: prompts, lengths, copies, duplicates and balance.

    Parameters
    ----------
    texts : Study, path, DataFrame, list of dicts or of documents, or a list of paths
        Articles or texts; several files become one study.
    prompt : {"first-sentence", "headline", "headline+first-sentence", "start"}, optional
        Part of an article that becomes the prompt; the rest is the human continuation.
    start : str
        For prompt start: words that texts begin with, such as 'Once upon a time'.
    words : str
        LEAST-MOST or LEAST-: cut at the first sentence end from LEAST words on; drop others.
    priming : Study, path, DataFrame, or list of dicts or documents, optional
        Priming texts; texts that copy one are dropped.
    overlap : float, default 0.8
        Share of a text's words that makes it a copy.
    balance : str or sequence of str
        Meta fields, comma-separated, whose combinations get equally many texts.
    per_cell : int, optional
        Texts per combination (default: those of the smallest).
    seed : int, default 0
        Seed of the balanced draw.
    detokenise : bool, default False
        Remove the spaces that a tokenizer put around punctuation.
    keep_duplicates : bool, default False
        Keep texts that are equal to another.
    sections : {"with-titles", "without-titles", "read"}, optional
        Mark sections for a model, with or without their titles, or read them back.

    Returns
    -------
    PreparationResult
        How many texts were read, dropped for each reason, and kept; ``.study`` has those that were kept.

    Raises
    ------
    ParameterError
        If an option needs another one that is not given.
    FinecombError
        If there are no texts, or two texts have the same ID.

    Examples
    --------
    >>> import finecomb as fc
    >>> result = fc.prepare([{"id": "a", "text": "One lake ."}, {"id": "b", "text": "One lake ."}], detokenise=True)
    >>> result.find(what="texts kept").texts, result.dropped
    (1, {'b': 'the same text as another'})
    >>> next(result.study.iter_documents()).text
    'One lake.'
    """
    if priming is None and overlap != MAX_OVERLAP:
        raise ParameterError(
            f"{param('overlap')} means nothing without {param('priming')}; name the priming texts or leave it out",
            parameter="overlap",
        )
    documents = _documents_of(texts)
    fields = as_names(balance)
    preparation = Preparation(
        detokenise=detokenise,
        prompt=prompt,
        start=start,
        sections=sections,
        rule=LengthRule.parse(words) if words else None,
        priming=Priming(() if priming is None else tuple(_documents_of(priming))),
        most_overlap=overlap,
        balance=fields,
        per_cell=per_cell,
        seed=seed,
        duplicates=keep_duplicates,
    )
    return PreparationResult(prepare_documents(documents, preparation), len(documents), fields)


def _documents_of(texts: Any) -> list[Document]:
    """Return the documents of one corpus or of several, or documents as they are."""
    if isinstance(texts, list | tuple) and all(isinstance(text, Document) for text in texts):
        return list(texts)
    return [document for corpus in _members(texts) for document in _document_source(corpus).read()]
