"""Server-sent events, out of pieces of bytes that end anywhere."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import _errors as errors
from ._core import LARGEST


@dataclass(frozen=True)
class Event:
    """An event, and its data: a JSON object."""

    name: str
    data: dict[str, Any]

    def output(self) -> bytes:
        """The bytes of an event that has some, as text or in base64."""
        text = self.data.get("text")
        return b64decode(self.data["base64"]) if text is None else str(text).encode("utf-8", "replace")


class EventParser:
    """Takes pieces of a stream, and gives the events that they complete."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, piece: bytes) -> Iterator[Event]:
        searched = max(0, len(self._rest) - 1)
        self._rest += piece
        start = 0
        while (end := self._rest.find(b"\n\n", max(start, searched))) >= 0:
            event = _parsed(bytes(self._rest[start:end]))
            start = end + 2
            if event is not None:
                yield event
        del self._rest[:start]
        if len(self._rest) > LARGEST:
            raise errors.UnexpectedAnswerError(f"the server sends an event of more than {LARGEST} bytes")


def _parsed(block: bytes) -> Event | None:
    """An event, or nothing where the block is a comment, which keeps the connection alive."""
    name = ""
    data: list[bytes] = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            name = value.decode("utf-8", "replace")
        elif field == b"data":
            data.append(value)
    if not data:
        return None
    try:
        decoded = json.loads(b"\n".join(data))
    except (ValueError, RecursionError):
        decoded = None
    if not isinstance(decoded, dict):
        raise errors.UnexpectedAnswerError(f"the server sends an event `{name}` that is no JSON object")
    return Event(name, decoded)
