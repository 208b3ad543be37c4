"""Starts the reference's server and ours, each in an empty home."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

# The variable by which whatever a server has started is known; the reference leaves kernels behind.
MARK = "GLOVEPORT_TEST_HOME"
# The plugins of a notebook.
NOTEBOOK = ("--plugins", "agent_skills", "jupyter")

# A test that runs out of time must not leave its servers behind.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def start_reference(home, servers, key=None, own_home=False, plugins=()):
    """Port and working directory of the reference's server. With `own_home` its tools have that home, not the user's."""
    command = [sys.executable, "-u", "-m", "openhands.runtime.action_execution_server"]
    return start(command, home, servers, key, own_home, plugins)


def start_ours(binary, home, servers, key=None, own_home=False, plugins=()):
    """Port and working directory of our server. With `own_home` its tools have that home, not the user's."""
    return start([binary, "action-execution-server"], home, servers, key, own_home, plugins)


def start(command, home, servers, key, own_home, plugins):
    port = free_port()
    work = os.path.join(home, "work")
    os.makedirs(work)
    environment = {**os.environ, "HOME": home, "NO_CHANGE_TIMEOUT_SECONDS": "2", "LOG_LEVEL": "ERROR", MARK: home}
    if plugins:
        environment.update(notebook_environment())
    for name in ("SESSION_API_KEY", "RUST_BACKTRACE"):
        environment.pop(name, None)
    if own_home:
        environment["SU_TO_USER"] = "false"
    if key:
        environment["SESSION_API_KEY"] = key
    words = [str(port), "--working-dir", work, "--username", "root", "--user-id", "0", "--no-enable-browser", *plugins]
    server = subprocess.Popen(
        command + words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )
    server.mark = f"{MARK}={home}".encode()
    servers.append(server)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/alive", timeout=5).read()
            return port, work
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"{command[0]} did not start")


def notebook_environment():
    """Variables with which both find the same Python, and which the reference's notebook needs outside of its image."""
    bin = os.path.dirname(sys.executable)
    return {
        "PATH": f"{bin}:{os.environ['PATH']}", "VIRTUAL_ENV": os.path.dirname(bin), "USER": "root",
        "LOCAL_RUNTIME_MODE": "1", "OPENHANDS_REPO_PATH": "/",
    }


def stop(servers):
    """Ends the servers and all that they started."""
    for server in servers:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            # The reference waits for a kernel that it has lost.
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if marked(pid, server.mark):
                    os.kill(int(pid), signal.SIGKILL)
            except OSError:
                pass  # It has ended meanwhile.


def marked(pid, mark):
    """Whether a server has started this process. The one of tmux serves all who use tmux, whoever came first."""
    with open(f"/proc/{pid}/environ", "rb") as environment, open(f"/proc/{pid}/comm") as name:
        return mark in environment.read().split(b"\0") and not name.read().startswith("tmux")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
