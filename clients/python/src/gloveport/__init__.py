"""Sandboxes of gloveport: a shell, files, processes and IPython for an agent.

from gloveport import Sandbox

with Sandbox() as box:
    print(box.run("uname -a").check().output)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._command import Command, CommandStream
from ._errors import (
    ApiError,
    CellFailedError,
    CommandFailedError,
    CommandTimedOutError,
    ConflictError,
    ConnectionLostError,
    FileChangedError,
    ForbiddenError,
    GloveportError,
    InvalidRequestError,
    NotFoundError,
    NotIsolatedWarning,
    OutputGoneError,
    PausedError,
    ProgramMissingError,
    RemoteFileError,
    RemoteFileExistsError,
    RemoteFileNotFoundError,
    RemoteIsADirectoryError,
    RemoteNotADirectoryError,
    RemotePermissionError,
    SandboxClosedError,
    ServerFailedError,
    SessionError,
    TooManyError,
    UnexpectedAnswerError,
    UnreachableError,
)
from ._path import RemotePath, RemoteWriter
from ._process import Process, Processes
from ._program import find_program
from ._sandbox import Sandbox
from ._values import (
    Cell,
    CellError,
    CommandStatus,
    Completed,
    Copied,
    FileStat,
    Output,
    ProcessEnd,
    ProcessInfo,
    ProcessOutput,
    Result,
    SandboxState,
    Secret,
    Usage,
)

if TYPE_CHECKING:
    from ._aio import AsyncSandbox
    from ._aio_command import AsyncCommand, AsyncCommandStream
    from ._aio_path import AsyncReader, AsyncRemotePath, AsyncWriter
    from ._aio_process import AsyncProcess, AsyncProcesses

__all__ = [
    "ApiError",
    "AsyncCommand",
    "AsyncCommandStream",
    "AsyncProcess",
    "AsyncProcesses",
    "AsyncReader",
    "AsyncRemotePath",
    "AsyncSandbox",
    "AsyncWriter",
    "Cell",
    "CellError",
    "CellFailedError",
    "Command",
    "CommandFailedError",
    "CommandStatus",
    "CommandStream",
    "CommandTimedOutError",
    "Completed",
    "ConflictError",
    "ConnectionLostError",
    "Copied",
    "FileChangedError",
    "FileStat",
    "ForbiddenError",
    "GloveportError",
    "InvalidRequestError",
    "NotFoundError",
    "NotIsolatedWarning",
    "Output",
    "OutputGoneError",
    "PausedError",
    "Process",
    "ProcessEnd",
    "ProcessInfo",
    "ProcessOutput",
    "Processes",
    "ProgramMissingError",
    "RemoteFileError",
    "RemoteFileExistsError",
    "RemoteFileNotFoundError",
    "RemoteIsADirectoryError",
    "RemoteNotADirectoryError",
    "RemotePath",
    "RemotePermissionError",
    "RemoteWriter",
    "Result",
    "Sandbox",
    "SandboxClosedError",
    "SandboxState",
    "Secret",
    "ServerFailedError",
    "SessionError",
    "TooManyError",
    "UnexpectedAnswerError",
    "UnreachableError",
    "Usage",
    "find_program",
]

# `asyncio` takes longer to import than all the rest, and not everybody needs it.
_ASYNC = {
    "AsyncCommand": "_aio_command",
    "AsyncCommandStream": "_aio_command",
    "AsyncProcess": "_aio_process",
    "AsyncProcesses": "_aio_process",
    "AsyncReader": "_aio_path",
    "AsyncRemotePath": "_aio_path",
    "AsyncSandbox": "_aio",
    "AsyncWriter": "_aio_path",
}


def __getattr__(name: str) -> object:
    module = _ASYNC.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
