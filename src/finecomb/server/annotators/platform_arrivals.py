"""Arrivals from recruiting platforms: the parameters of their links, and the return to the platform."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal
from urllib.parse import quote, urlsplit

from fastapi import Request

from finecomb.collection import arrivals_storage
from finecomb.collection.arrivals import PLATFORM_TITLES, ArrivalSource
from finecomb.core.records import Recruitment
from finecomb.server.annotators.schema import Ending
from finecomb.server.auth import Auth
from finecomb.server.error_responses import ProblemError

EndingReason = Literal["done", "screened-out", "no-consent"]

_PARAMETER_NAMES = {
    "prolific": {"worker": "PROLIFIC_PID", "place": "STUDY_ID", "session": "SESSION_ID"},
    "mturk": {"worker": "workerId", "place": "hitId", "session": "assignmentId", "submit": "turkSubmitTo"},
}
"""Names of the parameters that each platform adds to a link."""
_ID_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}")
_MTURK_PREVIEW_ASSIGNMENT_ID = "ASSIGNMENT_ID_NOT_AVAILABLE"
_PROLIFIC_COMPLETION_URL = "https://app.prolific.com/submissions/complete?cc={code}"
_MTURK_SUBMIT_PATH = "/mturk/externalSubmit"


# --- arrival -----------------------------------------------------------------------------------------------------


def parse_referral_parameters(recruitment: Recruitment, parameters: Mapping[str, str]) -> ArrivalSource:
    """Parse the parameters of a platform's link. Values that are not valid IDs are ignored.

    >>> query = {"PROLIFIC_PID": "5f1", "SESSION_ID": "{{%SESSION_ID%}}"}
    >>> parse_referral_parameters(Recruitment(platform="prolific"), query).worker
    '5f1'
    """
    names = _PARAMETER_NAMES.get(recruitment.platform, {})
    ids = {ours: parameters.get(theirs, "") for ours, theirs in names.items()}
    submit = ids.pop("submit", "")
    clean = {ours: id if _ID_PATTERN.fullmatch(id) else "" for ours, id in ids.items()}
    return ArrivalSource(platform=recruitment.platform, submit=submit if _is_mturk_address(submit) else "", **clean)


def _is_mturk_address(address: str) -> bool:
    """Return whether an address belongs to Mechanical Turk or its sandbox. Results are sent to no other address."""
    if len(address) > 200 or re.search(r"[\s\\@?#]", address):
        return False
    try:
        parts = urlsplit(address)
        plain = parts.port is None
    except ValueError:
        return False
    host = parts.hostname or ""
    return parts.scheme == "https" and plain and host.endswith(".mturk.com") and parts.path in ("", "/")


def is_mturk_preview(source: ArrivalSource) -> bool:
    """Return whether the visitor is previewing the task on Mechanical Turk without having accepted it."""
    return source.platform == "mturk" and source.session == _MTURK_PREVIEW_ASSIGNMENT_ID


def require_identified_worker(source: ArrivalSource) -> ArrivalSource:
    """Return the arrival source, or raise a `ProblemError` when the worker is unknown or has not accepted the task."""
    if is_mturk_preview(source):
        raise ProblemError("not-allowed", "Accept the task on Mechanical Turk first. Then you can start here.")
    if source.platform and not source.worker:
        title = PLATFORM_TITLES[source.platform]
        raise ProblemError(
            "not-allowed", f"This link does not identify you. Go back to {title} and open the study from there."
        )
    return source


def already_took_part_message(source: ArrivalSource) -> str:
    """Return the message for a person who has taken part before."""
    before = "You have already taken part in this study or a related one"
    return f"{before}. Each person can take part only once. Thank you.{_return_task_sentence(source)}"


def study_full_message(source: ArrivalSource) -> str:
    """Return the message for a new person when the study is full."""
    return f"This study is full at the moment. Thank you for your interest.{_return_task_sentence(source)}"


def _return_task_sentence(source: ArrivalSource) -> str:
    if not source.platform:
        return ""
    return f" Please return the task on {PLATFORM_TITLES[source.platform]}; there is no penalty."


def parse_referral(auth: Auth, request: Request) -> ArrivalSource:
    """Parse the recruiting platform's parameters in a request."""
    return parse_referral_parameters(auth.store.head.settings.recruitment, request.query_params)


# --- endings -----------------------------------------------------------------------------------------------------


def build_ending(auth: Auth, annotator: str, why: Literal["done", "screened-out"], more: bool = False) -> Ending:
    """Build the final page for a recruited annotator. With `more`, they can take another task on the platform."""
    arrival = auth.store.read(arrivals_storage.read_last_arrival, annotator)
    source = arrival.source if arrival else ArrivalSource()
    task = f"/{source.session}" if auth.store.head.settings.recruitment.batch and source.session else ""
    return _ending_with_code(auth, source, why, f"{annotator}{task}").model_copy(update={"more": more})


def build_declined_ending(auth: Auth, source: ArrivalSource) -> Ending:
    """Build the final page for a person who declines to take part. No data about the person is stored."""
    return _ending_with_code(auth, source, "no-consent", source.worker)


def _ending_with_code(auth: Auth, source: ArrivalSource, why: EndingReason, who: str) -> Ending:
    recruitment = auth.store.head.settings.recruitment
    own_code = auth.signature(f"{_CODE_SALTS[why]}/{who}")[:8].upper() if who else ""
    code = {
        "done": recruitment.completed,
        "screened-out": recruitment.screened_out,
        "no-consent": recruitment.no_consent,
    }[why] or own_code
    if recruitment.back:
        return Ending(why=why, code=code, back=recruitment.back.replace("{code}", quote(code, safe="")))
    if source.platform == "prolific" and code:
        return Ending(why=why, code=code, back=_PROLIFIC_COMPLETION_URL.format(code=quote(code, safe="")))
    if source.submit and why != "no-consent":  # people who decline must return the task on the platform
        fields = {"assignmentId": source.session, "code": code}
        return Ending(why=why, code=code, back=source.submit.rstrip("/") + _MTURK_SUBMIT_PATH, form=fields)
    return Ending(why=why, code=code)


_CODE_SALTS: dict[EndingReason, str] = {"done": "code", "screened-out": "screened-out", "no-consent": "no-consent"}
"""Salts of the completion codes, so that each kind of ending has its own code."""
