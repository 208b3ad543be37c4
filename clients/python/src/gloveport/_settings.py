"""What a framework's configuration says of the sandbox. Every framework that has an adapter here brings pydantic."""

# pyright: reportMissingImports=false
from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from ._sandbox_base import SandboxBase

Box = TypeVar("Box", bound=SandboxBase)


class SandboxSettings(BaseModel):
    """The arguments of `Sandbox` that a file can have.

    A secret is a flag, `("--secret", "TOKEN@api.example.org")`, whose value comes from the variable of that name: what
    a framework is configured with is written down in its logs.
    """

    model_config = ConfigDict(extra="forbid")

    #: What hosts it: `local`, `docker`, `kubernetes` and others.
    runtime: str = "local"
    image: str | None = None
    #: A directory of this machine to work in, which stays.
    workspace: Path | None = None
    env: dict[str, str] = {}
    #: `none`, `files` or `container`; the strongest that there is by default.
    isolation: str | None = None
    #: `full`, `none`, or the hosts that it may talk to.
    network: str | list[str] | None = None
    memory: str | None = None
    plugins: list[str] = []
    labels: dict[str, str] = {}
    #: More flags of `gloveport session start`.
    flags: list[str] = []

    def described(self, kind: type[Box], **more: Any) -> Box:
        """A sandbox of these settings, which is not started."""
        arguments = {name: getattr(self, name) for name in SandboxSettings.model_fields}
        return kind(**{**arguments, **more})
