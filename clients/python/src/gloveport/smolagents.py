"""smolagents: a `CodeAgent` whose code runs in a kernel of a sandbox.

with Sandbox(plugins=["jupyter"]) as box:
    print(CodeAgent(tools=[], model=model, executor=GloveportExecutor(box)).run("How many files are here?"))
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from smolagents.local_python_executor import CodeOutput
from smolagents.monitoring import AgentLogger, LogLevel
from smolagents.remote_executors import RemotePythonExecutor
from smolagents.tools import Tool
from smolagents.utils import AgentExecutionError, truncate_content

from ._errors import NotFoundError, ServerFailedError
from ._sandbox import Sandbox
from ._shell import LIMIT
from ._values import Cell

__all__ = ["GloveportExecutor"]

#: Most characters of what code prints that an agent gets, unless it is said otherwise.
KEEP = 50_000
# The colours of IPython's tracebacks.
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
INSTALL = """
def _install(*names):
    import subprocess, sys
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *names]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise RuntimeError("pip cannot install " + " ".join(names) + ": " + done.stdout.decode()[-2000:])

_install(*{names!r})
del _install
"""


class GloveportExecutor(RemotePythonExecutor):
    """What a `CodeAgent` runs its code with: a kernel of a sandbox, which is started with this object.

    `packages` are installed for the kernel's Python. `timeout` are the most seconds of a step's code, and `keep` the
    most characters of what it prints; of more, the beginning and the end are kept. Agents of the same sandbox have
    variables of their own if their `kernel` has another name. What comes out of the sandbox is never unpickled.

    Raises `ServerFailedError` with what to do if the sandbox has no kernel.
    """

    def __init__(
        self,
        box: Sandbox,
        *,
        packages: Sequence[str] = (),
        kernel: str = "default",
        timeout: float = LIMIT,
        keep: int = KEEP,
    ) -> None:
        # Agents log what goes wrong with a step.
        super().__init__(list(packages), AgentLogger(level=LogLevel.OFF), allow_pickle=False)
        self._box = box
        self._kernel = kernel
        self._timeout = timeout
        self._keep = keep
        self._variables: dict[str, Any] = {}
        self._tools: dict[str, Tool] = {}
        self._is_lost = False
        self._cell("pass")
        self.installed_packages = self.install_packages(self.additional_imports)

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        """Runs code in the kernel. Raises `AgentExecutionError`, which the model is told, if it does not end well."""
        if self._is_lost:
            self._is_lost = False
            super().send_variables(self._variables)
            super().send_tools(self._tools)
        cell = self._cell(code)
        self._is_lost = cell.reason == "died" or cell.kernel_lost_before
        logs = cell.stdout + cell.stderr
        if cell.kernel_lost_before:
            logs += "[the kernel had ended before this code, so variables of earlier code were not there]\n"
        logs = truncate_content(logs, self._keep)
        if cell.reason == "completed":
            return CodeOutput(truncate_content(cell.text, self._keep) if cell.text else None, logs, False)
        if cell.error is not None and cell.error.name == self.FINAL_ANSWER_EXCEPTION:
            try:
                return CodeOutput(self._deserialize_final_answer(cell.error.value), logs, True)
            except Exception as error:
                raise self._failure(logs, f"the final answer cannot be read: {error}") from error
        raise self._failure(logs, self._told(cell))

    def _cell(self, code: str) -> Cell:
        try:
            return self._box.run_code(code, kernel=self._kernel, timeout=self._timeout)
        except NotFoundError as error:
            raise ServerFailedError(
                error.message, remedy='start the sandbox with `plugins=["jupyter"]`', code=error.code
            ) from error
        except ServerFailedError as error:
            if error.code != "kernel_failed":
                raise
            remedy = (
                "the sandbox needs a Python with ipykernel: an image of `gloveport image build --jupyter`, or "
                '`Sandbox(plugins=["jupyter"], env={"VIRTUAL_ENV": "/path/of/an/environment/that/has/it"})`'
            )
            raise ServerFailedError(error.message, remedy=remedy, code=error.code) from error

    def _told(self, cell: Cell) -> str:
        if cell.reason == "timed_out":
            return f"The code did not end within {self._timeout:g} seconds, and was interrupted."
        if cell.reason == "died":
            return "The code ended the kernel. Its variables are gone; tools are there again."
        if cell.error is None:
            return f"The code did not come to its end: {cell.reason}"
        return truncate_content(COLOURS.sub("", "\n".join(cell.error.traceback)), self._keep)

    def _failure(self, logs: str, why: str) -> AgentExecutionError:
        return AgentExecutionError(f"{logs}\n{why}" if logs else why, self.logger)

    def send_variables(self, variables: dict[str, Any]) -> None:
        self._variables = variables
        super().send_variables(variables)

    def send_tools(self, tools: dict[str, Tool]) -> None:
        self._tools = tools
        super().send_tools(tools)

    def install_packages(self, additional_imports: list[str]) -> list[str]:
        if additional_imports:
            self.run_code_raise_errors(INSTALL.format(names=tuple(additional_imports)))
        return additional_imports

    def _patch_final_answer_with_exception(self, final_answer_tool: Tool) -> None:
        # A tool is patched once: an agent sends its tools with each run, and the second patch would call itself.
        if not hasattr(final_answer_tool, "_forward"):
            super()._patch_final_answer_with_exception(final_answer_tool)
