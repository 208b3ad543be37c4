"""The conformance suite on the reference's server and on ours, and operations at random on both.

    suite.py BINARY

The suite has to pass on the reference first: a check that fails there is wrong. Now and then the reference loses its kernel,
and waits for it for ever: then all begins anew. Prints what failed and, last, `N passed, N failed, N skipped`; exit code 1 if
something failed.
"""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import servers as both

# The reference confuses commands that follow each other at once, and loses the output of many cells.
SLOWLY = ["--pause", "300", "--retries", "12"]
OPERATIONS, SEED = "150", "62"
KEY = "the key of both servers"
# Seconds after which a reference that has not finished has lost its kernel: four times what it takes.
LOST = 360
# How often all begins anew when the reference has lost its kernel.
BEGINNINGS = 3


class LostKernel(Exception):
    """The reference does not answer any more."""


def conformance(binary, *words):
    try:
        done = subprocess.run(
            [binary, "conformance", "--json", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LOST,
            env={**os.environ, "GLOVEPORT_KEY": KEY, "GLOVEPORT_AGAINST_KEY": KEY},
        )
    except subprocess.TimeoutExpired as error:
        raise LostKernel from error
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"conformance {' '.join(words)} ended with {done.returncode}: {done.stderr}") from None


def show_suite(name, report):
    for check in report["checks"]:
        if check["verdict"] == "fail":
            print(f"FAILED  {name}: {check['id']} {check['title']} ({check['spec']})")
            print(f"        {check['step']}\n        expected {check['expected']}\n        found    {check['got']}")
        elif check["verdict"] == "skip":
            print(f"skipped {name}: {check['id']}: {check['reason']}")
        elif check.get("deliberate"):
            print(f"        {name}: {check['id']}: {check['deliberate']}")
    print(f"        {name}: {report['passed']} passed, {report['failed']} failed, {report['skipped']} skipped")
    return report["passed"], report["failed"], report["skipped"]


def show_comparison(report):
    for difference in report["differences"]:
        print(f"FAILED  operation {difference['number']}: {json.dumps(difference['operation'], ensure_ascii=False)}")
        print(f"        at {difference['at']}: {difference['mine']!r}, and the reference {difference['theirs']!r}")
    for rule, count in report["known"].items():
        print(f"        known difference {rule}: {count}")
    return report["same"] + sum(report["known"].values()), report["different"], 0


def main():
    for _ in range(BEGINNINGS):
        try:
            counts = compared(os.path.abspath(sys.argv[1]))
            break
        except LostKernel:
            print("        the reference has lost its kernel; all begins anew", flush=True)
    else:
        counts = [(0, 1, 0)]
        print(f"FAILED  the reference has lost its kernel {BEGINNINGS} times")
    passed, failed, skipped = (sum(column) for column in zip(*counts))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def compared(binary):
    """Passed, failed and skipped of each comparison, with servers of their own."""
    started = []
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two, ThreadPoolExecutor() as at_once:
        try:
            reference = f"http://127.0.0.1:{both.start_reference(one, started, KEY, plugins=both.NOTEBOOK)[0]}"
            ours = f"http://127.0.0.1:{both.start_ours(binary, two, started, KEY, plugins=both.NOTEBOOK)[0]}"
            theirs = at_once.submit(conformance, binary, "--url", reference, *SLOWLY)
            try:
                mine = conformance(binary, "--url", ours)
            except LostKernel:
                raise SystemExit(f"our server has not finished the suite after {LOST} s") from None
            reports = [("reference", theirs.result()), ("ours", mine)]
            random = conformance(
                binary, "--url", ours, "--against", reference, "--random", OPERATIONS, "--seed", SEED, "--pause", "300"
            )
        finally:
            both.stop(started)
    return [*(show_suite(name, report) for name, report in reports), show_comparison(random)]


sys.exit(main())
