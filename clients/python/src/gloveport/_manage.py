"""What the program does with sessions that run: snapshots, histories, and whom they may reach."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from . import _errors as errors
from ._program import ask, ask_list, first_lines, printed
from ._session import Session


@dataclass(frozen=True)
class Snapshot:
    """Files of a session, kept as an image that others can start from. It stays until it is removed."""

    #: What the runtime knows it by.
    image: str
    name: str
    runtime: str
    #: The session that it was made from, if that is known.
    session_id: str | None = None
    #: Seconds since 1970, if they are known.
    created: float | None = None


@dataclass(frozen=True)
class SessionEvent:
    """Something in the history of a session: an action, or the observation that came of it."""

    id: int
    #: Local time, as ISO 8601 has it.
    time: str
    #: `agent`, `user` or `environment`.
    source: str
    #: What was done or seen: `run`, `read`, `write`, `edit`, `message` and others.
    kind: str
    is_action: bool
    #: The number of the event that led to it.
    cause: int | None
    #: For people.
    message: str
    #: What an observation shows.
    content: str
    #: The arguments of an action, or the rest of an observation.
    data: Mapping[str, object]


@dataclass(frozen=True)
class AskedHost:
    """A host that a sandbox has asked for."""

    #: The host and its port.
    target: str
    #: Whether it was let through the last time.
    allowed: bool
    times: int
    #: When it was asked for the last time, in seconds since 1970.
    last: float


@dataclass(frozen=True)
class NetworkState:
    """Whom a sandbox may reach."""

    allowed: tuple[str, ...]
    #: Kept from it, whatever else is allowed.
    denied: tuple[str, ...]
    #: Whom it has asked for lately, the last one at the end.
    asked: tuple[AskedHost, ...]


def _session(runtime: str | None, *words: str) -> list[str]:
    return ["session", *(["--runtime", runtime] if runtime else []), *words]


def id_of(session: Session) -> str:
    """The id of a session. Raises `SessionError` if the program cannot know it."""
    if session.at_gateway is not None:
        raise errors.SessionError(
            f"the sandbox `{session.at_gateway}` is one of a gateway, whose native API does not do that",
            remedy="start it with the program `gloveport` if you need it",
            code="unsupported",
        )
    if not session.id:
        raise errors.SessionError(
            "the sandbox was reached by its URL, so it is not known which session it belongs to",
            remedy="use `attach` with the id of the session",
        )
    return session.id


def snapshot(session: Session, name: str | None) -> Snapshot:
    """Keeps the files of a session as an image."""
    given = name or f"py-{os.urandom(8).hex()}"
    told = ask(_session(session.runtime, "snapshot", "--json", "--", id_of(session), given))
    return Snapshot(str(told["image"]), given, session.runtime, session.id)


def start_of(snapshot: str | Snapshot, runtime: str, image: str | None) -> tuple[str, str]:
    """The runtime and the image of a sandbox that starts from a snapshot."""
    if image is not None:
        raise errors.InvalidRequestError(
            "a sandbox starts from an image or from a snapshot, and not from both", code="invalid_request"
        )
    if isinstance(snapshot, str):
        return runtime, snapshot
    # The runtime `local`, which is the default, has no snapshots.
    return (snapshot.runtime if runtime == "local" else runtime), snapshot.image


def snapshots(runtime: str | None) -> list[Snapshot]:
    """The snapshots that are kept, the newest first."""
    return [
        Snapshot(each["image"], each["name"], each["provider"], each.get("session_id"), each.get("created"))
        for each in ask_list(_session(runtime, "snapshots", "ls", "--json"))
    ]


def remove_snapshot(image: str | Snapshot, runtime: str | None) -> None:
    """Deletes a snapshot."""
    if isinstance(image, Snapshot):
        remove_snapshot(image.image, runtime or image.runtime)
    else:
        printed(_session(runtime, "snapshots", "rm", "--", image))


def events(session: Session, since: int, kinds: Sequence[str], most: int) -> list[SessionEvent]:
    """The first events of a history from a number on."""
    chosen = [f"--kind={kind}" for kind in kinds]
    words = _session(session.runtime, "events", "--json", f"--since={since}", *chosen, "--", id_of(session))
    return [_event(told) for told in first_lines(words, most)]


def _event(told: Mapping[str, Any]) -> SessionEvent:
    is_action = "action" in told
    return SessionEvent(
        id=int(told.get("id", -1)),
        time=str(told.get("timestamp", "")),
        source=str(told.get("source", "")),
        kind=str(told["action" if is_action else "observation"]),
        is_action=is_action,
        cause=told.get("cause"),
        message=str(told.get("message", "")),
        content=str(told.get("content", "")),
        data=told.get("args" if is_action else "extras") or {},
    )


def network(session: Session, command: str, hosts: Sequence[str] = ()) -> NetworkState:
    """Shows or changes whom a session may reach."""
    words = _session(session.runtime, "network", command, "--json", "--", id_of(session), *hosts)
    told = cast("Mapping[str, Any]", ask(words))
    return NetworkState(
        tuple(told["allowed"]),
        tuple(told["denied"]),
        tuple(AskedHost(each["target"], each["allowed"], each["times"], each["last"]) for each in told["asked"]),
    )
