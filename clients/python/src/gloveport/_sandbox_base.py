"""What is known of a sandbox without asking it."""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING

from . import _errors as errors
from ._session import Guard, Plan, Session

if TYPE_CHECKING:
    from ._lease import Lease


class SandboxBase:
    """A sandbox that is to be started, or one that is there."""

    def __init__(self, plan: Plan | None, session: Session | None) -> None:
        self._plan = plan
        self._session = session
        self._guard: Guard | Lease | None = None
        self._process = os.getpid()
        self._is_closed = False

    def __repr__(self) -> str:
        what = "not started" if self._session is None else self._session.id or self._session.url
        return f"{type(self).__name__}({what})"

    def _known(self) -> Session:
        """The session. Raises `SandboxClosedError` if there is none."""
        if self._is_closed:
            raise errors.SandboxClosedError("the sandbox is closed", remedy="start another one")
        if self._session is None:
            raise errors.SandboxClosedError(
                "the sandbox is not started", remedy="use it in a `with` block, or call `open`"
            )
        return self._session

    def _hold(self, lease: Lease) -> None:
        """It ends with this object."""
        self._guard = lease
        weakref.finalize(self, lease.give_up).atexit = False

    @property
    def id(self) -> str:
        """The id of its session, or its own at a gateway; empty if it was reached by its URL."""
        return self._known().id

    @property
    def runtime(self) -> str:
        """What hosts it, such as `local`, `docker` or `gateway`; empty if it was reached by its URL."""
        return self._known().runtime

    @property
    def workspace(self) -> str | None:
        """The directory in the sandbox that the work is in, if it is known."""
        return self._known().workspace

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels, such as `gloveport.isolation`, the level that keeps it apart from this machine."""
        return self._known().labels

    @property
    def isolation(self) -> str:
        """How far it is kept apart from this machine: `none`, `files` or `container`; empty elsewhere."""
        session = self._known()
        return session.labels.get("gloveport.isolation", "none" if session.runtime == "local" else "")

    def _warn_if_open(self) -> None:
        """Says so if commands are the user of this machine, and nobody has asked for that."""
        if self._plan is not None and self._plan.isolation is None and self.isolation == "none":
            warnings.warn(
                "this machine cannot keep the sandbox apart: its commands are you, with all your files "
                "(isolation='none' if you want that, `gloveport doctor` for what is missing)",
                errors.NotIsolatedWarning,
                stacklevel=3,
            )

    @property
    def ports(self) -> Mapping[str, str]:
        """The URLs of its ports by their names."""
        return self._known().urls

    def url(self, port: str | None = None) -> str:
        """The URL of its server, or of a port by its name. Raises `KeyError` if it has no such port."""
        session = self._known()
        if port is None:
            return session.url
        if port not in session.urls:
            raise KeyError(f"the sandbox has no port `{port}`; it has {', '.join(session.urls) or 'none'}")
        return session.urls[port]
