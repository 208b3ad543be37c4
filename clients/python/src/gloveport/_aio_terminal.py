"""Terminals of a sandbox, for programs with an event loop."""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from . import _terminals as terminals
from ._aio_path import AsyncPlace
from ._terminals import TerminalEnd, TerminalInfo

if TYPE_CHECKING:
    from ._line import AsyncLine


class AsyncTerminal:
    """The same as `Terminal`, with `await`. It ends with its `async with` block."""

    def __init__(self, place: AsyncPlace, info: TerminalInfo) -> None:
        self._place = place
        #: What was known of it when it was started.
        self.info = info
        self._link = terminals.Link(info.id)
        self._line: AsyncLine = place._transport.line(self._link)

    @property
    def id(self) -> str:
        """Its id."""
        return self.info.id

    @property
    def missing(self) -> int:
        """Bytes of output that were gone before they were read, because the sandbox keeps the last 64 MiB."""
        return self._link.missing

    def __repr__(self) -> str:
        return f"AsyncTerminal({self.id!r}, {list(self.info.argv)!r})"

    async def status(self) -> TerminalInfo:
        """How it stands. Raises `NotFoundError` when the sandbox has forgotten it."""
        return await self._place._transport.run(terminals.status(self.id))

    async def read(self, timeout: float | None = None, *, most: int = 65536) -> bytes:
        """The next output, as soon as there is some, and nothing behind the end of the program.

        Raises `TimeoutError` after `timeout` seconds.
        """
        await self._line.until(self._link.has_output, timeout)
        return self._link.read(most)

    async def read_until(self, marker: str | bytes, timeout: float | None = 30.0) -> str:
        """The output up to the end of a marker, such as a prompt, as text; see `Terminal.read_until`."""
        search = terminals.Search(self._link, marker)
        await self._line.until(search.is_over, timeout)
        return self._link.read(search.size()).decode("utf-8", "replace")

    async def __aiter__(self) -> AsyncIterator[str]:
        """The output as it comes, as text, until the program ends."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while data := await self.read():
            if text := decoder.decode(data):
                yield text
        if text := decoder.decode(b"", final=True):
            yield text

    async def write(self, data: str | bytes) -> None:
        r"""Types something: `"ls\n"` with Enter, `"\x03"` is C-c; see `Terminal.write`."""
        for piece in terminals.pieces(data):
            await self._line.until(partial(self._link.has_room, len(piece)), terminals.TAKING)
            await self._line.type(piece)
        await self._line.until(self._link.has_sent, terminals.TAKING)

    async def resize(self, cols: int, rows: int) -> None:
        """Gives it another size, which its programs are told. Raises `ConflictError` if it has ended."""
        await self._place._transport.run(terminals.resize(self.id, cols, rows))

    async def wait(self, timeout: float | None = None) -> TerminalEnd:
        """Waits until its program ends; see `Terminal.wait`."""
        await self._line.until(self._link.has_ended, timeout)
        assert self._link.end is not None
        return self._link.end

    async def close(self) -> None:
        """Ends its program and everything that this started. Twice is not an error."""
        try:
            await self._place._transport.run(terminals.remove(self.id))
        finally:
            await self._line.close()

    async def __aenter__(self) -> AsyncTerminal:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
