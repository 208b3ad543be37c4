"""OpenAI Agents SDK: `ShellTool`, `LocalShellTool` and `ApplyPatchTool` that work in a sandbox of gloveport.

async with AsyncSandbox() as box:
    tools = [ShellTool(executor=GloveportShell(box)), ApplyPatchTool(editor=GloveportEditor(box))]
    print((await Runner.run(Agent(name="worker", tools=tools), "Run the tests.")).final_output)
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from agents import (
    ApplyPatchOperation,
    ApplyPatchResult,
    LocalShellCommandRequest,
    ShellCallOutcome,
    ShellCommandOutput,
    ShellCommandRequest,
    ShellResult,
    apply_diff,
)

from ._aio import AsyncSandbox
from ._aio_path import AsyncRemotePath
from ._errors import GloveportError
from ._followed import followed
from ._shell import KEEP, LIMIT, SHELL, TOGETHER, Ends, code_of
from ._values import ProcessEnd

__all__ = ["GloveportEditor", "GloveportShell"]


class GloveportShell:
    """What `ShellTool` and `LocalShellTool` run commands with.

    Each command has a shell of its own, in `cwd` or in the workspace. `timeout` are its most seconds, of which a model
    may ask for fewer, and `keep` the most bytes of each of its outputs; of more, the beginning and the end are kept.
    One that is given up, as by cancelling the run, is ended with everything that it has started.
    """

    def __init__(
        self,
        box: AsyncSandbox,
        *,
        cwd: str | None = None,
        timeout: float = LIMIT,
        keep: int = KEEP,
        interpreter: Sequence[str] = SHELL,
    ) -> None:
        self._box = box
        self._cwd = cwd
        self._timeout = timeout
        self._keep = keep
        self._interpreter = interpreter

    async def __call__(self, request: ShellCommandRequest | LocalShellCommandRequest) -> ShellResult | str:
        if isinstance(request, LocalShellCommandRequest):
            return await self._local(request)
        action = request.data.action
        limit = self._limit(action.timeout_ms)
        done: list[ShellCommandOutput] = []
        for command in action.commands:
            stdout, stderr = Ends(self._keep), Ends(self._keep)
            end = await self._end([*self._interpreter, command], limit, {"stdout": stdout, "stderr": stderr})
            code = None if end is None or end.timed_out else code_of(end)
            outcome = ShellCallOutcome("timeout" if code is None else "exit", code)
            done.append(ShellCommandOutput(stdout.text(), stderr.text(), outcome, command))
            if code is None:
                # What comes behind it may need what it was to do.
                break
        return ShellResult(done, max_output_length=action.max_output_length)

    async def _local(self, request: LocalShellCommandRequest) -> str:
        # An exception would end the whole run, so what is wrong is told to the model.
        action = request.data.action
        if action.user:
            return f"commands of this sandbox run as its user, not as {action.user!r}"
        limit = self._limit(action.timeout_ms)
        output = Ends(self._keep)
        both = {"stdout": output, "stderr": output}
        try:
            end = await self._end([*TOGETHER, *action.command], limit, both, action.working_directory, action.env)
        except GloveportError as error:
            return f"the command could not be run: {error}"
        if end is None or end.timed_out:
            return f"{output.text()}\n[it did not end within {limit:g} seconds]"
        code = code_of(end)
        return output.text() + (f"\n[exit code {code}]" if code else "")

    def _limit(self, milliseconds: int | None) -> float:
        return min(milliseconds / 1000, self._timeout) if milliseconds and milliseconds > 0 else self._timeout

    async def _end(
        self,
        argv: Sequence[str],
        limit: float,
        outputs: Mapping[str, Ends],
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ProcessEnd | None:
        where = PurePosixPath(self._box.workspace or "/", self._cwd or "", cwd or "")
        process = await self._box.processes.start(argv, cwd=str(where), env=env, timeout=limit)
        async with followed(process) as pieces:
            async for piece in pieces:
                outputs[piece.stream].add(piece.data)
        return (await process.status()).end


class GloveportEditor:
    """What `ApplyPatchTool` edits files of a sandbox with. Paths begin in `cwd`, or in the workspace."""

    def __init__(self, box: AsyncSandbox, *, cwd: str | None = None) -> None:
        self._box = box
        self._cwd = cwd

    def _path(self, path: str) -> AsyncRemotePath:
        return self._box.path(PurePosixPath(self._box.workspace or "/", self._cwd or "", path))

    async def create_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        text = apply_diff("", operation.diff or "", mode="create")
        await self._path(operation.path).write_text(text, parents=True, exclusive=True)
        return ApplyPatchResult("completed", f"Created {operation.path}")

    async def update_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        path = self._path(operation.path)
        text = apply_diff(await path.read_text(), operation.diff or "")
        if not operation.move_to or self._path(operation.move_to) == path:
            await path.write_text(text)
            return ApplyPatchResult("completed", f"Updated {operation.path}")
        mode = (await path.stat()).mode & 0o777
        await self._path(operation.move_to).write_text(text, mode=mode, parents=True, exclusive=True)
        await path.unlink()
        return ApplyPatchResult("completed", f"Updated {operation.path}, which is {operation.move_to} now")

    async def delete_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        path = self._path(operation.path)
        if (await path.stat(follow_symlinks=False)).is_dir():
            raise IsADirectoryError(f"{operation.path} is a directory")
        await path.unlink()
        return ApplyPatchResult("completed", f"Deleted {operation.path}")
