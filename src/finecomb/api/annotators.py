"""Machine annotators: detectors and language models."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl

from finecomb import formats, protocols
from finecomb.annotators.detectors import DETECTORS, FittedDetector
from finecomb.annotators.detectors.batch_detection import RESULT_TABLE_NAMES, MarkedCorpus, mark_corpus
from finecomb.annotators.detectors.study_detection import (
    PreparedDetector,
    add_detector_annotations,
    build_training_options,
    detection_problem_notes,
    detector_mark_rows,
    find_training,
    prepare_detector,
    require_real_texts,
    submitted_gold_annotations,
)
from finecomb.annotators.llm.blocking import RunInterrupted
from finecomb.annotators.llm.chat import ChatMessage
from finecomb.annotators.llm.endpoint_consent import require_confirmed_endpoints
from finecomb.annotators.llm.injections import build_control_document, build_prompt_injection_probes, score_injections
from finecomb.annotators.llm.model_options import build_model_settings, short_model_name
from finecomb.annotators.llm.probed_model import ProbedModel
from finecomb.annotators.llm.prompt import PromptTemplate, system_prompt_text
from finecomb.annotators.llm.run_folder import RUNS_FOLDER
from finecomb.annotators.llm.run_identity import (
    annotator_name_clash,
    build_replacement,
    build_run_records,
    missing_documents,
    plan_replacement,
)
from finecomb.annotators.llm.run_list import list_machine_runs
from finecomb.annotators.llm.run_reports import (
    judge_validity_warning,
    many_calls_warning,
    merge_runs,
    reply_state_rows,
    run_estimate_row,
    run_notes,
)
from finecomb.annotators.llm.runs import (
    RETRY_STATES,
    AnnotationTask,
    ModelRun,
    RunPlan,
    execute_plan,
    judge_marks_with_model,
    plan_retries,
    plan_run,
)
from finecomb.annotators.llm.votes import check_vote, vote_on_run
from finecomb.api.model_catalogue import with_file_rates
from finecomb.api.models import MODEL_OPTIONS, Numbers, call_progress, read_template, run_until_interrupted
from finecomb.api.parameters import (
    Bounds,
    Count,
    Names,
    PositiveInt,
    StudyLike,
    Values,
    as_names,
    as_study,
    as_values,
    changed_parameters,
    public,
    select_part,
)
from finecomb.api.progress import Progress, resume_note, track_counts
from finecomb.collection.database.location import DATABASE_FILENAME, is_postgres_url, parse_location
from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.model_notes import COPY_OF_KEY
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotator, ModelSettings
from finecomb.core.results import Findings, ResultRow, Table
from finecomb.core.study import Study, StudyItem, merge_work
from finecomb.engine.options import PartitionOptions
from finecomb.engine.partitions import unfinished_partitions_folder
from finecomb.engine.user_code import allow_user_code
from finecomb.formats import parquet
from finecomb.formats.atomic_file import reject_existing_path, write_file_atomically
from finecomb.formats.detector_weights import save_weights
from finecomb.formats.parquet import ScannedStudy
from finecomb.formats.study_writes import change_study
from finecomb.statistics.judges.reliability_probes import PROBE_DESCRIPTIONS


@public
def list_detectors() -> Table:
    """List detectors and checkers, with their labels and requirements.

    Returns
    -------
    Table
        One row per detector: name, what, needs, protocol and kind.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.list_detectors().find(name="rules").protocol
    'scarecrow'
    """
    rows = [
        {
            "name": factory.name,
            "what": factory.title,
            "needs": factory.needs,
            "protocol": factory.protocol,
            "kind": factory.kind,
        }
        for factory in DETECTORS.values()
    ]
    return Table(rows, title="Detectors")


class Detection(Table):
    """The marks of a detector: one row per mark.

    Attributes
    ----------
    annotator : Annotator
        The detector as an annotator of the study.
    problems : tuple of str
        Why texts were not checked, one line per reason; also part of `notes`.
    mark_count, text_count : int
        Numbers of marks and of texts that were checked.
    output : Path or None
        Where the study was written.
    """

    title = "Marks"

    def __init__(
        self,
        detector: PreparedDetector,
        load_study: Callable[[], Study],
        counts: tuple[int, int],
        notes: list[str],
        problems: list[str],
        output: Path | None,
    ) -> None:
        self._detector, self._load_study = detector, load_study
        self.annotator: Annotator = detector.annotator
        self.signature = detector.program.signature
        self.mark_count, self.text_count = counts
        self.problems, self.notes = tuple(problems), (*notes, *problems)
        self.output = output

    @functools.cached_property
    def study(self) -> Study:
        """Study with the detector as an additional annotator; read from `output` if it was never in memory."""
        return self._load_study()

    @functools.cached_property
    def _rows(self) -> list[ResultRow]:  # type: ignore[override]
        key = (self.annotator.id, self._detector.protocol.id)
        annotations = (
            annotation
            for annotation in self.study.iter_annotations()
            if (annotation.annotator, annotation.protocol) == key
        )
        return [ResultRow(row) for row in detector_mark_rows(annotations)]


@public
def detect(
    study: StudyLike,
    detector: str,
    *,
    basis: Literal["record", "all"] = "record",
    threshold: float | None = None,
    weights: str | PathLike[str] | None = None,
    rules: Names = (),
    protocol: str = "snac",
    label: str = "",
    code: Names = (),
    allow_code: Values = (),
    options: Mapping[str, Any] | None = None,
    where: Values = (),
    drop: Values = (),
    output: str | PathLike[str] | None = None,
    into: str | PathLike[str] | None = None,
    force: bool = False,
    engine: str = "local",
    workers: PositiveInt | None = None,
    partitions: str | PathLike[str] | None = None,
    progress: Progress = False,
) -> Detection:
    """Mark errors in all texts of a study with a detector or checker; each mark has an explanation.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The texts to mark. Parquet with texts only stays on disk when `output` is Parquet.
    detector : str
        Name of the detector, as listed by `finecomb detectors`.
    basis : {"record", "all"}, default "record"
        For the `boxscore` detector: mark proven errors (`record`), or also likely ones (`all`).
    threshold : float, optional
        Minimum confidence of a mark, from 0 to 1 (default: the detector's own).
    weights : path, optional
        Weights written by `finecomb train`; for `critic`, the folder of a saved critic.
        `finecomb criticize --save` saves critics.
    rules : str or sequence of str
        For the `rules` detector: rules to apply, comma-separated (default: all except those on request).
    protocol : str, default "snac"
        For the `critic` detector: protocol that defines the labels of its marks.
    label : str
        For the `critic` detector: label to give to its marks.
    code : str or sequence of str
        For the `critic` detector: your code that it may run, as `module:name`, comma-separated.
    allow_code : str or sequence of str
        Python file or folder with the code named in `code`; may be repeated.
        Installed modules need no permission. Code in the working directory does not run without it.
    options : dict, optional
        Options of your own detector, by name.
    where : str or sequence of str
        Keep only matching texts, annotators or marks, such as `model=gpt2`; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    drop : str or sequence of str
        Omit marks by label, group or `LABEL:SEVERITY` (`grammar-usage:1`); may be repeated.
    output : path, optional
        Study to write, including the new marks.
    into : path, optional
        Study to add the marks to where it is stored, also while it is served; usually `STUDY`.
        Earlier marks of the detector under the same protocol stay in the study, excluded.
    force : bool, default False
        Replace the output if it exists.
    engine : str, default "local"
        Execution engine: `local` (processes on this machine), `ray` or `ray:ADDRESS` (cluster).
    workers : int, optional
        Number of parallel processes; results do not depend on it.
    partitions : path, optional
        Folder for intermediate results, so that an interrupted run can be resumed.
    progress : bool or callable, default False
        Show progress on standard error.
        A function is called with the numbers of finished and total texts instead.

    Returns
    -------
    Detection
        One row per mark; ``.study`` is the study with the detector as one more annotator.

    Raises
    ------
    ParameterError
        If an option does not apply to the detector.
    FinecombError
        If the study has no texts, or the detector fails at every text.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.detect([{"id": "a", "text": "He saw the the boat."}], "rules", rules="doubled-words")[0].label
    'grammar-usage'
    >>> fc.detect(fc.demo(), "rules").study
    Study('Saltby: the demo study': 16 documents, 112 annotations, 310 marks; scarecrow@2)
    """
    chosen = changed_parameters(detect, locals())
    if allow_code and not code:
        raise ParameterError(f"{param('allow_code')} requires {param('code')}", parameter="allow_code")
    if output and into:
        raise ParameterError(f"{param('output')} and {param('into')} cannot be used together", parameter="into")
    allow_user_code(as_values(allow_code))
    target = Path(output) if output else None
    whole, notes = _texts_to_mark(study, target, as_values(where), as_values(drop))
    prepared = prepare_detector(detector, {**_detector_options(chosen), **(options or {})}, whole.protocols)
    documents = whole.tables["documents"] if isinstance(whole, ScannedStudy) else whole.documents.lazy()
    if documents.head(1).collect().is_empty():
        place = whole.path if isinstance(whole, ScannedStudy) else whole.origin or "the study"
        raise FinecombError(f"{place}: no documents found")
    if target:
        reject_existing_path(target, force)
    work = PartitionOptions(engine, workers, Path(partitions) if partitions else None)
    with work.open_executor(unfinished_partitions_folder(target) if target else None) as executor:
        corpus = mark_corpus(
            documents,
            prepared.detection_task,
            prepared.program.signature,
            executor,
            lambda counts, total: track_counts(counts, progress, "texts", total),
        )
        notes = [*notes, *resume_note(executor.reused_row_count, "text")]
        is_checked = pl.col("status") == "submitted"
        mark_count = corpus.table("marks").select(pl.len()).collect().item()
        text_count = corpus.table("annotations").filter(is_checked).select(pl.len()).collect().item()
        load = _keep_marked_study(whole, prepared, corpus, target, force)
        if into:
            records: list[StudyItem] = [prepared.protocol, prepared.annotator, *corpus.iter_annotations()]
            stored = change_study(Path(into), lambda study: build_replacement(study, records), "ran a detector")
            load, target = (lambda: stored), Path(into)
        return Detection(prepared, load, (mark_count, text_count), notes, detection_problem_notes(corpus), target)


def _texts_to_mark(
    study: StudyLike, output: Path | None, where: tuple[str, ...], drop: tuple[str, ...]
) -> tuple[Study | ScannedStudy, list[str]]:
    """Return the texts to mark, left on disk if possible, and the notes of the importer."""
    if not isinstance(study, str | PathLike):
        return select_part(as_study(study), where, drop), []
    if output and output.name.endswith(parquet.FORMAT.suffixes) and not where and not drop:
        scanned = parquet.scan_unannotated_study(Path(study))
        if scanned is not None:
            return scanned, []
    whole = as_study(study)
    return select_part(whole, where, drop), list(whole.notes)


def _detector_options(chosen: dict[str, Any]) -> dict[str, Any]:
    """Return the detector options among the keywords, under their names in the options dataclasses."""
    options: dict[str, Any] = {name: chosen[name] for name in ("basis", "threshold", "label") if name in chosen}
    if "weights" in chosen:
        options["weights"] = Path(chosen["weights"])
    if "protocol" in chosen:
        options["labels_of"] = chosen["protocol"]
    return options | {name: as_names(chosen[name]) for name in ("rules", "code") if name in chosen}


def _keep_marked_study(
    whole: Study | ScannedStudy, prepared: PreparedDetector, corpus: MarkedCorpus, output: Path | None, force: bool
) -> Callable[[], Study]:
    """Write the study if `output` is given, and return a function that returns the study."""
    if isinstance(whole, ScannedStudy):  # scanned only if there is an output
        assert output is not None
        tables = {name: corpus.table(name) for name in RESULT_TABLE_NAMES}
        formats.save_annotated_study(
            whole, output, prepared.protocol, prepared.annotator, tables, corpus.is_valid(), force
        )
        return functools.partial(formats.read, output)
    items = add_detector_annotations(whole, prepared.annotator, prepared.protocol, corpus.iter_annotations())
    if output:
        formats.save_checked_records(items, output, force=force)
    return functools.partial(Study.from_items, items, whole.origin)


class TrainedDetector(Table):
    """A fitted detector: one row per label with recall, precision and other scores on held-out texts.

    Attributes
    ----------
    fitted : FittedDetector
        The weights, in the form that `detect` reads.
    text_count : int
        Number of training texts.
    """

    def __init__(self, fitted: FittedDetector) -> None:
        super().__init__(fitted.rows, title=fitted.title, notes=fitted.notes, signature=fitted.signature)
        self.fitted, self.text_count = fitted, fitted.texts

    def save(self, path: str | PathLike[str]) -> None:
        """Write the weights to a file or folder, for the parameter `weights` of `detect`."""
        save_weights(self.fitted, Path(path))


@public
def train(
    study: StudyLike,
    detector: str,
    *,
    output: str | PathLike[str] | None = None,
    gold: str = "",
    real: StudyLike | None = None,
    folds: Annotated[int, Bounds(3)] = 9,
    seed: int = 0,
    references: bool = True,
    group: str = "",
    test_folds: Count | None = None,
    spans: bool = True,
    encoder: str = "all-MiniLM-L6-v2",
    surprisal: str = "none",
    segments: bool = True,
    epochs: PositiveInt | None = None,
    model: str | None = None,
    per: Literal["token", "sentence"] = "token",
    negatives: Literal["coreference", "next-sentence"] = "coreference",
    form: Literal["encoder", "seq2seq"] = "encoder",
    tune: bool = False,
    options: Mapping[str, Any] | None = None,
) -> TrainedDetector:
    """Fit a detector to a study with gold annotations, and evaluate it on held-out texts.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        Texts with gold annotations.
    detector : str
        Name of the detector, as listed by `finecomb detectors`.
    output : path, optional
        File or folder to write the weights to, for `detect --weights`.
    gold : str
        Name of the gold annotator, if no annotator is of kind `gold`.
    real : Study, path, DataFrame or list of dicts, optional
        For the detectors `entity-grid` and `synthetic`: study or file with coherent texts.
    folds : int, default 9
        For the `boxscore` detector: number of cross-validation folds, split by game.
    seed : int, default 0
        Random seed for splitting texts into folds.
    references : bool, default True
        For the `boxscore` detector: use reference texts as reports without errors.
    group : str
        Document metadata field, such as `book`; texts with equal values stay in the same fold.
    test_folds : int, optional
        Number of cross-validation folds for evaluation (default: 3, or 0 for `transformer`).
    spans : bool, default True
        For the detectors `coherence` and `transformer`: also learn error types and spans.
        Otherwise the detector only learns whether a sentence is coherent.
    encoder : str, default "all-MiniLM-L6-v2"
        For the detectors `coherence` and `spans`: encoder (Hugging Face model or model folder).
        For `coherence`, `none` uses features alone.
    surprisal : str, default "none"
        For the `coherence` detector: causal language model for surprisal, such as `SmolLM2-135M`.
    segments : bool, default True
        For the `coherence` detector: use segment boundaries as a feature.
    epochs : int, optional
        Training epochs (default: 3 for `coherence`, 5 for `transformer` and 20 for `spans`).
    model : str, optional
        For the detectors `surprisal` and `transformer`: Hugging Face model or model folder.
    per : {"token", "sentence"}, default "token"
        For the `surprisal` detector: use mean surprisal per `token`, or its sum per `sentence`.
        The sum is -log P(s|c).
    negatives : {"coreference", "next-sentence"}, default "coreference"
        For the `synthetic` detector: train on `coreference` or `next-sentence` errors.
        Errors for training are made by removing a first mention, or by moving a later sentence forward.
    form : {"encoder", "seq2seq"}, default "encoder"
        For the `transformer` detector: classifier (`encoder`) or generated verdict (`seq2seq`).
    tune : bool, default False
        For the `spans` detector: also fine-tune the encoder, as in the paper (slower).
    options : dict, optional
        Training options of your own detector, by name.

    Returns
    -------
    TrainedDetector
        Recall and precision on texts left out; ``.save(path)`` writes the weights.

    Raises
    ------
    ParameterError
        If the detector has nothing to fit, or an option does not apply to it.
    FinecombError
        If too few texts have gold annotations.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.train("games", "boxscore", output="weights.json")  # doctest: +SKIP
    """
    chosen = changed_parameters(train, locals())
    training = find_training(detector)
    keywords = {name: value for name, value in chosen.items() if name not in ("output", "gold", "real", "options")}
    real_texts = None
    if real is not None:
        require_real_texts(detector)
        real_texts = [document.text for document in as_study(real, "real").iter_documents()]
    settings = build_training_options(detector, {**keywords, **(options or {})}, real_texts)
    whole = as_study(study)
    trained = TrainedDetector(training.fit(whole, submitted_gold_annotations(whole, gold), gold, settings))
    if output:
        trained.save(output)
    return trained


# --- language models -------------------------------------------------------------------------------------------------


class StaleContractWarning(UserWarning):
    """Warning that a judge is no longer valid for a study; see `calibrate`."""


class ManyCallsWarning(UserWarning):
    """Warning that a run sends its texts in so many parts that it makes a thousand calls or more."""


class ModelAnnotation(Table):
    """Annotations by a language model: one row per state of replies, or the result of a dry run or a probe.

    Attributes
    ----------
    study : Study
        The study with the model as an additional annotator; unchanged by a dry run.
    runs : tuple of ModelRun
        The run, followed by that of `verify`; for a probe, each pass over the texts.
    messages : tuple of ChatMessage
        The messages for the first text; only for a dry run.
    effects : Findings or None
        Effects that a probe measured.
    """

    def __init__(
        self,
        rows: Iterable[Mapping[str, object]],
        study: Study,
        runs: Sequence[ModelRun] = (),
        *,
        title: str,
        notes: Iterable[str] = (),
        signature: str = "",
        messages: Sequence[ChatMessage] = (),
        effects: Findings | None = None,
    ) -> None:
        super().__init__(rows, title=title, notes=notes, signature=signature)
        self.study, self.runs = study, tuple(runs)
        self.messages, self.effects = tuple(messages), effects


@public
def annotate(
    study: StudyLike,
    model: str,
    *,
    protocol: str = "",
    name: str = "",
    prompt: str | PathLike[str] | None = None,
    limit: PositiveInt | None = None,
    replace: bool = False,
    only_missing: bool = False,
    into: str | PathLike[str] | None = None,
    dry_run: bool = False,
    verify: str = "",
    vote: Annotated[float, Bounds(0, 1)] | None = None,
    jury: Names = (),
    runs: str | PathLike[str] | None = None,
    probe: str = "",
    paraphrase: str | PathLike[str] | None = None,
    own: str = "",
    base_url: str = "",
    key_env: str = "",
    trust_endpoint: bool = False,
    samples: PositiveInt | None = None,
    temperature: float | None = None,
    max_tokens: PositiveInt | None = None,
    shots: Count | None = None,
    price: Numbers = (),
    budget: float | None = None,
    concurrency: PositiveInt | None = None,
    requests_per_minute: float | None = None,
    tokens_per_minute: float | None = None,
    timeout: float | None = None,
    attempts: PositiveInt | None = None,
    context_tokens: int | None = None,
    by_segment: bool = False,
    chunk: str = "",
    seed: Count | None = None,
    effort: str = "",
    thinking_tokens: Count | None = None,
    api_version: str = "",
    extra: Values = (),
    retry: Names = (),
    batch: bool = False,
    wait: bool = False,
    batch_id: str = "",
    progress: Progress = False,
) -> ModelAnnotation:
    """Annotate a study's texts with a language model; replies are stored, and no call is paid for twice.

    Settings that are not given come from `models` in study.yaml, else from the defaults below.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The texts to annotate. The study itself is changed only with `into`; see ``.study`` of the result.
    model : str
        Model: `PROVIDER:NAME` (see `finecomb models list`), a name at `base_url` or in `study.yaml`, or a GGUF file.
    protocol : str
        Protocol of the study, a shipped protocol (see `finecomb protocols`), or a YAML file.
    name : str
        Name of the annotator (default: the model's name).
    prompt : path, optional
        File with your own prompt template; `finecomb prompts export` writes the built-in one.
    limit : int, optional
        Maximum number of texts to annotate, in order (default: all).
    replace : bool, default False
        Replace the annotator's run with other settings; the earlier run stays in the study, excluded.
        Without it, another model, prompt, parameter or provider under the name of an annotator is refused.
    only_missing : bool, default False
        Annotate only the texts that the annotator has not annotated, with the same settings.
    into : path, optional
        Study to add the annotations to: a folder, database or PostgreSQL URL, also while it is served.
    dry_run : bool, default False
        Send nothing; show the messages, tokens and cost for one text.
    verify : str
        Model that checks each mark in a second request; `same` for the annotating model.
    vote : float, optional
        Add an annotator with the marks that at least this share of the votes supports.
        Samples and the jury vote, and the confidence of a mark is its share of the votes.
    jury : str or sequence of str
        For `vote`: other models or detectors of the study that vote as well, comma-separated.
    runs : path, optional
        Folder for the model's replies (default: in the study's folder).
        Replies about a study in memory are not stored by default.
    probe : str
        Reliability test on 100 texts: `repeat`, `paraphrase`, `labels`, `position` or `self`.
    paraphrase : path, optional
        For the `paraphrase` probe: file with a reworded version of your prompt template.
    own : str
        For the `self` probe: system in the study whose texts the judging model generated.
    base_url : str
        URL of an OpenAI-compatible endpoint, such as `http://localhost:11434/v1`.
    key_env : str
        Environment variable with the API key (default: the usual one of the provider); the key is never stored.
    trust_endpoint : bool, default False
        Use the address and the key variable that the study names for the model; asked once per study.
    samples : int, optional
        Number of samples per text, each stored as a separate annotator (default: 1).
    temperature : float, optional
        Sampling temperature (default: not sent, so that the endpoint's own default applies).
    max_tokens : int, optional
        Maximum tokens per reply (default: 2048).
    shots : int, optional
        Number of gold texts shown as examples, never the judged text itself (default: 0).
    price : str or two numbers
        Prices as `IN,OUT`, in US dollars per million input and output tokens.
    budget : float, optional
        Budget in US dollars; calls that could exceed it are not made.
    concurrency : int, optional
        Maximum number of simultaneous calls (default: 8).
    requests_per_minute : float, optional
        Maximum number of calls per minute.
    tokens_per_minute : float, optional
        Maximum number of tokens sent per minute (estimated).
    timeout : float, optional
        Timeout per call in seconds (default: 600).
    attempts : int, optional
        Maximum attempts per call (default: 6).
    context_tokens : int, optional
        Context size of the model in tokens; longer texts are refused before the first call.
    by_segment : bool, default False
        Send each segment of a text in a separate request.
    chunk : str
        Send long texts in chunks of whole sentences, such as `words=800,overlap=100`.
    seed : int, optional
        Random seed for selecting the examples, also sent to the endpoint (default: 0).
    effort : str
        Reasoning effort, such as `low` or `high` (default: not sent).
    thinking_tokens : int, optional
        Maximum number of reasoning tokens, included in `max_tokens` (default: not sent).
    api_version : str
        Version of the API, for Azure, Anthropic and Gemini.
    extra : str or sequence of str
        Further parameter of requests as `NAME=VALUE`; can be repeated.
    retry : str or sequence of str
        Ask again about texts in these states: `refused`, `unreadable`, `truncated`, `empty`, `failed`.
        Truncated replies get twice the maximum tokens.
    batch : bool, default False
        Submit the requests in a batch, which some providers answer later at a lower price.
        The same call collects the replies.
    wait : bool, default False
        With `batch`: wait until all replies have arrived, checking every minute.
    batch_id : str
        With `batch`: ID of the batch of an interrupted run that cannot be identified, or `new`.
    progress : bool or callable, default False
        Show progress on standard error.
        A function is called with the numbers of finished and total calls instead.

    Returns
    -------
    ModelAnnotation
        Replies by state; ``.study`` holds the annotations, ``.messages`` the prompt of a dry run.

    Raises
    ------
    ParameterError
        If an option does not apply, the model cannot be asked as described, or the name belongs to another judge.
    RunInterrupted
        If the run is interrupted and its replies are kept; ``.result`` holds what was answered until then.

    Examples
    --------
    >>> import finecomb as fc
    >>> plan = fc.annotate(fc.demo(), "judge-4", base_url="http://localhost:11434/v1", dry_run=True)
    >>> plan[0].calls, [message.role for message in plan.messages]
    (16, ['system', 'user'])
    """
    chosen = changed_parameters(annotate, locals())
    _check_probe(chosen)
    states = _check_retry_and_batch(chosen, as_names(retry))
    whole = as_study(study)
    model_options = {option: chosen[option] for option in MODEL_OPTIONS if option in chosen}
    settings = build_model_settings(model, model_options, whole.settings.models)
    settings = with_file_rates(settings, Path(whole.origin) if whole.origin else None)
    is_stored = any(protocol in (candidate.name, candidate.id) for candidate in whole.protocols.values())
    used = whole.protocol(protocol) if is_stored or not protocol else protocols.load(protocol)
    whole = dataclasses.replace(whole, protocols={**whole.protocols, used.id: used})
    if vote is not None:
        check_vote(whole, used, settings.samples, as_names(jury))
    template = read_template(prompt)
    folder = Path(runs) if runs else _runs_folder(whole)
    annotator = name or short_model_name(model)
    if probe:
        probed = ProbedModel(whole, settings, used, annotator, template, limit)
        require_confirmed_endpoints([(settings, model_options)], whole.origin, trust_endpoint)
        return _run_probe(probed, probe, read_template(paraphrase), own, folder, progress, into)
    documents = list(whole.iter_documents())[:limit]
    run_plan = plan_run(whole, settings, used, documents, annotator, template)
    if replace:
        run_plan = plan_replacement(whole, run_plan)
    elif clash := annotator_name_clash(whole, run_plan):
        raise ParameterError(clash, parameter="name")
    if only_missing:
        missing = missing_documents(whole, run_plan)
        if not missing:
            raise FinecombError(f"annotator {annotator!r} has annotated all {len(documents):,} texts; none is missing")
        chosen_documents = [document for document in documents if document.id in missing]
        run_plan = plan_run(whole, settings, used, chosen_documents, annotator, template)
    if warning := judge_validity_warning(Path(whole.origin), run_plan) if whole.origin else "":
        warnings.warn(warning, StaleContractWarning, stacklevel=3)
    if warning := many_calls_warning(run_plan):
        warnings.warn(warning, ManyCallsWarning, stacklevel=3)
    if dry_run:
        first = next(run_plan.iter_calls()).request.messages
        row, estimate_notes = run_estimate_row(run_plan, folder)
        notes = ["nothing was sent", *estimate_notes]
        return ModelAnnotation([row], whole, title="Planned run", notes=notes, messages=first)
    reviewer = _model_of_reviewer(whole, settings, verify) if verify else None
    reviewers = [(reviewer, () if verify in whole.settings.models else model_options)] if reviewer else []
    require_confirmed_endpoints([(settings, model_options), *reviewers], whole.origin, trust_endpoint)
    if states:
        run_plan = plan_retries(run_plan, folder, states)
    if batch:
        if folder is None:
            raise ParameterError(f"{param('batch')} requires a study on disk or {param('runs')}", parameter="batch")
        from finecomb.annotators.llm.batch_runner import run_task_in_batches  # its HTTP client is an extra

        with call_progress(progress) as watch:
            seconds = 60.0 if wait else None
            run = run_task_in_batches(AnnotationTask(run_plan), folder, watch, seconds, batch_id)
        return _store_runs(whole, run_plan, [run], into, replace)
    run, is_interrupted = run_until_interrupted(functools.partial(AnnotationTask, run_plan), folder, progress)
    if is_interrupted:
        raise RunInterrupted(_store_runs(whole, run_plan, [run], into, replace))
    audit = _verify_marks(whole, run, reviewer, folder, progress) if reviewer else None
    votes = vote_on_run(whole, run, vote, as_names(jury)) if vote is not None and run.annotations else None
    return _store_runs(whole, run_plan, [run], into, replace, audit, votes)


def _check_probe(chosen: Mapping[str, Any]) -> None:
    """Refuse an unknown probe, and options that do not apply to it."""
    probe = chosen.get("probe", "")
    if probe and probe not in PROBE_DESCRIPTIONS:
        raise ParameterError(
            f"unknown {param('probe')} {probe!r}{did_you_mean(probe, PROBE_DESCRIPTIONS)}", parameter="probe"
        )
    for name, required in (("paraphrase", "paraphrase"), ("own", "self")):
        if name in chosen and probe != required:
            raise ParameterError(f"{param(name)} requires {param('probe', required)}", parameter=name)
    if "jury" in chosen and "vote" not in chosen:
        raise ParameterError(f"{param('jury')} requires {param('vote')}", parameter="jury")
    for name in ("dry_run", "verify", "vote", "replace", "only_missing"):
        if name in chosen and probe:
            raise ParameterError(f"{param(name)} and {param('probe')} cannot be used together", parameter=name)
    if "replace" in chosen and "only_missing" in chosen:
        raise ParameterError(
            f"{param('replace')} and {param('only_missing')} cannot be used together", parameter="replace"
        )
    if "into" in chosen and "dry_run" in chosen:
        raise ParameterError(f"{param('into')} and {param('dry_run')} cannot be used together", parameter="into")


def _check_retry_and_batch(chosen: Mapping[str, Any], states: Sequence[str]) -> tuple[str, ...]:
    """Return the states of replies to ask for again. Refuse unknown states, and options that do not apply."""
    for state in states:
        if state not in RETRY_STATES:
            raise ParameterError(
                f"unknown {param('retry')} {state!r}{did_you_mean(state, RETRY_STATES)}", parameter="retry"
            )
    for name in ("wait", "batch_id"):
        if name in chosen and not chosen.get("batch"):
            raise ParameterError(f"{param(name)} requires {param('batch')}", parameter=name)
    for name in ("retry", "batch"):
        for other in ("probe", "dry_run", *(["verify"] if name == "batch" else [])):
            if name in chosen and other in chosen:
                raise ParameterError(f"{param(name)} and {param(other)} cannot be used together", parameter=name)
    return tuple(states)


def _runs_folder(study: Study) -> Path | None:
    """Return the folder for runs of a study that was read from disk, or None for a study in memory."""
    if not study.origin:
        return None
    origin = Path(study.origin)
    if is_postgres_url(origin):
        return Path(f"{parse_location(origin).study or 'study'}.{RUNS_FOLDER}")  # in the current folder, like backups
    if origin.is_dir() or origin.name == DATABASE_FILENAME:
        return (origin if origin.is_dir() else origin.parent) / RUNS_FOLDER
    return origin.with_name(f"{origin.name}.{RUNS_FOLDER}")


def _model_of_reviewer(study: Study, settings: ModelSettings, model: str) -> ModelSettings:
    """Return the settings of the model that reviews each mark: the same one, one of the study, or another name."""
    other = settings if model == "same" else study.settings.models.get(model)
    other = other or settings.model_copy(update={"model": model, "rates": None})
    return with_file_rates(other, Path(study.origin) if study.origin else None)


def _verify_marks(
    study: Study, run: ModelRun, other: ModelSettings, runs: Path | None, progress: Progress
) -> ModelRun | None:
    """Ask the same or another model for a second opinion on each mark."""
    audit = protocols.load("audit")
    whole = Study.from_items([*merge_runs(study, [run]), audit])
    name = f"{short_model_name(other.model)}-audit"
    with call_progress(progress) as watch:
        return judge_marks_with_model(whole, run.annotations, other, audit, runs, name, watch=watch)


def _run_probe(
    probed: ProbedModel,
    probe: str,
    paraphrase: PromptTemplate | None,
    own_system: str,
    runs: Path | None,
    progress: Progress,
    into: str | PathLike[str] | None,
) -> ModelAnnotation:
    """Run a probe and return its effects, with its annotations in the study."""
    readings: list[ModelRun] = []

    def store_pass(run_plan: RunPlan, run: ModelRun) -> None:
        if into is not None and run.annotations:
            change_study(Path(into), lambda study: build_run_records(study, run_plan, [run], False), "probed a model")

    for run_plan in probed.iter_run_plans(probe, paraphrase):
        if clash := annotator_name_clash(probed.study, run_plan):
            raise ParameterError(clash, parameter="name")
        run, is_interrupted = run_until_interrupted(functools.partial(AnnotationTask, run_plan), runs, progress)
        readings.append(probed.add_probe_meta(run, probe, own_system))
        store_pass(run_plan, readings[-1])
        if is_interrupted:
            whole = Study.from_items(merge_runs(probed.study, readings), probed.study.origin)
            raise RunInterrupted(_summarise_runs(whole, readings))
    title = f"Probe {probe!r} of {probed.name}"
    notes = [note for reading in readings for note in run_notes(reading)]
    effects = Findings(
        probed.probe_findings_of_runs(readings, probe, own_system), notes, title=title, protocol=probed.protocol
    )
    whole = Study.from_items(merge_runs(probed.study, readings), probed.study.origin)
    return ModelAnnotation(
        effects.rows(), whole, readings, title=title, notes=notes, signature=effects.signature, effects=effects
    )


def _store_runs(
    study: Study,
    run_plan: RunPlan,
    runs: Sequence[ModelRun],
    into: str | PathLike[str] | None,
    replaces: bool,
    audit: ModelRun | None = None,
    votes: ModelRun | None = None,
) -> ModelAnnotation:
    """Return the result of runs; with `into`, also store them where that study is stored."""
    stored = [*runs, *(run for run in (audit, votes) if run)]

    def build(current: Study) -> list[StudyItem]:
        protocols_used = {run.record.protocol: protocol for run in stored if (protocol := _protocol_of(study, run))}
        records = build_run_records(current, run_plan, stored, replaces)
        return [*(protocol for id, protocol in protocols_used.items() if id not in current.protocols), *records]

    if into is None:
        whole = Study.from_items(merge_work(study, build(study), replace=True), study.origin)
    else:
        whole = change_study(Path(into), build, "annotated with a model")
    return _summarise_runs(whole, runs, audit, votes)


def _protocol_of(study: Study, run: ModelRun) -> Protocol:
    return study.protocols.get(run.record.protocol) or protocols.load(run.record.protocol.partition("@")[0])


def _summarise_runs(
    study: Study, runs: Sequence[ModelRun], audit: ModelRun | None = None, votes: ModelRun | None = None
) -> ModelAnnotation:
    """Return a table of reply states of the last run, and the study with the annotations of all runs."""
    notes = [note for run in runs for note in run_notes(run)]
    if audit:
        count = len(audit.annotations)
        notes.append(f"{count:,} mark{'' if count == 1 else 's'} reviewed by {audit.record.name}")
    if votes:
        count = sum(len(annotation.marks) for annotation in votes.annotations)
        notes.append(f"{count:,} mark{'' if count == 1 else 's'} by votes, as annotator {votes.annotators[0].id}")
    everything = [*runs, *(run for run in (audit, votes) if run)]
    name = runs[-1].record.name
    for annotator in study.iter_annotators():
        if annotator.id == name and (original := annotator.meta.get(COPY_OF_KEY)):
            notes.append(f"all replies of {name} are those of {original}, so {name} is marked as a copy of {original}")
    title = f"Replies of {name}"
    return ModelAnnotation(reply_state_rows(runs[-1]), study, everything, title=title, notes=notes)


@public
def list_runs(study: StudyLike, *, runs: str | PathLike[str] | None = None) -> Table:
    """List every machine run of a study: settings, cost, replies and which is in force.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The study whose model, detector and checker runs are listed. A path is read with :func:`read`.
    runs : path, optional
        Folder with the model's replies (default: in the study's folder).

    Returns
    -------
    Table
        One row per annotator and run: annotator, kind, run, status, model, protocol, settings, texts, replies, cost.
        The status is `in force`, `copy of NAME`, `replaced by RUN`, or `not in the study`.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.list_runs(fc.detect(fc.demo(), "rules").study)[0].status
    'in force'
    """
    whole = as_study(study)
    folder = Path(runs) if runs else _runs_folder(whole)
    return Table(list_machine_runs(whole, folder), title="Runs")


# --- prompts ---------------------------------------------------------------------------------------------------------


class PromptText(str):
    """A prompt or template: a string whose `repr` shows its beginning."""

    __slots__ = ()

    def __repr__(self) -> str:
        lines = [line[:110] for line in self.strip().splitlines()[:12]]
        return "\n".join([f"Prompt of {len(self):,} characters", *lines, "..."])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"


@public
def show_prompt(protocol: str | PathLike[str] | Protocol) -> PromptText:
    """Show the instructions that a model receives for a protocol; `annotate --dry-run` shows them with a text.

    Parameters
    ----------
    protocol : str, path or Protocol
        Name of a shipped protocol (see `finecomb protocols`), or a YAML file.

    Returns
    -------
    PromptText
        The system message; ``print`` shows all of it.

    Examples
    --------
    >>> import finecomb as fc
    >>> "New person not introduced" in fc.show_prompt("snac")
    True
    """
    return PromptText(system_prompt_text(protocol if isinstance(protocol, Protocol) else protocols.load(str(protocol))))


@public
def export_prompt(file: str | PathLike[str] | None = None, *, force: bool = False) -> PromptText:
    """Export the built-in prompt template, to be edited and used with `annotate --prompt`.

    Words between double braces are filled in.

    Parameters
    ----------
    file : path, optional
        File to write the prompt template to.
    force : bool, default False
        Replace the file if it exists.

    Returns
    -------
    PromptText
        The template.

    Examples
    --------
    >>> import finecomb as fc
    >>> "{{labels}}" in fc.export_prompt()
    True
    """
    template = PromptTemplate().to_text()
    if file is not None:
        reject_existing_path(Path(file), force)
        write_file_atomically(Path(file), template)
    return PromptText(template)


class PromptAttack(Table):
    """Prompt-injection test: the number of instructions in texts that a model obeyed, as one row.

    Attributes
    ----------
    obeyed : tuple of str
        The instructions that it obeyed.
    run : ModelRun
        The replies.
    """

    def __init__(self, model: str, run: ModelRun) -> None:
        result = score_injections(run.annotations)
        row = {"orders": result.tried, "obeyed": len(result.followed), "share": result.rate, "why": result.why}
        states = ", ".join(f"{count} {state}" for state, count in sorted(run.states.items()))
        notes = [f"replies: {states}", *(f"obeyed: {order}" for order in result.followed)]
        super().__init__([row], title=f"Instructions in texts that {model} obeyed", notes=notes)
        self.obeyed, self.run = tuple(result.followed), run


@public
def attack_prompt(
    protocol: str | PathLike[str] | Protocol,
    model: str,
    *,
    runs: str | PathLike[str] | None = None,
    base_url: str = "",
    key_env: str = "",
    samples: PositiveInt | None = None,
    temperature: float | None = None,
    max_tokens: PositiveInt | None = None,
    shots: Count | None = None,
    price: Numbers = (),
    budget: float | None = None,
    concurrency: PositiveInt | None = None,
    requests_per_minute: float | None = None,
    tokens_per_minute: float | None = None,
    timeout: float | None = None,
    attempts: PositiveInt | None = None,
    context_tokens: int | None = None,
    by_segment: bool = False,
    seed: Count | None = None,
    progress: Progress = False,
) -> PromptAttack:
    """Test a model against prompt injection with thirty texts that contain instructions.

    Parameters
    ----------
    protocol : str, path or Protocol
        Name of a shipped protocol (see `finecomb protocols`), or a YAML file.
    model : str
        Model: its name at the endpoint, a GGUF file, or `local:smollm2`.
    runs : path, optional
        Folder for the model's replies, so that no call is paid for twice.
    base_url : str
        URL of an OpenAI-compatible endpoint, such as `http://localhost:11434/v1`.
    key_env : str
        Environment variable with the endpoint's API key; the key itself is never stored.
    samples : int, optional
        Number of samples per text (default: 1).
    temperature : float, optional
        Sampling temperature (default: not sent, so that the endpoint's own default applies).
    max_tokens : int, optional
        Maximum tokens per reply (default: 2048).
    shots : int, optional
        Number of gold texts shown as examples (default: 0).
    price : str or two numbers
        Prices as `IN,OUT`, in US dollars per million input and output tokens.
    budget : float, optional
        Budget in US dollars; calls that could exceed it are not made.
    concurrency : int, optional
        Maximum number of simultaneous calls (default: 8).
    requests_per_minute : float, optional
        Maximum number of calls per minute.
    tokens_per_minute : float, optional
        Maximum number of tokens sent per minute (estimated).
    timeout : float, optional
        Timeout per call in seconds (default: 120).
    attempts : int, optional
        Maximum attempts per call (default: 6).
    context_tokens : int, optional
        Context size of the model in tokens; longer texts are refused before the first call.
    by_segment : bool, default False
        Send each segment of a text in a separate request.
    seed : int, optional
        Random seed sent to the endpoint (default: 0).
    progress : bool or callable, default False
        Show progress on standard error.
        A function is called with the numbers of finished and total calls instead.

    Returns
    -------
    PromptAttack
        Orders, how many were obeyed, and their share; ``.obeyed`` lists them.

    Raises
    ------
    FinecombError
        If no text got a reply.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.attack_prompt("scarecrow", "qwen3:8b", base_url="http://localhost:11434/v1")  # doctest: +SKIP
    """
    chosen = changed_parameters(attack_prompt, locals())
    settings = build_model_settings(model, {name: chosen[name] for name in MODEL_OPTIONS if name in chosen})
    used = protocol if isinstance(protocol, Protocol) else protocols.load(str(protocol))
    documents = [build_control_document(), *(document for _, _, document in build_prompt_injection_probes())]
    run_plan = plan_run(Study.from_items([used, *documents]), settings, used)
    with call_progress(progress) as watch:
        run = execute_plan(run_plan, Path(runs) if runs else None, watch=watch)
    if not run.annotations:
        raise FinecombError(f"no text received a reply: {next(iter(run.unasked.values()), 'no request was sent')}")
    return PromptAttack(model, run)
