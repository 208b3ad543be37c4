"""verifiers: agents whose programs run in a sandbox of gloveport.

async with GloveportRuntime() as box:
    trace = await agent.run(task, runtime=box)

An environment gives each episode a sandbox if its taskset exports `GloveportEnv`, too.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import PurePosixPath
from typing import Any, ClassVar

from verifiers.v1.configs.agent import AgentConfig
from verifiers.v1.configs.env import EnvConfig
from verifiers.v1.env import Env
from verifiers.v1.errors import SandboxError
from verifiers.v1.runtimes import ProgramResult, Runtime, RuntimeProcess, SubprocessConfig, SubprocessRuntimeInfo

from ._aio import AsyncSandbox
from ._aio_path import AsyncRemotePath
from ._aio_process import AsyncProcess
from ._errors import ConflictError, GloveportError
from ._followed import followed
from ._settings import SandboxSettings
from ._shell import Ends, code_of

__all__ = ["GloveportConfig", "GloveportEnv", "GloveportEnvConfig", "GloveportRuntime"]

#: Most bytes of each output of a program; of more, the beginning and the end are kept.
KEEP = 16 * 1024 * 1024
#: Most bytes of a file that is read, and of what a live process has written and nobody has read.
LARGEST = 256 * 1024 * 1024
# Runs the words behind it with their output in a file.
LOGGED = ("/bin/sh", "-c", 'log=$1; shift; exec "$@" >"$log" 2>&1', "sh")


class GloveportConfig(SandboxSettings):
    """What the sandbox is."""

    # What the framework looks kinds of runtimes up by: one that it knows, and that reaches its models as these do.
    type: ClassVar[str] = "subprocess"
    #: Where programs begin; the workspace if it is empty.
    workdir: str | None = None


class GloveportRuntime(Runtime):
    """A sandbox to run agents in, and any number of them. It ends with its block or `stop`, and with this process."""

    def __init__(self, config: GloveportConfig | None = None, name: str | None = None) -> None:
        super().__init__(name)
        self.config = config or GloveportConfig()
        # The framework reads its records again, and knows its own kinds only.
        self.info = SubprocessRuntimeInfo()
        # Its programs reach the models at the loopback address.
        self.is_local = self.config.runtime == "local"
        self._box: AsyncSandbox | None = None
        self._live: list[GloveportProcess] = []

    async def __aenter__(self) -> GloveportRuntime:
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *left: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Starts the sandbox. Raises `SandboxError` with the reason if that cannot be done."""
        if self.is_local and self.config.network not in (None, "full"):
            raise ValueError(
                "the program of an agent reaches its model through the network of this machine: leave `network` out"
            )
        self._box = self.config.described(AsyncSandbox)
        try:
            with failing("the sandbox cannot be started"):
                await self._box.open()
                if self.config.workdir is not None:
                    await self._path(".").mkdir(parents=True, exist_ok=True)
        except BaseException:
            # Nobody stops what did not start, or was cancelled while it did.
            await self._box.close()
            raise
        self.info.id = self._box.id
        self.scripts_dir = str(self._path(".vf-scripts"))

    async def teardown(self) -> None:
        """Ends the sandbox. Twice is not an error."""
        for process in self._live:
            await process.leave()
        self._live = []
        if self._box is not None:
            await self._box.close()

    @property
    def _running(self) -> AsyncSandbox:
        if self._box is None:
            raise SandboxError("the sandbox is not started: use it in an `async with` block")
        return self._box

    def _path(self, path: str) -> AsyncRemotePath:
        return self._running.path(PurePosixPath(self._running.workspace or "/", self.config.workdir or "", path))

    async def _start(self, argv: list[str], env: dict[str, str], stdin: bool = False) -> AsyncProcess:
        where = str(self._path("."))
        return await self._running.processes.start(argv, cwd=where, env=self.process_env(env), stdin=stdin)

    async def run(self, argv: list[str], env: dict[str, str]) -> ProgramResult:
        """Runs a program. One that is given up, as by a time limit, is ended with everything that it has started."""
        outputs = {"stdout": Ends(KEEP), "stderr": Ends(KEEP)}
        with failing(f"{argv[0]} cannot be run"):
            process = await self._start(argv, env)
            async with followed(process) as pieces:
                async for piece in pieces:
                    outputs[piece.stream].add(piece.data)
            code = await _code(process)
        return ProgramResult(code, outputs["stdout"].text(), outputs["stderr"].text())

    async def open_process(self, argv: list[str], env: dict[str, str]) -> RuntimeProcess:
        with failing(f"{argv[0]} cannot be started"):
            process = GloveportProcess(await self._start(argv, env, stdin=True))
        self._live.append(process)
        return process

    async def run_background(self, argv: list[str], env: dict[str, str], log: str) -> None:
        with failing(f"{argv[0]} cannot be started"):
            await self._start([*LOGGED, log, *argv], env)

    async def _read(self, path: str, max_bytes: int | None = None) -> bytes:
        most = LARGEST if max_bytes is None else max_bytes
        with failing(f"{path} cannot be read"):
            async with self._path(path).open() as file:
                data = await file.read(most + 1)
        if max_bytes is None and len(data) > most:
            raise SandboxError(f"{path} cannot be read: it has more than {most} bytes")
        return data[:most]

    async def write(self, path: str, data: bytes) -> None:
        with failing(f"{path} cannot be written"):
            await self._path(path).write_bytes(data, parents=True)

    async def expose(self, port: int) -> str:
        if not self.is_local:
            raise SandboxError(f"a server in a sandbox of the runtime {self.config.runtime} cannot be reached")
        return await super().expose(port)


