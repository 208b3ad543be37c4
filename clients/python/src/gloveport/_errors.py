"""What can go wrong. Everything is below `GloveportError`."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._values import Result


class GloveportError(Exception):
    """Something failed.

    `code` is a name for programs, `message` says what failed, and `remedy` what to do about it; it may be empty.
    """

    code = "failed"

    def __init__(self, message: str, *, remedy: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message


class ProgramMissingError(GloveportError):
    """There is no `gloveport` program to start a session with."""

    code = "program_missing"


class SessionError(GloveportError):
    """The `gloveport` program or a gateway could not start, find or end a sandbox; the message is what it said."""

    code = "session_failed"


class SandboxClosedError(GloveportError):
    """The sandbox was closed by this program, or by the process that this one was forked from."""

    code = "closed"


class UnreachableError(GloveportError):
    """Nothing answers at the address of the sandbox or the gateway. What was asked for was not sent, or was followed
    until then.
    """

    code = "unreachable"


class ConnectionLostError(GloveportError):
    """The connection broke, and what was asked for may have happened or not. It was not tried a second time."""

    code = "connection_lost"


class UnexpectedAnswerError(GloveportError):
    """What answers is no server of gloveport, or one of another version."""

    code = "unexpected_answer"


class SandboxGoneError(GloveportError):
    """The gateway has no sandbox at the address, or no more. Nothing was done."""

    code = "no_such_sandbox"


class ApiError(GloveportError):
    """The sandbox's server refused a request. `status` is that of HTTP."""

    def __init__(self, message: str, *, status: int = 0, remedy: str = "", code: str | None = None) -> None:
        super().__init__(message, remedy=remedy, code=code)
        self.status = status


class InvalidRequestError(ApiError, ValueError):
    """The request is not what it must be, such as a command without text."""


class ForbiddenError(ApiError):
    """The key is missing or wrong."""


class NotFoundError(ApiError):
    """The sandbox knows no command, process, kernel or plugin of this name."""


class ConflictError(ApiError):
    """How things stand does not allow it, such as input for a command that has ended."""


class TooManyError(ApiError):
    """The sandbox has as many commands, processes or requests as it takes."""


class PausedError(ApiError):
    """The sandbox is paused."""


class OutputGoneError(ApiError):
    """The output at this offset is not kept any more."""


class ServerFailedError(ApiError):
    """The server failed, or lacks what is needed."""


class RemoteFileError(ApiError, OSError):
    """A file of the sandbox cannot be used as it was asked for."""


class RemoteFileNotFoundError(RemoteFileError, FileNotFoundError):
    """Nothing is at the path."""


class RemoteFileExistsError(RemoteFileError, FileExistsError):
    """Something is at the path already."""


class RemoteIsADirectoryError(RemoteFileError, IsADirectoryError):
    """A directory is at the path, and a file is needed."""


class RemoteNotADirectoryError(RemoteFileError, NotADirectoryError):
    """A directory is needed, and something else is there."""


class RemotePermissionError(RemoteFileError, PermissionError):
    """The user of the sandbox may not do this."""


class FileChangedError(RemoteFileError):
    """The file was changed while it was read, so what was read is no whole."""

    code = "changed"


class CommandFailedError(GloveportError):
    """`check()` found a command that did not end with exit code 0. `result` is all that is known of it."""

    code = "command_failed"

    def __init__(self, result: Result) -> None:
        super().__init__(result.describe())
        self.result = result

    def __reduce__(self) -> tuple[type[CommandFailedError], tuple[Result]]:
        return type(self), (self.result,)


class CommandTimedOutError(CommandFailedError, TimeoutError):
    """`check()` found a command whose time limit passed."""

    code = "timed_out"


class CellFailedError(GloveportError):
    """`check()` found a cell that raised an exception, or did not come to its end."""

    code = "cell_failed"


class BrowserFailedError(GloveportError):
    """`check()` found a page in which what was asked for could not be done."""

    code = "browser_failed"


