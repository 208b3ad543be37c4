"""Paths in a sandbox, for programs with an event loop."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import PurePosixPath
from types import TracebackType
from typing import IO, TYPE_CHECKING, Literal, Protocol, TypeVar, overload

from . import _files as files
from ._core import Stream
from ._path import PIECE, SPOOLED
from ._paths import PathBase
from ._values import FileChange, FileStat, GrepResult

if TYPE_CHECKING:
    from ._transport import AsyncItems, AsyncTransport

T = TypeVar("T")


class AsyncPlace(Protocol):
    """What a path is in: a sandbox."""

    @property
    def _transport(self) -> AsyncTransport: ...


class AsyncRemotePath(PathBase):
    """The same as `RemotePath`, with `await`."""

    __slots__ = ("_place",)

    def __init__(self, place: AsyncPlace, path: str | PurePosixPath) -> None:
        super().__init__(path)
        self._place = place

    def _with(self, path: PurePosixPath) -> AsyncRemotePath:
        return AsyncRemotePath(self._place, path)

    async def _run(self, operation: Stream[object, T]) -> T:
        return await self._place._transport.run(operation)

    async def read_bytes(self) -> bytes:
        """The content of the file."""
        return b"".join([piece async for piece in self._place._transport.items(files.read(str(self)))])

    async def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The content of the file as text."""
        return (await self.read_bytes()).decode(encoding, errors)

    async def write_bytes(
        self, data: bytes, *, mode: int | None = None, parents: bool = False, exclusive: bool = False
    ) -> None:
        """Writes the file, whole or not at all; see `RemotePath.write_bytes`."""
        await self._run(files.write(str(self), data, mode=mode, parents=parents, exclusive=exclusive))

    async def write_text(
        self,
        text: str,
        encoding: str = "utf-8",
        *,
        mode: int | None = None,
        parents: bool = False,
        exclusive: bool = False,
    ) -> None:
        """Writes the file as text, in the same way."""
        await self.write_bytes(text.encode(encoding), mode=mode, parents=parents, exclusive=exclusive)

    @overload
    def open(self, mode: Literal["rb"] = "rb") -> AsyncReader: ...
    @overload
    def open(self, mode: Literal["wb"]) -> AsyncWriter: ...
    def open(self, mode: Literal["rb", "wb"] = "rb") -> AsyncReader | AsyncWriter:
        """Opens the file in an `async with` block, to read it (`rb`) or to write it (`wb`) piece by piece, whatever
        its size.

        What is written is stored at the end of the block, and not at all if it is left by an exception.
        """
        if mode == "wb":
            return AsyncWriter(self)
        return AsyncReader(self._place._transport.items(files.read(str(self))))

    async def exists(self) -> bool:
        """Whether something is there, to which links lead."""
        return await self._run(files.exists(str(self)))

    async def stat(self, *, follow_symlinks: bool = True) -> FileStat:
        """What is there: what a link leads to, or the link itself."""
        return await self._run(files.stat(str(self), follow=follow_symlinks))

    async def is_file(self) -> bool:
        """Whether a file is there."""
        return await self._run(files.is_kind(str(self), "file"))

    async def is_dir(self) -> bool:
        """Whether a directory is there."""
        return await self._run(files.is_kind(str(self), "directory"))

    async def iterdir(self) -> AsyncIterator[AsyncRemotePath]:
        """What is in the directory, sorted by names; 100,000 entries at most."""
        for entry in await self._run(files.listed(str(self))):
            yield self / entry.path

    async def glob(self, pattern: str) -> AsyncIterator[AsyncRemotePath]:
        """What a pattern such as `src/**/*.py` matches below the directory, sorted; hidden files, too."""
        for entry in await self._run(files.found(str(self), [pattern])):
            yield self / entry.path

    async def find(self, *patterns: str, hidden: bool = True, respect_ignore: bool = False) -> list[FileStat]:
        """What patterns match below the directory, with all that is known of it; see `RemotePath.find`."""
        return await self._run(files.found(str(self), patterns, hidden=hidden, respect_ignore=respect_ignore))

    async def grep(
        self,
        pattern: str,
        *,
        globs: Sequence[str] = (),
        literal: bool = False,
        ignore_case: bool = False,
        hidden: bool = False,
        respect_ignore: bool = False,
        context: int = 0,
        limit: int = 1000,
    ) -> GrepResult:
        """The lines of the file, or of all text files below the directory, that a regular expression matches; see
        `RemotePath.grep`.
        """
        return await self._run(
            files.search(
                str(self),
                pattern,
                globs=globs,
                literal=literal,
                ignore_case=ignore_case,
                hidden=hidden,
                respect_ignore=respect_ignore,
                context=context,
                limit=limit,
            )
        )

    async def watch(self, *, recursive: bool = False, timeout: float | None = None) -> AsyncWatch:
        """What happens to the file, or in the directory, from now on; see `RemotePath.watch`."""
        items = self._place._transport.items(files.watch(str(self), recursive=recursive, timeout=timeout))
        await anext(items)
        return AsyncWatch(items)

    async def mkdir(self, mode: int | None = None, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Makes the directory. `parents` makes missing ones above it; with `exist_ok` it may be there."""
        await self._run(files.make_directory(str(self), mode=mode, parents=parents, exist_ok=exist_ok))

    async def unlink(self, *, missing_ok: bool = False) -> None:
        """Removes a file, a link, or an empty directory."""
        await self._run(files.remove(str(self), recursive=False, missing_ok=missing_ok))

    async def rmtree(self, *, missing_ok: bool = False) -> None:
        """Removes a directory with everything in it."""
        await self._run(files.remove(str(self), recursive=True, missing_ok=missing_ok))

    async def rename(self, target: str | AsyncRemotePath) -> AsyncRemotePath:
        """Moves it to a path where nothing is, within one file system, and returns that."""
        await self._run(files.move(str(self), str(target), overwrite=False))
        return self._with(PurePosixPath(str(target)))

    async def replace(self, target: str | AsyncRemotePath) -> AsyncRemotePath:
        """Moves it to a path, in the place of a file or an empty directory that is there."""
        await self._run(files.move(str(self), str(target), overwrite=True))
        return self._with(PurePosixPath(str(target)))


class AsyncWatch:
    """The same as `Watch`, with `async for`."""

    def __init__(self, items: AsyncItems[FileChange | None, None]) -> None:
        self._items = items

    def __aiter__(self) -> AsyncIterator[FileChange]:
        return self

    async def __anext__(self) -> FileChange:
        change = await anext(self._items)
        assert change is not None
        return change

    async def close(self) -> None:
        """Ends it. Twice is not an error."""
        await self._items.aclose()

    async def __aenter__(self) -> AsyncWatch:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncReader:
    """The content of a file, as it comes."""

    def __init__(self, pieces: AsyncItems[bytes, None]) -> None:
        self._pieces = pieces
        self._rest = b""

    async def read(self, size: int = -1) -> bytes:
        """The next `size` bytes, fewer at the end; everything that is left if it is negative."""
        parts = [self._rest]
        have = len(self._rest)
        while size < 0 or have < size:
            piece = await anext(self._pieces, b"")
            if not piece:
                break
            parts.append(piece)
            have += len(piece)
        data = b"".join(parts)
        end = have if size < 0 else size
        self._rest = data[end:]
        return data[:end]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Pieces of any size."""
        if self._rest:
            rest, self._rest = self._rest, b""
            yield rest
        async for piece in self._pieces:
            yield piece

    async def close(self) -> None:
        """Gives the rest up."""
        await self._pieces.aclose()

    async def __aenter__(self) -> AsyncReader:
        # Fails at once if there is nothing to read.
        self._rest = await anext(self._pieces, b"")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncWriter:
    """A file that is being written. It is stored, whole or not at all, by `close`."""

    def __init__(self, path: AsyncRemotePath) -> None:
        self._path = path
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(SPOOLED)

    async def write(self, data: bytes) -> int:
        """Adds bytes."""
        return await asyncio.to_thread(self._file.write, data)

    def discard(self) -> None:
        """Closes it without storing anything."""
        self._file.close()

    async def close(self) -> None:
        """Stores the file."""
        if self._file.closed:
            return
        try:
            await self._path._run(
                files.write(str(self._path), self._content, mode=None, parents=False, exclusive=False)
            )
        finally:
            self.discard()

    def _content(self) -> Iterator[bytes]:
        self._file.seek(0)
        while piece := self._file.read(PIECE):
            yield piece

    async def __aenter__(self) -> AsyncWriter:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.close()
        else:
            self.discard()
