"""Annotators that are programs: detectors and language models."""

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
from finecomb.annotators.detectors import FittedDetector, detectors_by_name
from finecomb.annotators.detectors.batch_detection import RESULT_TABLES, MarkedCorpus, mark_corpus
from finecomb.annotators.detectors.study_detection import (
    PreparedDetector,
    add_detector_work,
    build_training_options,
    find_training,
    gold_annotations,
    mark_rows,
    prepare_detector,
    problem_notes,
    require_real_texts,
)
from finecomb.annotators.llm.blocking import RunInterrupted
from finecomb.annotators.llm.chat import ChatMessage
from finecomb.annotators.llm.injections import control_document, injection_documents, injection_result
from finecomb.annotators.llm.model_options import build_model_settings, short_model_name
from finecomb.annotators.llm.probed_model import ProbedModel
from finecomb.annotators.llm.prompt import PromptTemplate, prompt_text
from finecomb.annotators.llm.run_folder import RUNS_FOLDER
from finecomb.annotators.llm.run_reports import contract_warning, estimate_row, items_with_runs, run_notes, state_rows
from finecomb.annotators.llm.runs import (
    ModelRun,
    RunPlan,
    collect_results,
    execute_plan,
    name_clash,
    plan_run,
    verify_marks,
)
from finecomb.api.coercion import StudyLike, as_names, as_study, as_values
from finecomb.api.models import MODEL_OPTIONS, Numbers, call_progress, read_template
from finecomb.api.parameters import Bounds, Count, Names, PositiveInt, Values, changed_parameters, public
from finecomb.api.progress import Progress, resume_note, track_counts
from finecomb.api.selection import select_part
from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotator, ModelSettings
from finecomb.core.results import Findings, ResultRow, Table
from finecomb.core.study import Study
from finecomb.engine.options import PartitionOptions
from finecomb.engine.partitions import unfinished_partitions_folder
from finecomb.formats import parquet
from finecomb.formats.atomic_file import reject_existing_path, write_file
from finecomb.formats.detector_weights import save_weights
from finecomb.formats.parquet import ScannedStudy
from finecomb.statistics.judges.reliability_probes import PROBES


