"""Runs the command blocks of the documents; see `run`."""

import atexit
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from plans import PLANS

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ["HOME"]) / ".cache/gloveport"

# Words of the documents stand for a person at a terminal: servers run on beside the next line, and who opens a terminal
# leaves it by C-p C-q, or by the end of its shell.
PERSON = r"""
set -euo pipefail
exec 2>&1
serving() {
    local output="$HOME/server-$RANDOM" line
    command gloveport "$@" > "$output" 2>&1 &
    for _ in $(seq 1 600); do
        if [[ $1 != action-execution-server ]]; then
            ! grep -q '^listening' "$output" || break
        else
            ! curl -s -o "$output.alive" "http://127.0.0.1:$2/alive" || break
        fi
        if ! kill -0 $! 2>/dev/null; then cat "$output"; return 1; fi
        sleep 0.1
    done
    # A server prints this line for whoever started it, and is kept in the variables of the first one.
    line=$(grep '^export GLOVEPORT_URL' "$output" || true)
    [[ -n ${GLOVEPORT_KEY:-} ]] || PRINTED=$line
}
at_a_terminal() {
    local keys='exit\r'
    [[ $* != *htop* ]] || keys='\x10\x11'
    { sleep 1; printf "$keys"; sleep 1; } | script -qec "$(printf '%q ' gloveport "$@")" /dev/null
}
gloveport() {
    case " $* " in
        " serve "* | " gateway --"* | " action-execution-server "*) serving "$@" ;;
        *" -it "*) at_a_terminal "$@" ;;
        *) command gloveport "$@" ;;
    esac
}
scripts_end() { jobs -p | xargs -r kill 2>/dev/null || true; wait || true; }
trap scripts_end EXIT
"""


def blocks(file):
    """The line, and the text, of each block of commands in a document."""
    found, start, lines = [], None, []
    for number, line in enumerate((ROOT / file).read_text().splitlines(), 1):
        if start is None and re.fullmatch(r"```(sh|bash|console)", line.strip()):
            start, lines = number + 1, []
        elif start is not None and line.strip() == "```":
            found.append((start, "\n".join(lines)))
            start = None
        elif start is not None:
            lines.append(line)
    return found


def free(port):
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def docker(*words):
    return subprocess.run(["docker", *words], capture_output=True, text=True)


def kubectl(*words):
    script = os.environ["GLOVEPORT_TEST_CLUSTER_SCRIPT"]
    return subprocess.run([script, "kubectl", *words], capture_output=True, text=True)


def namespace():
    """Makes one in the cluster, in which pods can be made, and which ends with this program."""
    name = f"gloveport-docs-{secrets.token_hex(4)}"
    atexit.register(kubectl, "delete", "namespace", name, "--ignore-not-found", "--wait=false")
    for words in (["create", "namespace", name], ["get", "serviceaccount", "default", "--namespace", name]):
        deadline = time.monotonic() + 30
        while (done := kubectl(*words)).returncode:
            if time.monotonic() > deadline:
                sys.exit(done.stderr)
            time.sleep(0.1)
    return name


def obstacle(need):
    """Why this machine does not have what a block needs; `None` if it does."""
    if need == "docker":
        engine = os.environ.get("GLOVEPORT_TEST_DOCKER")
        if engine:
            os.environ["DOCKER_HOST"] = engine
        if not engine or not shutil.which("docker") or docker("version").returncode:
            return "no Docker engine is set up (scripts/docker)"
    elif need == "cluster":
        if not os.environ.get("GLOVEPORT_TEST_CLUSTER") or kubectl("version").returncode:
            return "no cluster is set up (scripts/cluster)"
        os.environ["DOCKER_HOST"] = os.environ["GLOVEPORT_TEST_CLUSTER_DOCKER"]
    elif need == "root":
        layers = "lowerdir=/etc,upperdir=/mnt/a,workdir=/mnt/b"
        mounts = f"mount -t tmpfs none /mnt && mkdir /mnt/a /mnt/b && mount -t overlay none -o {layers} /etc"
        if subprocess.run(["unshare", "--mount", "sh", "-c", mounts], capture_output=True).returncode:
            return "overlays cannot be mounted here"
    elif need == "mcp":
        if not (CACHE / "mcp/complete").is_file():
            return "MCP servers are not installed (scripts/setup)"
    elif need == "vscode":
        if not (CACHE / "vscode/complete").exists():
            return "VS Code is not installed (scripts/setup)"
    elif need == "ipython":
        if not any((CACHE / "python").glob("*")):
            return "no ipykernel is installed (scripts/setup)"
    return None


# The names of images in the documents, and images of the tests that have what their readers use.
IMAGES = {
    "debian:13": "gloveport-test/python:3",
    "debian:12": "gloveport-test/python:3",
    "busybox:latest": "gloveport-test/busybox:1",
}


def tags():
    """The names of all images."""
    listed = docker("image", "ls", "--format", "{{.Repository}}:{{.Tag}}").stdout.split()
    return {name for name in listed if "<none>" not in name}


def name_images(binary):
    """Gives the test's images the names of the documents."""
    default = subprocess.run([binary, "config", "default"], capture_output=True, text=True).stdout
    names = dict(IMAGES)
    if match := re.search(r'^#?base_container_image = "(.+)"', default, re.MULTILINE):
        names[match[1]] = "gloveport-test/python:3"
    for name, image in names.items():
        if docker("image", "inspect", name).returncode:
            docker("tag", image, name)


