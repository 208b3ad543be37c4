"""SWE-ReX (SWE-agent, mini-swe-agent): deployments whose runtimes are sandboxes of gloveport.

deployment = GloveportDeployment(runtime="docker", image="python:3.13")
await deployment.start()
await deployment.runtime.create_session(CreateBashSessionRequest())
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio
import logging
from typing import Any, Literal

from swerex.deployment.abstract import AbstractDeployment
from swerex.deployment.hooks.abstract import CombinedDeploymentHook, DeploymentHook
from swerex.exceptions import DeploymentNotStartedError
from swerex.runtime.abstract import IsAliveResponse
from swerex.runtime.remote import RemoteRuntime
from swerex.utils.log import get_logger

from . import _inside as inside
from ._sandbox import Sandbox
from ._settings import SandboxSettings

__all__ = ["GloveportDeployment", "GloveportDeploymentConfig", "GloveportRuntime"]


class GloveportDeploymentConfig(SandboxSettings):
    """What a deployment starts."""

    #: Seconds in which the runtime says whether it is alive.
    timeout: float = 5.0
    type: Literal["gloveport"] = "gloveport"

    def get_deployment(self) -> GloveportDeployment:
        return GloveportDeployment.from_config(self)


class GloveportRuntime(RemoteRuntime):
    """SWE-ReX's own client, on its way through the server of a sandbox."""

    def __init__(self, server: inside.Inside, *, timeout: float, logger: logging.Logger) -> None:
        super().__init__(host=server.url, auth_token=server.key, timeout=timeout, logger=logger)
        self._outer = server.headers

    @property
    def _headers(self) -> dict[str, str]:
        return {**super()._headers, **self._outer}


class GloveportDeployment(AbstractDeployment):
    """A sandbox with a server of SWE-ReX in it. It ends with `stop`, and with this process."""

    def __init__(self, *, logger: logging.Logger | None = None, **kwargs: Any) -> None:
        self._config = GloveportDeploymentConfig(**kwargs)
        self.logger = logger or get_logger("rex-deploy")
        self._hooks = CombinedDeploymentHook()
        self._box: Sandbox | None = None
        self._runtime: GloveportRuntime | None = None

    @classmethod
    def from_config(cls, config: GloveportDeploymentConfig) -> GloveportDeployment:
        return cls(**config.model_dump())

    def add_hook(self, hook: DeploymentHook) -> None:
        self._hooks.add_hook(hook)

    async def is_alive(self, *, timeout: float | None = None) -> IsAliveResponse:
        """Whether the runtime answers. Raises `DeploymentNotStartedError` if it was not started."""
        return await self.runtime.is_alive(timeout=timeout)

    async def start(self) -> None:
        """Starts the sandbox and the runtime. Raises `GloveportError` with the reason if that cannot be done."""
        if self._box is not None:
            raise RuntimeError("the deployment is started already: stop it first")
        self._hooks.on_custom_step("Starting sandbox")
        box = self._config.described(Sandbox)
        try:
            server = await asyncio.to_thread(self._open, box)
            runtime = GloveportRuntime(server, timeout=self._config.timeout, logger=self.logger)
        except BaseException:
            # If this task is cancelled, the thread finds the sandbox closed.
            await asyncio.to_thread(box.close)
            raise
        self._box, self._runtime = box, runtime

    @staticmethod
    def _open(box: Sandbox) -> inside.Inside:
        return inside.by_stdin(box.open(), ["swerex", "--auth-token-file", "/dev/stdin"])

    async def stop(self) -> None:
        """Ends the sandbox, and waits until nothing is left of it. Twice is not an error."""
        box, self._box, self._runtime = self._box, None, None
        if box is not None:
            await asyncio.to_thread(box.close)

    @property
    def runtime(self) -> GloveportRuntime:
        """Raises `DeploymentNotStartedError` if there is none."""
        if self._runtime is None:
            raise DeploymentNotStartedError
        return self._runtime
