"""Tries the ways out of attempts.py in a sandbox of a level of isolation, and in one of the level `none`.

usage: escape.py BINARY SCRATCH LEVEL [IMAGE [FIRST]]

LEVEL is `files`, `container` or `gvisor`; with IMAGE the root directory of the container is made from one that has Python as /usr/bin/python3.
FIRST is the first of the numbers that the system gives this user for others; their owners are tried, too.
Each has to fail inside of the first and to succeed in the second, so that it is known to try what it says. Nothing
outside may have changed after the first. What a container has of its own is there in it, and is not what is outside. Files for it go into SCRATCH, which must not be there. Prints one line a check;
the last line counts them.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from attempts import OWN

HERE = Path(__file__).resolve().parent
LIBC = ctypes.CDLL(None, use_errno=True)
COUNTS = {"passed": 0, "FAILED": 0, "skipped": 0}
LIMIT = 420
# How the system says that nobody may do something here, and how many attempts must be known to try what they say.
REFUSALS = ("PermissionError", "Operation not permitted", "Permission denied", "Function not implemented")
ENOUGH = 100
# Levels of which each sandbox has a root directory of its own.
WITH_ROOT = ("container", "gvisor")
# What a kernel of its own grants, because it is nobody else's: namespaces, its messages and priorities, what its /proc tells of
# the server, whose variables and names are no secrets. Changed modes of files that are only read are said to be, and are not. A
# program that runs can be written to, where its system is the sandbox's own.
OF_KERNEL = ("a namespace is made: ", "a process is made in a new namespace", "a directory is bound to another place in namespaces",
    "the root directory is exchanged in namespaces", "messages of the kernel are read", "the own priority is raised",
    "variables of the server of this sandbox are read", "the descriptors of the server of this sandbox are named",
    "the namespaces of the server of this sandbox are opened", "the program of a reader of documents is changed", "the program that this one was started by is written to")  # fmt: skip
# Number of a process that a sandbox does not come to.
FIRST_PROCESS = 4000

# A process with secrets, of the same user.
VICTIM = """
import ctypes, os, signal, sys
memory = ctypes.create_string_buffer(b"memory of another process" + bytes(100))
file = os.open(sys.argv[1], os.O_RDONLY)
def told(*_):
    with open(sys.argv[2], "a") as signals:
        signals.write("x")
signal.signal(signal.SIGUSR1, told)
print(ctypes.addressof(memory), file, flush=True)
while True:
    signal.pause()
