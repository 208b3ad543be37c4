"""Operations with files."""

from __future__ import annotations

import os
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

from . import _errors as errors
from ._core import SILENCE, Emit, Op, Request, Retry, SilentError, Stream, decoded, opened, perform, piece
from ._events import EventParser
from ._values import Copied, FileChange, FileStat, GrepLine, GrepResult

if TYPE_CHECKING:
    from . import _wire as wire

#: Most entries of a directory or of a search.
MOST_ENTRIES = 100_000


def _query(path: str, **more: str) -> dict[str, str]:
    """A path as a query; one that is not UTF-8 (with surrogates, as `os.fsdecode` has it) as its bytes."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return {"path_base64": b64encode(path.encode("utf-8", "surrogateescape")).decode("ascii"), **more}
    return {"path": path, **more}


def _flag(value: bool) -> str:
    return "true" if value else "false"


def stat(path: str, *, follow: bool) -> Op[FileStat]:
    """What is at a path: a link itself, or what it leads to."""
    response = yield from perform(Request("GET", "/v1/files/stat", _query(path, follow=_flag(follow)), repeatable=True))
    return entry(cast("wire.FileEntry", decoded(response)))


def entry(told: wire.FileEntry) -> FileStat:
    return FileStat(
        path=name(told),
        kind=told["kind"],
        size=told["size"],
        mode=int(told["mode"], 8),
        uid=told["uid"],
        gid=told["gid"],
        modified=told["modified"],
        target=told.get("target"),
    )


def name(told: wire.FileEntry) -> str:
    """The path of an entry, with surrogates for what is not UTF-8."""
    exact = told.get("path_base64")
    if exact is None:
        return told["path"]
    return b64decode(exact).decode("utf-8", "surrogateescape")


def exists(path: str) -> Op[bool]:
    """Whether something is at a path, to which links lead."""
    try:
        yield from stat(path, follow=True)
    except (errors.RemoteFileNotFoundError, errors.RemoteNotADirectoryError):
        return False
    return True


def is_kind(path: str, kind: str) -> Op[bool]:
    """Whether a file or a directory is at a path, to which links lead."""
    try:
        return (yield from stat(path, follow=True)).kind == kind
    except (errors.RemoteFileNotFoundError, errors.RemoteNotADirectoryError):
        return False


def listed(path: str) -> Op[list[FileStat]]:
    """What is in a directory."""
    query = _query(path, limit=str(MOST_ENTRIES))
    response = yield from perform(Request("GET", "/v1/files/list", query, repeatable=True))
    return _entries(path, cast("wire.FileList", decoded(response)))


def found(
    path: str, patterns: Sequence[str], *, hidden: bool = True, respect_ignore: bool = False
) -> Op[list[FileStat]]:
    """What patterns match below a directory."""
    body: wire.GlobRequest = {
        "globs": list(patterns),
        "path": path,
        "hidden": hidden,
        "respect_ignore": respect_ignore,
        "limit": MOST_ENTRIES,
    }
    response = yield from perform(Request("POST", "/v1/files/glob", json=body, repeatable=True))
    return _entries(path, cast("wire.FileList", decoded(response)))


def search(
    path: str,
    pattern: str,
    *,
    globs: Sequence[str],
    literal: bool,
    ignore_case: bool,
    hidden: bool,
    respect_ignore: bool,
    context: int,
    limit: int,
) -> Op[GrepResult]:
    """The lines that a pattern matches."""
    body: wire.GrepRequest = {
        "pattern": pattern,
        "path": path,
        "globs": list(globs),
        "literal": literal,
        "ignore_case": ignore_case,
        "hidden": hidden,
        "respect_ignore": respect_ignore,
        "context": context,
        "limit": limit,
    }
    response = yield from perform(Request("POST", "/v1/files/grep", json=body, repeatable=True))
    told = cast("wire.GrepMatches", decoded(response))
    return GrepResult(
        tuple(GrepLine(each["path"], each["line"], each["text"], each["is_match"]) for each in told["lines"]),
        told["truncated"],
        tuple(told["skipped"]),
    )


def watch(path: str, *, recursive: bool, timeout: float | None) -> Stream[FileChange | None, None]:
    """Hands out nothing once everything is watched, then each change, and ends when what is watched is gone.

    Raises `TimeoutError` when nothing has changed for `timeout` seconds. What happens while there is no connection is
    told as an overflow.
    """
    retry = Retry()
    is_first = True
    while True:
        silence = SILENCE if timeout is None else min(SILENCE, max(timeout, 0.001))
        query = _query(path, recursive=_flag(recursive))
        changed = time.monotonic()
        try:
            yield from opened(Request("GET", "/v1/files/watch", query, silence=silence))
            retry.opened()
            parser = EventParser()
            while received := (yield from piece()):
                for event in parser.feed(received):
                    changed = time.monotonic()
                    if event.name == "ready":
                        yield Emit(None if is_first else FileChange("overflow", ""))
                        is_first = False
                    elif event.name == "change":
                        told = event.data
                        yield Emit(FileChange(told["change"], str(told["path"]), bool(told["is_directory"])))
                    elif event.name == "error":
                        raise errors.ServerFailedError(str(event.data["message"]), code="watch_failed")
                    elif event.name == "end" and not is_first:
                        return
                if timeout is not None and time.monotonic() - changed >= timeout:
                    raise _unchanged(path, timeout)
            raise errors.ConnectionLostError("the server ended the stream of a watch that has not ended")
        except SilentError as error:
            if timeout is not None and time.monotonic() - changed >= timeout:
                raise _unchanged(path, timeout) from None
            yield from retry.wait(error)
        except (errors.UnreachableError, errors.ConnectionLostError) as error:
            yield from retry.wait(error)


def _unchanged(path: str, timeout: float) -> TimeoutError:
    return TimeoutError(f"nothing changed at `{path}` for {timeout} s")


def _entries(path: str, told: wire.FileList) -> list[FileStat]:
    if told["truncated"]:
        raise errors.RemoteFileError(
            f"there are more than {MOST_ENTRIES} entries in `{path}`", code="truncated", remedy="ask for a part of them"
        )
    return [entry(each) for each in told["entries"]]


def read(path: str, offset: int = 0) -> Stream[bytes, None]:
    """Hands out the content of a file. When the connection breaks, it goes on where it was, if the file is the same."""
    retry = Retry()
    tag = ""
    while True:
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        if tag and offset:
            headers["If-Range"] = tag
        try:
            head = yield from opened(Request("GET", "/v1/files/content", _query(path), headers))
            if tag and (head.headers.get("etag") != tag or (offset and head.status != 206)):
                raise errors.FileChangedError(
                    f"the file `{path}` was changed while it was read", remedy="read it again"
                )
            tag = head.headers.get("etag", "")
            while received := (yield from piece()):
                retry.progressed()
                offset += len(received)
                yield Emit(received)
            return
        except (errors.UnreachableError, errors.ConnectionLostError) as error:
            yield from retry.wait(error)


def write(
    path: str,
    content: bytes | Callable[[], Iterator[bytes]],
    *,
    mode: int | None,
    parents: bool,
    exclusive: bool,
) -> Op[None]:
    """Writes a file, whole or not at all."""
    query = _query(path, parents=_flag(parents), exclusive=_flag(exclusive))
    if mode is not None:
        query["mode"] = f"{mode:o}"
    headers = {"Content-Type": "application/octet-stream"}
    yield from perform(Request("PUT", "/v1/files/content", query, headers, content=content, repeatable=not exclusive))


def make_directory(path: str, *, mode: int | None, parents: bool, exist_ok: bool) -> Op[None]:
    """Makes a directory, as `pathlib` does it."""
    above = os.path.dirname(path)
    if parents and not exist_ok and above:
        yield from _make(above, None, parents=True)
    try:
        yield from _make(path, mode, parents=parents and exist_ok)
    except errors.RemoteFileExistsError:
        if not exist_ok or not (yield from stat(path, follow=True)).is_dir():
            raise


def _make(path: str, mode: int | None, *, parents: bool) -> Op[None]:
    body: wire.MkdirRequest = {"path": path, "parents": parents}
    if mode is not None:
        body["mode"] = f"{mode:o}"
    yield from perform(Request("POST", "/v1/files/mkdir", json=body, repeatable=parents))


def remove(path: str, *, recursive: bool, missing_ok: bool) -> Op[None]:
    """Removes what is at a path."""
    body: wire.RemoveRequest = {"path": path, "recursive": recursive, "missing_ok": missing_ok}
    yield from perform(Request("POST", "/v1/files/remove", json=body, repeatable=missing_ok))


def move(path: str, target: str, *, overwrite: bool) -> Op[None]:
    """Moves what is at a path, within one file system."""
    body: wire.MoveRequest = {"from": path, "to": target, "overwrite": overwrite}
    yield from perform(Request("POST", "/v1/files/move", json=body))


def write_archive(path: str, content: Callable[[], Iterator[bytes]]) -> Op[Copied]:
    """Unpacks a tar stream into a directory."""
    headers = {"Content-Type": "application/x-tar"}
    query = _query(path, parents="true")
    response = yield from perform(Request("PUT", "/v1/files/archive", query, headers, content=content, repeatable=True))
    told = cast("wire.Stored", decoded(response))
    return Copied(told["files"], told["bytes"])


def read_archive(path: str) -> Stream[bytes, None]:
    """Hands out a tree as a tar stream. One that breaks off cannot be continued."""
    yield from opened(Request("GET", "/v1/files/archive", _query(path)))
    while received := (yield from piece()):
        yield Emit(received)
