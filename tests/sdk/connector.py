"""Our backend in a sandbox of an agent-server: what a session does there that has no tools of its own.

usage: connector.py BINARY NAME URL KEY DIRECTORY SCRATCH

NAME is whose server it is, DIRECTORY is its directory, and files for the test go into SCRATCH. Prints one line a check,
`passed  …` or `FAILED  …`; the last line counts them.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

COUNTS = {True: 0, False: 0}


def check(what, is_so, told=""):
    COUNTS[bool(is_so)] += 1
    print(f"passed  {what}" if is_so else f"FAILED  {what}: {told}", flush=True)


def action(name, **arguments):
    return {"source": "agent", "action": name, "args": arguments}


def trajectory(place):
    file = f"{place}/greeting.txt"
    return [
        action("run", command=f"mkdir -p {place} && cd {place} && export KEPT=yes"),
        action("run", command="echo $KEPT; basename $PWD; (exit 3)"),
        action("write", path=file, content="hello\nw\u00f6rld\n"),
        action("read", path=file),
        action("edit", path=file, command="str_replace", old_str="hello", new_str="bye"),
        action("edit", path=file, command="view"),
        action("run", command="seq 1 300000 > many; wc -l < many; cat greeting.txt"),
        action("run", command="git init -q . && git status --short"),
    ]


def processes(workspace):
    """Processes of tools that were brought for work in this directory."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"relayed-server" in line and os.fsencode(workspace) in line:
            found.append(int(entry.name))
    return found


def main(binary, name, url, key, directory, scratch):
    label = f"connector: {name}:"
    scratch = Path(scratch)
    scratch.mkdir(parents=True, exist_ok=True)
    place = f"{directory}/of-the-connector"
    events = [{"id": number} | event for number, event in enumerate(trajectory(place))]
    (scratch / "trajectory.json").write_text(json.dumps(events))
    secret = scratch / "key"
    secret.write_text(key)
    secret.chmod(0o600)
    # It is not there, so the tools start where the server does; by its name they are known.
    workspace = f"/nonexistent/{os.path.basename(scratch)}-{os.getpid()}"
    settings = scratch / "config.toml"
    settings.write_text(f'[core]\nworkspace_mount_path_in_sandbox = "{workspace}"\n')
    command = [binary, "replay", scratch / "trajectory.json", "--json", "--url", url, "--key-file", secret]
    command += ["--config-file", settings]
    environment = os.environ | {"HOME": str(scratch)}
    seconds, seen = [], []
    for turn in ("the first session", "the next one, which finds the program there"):
        began = time.monotonic()
        child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        found = processes(workspace)
        while child.poll() is None and not found:
            time.sleep(0.01)
            found = processes(workspace)
        seen.append(bool(found))
        output, errors = child.communicate(timeout=120)
        seconds.append(time.monotonic() - began)
        check(f"{label} {turn} executes all", child.returncode == 0 and seen[-1], (child.returncode, seen, errors[-800:]))
        told = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        found = [event for event in told if "observation" in event]
        contents = [event.get("content", "") for event in found]
        expected = ["", "yes\nof-the-connector", None, "hello\nw\u00f6rld", None, None, "300000\nbye\nw\u00f6rld", None]
        same = len(contents) == len(expected) and all(
            wanted is None or wanted == content.rstrip() for wanted, content in zip(expected, contents)
        )
        check(f"{label} {turn} observes what was done", same, contents)
        if len(found) == len(expected):
            code = found[1]["extras"]["metadata"]["exit_code"]
            check(f"{label} {turn} knows the exit code", code == 3, code)
            check(f"{label} {turn} edits and views files", "bye" in contents[5] and "w\u00f6rld" in contents[5], contents[5])
            check(f"{label} {turn} sees what git says", "?? greeting.txt" in contents[7], contents[7])
        Path(place, "greeting.txt").unlink(missing_ok=True)
        subprocess.run(["rm", "-rf", f"{place}/.git"], check=True)
    end = time.monotonic() + 10
    while processes(workspace) and time.monotonic() < end:
        time.sleep(0.1)
    left = processes(workspace)
    check(f"{label} nothing that was brought runs on", not left, left)
    print(f"{label} {seconds[0]:.2f} s for the first session, {seconds[1]:.2f} s for the next one", flush=True)
    print(f"{COUNTS[True]} passed, {COUNTS[False]} failed, 0 skipped")


main(*sys.argv[1:])
