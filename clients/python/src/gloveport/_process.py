"""Processes of a sandbox."""

from __future__ import annotations

import _thread
import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence

from . import _processes as processes
from ._core import LEAVING
from ._errors import ConflictError, UnreachableError
from ._path import Place
from ._values import Completed, ProcessInfo, ProcessOutput


class Process:
    """A program with pipes that runs in the sandbox, and goes on whether or not somebody follows it."""

    def __init__(self, place: Place, info: ProcessInfo) -> None:
        self._place = place
        #: What was known of it when it was started.
        self.info = info

    @property
    def id(self) -> str:
        """Its id."""
        return self.info.id

    def __repr__(self) -> str:
        return f"Process({self.id!r}, {list(self.info.argv)!r})"

    def status(self) -> ProcessInfo:
        """How it stands. Raises `NotFoundError` when the sandbox has forgotten it."""
        return self._place._transport.run(processes.get(self.id))

    def output(self) -> Iterator[ProcessOutput]:
        """What it writes, from the beginning of what is kept (1 MiB), until it ends.

        Who follows holds it back as a pipe does. A connection that breaks is made again, and the output goes on where
        it was; if the process has written more than 1 MiB by then, this raises `OutputGoneError`, and the process
        goes on.
        """
        return iter(self._place._transport.items(processes.follow(self.id)))

    def wait(self) -> Completed:
        """Waits for its end, and keeps all that it writes."""
        return self._place._transport.run(processes.completed(self.id))

    def write(self, data: bytes) -> None:
        """Gives it input, and returns when the process or its pipe has taken it.

        Raises `ConflictError` if it was started without `stdin`, has ended, or takes nothing for half a minute.
        """
        self._place._transport.run(processes.send_input(self.id, data))

    def close_stdin(self) -> None:
        """Ends its input."""
        self._place._transport.run(processes.close_input(self.id))

    def signal(self, name: str, *, group: bool = False) -> None:
        """Sends it a signal such as `TERM`; with `group` also to what it has started.

        Raises `ConflictError` if it has ended.
        """
        self._place._transport.run(processes.signal(self.id, name, group))

    def remove(self) -> None:
        """Ends it and everything that it started, and forgets it."""
        self._place._transport.run(processes.remove(self.id))


class _Starting:
    """A program that is being started. Only the answer has its id, so it is asked for where no C-c can come between.

    That is another thread, where this is the main one, which alone is told of C-c. They wait for each other by a plain
    lock: what `threading` has beside it is written in Python, and breaks where C-c comes in the middle of it.
    """

    def __init__(
        self,
        place: Place,
        argv: Sequence[str],
        cwd: str | None,
        env: Mapping[str, str] | None,
        stdin: bool,
        tag: str | None,
        timeout: float | None,
    ) -> None:
        self._place = place
        self._asking = processes.start(argv, cwd, env, stdin, tag, timeout)
        self._has_begun = False
        self._is_given_up = False
        self._has_ended = False
        #: Free when it has ended.
        self._end_of_it = threading.Lock()
        self._end_of_it.acquire()
        self._process: Process | None = None
        self._error: BaseException | None = None

    def process(self) -> Process:
        """Waits until it is there."""
        if threading.current_thread() is threading.main_thread():
            _thread.start_new_thread(self._ask, ())
            self._end_of_it.acquire()
        else:
            self._ask()
        if self._process is None:
            assert self._error is not None
            raise self._error
        return self._process

    def _ask(self) -> None:
        self._has_begun = True
        if self._is_given_up:
            return
        try:
            self._process = Process(self._place, self._place._transport.run(self._asking))
        except BaseException as error:
            self._error = error
        self._has_ended = True
        self._end_of_it.release()
        if self._is_given_up:
            self._end()

    def give_up(self) -> None:
        """Ends it, as soon as it is there, if that is soon."""
        self._is_given_up = True
        # One that begins now sees that.
        if self._has_begun and (self._has_ended or self._end_of_it.acquire(timeout=LEAVING)):
            self._end()

    def _end(self) -> None:
        if self._process is not None:
            with contextlib.suppress(Exception):
                self._process.remove()


class Processes:
    """The processes of a sandbox: programs with pipes, whose standard output and standard error are apart."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bool = False,
        tag: str | None = None,
        timeout: float | None = None,
    ) -> Process:
        """Starts a program, without a shell.

        `cwd` is an absolute path, `stdin` gives it an input to write to, `tag` is a name that listings show, and
        after `timeout` seconds it is ended. Raises `ConnectionLostError` if it is not known whether it was started. One
        whose start is left by C-c is ended.
        """
        starting = _Starting(self._place, argv, cwd, env, stdin, tag, timeout)
        try:
            return starting.process()
        except BaseException:
            starting.give_up()
            raise

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Completed:
        """Runs a program to its end. One that is given up on the way, as by C-c, is ended."""
        starting = _Starting(self._place, argv, cwd, env, input is not None, None, timeout)
        try:
            process = starting.process()
            if input is None:
                return process.wait()
            feeder = threading.Thread(target=self._feed, args=(process, input), daemon=True)
            feeder.start()
            completed = process.wait()
            feeder.join()
            return completed
        except UnreachableError:
            # Nobody answers who could end it.
            raise
        except BaseException:
            starting.give_up()
            raise

    @staticmethod
    def _feed(process: Process, data: bytes) -> None:
        # A program may end before it has read everything.
        with contextlib.suppress(ConflictError):
            process.write(data)
            process.close_stdin()

    def list(self) -> list[ProcessInfo]:
        """Those that run, and the latest that ended, in the order of their start."""
        return self._place._transport.run(processes.listed())
