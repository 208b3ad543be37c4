"""Ways out of a sandbox, each of which is tried from where this runs.

usage: attempts.py PLACES

PLACES is the JSON file that places.py writes: what is outside, and how it is reached. Every attempt is a function that
returns when it got what it wanted, and raises when it did not. Prints one line a attempt, in JSON: its name, and `got`,
`refused` or `missing` with the reason. An attempt is `missing` where the machine lacks what it needs, whoever asks.
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import platform
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
ATTEMPTS = {}
# Seconds for one attempt.
LIMIT = 20
# Numbers of system calls that the C library has no name for.
NUMBERS = {
    "x86_64": {
        "ptrace": 101, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308,
        "name_to_handle_at": 303, "open_by_handle_at": 304, "io_uring_setup": 425, "bpf": 321, "perf_event_open": 298,
        "userfaultfd": 323, "init_module": 175, "finit_module": 313, "delete_module": 176, "kexec_load": 246, "reboot": 169,
        "syslog": 103, "acct": 163, "swapon": 167, "swapoff": 168, "quotactl": 179, "sethostname": 170,
        "setdomainname": 171, "settimeofday": 164, "clock_settime": 227, "vhangup": 153, "add_key": 248,
        "request_key": 249, "keyctl": 250, "shmget": 29, "shmat": 30, "semget": 64, "msgget": 68, "msgrcv": 70,
        "mq_open": 240, "pidfd_open": 434, "pidfd_getfd": 438, "pidfd_send_signal": 424, "process_vm_readv": 310,
        "process_vm_writev": 311, "prlimit64": 302, "fanotify_init": 300, "fsopen": 430, "open_tree": 428,
        "move_mount": 429, "fspick": 433, "mount_setattr": 442, "clone3": 435, "openat2": 437, "kcmp": 312,
        "rt_sigqueueinfo": 129, "tgkill": 234, "fchmodat2": 452, "iopl": 172, "process_madvise": 440,
        "move_pages": 279, "migrate_pages": 256, "landlock_restrict_self": 446, "truncate": 76, "memfd_create": 319,
    },
    "aarch64": {
        "ptrace": 117, "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "unshare": 97, "setns": 268,
        "name_to_handle_at": 264, "open_by_handle_at": 265, "io_uring_setup": 425, "bpf": 280, "perf_event_open": 241,
        "userfaultfd": 282, "init_module": 105, "finit_module": 273, "delete_module": 106, "kexec_load": 104,
        "reboot": 142, "syslog": 116, "acct": 89, "swapon": 224, "swapoff": 225, "quotactl": 60, "sethostname": 161,
        "setdomainname": 162, "settimeofday": 170, "clock_settime": 112, "vhangup": 58, "add_key": 217,
        "request_key": 218, "keyctl": 219, "shmget": 194, "shmat": 196, "semget": 190, "msgget": 186, "msgrcv": 188,
        "mq_open": 180, "pidfd_open": 434, "pidfd_getfd": 438, "pidfd_send_signal": 424, "process_vm_readv": 270,
        "process_vm_writev": 271, "prlimit64": 261, "fanotify_init": 262, "fsopen": 430, "open_tree": 428,
        "move_mount": 429, "fspick": 433, "mount_setattr": 442, "clone3": 435, "openat2": 437, "kcmp": 272,
        "rt_sigqueueinfo": 138, "tgkill": 131, "fchmodat2": 452, "process_madvise": 440, "move_pages": 239,
        "migrate_pages": 238, "landlock_restrict_self": 446, "truncate": 45, "memfd_create": 279,
    },
}[platform.machine()]  # fmt: skip
AT_FDCWD = -100
NEW = {"user": 0x10000000, "mount": 0x20000, "process": 0x20000000, "network": 0x40000000, "IPC": 0x8000000,
       "UTS": 0x4000000, "cgroup": 0x2000000, "time": 0x80}  # fmt: skip


class Missing(Exception):
    """This machine lacks what the attempt needs."""


# What a container has of its own, so that an attempt gets it there and nothing outside has changed by it.
OWN = set()


def attempt(name, *arguments, root=False, own=False):
    """Makes a function an attempt; one of `root` is made by root alone, who needs its rights for it outside. What is `own`
    is there in a container, too: the container's."""

    def register(function):
        assert name not in ATTEMPTS, name
        ATTEMPTS[name] = (function, arguments, root)
        if own:
            OWN.add(name)
        return function

    return register


def call(name, *arguments):
    """A system call. Numbers are passed as they are, and bytes as pointers to them."""
    if name not in NUMBERS:
        raise Missing(f"this machine has no {name}")
    passed = [ctypes.c_char_p(one) if isinstance(one, bytes) else one for one in arguments]
    passed = [ctypes.c_long(one) if isinstance(one, int) else one for one in passed]
    result = LIBC.syscall(ctypes.c_long(NUMBERS[name]), *passed)
    if result < 0:
        code = ctypes.get_errno()
        if code == errno.ENOSYS and os.environ.get("OUTSIDE"):
            raise Missing(f"the kernel has no {name}")
        raise OSError(code, os.strerror(code), name)
    return result


