"""What programs share that try how much one of our servers bears: checks, and the server's life.

A program with `--large` among its words does it in full sizes, and prints what it measures.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

LARGE = "--large" in sys.argv
MIB = 1024 * 1024

COUNTS = {"passed": 0, "FAILED": 0, "skipped": 0}
# Where checks are printed. Clients may print on the standard output, too.
OUT = sys.stdout


def tell(word, what):
    COUNTS[word] += 1
    print(f"{word:<7} scale: {what}", file=OUT, flush=True)


def check(what, is_so, told=""):
    tell("passed" if is_so else "FAILED", what if is_so else f"{what}: {str(told)[:500]}")


def measured(what):
    if LARGE:
        print(f"        {what}", file=OUT, flush=True)


def finish():
    """Prints the last line, and ends the program."""
    print(f"{COUNTS['passed']} passed, {COUNTS['FAILED']} failed, {COUNTS['skipped']} skipped", file=OUT, flush=True)
    sys.exit(COUNTS["FAILED"] > 0)


def until(is_so, limit=20):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if is_so():
            return True
        time.sleep(0.02)
    return False


def has_room(what, directory, size):
    """Whether there is room for files of that size, with a gigabyte for others; else the part is skipped."""
    is_so = shutil.disk_usage(directory).free > size + 1024 * MIB
    if not is_so:
        tell("skipped", f"{what}: there is no room for {size // MIB} MiB")
    return is_so


class Process:
    """Our program by another name, in a directory of its own that may have been another one's before."""

    def __init__(self, binary, name, directory):
        self.binary, self.directory = os.path.realpath(binary), Path(directory)
        self.work, self.program = self.directory / "work", self.directory / "bin" / name
        for place in (self.work, self.directory / "home", self.directory / "temporary", self.program.parent):
            place.mkdir(parents=True, exist_ok=True)
        if not self.program.exists():
            self.program.symlink_to(self.binary)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self, *words, **variables):
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.directory / "home"), "TERM": "xterm", "LANG": "C.UTF-8",
            "TMPDIR": str(self.directory / "temporary"),
        }  # fmt: skip
        self.began = time.monotonic()
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "--host", "127.0.0.1", "--port", str(self.port), *words],
                cwd=self.work, env=environment | variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def listens(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
            return True
        return False

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def peak(self):
        """The most memory that it has had, in bytes."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        raise LookupError("the kernel does not tell the peak")


@contextlib.contextmanager
def serving(server):
    """Waits until it listens; ends it, and removes its directory, in the end."""
    try:
        if not until(server.listens):
            raise TimeoutError("the server does not listen")
        yield server
    finally:
        server.end()
        shutil.rmtree(server.directory, ignore_errors=True)
