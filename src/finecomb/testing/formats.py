"""Conformance checks of formats: round trip, offsets, and damaged files."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Label, Protocol
from finecomb.core.question import Question
from finecomb.core.records import Annotation, Annotator, Document, Mark, Settings
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.core.study_checks import check_study
from finecomb.formats import get_format, save_records
from finecomb.formats.base import Format, Options
from finecomb.formats.features import ALL_FEATURES, FeatureCounter

SAMPLE_TEXTS = (
    "A cat cat sat on the mat. 😀 It was not amused.",
    'Café\u0301 and "naïve" <b>שלום</b> & 中文, said 👩‍👩‍👧 in the end.',
)
"""Texts with characters outside the Basic Multilingual Plane, which reveal offsets in UTF-16 units or bytes."""
_DAMAGES = (b"", b"\xff", b"\0", b'"', b"{", b"null", b"-1", b"\n", b"\\ud800", b"\xf0\x9f\x98\x80")


def build_sample_study(features: Collection[str] = ALL_FEATURES) -> Study:
    """Build a small study with characters and marks that formats often get wrong.

    Parameters
    ----------
    features : collection of str
        Features of records that the study may use, such as `Format.holds` of a format.

    Returns
    -------
    Study
        Two texts, each annotated by two people.

    Examples
    --------
    >>> build_sample_study()
    Study('Sample': 2 documents, 4 annotations, 7 marks; sample@1)
    """
    protocol = Protocol(
        name="sample",
        version="1",
        title="Sample",
        summary="For tests of extensions.",
        labels=(Label(name="red"), Label(name="blue")),
        questions=(
            Question(name="severity", ask="How bad?", scale="ordinal", options=(1, 2, 3), required=False),
            Question(name="explanation", ask="Why?", required=False),
        ),
    )
    documents = [
        Document(id=f"text-{number}", text=text, meta={"model": f"m{number}"} if "document meta" in features else {})
        for number, text in enumerate(SAMPLE_TEXTS)
    ]
    answers = {"severity": 2, "explanation": "It says “cat” twice."}
    allowed_answers = {name: answer for name, answer in answers.items() if f"mark {name}" in features}
    annotations = []
    for document in documents:
        end = len(document.text)
        # Marks at the start, on a character outside the Basic Multilingual Plane, up to the end, and on a word inside.
        places = [(0, 1), (document.text.index("😀" if "😀" in document.text else "👩"),) * 2, (end - 4, end), (2, 5)]
        for annotator, own_places in (("anna", places[:3]), ("ben", places[3:])):
            spans = [Span(start, max(end, start + 1)) for start, end in own_places]
            if annotator == "ben" and document is documents[1] and "annotation without marks" in features:
                spans = []
            marks = tuple(
                Mark(
                    id=f"{document.id}-{annotator}-{number}",
                    spans=(span,),
                    quotes=(span.extract(document.text),),
                    label="red" if number else "blue",
                    answers=allowed_answers,
                )
                for number, span in enumerate(spans)
            )
            annotations.append(
                Annotation(
                    id=f"{document.id}-{annotator}",
                    document=document.id,
                    annotator=annotator,
                    protocol=protocol.id,
                    marks=marks,
                )
            )
    people = [Annotator(id=name, kind="human") for name in ("anna", "ben")]
    return Study.from_items(
        [Settings(title="Sample", protocols=(protocol.id,)), protocol, *documents, *people, *annotations]
    )


def check_format(
    name: str, study: Study | None = None, *, example: str | Path | None = None, options: Options | None = None
) -> None:
    """Check a format: round trip, offsets in code points, and damaged files.

    Parameters
    ----------
    name : str
        Name of the format.
    study : Study, optional
        Study to write and read (default: that of `build_sample_study` with the features that the format holds).
    example : str or Path, optional
        File or folder to read, for a format that cannot be written.
    options : Options, optional
        Options for reading and writing.

    Raises
    ------
    AssertionError
        If the format loses a text, a mark or a feature that it declares in `holds`, reads marks at other positions,
        writes different files for the same study, or fails on a damaged file with anything but a `FinecombError`.

    Examples
    --------
    >>> check_format("doccano")
    """
    format, options = get_format(name), options or Options()
    assert format.title, f"format {name}: a title is missing"
    assert format.read or format.write, f"format {name}: neither `read` nor `write` is defined"
    assert format.holds <= ALL_FEATURES, f"format {name}: unknown features {sorted(format.holds - ALL_FEATURES)}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"sample{format.suffixes[0] if format.suffixes else ''}"
        if format.write:
            original = study or build_sample_study(format.holds)
            save_records(original.items(), path, name, options)
            if format.read:
                _check_round_trip(format, original, path, options)
        elif example is not None:
            copy = shutil.copytree if Path(example).is_dir() else shutil.copyfile
            path = Path(copy(example, Path(folder) / Path(example).name))
        assert not format.read or path.exists(), f"format {name}: pass `example`, a file in this format"
        if format.read:
            _check_damaged_files(format, path, options)


def _check_round_trip(format: Format, original: Study, path: Path, options: Options) -> None:
    assert format.read is not None
    again = Study.from_items(format.read(path, options))
    errors = [str(problem) for problem in check_study(again) if problem.level == "error"]
    assert not errors, f"format {format.name}: the study that was read is invalid: {errors[0]}"
    texts, texts_again = ({row.id: row.text for row in study.iter_documents()} for study in (original, again))
    assert texts_again == texts, f"format {format.name}: texts changed: {texts} became {texts_again}"
    marks, marks_again = (
        sorted(
            (annotation.document, annotation.annotator, mark.spans, mark.quotes, str(mark.label))
            for annotation in study.iter_annotations()
            for mark in annotation.marks
        )
        for study in (original, again)
    )
    assert marks_again == marks, f"format {format.name}: marks changed: {marks} became {marks_again}"
    counters = FeatureCounter(), FeatureCounter()
    for counter, study in zip(counters, (original, again), strict=True):
        list(counter.count_stream(study.items()))
    lost = [name for name in sorted(format.holds) if counters[1].counts[name] < counters[0].counts[name]]
    assert not lost, f"format {format.name}: `holds` declares features that are lost: {', '.join(lost)}"


def _check_damaged_files(format: Format, path: Path, options: Options) -> None:
    """Check that damaged copies of a file, or of each file in a folder, are either read or rejected with a message."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    for file in files:
        whole = file.read_bytes()
        for damaged in _damaged_contents(whole):
            file.write_bytes(damaged)
            try:
                if format.sniff:
                    format.sniff(path)
                list(format.read(path, options) if format.read else ())
            except FinecombError:
                pass  # rejected with a message for the user
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                message = f"a damaged file must raise a FinecombError, found {reason}; content: {damaged[:200]!r}"
                raise AssertionError(f"format {format.name}: {message}") from error
        file.write_bytes(whole)


def _damaged_contents(whole: bytes) -> Iterator[bytes]:
    """Yield damaged copies of a file's contents: empty, cut off, or with bytes replaced at one position."""
    yield b""
    for number, odd in enumerate(_DAMAGES):
        at = len(whole) * (2 * number + 1) // (2 * len(_DAMAGES))
        yield whole[:at]
        yield whole[:at] + odd + whole[at + number % 4 :]
