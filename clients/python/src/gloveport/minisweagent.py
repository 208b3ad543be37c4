"""mini-swe-agent: environments that are sandboxes of gloveport.

mini --config mini.yaml --config environment.environment_class=gloveport.minisweagent.GloveportEnvironment
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import contextlib
from typing import Any

from minisweagent.exceptions import Submitted
from minisweagent.utils.serialize import recursive_merge
from pydantic import Field

from ._errors import GloveportError
from ._inside import kept
from ._process import Process
from ._sandbox import Sandbox
from ._settings import SandboxSettings
from ._shell import KEEP, SHELL, TOGETHER, Ends

__all__ = ["GloveportEnvironment", "GloveportEnvironmentConfig"]

#: What an agent says first when it is done.
DONE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


class GloveportEnvironmentConfig(SandboxSettings):
    """What an environment starts, and how it runs commands."""

    #: Where commands begin; the workspace if it is empty.
    cwd: str = ""
    #: Seconds that a command may take.
    timeout: int = 30
    #: What commands are given to.
    interpreter: list[str] = Field(default_factory=lambda: list(SHELL))
    #: Most bytes of output; of more, the beginning and the end are kept.
    keep: int = KEEP


class GloveportEnvironment:
    """A sandbox, which ends with `cleanup`, with this object, and with this process."""

    def __init__(self, *, config_class: type = GloveportEnvironmentConfig, **kwargs: Any) -> None:
        self.config = config_class(**kwargs)
        self._box = self.config.described(Sandbox)
        with kept(self._box):
            told = self._box.processes.run(["/bin/sh", "-c", "uname -s; uname -n; uname -r; uname -v; uname -m"])
        names = ("system", "node", "release", "version", "machine")
        self._system = dict(zip(names, told.stdout.decode().splitlines(), strict=False))

    def execute(self, action: dict[str, Any], cwd: str = "", *, timeout: int | None = None) -> dict[str, Any]:
        """Runs the command of an action. Raises `Submitted` if the agent says that it is done."""
        limit = timeout or self.config.timeout
        argv = [*TOGETHER, *self.config.interpreter, action.get("command", "")]
        output: dict[str, Any] = {"output": "", "returncode": -1, "exception_info": ""}
        try:
            where = cwd or self.config.cwd or self._box.workspace
            self._follow(self._box.processes.start(argv, cwd=where, timeout=limit), limit, output)
        except (GloveportError, TimeoutError) as error:
            output["exception_info"] = f"An error occurred while executing the command: {error}"
            output["extra"] = {"exception_type": type(error).__name__, "exception": str(error)}
        first, _, rest = output["output"].lstrip().partition("\n")
        if first.strip() == DONE and output["returncode"] == 0:
            extra = {"exit_status": "Submitted", "submission": rest}
            raise Submitted({"role": "exit", "content": rest, "extra": extra})
        return output

    def _follow(self, process: Process, limit: int, output: dict[str, Any]) -> None:
        """Waits for the end of a process. One that is given up on the way, as by C-c, is ended."""
        written = Ends(self.config.keep)
        try:
            for piece in process.output():
                written.add(piece.data)
        except BaseException:
            with contextlib.suppress(GloveportError):
                process.remove()
            raise
        finally:
            output["output"] = written.text()
        end = process.status().end
        if end is None or end.timed_out:
            raise TimeoutError(f"the command did not end within {limit} seconds")
        output["returncode"] = -(end.signal or 1) if end.exit_code is None else end.exit_code

    def get_template_vars(self, **kwargs: Any) -> dict[str, Any]:
        """What templates of prompts know of the environment."""
        return recursive_merge(self.config.model_dump(), self._system, kwargs)

    def serialize(self) -> dict[str, Any]:
        """What is written into the trajectory."""
        kind = f"{type(self).__module__}.{type(self).__name__}"
        config = {"environment": self.config.model_dump(mode="json"), "environment_type": kind}
        return {"info": {"config": config}}

    def cleanup(self) -> None:
        """Ends the sandbox. Twice is not an error."""
        self._box.close()
