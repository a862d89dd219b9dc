"""People who come from a recruiting platform: what its link says about them, and what they take back there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal
from urllib.parse import quote, urlsplit

from fastapi import Request, Response

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
"""What each platform adds to the link that people open."""
_ID_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}")
_PREVIEW_ASSIGNMENT = "ASSIGNMENT_ID_NOT_AVAILABLE"
_PROLIFIC_URL = "https://app.prolific.com/submissions/complete?cc={code}"
_MTURK_SUBMIT_PATH = "/mturk/externalSubmit"


# --- coming ------------------------------------------------------------------------------------------------------


def parse_referral_parameters(recruitment: Recruitment, parameters: Mapping[str, str]) -> ArrivalSource:
    """What the platform's link says; what is not an id, or too long for one, counts as not said.

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
    """Whether an address is that of Mechanical Turk or its sandbox: nobody else is sent anything."""
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
    """Whether somebody only looks, before having accepted the work."""
    return source.platform == "mturk" and source.session == _PREVIEW_ASSIGNMENT


def require_identified_worker(source: ArrivalSource) -> ArrivalSource:
    """`came`, or a `ProblemError` when the platform's link does not say who it is or that they accepted the work."""
    if is_mturk_preview(source):
        raise ProblemError("not-allowed", "Accept the task on Mechanical Turk first. Then you can start here.")
    if source.platform and not source.worker:
        title = PLATFORM_TITLES[source.platform]
        raise ProblemError(
            "not-allowed", f"This address does not say who you are. Go back to {title} and open the study from there."
        )
    return source


def already_took_part_message(source: ArrivalSource) -> str:
    """What to say to somebody who took part before, where everybody may once only."""
    back = (
        f" Give the task back on {PLATFORM_TITLES[source.platform]}; that has no disadvantage."
        if source.platform
        else ""
    )
    before = "You have taken part in this study before, or in one that belongs to it"
    return f"{before}, and everybody can take part once only. Thank you.{back}"


def study_full_message(source: ArrivalSource) -> str:
    """What to say to somebody new when every place in the study is taken."""
    back = (
        f" Give the task back on {PLATFORM_TITLES[source.platform]}; that has no disadvantage."
        if source.platform
        else ""
    )
    return f"Every place in this study is taken at the moment. Thank you for coming.{back}"


def parse_referral(auth: Auth, request: Request) -> ArrivalSource:
    """What the platform's link says of whoever opens it."""
    return parse_referral_parameters(auth.store.head.settings.recruitment, request.query_params)


def add_device_and_address(auth: Auth, request: Request, response: Response, source: ArrivalSource) -> ArrivalSource:
    """`came` with the hashes by which the same browser and the same network are known again."""
    return replace(source, device=auth.identify_device(request, response), address=auth.address_hash(request))


# --- going back --------------------------------------------------------------------------------------------------


def build_ending(auth: Auth, annotator: str, why: Literal["done", "screened-out"], more: bool = False) -> Ending:
    """What an annotator takes back to where they were recruited; `more` says that there is work for another task."""
    with auth.store.database.read_transaction() as transaction:
        arrival = arrivals_storage.last_arrival(auth.store, transaction, annotator)
    source = arrival.source if arrival else ArrivalSource()
    task = f"/{source.session}" if auth.store.head.settings.recruitment.batch and source.session else ""
    return _ending_with_code(auth, source, why, f"{annotator}{task}").model_copy(update={"more": more})


def build_declined_ending(auth: Auth, source: ArrivalSource) -> Ending:
    """What somebody takes back who does not agree to take part; nothing about them is kept."""
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
        return Ending(why=why, code=code, back=_PROLIFIC_URL.format(code=quote(code, safe="")))
    if source.submit and why != "no-consent":  # who does not agree gives the task back, there
        fields = {"assignmentId": source.session, "code": code}
        return Ending(why=why, code=code, back=source.submit.rstrip("/") + _MTURK_SUBMIT_PATH, form=fields)
    return Ending(why=why, code=code)


_CODE_SALTS: dict[EndingReason, str] = {"done": "code", "screened-out": "screened-out", "no-consent": "no-consent"}
"""What one's own codes are made of, so that each ending has another."""
