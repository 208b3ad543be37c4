"""OpenHands' own runtimes of hosted services and ours, with the same wish at stand-ins of their own: what they leave is the same, but
for what `differences.py` lists.

    compare.py STAND_IN BINARY SDKS    with the variable SHOW it also prints all that is left

Run with the Python of the reference. It begins again in a root that is thrown away, in a network of its own: what OpenHands starts has
fixed places and ports. Sandboxes are those of the stand-ins, on this machine.
"""

import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from fnmatch import fnmatch
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "browsergym")]

import throwaway  # noqa: E402
from differences import DIFFERENCES, KEPT, NOT_COMPARED  # noqa: E402
from drive import Checks, StandIn  # noqa: E402
from left import left  # noqa: E402
from wish import COMMAND, IMAGES, SAID, SID  # noqa: E402

SERVICES = ("e2b", "daytona", "runloop", "modal")
# Seconds for the reference with all services, and for a command of ours.
LIMIT = 110
OURS = 60
# Ports are those of this machine, and the gateway has no private ones. An image is the name of a snapshot at Daytona, as with OpenHands.
CONFIG = """[extended.e2b]
traffic = "public"
port = 0

[extended.daytona.snapshots]
"daytonaio/sandbox" = "daytonaio/sandbox"

[extended.runloop]
port_url = "TUNNELS"
"""
# What OpenHands' images have, as far as its runtimes know: an environment of Python, in which the server is. Here it is ours.
MICROMAMBA = """#!/bin/sh
case $* in
*poetry\\ config*) exit 0 ;;
esac
while [ "$1" != python ]; do shift; done
shift
exec /openhands/bin/python "$@"
"""


def end(code, words):
    print(words)
    print("third_party: 0 passed, 0 failed, 1 skipped")
    sys.exit(code)


def own_network():
    """A network with nothing but the loopback."""
    os.unshare(os.CLONE_NEWNET)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        # SIOCSIFFLAGS with IFF_UP and IFF_RUNNING.
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh22x", b"lo", 0x1 | 0x40))


def image_of_openhands(binary):
    # OpenHands' user has this number, whoever has it on this machine.
    for path, own in (("/etc/passwd", "openhands:x:1000:1000::/home/openhands:/bin/bash"), ("/etc/group", "openhands:x:1000:")):
        lines = [line for line in Path(path).read_text().splitlines() if line.split(":")[2] != "1000" and line.split(":")[0] != "openhands"]
        Path(path).write_text("\n".join([*lines, own]) + "\n")
    for place in ("/home/openhands", "/openhands/code", "/openhands/bin", "/openhands/micromamba/bin", "/workspace"):
        os.makedirs(place, exist_ok=True)
    os.chown("/home/openhands", 1000, 1000)
    shutil.copy2(binary, "/openhands/bin/python")
    programs = {"/openhands/micromamba/bin/micromamba": MICROMAMBA}
    if not shutil.which("sudo"):
        programs["/usr/local/bin/sudo"] = '#!/bin/sh\nexec "$@"\n'
    for path, text in programs.items():
        Path(path).write_text(text)
        os.chmod(path, 0o755)


class Gateway:
    """A gateway of ours that speaks the API of E2B."""

    def __init__(self, binary):
        self.directory = Path(tempfile.mkdtemp(prefix="third-party-gateway-"))
        key = self.directory / "key"
        key.write_text(secrets.token_hex(32) + "\n")
        key.chmod(0o600)
        environment = surroundings(self.directory)
        words = [binary, "gateway", "--runtime", "local", "--port", "0", "--key-file", str(key), "--e2b"]
        self.log = open(self.directory / "log", "w", encoding="utf-8")
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment, cwd=self.directory
        )
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), f"the gateway did not start: {(self.directory / 'log').read_text()[-2000:]}"
        self.url = line.split()[-1]
        words = [binary, "gateway", "env", "--e2b", "--url", self.url, "--key-file", str(key)]
        lines = subprocess.run(words, check=True, text=True, capture_output=True, env=environment).stdout
        told = subprocess.run(["bash", "-c", f"{lines}\nenv -0"], check=True, capture_output=True, text=True).stdout
        self.variables = dict(pair.split("=", 1) for pair in told.split("\0") if pair.startswith("E2B_"))

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=30)
        self.log.close()


