"""Every error in one shape: a `Problem` with words for people."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from finecomb.collection.database.connection import DatabaseError
from finecomb.core.errors import FinecombError
from finecomb.server.annotators.schema import ErrorResponse
from finecomb.server.fallback_pages import is_page_request, problem_page
from finecomb.server.logs import route_template
from finecomb.server.schema import ErrorCode

log = logging.getLogger(__name__)

STATUS_BY_CODE: dict[ErrorCode, int] = {
    "signed-out": 401,
    "not-allowed": 403,
    "other-browser": 403,
    "not-found": 404,
    "conflict": 409,
    "finished": 409,
    "lease-over": 409,
    "incomplete": 409,
    "too-large": 413,
    "refused": 422,
    "paused": 423,
    "closed": 423,
    "too-many": 429,
    "failed": 500,
}
MESSAGE_BY_CODE: dict[ErrorCode, str] = {
    "signed-out": "You are signed out. Open your link again to go on; what you did is kept.",
    "not-allowed": "This is not open to you.",
    "other-browser": "You began in another browser. Go on there. To go on here, type the code that it shows under “Aa” "
    "(reading settings), or ask the researchers to let you in.",
    "not-found": "There is nothing here.",
    "conflict": "This was changed in another window. Take one of the two.",
    "finished": "This text was handed in. Open it again to change something.",
    "lease-over": "This text went to somebody else, because nothing happened for a long time. What you marked is kept.",
    "incomplete": "Something is still missing.",
    "too-large": "This is too large to be sent.",
    "refused": "This was not accepted.",
    "paused": "The study is paused. What you did is kept; come back later.",
    "closed": "The study is over. Thank you.",
    "too-many": "Too many tries. Wait ten minutes, then try again.",
    "failed": "Something went wrong on our side. What you did is kept on this device and sent again.",
}


class ProblemError(HTTPException):
    """An answer that is a problem; raised anywhere below a route."""

    def __init__(self, code: ErrorCode, say: str = "", status: int = 0, **more: Any) -> None:
        super().__init__(status or STATUS_BY_CODE[code], code)
        self.problem = ErrorResponse(code=code, say=say or MESSAGE_BY_CODE[code], **more)

    def response(self) -> Response:
        """As it goes to the browser."""
        return Response(self.problem.model_dump_json(), self.status_code, media_type="application/json")


def validation_problem(what: str, error: ValidationError | RequestValidationError) -> ProblemError:
    """What does not have the shape that the API asks for."""
    first = error.errors()[0]
    where = ".".join(str(step) for step in first["loc"] if step != "body")
    reason = str(first["msg"]).removeprefix("Value error, ").rstrip(".")
    return ProblemError("refused", f"{what} was not accepted. {where or 'It'}: {reason}.")


def _problem_response(request: Request, error: ProblemError) -> Response:
    """A problem for programs; a page for somebody who looks at an address in a browser."""
    if is_page_request(request):
        return problem_page(error.status_code, error.problem.say)
    return error.response()


def install_error_handlers(app: FastAPI) -> None:
    """Give every error of an app the one shape."""

    @app.exception_handler(ProblemError)
    def _handle_problem(request: Request, error: ProblemError) -> Response:
        return _problem_response(request, error)

    @app.exception_handler(FinecombError)
    def _handle_finecomb_error(request: Request, error: FinecombError) -> Response:
        """A researcher's mistake is told in full; annotators hear nothing of files, addresses and names."""
        if isinstance(error, DatabaseError) or not request.url.path.startswith("/api/admin/"):
            log.error("%s %s failed: %s", request.method, route_template(request.scope), error)
            return _problem_response(request, ProblemError("failed"))
        return ProblemError("refused", str(error)).response()

    @app.exception_handler(RequestValidationError)
    def _handle_validation_error(request: Request, error: RequestValidationError) -> Response:
        return _problem_response(request, validation_problem("This", error))

    @app.exception_handler(HTTPException)
    def _handle_http_error(request: Request, error: HTTPException) -> Response:
        if error.status_code == 405:
            return _problem_response(
                request, ProblemError("not-found", "This address does not take such requests.", 405)
            )
        codes: dict[int, ErrorCode] = {
            status: code
            for code, status in STATUS_BY_CODE.items()
            if code not in ("closed", "finished", "other-browser")
        }
        return _problem_response(
            request, ProblemError(codes.get(error.status_code, "refused"), status=error.status_code)
        )

    @app.exception_handler(Exception)
    def _handle_unexpected_error(request: Request, error: Exception) -> Response:
        log.error("%s %s failed", request.method, route_template(request.scope), exc_info=error)
        return _problem_response(request, ProblemError("failed"))