def shell(text, *arguments):
    done = subprocess.run(["/bin/sh", "-c", text, "sh", *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT - 5)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr.strip()[-200:]}"
    return done.stdout


def needs(program):
    if not shutil.which(program):
        raise Missing(f"there is no {program}")


def is_secret(text):
    text = text if isinstance(text, bytes) else text.encode()
    assert P["secret"].encode() in text, "it is not the secret"


# --- files are read ---------------------------------------------------------------------------------------------------


def reading(name):
    def register(way):
        for kind in ("a file of the home directory", "the key of another sandbox", "a temporary file of another program"):
            attempt(f"{kind} is read {name}", kind)(lambda kind, way=way: is_secret(way(P["files"][kind])))
        return way

    return register


@reading("by its name")
def _(path):
    return Path(path).read_bytes()


@reading("through a symbolic link")
def _(path):
    link = P["own"] + f"/link-{os.getpid()}"
    os.symlink(path, link)
    return Path(link).read_bytes()


@reading("through the root of this process")
def _(path):
    return Path("/proc/self/root" + path).read_bytes()


@reading("through the root of a process outside")
def _(path):
    return Path(f"/proc/{P['process']}/root" + path).read_bytes()


@reading("from the current directory of a process outside")
def _(path):
    return Path(f"/proc/{P['process']}/cwd/" + os.path.relpath(path, P["process_directory"])).read_bytes()


@reading("through a descriptor that only names it")
def _(path):
    descriptor = os.open(path, os.O_PATH)
    return Path(f"/proc/self/fd/{descriptor}").read_bytes()


@reading("from an open directory")
def _(path):
    directory = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
    return os.read(os.open(os.path.basename(path), os.O_RDONLY, dir_fd=directory), 1000)


@reading("after a change into its directory")
def _(path):
    os.chdir(os.path.dirname(path))
    return Path(os.path.basename(path)).read_bytes()


@reading("by the newer call for opening")
def _(path):
    how = struct.pack("QQQ", os.O_RDONLY, 0, 0x04)
    return os.read(call("openat2", AT_FDCWD, path.encode(), how, len(how)), 1000)


@reading("through a hard link")
def _(path):
    link = P["own"] + f"/hard-{os.getpid()}"
    try:
        os.link(path, link)
    except OSError as error:
        if error.errno == errno.EXDEV and os.environ.get("OUTSIDE"):
            raise Missing("it is on another file system") from error
        raise
    return Path(link).read_bytes()


@reading("through a hard link made from a descriptor")
def _(path):
    descriptor, link = os.open(path, os.O_PATH), P["own"] + f"/harder-{os.getpid()}"
    if LIBC.linkat(AT_FDCWD, f"/proc/self/fd/{descriptor}".encode(), AT_FDCWD, link.encode(), 0x400) < 0:
        code = ctypes.get_errno()
        if code == errno.EXDEV and os.environ.get("OUTSIDE"):
            raise Missing("it is on another file system")
        raise OSError(code, os.strerror(code))
    return Path(link).read_bytes()


@reading("by a shell")
def _(path):
    return shell('cat < "$1"', path)


@reading("by an archiver")
def _(path):
    needs("tar")
    return shell('tar -cf - -C / "${1#/}" | tar -xOf -', path)


@reading("as a script")
def _(path):
    return subprocess.run(["/bin/sh", "-nv", path], capture_output=True, timeout=5).stderr


@reading("by the kernel, from one descriptor to another")
def _(path):
    source, (reader, writer) = os.open(path, os.O_RDONLY), os.pipe()
    os.sendfile(writer, source, 0, 1000)
    return os.read(reader, 1000)


@reading("as memory")
def _(path):
    return mmap.mmap(os.open(path, os.O_RDONLY), 0, prot=mmap.PROT_READ)[:]


@reading("through a handle")
def _(path):
    if os.geteuid() != 0:
        raise Missing("handles are opened by root")
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    call("name_to_handle_at", AT_FDCWD, path.encode(), handle, ctypes.byref(mount), 0)
    top = os.open("/tmp", os.O_RDONLY)
    return os.read(call("open_by_handle_at", top, handle, os.O_RDONLY), 1000)


@reading("by work that the kernel does later")
def _(path):
    parameters = ctypes.create_string_buffer(120)
    call("io_uring_setup", 4, parameters)
    return Path(path).read_bytes()


@attempt("a directory outside is listed")
def _():
    assert os.listdir(P["home"])


@attempt("the root directory's users are listed through a process outside")
def _():
    os.listdir(f"/proc/{P['process']}/cwd")


@attempt("a file that only root may read is read", root=True)
def _():
    assert Path("/etc/shadow").read_bytes()


# --- files are changed ------------------------------------------------------------------------------------------------