def surroundings(directory):
    """Variables for our programs, which keep what is theirs in a directory."""
    run = directory / "run"
    run.mkdir(mode=0o700, exist_ok=True)
    dropped = ("E2B_", "GLOVEPORT_", "DAYTONA_", "RUNLOOP_", "MODAL_", "SANDBOX_")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(dropped)},
        "HOME": str(directory), "XDG_DATA_HOME": str(directory / "data"), "XDG_STATE_HOME": str(directory / "state"),
        "XDG_RUNTIME_DIR": str(run),
    }  # fmt: skip


class Services:
    """A stand-in of each service."""

    def __init__(self, stand_in, binary):
        self.all = {name: StandIn(stand_in, name) for name in SERVICES if name != "e2b"}
        self.all["e2b"] = Gateway(binary)
        self.variables = {"STAND_INS": json.dumps({name: one.url for name, one in self.all.items()})}
        for one in self.all.values():
            self.variables.update(one.variables)

    def end(self):
        for one in self.all.values():
            one.end()


def reference(services, sdks, found):
    environment = {**os.environ, **services.variables, "PYTHONPATH": sdks}
    words = [sys.executable, str(HERE / "reference.py"), *SERVICES]
    with tempfile.TemporaryFile("w+") as errors:
        try:
            ran = subprocess.run(words, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment, timeout=LIMIT)
            lines = ran.stdout.splitlines()
        except subprocess.TimeoutExpired as error:
            lines = (error.stdout or b"").decode().splitlines()
        errors.seek(0)
        lost = {"error": f"nothing was told; {errors.read()[-3000:]}", "seconds": 0}
        found.update({name: lost for name in SERVICES})
        for line in lines:
            if line.startswith('{"service": '):
                told = json.loads(line)
                found[told["service"]] = told


class Ours:
    """The same wish by our program."""

    def __init__(self, services, binary):
        self.binary = binary
        self.directory = Path(tempfile.mkdtemp(prefix="third-party-ours-"))
        self.environment = {**surroundings(self.directory), **services.variables}
        tunnels = services.variables["TUNNELS"]
        (self.directory / "config.toml").write_text(CONFIG.replace("TUNNELS", tunnels))

    def run(self, service, *words):
        environment = dict(self.environment)
        if service in IMAGES:
            environment["SANDBOX_RUNTIME_CONTAINER_IMAGE"] = IMAGES[service]
        words = [self.binary, "session", "--runtime", service, *words]
        ran = subprocess.run(words, text=True, capture_output=True, env=environment, cwd=self.directory, timeout=OURS)
        assert ran.returncode == 0, f"{words[1:]} ended with {ran.returncode}: {ran.stderr[-2000:]}"
        return ran.stdout.strip()

    def life(self, service, told):
        self.run(service, "start", "--id", SID, "-q")
        told["command"] = [self.run(service, "exec", SID, "--", COMMAND), 0]
        told["made"] = left(service)
        told["command again"] = [self.run(service, "exec", SID, "--", COMMAND), 0]
        told["kept"] = left(service)
        if service == "daytona":
            self.run(service, "pause", SID)
            told["rests"] = left(service)
            self.run(service, "resume", SID)
            told["command at last"] = [self.run(service, "exec", SID, "--", COMMAND), 0]
            told["resumed"] = left(service)
        self.run(service, "rm", "-f", SID)
        told["closed"] = left(service)
        if service == "e2b":
            told["closed and awaited"] = told["closed"]


def ours(services, binary, found):
    side = Ours(services, binary)
    for service in SERVICES:
        told = found[service] = {}
        began = time.monotonic()
        try:
            side.life(service, told)
        except Exception as error:  # noqa: BLE001 - it is told
            told["error"] = f"{type(error).__name__}: {error}"
            subprocess.run([binary, "session", "rm", "-f", SID], capture_output=True, env=side.environment, cwd=side.directory)
        told["seconds"] = round(time.monotonic() - began, 1)


