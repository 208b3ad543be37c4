"""Our session drives the reference's server and ours: environment, set-up script, changes, diffs, microagents.

    session.py BINARY

The program is the example `drive` of the session's crate, which stands beside BINARY's own builds; it is found through
the environment variable DRIVE. Last line: `N passed, N failed, N skipped`.
"""

import os
import subprocess
import sys
import tempfile

import servers as both


def drive(name, port, work):
    done = subprocess.run(
        [os.environ["DRIVE"], f"http://127.0.0.1:{port}", work], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=280,
    )
    lines = done.stdout.splitlines()
    for line in lines[:-1]:
        print(f"{name}: {line}")
    try:
        passed, failed, skipped = (int(part.split()[0]) for part in lines[-1].split(", "))
    except (IndexError, ValueError):
        print(f"FAILED  {name}: {done.stderr.strip()}")
        return 0, 1, 0
    print(f"        {name}: {passed} passed, {failed} failed, {skipped} skipped")
    return passed, failed, skipped


def main():
    binary = os.path.abspath(sys.argv[1])
    started = []
    totals = [0, 0, 0]
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        try:
            for name, (port, work) in (
                ("the reference", both.start_reference(one, started, own_home=True)),
                ("gloveport", both.start_ours(binary, two, started, own_home=True)),
            ):
                totals = [sum(pair) for pair in zip(totals, drive(name, port, work))]
        finally:
            both.stop(started)
    print(f"{totals[0]} passed, {totals[1]} failed, {totals[2]} skipped")
    sys.exit(1 if totals[1] else 0)


if __name__ == "__main__":
    main()
