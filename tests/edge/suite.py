"""Has programs in a sandbox use a secret that it never has.

usage: suite.py BINARY SCRATCH PLACE

PLACE is the level of isolation of a sandbox of this machine, `container` or `gvisor`; or a network of the engine that DOCKER_HOST
names, that of its containers by default, and the sandbox is one of that engine.

Prints one line a check; the last line counts them.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import servers

SECRET = "s3cret/of+the=test" + os.urandom(8).hex()
COUNTS = {"passed": 0, "FAILED": 0, "skipped": 0}
LIMIT = 180
PLACE = sys.argv[3]
LEVELS = ("container", "gvisor")


def tell(result, what, why=""):
    COUNTS[result] += 1
    print(f"{result}  {PLACE}: {what}{': ' + str(why)[:600] if why else ''}", flush=True)


def check(what, is_so, why=""):
    tell("passed" if is_so else "FAILED", what, "" if is_so else why or "it is not so")


class Sandbox:
    """A session whose commands have the placeholder as TOKEN."""

    kind = ("--isolation", PLACE)
    # What takes minutes on a kernel of its own, and does nothing there that others do not.
    has_not = ("pip", "npm", "cargo") if PLACE == "gvisor" else ()

    def __init__(self, binary, scratch, flags):
        self.binary = binary
        self.state = Path(scratch, "state")
        self.environment = {
            "HOME": os.environ["HOME"],
            "PATH": os.environ["PATH"],
            "XDG_STATE_HOME": str(self.state),
            "TOKEN": SECRET,
            # Whom the machine trusts.
            "SSL_CERT_FILE": str(Path(scratch, "authority.pem")),
        }
        self.environment |= {name: os.environ[name] for name in ("DOCKER_HOST",) if name in os.environ}
        self.id, told = self.gloveport("session", "start", *self.kind, *flags)
        if not self.id:
            raise SystemExit(f"FAILED  the sandbox does not start: {told}\n0 passed, 1 failed, 0 skipped")

    def gloveport(self, *words):
        done = subprocess.run(
            [self.binary, *words], env=self.environment, capture_output=True, text=True, timeout=LIMIT, check=False
        )
        return done.stdout.strip(), done.stderr.strip()

    def run(self, command):
        output, told = self.gloveport("session", "exec", self.id, "--", command)
        return output + told

    def remove(self):
        self.gloveport("session", "rm", "-f", self.id)

    def log_of_gate(self):
        return self.gloveport("session", "logs", self.id)[0]

    def processes(self):
        """Those of the sandbox, as this machine numbers them."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                words = b"".join((entry / file).read_bytes() for file in ("environ", "cmdline")) if entry.name.isdigit() else b""
                status = (entry / "status").read_text() if words else ""
            except OSError:
                continue
            nested = re.search(r"^NSpid:\s+\d+\s+\d+", status, re.MULTILINE)
            if nested and str(self.state).encode() in words:
                found.append(int(entry.name))
        return found


def docker(*words):
    done = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=LIMIT, check=False)
    return done.stdout.strip() + done.stderr.strip()


class InEngine(Sandbox):
    """The same in a container of an engine, with a gate beside it."""

    kind = ("--runtime", "docker")
    base = "gloveport-test/clients:1"
    has_not = ("npm", "cargo")

    def __init__(self, binary, scratch, flags):
        # An image whose programs trust the servers: the sandbox trusts whom its image trusts.
        self.image = f"gloveport-test/edge:{os.getpid()}"
        made = f"gloveport-edge-{os.getpid()}"
        bundle = "/etc/ssl/certs/ca-certificates.crt"
        mount = f"{scratch}/authority.pem:/authority.pem:ro"
        docker("run", "--name", made, "--volume", mount, self.base, "sh", "-c", f"cat /authority.pem >>{bundle}")
        # Podman's interface does not understand how the command line of Docker commits.
        path = "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        with subprocess.Popen(["docker", "export", made], stdout=subprocess.PIPE) as files:
            told = subprocess.run(
                ["docker", "import", "--change", path, "-", self.image], stdin=files.stdout, capture_output=True, check=False
            )
        if told.returncode:
            raise SystemExit(f"FAILED  the image is made: {told.stderr.decode()}\n0 passed, 1 failed, 0 skipped")
        docker("rm", "--force", "--volumes", made)
        super().__init__(binary, scratch, [*flags, "--image", self.image])

    def remove(self):
        super().remove()
        docker("rmi", "--force", self.image)

    @property
    def container(self):
        return f"openhands-runtime-{self.id}"

    def log_of_gate(self):
        return docker("logs", f"{self.container}-gate")

    def processes(self):
        first = docker("inspect", "--format", "{{.State.Pid}}", self.container)
        own = os.readlink(f"/proc/{first}/ns/pid")
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.readlink(entry / "ns/pid") == own:
                    found.append(int(entry.name))
            except OSError:
                continue
        return found