@public
def list_detectors() -> Table:
    """Every detector and checker, what it needs and whose labels it uses.

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
        for factory in detectors_by_name().values()
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
        """The study with the detector as one more annotator; read from `output` where it was never in memory."""
        return self._load_study()

    @functools.cached_property
    def _rows(self) -> list[ResultRow]:  # type: ignore[override]
        key = (self.annotator.id, self._detector.protocol.id)
        annotations = (
            annotation
            for annotation in self.study.iter_annotations()
            if (annotation.annotator, annotation.protocol) == key
        )
        return [ResultRow(row) for row in mark_rows(annotations)]


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
    options: Mapping[str, Any] | None = None,
    where: Values = (),
    drop: Values = (),
    output: str | PathLike[str] | None = None,
    force: bool = False,
    engine: str = "local",
    workers: PositiveInt | None = None,
    partitions: str | PathLike[str] | None = None,
    progress: Progress = False,
) -> Detection:
    """Mark every text of a study with a detector or checker; each mark explains itself.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The texts to mark. Parquet with texts only stays on disk when `output` is Parquet.
    detector : str
        Name of the detector; `finecomb detectors` lists them.
    basis : {"record", "all"}, default "record"
        For boxscore: only what the data proves, or also what people mostly find wrong.
    threshold : float, optional
        Minimum confidence of a mark, from 0 to 1.
    weights : path, optional
        Weights that `train` wrote, or for a critic what `criticize --save` wrote.
    rules : str or sequence of str
        For rules: only these, comma-separated (default: all but those on request).
    protocol : str, default "snac"
        For a critic: the protocol whose labels it uses.
    label : str
        For a critic: the label of its marks.
    code : str or sequence of str
        For a critic: module:name of your own code that it needs, comma-separated.
    options : dict, optional
        Options of a detector of your own, by name.
    where : str or sequence of str
        Condition on texts, annotators, annotations or marks, such as model=gpt2 or 'top_p >= 0.9'; may be repeated.
    drop : str or sequence of str
        Omit a label or group, or one severity of it (grammar-usage:1); may be repeated.
    output : path, optional
        Write the study with the new marks.
    force : bool, default False
        Replace an existing output.
    engine : str, default "local"
        Local processes, ray, or ray:ADDRESS of a cluster.
    workers : int, optional
        Number of processes; changes no number.
    partitions : path, optional
        Folder for finished parts, so that an interrupted run resumes.
    progress : bool or callable, default False
        Show progress on standard error, or call a function with the texts done and all texts.

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
    target = Path(output) if output else None
    whole, notes = _texts_to_mark(study, target, as_values(where), as_values(drop))
    prepared = prepare_detector(detector, {**_detector_options(chosen), **(options or {})}, whole.protocols)
    documents = whole.tables["documents"] if isinstance(whole, ScannedStudy) else whole.documents.lazy()
    if documents.head(1).collect().is_empty():
        place = whole.path if isinstance(whole, ScannedStudy) else whole.origin or "the study"
        raise FinecombError(f"{place}: has no documents yet")
    if target:
        reject_existing_path(target, force)
    work = PartitionOptions(engine, workers, Path(partitions) if partitions else None)
    with work.open_executor(unfinished_partitions_folder(target) if target else None) as executor:
        corpus = mark_corpus(
            documents,
            prepared.document_marking,
            prepared.program.signature,
            executor,
            lambda counts, total: track_counts(counts, progress, "texts", total),
        )
        notes = [*notes, *resume_note(executor.reused_row_count, "text")]
        is_checked = pl.col("status") == "submitted"
        mark_count = corpus.table("marks").select(pl.len()).collect().item()
        text_count = corpus.table("annotations").filter(is_checked).select(pl.len()).collect().item()
        load = _keep_marked_study(whole, prepared, corpus, target, force)
        return Detection(prepared, load, (mark_count, text_count), notes, problem_notes(corpus), target)


def _texts_to_mark(
    study: StudyLike, output: Path | None, where: tuple[str, ...], drop: tuple[str, ...]
) -> tuple[Study | ScannedStudy, list[str]]:
    """Return what is to be marked, on disk where that is possible, and what the reader of a file had to say."""
    if not isinstance(study, str | PathLike):
        return select_part(as_study(study), where, drop), []
    if output and output.name.endswith(parquet.FORMAT.suffixes) and not where and not drop:
        scanned = parquet.scan_texts(Path(study))
        if scanned is not None:
            return scanned, []
    whole = as_study(study)
    return select_part(whole, where, drop), list(whole.notes)


def _detector_options(chosen: dict[str, Any]) -> dict[str, Any]:
    """Return the options of detectors among the keywords that were given, as their dataclasses have them."""
    options: dict[str, Any] = {name: chosen[name] for name in ("basis", "threshold", "label") if name in chosen}
    if "weights" in chosen:
        options["weights"] = Path(chosen["weights"])
    if "protocol" in chosen:
        options["labels_of"] = chosen["protocol"]
    return options | {name: as_names(chosen[name]) for name in ("rules", "code") if name in chosen}


def _keep_marked_study(
    whole: Study | ScannedStudy, prepared: PreparedDetector, corpus: MarkedCorpus, output: Path | None, force: bool
) -> Callable[[], Study]:
    """Write the study where that is asked for, and return a function that gives it."""
    if isinstance(whole, ScannedStudy):  # scanned only where there is an output
        assert output is not None
        tables = {name: corpus.table(name) for name in RESULT_TABLES}
        formats.save_annotated_study(
            whole, output, prepared.protocol, prepared.annotator, tables, corpus.is_valid(), force
        )
        return functools.partial(formats.read, output)
    items = add_detector_work(whole, prepared.annotator, prepared.protocol, corpus.annotations())
    if output:
        formats.save_checked(items, output, force=force)
    return functools.partial(Study.from_items, items, whole.origin)


