#!/usr/bin/env python3
"""Prints a file as it was and as it is, as the JSON object {"modified", "original"}.

The file is the last argument; it may be relative to the current directory. A file that is gone is empty now. A failure
is a text on the standard error output and the exit code 1. Needs Python 3.7 and git. Runs no hooks, text conversion or
external programs of the repository, and asks nobody.
"""

import json
import os
import signal
import stat
import subprocess
import sys
import time

TIME_LIMIT = 60.0
REMOTE_LIMIT = 5.0
MAX_FILE = 1024 * 1024
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


class Impossible(Exception):
    """There is no difference to show."""


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
        raise Refused(errors.decode("utf-8", "replace").strip())
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


def read(path):
    """The content of a file; empty if it is gone."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return b""
    if not stat.S_ISREG(mode):
        raise Impossible("{} is not a file".format(os.fsdecode(path)))
    with open(path, "rb") as file:
        content = file.read(MAX_FILE + 1)
    if len(content) > MAX_FILE:
        raise Impossible("file_to_large: {} has more than {} bytes".format(os.fsdecode(path), MAX_FILE))
    return content


def repository(path):
    """The closest directory above a file that has a .git."""
    directory = os.path.dirname(path)
    while not os.path.lexists(os.path.join(directory, b".git")):
        above = os.path.dirname(directory)
        if above == directory:
            raise Impossible("no_repository: no directory above {} has a .git".format(os.fsdecode(path)))
        directory = above
    return directory


def original(root, path):
    """The content at the revision to compare with; empty if the file was not there."""
    base = revision(root)
    try:
        return output(root, "cat-file", "blob", base + b":" + os.path.relpath(path, root)) if base else b""
    except Refused:
        return b""


def lines(content):
    """The lines of a text with a line feed between them and none behind the last."""
    return "\n".join(content.decode("utf-8", "replace").splitlines())


def difference(name):
    """The file as it was and as it is."""
    path = os.path.abspath(os.fsencode(name))
    now = read(path)
    return {"modified": lines(now), "original": lines(original(repository(path), path))}


def main():
    """Prints the difference of the file that the last argument names."""
    if len(sys.argv) < 2:
        sys.exit("usage: git_diff.py FILE")
    try:
        answer = difference(sys.argv[-1])
    except Exception as error:
        sys.exit("{}: {}".format(type(error).__name__, error))
    json.dump(answer, sys.stdout)
    print()


if __name__ == "__main__":
    main()