def kept(service, told):
    """What is kept beside sandboxes, without the names that are new each time."""
    if service != "modal":
        return {name: [one for one in all_ if one] for name, all_ in told.items() if all_}
    return {
        "apps": [name for _, name, _ in told["apps"]],
        "images": [commands for _, commands in told["images"]],
        "mounts": [[path for path, _, _ in files] for _, files in told["mounts"]],
        "secrets": [sorted(pairs) for _, pairs in told["secrets"]],
    }


def unlike(one, other):
    """Fields that differ, with what both have."""
    return [(field, one.get(field), other.get(field)) for field in sorted({*one, *other}) if one.get(field) != other.get(field)]


def sandboxes(step, theirs, our):
    """What differs in the sandboxes after a step: their number, or else the fields of the one that there is."""
    numbers = len(theirs), len(our)
    assert max(numbers) <= 1, f"{step}: more than one sandbox for one wish: theirs {theirs}, ours {our}"
    if numbers[0] != numbers[1]:
        return [(f"{step} sandboxes", *numbers)]
    return [found for one, other in zip(theirs, our) for found in unlike(one, other)]


def fits(expected, found):
    return found is not None if expected is ... else expected == found


def wrong(differ, table):
    """What differs and is not listed, or otherwise than listed, and what is listed and does not differ."""
    words, used = {}, set()
    for field, theirs, our in differ:
        patterns = [pattern for pattern in table if fnmatch(field, pattern)]
        used.update(patterns)
        if not any(fits(table[pattern][0], theirs) and fits(table[pattern][1], our) for pattern in patterns):
            words[f"not as listed: {field}: theirs {theirs!r}, ours {our!r}"] = True
    return [*words, *(f"listed, and the same: {pattern}" for pattern in table if pattern not in used)]


def main():
    stand_in, binary, sdks = sys.argv[1:]
    if os.geteuid() != 0 or not throwaway.enter(__file__):
        end(0, "skipped: only root can make a root to throw away, and only where there are overlays")
    own_network()
    image_of_openhands(binary)
    check = Checks("third_party")
    their_services, our_services = Services(stand_in, binary), Services(stand_in, binary)
    os.environ.update(our_services.variables)
    theirs, our = {}, {}
    beside = threading.Thread(target=reference, args=(their_services, sdks, theirs))
    beside.start()
    ours(our_services, binary, our)
    beside.join()
    if "SHOW" in os.environ:
        print(json.dumps({"theirs": theirs, "ours": our}, indent=1))
    for service in SERVICES:
        one, other = theirs[service], our[service]

        def ended(one=one, other=other):
            assert "error" not in one, f"theirs: {one['error']}"
            assert "error" not in other, f"ours: {other['error']}"

        check(f"{service}: both are made, used, used again and closed ({one['seconds']} s and {other['seconds']} s)", ended)

        def commands(one=one, other=other):
            for step in [step for step in {**one, **other} if step.startswith("command")]:
                assert one[step] == other[step] == SAID, (step, one[step], other[step])

        check(f"{service}: a command says the same to both", commands)
        steps = [step for step in ("made", "kept", "rests", "resumed", "closed", "closed and awaited") if step in one or step in other]

        def fields(service=service, one=one, other=other, steps=steps):
            differ = [found for step in steps for found in sandboxes(step, one[step]["sandboxes"], other[step]["sandboxes"])]
            beside = [
                found for step in steps for found in unlike(kept(service, one[step]["kept"]), kept(service, other[step]["kept"]))
            ]
            words = wrong(differ, DIFFERENCES[service]) + wrong(beside, KEPT[service])
            assert not words, "\n".join(words)

        number = len(DIFFERENCES[service]) + len(KEPT[service])
        check(f"{service}: what is left after {', '.join(steps)} is the same but for {number} listed differences", fields)
        check(
            f"{service}: {'it is' if service == 'e2b' else 'it cannot be'} made as OpenHands makes it",
            lambda service=service, one=one: (one["constructor"] is None) == (service == "e2b"),
        )
    for words in NOT_COMPARED:
        print(f"not compared: {words}")
    their_services.end()
    our_services.end()
    check.end()


main()
