"""Sandboxes, for programs without an event loop."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import TYPE_CHECKING

from . import _cells as cells
from . import _commands as commands
from . import _errors as errors
from . import _files as files
from . import _session as sessions
from . import _state as states
from ._command import Command, CommandStream
from ._path import RemotePath, Watch
from ._process import Processes
from ._sandbox_base import SandboxBase
from ._values import Cell, CommandStatus, Copied, GrepResult, Result, SandboxState, Secret

if TYPE_CHECKING:
    from ._browser import Browser
    from ._gateway import Gateway
    from ._gateways import SandboxInfo
    from ._manage import SessionEvent, Snapshot
    from ._network import Network
    from ._terminal import Terminal
    from ._terminals import TerminalInfo
    from ._tools import Mcp, Tools
    from ._transport import Transport


class Sandbox(SandboxBase):
    """A computer for an agent: a shell that keeps its state, files, processes and IPython.

    `with Sandbox() as box:` starts a session, which ends with the block, with this process, and with this object,
    whatever comes first. Threads may share a sandbox. All methods raise `GloveportError` if they fail.
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
        """Describes a sandbox, which `open` or a `with` block starts.

        `runtime` hosts it: `local`, `docker`, `kubernetes` and others; an empty one is that of the configuration.
        `from_snapshot` is one of `snapshot`, and the runtime is then that of the snapshot.
        `workspace` is a directory of this machine to work in, which stays. `isolation` is `none`, `files` or
        `container`, and the strongest that there is by default. `network` is `full`, `none`, or the hosts that it may
        talk to; `memory` a size such as `2g`; `ports` are ports of programs in it, by names; `plugins` such as
        `jupyter`. `flags` are more flags of `gloveport session start`, such as `("--cpus", "2")`.
        """
        if from_snapshot is not None:
            from . import _manage as manage

            runtime, image = manage.start_of(from_snapshot, runtime, image)
        plan = sessions.Plan(
            runtime, image, workspace, env, secrets, isolation, network, memory, ports, plugins, labels, flags
        )
        super().__init__(plan, None)
        self._opened: Transport | None = None
        self._gateway: Gateway | None = None
        self._lock = threading.Lock()

    @classmethod
    def connect(cls, url: str, key: str | None = None) -> Sandbox:
        """A sandbox by the URL and the key of its server. Closing it leaves it running.

        Raises `UnreachableError` or `ForbiddenError` if one of them is wrong.
        """
        return cls._of(sessions.Session("", url.rstrip("/"), key))

    @classmethod
    def attach(cls, session_id: str, *, runtime: str | None = None) -> Sandbox:
        """A session that runs, by its id. Closing it leaves it running. Raises `SessionError` if there is none."""
        return cls._of(sessions.find(session_id, runtime))

    @classmethod
    def _at(cls, gateway: Gateway, info: SandboxInfo) -> Sandbox:
        from ._gateway import session_of

        box = cls()
        box._plan, box._session, box._gateway = None, session_of(info), gateway
        return box

    @classmethod
    def _of(cls, session: sessions.Session) -> Sandbox:
        box = cls()
        box._plan, box._session = None, session
        box._greet()
        return box

    def open(self) -> Sandbox:
        """Starts it, and returns when it can be used. Raises `SessionError` with the reason if it cannot be started."""
        if self._plan is not None and self._guard is None and not self._is_closed:
            # Another thread that closes this one gives it up.
            guard = self._guard = sessions.Guard(self._plan)
            try:
                if not self._is_closed:
                    self._session = guard.started()
                self._greet()
                self._warn_if_open()
            except BaseException as error:
                guard.give_up()
                self._guard = None
                if self._is_closed and isinstance(error, errors.SessionError):
                    self._known()
                raise
        self._known()
        return self

    def _greet(self) -> None:
        try:
            self._transport.run(states.greet())
        except BaseException:
            self._disconnect()
            raise

    def close(self) -> None:
        """Ends it if it was started for this object, and waits until nothing is left. Twice is not an error."""
        self._is_closed = True
        self._disconnect()
        if self._guard is None:
            return
        if self._session is None:
            # Another thread is starting it, and finds it closed.
            self._guard.give_up()
        else:
            self._guard.end()

    def _disconnect(self) -> None:
        with self._lock:
            opened, self._opened = self._opened, None
        # In a forked process the connections are the parent's.
        if opened is not None and self._process == os.getpid():
            opened.close()

    def __enter__(self) -> Sandbox:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _transport(self) -> Transport:
        session = self._known()
        opened = self._opened
        if opened is not None and self._process == os.getpid():
            return opened
        from ._transport import Address, Transport

        with self._lock:
            if self._opened is None or self._process != os.getpid():
                self._opened, self._process = Transport(Address(session.url, session.key)), os.getpid()
            return self._opened

    def run(
        self,
        command: str,
        *,
        cwd: str | RemotePath | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        on_output: Callable[[str], object] | None = None,
        keep: int = commands.KEPT,
    ) -> Result:
        """Runs a command in the sandbox's shell, whose directory and variables stay for the next one, and waits for
        its end.

        With `cwd` or `env` it runs in a shell of its own, next to that one. After `timeout` seconds, counted from the
        request, it is given up, and its `reason` is `timed_out`. `on_output` gets the output as it comes. `keep` is
        how many of the last bytes of output the result has. If this call is left by an exception, such as C-c, the
        command is given up.

        A connection that breaks is made again, for ten seconds, and the output goes on where it was. The command is
        never sent a second time if it may have arrived: where nobody can tell, this raises `ConnectionLostError`.
        """
        return self.stream(command, cwd=cwd, env=env, timeout=timeout, keep=keep).drain(on_output)

    def stream(
        self,
        command: str,
        *,
        cwd: str | RemotePath | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        keep: int = commands.KEPT,
    ) -> CommandStream:
        """The same, as an iterator over the output.

        The command does not wait for its reader. The sandbox keeps the last 256 MiB; what is gone before it
        was read is counted in `missing` of the result.
        """
        spec = commands.CommandSpec(command, _text(cwd), env, timeout)
        return CommandStream(self, spec.id, self._transport.items(commands.run(spec, keep)))

    def start(
        self,
        command: str,
        *,
        cwd: str | RemotePath | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Command:
        """Starts a command and does not wait for it.

        In the sandbox's shell, those that come after it wait for their turn.
        """
        spec = commands.CommandSpec(command, _text(cwd), env, timeout)
        self._transport.run(commands.start(spec))
        return Command(self, spec.id, command)

    def command(self, id: str) -> Command:
        """A command by its id, such as one that another program has started.

        Raises `NotFoundError` if there is none.
        """
        return Command(self, id, self._transport.run(commands.status(id)).command)

    def commands(self) -> list[CommandStatus]:
        """The commands that run or wait for their turn, and the latest that ended, in the order of their start."""
        return self._transport.run(commands.listed())

    def run_code(
        self,
        code: str,
        *,
        kernel: str = "default",
        timeout: float | None = None,
        on_output: Callable[[str], object] | None = None,
    ) -> Cell:
        """Runs a cell in an IPython kernel, whose variables stay for the next one. Needs the plugin `jupyter`.

        A kernel of a new name is started. After `timeout` seconds the cell is interrupted. If this call is left by an
        exception, so is the cell. Raises `ConnectionLostError` if the connection breaks: a cell has no id by which it
        could be found.
        """
        items = self._transport.items(cells.run(code, kernel, timeout))
        try:
            for text in items:
                if on_output is not None:
                    on_output(text)
        except errors.GloveportError:
            raise
        except BaseException:
            items.close()
            with contextlib.suppress(errors.GloveportError):
                self._transport.run(cells.give_up(kernel))
            raise
        return items.value

    def interrupt_kernel(self, kernel: str = "default") -> None:
        """Interrupts the cell that runs. Raises `NotFoundError` if there is no such kernel."""
        self._transport.run(cells.interrupt(kernel))

    def restart_kernel(self, kernel: str = "default") -> None:
        """Ends a kernel, and starts another one of its name."""
        self._transport.run(cells.restart(kernel))

    @property
    def processes(self) -> Processes:
        """Programs with pipes."""
        self._known()
        return Processes(self)

    def terminal(
        self,
        command: str | Sequence[str] | None = None,
        *,
        cols: int = 80,
        rows: int = 24,
        cwd: str | RemotePath | None = None,
        env: Mapping[str, str] | None = None,
        id: str | None = None,
    ) -> Terminal:
        """Starts a program on a terminal of its own: a shell, or a command as text or as its words.

        An `id` of your own finds it again: where one of this id runs, that is the terminal, and nothing is started.
        Raises `ConflictError` if it is another program's, and `TooManyError` when 64 run.
        """
        from . import _terminals as terminals
        from ._terminal import Terminal

        info = self._transport.run(terminals.start(command, id, cols, rows, _text(cwd), env))
        return Terminal(self, info)

    def terminals(self) -> list[TerminalInfo]:
        """The terminals that run, and the latest that ended."""
        from . import _terminals as terminals

        return self._transport.run(terminals.listed())

    @property
    def browser(self) -> Browser:
        """Its browser, which starts with its first use."""
        from ._browser import Browser

        self._known()
        return Browser(self)

    def path(self, path: str | PurePosixPath) -> RemotePath:
        """A path in the sandbox. A relative one begins in its workspace."""
        return RemotePath(self, path)

    def grep(
        self,
        pattern: str,
        path: str | RemotePath = ".",
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
        return self.path(str(path)).grep(
            pattern,
            globs=globs,
            literal=literal,
            ignore_case=ignore_case,
            hidden=hidden,
            respect_ignore=respect_ignore,
            context=context,
            limit=limit,
        )

    def watch(self, path: str | RemotePath = ".", *, recursive: bool = False, timeout: float | None = None) -> Watch:
        """What happens to files at a path from now on; see `RemotePath.watch`."""
        return self.path(str(path)).watch(recursive=recursive, timeout=timeout)

    def upload(self, source: str | os.PathLike[str], target: str | RemotePath) -> Copied:
        """Copies a file of this machine to a path, or what is in a directory into a directory; missing ones are made.

        Modes, times and links of trees are kept; FIFOs, devices and sockets are left out.
        """
        from ._trees import packed, pieces_of

        local = Path(source)
        if local.is_dir():
            return self._transport.run(files.write_archive(str(target), packed(local)))
        status = local.stat()
        mode = status.st_mode & 0o777
        self._transport.run(files.write(str(target), pieces_of(local), mode=mode, parents=True, exclusive=False))
        return Copied(1, status.st_size)

    def download(self, source: str | RemotePath, target: str | os.PathLike[str]) -> Copied:
        """Copies a file to a path of this machine, or what is in a directory into a directory, which is made.

        A file is written whole or not at all. Nothing of a tree is written outside of the directory, and no special
        bits are set.
        """
        from ._trees import Incoming

        path = self.path(str(source))
        status = path.stat()
        operation = files.read_archive if status.is_dir() else files.read
        with Incoming(Path(target), status) as incoming:
            for piece in self._transport.items(operation(str(path))):
                incoming.write(piece)
            return incoming.finish()

    def snapshot(self, name: str | None = None) -> Snapshot:
        """Keeps its files as an image, from which `Sandbox(from_snapshot=…)` starts others.

        It stays until `remove_snapshot`. Raises `SessionError` where the runtime cannot do that.
        """
        from . import _manage as manage

        if self._gateway is not None:
            self._known()
            return self._gateway.snapshot(self, name)
        return manage.snapshot(self._known(), name)

    def fork(self) -> Sandbox:
        """Another sandbox with its files and settings as they are now, and no secrets and no processes of it.

        It is one of your own, which ends with its `with` block, with `close`, with this process, and with its object.
        Raises `SessionError` where the runtime cannot do that.
        """
        from . import _manage as manage

        session = self._known()
        if self._gateway is not None:
            return self._gateway.fork(self)
        other = Sandbox(session.runtime)
        other._plan = sessions.Plan(session.runtime, isolation=self.isolation, parent=manage.id_of(session))
        return other.open()

    @classmethod
    def snapshots(cls, runtime: str | None = None) -> list[Snapshot]:
        """The snapshots of a runtime, or of all that can be asked, the newest first."""
        from . import _manage as manage

        return manage.snapshots(runtime)

    @classmethod
    def remove_snapshot(cls, image: str | Snapshot, *, runtime: str | None = None) -> None:
        """Removes a snapshot. Raises `SessionError` if there is none, or if it is still needed."""
        from . import _manage as manage

        manage.remove_snapshot(image, runtime)

    def events(self, since: int = 0, *, kinds: Sequence[str] = (), most: int = 1000) -> list[SessionEvent]:
        """The history of its session: the first events from a number on, or those of some kinds, such as `run`.

        What `gloveport session exec` and others do in it is recorded; what this client does is not.
        """
        from . import _manage as manage

        return manage.events(self._known(), since, kinds, most)

    @property
    def network(self) -> Network:
        """Whom it may reach."""
        from ._network import Network

        self._known()
        return Network(self)

    @property
    def tools(self) -> Tools:
        """What the sandbox offers to a model as tools: a shell, files, a browser and others."""
        from ._tools import Tools

        self._known()
        return Tools(self)

    @property
    def mcp(self) -> Mcp:
        """MCP servers in the sandbox, and their tools."""
        from ._tools import Mcp

        self._known()
        return Mcp(self)

    def state(self) -> SandboxState:
        """Whether it is paused, and since when nobody has used it."""
        return self._transport.run(states.state())

    def pause(self) -> None:
        """Stops all its processes where they are. Until it is resumed, most methods raise `PausedError`."""
        self._transport.run(states.pause())

    def resume(self) -> None:
        """Lets its processes go on. One that is not paused stays as it is."""
        self._transport.run(states.resume())


def _text(path: str | RemotePath | None) -> str | None:
    return None if path is None else str(path)
