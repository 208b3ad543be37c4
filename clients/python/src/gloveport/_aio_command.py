"""Commands of a sandbox, for programs with an event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import TYPE_CHECKING

from . import _commands as commands
from ._aio_path import AsyncPlace
from ._core import LEAVING
from ._errors import GloveportError
from ._values import CommandStatus, Output, Result

if TYPE_CHECKING:
    from ._transport import AsyncItems


class AsyncCommandStream:
    """The same as `CommandStream`, with `async for`.

    A loop that is left before the end gives the command up when the stream is closed: use `async with`, or call
    `close`.
    """

    def __init__(self, place: AsyncPlace, id: str, items: AsyncItems[str, Result]) -> None:
        self._place = place
        self._id = id
        self._items = items
        self._is_over = False

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        if self._is_over:
            raise StopAsyncIteration
        try:
            return await anext(self._items)
        except (StopAsyncIteration, GloveportError):
            self._is_over = True
            raise
        except BaseException:
            await self.close()
            raise

    @property
    def result(self) -> Result:
        """How the command ended. Raises `GloveportError` before that is known."""
        if not self._is_over or not hasattr(self._items, "value"):
            raise GloveportError("the command has not ended, or was given up", code="not_ended")
        return self._items.value

    async def close(self) -> None:
        """Gives the command up if it has not ended."""
        if self._is_over:
            return
        self._is_over = True
        await self._items.aclose()
        with contextlib.suppress(GloveportError, asyncio.TimeoutError):
            await asyncio.wait_for(self._place._transport.run(commands.give_up(self._id)), LEAVING)

    async def drain(self, on_output: Callable[[str], object] | None) -> Result:
        """Waits for the end."""
        async with self:
            async for text in self:
                if on_output is not None:
                    on_output(text)
        return self.result

    async def __aenter__(self) -> AsyncCommandStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncCommand:
    """The same as `Command`, with `await`."""

    def __init__(self, place: AsyncPlace, id: str, command: str) -> None:
        self._place = place
        self.id = id
        self.command = command

    def __repr__(self) -> str:
        return f"AsyncCommand({self.id!r}, {self.command!r})"

    async def status(self) -> CommandStatus:
        """How it stands.

        Raises `NotFoundError` when the sandbox has forgotten it, which keeps the last 256 that ended.
        """
        return await self._place._transport.run(commands.status(self.id))

    async def output(self, from_offset: int = 0, *, most: int = 1024 * 1024) -> Output:
        """The output from an offset that there is now, up to `most` bytes, 1 MiB at most.

        Raises `OutputGoneError` if that part is not kept any more.
        """
        return await self._place._transport.run(commands.output(self.id, from_offset, most))

    def follow(self, from_offset: int = 0) -> AsyncIterator[str]:
        """The output from an offset as it comes, until the command ends. Leaving it does not end the command."""
        return aiter(self._place._transport.items(commands.wait(self.id, self.command, from_offset, None, 0)))

    async def wait(
        self,
        timeout: float | None = None,
        *,
        on_output: Callable[[str], object] | None = None,
        keep: int = commands.KEPT,
    ) -> Result:
        """Waits for its end. Raises `TimeoutError` after `timeout` seconds; the command goes on."""
        items = self._place._transport.items(commands.wait(self.id, self.command, 0, timeout, keep))
        async with contextlib.aclosing(items):
            async for text in items:
                if on_output is not None:
                    on_output(text)
        return items.value

    async def send_input(self, text: str) -> None:
        """Types a text and Enter; see `Command.send_input`."""
        await self._place._transport.run(commands.send_input(self.id, text))

    async def interrupt(self) -> None:
        """Interrupts it as C-c does. Raises `ConflictError` if it does not run."""
        await self._place._transport.run(commands.interrupt(self.id))

    async def kill(self) -> None:
        """Gives it up: one that waits for its turn never begins; one that runs is interrupted, and quit 2 s later."""
        await self._place._transport.run(commands.kill(self.id))