class TrainedDetector(Table):
    """A fitted detector: one row per label with recall, precision and the like on texts left out of fitting.

    Attributes
    ----------
    fitted : FittedDetector
        The weights, as `detect` reads them from a file or folder.
    text_count : int
        Number of texts that it was fitted on.
    """

    def __init__(self, fitted: FittedDetector) -> None:
        super().__init__(fitted.rows, title=fitted.title, notes=fitted.notes, signature=fitted.signature)
        self.fitted, self.text_count = fitted, fitted.texts

    def save(self, path: str | PathLike[str]) -> None:
        """Write the weights, a file or a folder, for `weights` of `detect`."""
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
    """Fit a detector to a study that people have checked, and measure it on texts left out of fitting.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        Texts with gold annotations.
    detector : str
        Name of the detector; `finecomb detectors` lists them.
    output : path, optional
        Write the weights, a file or a folder, for `detect --weights`.
    gold : str
        Name of the gold annotator, where no annotator is of kind gold.
    real : Study, path, DataFrame or list of dicts, optional
        For entity-grid and synthetic: texts that count as coherent, a study or a file of texts.
    folds : int, default 9
        For boxscore: groups of games, each left out once.
    seed : int, default 0
        Seed of the folds.
    references : bool, default True
        For boxscore: take the references of texts as reports without errors.
    group : str
        Document meta whose values are never split between folds, such as book.
    test_folds : int, optional
        Groups of texts, each left out once to measure the detector (default: 3, for transformer 0).
    spans : bool, default True
        For coherence and transformer: learn types and spans too, not only whether a sentence is coherent.
    encoder : str, default "all-MiniLM-L6-v2"
        For coherence and spans: the encoder, by public name or folder; none for features alone.
    surprisal : str, default "none"
        For coherence: a causal language model whose surprisal is a feature, such as SmolLM2-135M.
    segments : bool, default True
        For coherence: use where segments begin.
    epochs : int, optional
        Passes over the texts (default: 3 for coherence, 5 for transformer, 20 for spans).
    model : str, optional
        For surprisal and transformer: a Hugging Face model by name, or a folder.
    per : {"token", "sentence"}, default "token"
        For surprisal: mean over the tokens of a sentence, or their sum, -log P(s|c).
    negatives : {"coreference", "next-sentence"}, default "coreference"
        For synthetic: errors made by removing a first mention, or by moving a later sentence forward.
    form : {"encoder", "seq2seq"}, default "encoder"
        For transformer: a head on an encoder, or a model that writes its verdict.
    tune : bool, default False
        For spans: fine-tune the encoder too, as the paper does; slower.
    options : dict, optional
        Training options of a detector of your own, by name.

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
    trained = TrainedDetector(training.fit(whole, gold_annotations(whole, gold), gold, settings))
    if output:
        trained.save(output)
    return trained


# --- language models -------------------------------------------------------------------------------------------------


class StaleContractWarning(UserWarning):
    """A judge whose calibration no longer holds; see `calibrate`."""


class ModelAnnotation(Table):
    """Annotations by a language model: one row per state of replies, or what a dry run or a probe found.

    Attributes
    ----------
    study : Study
        The study with the model as one more annotator; unchanged by a dry run.
    runs : tuple of ModelRun
        The run, followed by that of `verify`; of a probe, each reading of the texts.
    messages : tuple of ChatMessage
        The messages for the first text; only of a dry run.
    effects : Findings or None
        What a probe shows.
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
    dry_run: bool = False,
    verify: str = "",
    runs: str | PathLike[str] | None = None,
    probe: str = "",
    paraphrase: str | PathLike[str] | None = None,
    own: str = "",
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
) -> ModelAnnotation:
    """Annotate a study's texts with a language model; replies are kept, and no call is paid twice.

    Settings that are not given come from `models` in study.yaml, else from the defaults below.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The texts to annotate. The study itself is not changed; see ``.study`` of the result.
    model : str
        The endpoint's name for it, a name under `models` in study.yaml, a GGUF file, or local:smollm2.
    protocol : str
        A protocol of the study, a shipped protocol's name or your YAML file.
    name : str
        Name of the annotator (default: the model's name).
    prompt : path, optional
        Your own prompt template; `prompts export` writes ours.
    limit : int, optional
        Annotate only the first texts, as many as this number.
    dry_run : bool, default False
        Send nothing; show one text's messages, tokens and cost.
    verify : str
        A model (`same` for this one) that confirms each mark.
    runs : path, optional
        Folder for replies (default: in the study's folder; none for a study in memory).
    probe : str
        Test the judge on 100 texts: repeat, paraphrase, labels, position or self.
    paraphrase : path, optional
        For probe paraphrase: your own prompt template in other words.
    own : str
        For probe self: the system that is the judge's own model.
    base_url : str
        Address of an OpenAI-compatible endpoint, such as http://localhost:11434/v1.
    key_env : str
        Environment variable with the endpoint's key; the key itself is written nowhere.
    samples : int, optional
        Number of samples per text, each an annotator of its own (default: 1).
    temperature : float, optional
        Temperature; not sent when absent.
    max_tokens : int, optional
        Maximum tokens per reply (default: 2048).
    shots : int, optional
        Number of gold texts shown as examples, never the text that is judged (default: 0).
    price : str or two numbers
        IN,OUT: US dollars per million tokens sent and received.
    budget : float, optional
        Budget in US dollars; no call is made that could exceed it.
    concurrency : int, optional
        Maximum calls at a time (default: 8).
    requests_per_minute : float, optional
        Maximum calls per minute.
    tokens_per_minute : float, optional
        Maximum tokens sent per minute, as estimated.
    timeout : float, optional
        Seconds per call (default: 120).
    attempts : int, optional
        Maximum attempts per call (default: 6).
    context_tokens : int, optional
        Tokens that fit into the model; longer texts are refused before the first call.
    by_segment : bool, default False
        Ask part by part.
    seed : int, optional
        Seed of the choice of shots, also sent to the endpoint (default: 0).
    progress : bool or callable, default False
        Show progress on standard error, or call a function with the calls done and all calls.

    Returns
    -------
    ModelAnnotation
        Replies by state; ``.study`` holds the annotations, ``.messages`` the prompt of a dry run.

    Raises
    ------
    ParameterError
        If an option does not apply, or the model cannot be asked as described.
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
    whole = as_study(study)
    model_options = {option: chosen[option] for option in MODEL_OPTIONS if option in chosen}
    settings = build_model_settings(model, model_options, whole.settings.models)
    used = _find_protocol(whole, protocol)
    whole = dataclasses.replace(whole, protocols={**whole.protocols, used.id: used})
    template = read_template(prompt)
    folder = Path(runs) if runs else _runs_folder(whole)
    annotator = name or short_model_name(model)
    if probe:
        probed = ProbedModel(whole, settings, used, annotator, template, limit)
        return _run_probe(probed, probe, read_template(paraphrase), own, folder, progress)
    documents = list(whole.iter_documents())[:limit]
    run_plan = plan_run(whole, settings, used, documents, annotator, template)
    if clash := name_clash(whole, run_plan):
        raise ParameterError(clash, parameter="name")
    if warning := contract_warning(Path(whole.origin), run_plan) if whole.origin else "":
        warnings.warn(warning, StaleContractWarning, stacklevel=3)
    if dry_run:
        first = next(run_plan.calls()).request.messages
        row = estimate_row(run_plan)
        return ModelAnnotation([row], whole, title="What a run would take", notes=["nothing was sent"], messages=first)
    run, is_interrupted = _execute_plan(run_plan, folder, progress)
    if is_interrupted:
        raise RunInterrupted(_summarise_runs(whole, [run]))
    audit = _verify_marks(whole, run, settings, verify, folder, progress) if verify else None
    return _summarise_runs(whole, [run], audit)


def _check_probe(chosen: Mapping[str, Any]) -> None:
    """Refuse a probe that does not exist, and options that do not go with it."""
    probe = chosen.get("probe", "")
    if probe and probe not in PROBES:
        raise ParameterError(f"{param('probe', probe)}: no such probe{did_you_mean(probe, PROBES)}", parameter="probe")
    fits = {"paraphrase": probe == "paraphrase", "own": probe == "self", "dry_run": not probe, "verify": not probe}
    for name, is_allowed in fits.items():
        if name in chosen and not is_allowed:
            with_what = param("probe", probe) if probe else f"no {param('probe')}"
            raise ParameterError(f"{param(name)} does not go with {with_what}; leave it out", parameter=name)


def _find_protocol(study: Study, name: str) -> Protocol:
    """Return one of the study's protocols, or a shipped one or a file that is not in it yet."""
    if not name or any(name in (candidate.name, candidate.id) for candidate in study.protocols.values()):
        return study.protocol(name)
    return protocols.load(name)