"""


def tell(result, what, why=""):
    COUNTS[result] += 1
    print(f"{result}  {what}{': ' + str(why) if why else ''}", flush=True)


def check(what, is_so, why=""):
    tell("passed" if is_so else "FAILED", what, "" if is_so else why or "it is not so")


def answering(family, kind, address, secret):
    """A server that tells the secret to whoever comes."""
    server = socket.socket(family, kind)
    server.bind(address)

    def streams():
        server.listen()
        while True:
            client, _ = server.accept()
            # Who comes may be gone.
            with client, contextlib.suppress(OSError):
                client.sendall(secret)

    def datagrams():
        while True:
            _, sender = server.recvfrom(1000)
            if sender:
                server.sendto(secret, sender)

    threading.Thread(target=datagrams if kind == socket.SOCK_DGRAM else streams, daemon=True).start()
    return server


class Outside:
    """What must not be reached, and all that is needed to reach it."""

    def __init__(self, binary, scratch):
        self.binary, self.scratch = binary, scratch
        self.secret = secrets.token_hex(16)
        for name in ("home", "temporary", "own", "process", "state"):
            (scratch / name).mkdir(mode=0o755)
        self.environment = os.environ | {"HOME": str(scratch / "home"), "XDG_STATE_HOME": str(scratch / "state")}
        for name in ("GLOVEPORT_RUNTIME", "GLOVEPORT_URL"):
            self.environment.pop(name, None)
        self.sessions = []

    def gloveport(self, *arguments, **options):
        command = [self.binary, *map(str, arguments)]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, **options)

    def session(self, *flags):
        made = self.gloveport("session", "start", "--quiet", "--runtime", "local", *flags, timeout=60)
        assert made.returncode == 0, made.stderr
        self.sessions.append(made.stdout.strip())
        shown = json.loads(self.gloveport("session", "show", "--json", self.sessions[-1]).stdout)
        shown = shown[0] if isinstance(shown, list) else shown
        return self.sessions[-1], int(shown["url"].rsplit(":", 1)[1])

    def fill(self, directory):
        (directory / "secret.txt").write_text(f"{self.secret}: not found\n")
        for name in ("rename", "move", "replace", "remove-inside", "remove-outside", "write", "cut", "cut-too", "run"):
            (directory / f"to-{name}").write_text("as it was\n")
        for name in ("inside", "outside"):
            (directory / f"directory-to-remove-{name}").mkdir()

    def places(self):
        scratch, secret = self.scratch, self.secret.encode()
        home, temporary, own = scratch / "home", scratch / "temporary", scratch / "own"
        self.fill(home)
        self.fill(temporary)
        (own / "signals").write_text("")
        victim_environment = {"SECRET": self.secret, "PATH": os.environ["PATH"]}
        arguments = [sys.executable, "-S", "-c", VICTIM, home / "secret.txt", own / "signals"]
        # A container counts its processes from one on, and has none of this number.
        number = 0
        while number < FIRST_PROCESS:
            number = os.fork()
            if number == 0:
                os._exit(0)
            os.waitpid(number, 0)
        self.victim = subprocess.Popen(arguments, cwd=scratch / "process", env=victim_environment, stdout=subprocess.PIPE)
        address, descriptor = map(int, self.victim.stdout.readline().split())
        other, other_port = self.session("--label", f"note={self.secret}")
        record = scratch / "state/gloveport/local/sandboxes" / other / "sandbox.json"
        self.servers = [
            answering(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0), secret),
            answering(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0), secret),
            answering(socket.AF_UNIX, socket.SOCK_STREAM, str(scratch / "service"), secret),
            answering(socket.AF_UNIX, socket.SOCK_STREAM, str(scratch / "engine.sock"), secret),
            answering(socket.AF_UNIX, socket.SOCK_SEQPACKET, str(scratch / "packets"), secret),
            answering(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.secret}", secret),
            answering(socket.AF_UNIX, socket.SOCK_DGRAM, str(scratch / "datagrams"), secret),
        ]
        newer = 0
        try:
            self.servers.append(answering(socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0), secret))
            newer = self.servers[-1].getsockname()[1]
        except OSError:
            pass
        self.terminal = os.openpty()
        shared = Path(f"/dev/shm/gloveport-{self.secret}")
        shared.write_text(self.secret)
        self.shared = shared
        # IPC_PRIVATE, IPC_CREAT
        self.shm = LIBC.shmget(0, 4096, 0o1600)
        LIBC.shmat.restype = ctypes.c_void_p
        ctypes.memmove(LIBC.shmat(self.shm, None, 0), secret, len(secret))
        self.msg = LIBC.msgget(0, 0o1600)
        LIBC.msgsnd(self.msg, (1).to_bytes(8, "little") + secret, len(secret), 0)
        self.queue = f"gloveport-{self.secret}"
        number = {"x86_64": 240, "aarch64": 180}[os.uname().machine]
        LIBC.syscall(number, self.queue.encode(), os.O_CREAT | os.O_RDWR, 0o600, None)
        key = {"x86_64": 248, "aarch64": 217}[os.uname().machine]
        LIBC.syscall(key, b"user", self.queue.encode(), secret, len(secret), -4)
        with_rights = scratch / "with-rights"
        shutil.copy(shutil.which("true"), with_rights)
        with_rights.chmod(0o4755)
        shutil.copy(shutil.which("true"), own / "program")
        return {
            "secret": self.secret, "home": str(home), "own": str(own), "tests": str(HERE),
            "files": {
                "a file of the home directory": str(home / "secret.txt"),
                "the key of another sandbox": str(record),
                "a temporary file of another program": str(temporary / "secret.txt"),
            },
            "directories": {"home directory": str(home), "temporary directory": str(temporary)},
            "process": self.victim.pid, "process_directory": str(scratch / "process"), "address": address,
            "descriptor": descriptor, "signalled": self.victim.pid, "signals": str(own / "signals"),
            "shared_memory": str(shared), "shm": self.shm, "msg": self.msg, "queue": self.queue, "key_name": self.queue,
            "tcp": self.servers[0].getsockname()[1], "udp": self.servers[1].getsockname()[1], "tcp6": newer,
            "unix": str(scratch / "service"), "engine": str(scratch / "engine.sock"), "abstract": self.secret,
            "datagram": str(scratch / "datagrams"), "packets": str(scratch / "packets"), "other": other_port, "terminal": os.ttyname(self.terminal[1]),
            "own_network": True, "with_rights": str(with_rights), "can_have_rights": os.geteuid() == 0, "program_copy": str(own / "program"),
        }  # fmt: skip

    def state(self):
        """All that is outside, as it is now."""
        found = {}
        for top in ("home", "temporary"):
            for path in sorted((self.scratch / top).rglob("*")):
                # The history of the client, which is outside.
                if ".openhands" in path.parts:
                    continue
                status = path.lstat()
                text = path.read_text() if path.is_file() else ""
                found[str(path)] = (status.st_mode, status.st_size, text)
        return found

    def shown(self):
        """What somebody has written to the terminal."""
        leader = self.terminal[0]
        fcntl.fcntl(leader, fcntl.F_SETFL, os.O_NONBLOCK)
        try:
            return os.read(leader, 1000)
        except BlockingIOError:
            return b""

    def end(self):
        for session in self.sessions:
            self.gloveport("session", "rm", "--force", session, timeout=60)
        with_all = [getattr(self, "victim", None)]
        for process in filter(None, with_all):
            process.kill()
            process.wait()
        for path in filter(None, [getattr(self, "shared", None)]):
            path.unlink(missing_ok=True)
        if hasattr(self, "shm"):
            LIBC.shmctl(self.shm, 0, None)
            LIBC.msgctl(self.msg, 0, None)
            LIBC.syscall({"x86_64": 241, "aarch64": 181}[os.uname().machine], self.queue.encode())


def python_places():
    """Where the Python is that runs this, as far as it is not the system's."""
    places = {os.path.realpath(place) for place in (sys.prefix, sys.base_prefix, os.path.dirname(sys.executable))}
    return [flag for place in sorted(places) for flag in ("--allow-read", place)]


