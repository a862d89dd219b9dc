"""Work on corpora: stress tests of metrics, critics of structure, and preparation of texts."""

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
from finecomb.api.parameters import (
    Bounds,
    Count,
    Names,
    PositiveInt,
    Share,
    StudyLike,
    Values,
    as_names,
    as_study,
    as_values,
    changed_parameters,
    public,
    select_part,
)
from finecomb.api.progress import Progress, resume_note, track
from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.options import join_names
from finecomb.core.records import Document
from finecomb.core.results import Signature, Table
from finecomb.corpora.critics import human_judgements
from finecomb.corpora.critics.base import Statistic
from finecomb.corpora.critics.critic_choices import check_critics, resolve_critic
from finecomb.corpora.critics.critic_corpora import CriticCorpora, DocumentSource
from finecomb.corpora.critics.critic_power import describe_power
from finecomb.corpora.critics.critic_run import (
    CriticTables,
    compare_over_splits,
    criticism_notes,
    model_metric_values,
    run_self_test,
)
from finecomb.corpora.critics.critic_tables import (
    DIAGNOSTIC_TABLES,
    ComparisonSettings,
    CriticDiagnostics,
    DocumentChoice,
    build_tables,
    check_table_names,
    table_title_and_rows,
)
from finecomb.corpora.critics.progress import use_progress_watcher
from finecomb.corpora.generation.lengths import LengthRule
from finecomb.corpora.generation.priming import MAX_OVERLAP, Priming
from finecomb.corpora.preparation import Preparation, PreparationResult, PromptKind
from finecomb.corpora.preparation import prepare as prepare_documents
from finecomb.corpora.stress import METRICS, Metric, corrupt_documents, run_stress_trial
from finecomb.corpora.stress.corruptions import CORRUPTIONS
from finecomb.corpora.stress.metric_sources import build_metric
from finecomb.corpora.stress.stress_trial import HUMAN_CORRUPTION, MetricFalls, exclusion_notes
from finecomb.engine.options import PartitionOptions
from finecomb.engine.partitions import unfinished_partitions_folder
from finecomb.engine.user_code import allow_user_code

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
    allow_code: Values = (),
    progress: Progress = False,
) -> MetricFalls:
    """Corrupt texts in known ways and measure how much the score of each metric falls.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        Study whose texts are corrupted; reference-based metrics also use its references.
    metric : str or sequence of str, default ("rouge1", "rouge2", "rougeL")
        Metric, such as `rougeL`, `chrf`, `bertscore:MODEL` or `detector:NAME`; may be repeated.
        The metrics are `rouge1`, `rouge2`, `rougeL`, `bleu`, `chrf`, `bertscore:MODEL`, `perplexity:MODEL`,
        `mauve:MODEL`, `detector:NAME`, `critic:FOLDER`, `command:COMMAND` and `code:MODULE:FUNCTION`. A command reads
        one JSON object per line (`text`, `references`) and writes one number per line.
    corruption : str or sequence of str
        Corruptions, comma-separated, such as `shuffled` or `negated` (default: all).
        The corruptions are `shuffled`, `repeated`, `names-bigrams`, `swapped-names`, `negated`, `numbers`,
        `dropped-sentence`, `switched-topic` and `pronouns`. By default another human text is added as a ceiling.
    where : str or sequence of str
        Keep only matching texts, annotators or marks, such as `model=gpt2`; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    drop : str or sequence of str
        Omit marks by label, group or `LABEL:SEVERITY` (`grammar-usage:1`); may be repeated.
    draws : int, default 1000
        Number of resamples per confidence interval.
    seed : int, default 0
        Random seed for corrupting the texts and for resampling.
    engine : str, default "local"
        Execution engine: `local` (processes on this machine), `ray` or `ray:ADDRESS` (cluster).
    workers : int, optional
        Number of parallel processes; results do not depend on it.
    partitions : path, optional
        Folder for intermediate results, so that an interrupted run can be resumed.
    allow_code : str or sequence of str
        Python file or folder with the function of a `code:` metric; may be repeated.
        Installed modules need no permission. Code in the working directory does not run without it.
    progress : bool or callable, default False
        Show progress on standard error.
        A function is called with the numbers of finished and total metrics instead.

    Returns
    -------
    MetricFalls
        One row per metric and corruption; ``.ranks`` has the rank correlation of corruption and fall per metric.

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
        raise FinecombError(f"{source}: no texts found")
    if allow_code and not any(name.startswith("code:") for name in as_values(metric)):
        raise ParameterError(
            f"{param('allow_code')} requires {param('metric', 'code:MODULE:FUNCTION')}", parameter="allow_code"
        )
    allow_user_code(as_values(allow_code))
    metrics = [build_metric(name) for name in as_values(metric)]
    _refuse_engine_options_without_use(chosen, metrics)
    names = as_names(corruption)
    known = [*CORRUPTIONS, HUMAN_CORRUPTION]
    for name in names:
        if name not in known:
            raise ParameterError(
                f"unknown {param('corruption', name)}{did_you_mean(name, known)}", parameter="corruption"
            )
    corruptions = list(names) or known
    pairs = corrupt_documents(documents, corruptions, seed)
    if not pairs:
        raise FinecombError(
            f"{source}: no text can be corrupted by {', '.join(corruptions)}; "
            "`finecomb stress --help` lists the corruptions"
        )
    work = PartitionOptions(engine, workers, Path(partitions) if partitions else None)
    with work.open_executor() as executor:
        table = run_stress_trial(
            pairs, metrics, draws, seed, executor, lambda items: track(items, progress, "metrics", len(items))
        )
    notes = exclusion_notes(documents, pairs, corruptions, metrics)
    return MetricFalls(table, notes, executor.reused_row_count)


_ENGINE = ("engine", "workers", "partitions")


def _refuse_engine_options_without_use(chosen: Iterable[str], metrics: Sequence[Metric]) -> None:
    """Refuse options of the engine if every metric needs all texts at once."""
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
    """A file of texts in a named format; for a plain path, the format is guessed."""

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
    allow_code: Values = (),
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
    """Compare the structure of generated texts with that of real texts: sections, coreference and topics.

    Parameters
    ----------
    real : Study, path, DataFrame or list of dicts
        Real documents to compare the generated documents with. Files are read as streams.
    generated : mapping of names to corpora, sequence of paths, or one corpus
        Generated documents, one file per system.
        In Python also one corpus, or a mapping of system names to corpora.
    critic : str or sequence of str, default "sections"
        Critics, comma-separated: `sections`, `coreference`, `topics`, `languages` or your own.
        A folder holds a saved critic; `module:Class` and `module:function` are your own.
    fit : Study, path, DataFrame or list of dicts, optional
        Real documents to fit the critic to (default: a share of `REAL` that is not compared).
    fit_share : float, default 0.5
        Share of `REAL` that is used to fit the critic.
    by : str
        Document metadata field that names the system of each text in a file, such as `model`.
    stat : {"nll", "plugin", "kl"}, optional
        Statistic T(x) of a document: `nll`, `plugin` or `kl` (default: the critic's own).
        `nll` is the expected negative log-probability of the latent states, `plugin` that of the most probable states,
        and `kl` the divergence of the posterior from the prior.
    set_ : str or sequence of str
        Option of the critic, as `NAME=VALUE`; may be repeated.
    smoothing : str
        For the `sections` critic: smoothing of transition counts (`auto`, or `add:X` to add X).
    merge_repeats : bool, default False
        For the `sections` critic: merge consecutive sections of the same type.
    code : str or sequence of str
        Your own code that a saved critic may run, as `module:name`; may be repeated.
        Code that a saved critic names is not run unless it is listed here.
    allow_code : str or sequence of str
        Python file or folder with your own critic, function or resolver; may be repeated.
        Installed modules need no permission. Code in the working directory does not run without it.
    prior : {"markov", "ngram", "gaussian", "dirichlet"}, default "markov"
        For a `module:function` critic: prior (`markov`, `ngram`, `gaussian` or `dirichlet`).
    synthetic : bool, default False
        Run a self-test on a known synthetic process instead of comparing documents.
    show : str or sequence of str, default "systems"
        Tables to show, comma-separated, such as `systems`, `contrasts` or `outliers`.
        Others are `unused`, `parts` and `text` (of one document), `correlations` and `incoherent` (with people),
        `power`, `certainty`, and tables of the critic.
    document : str
        For the tables `parts` and `text`: ID of the document.
    system : str
        For the tables `parts` and `text`: system that wrote the document, or `real`.
    cluster : str
        Document metadata field, such as `prompt`; texts with equal values are resampled as one.
    paired : bool, default False
        Pair real and generated documents of the same cluster, or with the same ID.
    splits : int, default 1
        Number of random splits of `REAL` into fitting and held-out parts; medians are reported.
    beside : path or DataFrame, optional
        CSV file with a column `system` and other scores to print next to the critic's scores.
    word_ppl : str
        Also compute perplexity per word with this causal language model (name or folder).
    mauve : str
        Also compute MAUVE with this encoder (name or folder); requires the package `mauve-text`.
    people : Study or path, optional
        Study annotated by people with the `sections` protocol, for comparison with the critic.
    correction : {"holm", "bonferroni", "none"}, default "holm"
        Correction of p-values for several systems and critics: `holm`, `bonferroni` or `none`.
    draws : int, default 1000
        Number of resamples per confidence interval.
    seed : int, default 0
        Random seed for splitting, fitting and resampling.
    output : path, optional
        Output folder for all tables and figures.
    save : path, optional
        Folder to save the fitted critic in.
    where : str or sequence of str
        Keep only matching generated texts, such as `model=gpt2`; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    force : bool, default False
        Write to the `output` and `save` folders even if they exist.
    engine : str, default "local"
        Execution engine: `local` (processes on this machine), `ray` or `ray:ADDRESS` (cluster).
    workers : int, optional
        Number of parallel processes; results do not depend on it.
    partitions : path, optional
        Folder for intermediate results, so that an interrupted run can be resumed.
    progress : bool or callable, default False
        Show progress on standard error.
        A function is called with the numbers of finished and total steps instead.

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
        for name in changed_parameters(criticize, engine_options):
            raise ParameterError(
                f"{param(name)} does not apply to {param('synthetic')}; it applies to REAL and GENERATED documents",
                parameter=name,
            )
        with _watch_critics(progress):
            return run_self_test(options, seed)
    shows = list(dict.fromkeys(as_names(show)))
    conditions = as_values(where)
    names = generated if isinstance(generated, Mapping) else itertools.repeat("")
    systems = [
        _document_source(corpus, conditions, str(name))
        for name, corpus in zip(names, _members(generated), strict=False)
    ]
    if real is None or not (systems or set(shows) <= set(DIAGNOSTIC_TABLES)):
        raise FinecombError(
            f"REAL and at least one file of GENERATED documents are required, or {param('synthetic')}; "
            f"{param('show', 'power,certainty')} requires REAL only"
        )
    folder, save_to = (Path(path) if path else None for path in (output, save))
    for path in (folder, save_to):
        if path and path.exists() and not force:
            raise FinecombError(f"{path} already exists; pass {param('force')} to write into it")
    fitting = None if fit is None else _document_source(fit)
    corpora = CriticCorpora(_document_source(real), systems, fitting, fit_share, by, seed, cluster)
    if allow_code and not any(":" in name for name in (*as_names(critic), *as_values(code), *options.values())):
        raise ParameterError(
            f"{param('allow_code')} requires your own code as module:name in {param('critic')}, {param('code')} or "
            f"{param('set_')}",
            parameter="allow_code",
        )
    allow_user_code(as_values(allow_code))
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
        figures = _figures_of(beside) | model_metric_values(corpora, word_ppl, mauve)
        criticisms, rows, saved = compare_over_splits(
            wanted, corpora, options, stat, settings, splits, save_to, executor
        )
        tables = build_tables(criticisms, rows, readers, figures, corpora, settings)
        ability = CriticDiagnostics(criticisms, wanted, corpora, stat, executor)
        tables |= {"power": ability.power_rows, "certainty": ability.certainty_rows}
        notes = [
            *resume_note(executor.reused_row_count, "text"),  # read before tables reuse parts of the same run
            *criticism_notes(criticisms, wanted),
            *(describe_power(ability.power_points_of_all_critics) if "power" in shows else []),
        ]
        titled = {name: table_title_and_rows(name, tables, criticisms, corpora, choice, stat) for name in shows}
        written: list[Path] = []
        if folder:
            from finecomb.reporting.critic_folder import write_critic_folder  # imported only for figures

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
    """Return the options of critics by name, from NAME=VALUE pairs, `smoothing` and `merge_repeats`."""
    options = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        if not (name and value):
            example = param("set_", "model=gpt2")
            raise ParameterError(f"{param('set_', pair)}: expected NAME=VALUE, e.g. {example}", parameter="set_")
        options[name] = value
    options |= {"smoothing": smoothing} if smoothing else {}
    return options | ({"merge_repeats": "true"} if merge_repeats else {})


def _members(generated: Any) -> list[Any]:
    """Return the corpora as a list, each in the form in which it was passed."""
    if isinstance(generated, Mapping):
        return list(generated.values())
    is_list = isinstance(generated, list | tuple)
    is_table = is_list and generated and all(isinstance(row, Mapping) for row in generated)
    return list(generated) if is_list and not is_table else [generated]


def _document_source(corpus: Any, where: Sequence[str] = (), name: str = "") -> DocumentSource:
    """Return a corpus that can be read repeatedly; a file is streamed unless a condition needs all of it."""
    if isinstance(corpus, str | PathLike):
        corpus = CorpusFile(Path(fspath(corpus)))
    if not isinstance(corpus, CorpusFile):
        part = select_part(as_study(corpus), where)
        return DocumentSource(name or Path(part.origin).stem or "generated", part.iter_documents)

    def read() -> Iterator[Document]:
        if where:
            return select_part(formats.read(corpus.path, corpus.format), where).iter_documents()
        return (item for item in formats.stream_records(corpus.path, corpus.format) if isinstance(item, Document))

    return DocumentSource(name or corpus.path.stem, read)


def _check_files(corpora: Iterable[Any]) -> None:
    """Raise an error for missing files before a critic is fitted."""
    for corpus in corpora:
        path = corpus.path if isinstance(corpus, CorpusFile) else corpus
        if isinstance(path, str | PathLike) and not Path(fspath(path)).exists() and "://" not in str(path):
            raise FinecombError(f"{path}: file or folder not found")


def _figures_of(beside: str | PathLike[str] | pl.DataFrame | None) -> dict[str, dict[str, float]]:
    """Read scores of the systems by other metrics from a table."""
    if beside is None:
        return {}
    table = beside if isinstance(beside, pl.DataFrame) else pl.read_csv(fspath(beside))
    return human_judgements.metric_values_from_table(
        table, "beside" if isinstance(beside, pl.DataFrame) else str(beside)
    )


@contextlib.contextmanager
def _watch_critics(progress: Progress) -> Iterator[None]:
    """Show the progress of each stage as a bar on standard error, or report it to the caller's function."""
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
    """Prepare texts for a study: derive prompts, cut to length, drop copies and duplicates, and balance groups.

    Parameters
    ----------
    texts : Study, path, DataFrame, list of dicts or of documents, or a list of paths
        Articles or texts; several files become one study.
    prompt : {"first-sentence", "headline", "headline+first-sentence", "start"}, optional
        Prompt to derive: `first-sentence`, `headline`, `headline+first-sentence` or `start`.
        The rest of the article becomes the human continuation.
    start : str
        For the `start` prompt: words with which every text begins, such as 'Once upon a time'.
    words : str
        Words per text, `MIN-MAX` or `MIN-`; texts are cut after the sentence that reaches `MIN`.
        A text is dropped if no sentence ends within this length.
    priming : Study, path, DataFrame, or list of dicts or documents, optional
        Texts that a model was primed with; texts that copy one of them are dropped.
    overlap : float, default 0.8
        With `priming`: maximum share of a text's words that also occur in a priming text.
        Common words must have the same order (longest common subsequence).
    balance : str or sequence of str
        Comma-separated metadata fields; each combination gets the same number of sampled texts.
    per_cell : int, optional
        With `balance`: number of texts per combination (default: size of the smallest one).
    seed : int, default 0
        Random seed for sampling with `balance`.
    detokenise : bool, default False
        Remove the spaces that a tokenizer inserted around punctuation.
    keep_duplicates : bool, default False
        Keep duplicate texts.
    sections : {"with-titles", "without-titles", "read"}, optional
        Add section markers (`with-titles` or `without-titles`), or convert them (`read`).

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
    (1, {'b': 'duplicate of another text'})
    >>> next(result.study.iter_documents()).text
    'One lake.'
    """
    if priming is None and overlap != MAX_OVERLAP:
        raise ParameterError(
            f"{param('overlap')} requires {param('priming')}",
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
    """Return the documents of one corpus or of several; documents are passed through."""
    if isinstance(texts, list | tuple) and all(isinstance(text, Document) for text in texts):
        return list(texts)
    return [document for corpus in _members(texts) for document in _document_source(corpus).read()]