def _runs_folder(study: Study) -> Path | None:
    """Return where the runs of a study that was read from disk are kept; None for one that was not."""
    if not study.origin:
        return None
    origin = Path(study.origin)
    return origin / RUNS_FOLDER if origin.is_dir() else origin.with_name(f"{origin.name}.{RUNS_FOLDER}")


def _execute_plan(run_plan: RunPlan, runs: Path | None, progress: Progress) -> tuple[ModelRun, bool]:
    """Return the run, and whether it was interrupted: what was answered until then is there all the same."""
    try:
        with call_progress(progress) as watch:
            return execute_plan(run_plan, runs, watch=watch), False
    except KeyboardInterrupt:
        if runs is None:
            raise
        return collect_results(run_plan, runs), True


def _verify_marks(
    study: Study, run: ModelRun, settings: ModelSettings, model: str, runs: Path | None, progress: Progress
) -> ModelRun | None:
    """Return a second opinion on each mark, by the same or another model."""
    other = settings if model == "same" else study.settings.models.get(model)
    other = other or settings.model_copy(update={"model": model})
    audit = protocols.load("audit")
    whole = Study.from_items([*items_with_runs(study, [run]), audit])
    name = f"{short_model_name(other.model)}-audit"
    with call_progress(progress) as watch:
        return verify_marks(whole, run.annotations, other, audit, runs, name, watch=watch)


