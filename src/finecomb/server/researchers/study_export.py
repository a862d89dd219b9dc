"""A study as a download: every format that can be written, folders as one .zip."""

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
"""Of formats whose files are not called by an ending of their own; any other without one is a folder."""


def writable_formats() -> dict[str, Format]:
    """The formats on offer, by name."""
    return {name: format for name, format in formats.formats().items() if format.write is not None}


def available_exports(study: Study) -> Iterator[Export]:
    """Every format on offer, with the name of its file and what it could not hold of this study."""
    tally = FeatureCounter()
    deque(tally.count_stream(study.items()), maxlen=0)
    for name, format in writable_formats().items():
        lost = ", ".join(
            f"{FEATURE_DESCRIPTIONS[feature]} ({count:,})"
            for feature, count in tally.lost_feature_counts(format).items()
        )
        yield Export(format=name, title=format.title, file=_download_name(study, format), loses=lost)


def export_study(study: Study, format: str, folder: Path) -> Path:
    """Write the study into `folder` and return the one file that is to be sent."""
    chosen = writable_formats().get(format)
    if chosen is None:
        raise FormatError(
            f"no format that can be written is called {format!r}{did_you_mean(format, writable_formats())}"
        )
    name = _download_name(study, chosen)
    path = folder / name.removesuffix(_ZIP)
    formats.save(study.items(), path, format)
    return _zip_folder(path) if path.is_dir() else path


def _download_name(study: Study, format: Format) -> str:
    """A file name that every system takes, e.g. `harbour-news.thresh.json` or `.csv`; a folder's is a .zip."""
    stem = "-".join(re.findall(r"[a-z0-9]+", study.settings.title.lower()))[:60] or "study"
    ending = _SUFFIX_BY_FORMAT.get(format.name) or next(iter(format.suffixes), _ZIP)
    return f"{stem}{ending}" if ending == f".{format.name}" else f"{stem}.{format.name}{ending}"


def _zip_folder(folder: Path) -> Path:
    path = folder.with_name(f"{folder.name}{_ZIP}")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, Path(folder.name) / file.relative_to(folder))
    return path
