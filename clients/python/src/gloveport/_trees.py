"""Files and trees of this machine, as tar streams."""

from __future__ import annotations

import os
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO

from . import _errors as errors
from ._values import Copied, FileStat

#: Bytes that are read at once.
PIECE = 256 * 1024


def pieces_of(path: Path) -> Callable[[], Iterator[bytes]]:
    """Makes iterators over the content of a file."""

    def pieces() -> Iterator[bytes]:
        with path.open("rb") as file:
            while piece := file.read(PIECE):
                yield piece

    return pieces


def packed(root: Path) -> Callable[[], Iterator[bytes]]:
    """Makes iterators over a tar stream of what is in a directory, with modes, times and links."""

    def pieces() -> Iterator[bytes]:
        # Only for its way of describing files; nothing is written through it.
        with tarfile.open(os.devnull, "w", format=tarfile.PAX_FORMAT, encoding="utf-8") as describer:
            for path in _below(root):
                info = describer.gettarinfo(path, path.relative_to(root).as_posix())
                if info is None or not (info.isreg() or info.isdir() or info.issym() or info.islnk()):
                    continue
                if info.islnk():
                    # The other name is not always in the tree.
                    info.type, info.size = tarfile.REGTYPE, path.lstat().st_size
                yield info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
                if info.isreg():
                    yield from _content(path, info.size)
        yield bytes(2 * tarfile.BLOCKSIZE)

    return pieces


def _below(root: Path) -> Iterator[Path]:
    for entry in sorted(root.iterdir()):
        yield entry
        if stat.S_ISDIR(entry.lstat().st_mode):
            yield from _below(entry)


def _content(path: Path, size: int) -> Iterator[bytes]:
    """Exactly `size` bytes, and zeros up to the next block."""
    left = size
    with path.open("rb") as file:
        while left:
            piece = file.read(min(PIECE, left))
            if not piece:
                raise errors.GloveportError(f"the file `{path}` became shorter while it was read", code="changed")
            left -= len(piece)
            yield piece
    yield bytes(-size % tarfile.BLOCKSIZE)


def unpack(archive: IO[bytes], destination: Path) -> Copied:
    """Unpacks what a sandbox has packed.

    Nothing is written outside of the destination, and nothing gets special bits.
    """
    if not hasattr(tarfile, "data_filter"):
        raise errors.GloveportError(
            "this Python cannot unpack what it does not trust", remedy="use a newer one: 3.10.12, 3.11.4 or later"
        )
    destination.mkdir(parents=True, exist_ok=True)
    files = size = 0
    try:
        with tarfile.open(fileobj=archive, mode="r:", encoding="utf-8") as tree:
            for info in tree:
                tree.extract(info, destination, filter="data")
                if not info.isdir():
                    files, size = files + 1, size + info.size
    except (tarfile.TarError, ValueError, OverflowError) as error:
        raise errors.GloveportError(
            f"the tree is not unpacked to its end: {error}",
            code="unsafe_tree",
            remedy="leave out what leads out of it, or pack it with `tar` and download that",
        ) from error
    return Copied(files, size)


class Incoming:
    """A file or a tree of a sandbox that is on its way here. Nothing gets to its target before all of it is here."""

    def __init__(self, target: Path, source: FileStat) -> None:
        self._target = target
        self._is_tree = source.is_dir()
        self._mode = source.mode & 0o777
        # A file is renamed in the end, so it is next to its target.
        handle, name = tempfile.mkstemp(dir=None if self._is_tree else target.parent)
        self._name = Path(name)
        self._file = os.fdopen(handle, "w+b")

    def write(self, piece: bytes) -> None:
        self._file.write(piece)

    def finish(self) -> Copied:
        if self._is_tree:
            self._file.seek(0)
            return unpack(self._file, self._target)
        size = self._file.tell()
        self._file.close()
        self._name.chmod(self._mode)
        self._name.replace(self._target)
        return Copied(1, size)

    def __enter__(self) -> Incoming:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._name.unlink(missing_ok=True)
