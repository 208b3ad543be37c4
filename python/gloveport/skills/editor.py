"""Edits files with the editor of the sandbox's server.

The server listens at the Unix socket that the variable ``GLOVEPORT_EDITOR_SOCKET`` names. Each connection has a history
of its own for ``undo_edit``, so a process keeps the one that it has. Requests and answers are JSON objects, one a line.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import uuid
from typing import Any

__all__ = ["file_editor"]

VARIABLE = "GLOVEPORT_EDITOR_SOCKET"

TIME_LIMIT = 300.0
"""Seconds for one request; listings, conversions and linters have limits that lie below."""

MOST = 1 << 62
"""The largest number in a request."""

DIRECTORY = "Here's the files and directories up to 2 levels deep in "
"""What the text about a directory begins with."""


class EditorUnavailable(ConnectionError):
    """The editor of the sandbox's server can not be reached, or does not answer."""


class _Editor:
    """The connection of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stream: socket.socket | None = None
        self._received = bytearray()
        self._last = 0

    def leave_to_parent(self) -> None:
        """Gives up the connection in a forked process. A thread that does not exist here may have held the lock."""
        self._lock = threading.Lock()
        self._close()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Sends a request and returns its answer."""
        with self._lock:
            self._last += 1
            stream = self._connected()
            line = json.dumps({"id": self._last, **request}).encode() + b"\n"
            try:
                self._send(stream, line)
                return self._answer(stream)
            except EditorUnavailable:
                raise
            except OSError as error:
                self._close()
                reason = "it did not answer in time" if isinstance(error, socket.timeout) else str(error)
                raise EditorUnavailable(
                    f"The file editor of the sandbox's server does not answer: {reason}. "
                    "Whether the last edit was done is not known; look at the file. The history of edits is gone."
                ) from error

    def _connected(self) -> socket.socket:
        if self._stream is not None:
            return self._stream
        path = os.environ.get(VARIABLE)
        if not path:
            raise EditorUnavailable(
                f"The file editor of the sandbox's server is not available: {VARIABLE} is not set. "
                "It is set in the kernels that gloveport starts."
            )
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        stream.settimeout(TIME_LIMIT)
        try:
            stream.connect(path)
        except OSError as error:
            stream.close()
            raise EditorUnavailable(
                f"The file editor of the sandbox's server can not be reached at {path}: {error}. "
                "The server may have ended; start it again, and restart the kernel."
            ) from error
        self._stream = stream
        return stream

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = None
        self._received.clear()

    def _send(self, stream: socket.socket, line: bytes) -> None:
        try:
            stream.sendall(line)
        except (BrokenPipeError, ConnectionResetError):
            # The server may have said why before it hung up.
            pass
        except BaseException:
            # A request that was cut can not be followed by another one.
            self._close()
            raise

    def _answer(self, stream: socket.socket) -> dict[str, Any]:
        """The answer to the last request. Those of requests that were interrupted are passed over."""
        seen = 0
        while True:
            end = self._received.find(b"\n", seen)
            if end >= 0:
                answer: dict[str, Any] = json.loads(self._received[:end])
                del self._received[: end + 1]
                seen = 0
                if "refused" in answer:
                    self._close()
                    raise EditorUnavailable(f"The file editor refuses the request: {answer['refused']}")
                if answer["id"] == self._last:
                    return answer
                continue
            seen = len(self._received)
            piece = stream.recv(1 << 16)
            if not piece:
                raise ConnectionResetError("the connection was closed")
            self._received += piece


_editor = _Editor()
os.register_at_fork(after_in_child=_editor.leave_to_parent)


def _text(name: str, value: Any) -> str | None:
    """An argument that is a text or nothing."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} can not be sent to the editor, it is no valid Unicode text: {error}") from error
    return value


def _view_range(value: Any) -> list[int] | str | None:
    """A range as numbers; what is none, as it is printed."""
    if value is None:
        return None
    if not isinstance(value, (list, tuple, str)):
        raise TypeError(f"view_range must be a list of two integers, not {type(value).__name__}")
    if isinstance(value, str) or not all(isinstance(item, int) for item in value):
        return _text("view_range", str(value))
    return [_number(item) for item in value]


def _number(value: int) -> int:
    """The number, or the nearest that the editor knows. Both lie behind the end of any file."""
    return max(-MOST, min(MOST, int(value)))


def _formatted(answer: dict[str, Any]) -> str:
    """An answer between two marks that nothing in it can imitate."""
    error = answer.get("error")
    output = answer.get("output")
    shown = {"output": output, "error": error}
    if error is None:
        for key in ("path", "prev_exist", "old_content", "new_content"):
            shown[key] = answer[key]
        if answer["output"].startswith(DIRECTORY):
            shown["error"] = ""
    body = ",".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in shown.items())
    last = json.dumps(output if error is None else f"ERROR:\n{error}")
    mark = f"oh_aci_output_{uuid.uuid4().hex}"
    return f'<{mark}>\n{{{body}, "formatted_output_and_error": {last}}}\n</{mark}>'


def file_editor(
    command: str,
    path: str,
    file_text: str | None = None,
    view_range: list[int] | None = None,
    old_str: str | None = None,
    new_str: str | None = None,
    insert_line: int | None = None,
    enable_linting: bool = False,
) -> str:
    """Shows, creates and edits files, and undoes edits.

    Args:
        command: ``view``, ``create``, ``str_replace``, ``insert`` or ``undo_edit``.
        path: The absolute path of a file; of a directory, too, for ``view``.
        file_text: The text of the file that ``create`` makes.
        view_range: The first and the last line that ``view`` shows, from 1; -1 is the end of the file.
        old_str: The text that ``str_replace`` replaces. It must occur once.
        new_str: The text that takes its place, or that ``insert`` inserts.
        insert_line: How many lines stand before what ``insert`` inserts.
        enable_linting: Whether to say what an edit broke.

    Returns:
        A JSON object between two marks, with the text for the reader as ``formatted_output_and_error``.

    Raises:
        EditorUnavailable: The server does not answer.
        TypeError: An argument has the wrong type.
        ValueError: A text is no valid Unicode.
    """
    if insert_line is not None and not isinstance(insert_line, int):
        raise TypeError(f"insert_line must be an integer, not {type(insert_line).__name__}")
    return _formatted(
        _editor.ask(
            {
                "command": _text("command", str(command)),
                "path": _text("path", os.fspath(path)),
                "file_text": _text("file_text", file_text),
                "view_range": _view_range(view_range),
                "old_str": _text("old_str", old_str),
                "new_str": _text("new_str", new_str),
                "insert_line": None if insert_line is None else _number(insert_line),
                "enable_linting": bool(enable_linting),
            }
        )
    )
