"""Translate errors into refusals for the page: a status, the name of the error, and its message; never a traceback."""

import http
import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import anyio.to_thread
from fastapi import FastAPI, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException

from airflow_bookmarks.core import errors
from airflow_bookmarks.core.errors import BookmarkError
from airflow_bookmarks.core.text.redaction import redacted
from airflow_bookmarks.plugin.bulkhead import NotInTimeError
from airflow_bookmarks.plugin.schemas.refusal import Difference, Refusal, Wrong

if TYPE_CHECKING:
    from airflow_bookmarks.plugin.auth import Person

log = logging.getLogger(__name__)

# The first that fits: special ones before general ones.
_STATUS: Mapping[type[BookmarkError], int] = {
    errors.JobUnknownError: 404,
    errors.RunUnknownError: 404,
    errors.RequestUnknownError: 404,
    errors.LookRefusedError: 409,
    errors.TooLargeHereError: 409,
    errors.ExportRefusedError: 409,
    errors.OptionError: 422,
    errors.NameInvalidError: 422,
    errors.DocumentError: 422,
    errors.ChangedMeanwhileError: 409,
    errors.ChangeRefusedError: 409,
    errors.ProtectedError: 409,
    errors.ApprovalError: 409,
    errors.JobBusyError: 409,
    errors.ShardsBusyError: 409,
    errors.ShardsLeftError: 409,
    errors.BackfillStoppedError: 409,
    errors.FencedError: 409,
    errors.NameTakenError: 409,
    errors.StateCorruptError: 500,
    errors.OutOfBoundsError: 500,
    errors.StoreError: 503,
    errors.SourceError: 502,
    errors.DatabaseError: 502,
}
_RETRY_AFTER_S = "30"

LOGGED = "The log of the API server says more."
_IN_PART = (
    "the change was made in some of the virtual shards, and not in others. The same change again takes those that are "
    "left, and leaves the others as they are, unless they have run since."
)
_UNCHANGED = "Nothing was read or changed."
# What those are told of a failure who may not see connections: its sort, and no host, table or path. The first that
# fits: special ones before general ones.
_SORTS: Mapping[type[BookmarkError], str] = {
    errors.StoreThrottledError: "the state store throttles requests.",
    errors.TableMissingError: "there is no state store where the connection leads.",
}
_UNTOLD: Mapping[int, tuple[type[BookmarkError], str]] = {
    500: (errors.StateCorruptError, "what the state store holds of this is damaged."),
    502: (errors.SourceError, "what the job reads can't be looked at."),
    503: (errors.StoreUnavailableError, "the state store can't be reached, refuses, or does not answer in time."),
}


class MovedError(errors.ChangedMeanwhileError):
    """Raised when a change met another version than the previewed one; says what happened in between."""

    def __init__(self, message: str, difference: Difference) -> None:
        super().__init__(message)
        self.difference = difference


class HidesNames(Protocol):
    """A request that can hide, in the text of an error, the names of jobs that its user may not look at."""

    async def with_names_hidden(self, said: str) -> str:
        """Return the text without these names."""
        ...


class ForbiddenError(BookmarkError):
    """Raised when the logged-in user may not do what was asked, or another site asked for it."""


_TOLD_AS: Mapping[type[BookmarkError], type[BookmarkError]] = {
    MovedError: errors.ChangedMeanwhileError,
}


def status_of(error: BookmarkError) -> int:
    """Return the HTTP status for an error."""
    if isinstance(error, ForbiddenError):
        return 403
    return next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 500)