def tried(outside, session, port, places, python, is_outside):
    file = outside.scratch / "own/places.json"
    file.write_text(json.dumps(places | {"server_port": port}))
    variables = "OUTSIDE=1 " if is_outside else ""
    command = f"{variables}{python} -S {HERE}/attempts.py {file}"
    done = outside.gloveport("session", "exec", session, command, timeout=LIMIT)
    found = {}
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            one = json.loads(line)
            found[one["name"]] = one
    assert found, done.stdout[-500:] + done.stderr[-500:]
    return found


# What works in a container beside that.
IN_CONTAINER = {
    "there is a /tmp of its own": "test \"$TMPDIR\" = /tmp && echo a > /tmp/x && rm /tmp/x && echo a > /var/tmp/x && test -e /tmp/x",
    "the root directory is closed": "! touch /x 2>/dev/null && ! touch /usr/x 2>/dev/null && ls / > /dev/null",
    "only its own processes are seen": "test \"$(ls -d /proc/[0-9]* | wc -l)\" -lt 20 && test \"$(cat /proc/1/comm)\" != init",
    "a terminal in the terminal is used": "$PYTHON -S -c 'import pty, sys; sys.exit(pty.spawn([\"true\"]))'",
    "processes share memory": "$PYTHON -c 'import multiprocessing; multiprocessing.Lock().acquire()'",
    "an archive is unpacked with its owners": "mkdir -p a && echo x > a/f && tar -cf a.tar a && tar -xf a.tar && rm -r a a.tar",
    "a server is started and asked": "$PYTHON -S -c 'import socket; s = socket.create_server((\"127.0.0.1\", 0)); "
    "socket.create_connection(s.getsockname())'",
    "its processes are bounded": f"! $PYTHON -S {HERE}/fork_bomb.py",
    "the sandbox lives after that": "true",
}


# What works in one whose root directory is made from an image, where the system can be changed.
IN_IMAGE = {
    "the root directory is the image's": "test \"$OF_IMAGE\" = yes && test ! -e /etc/hostname && test $(id -u) = 0",
    "there are places for temporary files": "test \"$TMPDIR\" = /tmp && echo a > /tmp/x && rm /tmp/x",
    "the system can be changed": "touch /x /usr/x && rm /usr/bin/stat && ! ls /usr/bin/stat && mkdir /usr/bin/stat",
    "devices cannot be changed": "! touch /dev/x && ! rm -f /dev/null",
}


