"""Commands of a sandbox."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from . import _commands as commands
from ._errors import GloveportError
from ._path import Place
from ._values import CommandStatus, Output, Result

if TYPE_CHECKING:
    from ._transport import Items


class CommandStream:
    """Output of a command as it comes: text, in pieces of any size.

    When it is left before the end, the command is given up. `result` is there behind the last piece.
    """

    def __init__(self, place: Place, id: str, items: Items[str, Result]) -> None:
        self._place = place
        self._id = id
        self._items = items
        self._is_over = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._is_over:
            raise StopIteration
        try:
            return next(self._items)
        except (StopIteration, GloveportError):
            self._is_over = True
            raise
        except BaseException:
            self.close()
            raise

    @property
    def result(self) -> Result:
        """How the command ended. Raises `GloveportError` before that is known."""
        if not self._is_over or not hasattr(self._items, "value"):
            raise GloveportError("the command has not ended, or was given up", code="not_ended")
        return self._items.value

    def close(self) -> None:
        """Gives the command up if it has not ended."""
        if self._is_over:
            return
        self._is_over = True
        self._items.close()
        with contextlib.suppress(GloveportError):
            self._place._transport.run(commands.give_up(self._id))

    def drain(self, on_output: Callable[[str], object] | None) -> Result:
        """Waits for the end."""
        with self:
            for text in self:
                if on_output is not None:
                    on_output(text)
        return self.result

    def __enter__(self) -> CommandStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not self._is_over:
            self.close()


class Command:
    """A command that was started, and goes on whether or not somebody follows it."""

    def __init__(self, place: Place, id: str, command: str) -> None:
        self._place = place
        self.id = id
        self.command = command

    def __repr__(self) -> str:
        return f"Command({self.id!r}, {self.command!r})"

    def status(self) -> CommandStatus:
        """How it stands.

        Raises `NotFoundError` when the sandbox has forgotten it, which keeps the last 256 that ended.
        """
        return self._place._transport.run(commands.status(self.id))

    def output(self, from_offset: int = 0, *, most: int = 1024 * 1024) -> Output:
        """The output from an offset that there is now, up to `most` bytes, 1 MiB at most.

        Raises `OutputGoneError` if that part is not kept any more.
        """
        return self._place._transport.run(commands.output(self.id, from_offset, most))

    def follow(self, from_offset: int = 0) -> Iterator[str]:
        """The output from an offset as it comes, until the command ends. Leaving it does not end the command."""
        return iter(self._place._transport.items(commands.wait(self.id, self.command, from_offset, None, 0)))

    def wait(
        self,
        timeout: float | None = None,
        *,
        on_output: Callable[[str], object] | None = None,
        keep: int = commands.KEPT,
    ) -> Result:
        """Waits for its end. Raises `TimeoutError` after `timeout` seconds; the command goes on.

        `keep` is how many of the last bytes of its output the result has.
        """
        items = self._place._transport.items(commands.wait(self.id, self.command, 0, timeout, keep))
        with contextlib.closing(items):
            for text in items:
                if on_output is not None:
                    on_output(text)
        return items.value

    def send_input(self, text: str) -> None:
        """Types a text and Enter. A key such as `C-d` is sent without Enter; `Up`, `Escape` and `F1` press that key.

        Raises `ConflictError` if the command does not run.
        """
        self._place._transport.run(commands.send_input(self.id, text))

    def interrupt(self) -> None:
        """Interrupts it as C-c does. Raises `ConflictError` if it does not run."""
        self._place._transport.run(commands.interrupt(self.id))

    def kill(self) -> None:
        """Gives it up: one that waits for its turn never begins; one that runs is interrupted, and quit 2 s later."""
        self._place._transport.run(commands.kill(self.id))
