"""Commands of an agent, each of which a framework gives a shell of its own."""

from __future__ import annotations

from ._values import ProcessEnd

#: What commands are given to.
SHELL = ("bash", "-lc")
#: Runs the words behind it with one output.
TOGETHER = ("/bin/sh", "-c", 'exec "$@" 2>&1', "sh")
#: Most bytes of output that an agent gets, unless it is said otherwise.
KEEP = 1024 * 1024
#: Most seconds of a command, unless it is said otherwise.
LIMIT = 600.0


class Ends:
    """The beginning and the end of what is written, of at most so many bytes together."""

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._head, self._tail, self._total = b"", b"", 0

    def add(self, data: bytes) -> None:
        self._total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        tail = self._tail + data[room:]
        self._tail = tail[max(0, len(tail) - self._half) :]

    @property
    def left_out(self) -> int:
        """Bytes between them."""
        return self._total - len(self._head) - len(self._tail)

    def text(self) -> str:
        gap = f"\n[{self.left_out} bytes are left out]\n".encode() if self.left_out else b""
        return (self._head + gap + self._tail).decode("utf-8", "replace")


def code_of(end: ProcessEnd) -> int:
    """The exit code, as a shell has it: that of a signal is 128 more than its number."""
    return 128 + (end.signal or 0) if end.exit_code is None else end.exit_code
