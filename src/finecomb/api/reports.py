"""Reports: a study as a folder of pages, and the tables and figures of papers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from finecomb.api.parameters import (
    Count,
    StudyLike,
    Values,
    as_study,
    as_values,
    changed_parameters,
    public,
    select_part,
)
from finecomb.api.progress import Progress, steps
from finecomb.core.errors import ParameterError, param
from finecomb.core.study import Study
from finecomb.reporting.site.anonymisation import anonymise_study
from finecomb.reporting.site.report_content import build_report_source
from finecomb.reporting.site.report_folder import write_change_page, write_figures_and_tables, write_report
from finecomb.reporting.site.report_inputs import (
    read_external_tables,
    read_judge_verdicts,
    read_raw_replies,
    split_export_targets,
    verify_report_folder,
)
from finecomb.reporting.site.report_results import StudyChanges, StudyReport, sharing_notes
from finecomb.reporting.site.study_changes import estimate_changes

if TYPE_CHECKING:
    from finecomb.reporting.reproduce.exhibit_folder import Reproduction
else:
    Reproduction = object  # imported only to reproduce a paper, because critics and charts are slow to load


@public
def report(
    study: StudyLike,
    *,
    compare: StudyLike | None = None,
    against: StudyLike | None = None,
    by: str = "",
    output: str | PathLike[str] = "report",
    with_: Values = (),
    export: Values = (),
    licence: str = "",
    anonymous: bool = False,
    verify: bool = False,
    draws: Count = 1000,
    seed: int = 0,
    where: Values = (),
    drop: Values = (),
    progress: Progress = False,
) -> StudyReport | StudyChanges:
    """Write a report on a study: a folder of HTML pages with figures, which you can open offline.

    Parameters
    ----------
    study : Study, path, DataFrame or list of dicts
        The study to report on. Verdicts on judges and raw replies of models are read from its folder.
    compare : Study, path, DataFrame or list of dicts, optional
        Report the changes since this earlier study, round or version.
    against : Study, path, DataFrame or list of dicts, optional
        Study with the gold standard against which models and detectors are scored.
    by : str
        Document metadata field that names the system of a text (default: `model`).
    output : path, default "report"
        Output folder.
    with_ : str or sequence of str
        Include a table that another command wrote (`.json` or `.csv`); may be repeated.
    export : str or sequence of str
        Also write figures (`png` or `pdf`), or figures and tables to a folder; may be repeated.
    licence : str
        Licence under which the data in the report are shared.
    anonymous : bool, default False
        Replace people's names with `reader-1` and so on, and omit all other data about them.
    verify : bool, default False
        Verify an existing report by recomputing its numbers, instead of writing a new one.
    draws : int, default 1000
        Number of resamples per confidence interval.
    seed : int, default 0
        Random seed for resampling.
    where : str or sequence of str
        Keep only matching texts, annotators or marks, such as `model=gpt2`; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    drop : str or sequence of str
        Omit marks by label, group or `LABEL:SEVERITY` (`grammar-usage:1`); may be repeated.
    progress : bool or callable, default False
        Show progress on standard error.
        A function is called with the numbers of finished and total pages instead.

    Returns
    -------
    StudyReport or StudyChanges
        The folder with its figures; with ``compare``, the differences between the two studies.

    Raises
    ------
    ParameterError
        If options contradict each other, or a table cannot be read.
    FinecombError
        If the folder holds something else, or a report that is verified differs from its data.

    Examples
    --------
    >>> import tempfile
    >>> import finecomb as fc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = fc.report(fc.demo(), output=f"{folder}/report", draws=20)
    ...     (made.folder / "index.html").exists()
    True
    """
    tables = {"compare": compare is not None, "against": against is not None}  # DataFrames are not compared with None
    chosen = {
        *changed_parameters(report, locals() | {"compare": None, "against": None}),
        *(name for name in tables if tables[name]),
    }
    folder = Path(output)
    if verify:
        _refuse_others(chosen, ("verify", "progress"), "verify")
        if not isinstance(study, str | PathLike):
            raise ParameterError(f"{param('verify')} requires the folder of a report", parameter="study")
        verify_report_folder(Path(fspath(study)))
        return StudyReport(Path(fspath(study)))
    if compare is not None:
        if {"against", "export", "with_", "licence", "anonymous"} & set(chosen):
            raise ParameterError(
                f"{param('compare')} cannot be used with {param('against')}, {param('with_')}, {param('export')}, "
                f"{param('licence')} or {param('anonymous')}",
                parameter="compare",
            )
        _refuse_others(chosen, ("compare", "by", "output", "draws", "seed", "progress"), "compare")
        return _report_changes(as_study(compare, "compare"), as_study(study), by, folder, draws, seed)
    images, folders = split_export_targets(as_values(export), folder)
    whole = as_study(study)
    part = select_part(whole, as_values(where), as_values(drop))
    origin = Path(whole.origin) if whole.origin else None
    source = replace(
        build_report_source(
            anonymise_study(part) if anonymous else part,
            _study_name(whole),
            by,
            as_study(against, "against") if against is not None else None,
            draws,
            seed,
        ),
        verdicts=read_judge_verdicts(origin) if origin else {},
        further=read_external_tables([Path(file) for file in as_values(with_)]),
        replies=read_raw_replies(origin, part) if origin else {},
        licence=licence,
    )
    today = datetime.now(UTC).date()
    with steps(progress, "pages", len(part.documents) + 1) as advance:  # one per text, and their list
        content = write_report(source, folder, f"{today.day} {today:%B %Y}", lambda *_: advance(1), images)
    for other in folders:
        write_figures_and_tables(content, other)
    return StudyReport(folder, content, sharing_notes(source, anonymous))


def _study_name(study: Study) -> str:
    """Return the name of the file or folder that a study was read from, or its title."""
    return Path(study.origin).name or study.origin if study.origin else study.settings.title or "study"


def _refuse_others(chosen: Iterable[str], allowed: Iterable[str], owner: str) -> None:
    for name in chosen:
        if name not in allowed:
            raise ParameterError(f"{param(name)} does not apply to {param(owner)}", parameter=name, hint="omit it")


def _report_changes(before: Study, after: Study, by: str, folder: Path, draws: int, seed: int) -> StudyChanges:
    names = Path(before.origin).name or _study_name(before), Path(after.origin).name or _study_name(after)
    first, second = (
        build_report_source(study, name, by, None, draws, seed)
        for study, name in zip((before, after), names, strict=True)
    )
    changes = StudyChanges(estimate_changes(first, second), folder)
    write_change_page(changes, names, folder)
    return changes


@public
def reproduce(
    paper: str,
    study: StudyLike,
    *,
    output: str | PathLike[str] = "reproduced",
    only: Values = (),
    audit: StudyLike | None = None,
    printed: bool | None = None,
    draws: Count = 1000,
    seed: int = 0,
    where: Values = (),
    drop: Values = (),
    progress: Progress = False,
) -> Reproduction:
    """Reproduce the tables and figures of a paper from a study, in the layout of the paper.

    Parameters
    ----------
    paper : str
        Name of the paper: `scarecrow`, `thomson-reiter`, `snac`, `clark` or `deng`.
    study : Study, path, DataFrame or list of dicts
        The study from which the tables and figures are computed.
    output : path, default "reproduced"
        Output folder.
    only : str or sequence of str
        Reproduce only this table or figure, such as "Figure 2"; may be repeated.
    audit : Study, path, DataFrame or list of dicts, optional
        For the paper `scarecrow`: study in which auditors judged the marks (`audit` protocol).
    printed : bool, optional
        Add the numbers printed in the paper (default: only if the data are those of the paper).
    draws : int, default 1000
        Number of resamples per confidence interval.
    seed : int, default 0
        Random seed for resampling.
    where : str or sequence of str
        Keep only matching texts, annotators or marks, such as `model=gpt2`; may be repeated.
        Comparisons such as ``top_p >= 0.9`` can be joined with ``and``, ``or`` and ``not``.
    drop : str or sequence of str
        Omit marks by label, group or `LABEL:SEVERITY` (`grammar-usage:1`); may be repeated.
    progress : bool or callable, default False
        Show progress on standard error.
        A function is called with the numbers of finished and total exhibits instead.

    Returns
    -------
    Reproduction
        One row per exhibit: whether it was made, and why not; ``.folder`` has the files.

    Raises
    ------
    ParameterError
        If an option does not apply to the paper.
    FinecombError
        If there is no such paper or exhibit.

    Examples
    --------
    >>> import tempfile
    >>> import finecomb as fc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fc.reproduce("scarecrow", fc.demo(), output=folder, only="Table 6", draws=0).find(exhibit="Table 6").made
    'yes'
    """
    from finecomb.reporting.reproduce.exhibit_folder import Reproduction, write_reproduction
    from finecomb.reporting.reproduce.exhibits import PaperStudy
    from finecomb.reporting.reproduce.printed_values import is_paper_data
    from finecomb.reporting.reproduce.registry import find_paper

    chosen = find_paper(paper)
    if audit is not None and paper != "scarecrow":
        raise ParameterError(f"{param('audit')} does not apply to {paper}; it applies to scarecrow", parameter="audit")
    whole = as_study(study)
    part = select_part(whole, as_values(where), as_values(drop))
    source = PaperStudy(part, draws, seed, as_study(audit, "audit") if audit is not None else None)
    numbers = as_values(only)
    with_printed = is_paper_data(paper, part) if printed is None else printed
    with steps(progress, "exhibits", len(numbers or chosen.exhibits)) as advance:
        outcomes = write_reproduction(
            chosen, source, _study_name(whole), Path(output), with_printed, numbers, lambda _: advance(1)
        )
    return Reproduction(chosen, outcomes, Path(output))
