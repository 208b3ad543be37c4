"""Compares what a client got from two servers of SWE-ReX (cases.py).

usage: differences.py OURS THEIRS

Both are files with JSON. What differs on purpose is listed here with the reason.
"""

import json
import re
import sys

ON_PURPOSE = {
    "sessions": "what bash shows as its own first prompt is a part of the answer there",
    "what_a_session_reads_first": "what bash shows as its own first prompt is a part of the answer there",
    "commands: cat <<END\n$((1 + 1))\nEND\necho after": "there lines are joined by `;`, which ends no here-document",
    "a_command_whose_time_is_over": "what it printed so far is an attribute of the exception",
    "a_question": "what it printed so far is an attribute of the exception",
    "interrupts": "what it printed so far is an attribute of the exception",
    "an_environment_of_its_own": "it has the mark of the sandbox, too, by which all that it starts is found and ended",
    "a_program_without_a_name": "FileNotFoundError; there it is PermissionError",
    "the_end": "there closed sessions are still known, and of no use",
    "without_the_token": "the status is 403 or 401 there, by the version of its framework; the text is the same",
}


def checks(found):
    """Each case, and each command, by its name."""
    for name, value in found.items():
        if name == "commands" and "broken" not in value:
            yield from ((f"commands: {command}", got) for command, got in value.items())
        else:
            yield name, value


def plain(value):
    """Without what is another at each time: a mark behind some commands, in place of the prompt."""
    return json.loads(re.sub(r"UNIQUESTRING\d+", "SHELLPS1PREFIX", json.dumps(value)))


def main(ours, theirs):
    with open(ours) as one, open(theirs) as other:
        ours, theirs = dict(checks(json.load(one))), dict(checks(json.load(other)))
    passed = failed = 0
    for name in ours | theirs:
        one, other = plain(ours.get(name)), plain(theirs.get(name))
        reason = ON_PURPOSE.get(name)
        is_right = (one == other) == (reason is None) and "broken" not in json.dumps(one)
        passed, failed = passed + is_right, failed + (not is_right)
        if is_right:
            print(f"ok      {name!r}" + (f" (differs: {reason})" if reason else ""))
            continue
        print(f"FAILED  {name!r}" + (" differs no more" if one == other else ""))
        both = zip(one, other) if isinstance(one, list) and isinstance(other, list) and len(one) == len(other) else [(one, other)]
        for one, other in both:
            if one != other:
                print(f"        here:  {json.dumps(one)[:600]}\n        there: {json.dumps(other)[:600]}")
    for name in ON_PURPOSE.keys() - ours.keys():
        print(f"FAILED  {name!r} is listed and is no case")
        failed += 1
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(failed > 0)


main(*sys.argv[1:])
