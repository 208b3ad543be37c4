"""Drives our server with an older SDK of OpenHands, and compares what it gets with what its own server gives it.

usage: older.py VERSION TOKEN OUR-URL OUR-DIRECTORY THEIR-URL THEIR-DIRECTORY

It runs in the environment of that version. Each directory is the one that a server was started in, and all see the
same files. Every public method of the workspaces is called, of the asynchronous one as well. What differs on purpose is
listed here with the reason: a difference that is not listed fails, and so does one that is no more.

Prints one line a check; the last line is `N passed, N failed, N skipped`.
"""

import asyncio
import inspect
import json
import os
import re
import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote_plus

# The SDK logs on the standard output.
OUTPUT = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

from openhands.sdk.workspace.remote.async_remote_workspace import AsyncRemoteWorkspace
from openhands.sdk.workspace.remote.base import RemoteWorkspace

# Seconds after which a workspace counts as one that hangs.
LIMIT = 150

ENDED = "an end by the time limit says so in `stderr`, by which alone the SDK sets `timeout_occurred`"
SECOND = "a limit of 0 is one second: the SDK sends it for every limit below a second"
KEYS = "no command gets a key"
SIZE = "the size of what was stored is told, as servers after 1.43 do"
WRONG = "what cannot be asked for is no error of the server, as newer ones have it"
NAMES = "a name is read as it is: there git's quoting of it is taken for the name, or a space in it for its end"
BASE = "what is no commit of another branch is compared with HEAD, as servers from 1.43 on do"
AGENT = "a sandbox without an agent has no settings of one"

# What differs, by the check's name.
ON_PURPOSE = {
    "execute_command: a limit": ENDED,
    "execute_command: a limit below a second": SECOND,
    "execute_command: printenv OH_SESSION_API_KEYS_0 OH_SECRET_KEY SESSION_API_KEY": KEYS,
    "file_upload: a new one": SIZE,
    "file_upload: over a file": SIZE,
    "file_upload: with a percent sign": SIZE,
    "file_upload: with a space and letters": SIZE,
    "file_upload: onto a directory": WRONG,
    "file_upload: below a file": WRONG,
}
# And only in one version.
ON_PURPOSE_IN = {
    "1.31.2": {
        "git_changes: of the directory": BASE,
        "git_changes: below it": BASE,
        "git_changes: of an absolute path": BASE,
        "git_changes: of names with blanks and letters": NAMES,
        "git_diff: of a file": BASE,
        "git_diff: of an absolute path": BASE,
        "git_diff: of a name with a space": BASE,
        "get_llm: of the settings": AGENT,
        "get_secrets": AGENT,
        "get_mcp_config": AGENT,
    },
}

VERSION = sys.argv[1]
CHECKS = {}


def check(function):
    """A check of the method of that name."""
    CHECKS[function.__name__] = function
    return function


class Blocking:
    """An asynchronous workspace whose methods wait."""

    def __init__(self, **where):
        self.loop = asyncio.new_event_loop()
        self.workspace = AsyncRemoteWorkspace(**where)

    def __getattr__(self, name):
        value = getattr(self.workspace, name)
        if not inspect.iscoroutinefunction(value):
            return value
        return lambda *arguments, **more: self.loop.run_until_complete(value(*arguments, **more))


class Client:
    """How one of the two workspaces reaches one of the two servers."""

    def __init__(self, kind, url, token, directory):
        self.kind, self.url, self.token = kind, url, token
        self.server, self.place = Path(directory), Path(directory) / f"{VERSION}-{kind.__name__}"
        self.place.mkdir()
        self.workspace = self.of(self.place)

    def of(self, directory, **more):
        where = {"host": self.url, "api_key": self.token, "working_dir": str(directory)} | more
        return Blocking(**where) if self.kind is AsyncRemoteWorkspace else self.kind(**where)

    def below(self, name):
        place = self.place / name
        place.mkdir()
        return place

    def told(self, value):
        """The value without what tells the servers apart."""
        text = json.dumps(value, sort_keys=True, ensure_ascii=False)
        for plain, stand_in in ((str(self.place), "PLACE"), (str(self.server), "ROOT"), (self.url, "URL")):
            text = text.replace(plain, stand_in).replace(quote_plus(plain), stand_in)
        return json.loads(re.sub(r"For more information check: [^\s\"]+", "", text))


