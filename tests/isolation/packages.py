"""Installs a package in a sandbox whose files have several owners, and ends all of it by force.

usage: packages.py image ROOT DIRECTORY
       packages.py try BINARY SCRATCH DIRECTORY

`image` makes an image, as a directory with the layout of OCI, of the root directory of a Debian and a package that needs other owners
than root; it needs root. `try` does the rest as an ordinary user whom the system gives numbers of others. Prints one line a check.
"""

import gzip
import hashlib
import io
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
CONTROL = f"""Package: of-others
Version: 1
Architecture: {ARCHITECTURE}
Maintainer: nobody <nobody@localhost>
Description: what belongs to others
"""
# As packages of servers do.
AFTER = """#!/bin/sh
set -e
useradd --system --home-dir /var/lib/of-others --shell /usr/sbin/nologin of-others
chown of-others:of-others /var/lib/of-others
chmod 2750 /var/lib/of-others
chmod u+s /usr/bin/of-others-too
"""


def check(what, is_so, why=""):
    print(f"{'passed' if is_so else 'FAILED'}  packages: {what}{'' if is_so else f': {why}'}", flush=True)


def package(place):
    """A package, and a list of packages that has it."""
    tree = place / "tree"
    for name in ("DEBIAN", "usr/bin", "var/lib/of-others", "var/mail-of-others"):
        (tree / name).mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(CONTROL)
    (tree / "DEBIAN/postinst").write_text(AFTER)
    (tree / "DEBIAN/postinst").chmod(0o755)
    for name, mode in (("of-others", 0o4755), ("of-others-group", 0o2755), ("of-others-too", 0o755)):
        (tree / "usr/bin" / name).write_text("#!/bin/sh\nid -u\n")
        os.chown(tree / "usr/bin" / name, 0, 8)
        (tree / "usr/bin" / name).chmod(mode)
    os.chown(tree / "var/mail-of-others", 0, 8)
    (tree / "var/mail-of-others").chmod(0o2775)
    (tree / "var/lib/of-others/file").write_text("of www-data")
    os.chown(tree / "var/lib/of-others/file", 33, 33)
    (place / "repository").mkdir()
    file = place / "repository/of-others.deb"
    subprocess.run(["dpkg-deb", "--build", str(tree), str(file)], check=True, capture_output=True)
    content = file.read_bytes()
    known = CONTROL + f"Filename: ./of-others.deb\nSize: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n\n"
    (place / "repository/Packages").write_text(known)
    return place / "repository"