def _run_probe(
    probed: ProbedModel,
    probe: str,
    paraphrase: PromptTemplate | None,
    own_system: str,
    runs: Path | None,
    progress: Progress,
) -> ModelAnnotation:
    """Run a probe and return its effects, with its readings in the study."""
    readings: list[ModelRun] = []
    for run_plan in probed.plans(probe, paraphrase):
        if clash := probed.name_clash(run_plan):
            raise ParameterError(clash, parameter="name")
        run, is_interrupted = _execute_plan(run_plan, runs, progress)
        readings.append(probed.record_probe(run, probe, own_system))
        if is_interrupted:
            raise RunInterrupted(_summarise_runs(probed.study, readings))
    title = f"What the probe {probe!r} shows of {probed.name}"
    notes = [note for reading in readings for note in run_notes(reading)]
    effects = Findings(probed.effects(readings, probe, own_system), notes, title=title, protocol=probed.protocol)
    whole = Study.from_items(items_with_runs(probed.study, readings), probed.study.origin)
    return ModelAnnotation(
        effects.rows(), whole, readings, title=title, notes=notes, signature=effects.signature, effects=effects
    )


def _summarise_runs(study: Study, runs: Sequence[ModelRun], audit: ModelRun | None = None) -> ModelAnnotation:
    """Return the states of the replies of the last run, and the study with the annotations of all runs."""
    notes = [note for run in runs for note in run_notes(run)]
    if audit:
        count = len(audit.annotations)
        notes.append(f"{count:,} mark{'' if count == 1 else 's'} judged once more by {audit.record.name}")
    everything = [*runs, *([audit] if audit else [])]
    whole = Study.from_items(items_with_runs(study, everything), study.origin)
    title = f"Replies of {runs[-1].record.name}"
    return ModelAnnotation(state_rows(runs[-1]), whole, everything, title=title, notes=notes)


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
    """Return the instructions that a model gets for a protocol; `annotate --dry-run` shows them with a text.

    Parameters
    ----------
    protocol : str, path or Protocol
        A shipped protocol's name or your YAML file.

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
    return PromptText(prompt_text(protocol if isinstance(protocol, Protocol) else protocols.load(str(protocol))))


@public
def export_prompt(file: str | PathLike[str] | None = None, *, force: bool = False) -> PromptText:
    """Export the built-in prompt template, to be edited and used with `annotate --prompt`.

    Words between double braces are filled in.

    Parameters
    ----------
    file : path, optional
        File to write.
    force : bool, default False
        Replace an existing file.

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
        write_file(Path(file), template)
    return PromptText(template)


