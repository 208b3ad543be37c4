"""Whom a sandbox may reach."""

from __future__ import annotations

from . import _manage as manage
from ._manage import AskedHost, NetworkState
from ._sandbox_base import SandboxBase


class Network:
    """Whom a sandbox may reach, while it runs. It was started with the hosts that it may reach, as `network`.

    All methods raise `SessionError` where no gate stands between it and the network.
    """

    def __init__(self, place: SandboxBase) -> None:
        self._place = place

    def show(self) -> NetworkState:
        """Whom it may reach."""
        return manage.network(self._place._known(), "show")

    def allow(self, *hosts: str) -> NetworkState:
        """Lets it reach hosts, addresses and networks, at once: `example.org`, `*.example.org:443`, `10.0.0.0/8`."""
        return manage.network(self._place._known(), "allow", hosts)

    def deny(self, *hosts: str) -> NetworkState:
        """Keeps it from them, at once, whatever else lets it reach them. Connections to them end."""
        return manage.network(self._place._known(), "deny", hosts)

    def log(self) -> tuple[AskedHost, ...]:
        """Whom it has asked for lately, and whether it was let through; the last one at the end."""
        return manage.network(self._place._known(), "log").asked
