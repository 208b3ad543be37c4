"""Compares what a client got from two agent-servers of the OpenHands SDK (cases).

usage: differences.py OURS THEIRS

Both are files with JSON. What differs on purpose is listed here with the reason.
"""

import json
import sys

ENDED = "an end by the time limit says so in `stderr`, by which alone the SDK sets `timeout_occurred`"
SECOND = "a limit of 0 is one second: the SDK sends it for every limit below a second"
HYPHENS = "an id is found in both of its forms"
OLDER = "the paths of clients before 1.14 are served"
NAMES = "a name is read as it is: there git's quoting of it is taken for the name, or a space in it for its end"

RANGES = "a range that is not understood, several ranges and a condition by time are answered with the whole file"
HEAD = "HEAD is answered as GET without the body"
CREDENTIALS = "a page that may not ask is told nothing"
ADVICE = "the text says what holds here"
ORDER = "the first that is wrong is told before the body is read"

ON_PURPOSE = {
    "the_environment: all": "there modules of the agent add variables of their own, here the sandbox adds its mark",
    "limits_of_the_workspace: ended": ENDED,
    "limits_of_the_workspace: below_a_second": SECOND,
    "limits: two_seconds": ENDED,
    "limits: deaf": ENDED,
    "limits: trapped": ENDED,
    "limits: a_job": ENDED,
    "limits: zero": SECOND,
    "limits: below_zero": SECOND,
    "stops: its output event": "the id of an output is none of a command",
    "events_by_id: in upper case": HYPHENS,
    "sockets_of_other_paths: of HTTP": "a request that would like to have a socket gets the answer without one",
    "paths_and_methods: HEAD /health": HEAD,
    "paths_and_methods: HEAD /api/file/download": HEAD,
    "paths_and_methods: HEAD /health without a key": HEAD,
    "paths_and_methods: HEAD /api/file/download without a key": HEAD,
    "origins: preflight of http://localhost.example": CREDENTIALS,
    "origins: request of http://localhost.example": CREDENTIALS,
    "origins: preflight of https://other.example": CREDENTIALS,
    "origins: request of https://other.example": CREDENTIALS,
    "origins: preflight of null": CREDENTIALS,
    "origins: request of null": CREDENTIALS,
    "uploads: a byte of zero": "it is refused before anything is done; there it is an error of the server",
    "uploads: nothing": ORDER,
    "uploads: two files": "the first of them is stored",
    "uploads: there": "the first of two files is stored",
    "downloads: a byte of zero": "a path that cannot be is refused",
    "downloads: backwards": RANGES,
    "downloads: several": RANGES,
    "downloads: several that touch": RANGES,
    "downloads: no range": RANGES,
    "downloads: an empty range": RANGES,
    "downloads: another unit": RANGES,
    "downloads: with the time": RANGES,
    "downloads: a range of an empty file": RANGES,
    "downloads: unless it is the same": "who has it is told so (304)",
    "git_requests: diff of a directory": "there it is a listing of git that nobody asked for",
    "the_editor: url": ADVICE,
    "the_editor: url with all": ADVICE,
    "tools_and_the_start: init": ADVICE,
    "tools_and_the_start: init with a key": ADVICE,
    "limits: the job is ended, too": "what holds a stream for too long is ended; there only with its shell",
    "chunks: a character that is read in two parts": "it is whole: there each part of a stream is decoded by itself",
    "events_by_id: with hyphens": HYPHENS,
    "events_by_id: several with hyphens": HYPHENS,
    "uploads: of an older client": OLDER,
    "downloads: of an older client": OLDER,
    "downloads: an older client's missing one": OLDER,
    "git_of_the_workspace: changes of a space": NAMES,
    "git_of_the_workspace: changes of letters": NAMES,
    "tools_and_the_start: there are tools": "a sandbox without an agent has no tools of one",
}


def is_broken(value):
    return isinstance(value, dict) and "broken" in value


def checks(ours, theirs):
    """Each part of each case by its name, with both values; a case that broke is one part."""
    for case in ours | theirs:
        both = ours.get(case), theirs.get(case)
        if all(isinstance(value, dict) and not is_broken(value) for value in both):
            yield from ((f"{case}: {part}", *(value.get(part) for value in both)) for part in both[0] | both[1])
        else:
            yield case, *both


def pairs(one, other):
    """What differs in two values, as near to it as their form allows."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for name in one:
            yield from pairs(one[name], other[name])
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for parts in zip(one, other):
            yield from pairs(*parts)
    elif one != other:
        yield one, other


def main(ours, theirs):
    with open(ours) as one, open(theirs) as other:
        found = list(checks(json.load(one), json.load(other)))
    passed = failed = 0
    for name, one, other in found:
        reason = ON_PURPOSE.get(name)
        is_right = (one == other) == (reason is None) and not is_broken(one) and not is_broken(other)
        passed, failed = passed + is_right, failed + (not is_right)
        if is_right:
            print(f"ok      {name!r}" + (f" (differs: {reason})" if reason else ""))
            continue
        print(f"FAILED  {name!r}" + (" differs no more" if one == other and reason else ""))
        for one, other in list(pairs(one, other))[:8]:
            print(f"        here:  {json.dumps(one)[:600]}\n        there: {json.dumps(other)[:600]}")
    known = {name for name, *_ in found}
    for name in sorted(name for name in ON_PURPOSE if not known & {name, name.partition(": ")[0]}):
        print(f"FAILED  {name!r} is listed and is no check")
        failed += 1
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(failed > 0)


main(*sys.argv[1:])
