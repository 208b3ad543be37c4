#!/usr/bin/env python3
"""Prints which files changed, as a JSON array of {"status", "path"} sorted by path.

Looks at the repository of the current directory and at those in the directories directly below it. What goes wrong is
printed as {"error": ...}; the exit code is 0 all the same. Needs Python 3.7 and git. Runs no hooks, text conversion or
external programs of the repository, and asks nobody.
"""

import json
import os
import signal
import subprocess
import sys
import time

TIME_LIMIT = 60.0
REMOTE_LIMIT = 5.0
EMPTY_TREE = b"4b825dc642cb6eb9a060e54bf8d69288fbee4904"
OPTIONS = [
    "--no-optional-locks",
    "--no-pager",
    "--literal-pathspecs",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.quotePath=false",
    "-c",
    "color.ui=false",
]
HIDDEN = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_EXTERNAL_DIFF", "GIT_PREFIX", "GIT_TRACE"}
DEADLINE = time.monotonic() + TIME_LIMIT


class Refused(Exception):
    """Git ended with a status other than 0."""


def environment():
    """The environment of git: quiet, in English, and without other repositories."""
    variables = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    variables.update(
        GIT_TERMINAL_PROMPT="0", GIT_OPTIONAL_LOCKS="0", GIT_ASKPASS="false", SSH_ASKPASS="false", LC_ALL="C"
    )
    return variables


def output(directory, *arguments, limit=None):
    """What a git command prints, as bytes."""
    left = max(0.1, DEADLINE - time.monotonic())
    # A session of its own has no terminal on which a program could ask, and ends as a whole.
    process = subprocess.Popen(
        ["git", "-C", directory] + OPTIONS + list(arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        start_new_session=True,
    )
    try:
        printed, errors = process.communicate(timeout=left if limit is None else min(limit, left))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    if process.returncode != 0:
        reason = errors.decode("utf-8", "replace").strip()
        raise Refused("git {} failed with exit code {}: {}".format(arguments[0], process.returncode, reason))
    return printed


def ask(directory, *arguments):
    """The answer of a git command without blanks around it; empty if it says no."""
    try:
        return output(directory, *arguments).strip()
    except Refused:
        return b""


def verify(directory, name):
    """The object with this name; empty if there is none."""
    return ask(directory, "rev-parse", "--verify", "--quiet", "--end-of-options", name)


def default_branch(directory):
    """The default branch of origin: as the clone remembers it, and else as the server says."""
    name = ask(directory, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    if name.startswith(b"origin/"):
        return name[len(b"origin/") :]
    if not ask(directory, "config", "--get", "remote.origin.url"):
        return b""
    try:
        described = output(directory, "remote", "show", "origin", limit=REMOTE_LIMIT)
    except (Refused, subprocess.TimeoutExpired):
        return b""
    for line in described.splitlines():
        label, _, branch = line.strip().partition(b": ")
        if label == b"HEAD branch" and not branch.startswith(b"("):
            return branch.strip()
    return b""


def revision(directory):
    """What the files are compared with; empty without a repository."""
    branch = ask(directory, "rev-parse", "--abbrev-ref", "HEAD")
    found = branch and verify(directory, b"origin/" + branch)
    if found:
        return found
    default = default_branch(directory)
    if default:
        tip = b"origin/" + default
        found = ask(directory, "merge-base", "HEAD", tip) or verify(directory, tip)
        if found:
            return found
    return verify(directory, ask(directory, "hash-object", "-t", "tree", os.devnull) or EMPTY_TREE)


def tracked(listing):
    """The changes in a listing of statuses and paths that each end with a zero byte."""
    fields = iter(listing.split(b"\0"))
    for status in fields:
        if not status:
            continue
        path = next(fields, b"")
        kind = status[:1]
        if kind == b"R":
            yield "D", path
            yield "A", next(fields, b"")
        elif kind == b"C":
            yield "A", next(fields, b"")
        elif kind in (b"A", b"D", b"U"):
            yield kind.decode(), path
        else:
            yield "M", path


def changes(directory):
    """The changes of one repository."""
    base = revision(directory)
    if not base:
        return []
    listing = output(
        directory, "diff", "--no-ext-diff", "--no-textconv", "--name-status", "--relative", "-z", base, "--"
    )
    others = output(directory, "ls-files", "--others", "--exclude-standard", "-z")
    return list(tracked(listing)) + [("A", path) for path in others.split(b"\0") if path]


def nested_repositories(directory):
    """The names of the directories directly below one that have a .git, in order."""
    names = os.listdir(os.fsencode(directory))
    return sorted(name for name in names if os.path.lexists(os.path.join(os.fsencode(directory), name, b".git")))


def all_changes(directory):
    """The changes of a directory, sorted by path."""
    nested = nested_repositories(directory)
    found = [
        (status, path)
        for status, path in changes(directory)
        if not any(path == name or path.startswith(name + b"/") for name in nested)
    ]
    for name in nested:
        inner = os.path.join(os.fsencode(directory), name)
        found += [(status, name + b"/" + path) for status, path in changes(inner)]
    return sorted(found, key=lambda change: change[1])


def main():
    """Prints the changes of the current directory."""
    try:
        found = all_changes(os.getcwd())
        answer = [{"status": status, "path": path.decode("utf-8", "replace")} for status, path in found]
    except Exception as error:
        answer = {"error": "{}: {}".format(type(error).__name__, error)}
    json.dump(answer, sys.stdout)
    print()


if __name__ == "__main__":
    main()