def changing(name):
    def register(way):
        for kind in ("home directory", "temporary directory"):

            def try_it(kind, way=way):
                way(Path(P["directories"][kind]))

            # The home directory has its name in a container, and is another one.
            attempt(f"in the {kind}, {name}", kind, own=kind == "home directory")(try_it)
        return way

    return register


@changing("a file is made")
def _(directory):
    (directory / f"made-{os.getpid()}").write_text("x")


@changing("a directory is made")
def _(directory):
    (directory / f"directory-{os.getpid()}").mkdir()


@changing("a pipe is made")
def _(directory):
    os.mkfifo(directory / f"pipe-{os.getpid()}")


@changing("a symbolic link is made")
def _(directory):
    os.symlink("/", directory / f"symbolic-{os.getpid()}")


@changing("a file gets another name")
def _(directory):
    os.rename(directory / "to-rename", directory / "renamed")
    os.rename(directory / "renamed", directory / "to-rename")


@changing("a file is moved here")
def _(directory):
    own = Path(P["own"]) / f"moved-{os.getpid()}"
    try:
        os.rename(directory / "to-move", own)
    except OSError as error:
        if error.errno == errno.EXDEV and os.environ.get("OUTSIDE"):
            raise Missing("it is on another file system") from error
        raise
    os.rename(own, directory / "to-move")


@changing("a file of ours takes the place of one")
def _(directory):
    own = Path(P["own"]) / f"placed-{os.getpid()}"
    own.write_text("x")
    try:
        os.rename(own, directory / "to-replace")
    except OSError as error:
        if error.errno == errno.EXDEV and os.environ.get("OUTSIDE"):
            raise Missing("it is on another file system") from error
        raise


@changing("a file is removed")
def _(directory):
    os.unlink(directory / f"to-remove-{'outside' if os.environ.get('OUTSIDE') else 'inside'}")


@changing("a directory is removed")
def _(directory):
    os.rmdir(directory / f"directory-to-remove-{'outside' if os.environ.get('OUTSIDE') else 'inside'}")


@changing("a file is written to")
def _(directory):
    with open(directory / "to-write", "a") as file:
        file.write("more")


@changing("a file is written to through a process outside")
def _(directory):
    relative = os.path.relpath(directory / "to-write", P["process_directory"])
    with open(f"/proc/{P['process']}/cwd/{relative}", "a") as file:
        file.write("more")


@changing("a file is cut by its name")
def _(directory):
    call("truncate", str(directory / "to-cut").encode(), 1)


@changing("a file is cut while it is opened for reading")
def _(directory):
    path = directory / "to-cut-too"
    before = path.stat().st_size
    os.open(path, os.O_RDONLY | os.O_TRUNC)
    assert path.stat().st_size < before


@changing("a file without a name gets one")
def _(directory):
    descriptor = os.open(directory, os.O_TMPFILE | os.O_RDWR)
    os.close(descriptor)


@changing("a file gets the rights of its owner for all who run it")
def _(directory):
    os.chmod(directory / "to-run", 0o4755)
    assert (directory / "to-run").stat().st_mode & 0o4000, "it has not got them"
    os.chmod(directory / "to-run", 0o755)


@changing("a file gets the rights of its group through a descriptor")
def _(directory):
    os.fchmod(os.open(directory / "to-run", os.O_RDONLY), 0o2755)


@attempt("a file gets rights by the newest call")
def _():
    path = Path(P["own"]) / "newest"
    path.write_text("x")
    call("fchmodat2", AT_FDCWD, str(path).encode(), 0o4755, 0)
    assert path.stat().st_mode & 0o4000, "it has not got them"


@attempt("a file is made with rights")
def _():
    path = Path(P["own"]) / f"made-with-{os.getpid()}"
    os.umask(0)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o4755))
    assert path.stat().st_mode & 0o4000


@attempt("a device is made", root=True)
def _():
    path = P["own"] + f"/device-{os.getpid()}"
    os.mknod(path, 0o600 | 0o020000, os.makedev(1, 3))
    os.open(path, os.O_RDWR)


@attempt("a disk is read", root=True)
def _():
    disks = [line.split()[3] for line in Path("/proc/partitions").read_text().splitlines()[2:]]
    for disk in disks:
        if os.path.exists(f"/dev/{disk}"):
            try:
                os.read(os.open(f"/dev/{disk}", os.O_RDONLY), 512)
            except OSError as error:
                if os.environ.get("OUTSIDE"):
                    raise Missing("nobody reads disks here") from error
                raise
            return
    raise Missing("there is no disk")


@attempt("shared memory of another program is read")
def _():
    is_secret(Path(P["shared_memory"]).read_bytes())


@attempt("shared memory of all programs is made", own=True)
def _():
    Path(f"/dev/shm/gloveport-{os.getpid()}").write_text("x")
    os.unlink(f"/dev/shm/gloveport-{os.getpid()}")


@attempt("a setting of the kernel is written", root=True)
def _():
    path = Path("/proc/sys/kernel/core_pattern")
    path.write_text(path.read_text())