# A root of the block's own, so that it makes users and directories nowhere else: changes go to memory.
OWN_ROOT = r"""
set -e
mount -t tmpfs none /mnt
for place in etc opt var root home; do
    mkdir -p "/mnt/$place/changes" "/mnt/$place/work"
    mount -t overlay overlay -o "lowerdir=/$place,upperdir=/mnt/$place/changes,workdir=/mnt/$place/work" "/$place"
done
mkdir -p /mnt/workspace
[ -d /workspace ] && mount --bind /mnt/workspace /workspace
exec bash "$1"
"""


def end_all(mark):
    """Ends the processes that have this variable."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    os.kill(int(process.name), number)
                    found.append(process)
            except OSError:
                pass  # It has ended meanwhile.
        deadline = time.monotonic() + 5
        while any(process.exists() for process in found) and time.monotonic() < deadline:
            time.sleep(0.02)


def perform(binary, text, plan, scratch):
    """Runs one block; answers its exit code and what it printed."""
    home, directory, programs = scratch / "home", scratch / "here", scratch / "bin"
    for made in (home, directory, programs):
        made.mkdir()
    (programs / "gloveport").symlink_to(binary)
    kept, left_out = [], False
    for line in text.splitlines():
        if not (left_out and kept and re.match(r"\s", line)):
            left_out = any(line.startswith(words) for words in plan.without)
        if not left_out:
            kept.append(line)
    script = scratch / "block"
    export = '[[ -z ${PRINTED:-} ]] || eval "$PRINTED"\n' if "$GLOVEPORT_" in text else ""
    script.write_text(f"{PERSON}\n{plan.given}\n{export}" + "\n".join(kept) + "\n")
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(home),
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "CHECKOUT": str(ROOT),
        "CACHE": str(CACHE),
        "USER": "root" if os.geteuid() == 0 else "reader",
    }
    keep = ("DOCKER_HOST", "CARGO_TARGET_DIR", "CARGO_HOME", "RUSTUP_HOME", "PYENV_ROOT")
    environment |= {name: os.environ[name] for name in keep if name in os.environ}
    real = os.environ["HOME"]
    environment.setdefault("CARGO_HOME", f"{real}/.cargo")
    environment.setdefault("RUSTUP_HOME", f"{real}/.rustup")
    environment.setdefault("CARGO_TARGET_DIR", str(CACHE / "target"))
    if "ipython" in plan.needs or "serve" in text:
        # The reader's first cell has installed a kernel.
        (home / ".cache").mkdir()
        (home / ".cache/gloveport").symlink_to(CACHE)
    if "cluster" in plan.needs:
        environment |= {"KUBECONFIG": os.environ["KUBECONFIG"], "KUBERNETES_NAMESPACE": namespace()}
    words = ["bash", str(script)]
    if "root" in plan.needs:
        root = scratch / "root"
        root.write_text(OWN_ROOT)
        words = ["unshare", "--mount", "sh", str(root), str(script)]
    with (scratch / "output").open("wb") as output:
        child = subprocess.Popen(
            words, cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=output, start_new_session=True
        )
        try:
            code = child.wait(plan.limit)
        except subprocess.TimeoutExpired:
            code = f"none within {plan.limit} s"
        finally:
            # Also when this program itself is told to end.
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()
    # What the reader has started and not ended: sessions, and servers of a provider of his own.
    clean = [str(binary), "session", "ls", "--json"]
    listed = subprocess.run(clean, env=environment, capture_output=True, text=True)
    for sid in re.findall(r'"session_id": ?"([^"]+)"', listed.stdout):
        subprocess.run([str(binary), "session", "rm", "-f", sid], env=environment, capture_output=True)
    end_all(f"HOME={home}".encode())
    return code, (scratch / "output").read_text(errors="replace")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    binary, wanted = sys.argv[1], sys.argv[2:]
    files = ["README.md", "CONTRIBUTING.md", "SECURITY.md"]
    files += sorted(str(file.relative_to(ROOT)) for file in (ROOT / "docs").glob("*.md"))
    passed = failed = skipped = 0
    unused, images = set(PLANS), None
    for file in files:
        for line, text in blocks(file):
            place = f"{file}:{line}"
            key = next((key for key in PLANS if key[0] == file and text.startswith(key[1])), None)
            unused.discard(key)
            if wanted and not any(word in place or word in text for word in wanted):
                continue
            if key is None:
                print(f"FAILED  {place}  no plan in tests/docs/plans.py says what it needs")
                failed += 1
                continue
            plan = PLANS[key]
            reason = plan.skip or next(filter(None, map(obstacle, plan.needs)), None)
            ports = [int(port) for port in set(re.findall(r"\b(8000|8001|3000)\b", plan.given + text))]
            busy = [port for port in ports if not free(port)]
            if not reason and busy:
                reason = f"something else uses port {busy[0]}"
            if reason:
                print(f"skipped {place}  {reason}")
                skipped += 1
                continue
            if {"docker", "cluster"} & set(plan.needs) and images is None:
                # What a run that was cut off has kept of the sessions that the documents name.
                kept = docker("image", "ls", "--quiet", "--filter", "label=gloveport.snapshot.session=ID").stdout.split()
                for image in set(kept):
                    docker("image", "rm", "--force", image)
                images = tags()
                name_images(binary)
            with tempfile.TemporaryDirectory(prefix="gp", ignore_cleanup_errors=True) as scratch:
                code, output = perform(binary, text, plan, Path(scratch))
            for words, why in plan.without.items():
                print(f"left out {place}  {words}: {why}")
            if code == 0:
                print(f"ok      {place}", flush=True)
                passed += 1
            else:
                print(f"FAILED  {place}  exit code {code}; it printed:\n{output}", flush=True)
                failed += 1
    # Also what the blocks have built.
    for name in tags() - images if images is not None else []:
        docker("rmi", name)
    for file, words in sorted(unused):
        print(f"FAILED  {file}  has no block any more that begins with `{words}`")
        failed += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


sys.exit(main())
