"""Sessions that the program starts for us, and that end with us.

A guard is a shell that starts the session, waits on a pipe, and removes the session when the pipe is closed. This
process holds the only other end, which the kernel closes when it ends, however it ends. Closing a sandbox is the
same: the pipe is closed. The guard starts the session itself, so that there is no moment in which a session has no
guard.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import _errors as errors
from ._program import ask, failed, find_program, objects, unusable
from ._values import Secret

if TYPE_CHECKING:
    import subprocess

#: Words: program, id, runtime (may be empty), and the command of `session` that starts it. Until it is there, signals
#: are for the program, which gives it up; afterwards only the pipe counts.
GUARD = """
program=$1 id=$2 runtime=$3
shift 3
session() { "$program" session ${runtime:+--runtime "$runtime"} "$@"; }
trap : INT TERM HUP
session "$@" </dev/null && session env --json "$id" </dev/null
trap '' INT TERM HUP
exec >/dev/null
while read -r _; do :; done
session rm -f "$id"
"""


@dataclass(frozen=True)
class Session:
    """A session, and where its sandbox is."""

    id: str
    url: str
    key: str | None = field(repr=False)
    runtime: str = ""
    workspace: str | None = None
    urls: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    #: The id of the sandbox at its gateway, if a gateway told of it.
    at_gateway: str | None = None


@dataclass(frozen=True)
class Plan:
    """What a session is started with."""

    runtime: str
    image: str | None = None
    workspace: str | os.PathLike[str] | None = None
    env: Mapping[str, str] | None = None
    secrets: Mapping[str, str | Secret] | None = None
    isolation: str | None = None
    network: str | Sequence[str] | None = None
    memory: str | None = None
    ports: Mapping[str, int] | None = None
    plugins: Sequence[str] = ()
    labels: Mapping[str, str] | None = None
    flags: Sequence[str] = ()
    #: The session that it has the files and settings of, where it is a fork.
    parent: str | None = None

    def words(self, id: str) -> list[str]:
        """The command of `session` that starts it.

        Values of secrets are not in it, since arguments can be seen by others.
        """
        if self.parent is not None:
            return ["fork", "--quiet", "--json", "--id", id, self.parent]
        network = self.network if self.network is None or isinstance(self.network, str) else ",".join(self.network)
        single = {
            "image": self.image,
            "workspace": self.workspace,
            "isolation": self.isolation,
            "network": network,
            "memory": self.memory,
        }
        words = [f"--{flag}={os.fspath(value)}" for flag, value in single.items() if value is not None]
        words += [f"--env={name}={value}" for name, value in (self.env or {}).items()]
        for name, secret in (self.secrets or {}).items():
            hosts = secret.hosts if isinstance(secret, Secret) else ()
            words.append(f"--secret={name}" + (f"@{','.join(hosts)}" if hosts else ""))
        words += [f"--port={name}:{port}" for name, port in (self.ports or {}).items()]
        words += [f"--plugin={name}" for name in self.plugins]
        words += [f"--label={name}={value}" for name, value in (self.labels or {}).items()]
        return ["start", "--quiet", "--json", "--id", id, *words, *self.flags]

    def environment(self) -> dict[str, str]:
        """The variables of the program, which takes secrets from them."""
        given = {
            name: secret.value if isinstance(secret, Secret) else secret
            for name, secret in (self.secrets or {}).items()
        }
        return {**os.environ, **given}


class Guard:
    """A session of our own."""

    def __init__(self, plan: Plan) -> None:
        # They take long to import, and are needed with the first sandbox.
        import subprocess
        import tempfile

        if os.name != "posix":
            raise errors.SessionError(
                "sessions are started on Linux and macOS only",
                remedy="use `connect` with the URL of a sandbox elsewhere",
            )
        self._id = f"py-{os.urandom(8).hex()}"
        self._runtime = plan.runtime
        self._program = find_program()
        self._errors = tempfile.TemporaryFile()
        held, pipe = os.pipe()
        # Closed with this object, too, if nobody has ended it.
        self._pipe = open(pipe, "wb", buffering=0)
        try:
            self._process = subprocess.Popen(
                [
                    "/bin/sh",
                    "-c",
                    GUARD,
                    "gloveport-guard",
                    self._program,
                    self._id,
                    plan.runtime,
                    *plan.words(self._id),
                ],
                stdin=held,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=plan.environment(),
                start_new_session=True,
            )
        except BaseException:
            self._pipe.close()
            raise
        finally:
            os.close(held)
        _GUARDS.add(self)

    def started(self) -> Session:
        """Waits until the session is there.

        Raises `SessionError` with what the program said if it cannot be started.
        """
        assert self._process.stdout is not None
        with self._process.stdout as printed:
            text = printed.read()
        self._errors.seek(0)
        told = self._errors.read()
        shown = objects(text)
        if len(shown) != 2:
            self.give_up()
            if told.startswith(b"gloveport-guard: "):
                # The shell, of a program that it cannot run.
                raise unusable(self._program, told.decode("utf-8", "replace").strip().rpartition(": ")[2])
            raise failed(told, self._program)
        return _session(*shown)

    def give_up(self) -> None:
        """Ends the session without waiting for it, also one that is being started."""
        import signal

        if self._close_pipe() and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)

    def end(self) -> None:
        """Ends the session, and waits until nothing is left of it.

        Raises `SessionError` if it could not be ended; one that has ended by itself is no error.
        """
        if not self._close_pipe():
            return
        begun = self._errors.seek(0, os.SEEK_END)
        code = self._process.wait()
        if code < 0:
            # Somebody has killed the guard.
            code = self._ask("rm", "--force", self._id).returncode
        if code != 0 and self._is_there():
            self._errors.seek(begun)
            raise errors.SessionError(
                f"the session `{self._id}` could not be ended: {failed(self._errors.read(), self._program).message}",
                remedy=f"try `gloveport session rm -f {self._id}`",
            )
        self._errors.close()

    def _is_there(self) -> bool:
        listed = self._ask("ls", "--quiet")
        return listed.returncode != 0 or self._id.encode() in listed.stdout.split()

    def _ask(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        import subprocess

        runtime = ["--runtime", self._runtime] if self._runtime else []
        return subprocess.run(
            [self._program, "session", *runtime, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            check=False,
        )

    def _close_pipe(self) -> bool:
        was_open = not self._pipe.closed
        self._pipe.close()
        return was_open

    def leave_to_parent(self) -> None:
        """In a forked process: the session is the parent's, and ends with that one alone."""
        self._pipe.close()


