"""Inputs of a report beside the study: verdicts on judges, raw replies of models, and tables of other commands."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from finecomb import formats
from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.core.study import Study
from finecomb.reporting.site.model_replies import select_used_replies
from finecomb.reporting.site.report_content import ReportSource, build_report_source
from finecomb.reporting.site.report_folder import (
    EXTERNAL_TABLES_FOLDER,
    GOLD_FOLDER,
    MANIFEST,
    REPLIES_FILE,
    REPLIES_FOLDER,
    verify_report,
)
from finecomb.reporting.site.report_sections import ExternalTable, parse_external_table
from finecomb.statistics.judges.validity import CONTRACTS_FOLDER, JudgeContract

RUNS = "runs"  # as in finecomb.annotators.llm, which may not be installed
_IMAGE_FORMATS = ("png", "pdf")
_UNSUPPORTED_IMAGE_FORMATS = ("svg", "csv", "jpg", "jpeg", "gif", "eps", "webp")


def split_exports(names: Sequence[str], output: Path) -> tuple[list[str], list[Path]]:
    """Return formats of images in the report, and folders that get every figure and table."""
    images = [name for name in names if name in _IMAGE_FORMATS]
    folders = [Path(name) for name in names if name not in _IMAGE_FORMATS]
    for folder in folders:
        if folder.name in _UNSUPPORTED_IMAGE_FORMATS or folder.is_file() or folder.resolve() == output.resolve():
            raise ParameterError(
                f"{param('export', folder)}: expected png, pdf or another folder; SVG is always there",
                parameter="export",
            )
    return images, folders


def read_external_tables(files: Sequence[Path]) -> tuple[ExternalTable, ...]:
    """Read tables that other commands wrote."""
    tables = []
    for file in files:
        if file.suffix not in (".json", ".csv"):
            raise ParameterError(
                f"{param('with_', file)}: expected a .json or .csv file, as {param('json')} and {param('table_out')} "
                "write them",
                parameter="with_",
            )
        try:
            tables.append(parse_external_table(file.name, file.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", error)
            raise ParameterError(f"{param('with_', file)}: cannot be read ({reason})", parameter="with_") from None
    if len({table.id for table in tables}) < len(tables):
        raise ParameterError(
            f"{param('with_')}: two files have the same name; rename one, since the report names sections by them",
            parameter="with_",
        )
    return tuple(tables)


def read_judge_verdicts(study: Path) -> dict[str, str]:
    """Return the stored verdict on each judge of a study's folder, and whether it is no longer valid."""
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
    """Return replies of language models word for word, from the journals of the runs of a study's folder."""
    runs = study / RUNS if study.is_dir() else study.with_name(f"{study.name}.{RUNS}")
    if not runs.is_dir():
        return {}
    from finecomb.annotators.llm.journal import cached_replies
    from finecomb.annotators.llm.model_calls import truncate_reply

    return select_used_replies(
        part, {hash: truncate_reply(entry.reply) for hash, entry in cached_replies(runs).items()}
    )


def verify_report_folder(folder: Path) -> None:
    """Compute a report again from the data that it carries; raise an error where a number differs."""
    if not (folder / MANIFEST).exists():
        raise FinecombError(f"{folder}: is no report; {param('verify')} takes the folder that `finecomb report` wrote")
    differing = verify_report(folder, formats.read, lambda study, manifest: _rebuild_source(study, manifest, folder))
    if differing:
        raise FinecombError(f"{folder}: " + "\n".join(differing))


def _rebuild_source(study: Study, manifest: Mapping[str, Any], folder: Path) -> ReportSource:
    """Return what a report was made from, as its manifest says."""
    draws, seed = (int(str(manifest[name])) for name in ("draws", "seed"))
    gold = formats.read(folder / GOLD_FOLDER) if (folder / GOLD_FOLDER).is_dir() else None
    replies = folder / REPLIES_FOLDER / REPLIES_FILE
    return replace(
        build_report_source(study, str(manifest["name"]), str(manifest["by"]), gold, draws, seed),
        verdicts=manifest.get("verdicts", {}),
        further=read_external_tables([folder / EXTERNAL_TABLES_FOLDER / name for name in manifest.get("with", ())]),
        replies=json.loads(replies.read_text(encoding="utf-8")) if replies.is_file() else {},
        licence=str(manifest.get("licence", "")),
    )
