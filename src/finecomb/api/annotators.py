"""Annotators that are programs: detectors and language models."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl

from finecomb import formats
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
from finecomb.api.coercion import StudyLike, as_names, as_study, as_values
from finecomb.api.parameters import Bounds, Count, Names, PositiveInt, Values, given, public
from finecomb.api.progress import Progress, resume_note, track_counts
from finecomb.api.selection import select_part
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotator
from finecomb.core.results import ResultRow, Table
from finecomb.core.study import Study
from finecomb.engine.options import PartitionOptions
from finecomb.engine.partitions import unfinished_folder
from finecomb.formats import parquet
from finecomb.formats.atomic_file import reject_existing_path
from finecomb.formats.detector_weights import save_weights
from finecomb.formats.parquet import ScannedStudy


@public
def list_detectors() -> Table:
    """Every detector and checker, what it needs and whose labels it uses.

    Returns
    -------
    Table
        One row per detector: name, what, needs, protocol and kind.

    Examples
    --------
    >>> from finecomb.api.annotators import list_detectors
    >>> list_detectors().find(name="rules").protocol
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
        own = (self.annotator.id, self._detector.protocol.id)
        annotations = self.study.iter_annotations()
        mine = (annotation for annotation in annotations if (annotation.annotator, annotation.protocol) == own)
        return [ResultRow(row) for row in mark_rows(mine)]


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
    >>> from finecomb.api.annotators import detect
    >>> detect([{"id": "a", "text": "He saw the the boat."}], "rules", rules="doubled-words")[0].label
    'grammar-usage'
    >>> detect(fc.demo(), "rules").study
    Study('Saltby: the demo study': 16 documents, 112 annotations, 310 marks; scarecrow@2)
    """
    chosen = given(detect, locals())
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
    with work.open_executor(unfinished_folder(target) if target else None) as executor:
        corpus = mark_corpus(
            documents,
            prepared.marking,
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
    >>> from finecomb.api.annotators import train
    >>> train("games", "boxscore", output="weights.json")  # doctest: +SKIP
    """
    chosen = given(train, locals())
    training = find_training(detector)
    own = {name: value for name, value in chosen.items() if name not in ("output", "gold", "real", "options")}
    real_texts = None
    if real is not None:
        require_real_texts(detector)
        real_texts = [document.text for document in as_study(real, "real").iter_documents()]
    settings = build_training_options(detector, {**own, **(options or {})}, real_texts)
    whole = as_study(study)
    trained = TrainedDetector(training.fit(whole, gold_annotations(whole, gold), gold, settings))
    if output:
        trained.save(output)
    return trained
