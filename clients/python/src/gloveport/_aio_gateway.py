"""Gateways, for programs with an event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

from . import _errors as errors
from . import _gateways as gateways
from ._aio import AsyncSandbox
from ._gateway import Named, address_of, id_of
from ._gateways import GatewayCapabilities, SandboxInfo
from ._lease import Lease, is_attended, pause, sweep
from ._manage import Snapshot
from ._presence import in_this_loop
from ._transport import Address, AsyncTransport
from ._values import Secret

#: What ends what was given up; each has its own limits.
_SWEEPING: set[asyncio.Future[None]] = set()


class AsyncGateway:
    """The same as `Gateway`, with `await`, in one event loop of `asyncio`.

    `async with await gateway.start(…) as box:` ends the sandbox with the block. A task that is cancelled while it
    starts a sandbox leaves none.
    """

    def __init__(self, url: str, key: str | None = None) -> None:
        """The gateway at a URL, with the key that it sends as `X-API-Key`. Nothing is asked yet."""
        self._address = address_of(url, key)
        self._address.settings()
        self._opened: AsyncTransport | None = None
        self._process = os.getpid()
        #: What its runtime can do, as far as it was asked.
        self._can: frozenset[str] | None = None

    def __repr__(self) -> str:
        return f"AsyncGateway({self.url})"

    @property
    def url(self) -> str:
        """Where it is."""
        return self._address.url

    @property
    def _transport(self) -> AsyncTransport:
        if self._opened is None or self._process != os.getpid():
            self._opened, self._process = AsyncTransport(self._address), os.getpid()
        return self._opened

    async def close(self) -> None:
        """Lets go of its connections. Sandboxes that were started stay as they are."""
        opened, self._opened = self._opened, None
        if opened is not None and self._process == os.getpid():
            await opened.close()

    async def __aenter__(self) -> AsyncGateway:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(
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
    ) -> AsyncSandbox:
        """Starts a sandbox, and returns when it can be used; see `Gateway.start`.

        A task of the event loop says that its client is there. A loop that is held up for `abandoned_after` seconds
        counts as one that is gone.
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
        return await self._made(start, None, kept, on_progress)

    async def _made(
        self,
        start: gateways.Start,
        source: str | None,
        is_kept: bool,
        on_progress: Callable[[SandboxInfo], object] | None,
    ) -> AsyncSandbox:
        try:
            making = self._transport.items(start.run(source))
            async for told in making:
                if on_progress is not None:
                    on_progress(told)
            info = making.value
            box = AsyncSandbox._at(self, info)
            try:
                state = await box._transport.run(start.greeted())
            except errors.SandboxGoneError as error:
                raise await self._transport.run(gateways.gone(info.id)) from error
            self._can = start.can or self._can
            if not is_kept:
                lease = Lease(self._address, info.id)
                box._hold(lease)
                # Of what others have started nobody knows here whether they want that it ends when it is idle.
                inherits = source is not None and is_attended(source) is not False
                if (limit := start.lasting(state, inherits)) is not None:
                    lease.attend(Address(info.url, info.key), limit, in_this_loop)
            return box
        except BaseException as error:
            # It may be another gateway by now.
            self._can = None
            if start.made is None and isinstance(error, errors.UnreachableError):
                # Nobody answers who could end it.
                raise
            # It does not depend on who waits for it.
            sweeping = asyncio.ensure_future(asyncio.to_thread(sweep, self._address, start))
            _SWEEPING.add(sweeping)
            sweeping.add_done_callback(_SWEEPING.discard)
            await asyncio.shield(sweeping)
            raise

    async def get(self, sandbox: str | SandboxInfo) -> AsyncSandbox:
        """A sandbox that is there, by its id or that of its session. Closing it leaves it running.

        Raises `SandboxGoneError` if there is none.
        """
        box = AsyncSandbox._at(self, await self._transport.run(gateways.with_one(id_of(sandbox), gateways.found)))
        await box._greet()
        return box

    async def info(self, sandbox: Named) -> SandboxInfo:
        """How a sandbox stands."""
        return await self._transport.run(gateways.with_one(id_of(sandbox), gateways.found))

    async def delete(self, sandbox: Named) -> None:
        """Ends a sandbox, with all that belongs to it. Raises `SandboxGoneError` if there is none."""
        await self._transport.run(gateways.with_one(id_of(sandbox), gateways.delete))

    async def pause(self, sandbox: Named) -> SandboxInfo:
        """Stops a sandbox at its engine, which needs no processor then. Until it is resumed, what uses it raises
        `PausedError`, unless the gateway wakes it.

        Raises `SessionError` where the runtime cannot do that.
        """
        return await self._transport.run(gateways.with_one(id_of(sandbox), pause))

    async def resume(self, sandbox: Named) -> SandboxInfo:
        """Lets a sandbox go on. One that is not paused stays as it is."""
        return await self._transport.run(gateways.with_one(id_of(sandbox), gateways.resume))

    async def snapshot(self, sandbox: Named, name: str | None = None) -> Snapshot:
        """Keeps the files of a sandbox as an image, from which `start(from_snapshot=…)` starts others.

        It stays until `remove_snapshot`. Raises `SessionError` where the runtime cannot do that.
        """
        info = await self.info(sandbox)
        return await self._transport.run(gateways.snapshot(info.id, info.session_id, name))

    async def snapshots(self) -> list[Snapshot]:
        """The snapshots of the key's tenant, the newest first."""
        return await self._transport.run(gateways.snapshots())

    async def remove_snapshot(self, image: str | Snapshot) -> None:
        """Removes a snapshot. Raises `NotFoundError` if there is none, `ConflictError` if it is still needed."""
        name = image if isinstance(image, str) else image.image
        await self._transport.run(gateways.remove_snapshot(name))

    async def fork(
        self,
        sandbox: Named,
        *,
        kept: bool = False,
        timeout: float = 300.0,
        on_progress: Callable[[SandboxInfo], object] | None = None,
    ) -> AsyncSandbox:
        """Another sandbox with the files of one as they are now, and no processes of it; it ends as one of `start`.

        It has the times of what it was made of. One that is to be `kept` is refused where that would end it: start its
        source with `abandoned_after=None`.

        Raises `SessionError` where the runtime cannot do that.
        """
        id = id_of(sandbox)
        if kept and is_attended(id):
            raise gateways.not_kept(id)
        return await self._made(gateways.Start({}, None, timeout), id, kept, on_progress)

    async def capabilities(self) -> GatewayCapabilities:
        """What the gateway is, and what its runtime can do."""
        told = await self._transport.run(gateways.capabilities())
        self._can = told.can
        return told

    async def list(
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
        return await self._transport.run(gateways.listed(labels, states, session_id, include_ended, most))