def install(app: FastAPI) -> None:
    """Let the app answer every error as a `Refusal`."""
    app.add_exception_handler(BookmarkError, _bookmark_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


async def _bookmark_error(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, BookmarkError):
        raise error
    status = status_of(error)
    headers = {"Retry-After": _RETRY_AFTER_S} if status == 503 else None
    if status >= 500:
        log.warning("bookmarks page: %s: %s", type(error).__name__, error)
        if not isinstance(error, NotInTimeError) and not await _may_know(request):
            return _answer(status, _untold(status, error), headers)
    if isinstance(error, errors.ShardsLeftError) and _tells_of_the_store(error):
        log.warning("bookmarks page: %s: %s", type(error).__name__, error)
        if not await _may_know(request):
            return _answer(status, Refusal(error=errors.ShardsLeftError.__name__, message=f"{_IN_PART} {LOGGED}"))
    kind = _TOLD_AS.get(type(error), type(error))
    difference = error.difference if isinstance(error, MovedError) else None
    asked: HidesNames | None = getattr(request.state, "page_request", None)
    # Who is told of the store's failures is told them whole: they are what would have to be asked for the names.
    said = str(error) if asked is None or status >= 500 else await asked.with_names_hidden(str(error))
    if said != str(error):
        log.info("bookmarks page: %s: %s", kind.__name__, error)
    return _answer(status, Refusal(error=kind.__name__, message=redacted(said), difference=difference), headers)


def _tells_of_the_store(error: errors.ShardsLeftError) -> bool:
    """Whether a shard was refused for a confidential reason; a child does not give its reason."""
    refused: Mapping[str, BookmarkError] | None = vars(error).get("refused")
    return refused is None or any(status_of(each) >= 500 for each in refused.values())


def _untold(status: int, error: BookmarkError) -> Refusal:
    sorts = ((kind, said) for kind, said in _SORTS.items() if isinstance(error, kind))
    kind, said = next(sorts, _UNTOLD.get(status, _UNTOLD[500]))
    # Whether a change may have been made is told to everybody.
    unchanged = f"{_UNCHANGED} " if re.search("nothing was (read or )?changed", str(error), re.IGNORECASE) else ""
    return Refusal(error=kind.__name__, message=f"{said} {unchanged}{LOGGED}")


async def _may_know(request: Request) -> bool:
    """Whether the user may know where the state lies and what is wrong with it; False if that can't be determined."""
    person: Person | None = getattr(request.state, "person", None)
    try:
        return person is not None and await anyio.to_thread.run_sync(person.may_see_the_store)
    except SQLAlchemyError:
        log.exception("bookmarks page: Airflow's database did not say what the user may know")
        return False


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RequestValidationError):
        raise error
    # Without what was sent: it may hold what should not be repeated.
    wrong = [Wrong(where=".".join(map(str, each["loc"])), what=each["msg"]) for each in error.errors()]
    said = "; ".join(f"{each.where}: {each.what}" for each in wrong)
    message = f"the request is invalid: {said}. Nothing was read or changed."
    return _answer(422, Refusal(error="RequestInvalid", message=message, wrong=wrong))


async def _http(_: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == http.HTTPStatus.BAD_REQUEST:
        # FastAPI says so of a body that is no text, and of nothing else; one that is no JSON is invalid as well.
        message = "the body is not JSON in UTF-8. Nothing was read or changed."
        return _answer(422, Refusal(error="RequestInvalid", message=message))
    name = http.HTTPStatus(error.status_code).phrase.title().replace(" ", "")
    headers = dict(error.headers) if error.headers else None
    return _answer(error.status_code, Refusal(error=name, message=str(error.detail)), headers)


async def _unexpected(_: Request, error: Exception) -> JSONResponse:
    # Starlette raises it again once this is sent, so that the server's log has the traceback.
    message = "an unexpected error; the log of the API server has the details. Look at the job before you try again."
    return _answer(500, Refusal(error="InternalError", message=message))


def _answer(status: int, refusal: Refusal, headers: dict[str, str] | None = None) -> JSONResponse:
    # What a refusal has no news of is left out of it; within a difference null says that something is not known.
    body = {name: value for name, value in jsonable_encoder(refusal).items() if value is not None}
    return JSONResponse(body, status, {"Cache-Control": "no-store", **(headers or {})})
