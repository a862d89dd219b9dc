"""Export of a study as a download. Folders are sent as .zip files."""

from __future__ import annotations

import re
import zipfile
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from finecomb import formats
from finecomb.core.errors import FormatError, did_you_mean
from finecomb.core.study import Study
from finecomb.formats.base import Format
from finecomb.formats.features import FEATURE_DESCRIPTIONS, FeatureCounter
from finecomb.server.researchers.schema import Export

_ZIP = ".zip"
_SUFFIX_BY_FORMAT = {
    **dict.fromkeys(["csabstruct", "doccano", "prodigy"], ".jsonl"),
    "model-criticism": ".json",
    "wmt-mqm": ".tsv",
    "gsml": ".csv",
    "parquet": _ZIP,
}
"""File suffixes of formats that do not define one. Any other format without a suffix is a folder."""


def writable_formats() -> dict[str, Format]:
    """Return the formats that can be written, by name."""
    return {name: format for name, format in formats.FORMATS.items() if format.write is not None}


def available_exports(study: Study) -> Iterator[Export]:
    """Yield the available export formats, with their file names and the features of the study that each would lose."""
    tally = FeatureCounter()
    deque(tally.count_stream(study.items()), maxlen=0)
    for name, format in writable_formats().items():
        lost = ", ".join(
            f"{FEATURE_DESCRIPTIONS[feature]} ({count:,})"
            for feature, count in tally.lost_feature_counts(format).items()
        )
        yield Export(format=name, title=format.title, file=_download_name(study, format), loses=lost)


def export_study(study: Study, format: str, folder: Path) -> Path:
    """Write the study to `folder` in the given format, and return the path of the file to send."""
    chosen = writable_formats().get(format)
    if chosen is None:
        raise FormatError(f"unknown export format {format!r}{did_you_mean(format, writable_formats())}")
    name = _download_name(study, chosen)
    path = folder / name.removesuffix(_ZIP)
    formats.save_records(study.items(), path, format)
    if not path.is_dir():
        return path
    archive_path = folder / f"{path.name}{_ZIP}"
    with zipfile.ZipFile(archive_path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(path.rglob("*")):
            archive.write(file, Path(path.name) / file.relative_to(path))
    return archive_path


def _download_name(study: Study, format: Format) -> str:
    """Return a portable file name, e.g. `harbour-news.thresh.json` or `harbour-news.csv`. Folders become .zip files."""
    stem = "-".join(re.findall(r"[a-z0-9]+", study.settings.title.lower()))[:60] or "study"
    ending = _SUFFIX_BY_FORMAT.get(format.name) or next(iter(format.suffixes), _ZIP)
    return f"{stem}{ending}" if ending == f".{format.name}" else f"{stem}.{format.name}{ending}"