class GloveportProcess(RuntimeProcess):
    """A program with pipes that somebody talks to."""

    def __init__(self, process: AsyncProcess) -> None:
        self._process = process
        self._unread: dict[str, asyncio.Queue[bytes]] = {"stdout": asyncio.Queue(), "stderr": asyncio.Queue()}
        self._held = 0
        self.stdout = self._pieces("stdout")
        self.stderr = self._pieces("stderr")
        self._end = asyncio.create_task(self._follow())

    async def _follow(self) -> int:
        try:
            async with followed(self._process) as pieces:
                async for piece in pieces:
                    self._held += len(piece.data)
                    if self._held > LARGEST:
                        raise SandboxError(f"a process has written {LARGEST} bytes that nobody has read")
                    self._unread[piece.stream].put_nowait(piece.data)
            return await _code(self._process)
        finally:
            for queue in self._unread.values():
                queue.put_nowait(b"")

    async def _pieces(self, stream: str) -> AsyncIterator[bytes]:
        while data := await self._unread[stream].get():
            self._held -= len(data)
            yield data

    async def write(self, data: bytes) -> None:
        with failing("the process takes no input"):
            await self._process.write(data)

    async def wait(self) -> int:
        with failing("the process is lost"):
            return await asyncio.shield(self._end)

    async def poll(self) -> int | None:
        return await self.wait() if self._end.done() else None

    async def terminate(self) -> None:
        await self._signal("TERM")

    async def kill(self) -> None:
        await self._signal("KILL")

    async def _signal(self, name: str) -> None:
        # One that has ended has nothing to be told.
        with failing("the process cannot be ended"), contextlib.suppress(ConflictError):
            await self._process.signal(name, group=True)

    async def leave(self) -> None:
        """Ends it, and waits for nobody."""
        self._end.cancel()
        await asyncio.gather(self._end, return_exceptions=True)


class GloveportEnvConfig(EnvConfig):
    """A sandbox for each episode."""

    agent: AgentConfig = AgentConfig(runtime=SubprocessConfig())
    sandbox: SandboxSettings = SandboxSettings()


class GloveportEnv(Env[GloveportEnvConfig]):
    """One agent, whose task is done in a sandbox of its own. The image is the task's, unless one is given."""

    async def run(self, task: Any, agents: Any) -> None:
        settings, data = self.config.sandbox, task.data
        if data.image is not None and settings.runtime == "local":
            raise ValueError(
                f"the task {data.idx!r} needs the image {data.image}, and sandboxes of the runtime `local` have none: "
                "choose another one, such as `docker`"
            )
        own = {"image": settings.image or data.image, "workdir": data.workdir}
        async with GloveportRuntime(GloveportConfig(**{**settings.model_dump(), **own})) as box:
            await agents.agent.run(task, runtime=box)


@contextlib.contextmanager
def failing(what: str) -> Iterator[None]:
    """Errors of the sandbox are those that a rollout records."""
    try:
        yield
    except GloveportError as error:
        raise SandboxError(f"{what}: {error}") from error


async def _code(process: AsyncProcess) -> int:
    end = (await process.status()).end
    if end is None:
        raise SandboxError("the sandbox does not say how the process ended")
    return code_of(end)
