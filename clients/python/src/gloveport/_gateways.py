"""Operations with a gateway: the sandboxes that it starts, finds, keeps and ends."""

from __future__ import annotations

import calendar
import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import quote

from . import _errors as errors
from . import _state as states
from ._commands import Deadline
from ._core import SILENCE, Emit, Op, Request, Response, Retry, Sleep, Stream, T, decoded, perform
from ._manage import Snapshot
from ._values import SandboxState, Secret

if TYPE_CHECKING:
    from . import _gateway_wire as wire

#: Seconds between two looks at a sandbox that is being made: at first, and at last.
SOON, LATER = 0.05, 1.0
#: Sandboxes that are asked for at a time.
PAGE = 500
#: Seconds that a gateway has to end what a start has left that was given up.
SWEEP = 10.0
#: What hosts a sandbox of a gateway, as far as a client knows.
RUNTIME = "gateway"
#: Seconds after which a sandbox ends whose client is gone without a word, unless another time is asked for.
ABANDONED = 300.0

#: What to do where nothing answers.
REMEDY = "check the URL, and whether the gateway runs: its `/healthz` answers without a key"

_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}

_BY_STATUS: dict[int, type[errors.ApiError]] = {
    400: errors.InvalidRequestError,
    401: errors.ForbiddenError,
    403: errors.ForbiddenError,
    405: errors.InvalidRequestError,
    409: errors.ConflictError,
    413: errors.InvalidRequestError,
    429: errors.TooManyError,
}

_REMEDIES = {
    "unauthorized": "give a key of the gateway, which is not that of one of its sandboxes",
    "forbidden": "ask whoever runs the gateway, or check that the URL is that of a gateway",
    "quota_exceeded": "end sandboxes that are not needed, or ask whoever runs the gateway for more",
    "too_many_requests": "wait a moment, and ask again",
    "session_exists": "use `get` for the one that there is, or another `session_id`",
    "unsupported": "`capabilities()` says what the gateway's runtime can do",
    "engine_unavailable": "ask again when the engine of the gateway answers",
    "unavailable": "ask again in a moment",
}

State = Literal["pending", "running", "paused", "stopped", "failed", "crash_looping", "unknown"]


@dataclass(frozen=True)
class SandboxInfo:
    """A sandbox, as its gateway tells of it."""

    #: What the gateway knows it by.
    id: str
    #: The session that it is for, which has one sandbox.
    session_id: str
    state: State
    #: Why it is so; empty where there is nothing to say.
    reason: str
    #: The URL of its server, and the key that this asks for: what `Sandbox.connect` takes.
    url: str
    key: str | None = field(repr=False)
    image: str | None
    workspace: str | None
    #: The URLs of its ports by their names.
    ports: Mapping[str, str]
    labels: Mapping[str, str]
    #: False for one that ends with its client.
    kept: bool
    #: When it was made, and when it ends by itself, in seconds since 1970, if they are known.
    created: float | None
    expires: float | None
    #: How often the engine has started it anew.
    restarts: int


@dataclass(frozen=True)
class GatewayCapabilities:
    """What a gateway is, and what its runtime can do."""

    #: Its runtime, such as `docker`.
    runtime: str
    #: Whose key is used.
    tenant: str
    #: The version of the gateway.
    version: str
    #: What keeps a sandbox apart from the machine: `none`, `process`, `container` or `virtual-machine`.
    isolation: str
    #: What it can do, such as `snapshots`, `pause`, `images` or `time_to_live`.
    can: frozenset[str]