@attempt("a setting of a device is written", root=True)
def _():
    for path in Path("/sys/block").glob("*/queue/nr_requests"):
        path.write_text(path.read_text())
        return
    raise Missing("there is no block device")


@attempt("a control group is made", root=True)
def _():
    for top in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        if os.path.exists(f"{top}/cgroup.procs"):
            os.mkdir(f"{top}/gloveport-attempt-{os.getpid()}")
            os.rmdir(f"{top}/gloveport-attempt-{os.getpid()}")
            return
    raise Missing("there are no control groups of the second version")


# --- processes outside ------------------------------------------------------------------------------------------------


@attempt("a process outside gets a signal")
def _():
    os.kill(P["process"], signal.SIGURG)


@attempt("a process outside is asked whether it lives, by a signal")
def _():
    os.kill(P["process"], 0)


@attempt("the group of a process outside gets a signal")
def _():
    os.killpg(os.getpgid(P["process"]), signal.SIGURG)


@attempt("a thread outside gets a signal")
def _():
    call("tgkill", P["process"], P["process"], signal.SIGURG)


@attempt("a process outside gets a signal with a value")
def _():
    information = struct.pack("iiii", signal.SIGURG, 0, -1, 0) + bytes(112)
    call("rt_sigqueueinfo", P["process"], signal.SIGURG, information)


@attempt("a process outside gets a signal through a descriptor")
def _():
    call("pidfd_send_signal", call("pidfd_open", P["process"], 0), signal.SIGURG, 0, 0)


@attempt("a process outside gets a signal by what happens to a socket")
def _():
    one, other = socket.socketpair()
    fcntl.fcntl(one, fcntl.F_SETOWN, P["signalled"])
    fcntl.fcntl(one, fcntl.F_SETSIG, signal.SIGUSR1)
    fcntl.fcntl(one, fcntl.F_SETFL, os.O_ASYNC)
    before = Path(P["signals"]).read_text()
    other.send(b"x")
    time.sleep(0.5)
    assert Path(P["signals"]).read_text() != before, "it got none"


@attempt("the server of this sandbox gets a signal", own=True)
def _():
    os.kill(P["server"], signal.SIGURG)


@attempt("a process outside is traced")
def _():
    call("ptrace", 0x4206, P["process"], 0, 0)


@attempt("the server of this sandbox is traced")
def _():
    call("ptrace", 0x4206, P["server"], 0, 0)


def vector(address, length):
    return struct.pack("QQ", address, length)


def writable_area(pid):
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        area, rights = line.split()[:2]
        if rights.startswith("rw"):
            return int(area.split("-")[0], 16)
    raise AssertionError("it has no memory")


@attempt("memory of a process outside is read by the kernel")
def _():
    buffer = ctypes.create_string_buffer(8)
    local = vector(ctypes.addressof(buffer), 8)
    assert call("process_vm_readv", P["process"], local, 1, vector(P["address"], 8), 1, 0) == 8


@attempt("memory of a process outside is written by the kernel")
def _():
    buffer = ctypes.create_string_buffer(b"12345678", 8)
    local = vector(ctypes.addressof(buffer), 8)
    assert call("process_vm_writev", P["process"], local, 1, vector(P["address"], 8), 1, 0) == 8


@attempt("memory of a process outside is read as a file")
def _():
    with open(f"/proc/{P['process']}/mem", "rb", buffering=0) as file:
        file.seek(P["address"])
        assert len(file.read(8)) == 8


@attempt("the areas of memory of a process outside are listed")
def _():
    assert writable_area(P["process"])


@attempt("variables of a process outside are read")
def _():
    is_secret(Path(f"/proc/{P['process']}/environ").read_bytes())


@attempt("variables of the server of this sandbox are read")
def _():
    assert b"=" in Path(f"/proc/{P['server']}/environ").read_bytes()


@attempt("the root directory of the server of this sandbox is listed")
def _():
    assert os.listdir(f"/proc/{P['server']}/root/")


@attempt("the current directory of the server of this sandbox leads outside")
def _():
    is_secret(Path(f"/proc/{P['server']}/cwd/../../../../..{P['files']['a temporary file of another program']}").read_bytes())


@attempt("the program of a reader of documents is changed")
def _():
    if os.environ.get("OUTSIDE"):
        os.chmod(P["program_copy"], 0o755)
        return
    # Whoever runs the same program as the server: its file must not be reached through it.
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            name = os.readlink(f"/proc/{pid}/exe")
        except OSError:
            continue
        if "gloveport" in name:
            os.chmod(f"/proc/{pid}/exe", 0o755)
            return
    os.chmod("/run/gloveport/program", 0o755)


@attempt("the descriptors of the server of this sandbox are named")
def _():
    assert os.readlink(f"/proc/{P['server']}/fd/0")


@attempt("the namespaces of the server of this sandbox are opened")
def _():
    os.open(f"/proc/{P['server']}/ns/mnt", os.O_RDONLY)


