"""What can go wrong. Everything is below `GloveportError`."""

from __future__ import annotations

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
    """The `gloveport` program could not start, find or end a session; the message is what it said."""

    code = "session_failed"


class SandboxClosedError(GloveportError):
    """The sandbox was closed by this program, or by the process that this one was forked from."""

    code = "closed"


class UnreachableError(GloveportError):
    """Nothing answers at the sandbox's address. What was asked for was not sent."""

    code = "unreachable"


class ConnectionLostError(GloveportError):
    """The connection broke, and what was asked for may have happened or not. It was not tried a second time."""

    code = "connection_lost"


class UnexpectedAnswerError(GloveportError):
    """What answers is no server of gloveport, or one of another version."""

    code = "unexpected_answer"


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


def of_answer(status: int, body: bytes) -> GloveportError:
    """The exception for an answer that is an error."""
    try:
        answer = json.loads(body)
        if isinstance(answer, dict) and isinstance(answer.get("detail"), str) and status != 404:
            # As the routes of OpenHands have it. A path that is not there may be that of any server.
            return _BY_STATUS.get(status, ServerFailedError)(answer["detail"], status=status, code="refused")
        told = answer["error"]
        code, message, remedy = str(told["code"]), str(told["message"]), str(told["hint"])
    except (ValueError, KeyError, TypeError):
        start = body[:200].decode("utf-8", "replace").strip()
        return UnexpectedAnswerError(
            f"the answer with status {status} is none of gloveport's: {start!r}",
            remedy="check that the URL is that of a sandbox's server",
            code="no_such_path" if status == 404 else None,
        )
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status, ServerFailedError)
    return kind(message, status=status, remedy=remedy, code=code)
