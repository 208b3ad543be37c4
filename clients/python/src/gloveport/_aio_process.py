"""Processes of a sandbox, for programs with an event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence

from . import _processes as processes
from ._aio_path import AsyncPlace
from ._core import LEAVING
from ._errors import ConflictError, GloveportError, UnreachableError
from ._values import Completed, ProcessInfo, ProcessOutput


class AsyncProcess:
    """The same as `Process`, with `await`."""

    def __init__(self, place: AsyncPlace, info: ProcessInfo) -> None:
        self._place = place
        #: What was known of it when it was started.
        self.info = info

    @property
    def id(self) -> str:
        """Its id."""
        return self.info.id

    def __repr__(self) -> str:
        return f"AsyncProcess({self.id!r}, {list(self.info.argv)!r})"

    async def status(self) -> ProcessInfo:
        """How it stands. Raises `NotFoundError` when the sandbox has forgotten it."""
        return await self._place._transport.run(processes.get(self.id))

    def output(self) -> AsyncIterator[ProcessOutput]:
        """What it writes, until it ends; see `Process.output`."""
        return aiter(self._place._transport.items(processes.follow(self.id)))

    async def wait(self) -> Completed:
        """Waits for its end, and keeps all that it writes."""
        return await self._place._transport.run(processes.completed(self.id))

    async def write(self, data: bytes) -> None:
        """Gives it input; see `Process.write`."""
        await self._place._transport.run(processes.send_input(self.id, data))

    async def close_stdin(self) -> None:
        """Ends its input."""
        await self._place._transport.run(processes.close_input(self.id))

    async def signal(self, name: str, *, group: bool = False) -> None:
        """Sends it a signal such as `TERM`; with `group` also to what it has started.

        Raises `ConflictError` if it has ended.
        """
        await self._place._transport.run(processes.signal(self.id, name, group))

    async def remove(self) -> None:
        """Ends it and everything that it started, and forgets it."""
        await self._place._transport.run(processes.remove(self.id))


#: What ends processes whose start was cancelled; each for `LEAVING` seconds twice, at most.
_ENDING: set[asyncio.Future[None]] = set()


class AsyncProcesses:
    """The same as `Processes`, with `await`."""

    def __init__(self, place: AsyncPlace) -> None:
        self._place = place

    async def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bool = False,
        tag: str | None = None,
        timeout: float | None = None,
    ) -> AsyncProcess:
        """Starts a program, without a shell; see `Processes.start`. One whose start is cancelled is ended."""
        asked = self._place._transport.run(processes.start(argv, cwd, env, stdin, tag, timeout))
        starting = asyncio.ensure_future(asked)
        try:
            return AsyncProcess(self._place, await asyncio.shield(starting))
        except asyncio.CancelledError:
            # It may have been sent, and only the answer has its id.
            ending = asyncio.ensure_future(self._end(starting))
            _ENDING.add(ending)
            ending.add_done_callback(_ENDING.discard)
            await asyncio.shield(ending)
            raise

    async def _end(self, starting: asyncio.Future[ProcessInfo]) -> None:
        with contextlib.suppress(GloveportError, asyncio.TimeoutError):
            info = await asyncio.wait_for(starting, LEAVING)
            await asyncio.wait_for(AsyncProcess(self._place, info).remove(), LEAVING)

    async def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Completed:
        """Runs a program to its end. One that is given up on the way, as by a cancelled task, is ended."""
        process = await self.start(argv, cwd=cwd, env=env, stdin=input is not None, timeout=timeout)
        feeder = None if input is None else asyncio.create_task(self._feed(process, input))
        try:
            completed = await process.wait()
            if feeder is not None:
                await feeder
            return completed
        except BaseException as error:
            if feeder is not None:
                feeder.cancel()
            # Where nobody answers, there is nobody who could end it.
            if not isinstance(error, UnreachableError):
                with contextlib.suppress(Exception):
                    await process.remove()
            raise

    @staticmethod
    async def _feed(process: AsyncProcess, data: bytes) -> None:
        # A program may end before it has read everything.
        with contextlib.suppress(ConflictError):
            await process.write(data)
            await process.close_stdin()

    async def list(self) -> list[ProcessInfo]:
        """Those that run, and the latest that ended, in the order of their start."""
        return await self._place._transport.run(processes.listed())
