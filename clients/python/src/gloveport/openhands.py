"""OpenHands 0.62: `runtime = "gloveport.openhands.GloveportRuntime"` in `[core]` of its config.toml (`RUNTIME=…`).

The variable `GLOVEPORT_SANDBOX` says more of the sandbox, as JSON: `{"runtime": "docker", "network": "none"}`.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import os
from typing import Any

from openhands.core.config import OpenHandsConfig
from openhands.core.exceptions import AgentRuntimeDisconnectedError, AgentRuntimeUnavailableError
from openhands.runtime.impl.action_execution.action_execution_client import ActionExecutionClient
from openhands.runtime.runtime_status import RuntimeStatus
from openhands.utils.async_utils import call_sync_from_async

from ._errors import GloveportError
from ._sandbox import Sandbox
from ._settings import SandboxSettings

__all__ = ["GloveportRuntime"]

VARIABLE = "GLOVEPORT_SANDBOX"
# The sandboxes of this process by the ids of their conversations, which several runtimes can share.
_BOXES: dict[str, Sandbox] = {}


class GloveportRuntime(ActionExecutionClient):
    """A sandbox for a conversation. It ends with `close`, unless `keep_runtime_alive` is set, and with this process."""

    def __init__(self, config: OpenHandsConfig, *arguments: Any, **named: Any) -> None:
        self._box: Sandbox | None = None
        self._session_api_key: str | None = None
        super().__init__(config, *arguments, **named)

    @property
    def action_execution_server_url(self) -> str:
        if self._box is None:
            raise NotImplementedError("the sandbox is not started")
        return self._box.url()

    @property
    def session_api_key(self) -> str | None:
        return self._session_api_key

    async def connect(self) -> None:
        """Starts the sandbox, or finds that of the conversation.

        Raises `AgentRuntimeDisconnectedError` or `AgentRuntimeUnavailableError` with the reason if there is none.
        """
        self.set_runtime_status(RuntimeStatus.STARTING_RUNTIME)
        box = _BOXES.get(self.sid)
        if box is not None:
            await self._use(box)
            return
        if self.attach_to_existing:
            raise AgentRuntimeDisconnectedError(f"this process has no sandbox of the conversation {self.sid}")
        box = await self._started()
        try:
            await self._use(box)
        except BaseException:
            # Nobody closes what failed to connect, or was cancelled while it did.
            self._box = None
            await call_sync_from_async(_end, self.sid, box)
            raise

    async def _use(self, box: Sandbox) -> None:
        self._box = box
        self._session_api_key = box._known().key
        if self._session_api_key is not None:
            self.session.headers["X-Session-API-Key"] = self._session_api_key
        if box.workspace is not None:
            self.config.workspace_mount_path_in_sandbox = box.workspace
        await call_sync_from_async(self.check_if_alive)
        await call_sync_from_async(self.setup_initial_env)
        self._runtime_initialized = True
        self.set_runtime_status(RuntimeStatus.READY)

    async def _started(self) -> Sandbox:
        settings = SandboxSettings.model_validate_json(os.environ.get(VARIABLE, "{}"))
        image = None if settings.runtime == "local" else self.config.sandbox.runtime_container_image
        box = settings.described(
            Sandbox,
            image=settings.image or image,
            workspace=settings.workspace or self.config.workspace_base,
            plugins=settings.plugins or [plugin.name for plugin in self.plugins],
        )
        try:
            await call_sync_from_async(box.open)
        except BaseException as error:
            # If this task is cancelled, the thread finds the sandbox closed.
            await call_sync_from_async(box.close)
            if isinstance(error, GloveportError):
                raise AgentRuntimeUnavailableError(str(error)) from error
            raise
        first = _BOXES.setdefault(self.sid, box)
        if first is not box:
            await call_sync_from_async(box.close)
        return first

    def close(self) -> None:
        """Ends the sandbox, unless it is another runtime's or kept. Twice is not an error."""
        super().close()
        if not self.attach_to_existing and not self.config.sandbox.keep_runtime_alive:
            _end(self.sid, self._box)

    @classmethod
    async def delete(cls, conversation_id: str) -> None:
        """Ends the sandbox of a conversation."""
        await call_sync_from_async(_end, conversation_id, _BOXES.get(conversation_id))

    def pause(self) -> None:
        """Stops all processes of the sandbox where they are."""
        if self._box is not None:
            self._box.pause()

    def resume(self) -> None:
        """Lets them go on."""
        if self._box is not None:
            self._box.resume()

    @property
    def vscode_url(self) -> str | None:
        token = self.get_vscode_token()
        if not token or self._box is None or "vscode" not in self._box.ports:
            return None
        return f"{self._box.url('vscode')}/?tkn={token}&folder={self.config.workspace_mount_path_in_sandbox}"

    @property
    def web_hosts(self) -> dict[str, int]:
        if self._box is None:
            return {}
        told = self._box.processes.run(["/bin/sh", "-c", "echo $WORK_PORT_1 $WORK_PORT_2"], timeout=30)
        ports = [int(each) for each in told.stdout.split()]
        urls = [url for name, url in sorted(self._box.ports.items()) if name.startswith("work-")]
        return dict(zip(urls, ports, strict=False))


def _end(sid: str, box: Sandbox | None) -> None:
    if box is not None:
        if _BOXES.get(sid) is box:
            del _BOXES[sid]
        box.close()
