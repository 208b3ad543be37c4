"""Tries what root of a sandbox may do beside other rights where files have other owners: become them, and give files to them.

usage: owners.py PLACES ABSENT

It runs as root of such a sandbox. PLACES is the file that attempts.py reads too, ABSENT the number of a process outside that has one
of the numbers of this sandbox's users. Prints one line a check, in JSON: what must be so, and whether it is.
"""

import ctypes
import errno
import json
import os
import signal
import socket
import sys
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
# Users of images, of systems, and the ends of what there is.
USERS = (1, 33, 1000, 65534, 65535)
# Numbers that nobody has here: the first one behind, those of the machine, and what stands for nobody.
STRANGERS = (65536, 200000, 265535, 1 << 30, 0xFFFFFFFE)
# More than the bound for one user; all users together have no more.
A_LOT = 4500
GROUPS = 9


def as_user(number, work):
    """What the work ends with, done by a process of another user."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.setgroups([])
            os.setresgid(number, number, number)
            os.setresuid(number, number, number)
            code = 0 if work() else 1
        except BaseException as error:
            print(f"as {number}: {error!r}", file=sys.stderr)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def refused(work, *arguments, codes=(errno.EPERM, errno.EACCES)):
    try:
        work(*arguments)
    except OSError as error:
        return error.errno in codes
    return False


def status(name):
    return next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name + ":"))


def is_powerless():
    return all(int(status(name), 16) == 0 for name in ("CapPrm", "CapEff", "CapInh", "CapAmb")) and status("NoNewPrivs") == "1"


def stays():
    """Who became another user does not become root again, nor anybody else."""
    others = [number for number in (0, *USERS) if number != os.getuid()]
    return all(refused(os.setuid, number) and refused(os.setgid, number) for number in others) and refused(os.setgroups, [0])


def reads_nothing(places):
    file = Path("/tmp/of-root")
    paths = [str(file), "/proc/1/environ", "/proc/1/root/etc/passwd", "/proc/1/mem", "/proc/1/cwd/x", "/root/x", *places["files"].values()]
    absent = (errno.EPERM, errno.EACCES, errno.ENOENT)
    return all(refused(os.open, path, os.O_RDONLY, codes=absent) for path in paths)


def signals_nobody(absent):
    server = refused(os.kill, 1, signal.SIGKILL) and refused(os.kill, os.getppid(), signal.SIGKILL)
    return server and refused(os.kill, absent, 0, codes=(errno.ESRCH,))


def gets_no_rights(number):
    """A program of another owner runs as who starts it, whatever its mode was to be."""
    program = Path(f"/tmp/program-{number}")
    program.write_text("#!/bin/sh\nid -u\n")
    program.chmod(0o755)
    os.chown(program, number, number)
    # It seems to get them, but for others than root.
    for set_mode in (lambda: os.chmod(program, 0o6755), lambda: os.fchmod(os.open(program, os.O_RDONLY), 0o6755)):
        set_mode()
        if program.stat().st_mode & 0o7777 != 0o755:
            return False
    if as_user(number, lambda: refused(os.chmod, program, 0o4755)) != 0:
        return False
    return as_user(1000, lambda: os.popen(str(program)).read().strip() == "1000") == 0


def changes_no_mode_of_another():
    """Who sets such a mode for others does it to no file but theirs: not to what it has open itself, and for nobody but root."""
    Path("/tmp/of-root").chmod(0o600)
    os.symlink("/proc/self/fd", "/tmp/descriptors")
    for descriptor in range(64):
        for path in (f"/proc/self/fd/{descriptor}", f"/dev/fd/{descriptor}", f"/tmp/descriptors/{descriptor}", f"/proc/1/fd/{descriptor}"):
            if not refused(os.chmod, path, 0o4777, codes=(errno.ELOOP, errno.ENOENT, errno.EACCES, errno.EPERM)):
                return False
    # A directory keeps what else its mode says; a link is followed.
    os.mkdir("/tmp/directory", 0o700)
    os.symlink("directory", "/tmp/to-directory")
    os.chdir("/tmp")
    os.chmod("to-directory", 0o3775)
    kept = os.stat("/tmp/directory").st_mode & 0o7777 == 0o1775
    as_other = as_user(1000, lambda: refused(os.chmod, "/tmp/of-root", 0o4777) and refused(os.chmod, "/tmp/directory", 0o2777))
    return kept and as_other == 0 and os.stat("/tmp/of-root").st_mode & 0o7777 == 0o600


def has_no_capability():
    """What a file has as capabilities would be had by who runs it."""
    Path("/tmp/capable").write_text("")
    value = bytes.fromhex("0100000200200000000000000000000000000000")
    return refused(os.setxattr, "/tmp/capable", "security.capability", value)


def is_given(number):
    path = Path(f"/tmp/given-{number}")
    path.write_text("x")
    path.chmod(0o600)
    os.chown(path, number, number)
    read = as_user(number, lambda: path.read_text() == "x")
    other = as_user(2, lambda: refused(os.open, path, os.O_RDONLY))
    return (path.stat().st_uid, path.stat().st_gid, read, other) == (number, number, 0, 0)


def users_are_bounded():
    """Processes of many users are counted together. Each of them makes as many as it can."""
    (read, write), (wait, go) = os.pipe(), os.pipe()
    makers = []
    for number in range(GROUPS):
        maker = os.fork()
        if maker == 0:
            os.close(read)
            os.close(go)
            os.setgroups([])
            os.setresgid(3000 + number, 3000 + number, 3000 + number)
            os.setresuid(3000 + number, 3000 + number, 3000 + number)
            made = 0
            try:
                while made < A_LOT // GROUPS * 2:
                    if os.fork() == 0:
                        os.close(write)
                        signal.pause()
                    made += 1
            except OSError:
                pass
            os.write(write, made.to_bytes(4, "little"))
            os.close(write)
            os.read(wait, 1)
            # All others of this user: it sees those of nobody else.
            os.kill(-1, signal.SIGKILL)
            os._exit(0)
        makers.append(maker)
    os.close(write)
    whole, rest = 0, b""
    while len(rest) < 4 * GROUPS and (part := os.read(read, 4 * GROUPS - len(rest))):
        rest += part
    whole = sum(int.from_bytes(rest[at : at + 4], "little") for at in range(0, len(rest), 4))
    os.close(go)
    for maker in makers:
        os.waitpid(maker, 0)
    print(f"{whole} processes", file=sys.stderr)
    return len(rest) == 4 * GROUPS and 100 < whole < A_LOT


def main(places, absent):
    places, absent = json.loads(Path(places).read_text()), int(absent)
    Path("/tmp/of-root").write_text("secret")
    Path("/tmp/of-root").chmod(0o600)

    def tell(what, is_so):
        print(json.dumps({"name": what, "is": bool(is_so)}), flush=True)

    tell("users are those of the image", os.stat("/home/app/file").st_uid == 1000 and os.stat("/home/app/file").st_gid == 1001)
    tell("a link and a directory of the image have their owners", (os.lstat("/home/app/link").st_uid, os.stat("/home/app").st_uid) == (65535, 1000))
    tell("no file of the image has a bit that gives rights", os.stat("/home/app/with-rights").st_mode & 0o7777 == 0o755)
    tell("what a layer has replaced has no owner of before", os.stat("/home/again").st_uid == 0)
    for number in USERS:
        tell(f"files are given to {number}", is_given(number))
        tell(f"{number} has no rights", as_user(number, is_powerless) == 0)
        tell(f"{number} stays who it is", as_user(number, stays) == 0)
        tell(f"{number} reads nothing of root, of the server, or of what is outside", as_user(number, lambda: reads_nothing(places)) == 0)
        tell(f"{number} signals neither the server nor processes outside", as_user(number, lambda: signals_nobody(absent)) == 0)
        tell(f"a program that belongs to {number} gives no rights", gets_no_rights(number))
    for number in STRANGERS:
        Path("/tmp/strange").write_text("")
        invalid = (errno.EINVAL, errno.EPERM, errno.EOVERFLOW)
        become = refused(os.setresuid, number, number, number, codes=invalid) and refused(os.setresgid, number, number, number, codes=invalid)
        tell(f"{number} is nobody here", become and refused(os.chown, "/tmp/strange", number, -1, codes=invalid))
    tell("a mode is set without bits that give rights, for root and its own files alone", changes_no_mode_of_another())
    tell("no file gets capabilities", has_no_capability())
    tell("root signals no process outside", refused(os.kill, absent, 0, codes=(errno.ESRCH,)))
    tell("root has no root of a process outside", refused(os.listdir, f"/proc/{absent}/root", codes=(errno.ENOENT,)))
    tell("no namespace is made", LIBC.unshare(0x10000000) == -1 and ctypes.get_errno() == errno.EPERM)
    tell("no map is written", refused(Path("/proc/self/uid_map").write_text, "0 0 1"))
    server = socket.create_server(("127.0.0.1", 80)) if places["own_network"] else None
    tell("a port below 1024 is taken where the network is its own", server is not None or not places["own_network"])
    tell("the processes of all users are bounded together", users_are_bounded())


main(*sys.argv[1:])