def image(root, directory):
    blobs = Path(directory) / "blobs/sha256"
    blobs.mkdir(parents=True)
    written = io.BytesIO()
    with tempfile.TemporaryDirectory() as place, tarfile.open(fileobj=written, mode="w") as archive:
        # Its devices are left out by who unpacks it.
        archive.add(root, arcname=".", filter=lambda entry: None if entry.name.startswith(("./proc/", "./sys/", "./dev/", "./var/cache/apt/")) else entry)
        archive.add(package(Path(place)), arcname="repository")
        source = b"deb [trusted=yes] file:/repository ./\n"
        entry = tarfile.TarInfo("etc/apt/sources.list")
        entry.size = len(source)
        archive.addfile(entry, io.BytesIO(source))
        for name in ("var/cache/apt/archives/partial",):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)

    def blob(kind, content):
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    content = written.getvalue()
    layers = [blob("layer.v1.tar+gzip", gzip.compress(content, 1))]
    config = {"architecture": ARCHITECTURE, "os": "linux", "config": {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}}
    config["rootfs"] = {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}"]}
    config = blob("config.v1+json", json.dumps(config).encode())
    kind = "application/vnd.oci.image.manifest.v1+json"
    manifest = blob("manifest.v1+json", json.dumps({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": layers}).encode())
    Path(directory, "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    Path(directory, "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))


def own_processes(binary):
    """Those of the program that is tried, but for this one's."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and binary.encode() in (process / "cmdline").read_bytes().split(b"\0")[0]:
                found.append(int(process.name))
        except OSError:
            pass
    return found


def of_numbers(first):
    """Processes of users that the system gives this one."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            users = next(line for line in (process / "status").read_text().splitlines() if line.startswith("Uid:")).split()[1:]
            if any(first <= int(user) < first + 65536 for user in users):
                found.append(int(process.name))
        except (OSError, StopIteration, ValueError):
            pass
    return found


def try_all(binary, scratch, layout):
    scratch = Path(scratch)
    scratch.mkdir(mode=0o755)
    first = int(Path("/etc/subuid").read_text().split(":")[1])
    environment = {"HOME": str(scratch), "PATH": os.environ["PATH"]}
    reference = f"oci:{layout}"
    state = scratch / ".local/state/gloveport/local"

    def gloveport(*words, limit=200):
        return subprocess.run([binary, *map(str, words)], env=environment, capture_output=True, text=True, timeout=limit)

    def start(name):
        began = time.monotonic()
        made = gloveport("session", "start", "--quiet", "--runtime", "local", "--isolation", "container", "--image", reference, "--network", "none", "--id", name)
        assert made.returncode == 0, made.stderr
        return time.monotonic() - began

    pulled = gloveport("image", "pull", "--quiet", reference)
    check("an image of a whole system is unpacked", pulled.returncode == 0, pulled.stderr)
    root = next(state.glob("images/owned-*/*/root"), None)
    check("its files have the numbers of the machine", root is not None and any(first <= path.lstat().st_uid < first + 65536 or first <= path.lstat().st_gid < first + 65536 for path in root.rglob("*") if not path.is_symlink()), root)
    start("first")
    for what, command in {
        "a package is installed by apt, which gives up its rights for that": "apt-get update && apt-get install --yes of-others && dpkg --status of-others | grep -q 'Status: install ok installed'",
        "apt becomes another user for what it fetches": "! grep -rq 'Sandbox::User' /etc/apt && ls -ld /var/lib/apt/lists/partial | grep -q '_apt'",
        "its files have their owners": "test \"$(stat -c %u:%g /var/lib/of-others/file)\" = 33:33 && test \"$(stat -c %U:%a /var/lib/of-others)\" = of-others:750",
        "no file has a bit that gives rights": "test \"$(stat -c %a:%g /usr/bin/of-others /usr/bin/of-others-group /usr/bin/of-others-too | tr '\\n' ' ')\" = '755:8 755:8 755:8 ' && test \"$(stat -c %a /var/mail-of-others)\" = 775",
        "its user is become": "test \"$(su -s /bin/sh of-others -c 'id -un; cd; touch x; stat -c %U x' | tr '\\n' ' ')\" = 'of-others of-others '",
        "it is removed again": "touch /usr/x && dpkg --purge of-others && ! id of-others 2>/dev/null || userdel of-others",
    }.items():
        done = gloveport("session", "exec", "first", command)
        check(what, done.returncode == 0, done.stdout[-1500:] + done.stderr[-500:])
    # What is hard to remove: closed directories of others, and a process of another.
    hard = "mkdir -p /a/b/c && chown -R 1000:1000 /a && chmod 0 /a/b/c /a/b && setpriv --reuid=1000 --regid=1000 --clear-groups sh -c 'sleep 1000 & sleep 1000 &' && cp -a /etc/passwd /tmp/p && chown 7 /tmp/p && mkdir /tmp/d && touch /tmp/d/f && chown -R 9 /tmp/d && chmod 500 /tmp/d"
    done = gloveport("session", "exec", "first", hard)
    check("what is hard to remove is there", done.returncode == 0 and len(of_numbers(first)) > 0, done.stdout + done.stderr)
    removed = gloveport("session", "rm", "--force", "first")
    left = [*(state / "sandboxes").iterdir(), *(state / "old").iterdir(), *of_numbers(first)]
    check("a sandbox with files and processes of others is removed", removed.returncode == 0 and not left, f"{removed.stderr}{left}")
    start("second")
    gloveport("session", "exec", "second", hard)
    victims = own_processes(binary)
    for process in victims:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
    for _ in range(100):
        if not own_processes(binary) and not of_numbers(first):
            break
        time.sleep(0.1)
    check("no process is left when all of the program are killed", len(victims) > 1 and not of_numbers(first), of_numbers(first))
    collected = gloveport("session", "gc", "--runtime", "local")
    left = [*(state / "sandboxes").iterdir(), *(state / "old").iterdir(), *(state / "new").iterdir()]
    check("what it has left is removed by who collects garbage", collected.returncode == 0 and not left, f"{collected.stdout}{collected.stderr}{left}")
    times = []
    for number in range(10):
        times.append(start(f"timed-{number}"))
    for number in range(10):
        gloveport("session", "rm", "--force", f"timed-{number}")
    print(f"starts take {statistics.median(times) * 1000:.0f} ms")
    used = gloveport("image", "rm", reference)
    left = [path for path in (state / "images").glob("*/*") if path.parent.name not in ("names", "locks")]
    check("an image with files of others is removed", used.returncode == 0 and not left, f"{used.stderr}{left}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["image", root, directory]:
            image(root, directory)
        case ["try", binary, scratch, layout]:
            try_all(binary, scratch, layout)
        case _:
            sys.exit(__doc__)
