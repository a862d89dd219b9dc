"""Error responses in a common format, with a message for the user."""

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
from finecomb.server.fallback_pages import problem_page
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
    "signed-out": "You are signed out. Open your link again to continue; your work is saved.",
    "not-allowed": "You do not have access to this page.",
    "other-browser": "You started in another browser. Continue there, or enter the code shown there under “Aa” "
    "(reading settings). You can also ask the researchers for access.",
    "not-found": "Not found.",
    "conflict": "This mark or answer was changed in another window. Select the version to keep.",
    "finished": "This text was already submitted. Reopen it to make changes.",
    "lease-over": "This text is no longer reserved for you because you were inactive for too long. Your work is saved.",
    "incomplete": "Some required answers are missing.",
    "too-large": "This request is too large.",
    "refused": "The server did not accept this request.",
    "paused": "The study is paused. Your work is saved; come back later.",
    "closed": "The study has ended. Thank you.",
    "too-many": "Too many attempts. Wait ten minutes and try again.",
    "failed": "Something went wrong on the server. Try again.",
}


class ProblemError(HTTPException):
    """Error that becomes an error response. It may be raised anywhere in the code that a route calls."""

    def __init__(self, code: ErrorCode, say: str = "", status: int = 0, **more: Any) -> None:
        super().__init__(status or STATUS_BY_CODE[code], code)
        self.problem = ErrorResponse(code=code, say=say or MESSAGE_BY_CODE[code], **more)

    def response(self) -> Response:
        """Return the error as a JSON response."""
        return Response(self.problem.model_dump_json(), self.status_code, media_type="application/json")


def validation_problem(what: str, error: ValidationError | RequestValidationError) -> ProblemError:
    """Build the error for a request that does not match the API's schema."""
    first = error.errors()[0]
    where = ".".join(str(step) for step in first["loc"] if step != "body")
    reason = str(first["msg"]).removeprefix("Value error, ").rstrip(".")
    return ProblemError("refused", f"{what} was not accepted. {where or 'Content'}: {reason}.")


def _problem_response(request: Request, error: ProblemError) -> Response:
    """Return an error as JSON for programs, or as a page for people who opened an address in a browser."""
    if not request.url.path.startswith(("/api/", "/static/")) and "text/html" in request.headers.get("accept", ""):
        return problem_page(error.status_code, error.problem.say)
    return error.response()


def install_error_handlers(app: FastAPI) -> None:
    """Install handlers that return all errors of an app in the common format."""

    @app.exception_handler(ProblemError)
    def _handle_problem(request: Request, error: ProblemError) -> Response:
        return _problem_response(request, error)

    @app.exception_handler(FinecombError)
    def _handle_finecomb_error(request: Request, error: FinecombError) -> Response:
        """Report errors in full to researchers only. Annotators must not see files, addresses or people's names."""
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
                request, ProblemError("not-found", "This address does not support this method.", 405)
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