def memory_of(pid):
    """What a process holds."""
    with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb") as memory:
        for line in maps:
            span, modes, *_ = line.split()
            if not modes.startswith("rw"):
                continue
            begin, end = (int(part, 16) for part in span.split("-"))
            try:
                memory.seek(begin)
                yield memory.read(min(end - begin, 256 << 20))
            except (OSError, ValueError):
                continue


def clients(sandbox, named, name):
    """The usual programs, each with its usual settings for a token."""
    url = f"https://{named}"
    scripts = {
        "curl": f'curl -sS -H "Authorization: Bearer $TOKEN" {url}/npm/{name}',
        "curl with a user and a password": f'curl -sS -u "somebody:$TOKEN" {url}/simple/{name}/',
        "Python's urllib": "python3 -c \"import os, urllib.request as u; print(u.urlopen(u.Request("
        f"'{url}/npm/{name}', headers={{'Authorization': 'Bearer ' + os.environ['TOKEN']}})).read().decode())\"",
        "git clone": f'git clone -q "https://somebody:$TOKEN@{named}/git/one.git" one && cat one/README',
        "git push": "cd one && git config user.email a@b.test && git config user.name me && echo more >README && "
        f"git commit -qam more && git push -q && cd .. && rm -rf one && git clone -q "
        f'"https://somebody:$TOKEN@{named}/git/one.git" one && cat one/README',
        "pip": f'python3 -m venv made && made/bin/pip install -q --disable-pip-version-check --index-url '
        f'"https://somebody:$TOKEN@{named}/simple/" {name} && made/bin/python -c "import {name}; print({name}.WORD)"',
        "npm": f'mkdir -p n && cd n && printf "registry={url}/npm/\\n//{named}/npm/:_authToken=\\${{TOKEN}}\\n" >.npmrc && '
        f"npm install --loglevel warn --no-audit --no-fund {name} && node -p \"require('{name}')\"",
        "cargo": "cargo init -q --vcs none --name user c && cd c && mkdir .cargo && "
        f"printf '[registries.own]\\nindex = \"sparse+{url}/crates/\"\\n[registry]\\nglobal-credential-providers = "
        '["cargo:token"]\\n\' >.cargo/config.toml && '
        f"printf '{name} = {{ version = \"1\", registry = \"own\" }}\\n' >>Cargo.toml && "
        f"printf 'fn main() {{ println!(\"{{}}\", {name}::WORD) }}' >src/main.rs && "
        'CARGO_REGISTRIES_OWN_TOKEN="Bearer $TOKEN" cargo run -q',
    }
    expected = {"curl": '"dist-tags"', "curl with a user and a password": "whl", "Python's urllib": '"dist-tags"'}
    expected |= {"git clone": "first", "git push": "more", "pip": "pip", "npm": "npm", "cargo": "cargo"}
    for what, script in scripts.items():
        program = what.split()[0].replace("Python's", "python3")
        if program in sandbox.has_not:
            continue
        if not sandbox.run(f"command -v {'python3' if program == 'pip' else program}"):
            tell("skipped", what, f"there is no {program}")
            continue
        output = sandbox.run(script)
        check(f"{what} works with the placeholder", expected[what] in output.splitlines() or expected[what] in output, output)
        check(f"{what} is not told the secret", SECRET not in output, output)


def where_it_goes(sandbox, named, other, seen_named, seen_other):
    """It is put in for its host, in what is said of a request, and nowhere else."""
    placeholder = sandbox.run("printf %s $TOKEN")
    check("the variable is a placeholder", placeholder.startswith("gloveport-secret-"), placeholder)
    ask = 'curl -sS -H "X-Token: $TOKEN" --data "body $TOKEN"'
    told = sandbox.run(f'{ask} "https://{named}/echo?q=$TOKEN"')
    sent = seen_named[-1]
    check("it is put into headers", sent["headers"].get("x-token") == SECRET, sent)
    check("it is put into the line of the request", "=s3cret/of%2Bthe%3D" in sent["path"], sent["path"])
    check("it is not put into bodies", sent["body"] == f"body {placeholder}", sent["body"])
    check("an answer with it is masked", SECRET not in told and "*" * len(SECRET) in told, told)
    sandbox.run(f'{ask} "https://{other}/echo?q=$TOKEN"')
    sent = seen_other[-1]
    check("another host gets the placeholder", placeholder in str(sent) and SECRET not in str(seen_other), sent)


