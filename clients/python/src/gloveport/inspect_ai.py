"""Inspect: `sandbox="gloveport"` gives each sample a sandbox of its own.

The module is found by its entry point. `("gloveport", "docker")` names what hosts the sandboxes, and
`SandboxEnvironmentSpec("gloveport", GloveportSandboxConfig(…))` says more of them.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio
import contextlib
import errno
import shlex
from pathlib import PurePosixPath
from typing import Any, Literal, overload

from anyio import run_process
from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxConnection,
    SandboxEnvironment,
    SandboxEnvironmentConfigType,
    SandboxEnvironmentLimits,
    SandboxUnavailableError,
    SandboxUserUnsupportedError,
    sandboxenv,
)
from pydantic import ConfigDict

from ._aio import AsyncSandbox
from ._aio_process import AsyncProcess
from ._errors import GloveportError, InvalidRequestError, SandboxClosedError, UnreachableError
from ._followed import followed
from ._program import find_program
from ._settings import SandboxSettings

__all__ = ["GloveportSandboxConfig", "GloveportSandboxEnvironment"]

#: The label of sandboxes that are started for samples.
LABEL = ("gloveport.framework", "inspect")


class GloveportSandboxConfig(SandboxSettings):
    """What each sample's sandbox is."""

    model_config = ConfigDict(frozen=True)

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


def _config(given: SandboxEnvironmentConfigType | None) -> GloveportSandboxConfig:
    if given is None:
        return GloveportSandboxConfig()
    if isinstance(given, str):
        # Inspect takes it for the name of a file, and puts the directory of the task in front.
        before, program, path = given.partition("exec:")
        return GloveportSandboxConfig(runtime=program + path if program else PurePosixPath(before).name)
    if isinstance(given, GloveportSandboxConfig):
        return given
    raise TypeError(f"a sandbox is configured by a GloveportSandboxConfig or the name of a runtime, not by {given!r}")


@sandboxenv(name="gloveport")
class GloveportSandboxEnvironment(SandboxEnvironment):
    """A sandbox of one sample. It ends with the sample, and with this process."""

    def __init__(self, box: AsyncSandbox, user: tuple[str, ...]) -> None:
        super().__init__()
        self._box = box
        # Its names: that of the user and its number.
        self._user = user

    @classmethod
    async def sample_init(
        cls, task_name: str, config: SandboxEnvironmentConfigType | None, metadata: dict[str, str]
    ) -> dict[str, SandboxEnvironment]:
        settings = _config(config)
        box = settings.described(AsyncSandbox, labels={**settings.labels, LABEL[0]: LABEL[1]})
        await box.open()
        try:
            told = await box.processes.run(["/bin/sh", "-c", "id -un; id -u"], timeout=30)
        except BaseException:
            await box.close()
            raise
        return {"default": cls(box, tuple(told.stdout.decode().split()))}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        for environment in environments.values():
            await environment.as_type(cls)._box.close()

    @classmethod
    async def cli_cleanup(cls, id: str | None) -> None:
        """Ends a sandbox by its id, or all that were started for samples, also those of evaluations that run."""
        words = [find_program(), "session"]
        listed = await run_process([*words, "ls", "--quiet", "--label", "=".join(LABEL)])
        ids = [each for each in listed.stdout.decode().split() if id in (None, each)]
        if ids:
            await run_process([*words, "rm", "-f", *ids])

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> GloveportSandboxConfig:
        return GloveportSandboxConfig(**config)

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Runs a program. A limit of time or output ends it, with everything that it started."""
        if user is not None and user not in self._user:
            raise SandboxUserUnsupportedError(
                f"programs of this sandbox run as {self._user[0]!r}, not as {user!r}; `flags=['--user', …]` of its "
                "configuration chooses the user where the runtime can do that"
            )
        data = input.encode() if isinstance(input, str) else input
        where = str(self._path(cwd or "."))
        try:
            process = await self._box.processes.start(cmd, cwd=where, env=env, stdin=data is not None, timeout=timeout)
        except InvalidRequestError as error:
            if error.code == "no_such_directory":
                raise FileNotFoundError(errno.ENOENT, "No such directory", where) from error
            if error.code != "no_such_program":
                raise
            if "/" in cmd[0] and await self._box.path(self._path(cmd[0])).exists():
                raise PermissionError(errno.EACCES, "This is no program", cmd[0]) from error
            return ExecResult(False, 127, "", f"{error.message}\n")
        except (UnreachableError, SandboxClosedError) as error:
            raise SandboxUnavailableError(str(error)) from error
        feeder = asyncio.create_task(self._feed(process, data))
        try:
            return await self._finished(process, timeout)
        finally:
            feeder.cancel()

    @staticmethod
    async def _feed(process: AsyncProcess, data: bytes | None) -> None:
        # A program may end before it has read everything.
        with contextlib.suppress(GloveportError):
            if data is not None:
                await process.write(data)
                await process.close_stdin()

    @staticmethod
    async def _finished(process: AsyncProcess, timeout: int | None) -> ExecResult[str]:
        written = {"stdout": bytearray(), "stderr": bytearray()}
        most = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        async with followed(process) as outputs:
            async for piece in outputs:
                kept = written[piece.stream]
                kept += piece.data
                if len(kept) > most:
                    text = kept[:most].decode("utf-8", "replace")
                    raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, text)
        stdout, stderr = (written[name].decode("utf-8", "replace") for name in ("stdout", "stderr"))
        end = (await process.status()).end
        if end is None or end.timed_out:
            error = TimeoutError(f"`{process.info.argv[0]}` did not end within {timeout} seconds")
            # What Inspect tells the model beside.
            setattr(error, "truncated_output", stdout + stderr)  # noqa: B010
            raise error
        code = 128 + (end.signal or 0) if end.exit_code is None else end.exit_code
        return ExecResult(code == 0, code, stdout, stderr)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        data = contents.encode() if isinstance(contents, str) else contents
        await self._box.path(self._path(file)).write_bytes(data, parents=True)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        most = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE
        async with self._box.path(self._path(file)).open() as reader:
            data = await reader.read(most + 1)
        if len(data) > most:
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None)
        return data.decode() if text else data

    def _path(self, path: str) -> PurePosixPath:
        return PurePosixPath(self._box.workspace or "/", path)

    async def connection(self, *, user: str | None = None) -> SandboxConnection:
        if user is not None and user not in self._user:
            raise NotImplementedError(f"the sandbox has no way in as {user!r}")
        command = [find_program(), "session", "--runtime", self._box.runtime, "exec", "-it", self._box.id]
        return SandboxConnection(type="gloveport", command=shlex.join(command))

    def default_polling_interval(self) -> float:
        return 0.2
