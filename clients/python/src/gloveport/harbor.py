"""Harbor (Terminal-Bench): `harbor run --env gloveport.harbor:GloveportEnvironment …`.

`--ek runtime=docker` and the other fields of `GloveportOptions` say more of the sandboxes.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.environments.options import EnvironmentOptions
from harbor.models.task.config import NetworkMode
from harbor.models.trial.paths import EnvironmentPaths

from ._aio import AsyncSandbox
from ._followed import followed
from ._settings import SandboxSettings

__all__ = ["GloveportEnvironment", "GloveportOptions"]

#: Most bytes of output of a command, of each of its two streams; of more, the last ones are kept.
KEPT = 16 * 1024 * 1024


class GloveportOptions(EnvironmentOptions, SandboxSettings):
    """What the sandboxes of a job are. The image is the task's, unless one is given."""

    runtime: str = "docker"


class GloveportEnvironment(BaseEnvironment):
    """A sandbox of one trial. It ends with `stop`, and with this process."""

    options_model = GloveportOptions
    options: GloveportOptions

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._box: AsyncSandbox | None = None
        super().__init__(*arguments, **named)

    @staticmethod
    def type() -> str:
        return "gloveport"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(
            disable_internet=True,
            network_allowlist=True,
            network_allowlist_hostnames=True,
            network_allowlist_wildcard_hostnames=True,
            network_allowlist_ipv4_addresses=True,
            network_allowlist_ipv6_addresses=True,
            network_allowlist_ipv4_cidrs=True,
            network_allowlist_ipv6_cidrs=True,
        )

    @classmethod
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities | None:
        return EnvironmentResourceCapabilities(cpu_limit=True, memory_limit=True, fractional_cpus=True)

    def _validate_definition(self) -> None:
        if self.options.runtime == "local":
            raise ValueError(
                "tasks of Harbor have an image, and directories beneath `/`, which sandboxes of the runtime `local` do "
                "not have: choose another one, such as `--ek runtime=docker`"
            )
        if self.options.image is None and self.task_env_config.docker_image is None:
            raise FileNotFoundError(
                f"the task {self.environment_name} names no `docker_image` in its task.toml, and images are not built "
                "here: build one from its Dockerfile, and give it as `--ek image=…`"
            )

    def _described(self) -> AsyncSandbox:
        policy = self.network_policy
        network: str | list[str] | None = self.options.network
        if policy.network_mode == NetworkMode.NO_NETWORK:
            network = "none"
        elif policy.network_mode == NetworkMode.ALLOWLIST:
            network = list(policy.allowed_hosts) or "none"
        # A runtime refuses limits that it cannot keep.
        cpus, megabytes = self._effective_cpus, self._effective_memory_mb
        limits = [] if cpus is None else ["--cpus", str(cpus)]
        image = self.task_env_config.docker_image if self.options.image is None else self.options.image
        return self.options.described(
            AsyncSandbox,
            # An empty one is for runtimes that have none.
            image=image or None,
            network=network,
            memory=self.options.memory or (None if megabytes is None else f"{megabytes}m"),
            flags=[*limits, *self.options.flags],
        )

    async def start(self, force_build: bool) -> None:
        """Starts the sandbox. Raises `GloveportError` with the reason if that cannot be done."""
        box = self._described()
        await box.open()
        self._box = box
        try:
            paths = EnvironmentPaths.for_os(self.os)
            made = await self.ensure_dirs([paths.agent_dir, paths.verifier_dir, paths.artifacts_dir])
            if made is not None and made.return_code != 0:
                raise RuntimeError(f"the sandbox has no place for Harbor's directories: {made.stderr}")
            await self._upload_environment_dir_after_start()
        except BaseException:
            await self.stop(True)
            raise

    async def stop(self, delete: bool) -> None:
        """Ends the sandbox, which cannot be kept. Twice is not an error."""
        box, self._box = self._box, None
        if box is not None:
            await box.close()

    @property
    def _running(self) -> AsyncSandbox:
        if self._box is None:
            raise RuntimeError("the environment is not started")
        return self._box

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Runs a command with bash. When its time is over, it ends with all it has started; raises `RuntimeError`."""
        argv = ["bash", "-c", command]
        who = self._resolve_user(user)
        if who is not None and who not in ("root", 0):
            argv = ["su", "-s", "/bin/bash", str(who), "-c", command]
        where = cwd or self.task_env_config.workdir or self._running.workspace
        process = await self._running.processes.start(argv, cwd=where, env=self._merge_env(env), timeout=timeout_sec)
        written = {"stdout": bytearray(), "stderr": bytearray()}
        tell = self._output_callback()
        async with followed(process) as outputs:
            async for piece in outputs:
                kept = written[piece.stream]
                kept += piece.data
                del kept[:-KEPT]
                if tell is not None:
                    await tell(piece.data.decode("utf-8", "replace"), piece.stream)
        end = (await process.status()).end
        if end is None or end.timed_out:
            raise RuntimeError(f"Command timed out after {timeout_sec} seconds: {command}")
        code = 128 + (end.signal or 0) if end.exit_code is None else end.exit_code
        stdout, stderr = (written[name].decode("utf-8", "replace") for name in ("stdout", "stderr"))
        return ExecResult(stdout=stdout, stderr=stderr, return_code=code)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        await self._running.upload(source_path, target_path)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        await self._running.upload(source_dir, target_dir)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        await self._running.download(source_path, target_path)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        await self._running.download(source_dir, target_dir)