def traces(sandbox):
    """It is nowhere in the sandbox."""
    said = sandbox.run("env; cat /proc/self/environ; grep -rsl s3cret / --include='*' --exclude-dir=proc --exclude-dir=sys "
                       "--exclude-dir=usr --exclude-dir=lib | head; tr '\\0' '\\n' </proc/1/environ; ls -l /proc/1/fd")
    check("no variable, no file and nothing of the first process has it", SECRET not in said and "s3cret" not in said, said)
    state = [path for path in sandbox.state.rglob("*") if path.is_file()]
    held = [str(path) for path in state if SECRET.encode() in path.read_bytes()]
    check(f"none of {len(state)} files of sessions on this machine has it", not held and state, held)
    logs = sandbox.log_of_gate()
    check("the log tells that it was used, and not what it is", "TOKEN" in logs and "s3cret" not in logs, logs[-2000:])
    if os.geteuid() != 0:
        tell("skipped", "memory", "only root may look at it")
        return
    processes = sandbox.processes()
    with_it = [pid for pid in processes if any(SECRET.encode() in part for part in memory_of(pid))]
    check(f"no memory of its {len(processes)} processes has it", processes and not with_it, (processes, with_it))


def in_engine(sandbox):
    """It is in nothing that the engine shows or keeps of the sandbox and its gate."""
    for container in (sandbox.container, f"{sandbox.container}-gate"):
        shown = docker("inspect", container) + docker("logs", container)
        check(f"the engine shows it in nothing of {container}", len(shown) > 1000 and "s3cret" not in shown, shown)
    before, size, is_there = b"", 0, False
    with subprocess.Popen(["docker", "export", sandbox.container], stdout=subprocess.PIPE) as stream:
        while piece := stream.stdout.read(1 << 20):
            is_there |= SECRET.encode() in before + piece
            before, size = piece[-len(SECRET) :], size + len(piece)
    check("no file of the container has it", stream.returncode == 0 and size > 1 << 20 and not is_there, size)
    placeholder = sandbox.run("printf %s $TOKEN")
    shown = docker("inspect", sandbox.container)
    check("the placeholder is in no configuration", len(placeholder) > 40 and placeholder not in shown, shown)


def without_memory(sandbox, named, other, seen_named):
    """A gate that was started again has nothing to put in: nothing goes to the host, and all else goes on."""
    before = len(seen_named)
    docker("restart", "--time", "1", f"{sandbox.container}-gate")
    ask = 'curl -sS -H "X-Token: $TOKEN"'
    end, told = time.monotonic() + 90, ""
    while "works again" not in told and time.monotonic() < end:
        told = sandbox.run("echo works again")
    told = sandbox.run(f"{ask} https://{named}/echo; curl -sS http://{named}/echo; {ask} -so /dev/null -w '%{{http_connect}}' https://{named}/")
    check("a gate that was started again refuses its host", "500" in told and len(seen_named) == before, told)
    check("and says why, and what to do", "was started again" in told and "--secret NAME@HOST" in told, told)
    check("other hosts are reached", '"path": "/echo"' in sandbox.run(f"{ask} https://{other}/echo"), told)
    said = sandbox.log_of_gate()
    check("its log says so", "no secrets came on standard input" in said and "s3cret" not in said, said[-1000:])


def main():
    binary, scratch, place = sys.argv[1:]
    kind, addresses, bound = Sandbox, ("127.0.0.2", "127.0.0.3"), None
    network = None if place in LEVELS else place
    if network:
        # The machine of the engine, as its containers see it. It may have no such address before the first of them.
        format = "{{range .IPAM.Config}}{{.Gateway}} {{end}}"
        address = docker("network", "inspect", "--format", format, network).split()[0]
        kind, addresses, bound = InEngine, (address, address), "0.0.0.0"
    servers.certificates(scratch, sorted(set(addresses)))
    repository = Path(scratch, "repositories/one.git")
    git = ["git", "-c", "user.email=a@b.test", "-c", "user.name=me", "-c", "init.defaultBranch=main"]
    work = Path(scratch, "first")
    subprocess.run([*git, "init", "-q", work], check=True)
    Path(work, "README").write_text("first\n")
    subprocess.run([*git, "-C", work, "add", "README"], check=True)
    subprocess.run([*git, "-C", work, "commit", "-qm", "first"], check=True)
    subprocess.run([*git, "clone", "-q", "--bare", work, repository], check=True)
    subprocess.run([*git, "-C", repository, "config", "http.receivepack", "true"], check=True)
    (bound_server, named), (free, other) = (
        servers.start(address, scratch, SECRET, bound=bound) for address in addresses
    )
    sandbox = kind(binary, scratch, ["--secret", f"TOKEN@{named}", "--network", f"{named},{other}"])
    try:
        where_it_goes(sandbox, named, other, bound_server.seen, free.seen)
        clients(sandbox, named, servers.NAME)
        check("no host but its own has seen it", SECRET not in str(free.seen))
        traces(sandbox)
        if network:
            in_engine(sandbox)
            without_memory(sandbox, named, other, bound_server.seen)
    finally:
        sandbox.remove()
    print(f"{COUNTS['passed']} passed, {COUNTS['FAILED']} failed, {COUNTS['skipped']} skipped")
    sys.exit(1 if COUNTS["FAILED"] else 0)


main()
