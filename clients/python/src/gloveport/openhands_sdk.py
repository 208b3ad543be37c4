"""OpenHands' SDK 1.x: a workspace that is a sandbox of gloveport.

with GloveportWorkspace(sandbox={"runtime": "docker", "image": "python:3.13"}) as workspace:
    print(workspace.execute_command("uname -a").stdout)
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from typing import Any

from openhands.sdk.workspace import RemoteWorkspace
from pydantic import Field, PrivateAttr

from . import _inside as inside
from ._sandbox import Sandbox
from ._settings import SandboxSettings

__all__ = ["GloveportWorkspace"]


class GloveportWorkspace(RemoteWorkspace):
    """A sandbox with an agent-server in it. It ends with the `with` block or `cleanup`, and with this process."""

    host: str = Field(default="", description="Where the agent-server is; set when it is started.")
    working_dir: str = Field(default="", description="Directory of the sandbox to work in; its workspace if empty.")
    sandbox: SandboxSettings = Field(default_factory=SandboxSettings, description="What the sandbox is.")

    _box: Sandbox | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any) -> None:
        with inside.kept(inside.with_port(self.sandbox)) as box:
            self.working_dir = self.working_dir or box.workspace or "/workspace"
            server = inside.by_port(box, ["agent-server"], "OH_SESSION_API_KEYS_0", self.working_dir)
            self.host, self.api_key = server.url, server.key
            super().model_post_init(context)
            self._box = box

    def cleanup(self) -> None:
        """Ends the sandbox. Twice is not an error."""
        self.reset_client()
        box, self._box = self._box, None
        if box is not None:
            box.close()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        super().__exit__(kind, error, trace)
        self.cleanup()

    def pause(self) -> None:
        """Stops all processes of the sandbox where they are."""
        if self._box is not None:
            self._box.pause()

    def resume(self) -> None:
        """Lets them go on."""
        if self._box is not None:
            self._box.resume()
