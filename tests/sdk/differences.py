"""Compares what a client got from two agent-servers of OpenHands' SDK 1.x (cases.py).

usage: differences.py OURS THEIRS

Both are files with JSON. What differs on purpose is listed here with the reason.
"""

import json
import sys

ON_PURPOSE = {
    "time_that_is_over": "here the errors say that the time was over, by which the SDK knows it",
    "no_time": "the SDK sends 0 for any limit below a second; here that second is granted",
    "an_id_with_hyphens": "both forms of an id are known here",
    "an_editor_that_is_off": "the advice is left out that does nothing here",
    "old_addresses": "clients until 1.13 send paths in the address; the server there knows them no more",
}


def checks(found):
    """Each case, and each command, by its name."""
    for name, value in found.items():
        if name == "commands" and "broken" not in value:
            yield from ((f"commands: {command}", got) for command, got in value.items())
        else:
            yield name, value


def main(ours, theirs):
    with open(ours) as one, open(theirs) as other:
        ours, theirs = dict(checks(json.load(one))), dict(checks(json.load(other)))
    passed = failed = 0
    for name in ours | theirs:
        one, other = ours.get(name), theirs.get(name)
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