def raised(call):
    try:
        return call()
    except Exception as error:
        return {"raises": type(error).__name__, "message": str(error)}


def git(place, *arguments):
    who = {f"GIT_{who}_{what}": "ada@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    none = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *arguments], cwd=place, env=os.environ | who | none, check=True, capture_output=True)


def repository(place, names):
    """A repository with these files, of which each is changed, and a new one."""
    place.mkdir()
    git(place, "init", "-q", "-b", "main")
    for name in names:
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("one\ntwo\n")
    git(place, "add", ".")
    git(place, "commit", "-q", "-m", "first")
    for name in names:
        (place / name).write_text("one\nTWO\n")
    (place / "new").write_text("new\n")
    return place


# --- both workspaces


COMMANDS = [
    "echo hi", "", "exit 7", "echo out; echo err >&2; exit 3", "echo a\necho b", "no-such-program", "if true",
    "echo $0", "source /dev/null", "kill -9 $$", "kill -15 $$", "cat; echo end", "printf '\\377ok'", "echo grün 😀 é",
    "X=1; export X", "echo ${X-unset}; pwd", "seq 20000", "head -c 1000000 /dev/zero | tr '\\0' a",
    "sleep 0.3; echo late", "sleep 1 & echo with a job", "sleep 30 >/dev/null 2>&1 & echo without its output",
    "printenv OH_SESSION_API_KEYS_0 OH_SECRET_KEY SESSION_API_KEY",
]  # fmt: skip


@check
def execute_command(client):
    run = lambda *arguments, **more: client.workspace.execute_command(*arguments, **more).model_dump()
    found = {text: run(text) for text in COMMANDS}
    # Before there was `order__gt`, a client could read an event twice.
    large = run("head -c 2500000 /dev/zero | tr '\\0' a; echo end >&2")
    found["a large output"] = [len(large["stdout"]) >= 2500000, set(large["stdout"]) == {"a"}, large["stderr"]]
    found["a directory"] = run("pwd", cwd=str(client.place))
    found["a path as the directory"] = run("pwd", cwd=client.place)
    found["a missing directory"] = run("pwd", cwd="/no/such")
    found["a limit"] = run("echo a; sleep 30", timeout=1.9)
    found["a limit below a second"] = run("echo a", timeout=0.5)
    found["without a key"] = client.of("/", api_key=None).execute_command("echo hi").model_dump()
    found["with a wrong key"] = client.of("/", api_key="wrong").execute_command("echo hi").model_dump()
    slash = client.of("/", host=client.url + "/")
    found["with a slash behind the host"] = slash.execute_command("echo hi").model_dump()
    return found


@check
def file_upload(client):
    place = client.below("upload")
    source = place / "source"
    source.write_bytes(bytes(range(256)) * 20000)
    (place / "empty").write_bytes(b"")
    (place / "file").write_text("a file")
    send = lambda to, what=source: client.workspace.file_upload(what, to).model_dump()
    found = {
        "a new one": send(place / "parents/of it/new"),
        "over a file": send(place / "file", place / "empty"),
        "with a space and letters": send(place / "a ü 😀"),
        "with a percent sign": send(place / "100%25 +&"),
        "onto a directory": send(place / "parents", place / "empty"),
        "below a file": send(place / "file/below", place / "empty"),
        "of nothing": send(place / "x", place / "no such"),
        "without a key": client.of("/", api_key=None).file_upload(source, place / "x").model_dump(),
    }
    found["there"] = {
        str(path.relative_to(place)): path.stat().st_size for path in sorted(place.rglob("*")) if path.is_file()
    }
    return found


@check
def file_download(client):
    place = client.below("download")
    data = bytes(range(256)) * 20000
    names = ["file", "a ü 😀", "100%25 +&", "empty"]
    for name in names:
        (place / name).write_bytes(b"" if name == "empty" else data)
    (place / "directory").mkdir()
    fetch = lambda what, to=place / "back": client.workspace.file_download(what, to).model_dump()
    found = {}
    for name in names:
        back = place / "new parents" / f"back of {name}"
        found[f"of {name!r}"] = [fetch(place / name, back), back.exists() and back.read_bytes() == data]
    return found | {
        "of nothing": fetch(place / "no such"),
        "of a directory": fetch(place / "directory"),
        "without a key": client.of("/", api_key=None).file_download(place / "file", place / "back").model_dump(),
        "nothing is written then": not (place / "back").exists(),
    }


@check
def git_changes(client):
    place = client.below("changes")
    first = repository(place / "first", ["changed", "sub/inner"])
    second = repository(place / "second", ["with space", "é"])
    (place / "none").mkdir()
    workspace = client.of(first)
    changes = lambda path: raised(lambda: [one.model_dump(mode="json") for one in workspace.git_changes(path)])
    return {
        "of the directory": changes("."),
        "below it": changes("sub"),
        "of an absolute path": changes(first),
        "of names with blanks and letters": changes(second),
        "of no repository": changes(place / "none"),
        "of nothing": changes("/no/such"),
    }


@check
def git_diff(client):
    place = client.below("diff")
    workspace = client.of(repository(place / "first", ["changed", "with space"]))
    diff = lambda path: raised(lambda: workspace.git_diff(path).model_dump(mode="json"))
    return {
        "of a file": diff("changed"),
        "of an absolute path": diff(place / "first/changed"),
        "of a new file": diff("new"),
        "of a name with a space": diff("with space"),
        "of nothing": diff("no-such"),
    }


@check
def alive(client):
    return {"yes": client.workspace.alive, "no": client.of("/", host="http://127.0.0.1:1").alive}


@check
def client(client):
    # What it asks for has the address and the key.
    asked = client.workspace.client
    return [str(asked.base_url).rstrip("/"), asked.headers.get("X-Session-API-Key") == client.token]


@check
def reset_client(client):
    workspace = client.of("/", api_key="wrong")
    before = workspace.execute_command("echo hi").exit_code
    getattr(workspace, "workspace", workspace).api_key = client.token
    workspace.reset_client()
    return [before, workspace.execute_command("echo hi").model_dump()]


# --- only the one that waits


@check
def get_server_info(client):
    info = client.workspace.get_server_info()
    names = ("uptime", "idle_time", "title", "version", "sdk_version", "usable_tools", "docs", "redoc")
    plain = lambda value: "number" if isinstance(value, (int, float)) else type(value).__name__
    return {name: plain(info.get(name)) for name in names}


@check
def register_conversation(client):
    workspace = client.of("/")
    workspace.register_conversation("an id")
    return workspace.conversation_id


@check
def conversation_id(client):
    return client.of("/").conversation_id


@check
def default_conversation_tags(client):
    return client.workspace.default_conversation_tags


@check
def pause(client):
    return raised(client.workspace.pause)


@check
def resume(client):
    return raised(client.workspace.resume)


def refused(call):
    """That it raises for the status of an answer, and for which; otherwise the type of what there is."""
    found = raised(call)
    if not isinstance(found, dict) or "raises" not in found:
        return type(found).__name__
    return {"raises": found["raises"], "status": re.findall(r"\b[45]\d\d\b", found["message"])[:1]}


@check
def get_llm(client):
    return {
        "of the settings": refused(client.workspace.get_llm),
        "of a profile": refused(lambda: client.workspace.get_llm("no-such")),
    }


@check
def get_secrets(client):
    return refused(client.workspace.get_secrets)


@check
def get_mcp_config(client):
    return refused(client.workspace.get_mcp_config)


@check
def clone_repos(client):
    # The client clones; it asks the server for the token.
    place = client.below("clones")
    found = client.workspace.clone_repos(["https://github.com/owner/repo"], place)
    return [found.success_count, found.failed_repos, (place / "repo/changed").exists()]


@check
def get_repos_context(client):
    return client.workspace.get_repos_context({})


@check
def load_skills_from_agent_server(client):
    skills, context = client.workspace.load_skills_from_agent_server(
        load_public=False, load_user=False, load_org=False, project_dirs=[client.below("project")]
    )
    return [skills, context.load_public_skills]


# --- the comparison


def public(kind):
    """The names of the methods that a workspace of this SDK adds to those of pydantic."""
    ours = [one for one in kind.__mro__ if one.__module__.startswith("openhands.sdk.workspace.")]
    names = {name for one in ours for name in vars(one) if not name.startswith("_")}
    return names - {"model_config", "model_post_init"} - set(kind.model_fields)


def found_by(kind, *where):
    """What each check finds, each of its parts by itself."""
    client, found = Client(kind, *where), {}
    for name in CHECKS:
        if name not in public(kind):
            continue
        try:
            value = CHECKS[name](client)
        except Exception as error:
            traceback.print_exc()
            value = {"broken": f"{type(error).__name__}: {error}"}
        parts = value if isinstance(value, dict) and "raises" not in value else {"": value}
        found |= {f"{name}: {part}" if part else name: client.told(one) for part, one in parts.items()}
    return found


def clones_are_of(place):
    """Repositories of GitHub are cloned from here."""
    repository(place, ["changed"])
    os.environ |= {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{place}.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/owner/repo",
    }


class Report:
    def __init__(self):
        self.counts = {True: 0, False: 0}
        self.reasons = ON_PURPOSE | ON_PURPOSE_IN.get(VERSION, {})
        self.known = set()

    def tell(self, name, is_right, *details):
        self.counts[is_right] += 1
        print(f"{'passed ' if is_right else 'FAILED '} {VERSION} {name}", file=OUTPUT)
        for line in () if is_right else details:
            print(f"        {line}", file=OUTPUT, flush=True)

    def compare(self, prefix, ours, theirs):
        for name in sorted(ours | theirs):
            reason = self.reasons.get(name)
            self.known.add(name)
            # A part that is missing differs from every other.
            one, other = ours.get(name, "nothing"), theirs.get(name, "nothing")
            is_right = (one == other) == (reason is None) and not name.endswith(": broken")
            told = prefix + repr(name)[1:-1] + (f" (differs: {reason})" if reason and is_right else "")
            self.tell(told, is_right, f"here:  {json.dumps(one)[:600]}", f"there: {json.dumps(other)[:600]}")

    def end(self):
        no_checks = sorted(set(self.reasons) - self.known)
        self.tell("all that differs is checked", not no_checks, no_checks)
        print(f"{self.counts[True]} passed, {self.counts[False]} failed, 0 skipped", file=OUTPUT, flush=True)


def main(token, our_url, our_directory, their_url, their_directory):
    clones_are_of(Path(our_directory) / f"{VERSION}-repository")
    report = Report()
    servers = [(our_url, token, our_directory), (their_url, token, their_directory)]
    kinds = {"": RemoteWorkspace, "asynchronous ": AsyncRemoteWorkspace}
    with ThreadPoolExecutor(4) as pool:
        running = {name: [pool.submit(found_by, kind, *where) for where in servers] for name, kind in kinds.items()}
        for name, both in running.items():
            report.compare(name, *(one.result(LIMIT) for one in both))
    missing = sorted(set().union(*map(public, kinds.values())) - set(CHECKS))
    report.tell("every public method is called", not missing, missing)
    report.end()


if __name__ == "__main__":
    main(*sys.argv[2:])
