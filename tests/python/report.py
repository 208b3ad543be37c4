"""Checks: one line each, and the last line."""

import sys
import traceback

COUNTS = {"passed": 0, "FAILED": 0, "skipped": 0}


def tell(word, what):
    COUNTS[word] += 1
    print(f"{word:<7} python: {what}", flush=True)


def check(what, is_so, told=""):
    tell("passed" if is_so else "FAILED", what if is_so else f"{what}: {str(told)[-1500:]}")


def failed(what):
    """The check failed by the exception that is being handled."""
    tell("FAILED", f"{what}\n{traceback.format_exc(limit=-4)}")


def measured(what):
    print(f"        {what}", flush=True)


def finish():
    print(f"{COUNTS['passed']} passed, {COUNTS['FAILED']} failed, {COUNTS['skipped']} skipped", flush=True)
    sys.exit(COUNTS["FAILED"] > 0)
