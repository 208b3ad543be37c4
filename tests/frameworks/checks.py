"""Checks: one line each, and the last line; and what a framework must not leave behind."""

import asyncio
import os
import signal
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path

import gloveport

COUNTS = {"ok": 0, "FAILED": 0, "skipped": 0}
HOME = os.environ["HOME"]
ROOT = Path(__file__).resolve().parent.parent.parent
#: Seconds in which everything has to be gone.
LIMIT = 20


def strongest():
    """The level of isolation of the sandboxes. There is no `/tmp` in those of the level `files`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with gloveport.Sandbox() as box:
            return box.isolation if box.isolation == "container" else "none"


LEVEL = "none" if "hold" in sys.argv else strongest()


def tell(word, what):
    COUNTS[word] += 1
    # The frameworks print, too.
    what = what.rstrip().replace("\n", "\n  | ")
    print(f"{word:<7} {Path(sys.argv[0]).stem.removeprefix('with_')}: {what}", flush=True)


def check(what, is_so, told=""):
    tell("ok" if is_so else "FAILED", what if is_so else f"{what}: {str(told)[-1500:]}")


def attempt(what, call, *arguments, **named):
    """Calls a function whose exception is the failure of the check."""
    try:
        call(*arguments, **named)
    except Exception:
        tell("FAILED", f"{what}\n{traceback.format_exc(limit=-6)}")
    else:
        tell("ok", what)


def raised(kind, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        return error
    raise AssertionError(f"nothing of {kind.__name__} was raised")


def sessions():
    listed = subprocess.run(
        [gloveport.find_program(), "session", "ls", "-q"], capture_output=True, text=True, check=True
    )
    return set(listed.stdout.split())


def processes():
    """Those of this home, but for this one, what started it, and the keeper, which outlives sandboxes for a while."""
    found = {}
    mine = {os.getpid(), os.getppid()}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in mine:
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if f"HOME={HOME}".encode() in environment and command and "sandbox-keeper" not in command:
            found[entry.name] = command
    return found


def directories():
    """Those of sandboxes, and temporary files, but for the program's notes, which the next one that starts clears, and
    what OpenHands makes when it is imported.
    """
    kept = Path(HOME).glob(".local/state/gloveport/*/sandboxes/*")
    others = (".gloveport-", "oh_editor_history_")
    temporary = [each for each in Path(os.environ["TMPDIR"]).iterdir() if not each.name.startswith(others)]
    return [str(each) for each in [*kept, *temporary]]


def left():
    return [each for each in (sessions(), processes(), directories()) if each]


def until(is_so):
    end = time.monotonic() + LIMIT
    while not (so := is_so()) and time.monotonic() < end:
        time.sleep(0.05)
    return so


def nothing_is_left(what):
    check(f"nothing is left {what}", until(lambda: not left()), left())


#: Moments at which a start is given up, from its beginning to its end.
MOMENTS = 12


async def cancelled(make):
    """Cancels starts at moments of all that a start does, one after the other.

    `make` returns what starts one, as a coroutine, and a function whose coroutine ends what was started.
    """
    begun = time.monotonic()
    start, end = make()
    await start
    took = time.monotonic() - begun
    await end()
    given_up = 0
    for moment in range(MOMENTS):
        start, end = make()
        starting = asyncio.create_task(start)
        await asyncio.sleep(took * moment / MOMENTS)
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        given_up += starting.cancelled()
        if not starting.cancelled():
            await end()
        nothing_is_left(f"of one whose start is cancelled in part {moment + 1} of {MOMENTS}")
    check("most of them were cancelled", given_up > MOMENTS / 2, given_up)


def interrupted(start, end):
    """The same by C-c, where a start waits: `start` returns what `end` ends."""

    def interrupt(*_):
        raise KeyboardInterrupt

    begun = time.monotonic()
    end(start())
    took = time.monotonic() - begun
    signal.signal(signal.SIGALRM, interrupt)
    given_up = 0
    for moment in range(1, MOMENTS + 1):
        started = None
        try:
            signal.setitimer(signal.ITIMER_REAL, took * moment / (MOMENTS + 1))
            started = start()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            given_up += started is None
        if started is not None:
            end(started)
        nothing_is_left(f"of one whose start is interrupted in part {moment} of {MOMENTS}")
    check("most of them were interrupted", given_up > MOMENTS / 2, given_up)


def killed():
    """Runs this part once more, until it holds a sandbox, and kills it."""
    process = subprocess.Popen([sys.executable, sys.argv[0], "hold"], stdout=subprocess.PIPE, text=True)
    lines = iter(process.stdout.readline, "")
    has_one = any(line.strip() == "holds" for line in lines) and bool(sessions())
    process.send_signal(signal.SIGKILL)
    process.wait()
    check("a process of the framework has a sandbox", has_one)
    nothing_is_left("of one that is killed")


def hold():
    """For the one that is killed."""
    print("holds", flush=True)
    time.sleep(600)


def example(name, expected, *words):
    """Runs what a reader would copy."""
    file = ROOT / "clients/python/examples/frameworks" / name
    done = subprocess.run(
        [sys.executable, "-W", "ignore", file, *words], cwd=HOME, capture_output=True, text=True, timeout=120, check=False
    )
    is_so = done.returncode == 0 and expected in done.stdout
    check(f"the example {name} prints what it is for", is_so, done.stdout + done.stderr)
    nothing_is_left("of the example")


def finish():
    print(f"{COUNTS['ok']} passed, {COUNTS['FAILED']} failed, {COUNTS['skipped']} skipped", flush=True)
    sys.stdout.flush()
    # Threads of frameworks do not keep it.
    os._exit(COUNTS["FAILED"] > 0)
