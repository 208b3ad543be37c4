"""Has programs in a sandbox use a secret that it never has.

usage: suite.py BINARY SCRATCH

Prints one line a check; the last line counts them.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import servers

SECRET = "s3cret/of+the=test" + os.urandom(8).hex()
COUNTS = {"passed": 0, "FAILED": 0, "skipped": 0}
LIMIT = 180


def tell(result, what, why=""):
    COUNTS[result] += 1
    print(f"{result}  {what}{': ' + str(why)[:600] if why else ''}", flush=True)


def check(what, is_so, why=""):
    tell("passed" if is_so else "FAILED", what, "" if is_so else why or "it is not so")


class Sandbox:
    """A session whose commands have the placeholder as TOKEN."""

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
        self.id, told = self.gloveport("session", "start", "--isolation", "container", *flags)
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
        if shutil.which("python3" if program == "pip" else program) is None:
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
    logs = sandbox.gloveport("session", "logs", sandbox.id)[0]
    check("the log tells that it was used, and not what it is", "TOKEN" in logs and "s3cret" not in logs, logs[-2000:])
    if os.geteuid() != 0:
        tell("skipped", "memory", "only root may look at it")
        return
    processes = sandbox.processes()
    with_it = [pid for pid in processes if any(SECRET.encode() in part for part in memory_of(pid))]
    check(f"no memory of its {len(processes)} processes has it", processes and not with_it, (processes, with_it))


def main():
    binary, scratch = sys.argv[1:]
    servers.certificates(scratch)
    repository = Path(scratch, "repositories/one.git")
    git = ["git", "-c", "user.email=a@b.test", "-c", "user.name=me", "-c", "init.defaultBranch=main"]
    work = Path(scratch, "first")
    subprocess.run([*git, "init", "-q", work], check=True)
    Path(work, "README").write_text("first\n")
    subprocess.run([*git, "-C", work, "add", "README"], check=True)
    subprocess.run([*git, "-C", work, "commit", "-qm", "first"], check=True)
    subprocess.run([*git, "clone", "-q", "--bare", work, repository], check=True)
    subprocess.run([*git, "-C", repository, "config", "http.receivepack", "true"], check=True)
    (bound, named), (free, other) = (servers.start(address, scratch, SECRET) for address in ("127.0.0.2", "127.0.0.3"))
    sandbox = Sandbox(binary, scratch, ["--secret", f"TOKEN@{named}", "--network", f"{named},{other}"])
    try:
        where_it_goes(sandbox, named, other, bound.seen, free.seen)
        clients(sandbox, named, servers.NAME)
        check("no host but its own has seen it", SECRET not in str(free.seen))
        traces(sandbox)
    finally:
        sandbox.gloveport("session", "rm", "-f", sandbox.id)
    print(f"{COUNTS['passed']} passed, {COUNTS['FAILED']} failed, {COUNTS['skipped']} skipped")
    sys.exit(1 if COUNTS["FAILED"] else 0)


main()
