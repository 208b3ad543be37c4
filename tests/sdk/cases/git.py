"""Changes, texts and commits of repositories."""

import os
import subprocess
import sys

from openhands.sdk.workspace import RemoteWorkspace

from .harness import case, raised

GIT = {
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "Ada", "GIT_COMMITTER_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_COMMITTER_EMAIL": "ada@example.org",
}  # fmt: skip


def git(place, *arguments, minute=0):
    when = {f"GIT_{who}_DATE": f"2024-01-02T03:{minute:02}:05+02:00" for who in ("AUTHOR", "COMMITTER")}
    environment = os.environ | GIT | when
    done = subprocess.run(["git", *arguments], cwd=place, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def repository(place):
    """Three commits on `main`, and changes of all kinds that are not committed."""
    place.mkdir(parents=True, exist_ok=True)
    git(place, "init", "-q", "-b", "main")
    (place / "sub").mkdir()
    for name, text in {
        "kept": "kept\n", "changed": "one\ntwo\n", "removed": "gone\n", "renamed": "a long text that is renamed\n" * 9,
        "windows": "a\r\nb\r\n", "sub/inner": "inner\n", "binary": "\0", ".gitignore": "ignored\n", "mode": "#!\n",
    }.items():  # fmt: skip
        (place / name).write_bytes(text.encode())
    git(place, "add", ".")
    git(place, "commit", "-q", "-m", "first", minute=1)
    (place / "changed").write_text("one\nTWO\n")
    git(place, "commit", "-q", "-a", "-m", "second: ü\n\nwith a body", minute=2)
    git(place, "rm", "-q", "removed")
    (place / "added").write_text("added\n")
    git(place, "add", ".")
    git(place, "commit", "-q", "-m", "third", minute=3)
    (place / "changed").write_text("one\nTWO\nthree\n")
    (place / "windows").write_bytes(b"a\r\nB\r\n")
    (place / "binary").write_bytes(b"\0\xff\xfe")
    (place / "sub/inner").unlink()
    git(place, "mv", "renamed", "moved")
    (place / "new").write_text("new\n")
    (place / "newdir/deeper").mkdir(parents=True)
    (place / "newdir/deeper/file").write_text("x")
    (place / "ignored").write_text("x")
    (place / "mode").chmod(0o755)
    (place / "large").write_text("x" * 1_048_577)
    return place


@case
def git_of_the_workspace(server):
    place = repository(server.directory / "repository")
    workspace = RemoteWorkspace(host=server.url, api_key=server.token, working_dir=str(place))
    plain = lambda call: raised(lambda: call().model_dump(mode="json"))
    spaces = server.directory / "spaces"
    spaces.mkdir()
    git(spaces, "init", "-q", "-b", "main")
    (spaces / "with space").write_text("1\n")
    git(spaces, "add", ".")
    git(spaces, "commit", "-q", "-m", "first")
    (spaces / "with space").write_text("2\n")
    letters = server.directory / "letters"
    letters.mkdir()
    git(letters, "init", "-q", "-b", "main")
    (letters / "é.txt").write_text("1\n")
    git(letters, "add", ".")
    git(letters, "commit", "-q", "-m", "first")
    (letters / "é.txt").write_text("2\n")
    (letters / "neu ü").write_text("2\n")
    changes = lambda path: raised(lambda: [one.model_dump(mode="json") for one in workspace.git_changes(path)])
    return {
        "changes": changes("."),
        "changes below": changes("sub"),
        "changes of a space": changes(spaces),
        "changes of letters": changes(letters),
        "changes of nothing": changes("/no/such"),
        "diff": plain(lambda: workspace.git_diff("changed")),
        "diff of an absolute path": plain(lambda: workspace.git_diff(place / "changed")),
        "diff of a space": plain(lambda: workspace.git_diff(spaces / "with space")),
        "diff of letters": plain(lambda: workspace.git_diff(letters / "é.txt")),
        "diff of nothing": plain(lambda: workspace.git_diff("no-such")),
    }


@case
def git_requests(server):
    place = repository(server.directory / "requests")
    head = git(place, "rev-parse", "HEAD")
    empty = server.directory / "no-commits"
    empty.mkdir()
    git(empty, "init", "-q", "-b", "main")
    (empty / "new").write_text("new\n")
    outside = server.place("no-repository")
    (outside / "file").write_text("x\n")
    clone = server.directory / "clone"
    git(server.directory, "clone", "-q", str(place), str(clone))
    (clone / "kept").write_text("changed\n")
    git(clone, "commit", "-q", "-a", "-m", "of the clone", minute=4)
    (clone / "new").write_text("new\n")
    outer = server.directory / "outer"
    repository(outer)
    repository(outer / "nested")
    beside = server.directory / "beside"
    repository(beside / "one")
    branch = server.directory / "branch"
    repository(branch)
    git(branch, "stash", "-q", "-u")
    git(branch, "checkout", "-q", "-b", "feature")
    (branch / "kept").write_text("feature\n")
    git(branch, "commit", "-q", "-a", "-m", "of the branch", minute=5)

    get = lambda route, path, **more: short(server.asked("GET", f"/api/git/{route}", params={"path": str(path)} | more))
    changes = lambda path, **more: get("changes", path, **more)
    diff = lambda path, **more: get("diff", path, **more)
    commits = lambda path, **more: get("commits", path, **more)
    return {
        "changes": changes(place),
        "changes of HEAD": changes(place, ref="HEAD"),
        "changes of an older one": changes(place, ref="HEAD~2"),
        "changes of a branch": changes(place, ref="main"),
        "changes of no ref": changes(place, ref="no-such"),
        "changes of an option": changes(place, ref="--output=/tmp/x"),
        "changes of an empty ref": changes(place, ref=""),
        "changes below": changes(place / "sub"),
        "changes of new files below": changes(place / "newdir"),
        "changes without commits": changes(empty),
        "changes without commits, of HEAD": changes(empty, ref="HEAD"),
        "changes outside": changes(outside),
        "changes of a file": changes(place / "changed"),
        "changes of nothing": changes(place / "no such"),
        "changes of a relative path": changes("requests")["status"],
        "changes of a clone": changes(clone),
        "changes of a clone, of HEAD": changes(clone, ref="HEAD"),
        "changes with a nested one": changes(outer),
        "changes beside a repository": changes(beside),
        "changes on a branch": changes(branch),
        "changes without a path": server.asked("GET", "/api/git/changes"),
        "diff": diff(place / "changed"),
        "diff of an older one": diff(place / "changed", ref="HEAD~2"),
        "diff of no ref": diff(place / "changed", ref="no-such"),
        "diff of a kept file": diff(place / "kept"),
        "diff of a new file": diff(place / "new"),
        "diff of a removed file": diff(place / "sub/inner"),
        "diff of a renamed file": diff(place / "moved"),
        "diff of line ends": diff(place / "windows"),
        "diff of bytes": diff(place / "binary"),
        "diff of an ignored file": diff(place / "ignored"),
        "diff of a large file": diff(place / "large"),
        "diff of a directory": diff(place / "sub"),
        "diff of nothing": diff(place / "no-such"),
        "diff outside": diff(outside / "file"),
        "diff of nothing outside": diff(outside / "no-such"),
        "diff without commits": diff(empty / "new"),
        "diff of a commit": diff(place / "changed", commit=head),
        "diff of a commit before": diff(place / "added", commit=head[:7]),
        "diff of what a commit removed": diff(place / "removed", commit=head),
        "diff of what no commit has": diff(place / "no-such", commit=head),
        "diff of an unknown commit": diff(place / "changed", commit="deadbeef"),
        "diff of no commit": diff(place / "changed", commit="HEAD"),
        "diff of both": diff(place / "changed", commit=head, ref="HEAD"),
        "diff of a commit outside": diff(outside / "file", commit=head),
        "diff without a path": server.asked("GET", "/api/git/diff"),
        "commits": commits(place),
        "commits, the first": commits(place, limit=1),
        "commits, exactly": commits(place, limit=3),
        "commits below": commits(place / "sub"),
        "commits without commits": commits(empty),
        "commits outside": commits(outside),
        "commits of nothing": commits(place / "no such"),
        "commits, limit 0": commits(place, limit=0),
        "commits, limit 201": commits(place, limit=201),
        "commits without a path": server.asked("GET", "/api/git/commits"),
        "changes of a commit": get(f"commits/{head}/changes", place),
        "changes of a short commit": get(f"commits/{head[:6].upper()}/changes", place),
        "changes of a commit below": get(f"commits/{head}/changes", place / "sub"),
        "changes of an unknown commit": get("commits/deadbeef/changes", place),
        "changes of a short name": get("commits/abc/changes", place),
        "changes of a word": get("commits/main/changes", place),
        "changes of a commit outside": get(f"commits/{head}/changes", outside),
        "changes of a commit without a path": server.asked("GET", f"/api/git/commits/{head}/changes"),
    }


def short(answer):
    """Of a failure of git what a client may rely on: the text tells of commands, which are the server's own matter."""
    body = answer["body"]
    if answer["status"] == 400 and isinstance(body, dict) and body["detail"].startswith("Git command failed"):
        print(body["detail"], file=sys.stderr)
        body["detail"] = "Git command failed"
    return answer
