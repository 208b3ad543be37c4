"""Sandboxes, for programs with an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import TYPE_CHECKING

from . import _cells as cells
from . import _commands as commands
from . import _errors as errors
from . import _files as files
from . import _manage as manage
from . import _session as sessions
from . import _state as states
from . import _terminals as terminals
from ._aio_browser import AsyncBrowser
from ._aio_command import AsyncCommand, AsyncCommandStream
from ._aio_network import AsyncNetwork
from ._aio_path import AsyncRemotePath, AsyncWatch
from ._aio_process import AsyncProcesses
from ._aio_terminal import AsyncTerminal
from ._aio_tools import AsyncMcp, AsyncTools
from ._core import LEAVING
from ._manage import SessionEvent, Snapshot
from ._sandbox_base import SandboxBase
from ._terminals import TerminalInfo
from ._values import Cell, CommandStatus, Copied, GrepResult, Result, SandboxState, Secret

if TYPE_CHECKING:
    from ._aio_gateway import AsyncGateway
    from ._gateways import SandboxInfo
    from ._transport import AsyncTransport


class AsyncSandbox(SandboxBase):
    """The same as `Sandbox`, with `async` and `await`, in one event loop of `asyncio`.

    `async with AsyncSandbox() as box:` starts a session, which ends with the block, with this process, and with this
    object, whatever comes first. Tasks may share a sandbox. A task that is cancelled while it runs a command gives
    that up.
    """

    def __init__(
        self,
        runtime: str = "local",
        *,
        image: str | None = None,
        from_snapshot: str | Snapshot | None = None,
        workspace: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        secrets: Mapping[str, str | Secret] | None = None,
        isolation: str | None = None,
        network: str | Sequence[str] | None = None,
        memory: str | None = None,
        ports: Mapping[str, int] | None = None,
        plugins: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        flags: Sequence[str] = (),
    ) -> None:
        """Describes a sandbox, which `open` or an `async with` block starts; see `Sandbox`."""
        if from_snapshot is not None:
            runtime, image = manage.start_of(from_snapshot, runtime, image)
        plan = sessions.Plan(
            runtime, image, workspace, env, secrets, isolation, network, memory, ports, plugins, labels, flags
        )
        super().__init__(plan, None)
        self._opened: AsyncTransport | None = None
        self._gateway: AsyncGateway | None = None

    @classmethod
    async def connect(cls, url: str, key: str | None = None) -> AsyncSandbox:
        """A sandbox by the URL and the key of its server. Closing it leaves it running.

        Raises `UnreachableError` or `ForbiddenError` if one of them is wrong.
        """
        return await cls._of(sessions.Session("", url.rstrip("/"), key))

    @classmethod
    async def attach(cls, session_id: str, *, runtime: str | None = None) -> AsyncSandbox:
        """A session that runs, by its id. Closing it leaves it running. Raises `SessionError` if there is none."""
        return await cls._of(await asyncio.to_thread(sessions.find, session_id, runtime))

    @classmethod
    def _at(cls, gateway: AsyncGateway, info: SandboxInfo) -> AsyncSandbox:
        from ._gateway import session_of

        box = cls()
        box._plan, box._session, box._gateway = None, session_of(info), gateway
        return box

    @classmethod
    async def _of(cls, session: sessions.Session) -> AsyncSandbox:
        box = cls()
        box._plan, box._session = None, session
        await box._greet()
        return box

    async def open(self) -> AsyncSandbox:
        """Starts it, and returns when it can be used. Raises `SessionError` with the reason if it cannot be started."""
        if self._plan is not None and self._guard is None and not self._is_closed:
            guard = await self._made(self._plan)
            try:
                self._session = await asyncio.to_thread(guard.started)
                self._guard = guard
                await self._greet()
                self._warn_if_open()
            except BaseException:
                guard.give_up()
                raise
        self._known()
        return self

    @staticmethod
    async def _made(plan: sessions.Plan) -> sessions.Guard:
        made: list[sessions.Guard] = []
        is_wanted = True

        def make() -> None:
            made.append(sessions.Guard(plan))
            if not is_wanted:
                made[0].give_up()

        try:
            await asyncio.to_thread(make)
        except BaseException:
            # The thread goes on, and may come to its end before this or after it.
            is_wanted = False
            for guard in made:
                guard.give_up()
            raise
        return made[0]

    async def _greet(self) -> None:
        try:
            await self._transport.run(states.greet())
        except BaseException:
            await self._disconnect()
            raise

    async def close(self) -> None:
        """Ends it if it was started for this object, and waits until nothing is left. Twice is not an error."""
        self._is_closed = True
        guard = self._guard
        if guard is None:
            await self._disconnect()
            return
        # The end of the session does not depend on who waits for it.
        end = asyncio.ensure_future(asyncio.to_thread(guard.end))
        await self._disconnect()
        await asyncio.shield(end)

    async def _disconnect(self) -> None:
        opened, self._opened = self._opened, None
        # In a forked process the connections are the parent's.
        if opened is not None and self._process == os.getpid():
            await opened.close()

    async def __aenter__(self) -> AsyncSandbox:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def _transport(self) -> AsyncTransport:
        session = self._known()
        if self._opened is None or self._process != os.getpid():
            from ._transport import Address, AsyncTransport

            self._opened, self._process = AsyncTransport(Address(session.url, session.key)), os.getpid()
        return self._opened

    async def run(
        self,
        command: str,
        *,
        cwd: str | AsyncRemotePath | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        on_output: Callable[[str], object] | None = None,
        keep: int = commands.KEPT,
    ) -> Result:
        """Runs a command in the sandbox's shell, and waits for its end; see `Sandbox.run`."""
        return await self.stream(command, cwd=cwd, env=env, timeout=timeout, keep=keep).drain(on_output)

    def stream(
        self,
        command: str,
        *,
        cwd: str | AsyncRemotePath | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        keep: int = commands.KEPT,
    ) -> AsyncCommandStream:
        """The same, as an iterator over the output."""
        spec = commands.CommandSpec(command, _text(cwd), env, timeout)
        return AsyncCommandStream(self, spec.id, self._transport.items(commands.run(spec, keep)))

    async def start(
        self,
        command: str,
        *,
        cwd: str | AsyncRemotePath | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> AsyncCommand:
        """Starts a command and does not wait for it.

        In the sandbox's shell, those that come after it wait for their turn.
        """
        spec = commands.CommandSpec(command, _text(cwd), env, timeout)
        await self._transport.run(commands.start(spec))
        return AsyncCommand(self, spec.id, command)

    async def command(self, id: str) -> AsyncCommand:
        """A command by its id, such as one that another program has started.

        Raises `NotFoundError` if there is none.
        """
        return AsyncCommand(self, id, (await self._transport.run(commands.status(id))).command)

    async def commands(self) -> list[CommandStatus]:
        """The commands that run or wait for their turn, and the latest that ended, in the order of their start."""
        return await self._transport.run(commands.listed())

    async def run_code(
        self,
        code: str,
        *,
        kernel: str = "default",
        timeout: float | None = None,
        on_output: Callable[[str], object] | None = None,
    ) -> Cell:
        """Runs a cell in an IPython kernel, whose variables stay for the next one; see `Sandbox.run_code`."""
        items = self._transport.items(cells.run(code, kernel, timeout))
        try:
            async for text in items:
                if on_output is not None:
                    on_output(text)
        except errors.GloveportError:
            raise
        except BaseException:
            await items.aclose()
            with contextlib.suppress(errors.GloveportError, asyncio.TimeoutError):
                await asyncio.wait_for(self._transport.run(cells.give_up(kernel)), LEAVING)
            raise
        return items.value

    async def interrupt_kernel(self, kernel: str = "default") -> None:
        """Interrupts the cell that runs. Raises `NotFoundError` if there is no such kernel."""
        await self._transport.run(cells.interrupt(kernel))

    async def restart_kernel(self, kernel: str = "default") -> None:
        """Ends a kernel, and starts another one of its name."""
        await self._transport.run(cells.restart(kernel))

    @property
    def processes(self) -> AsyncProcesses:
        """Programs with pipes."""
        self._known()
        return AsyncProcesses(self)

    async def terminal(
        self,
        command: str | Sequence[str] | None = None,
        *,
        cols: int = 80,
        rows: int = 24,
        cwd: str | AsyncRemotePath | None = None,
        env: Mapping[str, str] | None = None,
        id: str | None = None,
    ) -> AsyncTerminal:
        """Starts a program on a terminal of its own: a shell, or a command as text or as its words; see
        `Sandbox.terminal`.
        """
        info = await self._transport.run(terminals.start(command, id, cols, rows, _text(cwd), env))
        return AsyncTerminal(self, info)

    async def terminals(self) -> list[TerminalInfo]:
        """The terminals that run, and the latest that ended."""
        return await self._transport.run(terminals.listed())

    @property
    def browser(self) -> AsyncBrowser:
        """Its browser, which starts with its first use."""
        self._known()
        return AsyncBrowser(self)

    def path(self, path: str | PurePosixPath) -> AsyncRemotePath:
        """A path in the sandbox. A relative one begins in its workspace."""
        return AsyncRemotePath(self, path)

    async def grep(
        self,
        pattern: str,
        path: str | AsyncRemotePath = ".",
        *,
        globs: Sequence[str] = (),
        literal: bool = False,
        ignore_case: bool = False,
        hidden: bool = False,
        respect_ignore: bool = False,
        context: int = 0,
        limit: int = 1000,
    ) -> GrepResult:
        """The lines at a path that a regular expression matches; see `RemotePath.grep`."""
        return await self.path(str(path)).grep(
            pattern,
            globs=globs,
            literal=literal,
            ignore_case=ignore_case,
            hidden=hidden,
            respect_ignore=respect_ignore,
            context=context,
            limit=limit,
        )

    async def watch(
        self, path: str | AsyncRemotePath = ".", *, recursive: bool = False, timeout: float | None = None
    ) -> AsyncWatch:
        """What happens to files at a path from now on; see `RemotePath.watch`."""
        return await self.path(str(path)).watch(recursive=recursive, timeout=timeout)

    async def upload(self, source: str | os.PathLike[str], target: str | AsyncRemotePath) -> Copied:
        """Copies a file of this machine to a path, or what is in a directory into a directory; see `Sandbox.upload`."""
        from ._trees import packed, pieces_of

        local = Path(source)
        if local.is_dir():
            return await self._transport.run(files.write_archive(str(target), packed(local)))
        status = local.stat()
        mode = status.st_mode & 0o777
        await self._transport.run(files.write(str(target), pieces_of(local), mode=mode, parents=True, exclusive=False))
        return Copied(1, status.st_size)

    async def download(self, source: str | AsyncRemotePath, target: str | os.PathLike[str]) -> Copied:
        """Copies a file to a path of this machine, or what is in a directory into a directory; see
        `Sandbox.download`.
        """
        from ._trees import Incoming

        path = self.path(str(source))
        status = await path.stat()
        operation = files.read_archive if status.is_dir() else files.read
        with Incoming(Path(target), status) as incoming:
            async for piece in self._transport.items(operation(str(path))):
                await asyncio.to_thread(incoming.write, piece)
            return await asyncio.to_thread(incoming.finish)

    async def snapshot(self, name: str | None = None) -> Snapshot:
        """Keeps its files as an image, from which `Sandbox(from_snapshot=…)` starts others.

        It stays until `remove_snapshot`. Raises `SessionError` where the runtime cannot do that.
        """
        session = self._known()
        if self._gateway is not None:
            return await self._gateway.snapshot(self, name)
        return await asyncio.to_thread(manage.snapshot, session, name)

    async def fork(self) -> AsyncSandbox:
        """Another sandbox with its files and settings as they are now, and no secrets and no processes of it.

        It is one of your own, which ends with its `with` block, with `close`, with this process, and with its object.
        Raises `SessionError` where the runtime cannot do that.
        """
        session = self._known()
        if self._gateway is not None:
            return await self._gateway.fork(self)
        other = AsyncSandbox(session.runtime)
        other._plan = sessions.Plan(session.runtime, isolation=self.isolation, parent=manage.id_of(session))
        return await other.open()

    @classmethod
    async def snapshots(cls, runtime: str | None = None) -> list[Snapshot]:
        """The snapshots of a runtime, or of all that can be asked, the newest first."""
        return await asyncio.to_thread(manage.snapshots, runtime)

    @classmethod
    async def remove_snapshot(cls, image: str | Snapshot, *, runtime: str | None = None) -> None:
        """Removes a snapshot. Raises `SessionError` if there is none, or if it is still needed."""
        await asyncio.to_thread(manage.remove_snapshot, image, runtime)

    async def events(self, since: int = 0, *, kinds: Sequence[str] = (), most: int = 1000) -> list[SessionEvent]:
        """The history of its session: the first events from a number on, or those of some kinds, such as `run`.

        What `gloveport session exec` and others do in it is recorded; what this client does is not.
        """
        return await asyncio.to_thread(manage.events, self._known(), since, kinds, most)

    @property
    def network(self) -> AsyncNetwork:
        """Whom it may reach."""
        self._known()
        return AsyncNetwork(self)

    @property
    def tools(self) -> AsyncTools:
        """What the sandbox offers to a model as tools: a shell, files, a browser and others."""
        self._known()
        return AsyncTools(self)

    @property
    def mcp(self) -> AsyncMcp:
        """MCP servers in the sandbox, and their tools."""
        self._known()
        return AsyncMcp(self)

    async def state(self) -> SandboxState:
        """Whether it is paused, and since when nobody has used it."""
        return await self._transport.run(states.state())

    async def pause(self) -> None:
        """Stops all its processes where they are. Until it is resumed, most methods raise `PausedError`."""
        await self._transport.run(states.pause())

    async def resume(self) -> None:
        """Lets its processes go on. One that is not paused stays as it is."""
        await self._transport.run(states.resume())


def _text(path: str | AsyncRemotePath | None) -> str | None:
    return None if path is None else str(path)