def refused(status: int, body: bytes, where: str) -> errors.GloveportError:
    """The exception for an answer of the gateway at a URL that is an error."""
    told: object = None
    with contextlib.suppress(ValueError, RecursionError):
        told = json.loads(body)
    error = told.get("error") if isinstance(told, dict) else None
    if not isinstance(error, dict) or "code" not in error or "message" not in error:
        start = body[:200].decode("utf-8", "replace").strip()
        return errors.UnexpectedAnswerError(
            f"the answer of {where} with status {status} is none of a gateway of gloveport: {start!r}",
            remedy="check that the URL is that of a gateway",
        )
    code = str(error["code"])
    request = f" (request {error['request_id']})" if error.get("request_id") else ""
    message = f"the gateway at {where}: {error['message']}{request}"
    remedy = _REMEDIES.get(code, "")
    if code in ("start_failed", "unsupported"):
        return errors.SessionError(message, remedy=remedy, code=code)
    if status == 404 and "no such sandbox" in message:
        return errors.SandboxGoneError(message, remedy="`list()` has those that there are")
    if status == 404:
        return errors.NotFoundError(message, status=status, code=code)
    return _BY_STATUS.get(status, errors.ServerFailedError)(message, status=status, remedy=remedy, code=code)


def _path(id: str, what: str = "") -> str:
    return f"/v1/sandboxes/{quote(id, safe='')}{what}"


def _ask(request: Request) -> Op[Response]:
    return perform(request, refused)


