"""Paths in a sandbox."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from types import TracebackType
from typing import IO, TYPE_CHECKING, Literal, Protocol, TypeVar, overload

from . import _files as files
from ._core import Stream
from ._paths import PathBase
from ._values import FileChange, FileStat, GrepResult

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from ._transport import Items, Transport

T = TypeVar("T")
#: Bytes that are read from a written file at once.
PIECE = 256 * 1024
#: Bytes of a written file that are kept in memory; more of them are in a temporary file.
SPOOLED = 4 * 1024 * 1024


class Place(Protocol):
    """What a path is in: a sandbox."""

    @property
    def _transport(self) -> Transport: ...


class RemotePath(PathBase):
    """A path in a sandbox, used as those of `pathlib` are.

    What fails with them fails here with the same exceptions (`FileNotFoundError` and others), which are also
    `GloveportError`.
    """

    __slots__ = ("_place",)

    def __init__(self, place: Place, path: str | PurePosixPath) -> None:
        super().__init__(path)
        self._place = place

    def _with(self, path: PurePosixPath) -> RemotePath:
        return RemotePath(self._place, path)

    def _run(self, operation: Stream[object, T]) -> T:
        return self._place._transport.run(operation)

    def read_bytes(self) -> bytes:
        """The content of the file."""
        return b"".join(self._place._transport.items(files.read(str(self))))

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The content of the file as text."""
        return self.read_bytes().decode(encoding, errors)

    def write_bytes(
        self, data: bytes, *, mode: int | None = None, parents: bool = False, exclusive: bool = False
    ) -> None:
        """Writes the file, whole or not at all: who reads it meanwhile sees the old content or the new one.

        `mode` are permission bits such as 0o755; an existing file keeps its own without them. `parents` makes missing
        directories; `exclusive` fails with `FileExistsError` if something is there.
        """
        self._run(files.write(str(self), data, mode=mode, parents=parents, exclusive=exclusive))

    def write_text(
        self,
        text: str,
        encoding: str = "utf-8",
        *,
        mode: int | None = None,
        parents: bool = False,
        exclusive: bool = False,
    ) -> None:
        """Writes the file as text, in the same way."""
        self.write_bytes(text.encode(encoding), mode=mode, parents=parents, exclusive=exclusive)

    @overload
    def open(self, mode: Literal["r"] = "r", encoding: str = "utf-8") -> io.TextIOWrapper: ...
    @overload
    def open(self, mode: Literal["rb"]) -> io.BufferedReader: ...
    @overload
    def open(self, mode: Literal["wb"]) -> RemoteWriter: ...
    def open(
        self, mode: Literal["r", "rb", "wb"] = "r", encoding: str = "utf-8"
    ) -> io.TextIOWrapper | io.BufferedReader | RemoteWriter:
        """Opens the file, to read it (`r`, `rb`) or to write it (`wb`) piece by piece, whatever its size.

        What is written is stored when the file is closed, and not at all if a `with` block is left by an exception.
        """
        if mode == "wb":
            return RemoteWriter(self)
        reader: io.BufferedReader = io.BufferedReader(
            _Reader(self._place._transport.items(files.read(str(self)))), PIECE
        )
        return reader if mode == "rb" else io.TextIOWrapper(reader, encoding)

    def exists(self) -> bool:
        """Whether something is there, to which links lead."""
        return self._run(files.exists(str(self)))

    def stat(self, *, follow_symlinks: bool = True) -> FileStat:
        """What is there: what a link leads to, or the link itself."""
        return self._run(files.stat(str(self), follow=follow_symlinks))

    def is_file(self) -> bool:
        """Whether a file is there."""
        return self._run(files.is_kind(str(self), "file"))

    def is_dir(self) -> bool:
        """Whether a directory is there."""
        return self._run(files.is_kind(str(self), "directory"))

    def iterdir(self) -> Iterator[RemotePath]:
        """What is in the directory, sorted by names; 100,000 entries at most."""
        return iter([self / entry.path for entry in self._run(files.listed(str(self)))])

    def glob(self, pattern: str) -> Iterator[RemotePath]:
        """What a pattern such as `src/**/*.py` matches below the directory, sorted; hidden files, too."""
        return iter([self / entry.path for entry in self._run(files.found(str(self), [pattern]))])

    def find(self, *patterns: str, hidden: bool = True, respect_ignore: bool = False) -> list[FileStat]:
        """What patterns match below the directory, with all that is known of it, sorted; 100,000 entries at most.

        `!` in front of a pattern excludes. Paths are relative to the directory. `hidden` are names that begin with a
        dot, and `respect_ignore` leaves out what `.gitignore` and `.ignore` files name.
        """
        return self._run(files.found(str(self), patterns, hidden=hidden, respect_ignore=respect_ignore))

    def grep(
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
        """The lines of the file, or of all text files below the directory, that a regular expression matches.

        `globs` such as `*.py`, or `!tests/**` to exclude, choose files; `literal` takes the pattern as plain text;
        `context` adds lines before and after each match. There are at most `limit` matches, 10,000 if that is more,
        and what is found within a minute.
        """
        return self._run(
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

    def watch(self, *, recursive: bool = False, timeout: float | None = None) -> Watch:
        """What happens to the file, or in the directory, from now on. With `recursive` also below it.

        Use it in a `with` block. The iteration ends when what is watched is gone, and raises `TimeoutError` when
        nothing has changed for `timeout` seconds, which is noticed up to 15 s later. The sandbox keeps 65,536 changes
        for a slow reader; then there is one of the kind `overflow`, as after a lost connection.
        """
        return Watch(self._place._transport.items(files.watch(str(self), recursive=recursive, timeout=timeout)))

    def mkdir(self, mode: int | None = None, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Makes the directory. `parents` makes missing ones above it; with `exist_ok` it may be there."""
        self._run(files.make_directory(str(self), mode=mode, parents=parents, exist_ok=exist_ok))

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Removes a file, a link, or an empty directory."""
        self._run(files.remove(str(self), recursive=False, missing_ok=missing_ok))

    def rmtree(self, *, missing_ok: bool = False) -> None:
        """Removes a directory with everything in it."""
        self._run(files.remove(str(self), recursive=True, missing_ok=missing_ok))

    def rename(self, target: str | RemotePath) -> RemotePath:
        """Moves it to a path where nothing is, within one file system, and returns that."""
        self._run(files.move(str(self), str(target), overwrite=False))
        return self._with(PurePosixPath(str(target)))

    def replace(self, target: str | RemotePath) -> RemotePath:
        """Moves it to a path, in the place of a file or an empty directory that is there."""
        self._run(files.move(str(self), str(target), overwrite=True))
        return self._with(PurePosixPath(str(target)))


class Watch:
    """Changes of files, as they come."""

    def __init__(self, items: Items[FileChange | None, None]) -> None:
        self._items = items
        # Everything is watched when this is there.
        next(items)

    def __iter__(self) -> Iterator[FileChange]:
        return self

    def __next__(self) -> FileChange:
        change = next(self._items)
        assert change is not None
        return change

    def close(self) -> None:
        """Ends it. Twice is not an error."""
        self._items.close()

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Reader(io.RawIOBase):
    """The content of a file, as it comes."""

    def __init__(self, pieces: Items[bytes, None]) -> None:
        self._pieces = pieces
        # Fails at once if there is nothing to read.
        self._rest = next(pieces, b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        if not self._rest:
            self._rest = next(self._pieces, b"")
        view = memoryview(buffer)
        part = self._rest[: len(view)]
        view[: len(part)] = part
        self._rest = self._rest[len(part) :]
        return len(part)

    def close(self) -> None:
        if not self.closed:
            self._pieces.close()
        super().close()


class RemoteWriter(io.RawIOBase):
    """A file that is being written. It is stored, whole or not at all, by `close`."""

    def __init__(self, path: RemotePath) -> None:
        # Takes long to import, and not everybody writes so.
        import tempfile

        self._path = path
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(SPOOLED)

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        """Adds bytes."""
        return self._file.write(data)

    def discard(self) -> None:
        """Closes it without storing anything."""
        self._file.close()
        super().close()

    def close(self) -> None:
        """Stores the file."""
        if self.closed:
            return
        try:
            self._path._run(files.write(str(self._path), self._pieces, mode=None, parents=False, exclusive=False))
        finally:
            self.discard()

    def _pieces(self) -> Iterator[bytes]:
        self._file.seek(0)
        while piece := self._file.read(PIECE):
            yield piece

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        # One that was forgotten is not stored.
        if not self.closed:
            self.discard()