class ToolFailedError(GloveportError):
    """A tool of MCP failed, or `check()` found that it has."""

    code = "tool_failed"


class NotIsolatedWarning(UserWarning):
    """A sandbox of this machine is not kept apart from it, because that cannot be done here."""


_BY_CODE: dict[str, type[ApiError]] = {
    "not_found": RemoteFileNotFoundError,
    "exists": RemoteFileExistsError,
    "is_a_directory": RemoteIsADirectoryError,
    "not_a_directory": RemoteNotADirectoryError,
    "permission_denied": RemotePermissionError,
    "not_empty": RemoteFileError,
    "not_a_regular_file": RemoteFileError,
    "storage_full": RemoteFileError,
    "file_refused": RemoteFileError,
    "name_too_long": RemoteFileError,
    "range_behind_end": RemoteFileError,
    "changed": FileChangedError,
    "paused": PausedError,
    "output_gone": OutputGoneError,
    "too_many_requests": TooManyError,
    "too_many_transfers": TooManyError,
}

_BY_STATUS: dict[int, type[ApiError]] = {
    400: InvalidRequestError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    413: InvalidRequestError,
    429: TooManyError,
}


#: What to do where a server is gone.
ENDED = "check the URL, and whether the session has ended: `gloveport session ls`"


def unreachable(where: str, why: str, what: str = "the sandbox's server", remedy: str = ENDED) -> UnreachableError:
    """Nothing answers at a URL."""
    return UnreachableError(f"{what} at {where} cannot be reached: {why}", remedy=remedy)


def of_answer(status: int, body: bytes, where: str) -> GloveportError:
    """The exception for an answer of the server at a URL that is an error."""
    told: object = None
    with contextlib.suppress(ValueError):
        told = json.loads(body)
    answer = told if isinstance(told, dict) else {}
    detail, error = answer.get("detail"), answer.get("error")
    if isinstance(detail, str):
        if status == 503 and detail.startswith("the sandbox is paused"):
            # A gateway says so.
            return PausedError(
                f"the sandbox at {where} is paused", status=status, remedy="resume it at its gateway", code="paused"
            )
        if status in (502, 504) and detail.startswith("the server of the sandbox does not answer"):
            # A gateway says so, also for a moment of a sandbox that is being ended.
            return ConnectionLostError(
                f"the gateway has lost the connection to the sandbox's server at {where}: {detail}",
                remedy="find out whether it was done before you ask again",
            )
        if status != 404:
            # As the routes of OpenHands have it. A path that is not there may be that of any server.
            return _BY_STATUS.get(status, ServerFailedError)(detail, status=status, code="refused")
        if detail.startswith("there is no such sandbox"):
            # A gateway says so.
            return SandboxGoneError(f"the sandbox at {where} is not there, or no more: {detail}", remedy=ENDED)
    if isinstance(error, dict) and "code" in error and "message" in error:
        code, message = str(error["code"]), str(error["message"])
        if code == "forbidden" and message == "Invalid API Key":
            return ForbiddenError(
                f"the sandbox's server at {where} does not take the key: {message}",
                status=status,
                remedy="give the key that the server has; `gloveport session env ID` prints that of a session",
                code=code,
            )
        if "hint" in error:
            kind = _BY_CODE.get(code) or _BY_STATUS.get(status, ServerFailedError)
            return kind(message, status=status, remedy=str(error["hint"]), code=code)
        if "request_id" in error:
            return UnexpectedAnswerError(
                f"{where} is a gateway, and none of its sandboxes: {message}",
                remedy="give the URL and the key of a sandbox, as `url` and `key` of `Gateway.info` are",
                code="is_gateway",
            )
    start = body[:200].decode("utf-8", "replace").strip()
    return UnexpectedAnswerError(
        f"the answer of {where} with status {status} is none of gloveport's: {start!r}",
        remedy="check that the URL is that of a sandbox's server",
        code="no_such_path" if status == 404 else None,
    )