class PromptAttack(Table):
    """How many orders in texts a model obeyed: one row.

    Attributes
    ----------
    obeyed : tuple of str
        The orders that it obeyed.
    run : ModelRun
        The replies.
    """

    def __init__(self, model: str, run: ModelRun) -> None:
        result = injection_result(run.annotations)
        row = {"orders": result.tried, "obeyed": len(result.followed), "share": result.rate, "why": result.why}
        states = ", ".join(f"{count} {state}" for state, count in sorted(run.states.items()))
        notes = [f"what came back: {states}", *(f"obeyed: {order}" for order in result.followed)]
        super().__init__([row], title=f"Orders in texts that {model} obeyed", notes=notes)
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
    """Test a model against prompt injection: thirty texts with orders, and how many of them it obeys.

    Parameters
    ----------
    protocol : str, path or Protocol
        A shipped protocol's name or your YAML file.
    model : str
        The endpoint's name for it, a GGUF file, or local:smollm2.
    runs : path, optional
        Folder that keeps the replies, so that nothing is asked twice.
    base_url : str
        Address of an OpenAI-compatible endpoint, such as http://localhost:11434/v1.
    key_env : str
        Environment variable with the endpoint's key; the key itself is written nowhere.
    samples : int, optional
        Number of samples per text (default: 1).
    temperature : float, optional
        Temperature; not sent when absent.
    max_tokens : int, optional
        Maximum tokens per reply (default: 2048).
    shots : int, optional
        Number of gold texts shown as examples (default: 0).
    price : str or two numbers
        IN,OUT: US dollars per million tokens sent and received.
    budget : float, optional
        Budget in US dollars; no call is made that could exceed it.
    concurrency : int, optional
        Maximum calls at a time (default: 8).
    requests_per_minute : float, optional
        Maximum calls per minute.
    tokens_per_minute : float, optional
        Maximum tokens sent per minute, as estimated.
    timeout : float, optional
        Seconds per call (default: 120).
    attempts : int, optional
        Maximum attempts per call (default: 6).
    context_tokens : int, optional
        Tokens that fit into the model; longer texts are refused before the first call.
    by_segment : bool, default False
        Ask part by part.
    seed : int, optional
        Seed that is sent to the endpoint (default: 0).
    progress : bool or callable, default False
        Show progress on standard error, or call a function with the calls done and all calls.

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
    documents = [control_document(), *(document for _, _, document in injection_documents())]
    run_plan = plan_run(Study.from_items([used, *documents]), settings, used)
    with call_progress(progress) as watch:
        run = execute_plan(run_plan, Path(runs) if runs else None, watch=watch)
    if not run.annotations:
        raise FinecombError(f"no text got a reply: {next(iter(run.unasked.values()), 'nothing was asked')}")
    return PromptAttack(model, run)
