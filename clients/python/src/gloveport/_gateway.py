"""Gateways, for programs without an event loop."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

from . import _errors as errors
from . import _gateways as gateways
from ._gateways import GatewayCapabilities, SandboxInfo
from ._lease import Lease, is_attended, pause, sweep
from ._manage import Snapshot
from ._presence import in_background
from ._sandbox import Sandbox
from ._sandbox_base import SandboxBase
from ._session import Session
from ._transport import Address, Transport
from ._values import Secret

#: What is called by its id, and can be called by what has it.
Named = str | SandboxInfo | SandboxBase


def address_of(url: str, key: str | None) -> Address:
    """Where a gateway is."""
    return Address(url.rstrip("/"), key, "X-API-Key", "the gateway", gateways.REMEDY)


def id_of(sandbox: Named) -> str:
    """The id of a sandbox. Raises `InvalidRequestError` for one that no gateway has started or found."""
    if isinstance(sandbox, str):
        return sandbox
    if isinstance(sandbox, SandboxInfo):
        return sandbox.id
    session = sandbox._session
    if session is None or session.at_gateway is None:
        raise errors.InvalidRequestError("the sandbox is none of a gateway", code="invalid_request")
    return session.at_gateway


def session_of(info: SandboxInfo) -> Session:
    """A sandbox of a gateway as a session."""
    labels, ports = dict(info.labels), dict(info.ports)
    return Session(info.id, info.url, info.key, gateways.RUNTIME, info.workspace, ports, labels, info.id)


class Gateway:
    """A gateway, which starts, finds, keeps and ends sandboxes elsewhere. No program is needed on this machine.

    Threads may share it. `with gateway.start(…) as box:` ends the sandbox with the block. All methods raise
    `GloveportError` if they fail: `ForbiddenError` if the key is wrong, `UnreachableError` if nobody answers.
    """

    def __init__(self, url: str, key: str | None = None) -> None:
        """The gateway at a URL, with the key that it sends as `X-API-Key`. Nothing is asked yet."""
        self._address = address_of(url, key)
        self._address.settings()
        self._opened: Transport | None = None
        self._process = os.getpid()
        #: What its runtime can do, as far as it was asked.
        self._can: frozenset[str] | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Gateway({self.url})"

    @property
    def url(self) -> str:
        """Where it is."""
        return self._address.url

    @property
    def _transport(self) -> Transport:
        with self._lock:
            if self._opened is None or self._process != os.getpid():
                self._opened, self._process = Transport(self._address), os.getpid()
            return self._opened

    def close(self) -> None:
        """Lets go of its connections. Sandboxes that were started stay as they are."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None and self._process == os.getpid():
            opened.close()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(
        self,
        *,
        image: str | None = None,
        from_snapshot: str | Snapshot | None = None,
        session_id: str | None = None,
        env: Mapping[str, str] | None = None,
        secrets: Mapping[str, str | Secret] | None = None,
        network: str | Sequence[str] | None = None,
        cpus: float | None = None,
        memory: str | int | None = None,
        ports: Mapping[str, int] | None = None,
        plugins: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        ttl: float | None = None,
        idle: float | None = None,
        kept: bool = False,
        abandoned_after: float | None = gateways.ABANDONED,
        more: Mapping[str, object] | None = None,
        timeout: float = 300.0,
        on_progress: Callable[[SandboxInfo], object] | None = None,
    ) -> Sandbox:
        """Starts a sandbox, and returns when it can be used.

        It ends with its `with` block, with `close`, with its object and with this interpreter, unless it is `kept`. An
        interpreter that is killed, or whose machine is lost, leaves it for `abandoned_after` seconds, or for ever with
        `None`: it ends when nobody has used it for so long, and as long as its object is open, a thread uses it now and
        then. One that is paused stays.

        `ttl` seconds after it was made it ends by itself, and `idle` seconds after you have used it last: then nothing
        else uses it, and `abandoned_after` does not count. Runtimes without `idle_stop` among their `capabilities` know
        neither `idle` nor `abandoned_after`, so give a `ttl` there.

        `session_id` is a name of your own, of which there is one sandbox: `ConflictError` if there is one. `memory` is
        a size such as `2g`, or bytes. `more` are other members of `POST /v1/sandboxes`. `on_progress` gets how it
        stands whenever that changes.

        A connection that breaks is made again, and the sandbox is started once. A start that fails, takes longer than
        `timeout` seconds or is given up, as by C-c, leaves none. Raises `SessionError` with the reason if it cannot be
        started, and `TooManyError` if a quota is used up.
        """
        body = gateways.wanted(
            image=image,
            from_snapshot=from_snapshot,
            env=env,
            secrets=secrets,
            network=network,
            cpus=cpus,
            memory=memory,
            ports=ports,
            plugins=plugins,
            labels=labels,
            ttl=ttl,
            idle=idle,
            kept=kept,
            more=more,
        )
        start = gateways.Start(body, session_id, timeout, None if kept else abandoned_after, self._can)
        return self._made(start, None, kept, on_progress)

    def _made(
        self,
        start: gateways.Start,
        source: str | None,
        is_kept: bool,
        on_progress: Callable[[SandboxInfo], object] | None,
    ) -> Sandbox:
        try:
            making = self._transport.items(start.run(source))
            for told in making:
                if on_progress is not None:
                    on_progress(told)
            info = making.value
            box = Sandbox._at(self, info)
            try:
                state = box._transport.run(start.greeted())
            except errors.SandboxGoneError as error:
                raise self._transport.run(gateways.gone(info.id)) from error
            self._can = start.can or self._can
            if not is_kept:
                lease = Lease(self._address, info.id)
                box._hold(lease)
                # Of what others have started nobody knows here whether they want that it ends when it is idle.
                inherits = source is not None and is_attended(source) is not False
                if (limit := start.lasting(state, inherits)) is not None:
                    lease.attend(Address(info.url, info.key), limit, in_background)
            return box
        except BaseException as error:
            # It may be another gateway by now.
            self._can = None
            if start.made is None and isinstance(error, errors.UnreachableError):
                # Nobody answers who could end it.
                raise
            sweep(self._address, start)
            raise

    def get(self, sandbox: str | SandboxInfo) -> Sandbox:
        """A sandbox that is there, by its id or that of its session. Closing it leaves it running.

        Raises `SandboxGoneError` if there is none.
        """
        box = Sandbox._at(self, self._transport.run(gateways.with_one(id_of(sandbox), gateways.found)))
        box._greet()
        return box

    def info(self, sandbox: Named) -> SandboxInfo:
        """How a sandbox stands."""
        return self._transport.run(gateways.with_one(id_of(sandbox), gateways.found))

    def delete(self, sandbox: Named) -> None:
        """Ends a sandbox, with all that belongs to it. Raises `SandboxGoneError` if there is none."""
        self._transport.run(gateways.with_one(id_of(sandbox), gateways.delete))

    def pause(self, sandbox: Named) -> SandboxInfo:
        """Stops a sandbox at its engine, which needs no processor then. Until it is resumed, what uses it raises
        `PausedError`, unless the gateway wakes it.

        Raises `SessionError` where the runtime cannot do that.
        """
        return self._transport.run(gateways.with_one(id_of(sandbox), pause))

    def resume(self, sandbox: Named) -> SandboxInfo:
        """Lets a sandbox go on. One that is not paused stays as it is."""
        return self._transport.run(gateways.with_one(id_of(sandbox), gateways.resume))

    def snapshot(self, sandbox: Named, name: str | None = None) -> Snapshot:
        """Keeps the files of a sandbox as an image, from which `start(from_snapshot=…)` starts others.

        It stays until `remove_snapshot`. Raises `SessionError` where the runtime cannot do that.
        """
        info = self.info(sandbox)
        return self._transport.run(gateways.snapshot(info.id, info.session_id, name))

    def snapshots(self) -> list[Snapshot]:
        """The snapshots of the key's tenant, the newest first."""
        return self._transport.run(gateways.snapshots())

    def remove_snapshot(self, image: str | Snapshot) -> None:
        """Removes a snapshot. Raises `NotFoundError` if there is none, `ConflictError` if it is still needed."""
        name = image if isinstance(image, str) else image.image
        self._transport.run(gateways.remove_snapshot(name))

    def fork(
        self,
        sandbox: Named,
        *,
        kept: bool = False,
        timeout: float = 300.0,
        on_progress: Callable[[SandboxInfo], object] | None = None,
    ) -> Sandbox:
        """Another sandbox with the files of one as they are now, and no processes of it; it ends as one of `start`.

        It has the times of what it was made of. One that is to be `kept` is refused where that would end it: start its
        source with `abandoned_after=None`.

        Raises `SessionError` where the runtime cannot do that.
        """
        id = id_of(sandbox)
        if kept and is_attended(id):
            raise gateways.not_kept(id)
        return self._made(gateways.Start({}, None, timeout), id, kept, on_progress)

    def capabilities(self) -> GatewayCapabilities:
        """What the gateway is, and what its runtime can do."""
        told = self._transport.run(gateways.capabilities())
        self._can = told.can
        return told

    def list(
        self,
        *,
        labels: Mapping[str, str] | None = None,
        states: Sequence[str] = (),
        session_id: str | None = None,
        include_ended: bool = False,
        most: int = 1000,
    ) -> list[SandboxInfo]:
        """The sandboxes of the key's tenant, the oldest first: those with all of these labels, in one of these states.

        `include_ended` also has those that have ended and are still known. There are `most` at most.
        """
        return self._transport.run(gateways.listed(labels, states, session_id, include_ended, most))