def works(outside, session, level, image):
    """What programs must be able to do all the same."""
    in_container = IN_CONTAINER | IN_IMAGE if image else dict(IN_CONTAINER)
    of_machine = ("the root directory is closed", "there is a /tmp of its own")
    if level == "gvisor":
        # They are that kernel's.
        in_container.pop("devices cannot be changed", None)
    in_container = {what: command for what, command in in_container.items() if not image or what not in of_machine}
    for what, command in {
        "files are made, changed and removed": "mkdir d && echo a > d/f && mv d/f g && chmod 700 g && rm -r d g",
        "there is a home directory of its own": 'test -w "$HOME" && test ! -e ~/secret.txt && touch ~/x && rm ~/x',
        "there are temporary files": 'f=$(mktemp) && echo a > "$f" && rm "$f"',
        "what was written is run": "printf '#!/bin/sh\\necho ran\\n' > s && chmod +x s && test \"$(./s)\" = ran",
        "standard output has a name": "echo a > /dev/stdout && echo a > /dev/stderr && echo a >&2",
        "pipes and devices are there": "head -c 3 /dev/zero | cat > /dev/null && head -c 3 /dev/urandom | wc -c",
        "processes get signals": "sleep 100 & kill $! && ! wait $!",
        "a process of another command gets signals": "(sleep 1000 & echo $! > pid); kill -0 $(cat pid) && kill $(cat pid)",
        "the system is read": "cat /etc/passwd /proc/self/status > /dev/null && ls /usr > /dev/null",
        "limits of its own are set": "ulimit -n 100 && ulimit -S -c 0",
        "a process traces its child": "$PYTHON -S -c 'import ctypes; assert ctypes.CDLL(None).ptrace(0, 0, 0, 0) == 0'",
        "two processes talk": "$PYTHON -S -c 'import socket; a, b = socket.socketpair(); a.send(b\"x\"); assert b.recv(1)'",
        "sockets of its own are used": f"$PYTHON -S {HERE}/sockets.py",
        "threads run": "$PYTHON -c 'import threading; t = threading.Thread(target=print); t.start(); t.join()'",
        # gVisor does not open it.
        **({} if level == "gvisor" else {"the terminal has a name": "echo a > /dev/tty"}),
        **(in_container if level in WITH_ROOT else {}),
    }.items():
        # A kernel of its own takes its time to make a process.
        done = outside.gloveport("session", "exec", session, command, timeout=240 if level == "gvisor" else 60)
        check(f"inside: {what}", done.returncode == 0, done.stdout[-300:] + done.stderr[-300:])


def owners(outside, session, level, flags, first, python):
    """What root of it may do because there are other owners, as which a process of another sandbox runs."""
    other, _ = outside.session("--isolation", level, *flags)
    outside.gloveport("session", "exec", other, f"{python} -S -c 'import os; os.setgid(1000); os.setuid(1000); os.fork() or os.execv(\"/bin/sleep\", [\"sleep\", \"600\"])'", timeout=60)
    number = str(first + 1000 - 1)

    def is_theirs(process):
        with contextlib.suppress(OSError):
            return any(line.split()[1:2] == [number] for line in (process / "status").read_text().splitlines() if line.startswith("Uid:"))

    theirs = [int(process.name) for process in Path("/proc").iterdir() if process.name.isdigit() and is_theirs(process)]
    check("owners: a process of another sandbox has one of the numbers", len(theirs) == 1, theirs)
    absent = max(theirs, default=0)
    done = outside.gloveport("session", "exec", session, f"{python} -S {HERE}/owners.py {outside.scratch}/own/places.json {absent}", timeout=LIMIT)
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for one in told:
        check(f"owners: {one['name']}", one["is"], done.stdout[-2000:] + done.stderr[-500:])
    check("owners: all was tried", len(told) > 40, done.stdout[-2000:] + done.stderr[-1000:])
    lives = Path(f"/proc/{absent}").exists()
    check("owners: the process of the other sandbox lives", lives)
    kept = sorted((outside.scratch / "state/gloveport/local/sandboxes").rglob("given-1000"))
    check("owners: its files are stored under the number of the machine", [path.lstat().st_uid for path in kept] == [first + 999], kept)
    closed = os.stat(outside.scratch / "state/gloveport/local").st_mode & 0o777
    check("owners: nobody else comes to what is stored", closed == 0o700, oct(closed))


