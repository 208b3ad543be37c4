"""LangChain's deep agents: a backend whose files and commands are those of a sandbox.

with Sandbox() as box:
    agent = create_deep_agent(model, backend=GloveportBackend(box))
    agent.invoke({"messages": [("user", "Run the tests.")]})
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import contextlib
from collections.abc import Sequence

from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox

from ._aio import AsyncSandbox
from ._errors import GloveportError, RemoteFileError
from ._followed import followed
from ._sandbox import Sandbox
from ._shell import LIMIT, SHELL, TOGETHER, Ends, code_of
from ._values import ProcessEnd

__all__ = ["GloveportBackend"]

#: Most bytes of output, unless it is said otherwise: the framework's own commands list up to 10,000 files.
KEEP = 4 * 1024 * 1024
#: Most bytes of a file that is downloaded, unless it is said otherwise.
LARGEST = 64 * 1024 * 1024
#: The exit code of a command whose time is over, as that of `timeout`.
TIMED_OUT = 124
# What the framework tells a model of files.
TOLD = (
    (FileNotFoundError, "file_not_found"),
    (IsADirectoryError, "is_directory"),
    (PermissionError, "permission_denied"),
)


class GloveportBackend(BaseSandbox):
    """The files and commands of a sandbox, for agents with and without an event loop. It needs `python3` there.

    Each command has a shell of its own, which begins in the workspace. `timeout` are its seconds, unless the model says
    how many, and `keep` the most bytes of its output; of more, the beginning and the end are kept. A command that is
    given up, as by C-c or by cancelling a run, is ended with everything that it has started. Files of more than
    `largest` bytes are not downloaded.
    """

    def __init__(
        self,
        box: Sandbox,
        *,
        timeout: float = LIMIT,
        keep: int = KEEP,
        largest: int = LARGEST,
        interpreter: Sequence[str] = SHELL,
    ) -> None:
        self._box = box
        self._timeout = timeout
        self._keep = keep
        self._largest = largest
        self._words = [*TOGETHER, *interpreter]

    @property
    def id(self) -> str:
        """The id of the sandbox's session."""
        return self._box.id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Runs a command. A `timeout` of 0 is none."""
        limit = self._limit(timeout)
        output = Ends(self._keep)
        process = self._box.processes.start([*self._words, command], cwd=self._box.workspace, timeout=limit)
        try:
            for piece in process.output():
                output.add(piece.data)
        except BaseException:
            with contextlib.suppress(GloveportError):
                process.remove()
            raise
        return _response(process.status().end, output, limit)

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """The same for a program with an event loop."""
        limit = self._limit(timeout)
        output = Ends(self._keep)
        session = self._box._known()
        # Loops come and go, so each call has a connection of its own.
        async with await AsyncSandbox.connect(session.url, session.key) as box:
            process = await box.processes.start([*self._words, command], cwd=session.workspace, timeout=limit)
            async with followed(process) as pieces:
                async for piece in pieces:
                    output.add(piece.data)
            return _response((await process.status()).end, output, limit)

    def _limit(self, timeout: int | None) -> float | None:
        return self._timeout if timeout is None else timeout or None

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Writes files, whole or not at all; missing directories are made."""
        return [FileUploadResponse(path, self._upload(path, data)) for path, data in files]

    def _upload(self, path: str, data: bytes) -> str | None:
        if not path.startswith("/"):
            return "invalid_path"
        try:
            self._box.path(path).write_bytes(data, parents=True)
        except RemoteFileError as error:
            return _told(error)
        return None

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Reads files."""
        return [self._download(path) for path in paths]

    def _download(self, path: str) -> FileDownloadResponse:
        if not path.startswith("/"):
            return FileDownloadResponse(path, error="invalid_path")
        try:
            with self._box.path(path).open("rb") as file:
                data = file.read(self._largest + 1)
        except RemoteFileError as error:
            return FileDownloadResponse(path, error=_told(error))
        if len(data) > self._largest:
            return FileDownloadResponse(path, error=f"the file has more than {self._largest} bytes")
        return FileDownloadResponse(path, data)


def _response(end: ProcessEnd | None, output: Ends, limit: float | None) -> ExecuteResponse:
    if end is None or end.timed_out:
        text = f"{output.text()}\n[the command did not end within {limit:g} seconds]"
        return ExecuteResponse(text, TIMED_OUT, output.left_out > 0)
    return ExecuteResponse(output.text(), code_of(end), output.left_out > 0)


def _told(error: RemoteFileError) -> str:
    return next((code for kind, code in TOLD if isinstance(error, kind)), str(error))