@attempt("a descriptor of a process outside is taken")
def _():
    taken = call("pidfd_getfd", call("pidfd_open", P["process"], 0), P["descriptor"], 0)
    is_secret(os.pread(taken, 1000, 0))


@attempt("a descriptor of a process outside is opened again")
def _():
    is_secret(Path(f"/proc/{P['process']}/fd/{P['descriptor']}").read_bytes())


@attempt("the descriptors of a process outside are named")
def _():
    assert os.readlink(f"/proc/{P['process']}/fd/{P['descriptor']}")


@attempt("the program of a process outside is named")
def _():
    assert os.readlink(f"/proc/{P['process']}/exe")


@attempt("the current directory of a process outside is named")
def _():
    assert os.readlink(f"/proc/{P['process']}/cwd")


@attempt("the stack of a process outside is read", root=True)
def _():
    assert Path(f"/proc/{P['process']}/stack").exists() and Path(f"/proc/{P['process']}/stack").read_text() is not None


@attempt("the system call of a process outside is read")
def _():
    assert Path(f"/proc/{P['process']}/syscall").read_text()


@attempt("two processes outside are compared")
def _():
    call("kcmp", P["process"], P["process"], 0, 0, 0)


@attempt("limits of a process outside are set")
def _():
    call("prlimit64", P["process"], 4, struct.pack("QQ", 0, 0), 0)


@attempt("pages of a process outside are moved")
def _():
    status = ctypes.c_int()
    pages = (ctypes.c_void_p * 1)(P["address"] & ~4095)
    try:
        call("move_pages", P["process"], 1, pages, 0, ctypes.byref(status), 0)
    except OSError as error:
        if error.errno == errno.ENOSYS:
            raise Missing("the kernel moves no pages") from error
        raise


@attempt("advice is given about memory of a process outside", root=True)
def _():
    handle = call("pidfd_open", P["process"], 0)
    call("process_madvise", handle, vector(P["address"] & ~4095, 4096), 1, 20, 0)


@attempt("the way in which a process outside dies of memory is written")
def _():
    Path(f"/proc/{P['process']}/oom_score_adj").write_text("500")


@attempt("the program of the server of this sandbox is written to")
def _():
    if os.environ.get("OUTSIDE"):
        os.open(P["program_copy"], os.O_RDWR)
    else:
        os.open(f"/proc/{P['server']}/exe", os.O_RDWR)


@attempt("the program that this one was started by is written to", root=True)
def _():
    target = P["program_copy"] if os.environ.get("OUTSIDE") else os.path.realpath(sys.executable)
    os.open(target, os.O_RDWR)


# --- namespaces, mounts, the kernel -----------------------------------------------------------------------------------


