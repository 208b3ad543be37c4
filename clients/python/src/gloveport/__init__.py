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
    BrowserFailedError,
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
    SandboxGoneError,
    ServerFailedError,
    SessionError,
    ToolFailedError,
    TooManyError,
    UnexpectedAnswerError,
    UnreachableError,
)
from ._path import RemotePath, RemoteWriter, Watch
from ._process import Process, Processes
from ._program import find_program
from ._sandbox import Sandbox
from ._values import (
    Cell,
    CellError,
    CommandStatus,
    Completed,
    Copied,
    FileChange,
    FileStat,
    GrepLine,
    GrepResult,
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
    from ._aio_browser import AsyncBrowser
    from ._aio_command import AsyncCommand, AsyncCommandStream
    from ._aio_gateway import AsyncGateway
    from ._aio_network import AsyncNetwork
    from ._aio_path import AsyncReader, AsyncRemotePath, AsyncWatch, AsyncWriter
    from ._aio_process import AsyncProcess, AsyncProcesses
    from ._aio_terminal import AsyncTerminal
    from ._aio_tools import AsyncMcp, AsyncTools
    from ._browser import Browser
    from ._browsers import BrowserStatus, ConsoleEntry, Element, NetworkEntry, Page, PageInfo
    from ._gateway import Gateway
    from ._gateways import GatewayCapabilities, SandboxInfo
    from ._manage import AskedHost, NetworkState, SessionEvent, Snapshot
    from ._mcp import McpServer, McpStatus, Tool, ToolResult
    from ._network import Network
    from ._terminal import Terminal
    from ._terminals import TerminalEnd, TerminalInfo
    from ._tools import Mcp, Tools

__all__ = [
    "ApiError",
    "AskedHost",
    "AsyncBrowser",
    "AsyncCommand",
    "AsyncCommandStream",
    "AsyncGateway",
    "AsyncMcp",
    "AsyncNetwork",
    "AsyncProcess",
    "AsyncProcesses",
    "AsyncReader",
    "AsyncRemotePath",
    "AsyncSandbox",
    "AsyncTerminal",
    "AsyncTools",
    "AsyncWatch",
    "AsyncWriter",
    "Browser",
    "BrowserFailedError",
    "BrowserStatus",
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
    "ConsoleEntry",
    "Copied",
    "Element",
    "FileChange",
    "FileChangedError",
    "FileStat",
    "ForbiddenError",
    "Gateway",
    "GatewayCapabilities",
    "GloveportError",
    "GrepLine",
    "GrepResult",
    "InvalidRequestError",
    "Mcp",
    "McpServer",
    "McpStatus",
    "Network",
    "NetworkEntry",
    "NetworkState",
    "NotFoundError",
    "NotIsolatedWarning",
    "Output",
    "OutputGoneError",
    "Page",
    "PageInfo",
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
    "SandboxGoneError",
    "SandboxInfo",
    "SandboxState",
    "Secret",
    "ServerFailedError",
    "SessionError",
    "SessionEvent",
    "Snapshot",
    "Terminal",
    "TerminalEnd",
    "TerminalInfo",
    "TooManyError",
    "Tool",
    "ToolFailedError",
    "ToolResult",
    "Tools",
    "UnexpectedAnswerError",
    "UnreachableError",
    "Usage",
    "Watch",
    "find_program",
]

# What not everybody needs is imported when it is used: `asyncio` takes longer than all the rest.
_LATER = {
    "AskedHost": "_manage",
    "AsyncBrowser": "_aio_browser",
    "AsyncCommand": "_aio_command",
    "AsyncCommandStream": "_aio_command",
    "AsyncGateway": "_aio_gateway",
    "AsyncMcp": "_aio_tools",
    "AsyncNetwork": "_aio_network",
    "AsyncProcess": "_aio_process",
    "AsyncProcesses": "_aio_process",
    "AsyncReader": "_aio_path",
    "AsyncRemotePath": "_aio_path",
    "AsyncSandbox": "_aio",
    "AsyncTerminal": "_aio_terminal",
    "AsyncTools": "_aio_tools",
    "AsyncWatch": "_aio_path",
    "AsyncWriter": "_aio_path",
    "Browser": "_browser",
    "BrowserStatus": "_browsers",
    "ConsoleEntry": "_browsers",
    "Element": "_browsers",
    "Gateway": "_gateway",
    "GatewayCapabilities": "_gateways",
    "Mcp": "_tools",
    "McpServer": "_mcp",
    "McpStatus": "_mcp",
    "Network": "_network",
    "NetworkEntry": "_browsers",
    "NetworkState": "_manage",
    "Page": "_browsers",
    "PageInfo": "_browsers",
    "SandboxInfo": "_gateways",
    "SessionEvent": "_manage",
    "Snapshot": "_manage",
    "Terminal": "_terminal",
    "TerminalEnd": "_terminals",
    "TerminalInfo": "_terminals",
    "Tool": "_mcp",
    "ToolResult": "_mcp",
    "Tools": "_tools",
}


def __getattr__(name: str) -> object:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
