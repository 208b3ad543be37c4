"""Terminals of a sandbox."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from . import _terminals as terminals
from ._path import Place
from ._terminals import TerminalEnd, TerminalInfo

if TYPE_CHECKING:
    from ._line import Line


class Terminal:
    """A program on a terminal of its own, as for a person: it has a size, and takes keys.

    It ends with its `with` block, with `close`, or with the sandbox. A connection that breaks is made again, and
    neither output nor input is lost or doubled. Threads may share a terminal, one that reads and others that write.
    """

    def __init__(self, place: Place, info: TerminalInfo) -> None:
        self._place = place
        #: What was known of it when it was started.
        self.info = info
        self._link = terminals.Link(info.id)
        self._line: Line = place._transport.line(self._link)

    @property
    def id(self) -> str:
        """Its id."""
        return self.info.id

    @property
    def missing(self) -> int:
        """Bytes of output that were gone before they were read, because the sandbox keeps the last 64 MiB."""
        return self._link.missing

    def __repr__(self) -> str:
        return f"Terminal({self.id!r}, {list(self.info.argv)!r})"

    def status(self) -> TerminalInfo:
        """How it stands. Raises `NotFoundError` when the sandbox has forgotten it."""
        return self._place._transport.run(terminals.status(self.id))

    def read(self, timeout: float | None = None, *, most: int = 65536) -> bytes:
        """The next output, as soon as there is some, and nothing behind the end of the program.

        Raises `TimeoutError` after `timeout` seconds.
        """
        while True:
            self._line.until(self._link.has_output, timeout)
            # Another thread may have taken it.
            data = self._line.read(most)
            if data or self._link.is_over():
                return data

    def read_until(self, marker: str | bytes, timeout: float | None = 30.0) -> str:
        """The output up to the end of a marker, such as a prompt, as text. Without the marker if the program ends.

        Raises `TimeoutError` after `timeout` seconds, and `GloveportError` when it is not in the next MiB. The output
        is still there to be read then.
        """
        search = terminals.Search(self._link, marker)
        self._line.until(search.is_over, timeout)
        return self._line.read(search.size()).decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str]:
        """The output as it comes, as text, until the program ends."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while data := self.read():
            if text := decoder.decode(data):
                yield text
        if text := decoder.decode(b"", final=True):
            yield text

    def write(self, data: str | bytes) -> None:
        r"""Types something: `"ls\n"` with Enter, `"\x03"` is C-c.

        Raises `ConflictError` if the program has ended, and `TimeoutError` if nothing is taken for half a minute; a
        part may have been typed then.
        """
        for piece in terminals.pieces(data):
            self._line.until(partial(self._link.has_room, len(piece)), terminals.TAKING)
            self._line.type(piece)
        self._line.until(self._link.has_sent, terminals.TAKING)

    def resize(self, cols: int, rows: int) -> None:
        """Gives it another size, which its programs are told. Raises `ConflictError` if it has ended."""
        self._place._transport.run(terminals.resize(self.id, cols, rows))

    def wait(self, timeout: float | None = None) -> TerminalEnd:
        """Waits until its program ends. Output can still be read afterwards.

        Raises `TimeoutError` after `timeout` seconds; the program goes on.
        """
        self._line.until(self._link.has_ended, timeout)
        assert self._link.end is not None
        return self._link.end

    def close(self) -> None:
        """Ends its program and everything that this started. Twice is not an error."""
        try:
            self._place._transport.run(terminals.remove(self.id))
        finally:
            self._line.close()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