def in_child(work):
    """Does it in a process of its own, which may become another kind of one."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except OSError as error:
            code = error.errno or 1
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        raise OSError(status, os.strerror(status) if status > 0 else f"signal {-status}")


for kind, flag in NEW.items():

    @attempt(f"a namespace is made: {kind}", flag, root=kind != "user")
    def _(flag):
        in_child(lambda: call("unshare", flag))


for kind, flag in NEW.items():
    if kind != "time":

        @attempt(f"a process is made in a new namespace: {kind}", flag, root=kind != "user")
        def _(flag):
            arguments = struct.pack("Q" * 11, flag, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, 0)
            number = call("clone3", arguments, len(arguments))
            if number == 0:
                os._exit(0)
            os.waitpid(number, 0)


@attempt("a process is made in a new namespace by the older call")
def _():
    number = LIBC.syscall(ctypes.c_long(56 if platform.machine() == "x86_64" else 220),
                          ctypes.c_long(NEW["user"] | signal.SIGCHLD), 0, 0, 0, 0)  # fmt: skip
    if number == 0:
        os._exit(0)
    if number < 0:
        raise OSError(ctypes.get_errno(), "clone")
    os.waitpid(number, 0)


for kind in ("mnt", "net", "ipc", "uts"):

    @attempt(f"the namespace of another process is entered: {kind}", kind, root=True)
    def _(kind):
        in_child(lambda: call("setns", os.open(f"/proc/{P['process']}/ns/{kind}", os.O_RDONLY), 0))


@attempt("a file system is mounted", root=True)
def _():
    place = P["own"] + "/mounted"
    os.makedirs(place, exist_ok=True)
    call("mount", b"none", place.encode(), b"tmpfs", 0, 0)
    call("umount2", place.encode(), 2)


@attempt("a directory is bound to another place", root=True)
def _():
    place = P["own"] + "/bound"
    os.makedirs(place, exist_ok=True)
    call("mount", P["home"].encode(), place.encode(), 0, 4096, 0)
    call("umount2", place.encode(), 2)


@attempt("a directory is bound to another place in namespaces of one's own")
def _():
    place = P["own"] + "/bound-too"
    os.makedirs(place, exist_ok=True)

    def work():
        call("unshare", NEW["user"] | NEW["mount"])
        call("mount", P["home"].encode(), place.encode(), 0, 4096, 0)

    in_child(work)


@attempt("the root directory is exchanged in namespaces of one's own")
def _():
    def work():
        call("unshare", NEW["user"] | NEW["mount"])
        call("chroot", P["home"].encode())
        os.listdir("/")

    in_child(work)


@attempt("the root directory is exchanged", root=True)
def _():
    in_child(lambda: call("chroot", P["home"].encode()))


@attempt("a file system is prepared by the newer calls", root=True)
def _():
    call("fsopen", b"tmpfs", 0)


@attempt("a tree of files is taken by the newer calls", root=True)
def _():
    call("open_tree", AT_FDCWD, P["home"].encode(), 1)


@attempt("a mount is picked by the newer calls", root=True)
def _():
    call("fspick", AT_FDCWD, b"/", 0)


@attempt("the attributes of a mount are set", root=True)
def _():
    try:
        call("mount_setattr", AT_FDCWD, b"/", 0, struct.pack("QQQQ", 0, 0, 0, 0), 32)
    except OSError as error:
        if error.errno == errno.EINVAL and os.environ.get("OUTSIDE"):
            raise Missing("there is no mount point") from error
        raise


@attempt("a mount is removed", root=True)
def _():
    in_child(lambda: (call("unshare", NEW["mount"]), call("umount2", b"/dev/pts", 2)))


@attempt("work is given to the kernel for later")
def _():
    call("io_uring_setup", 4, ctypes.create_string_buffer(120))


@attempt("a program for the kernel is loaded", root=True)
def _():
    call("bpf", 0, struct.pack("IIIIII", 2, 4, 4, 1, 0, 0) + bytes(100), 72)


@attempt("the kernel counts what happens", root=True)
def _():
    try:
        call("perf_event_open", struct.pack("IIQ", 1, 112, 0) + bytes(96), 0, -1, -1, 0)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EOPNOTSUPP) and os.environ.get("OUTSIDE"):
            raise Missing("the kernel counts nothing") from error
        raise


@attempt("faults of memory are handled by a program", root=True)
def _():
    call("userfaultfd", 0)


@attempt("messages of the kernel are read", root=True)
def _():
    call("syslog", 3, ctypes.create_string_buffer(4096), 4096)


@attempt("messages of the kernel are followed", root=True)
def _():
    os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)


@attempt("files are watched for all programs", root=True)
def _():
    call("fanotify_init", 0, os.O_RDONLY)


@attempt("the name of the machine is set", root=True)
def _():
    name = socket.gethostname().encode()
    call("sethostname", name, len(name))


@attempt("the name of the domain is set", root=True)
def _():
    name = Path("/proc/sys/kernel/domainname").read_text().strip().encode()
    call("setdomainname", name, len(name))


@attempt("the clock is set", root=True)
def _():
    now = time.clock_gettime_ns(time.CLOCK_REALTIME)
    call("clock_settime", 0, struct.pack("qq", now // 10**9, now % 10**9))


@attempt("the priority of a process outside is raised", root=True)
def _():
    os.setpriority(os.PRIO_PROCESS, P["process"], -5)
    os.setpriority(os.PRIO_PROCESS, P["process"], 0)


@attempt("the own priority is raised", root=True)
def _():
    os.setpriority(os.PRIO_PROCESS, 0, -5)


@attempt("another user is taken on", root=True)
def _():
    in_child(lambda: os.setresuid(65534, 65534, 65534))


@attempt("a file is given to another user", root=True, own=True)
def _():
    path = P["own"] + f"/given-{os.getpid()}"
    Path(path).write_text("x")
    os.chown(path, 65534, 65534)


@attempt("the ports of the machine are driven", root=True)
def _():
    if platform.machine() != "x86_64":
        raise Missing("this machine has none")
    try:
        in_child(lambda: call("iopl", 3))
    except OSError as error:
        if os.environ.get("OUTSIDE"):
            raise Missing("nobody drives them here") from error
        raise


# --- what all processes of a user have together -----------------------------------------------------------------------


@attempt("a key is added to the ring of the user")
def _():
    call("add_key", b"user", f"gloveport-{os.getpid()}".encode(), b"x", 1, -4)


@attempt("a key of the ring of the user is read")
def _():
    found = call("request_key", b"user", P["key_name"].encode(), 0, 0)
    buffer = ctypes.create_string_buffer(100)
    call("keyctl", 11, found, buffer, 100)
    is_secret(buffer.raw)


@attempt("a piece of shared memory is made", own=True)
def _():
    call("shmget", 0, 4096, 0o600 | 0o1000)


@attempt("a piece of shared memory of another program is read")
def _():
    LIBC.shmat.restype = ctypes.c_void_p
    address = LIBC.shmat(P["shm"], 0, 0o10000)
    if address in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "shmat")
    is_secret(ctypes.string_at(address, 100))


@attempt("a message of another program is taken")
def _():
    buffer = ctypes.create_string_buffer(200)
    call("msgrcv", P["msg"], buffer, 100, 0, 0o4000)
    is_secret(buffer.raw)


@attempt("a semaphore is made", own=True)
def _():
    call("semget", 0, 1, 0o600 | 0o1000)


@attempt("a queue of messages is opened by its name")
def _():
    call("mq_open", P["queue"].encode(), os.O_RDWR, 0, 0)


# --- sockets ----------------------------------------------------------------------------------------------------------


def heard(connection):
    connection.settimeout(5)
    is_secret(connection.recv(1000))


@attempt("a service with a name in the file system is used")
def _():
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(P["unix"])
        heard(client)


@attempt("a service with an abstract name is used")
def _():
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + P["abstract"])
        heard(client)


@attempt("a service gets a datagram by its name")
def _():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        client.sendto(b"x", P["datagram"])


@attempt("a service with a name in the file system is used through a link")
def _():
    link = P["own"] + f"/service-{os.getpid()}"
    os.symlink(P["unix"], link)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(link)
        heard(client)


@attempt("a service with a name in the file system is used by a relative name")
def _():
    os.chdir(P["own"])
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(os.path.relpath(P["unix"], P["own"]))
        heard(client)


@attempt("a service with a name in the file system is used through a process outside")
def _():
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"/proc/{P['process']}/root{P['unix']}")
        heard(client)


@attempt("a service with a name in the file system is used through another kind of socket")
def _():
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(P["packets"])
        heard(client)


@attempt("a service with a name in the file system is used while its name leads here and there")
def _():
    own, name = P["own"] + f"/changing-{os.getpid()}", P["own"] + f"/name-{os.getpid()}"
    server = socket.socket(socket.AF_UNIX)
    server.bind(own)
    server.listen(100)
    end = time.monotonic() + 3
    changer = os.fork()
    if changer == 0:
        while time.monotonic() < end:
            for target in (own, P["unix"]):
                os.symlink(target, name + ".new")
                os.rename(name + ".new", name)
        os._exit(0)
    secret = P["secret"].encode()
    tries = 0
    while time.monotonic() < end:
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(name)
            except OSError:
                continue
            tries += 1
            # The own server never answers.
            if select.select([client], [], [], 0.005)[0] and secret in client.recv(1000):
                os.kill(changer, signal.SIGKILL)
                return
            if select.select([server], [], [], 0)[0]:
                server.accept()[0].close()
    raise AssertionError(f"it led to the own one {tries} times")


@attempt("a service gets a datagram through a pair of sockets")
def _():
    one, _other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"x", P["datagram"])


@attempt("the socket of an engine is used")
def _():
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(P["engine"])


@attempt("a service of this machine is used", "tcp")
@attempt("a service of this machine is used over the newer protocol", "tcp6")
@attempt("the server of another sandbox is used", "other")
@attempt("the server of this sandbox is used", "server_port")
def _(name):
    family = socket.AF_INET6 if name == "tcp6" else socket.AF_INET
    if not P[name]:
        raise Missing("there is none")
    with socket.socket(family) as client:
        client.settimeout(5)
        client.connect(("::1" if name == "tcp6" else "127.0.0.1", P[name]))


@attempt("a service of this machine is used without a connection")
def _():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"x", ("127.0.0.1", P["udp"]))
        heard(client)


@attempt("a service of this machine is used as its connection is made")
def _():
    with socket.socket(socket.AF_INET) as client:
        client.sendto(b"x", 0x20000000, ("127.0.0.1", P["tcp"]))


@attempt("a service of this machine is used over several paths")
def _():
    try:
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    except OSError as error:
        if error.errno == errno.EPROTONOSUPPORT:
            raise Missing("the kernel has no such connections") from error
        raise
    with client:
        client.settimeout(5)
        client.connect(("127.0.0.1", P["tcp"]))


@attempt("a name is looked up at a server of ours", "udp")
def _(name):
    query = struct.pack(">HHHHHH", 1, 0x100, 1, 0, 0, 0) + b"\x06secret\x07example\x00" + struct.pack(">HH", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(query, ("127.0.0.1", P[name]))
        heard(client)


@attempt("others are waited for on a port", own=True)
def _():
    with socket.socket(socket.AF_INET) as server:
        server.bind(("0.0.0.0", 0))
        server.listen()


@attempt("packets are made as they are", root=True)
def _():
    socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)


@attempt("packets of all programs are read", root=True)
def _():
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)
    except OSError as error:
        if error.errno == errno.EAFNOSUPPORT and os.environ.get("OUTSIDE"):
            raise Missing("the kernel has no such sockets") from error
        raise


@attempt("echoes are asked for")
def _():
    try:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
    except OSError as error:
        if os.environ.get("OUTSIDE"):
            raise Missing("this machine does not let its users") from error
        raise


for family, number in (("the host of this machine", 40), ("the kernel's ciphers", 38), ("the kernel's audit", 16)):

    @attempt(f"a socket to {family} is made", number)
    def _(number):
        try:
            socket.socket(number, socket.SOCK_RAW if number == 16 else socket.SOCK_SEQPACKET if number == 38 else socket.SOCK_STREAM, 9 if number == 16 else 0)
        except OSError as error:
            if error.errno in (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT) and os.environ.get("OUTSIDE"):
                raise Missing("the kernel has no such sockets") from error
            raise


@attempt("the network is set up", root=True)
def _():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH", b"lo", 0) + bytes(14)
        flags = fcntl.ioctl(any_socket, 0x8913, request)
        fcntl.ioctl(any_socket, 0x8914, flags)


# --- terminals --------------------------------------------------------------------------------------------------------


@attempt("something is shown on another terminal", own=True)
def _():
    # Under the same number there may be the very terminal that the answers of attempts are read from, a line each.
    os.write(os.open(P["terminal"], os.O_WRONLY | os.O_NOCTTY), b"\n")


@attempt("another terminal is read", own=True)
def _():
    terminal = os.open(P["terminal"], os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    assert select.select([terminal], [], [], 0) is not None


def typed(request):
    def work():
        leader, follower = os.openpty() if os.environ.get("OUTSIDE") else (None, os.open("/dev/tty", os.O_RDWR))
        if os.environ.get("OUTSIDE"):
            os.setsid()
            fcntl.ioctl(follower, termios.TIOCSCTTY, 0)
        argument = ctypes.create_string_buffer(b"\n")
        if LIBC.ioctl(follower, ctypes.c_ulong(request), argument) < 0:
            raise OSError(ctypes.get_errno(), "ioctl")

    in_child(work)


@attempt("a command is typed for the user of a terminal", termios.TIOCSTI, root=True)
@attempt("a command is typed with a number that is too large", termios.TIOCSTI | 1 << 32, root=True)
def _(request):
    typed(request)


@attempt("messages of the machine's terminal are taken", root=True)
def _():
    in_child(lambda: fcntl.ioctl(os.open("/dev/console", os.O_RDWR | os.O_NOCTTY), termios.TCGETS, bytes(64)))


# --- programs with rights ---------------------------------------------------------------------------------------------


@attempt("a program gives the rights of its owner")
def _():
    done = subprocess.run([P["with_rights"]], capture_output=True, text=True, timeout=10)
    if os.environ.get("OUTSIDE"):
        if not P["can_have_rights"]:
            raise Missing("such a program can be made by root alone, or the file system gives no rights")
    status = Path("/proc/self/status").read_text()
    assert "NoNewPrivs:\t0" in status, "programs give none"
    assert done.returncode == 0


@attempt("root has its rights", root=True)
def _():
    status = Path("/proc/self/status").read_text()
    # Files by handle, the kernel's modules, raw devices, tracing, administration of the system and of the network.
    wanted = sum(1 << bit for bit in (2, 12, 16, 17, 19, 21))
    for name in ("CapEff", "CapBnd"):
        assert int(status.split(f"{name}:\t")[1].split("\n")[0], 16) & wanted


@attempt("what keeps programs is taken off by starting another one")
def _():
    assert "NoNewPrivs:\t0" in shell("grep NoNewPrivs /proc/self/status")


@attempt("a core file is written")
def _():
    import resource

    assert resource.getrlimit(resource.RLIMIT_CORE)[1] != 0


@attempt("a descriptor of who started this is used")
def _():
    if os.environ.get("OUTSIDE"):
        return
    # All but the terminal, pipes and what Python itself has opened would be a way out.
    for name in os.listdir("/proc/self/fd"):
        target = os.readlink(f"/proc/self/fd/{name}") if os.path.lexists(f"/proc/self/fd/{name}") else ""
        if target.startswith("socket:") or (target.startswith("/") and not target.startswith(("/dev/", "/proc/", P["own"], P["tests"]))):
            return
    raise AssertionError("there is none")


def attempts_in_order():
    for name, (function, arguments, root) in ATTEMPTS.items():
        if root and os.geteuid() != 0:
            # Nobody else gets it anywhere.
            continue
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            signal.alarm(LIMIT)
            try:
                function(*arguments)
                told = {"is": "got"}
            except Missing as missing:
                told = {"is": "missing", "why": str(missing)}
            except BaseException as error:
                told = {"is": "refused", "why": f"{type(error).__name__}: {error}"}
            os.write(writer, json.dumps(told).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as file:
            text = file.read()
        os.waitpid(child, 0)
        told = json.loads(text) if text else {"is": "refused", "why": "it was ended"}
        yield name, told["is"], told.get("why", "")


def server():
    """The server of this sandbox: the last of the processes above that is one."""
    found, pid = 0, os.getpid()
    while pid > 0:
        if b"sandbox-server" in Path(f"/proc/{pid}/cmdline").read_bytes():
            found = pid
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return found


P = {}

if __name__ == "__main__":
    P.update(json.loads(Path(sys.argv[1]).read_text()))
    P["server"] = server()
    for name, found, why in attempts_in_order():
        print(json.dumps({"name": name, "is": found, "why": why}), flush=True)