_GUARDS: weakref.WeakSet[Guard] = weakref.WeakSet()


def _leave_all_to_parent() -> None:
    for guard in list(_GUARDS):
        guard.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all_to_parent)


def find(id: str, runtime: str | None) -> Session:
    """A session that runs. Raises `SessionError` if there is none of this id."""
    words = ["session", *(["--runtime", runtime] if runtime else [])]
    return _session(ask([*words, "show", "--json", id]), ask([*words, "env", "--json", id]))


def _session(shown: Mapping[str, object], environment: Mapping[str, object]) -> Session:
    """A session as `session show --json` and `session env --json` print it."""

    def text(value: object) -> str | None:
        return value if isinstance(value, str) else None

    def texts(value: object) -> dict[str, str]:
        return {str(name): str(each) for name, each in value.items()} if isinstance(value, dict) else {}

    url = text(environment.get("GLOVEPORT_URL"))
    if url is None:
        raise errors.SessionError(f"the session `{shown.get('session_id')}` has no URL")
    return Session(
        id=text(shown.get("session_id")) or "",
        url=url,
        key=text(environment.get("GLOVEPORT_KEY")),
        runtime=text(shown.get("provider")) or "",
        workspace=text(shown.get("workspace")),
        urls=texts(shown.get("urls")),
        labels=texts(shown.get("labels")),
    )
