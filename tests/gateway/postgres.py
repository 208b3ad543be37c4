"""A PostgreSQL of a test's own."""

import glob
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

# The user and group that it runs as where the test is root, which PostgreSQL refuses to be.
NOBODY = 65534
PASSWORD = "hunter2-of-postgres"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def programs():
    """The directory with the programs of the server, or None."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin")) + os.environ.get("PATH", "").split(os.pathsep)
    return next((path for path in found if os.path.isfile(os.path.join(path, "initdb"))), None)


class Postgres:
    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="gloveport-postgres-")
        self.port = free_port()
        password = os.path.join(self.directory, "password")
        with open(password, "w") as file:
            file.write(PASSWORD)
        self.user = {}
        if os.geteuid() == 0:
            for path in (self.directory, password):
                os.chown(path, NOBODY, NOBODY)
            self.user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        data = os.path.join(self.directory, "data")
        self._program(
            "initdb", "--no-sync", "--locale=C", "--encoding=UTF8", "--username=gateway", "--auth=scram-sha-256",
            "--pwfile", password, "--pgdata", data,
        ).wait(60)
        settings = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "max_connections=100")
        words = [word for setting in settings for word in ("-c", setting)]
        self.server = self._program("postgres", "-D", data, "-p", str(self.port), *words)
        deadline = time.monotonic() + 60
        while self._program("pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)).wait(30) != 0:
            if self.server.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("PostgreSQL does not start")
            time.sleep(0.1)

    def _program(self, name, *words):
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen([os.path.join(programs(), name), *words], cwd="/", **quiet, **self.user)

    def url(self):
        return f"postgres://gateway:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def end(self):
        self.server.send_signal(signal.SIGQUIT)
        self.server.wait(30)
        shutil.rmtree(self.directory, ignore_errors=True)