def _seconds(text: str | None) -> float | None:
    """A time of RFC 3339 in UTC."""
    if text is None:
        return None
    whole, _, fraction = text.rstrip("Zz").partition(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float(f"0.{fraction or 0}")


def _info(value: object) -> SandboxInfo:
    told = cast("wire.Sandbox", value)
    return SandboxInfo(
        id=str(told["id"]),
        session_id=str(told["session_id"]),
        state=told["state"],
        reason=str(told["reason"]),
        url=str(told["url"]),
        key=told["session_api_key"],
        image=told["image"],
        workspace=told["workspace"],
        ports={port["name"]: port["url"] for port in told["ports"] if port["url"] is not None},
        labels=dict(told["labels"]),
        kept=bool(told["kept"]),
        created=_seconds(told["created_at"]),
        expires=_seconds(told["expires_at"]),
        restarts=int(cast("int", told["restarts"]["count"])),
    )


def memory_bytes(size: str | int) -> int:
    """A size such as `2g`, in bytes. Units are multiples of 1,024."""
    if isinstance(size, int):
        return size
    text = size.strip().lower().removesuffix("ib").removesuffix("b")
    unit = text[-1:] if text[-1:].isalpha() else ""
    with contextlib.suppress(ValueError, OverflowError, KeyError):
        number = float(text.removesuffix(unit)) * _UNITS[unit]
        if 1 <= number < 2**63:
            return int(number)
    raise errors.InvalidRequestError(
        f"{size!r} is no size", code="invalid_request", remedy="give one such as 512m or 2g"
    )


def wanted(
    *,
    image: str | None,
    from_snapshot: str | Snapshot | None,
    env: Mapping[str, str] | None,
    secrets: Mapping[str, str | Secret] | None,
    network: str | Sequence[str] | None,
    cpus: float | None,
    memory: str | int | None,
    ports: Mapping[str, int] | None,
    plugins: Sequence[str],
    labels: Mapping[str, str] | None,
    ttl: float | None,
    idle: float | None,
    kept: bool,
    more: Mapping[str, object] | None,
) -> dict[str, object]:
    """The body of a request for a sandbox. What is not asked for is not in it, since not every runtime has it."""
    if from_snapshot is not None:
        if image is not None:
            raise errors.InvalidRequestError(
                "a sandbox starts from an image or from a snapshot, and not from both", code="invalid_request"
            )
        image = from_snapshot if isinstance(from_snapshot, str) else from_snapshot.image
    values: dict[str, str] = {}
    for name, secret in (secrets or {}).items():
        if isinstance(secret, Secret) and secret.hosts:
            raise errors.InvalidRequestError(
                f"the secret `{name}` has hosts, and a gateway starts no sandboxes that use secrets they never have",
                code="invalid_request",
                remedy="give it without hosts, or start the sandbox with the program `gloveport`",
            )
        values[name] = secret.value if isinstance(secret, Secret) else secret
    resources: dict[str, object] = {}
    if cpus is not None:
        resources["cpus"] = cpus
    if memory is not None:
        resources["memory_bytes"] = memory_bytes(memory)
    body: dict[str, object] = {
        "image": image,
        "environment": dict(env or {}),
        "secrets": values,
        "resources": resources,
        "network": network if network is None or isinstance(network, str) else {"only": list(network)},
        "ports": [{"name": name, "port": port} for name, port in (ports or {}).items()],
        "plugins": list(plugins),
        "labels": dict(labels or {}),
        "ttl_seconds": None if ttl is None else max(1, round(ttl)),
        "idle_seconds": None if idle is None else max(1, round(idle)),
        "kept": None if kept else False,
    }
    if network not in (None, "full", "none") and isinstance(network, str):
        body["network"] = {"only": network.split(",")}
    return {**{name: value for name, value in body.items() if value not in (None, {}, [])}, **(more or {})}


class Start:
    """A sandbox that is to be made. Its session has an id that nobody else has, or a key of the sandbox does.

    By the one or the other the sandbox is found again where the connection broke before the gateway had answered.
    """

    def __init__(
        self,
        body: Mapping[str, object],
        session_id: str | None,
        timeout: float,
        abandoned_after: float | None = None,
        can: frozenset[str] | None = None,
    ) -> None:
        """With a time of its own to be idle, or with none, it does not end because its client is gone for a while.

        `can` is what the runtime can do, if that is known.
        """
        self.is_named = session_id is not None
        self.session_id = session_id or f"py-{os.urandom(8).hex()}"
        # One that somebody else has chosen proves nothing.
        self.key = os.urandom(32).hex() if self.is_named and "session_api_key" not in body else None
        self.deadline = Deadline(timeout)
        self.timeout = timeout
        #: What the gateway has told of it.
        self.made: SandboxInfo | None = None
        self.can = can
        self._body = {**body, "session_id": self.session_id}
        self._abandoned_after = None if "idle_seconds" in body else abandoned_after
        self._limit: float | None = None
        #: Whether the gateway has said that it makes none.
        self._is_refused = False
        if self.key is not None:
            self._body["session_api_key"] = self.key

    def is_own(self, info: SandboxInfo) -> bool:
        """Whether a sandbox of the session is this one, and not one that was there before."""
        return not self.is_named or (self.key is not None and info.key == self.key)

    def run(self, source: str | None = None) -> Stream[SandboxInfo, SandboxInfo]:
        """Makes it, with the files of another one if there is a source, and waits until the engine says that it runs.

        Hands out how it stands whenever that changes.
        """
        info = yield from (self._made() if source is None else with_one(source, self._forked))
        self.made = info
        told, delay = None, SOON
        while True:
            if (info.state, info.reason) != told:
                told = (info.state, info.reason)
                yield Emit(info)
            if info.state == "running":
                return info
            if info.state not in ("pending", "unknown"):
                raise ended(info)
            if self.deadline.passed():
                raise self.late(f"it is `{info.state}`" + (f": {info.reason}" if info.reason else ""))
            yield Sleep(delay)
            delay = min(delay * 2, LATER)
            info = yield from found(info.id)

    def _made(self) -> Op[SandboxInfo]:
        retry = Retry()
        has_broken = False
        # With an id that nobody else has, one that is there is the one that was asked for before.
        query: dict[str, str | list[str]] = {} if self.is_named else {"if_exists": "return"}
        while True:
            try:
                yield from self._limited()
                asked = Request("POST", "/v1/sandboxes", query, json=self._body, silence=self._left())
                return _info(decoded((yield from _ask(asked))))
            except errors.ConnectionLostError as error:
                has_broken = True
                if self.deadline.passed():
                    raise self.late("the gateway has not answered") from error
                yield from retry.wait(error)
            except errors.ConflictError:
                there = (yield from of_session(self.session_id)) if has_broken else None
                if there is None or not self.is_own(there):
                    self._is_refused = not has_broken
                    raise
                return there

    def _left(self) -> float:
        return max(self.deadline.left() or 0.0, 0.001)

    def _limited(self) -> Op[None]:
        """Has it end when its client is gone, where the runtime can do that."""
        if self._abandoned_after is None or self._limit is not None:
            return
        if self.can is None:
            self.can = (yield from capabilities(Request("GET", "/v1/capabilities", silence=self._left()))).can
        if "idle_stop" in self.can:
            seconds = max(1, round(self._abandoned_after))
            self._body["idle_seconds"], self._limit = seconds, float(seconds)

    def _forked(self, source: str) -> Op[SandboxInfo]:
        """Makes it of another one. Nobody asks twice for that."""
        json = {"session_id": self.session_id}
        request = Request("POST", _path(source, "/fork"), json=json, silence=self._left())
        return _info(decoded((yield from _ask(request))))

    def lasting(self, state: SandboxState, inherits: bool) -> float | None:
        """How many seconds its client may not say that it is there, if it has to say so.

        `inherits` is whether it does where it was not asked to end so, since what it was made of does.
        """
        if self._limit is None and not inherits:
            return None
        # Limits of the gateway and of the tenant may be shorter than what was asked for.
        return min((each for each in (state.idle_limit_seconds, self._limit) if each is not None), default=None)

    def greeted(self) -> Op[SandboxState]:
        """Waits, at the sandbox, until its server answers."""
        delay, retry = SOON, Retry()
        while True:
            try:
                return (yield from states.greet())
            except (errors.ServerFailedError, errors.ConnectionLostError) as error:
                if isinstance(error, errors.ServerFailedError) and error.status not in (502, 503, 504):
                    raise
                if self.deadline.passed():
                    raise self.late(f"its server does not answer: {error.message}") from error
                yield Sleep(delay)
                delay = min(delay * 2, LATER)
            except errors.UnreachableError as error:
                yield from retry.wait(error)

    def late(self, why: str) -> errors.SessionError:
        return errors.SessionError(
            f"the sandbox of the session `{self.session_id}` was not ready within {self.timeout:g} s: {why}",
            remedy="wait longer, with `timeout`, or look at the gateway's log",
            code="timed_out",
        )

    def swept(self) -> Op[None]:
        """Ends what there is of it, after it was given up."""
        if self._is_refused:
            return
        there = self.made or (yield from of_session(self.session_id, SWEEP))
        if there is not None and (self.made is not None or self.is_own(there)):
            yield from delete(there.id, SWEEP)


def not_kept(source: str) -> errors.InvalidRequestError:
    """A fork that cannot be kept, since it would end when nobody uses it for a while, as its source does."""
    return errors.InvalidRequestError(
        f"a fork of the sandbox `{source}` cannot be kept: like that one it ends when its client is gone",
        code="invalid_request",
        remedy="start that one with `abandoned_after=None`, or start one with `from_snapshot` of its `snapshot`",
    )


def ended(info: SandboxInfo) -> errors.SessionError:
    """It came to its end before it could be used."""
    return errors.SessionError(
        f"the sandbox `{info.id}` was made and did not start; it is `{info.state}`: {info.reason or 'nobody says why'}",
        remedy="look at its image and its plugins",
        code="start_failed",
    )


def gone(id: str) -> Op[errors.GloveportError]:
    """Why a sandbox that was made is gone before its server has answered."""
    try:
        return ended((yield from found(id)))
    except errors.SandboxGoneError as error:
        return error


def found(id: str) -> Op[SandboxInfo]:
    """A sandbox by its id."""
    return _info(decoded((yield from _ask(Request("GET", _path(id), repeatable=True)))))


def of_session(session_id: str, silence: float = SILENCE) -> Op[SandboxInfo | None]:
    """The sandbox of a session, if it has one."""
    request = Request("GET", "/v1/sandboxes", {"session_id": session_id}, repeatable=True, silence=silence)
    told = cast("wire.SandboxList", decoded((yield from _ask(request))))["sandboxes"]
    return _info(told[0]) if told else None


def with_one(id: str, act: Callable[[str], Op[T]]) -> Op[T]:
    """Does something with a sandbox, which is called by its own id or by that of its session."""
    try:
        return (yield from act(id))
    except errors.SandboxGoneError:
        try:
            there = yield from of_session(id)
        except errors.InvalidRequestError:
            there = None
        if there is None:
            raise
    return (yield from act(there.id))


def listed(
    labels: Mapping[str, str] | None,
    states: Sequence[str],
    session_id: str | None,
    include_ended: bool,
    most: int,
) -> Op[list[SandboxInfo]]:
    """The first sandboxes, the oldest first, in as many pages as that takes."""
    query: dict[str, str | list[str]] = {}
    if labels:
        query["label"] = [f"{name}={value}" for name, value in labels.items()]
    if states:
        query["state"] = ",".join(states)
    if session_id is not None:
        query["session_id"] = session_id
    if include_ended:
        query["include_ended"] = "true"
    every: list[SandboxInfo] = []
    while len(every) < most:
        query["limit"] = str(min(PAGE, most - len(every)))
        page = cast(
            "wire.SandboxList",
            decoded((yield from _ask(Request("GET", "/v1/sandboxes", dict(query), repeatable=True)))),
        )
        every += map(_info, page["sandboxes"])
        cursor = page["next_cursor"]
        if cursor is None:
            break
        query["cursor"] = cursor
    return every


def delete(id: str, silence: float = SILENCE) -> Op[None]:
    """Ends a sandbox. One that is gone when it is asked for again has been ended by the first time."""
    retry = Retry()
    has_broken = False
    while True:
        try:
            yield from _ask(Request("DELETE", _path(id), silence=silence))
            return
        except errors.ConnectionLostError as error:
            has_broken = True
            yield from retry.wait(error)
        except errors.SandboxGoneError:
            if not has_broken:
                raise
            return


def pause(id: str) -> Op[SandboxInfo]:
    """Stops a sandbox where it is."""
    return _info(decoded((yield from _ask(Request("POST", _path(id, "/pause"), repeatable=True)))))


def resume(id: str) -> Op[SandboxInfo]:
    """Lets a sandbox go on."""
    return _info(decoded((yield from _ask(Request("POST", _path(id, "/resume"), repeatable=True)))))


def snapshot(id: str, session_id: str | None, name: str | None) -> Op[Snapshot]:
    """Keeps the files of a sandbox. The engine may need long for that, and nobody asks twice."""
    given = name or f"py-{os.urandom(8).hex()}"
    request = Request("POST", _path(id, "/snapshot"), json={"name": given}, silence=3600.0)
    told = cast("wire.Snapshot", decoded((yield from _ask(request))))
    return Snapshot(str(told["image"]), given, RUNTIME, session_id)


def snapshots() -> Op[list[Snapshot]]:
    """The snapshots that are kept, the newest first."""
    told = cast("wire.Snapshots", decoded((yield from _ask(Request("GET", "/v1/snapshots", repeatable=True)))))
    every = [
        Snapshot(each["image"], each["name"], RUNTIME, each["session_id"], _seconds(each["created_at"]))
        for each in told["snapshots"]
    ]
    return sorted(every, key=lambda each: each.created or 0.0, reverse=True)


def remove_snapshot(image: str) -> Op[None]:
    """Deletes a snapshot."""
    yield from _ask(Request("DELETE", f"/v1/snapshots/{quote(image, safe='')}"))


def capabilities(
    request: Request = Request("GET", "/v1/capabilities", repeatable=True),  # noqa: B008 - it never changes
) -> Op[GatewayCapabilities]:
    """What the gateway is."""
    told = cast("wire.Capabilities", decoded((yield from _ask(request))))
    can = cast("dict[str, Any]", told["capabilities"])
    return GatewayCapabilities(
        runtime=told["runtime"],
        tenant=told["tenant"],
        version=told["gateway_version"],
        isolation=str(can["isolation"]),
        can=frozenset(name for name, value in can.items() if value is True),
    )
