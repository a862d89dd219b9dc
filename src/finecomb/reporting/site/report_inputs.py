"""Inputs of a report in addition to the study: verdicts on judges, raw replies, and tables of other commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from finecomb import formats
from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.core.guarded_json import load_json
from finecomb.core.model_notes import read_reply_note
from finecomb.core.study import Study
from finecomb.reporting.site.external_tables import ExternalTable, parse_external_table
from finecomb.reporting.site.model_replies import is_from_model
from finecomb.reporting.site.report_content import ReportSource, build_report_source
from finecomb.reporting.site.report_folder import (
    EXTERNAL_TABLES_FOLDER,
    GOLD_FOLDER,
    MANIFEST_FILE,
    REPLIES_FILE,
    REPLIES_FOLDER,
    verify_report,
)
from finecomb.statistics.judges.validity import CONTRACTS_FOLDER, JudgeContract

RUNS_FOLDER = "runs"  # same as in finecomb.annotators.llm, which may not be installed
_IMAGE_FORMATS = ("png", "pdf")
_UNSUPPORTED_IMAGE_FORMATS = ("svg", "csv", "jpg", "jpeg", "gif", "eps", "webp")


def split_export_targets(names: Sequence[str], output: Path) -> tuple[list[str], list[Path]]:
    """Split export targets into image formats for the report, and folders that receive all figures and tables."""
    images = [name for name in names if name in _IMAGE_FORMATS]
    folders = [Path(name) for name in names if name not in _IMAGE_FORMATS]
    for folder in folders:
        problem = ""
        if str(folder) in _UNSUPPORTED_IMAGE_FORMATS:
            problem = "is not supported; use png, pdf or a folder (SVG figures and CSV tables are always written)"
        elif folder.is_file():
            problem = "is a file; expected png, pdf or a folder"
        elif folder.resolve() == output.resolve():
            problem = f"is the folder of the report; use a folder other than {param('output')}"
        if problem:
            raise ParameterError(f"{param('export', folder)} {problem}", parameter="export")
    return images, folders


def read_external_tables(files: Sequence[Path]) -> tuple[ExternalTable, ...]:
    """Read tables written by other commands."""
    tables = []
    for file in files:
        if file.suffix not in (".json", ".csv"):
            raise ParameterError(
                f"{param('with_', file)}: expected a .json or .csv file written with {param('json')} or "
                f"{param('table_out')}",
                parameter="with_",
            )
        try:
            tables.append(parse_external_table(file.name, file.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", error)
            raise ParameterError(f"{param('with_', file)}: cannot be read ({reason})", parameter="with_") from None
    if len({table.id for table in tables}) < len(tables):
        raise ParameterError(
            f"{param('with_')}: two files have the same name; rename one, because sections are named after files",
            parameter="with_",
        )
    return tuple(tables)


def read_judge_verdicts(study: Path) -> dict[str, str]:
    """Return the verdict stored in the folder of a study for each judge, with a note if it is no longer valid."""
    contracts = [
        JudgeContract.model_validate_json(file.read_text(encoding="utf-8"))
        for file in sorted((study / CONTRACTS_FOLDER).glob("*.json"))
    ]
    now = datetime.now(UTC)
    return {
        contract.binding.judge: contract.verdict
        + (", stale" if now > contract.made + timedelta(days=contract.days) else "")
        for contract in contracts
    }


def read_raw_replies(study: Path, part: Study) -> dict[str, str]:
    """Return the raw replies of language models from the run journals in the folder of a study, by request hash."""
    runs = study / RUNS_FOLDER if study.is_dir() else study.with_name(f"{study.name}.{RUNS_FOLDER}")
    if not runs.is_dir():
        return {}
    from finecomb.annotators.llm.journal import read_cached_replies
    from finecomb.annotators.llm.runner import truncate_reply

    raw = {hash: truncate_reply(entry.reply) for hash, entry in read_cached_replies(runs).items()}
    calls = {
        call
        for annotation in part.iter_annotations()
        if is_from_model(annotation)
        for call in read_reply_note(annotation).calls
    }
    return {call: raw[call] for call in sorted(calls) if call in raw}


def verify_report_folder(folder: Path) -> None:
    """Recompute a report from its data, and raise an error if anything differs."""
    if not (folder / MANIFEST_FILE).exists():
        raise FinecombError(
            f"{folder} is not a report; {param('verify')} requires a folder written by `finecomb report`"
        )
    differing = verify_report(folder, formats.read, lambda study, manifest: _rebuild_source(study, manifest, folder))
    if differing:
        raise FinecombError(f"{folder}: " + "\n".join(differing))


def _rebuild_source(study: Study, manifest: Mapping[str, Any], folder: Path) -> ReportSource:
    """Rebuild the inputs of a report from its manifest."""
    draws, seed = (int(str(manifest[name])) for name in ("draws", "seed"))
    gold = formats.read(folder / GOLD_FOLDER) if (folder / GOLD_FOLDER).is_dir() else None
    replies = folder / REPLIES_FOLDER / REPLIES_FILE
    return replace(
        build_report_source(study, str(manifest["name"]), str(manifest["by"]), gold, draws, seed),
        verdicts=manifest.get("verdicts", {}),
        further=read_external_tables([folder / EXTERNAL_TABLES_FOLDER / name for name in manifest.get("with", ())]),
        replies=load_json(replies.read_text(encoding="utf-8")) if replies.is_file() else {},
        licence=str(manifest.get("licence", "")),
    )