def interrupted(outside, session):
    """A command that is interrupted ends, and the next one runs."""
    command = [outside.binary, "session", "exec", session, "sleep 600"]
    waits = subprocess.Popen(command, env=outside.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(50):
        time.sleep(0.2)
        if outside.gloveport("session", "interrupt", session, timeout=60).returncode == 0 and waits.poll() is not None:
            break
    code = waits.poll()
    waits.kill()
    waits.wait()
    done = outside.gloveport("session", "exec", session, "echo next", timeout=60)
    check("inside: a command that is interrupted ends", code == 130, code)
    check("inside: what was typed to interrupt it is no part of the next", done.stdout.strip() == "next", done.stdout + done.stderr)


def main(binary, scratch, level, image=None, first=None):
    scratch = Path(scratch)
    scratch.mkdir(mode=0o755)
    who = f"{'image' if image else level}, {'root' if os.geteuid() == 0 else 'a user'}"
    python = "/usr/bin/python3" if image else sys.executable
    outside = Outside(binary, scratch)
    try:
        places = outside.places()
        flags = ["--workspace", scratch / "own", "--allow-read", HERE, "--allow-read", scratch / "with-rights"]
        flags += ["--image", image] if image else python_places()
        flags += ["--env", f"PYTHON={python}"]
        inside, port = outside.session("--isolation", level, "--network", "none", *flags)
        before = outside.state()
        refused = tried(outside, inside, port, places, python, False)
        after = outside.state()
        changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
        check(f"{who}: nothing outside has changed", not changed, changed)
        mode = os.stat(binary).st_mode & 0o777
        check(f"{who}: the program outside has its mode", mode == 0o755, oct(mode))
        check(f"{who}: the process outside lives", outside.victim.poll() is None)
        check(f"{who}: nothing is shown on the terminal outside", not outside.shown())
        free, port = outside.session("--isolation", "none", "--workspace", scratch / "own")
        got = tried(outside, free, port, places, sys.executable, True)
        for name, one in got.items():
            found = refused.get(name, {"is": "lost", "why": "there is no answer"})
            if one["is"] == "missing":
                if found["is"] == "got":
                    tell("FAILED", f"{who}: {name}", "inside it succeeds")
                else:
                    tell("skipped", f"{who}: {name}", one["why"])
            elif one["is"] != "got":
                # A container, say, refuses a part of it to everybody.
                is_refused = found["is"] == "refused" and any(word in one["why"] for word in REFUSALS)
                tell("skipped" if is_refused else "FAILED", f"{who}: {name}", f"outside it fails as well: {one['why']}")
            elif level in WITH_ROOT and name in OWN:
                check(f"{who}: of its own: {name}", found["is"] in ("got", "refused"), f"{found['is']}: {found['why']}")
            elif level == "gvisor" and name.startswith(OF_KERNEL):
                check(f"{who}: of its own kernel: {name}", found["is"] != "lost", f"{found['is']}: {found['why']}")
            else:
                # A kernel of its own lacks what there is to be reached.
                is_refused = found["is"] == "refused" or level == "gvisor" and found["is"] == "missing"
                check(f"{who}: refused: {name}", is_refused, f"{found['is']}: {found['why']}")
        known = sum(one["is"] == "got" for one in got.values())
        check(f"{who}: enough succeeds outside", known >= ENOUGH, known)
        lost = set(refused) - set(got)
        if (image or level == "gvisor") and os.geteuid() != 0:
            # Root inside tries what an ordinary user outside does not.
            for name in sorted(lost):
                found = refused[name]
                # Users are the sandbox's own there, and owners.py tries what they are good for.
                own = name in OWN or first and name == "another user is taken on" or level == "gvisor" and name.startswith(OF_KERNEL)
                check(f"{who}: refused: {name}", found["is"] != "got" or own, f"{found['is']}: {found['why']}")
            lost = set()
        check(f"{who}: both tried the same", not lost, sorted(lost))
        if first:
            owners(outside, inside, level, flags, int(first), python)
        works(outside, inside, level, image)
        interrupted(outside, inside)
        open_one, _ = outside.session("--isolation", level, *flags)
        command = f"{python} -S -c 'import socket; socket.create_connection((\"127.0.0.1\", {places['tcp']}))'"
        done = outside.gloveport("session", "exec", open_one, command, timeout=60)
        check(f"{who}: with a network there is one", done.returncode == 0, done.stdout + done.stderr)
    finally:
        outside.end()
    kept = scratch / "state/gloveport/local"
    left = [*(kept / "sandboxes").iterdir(), *(kept / "old").iterdir()]
    check(f"{who}: nothing is left of the sandboxes", not left, left)
    print(f"{COUNTS['passed']} passed, {COUNTS['FAILED']} failed, {COUNTS['skipped']} skipped")


main(*sys.argv[1:])
