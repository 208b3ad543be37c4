"""The same cells in the notebook of the reference and in ours: prints where the observations differ.

    ipython.py BINARY | --reference

Starts both servers with the plugins `agent_skills` and `jupyter` over the same Python, sends each step of the list to
both, and compares whole observations but for what must differ (paths, process ids, addresses). What differs on purpose has
its reason beside it, and must differ. The reference stops reading when a cell replies, and so loses the output of many
cells: it is asked again before a difference is believed, ours is not. Now and then it loses its kernel, and waits for it for
ever: then all begins anew. At the end both run the same small cell many times. With --reference it stands beside itself,
which tells whether a case has one answer only.

Prints one line for each difference and, last, `N passed, N failed, N skipped`.
"""

import http.client
import json
import os
import re
import statistics
import sys
import tempfile
import time

import servers as both_servers
from ipython_cases import CASES, FILES

# How often the reference is asked for an answer that is ours.
REPEATS = 12
# Seconds for a cell that has no limit of its own.
LIMIT = 20
# What is said of a cell that took longer.
TIMED_OUT = f"[Execution timed out ({LIMIT:.1f} seconds).]"
# Seconds after which a server that has not answered has lost its kernel.
LOST = 60
# How often all begins anew when the reference has lost its kernel.
BEGINNINGS = 4
# Seconds after which the reference does not mistake the prompt before a command for its end.
PAUSE = 0.3
# Cells of the measurement, and what it must come to.
CELLS, MOST_MS, LEAST_RATIO = 200, 5.0, 5.0


class LostKernel(Exception):
    """The reference does not answer any more."""


class Side:
    """One of the two servers, by its HTTP interface."""

    def __init__(self, name, port, work, started):
        self.name, self.port, self.work, self.started = name, port, work, started
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LOST)

    def ask(self, action):
        """Status and body of the answer."""
        body = json.dumps({"action": action})
        try:
            self.connection.request("POST", "/execute_action", body, {"content-type": "application/json"})
            answer = self.connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            if self.name == "reference" and isinstance(error, TimeoutError):
                raise LostKernel from error
            return 0, {"no answer": repr(error)}

    def step(self, step):
        """What a step of a case gives, without what must differ."""
        kind, text, arguments = step
        arguments = {key: self.placed(value) for key, value in arguments.items()}
        timeout = arguments.pop("timeout", LIMIT)
        word = "command" if kind == "run" else "code"
        action = {"action": kind, "args": {word: self.placed(text), **arguments}}
        if timeout is not None:
            action["timeout"] = timeout
        status, observation = self.ask(action)
        if kind == "run":
            time.sleep(PAUSE)
        # No cell without a limit of its own takes that long.
        if self.name == "reference" and timeout == LIMIT and TIMED_OUT in str(observation.get("content")):
            raise LostKernel
        return {"status": status, "observation": self.masked(observation)}

    def placed(self, value):
        return value.replace("{WORK}", self.work) if isinstance(value, str) else value

    def masked(self, observation):
        text = json.dumps(observation, ensure_ascii=False, sort_keys=True).replace(self.work, "WORK")
        # Tracebacks shorten the home, and the homes differ.
        text = text.replace("File ~/", f"File {os.path.expanduser('~')}/")
        text = re.sub(r"ipykernel_\d+/\d+\.py", "ipykernel_PID/NUMBER.py", text)
        text = re.sub(r"\b0x[0-9a-f]{6,16}\b", "0xADDRESS", text)
        text = re.sub(r"(Python interpreter: )[^\]]*\]+", r"\1PYTHON]", text)
        value = json.loads(text)
        metadata = value.get("extras", {}).get("metadata")
        if metadata:
            metadata["pid"] = metadata["py_interpreter_path"] = "ANY"
        return value

    def p50(self):
        """Milliseconds that a small cell takes."""
        took = []
        for _ in range(CELLS):
            start = time.perf_counter()
            status, _ = self.ask({"action": "run_ipython", "args": {"code": "1+1"}})
            took.append((time.perf_counter() - start) * 1000)
            if status != 200:
                raise SystemExit(f"{self.name} answered `1+1` with {status}")
        return statistics.median(took)


def open_side(name, start, home):
    """Starts a server and waits for the first result of its kernel."""
    began = time.monotonic()
    port, work = start(home)
    alive = time.monotonic() - began
    side = Side(name, port, work, None)
    status, answer = side.ask({"action": "run_ipython", "args": {"code": "1+1"}})
    if status != 200:
        raise SystemExit(f"{name} cannot run a cell: {status} {answer}")
    side.started = (alive, time.monotonic() - began)
    for path, content in FILES.items():
        path = os.path.join(work, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(content)
    return side


def compare(steps, theirs, mine):
    """Our answers to a case, and the reference's: ours where it gave them, else the last ones."""
    ours = [mine.step(step) for step in steps]
    reference = [None] * len(steps)
    for _ in range(REPEATS):
        for at, step in enumerate(steps):
            answer = theirs.step(step)
            if reference[at] != ours[at]:
                reference[at] = answer
            if theirs.name == mine.name and reference[at] != ours[at]:
                ours[at] = mine.step(step)
        if reference == ours:
            break
    return reference, ours


def run_cases(theirs, mine):
    passed = failed = 0
    for steps, reason in CASES:
        if theirs.name == mine.name:
            reason = None
        reference, ours = compare(steps, theirs, mine)
        if (reference == ours) == (reason is None):
            passed += 1
            continue
        failed += 1
        print(f"FAILED  {shown(steps)}{f' (must differ: {reason})' if reason else ''}")
        for one, two in zip(reference, ours):
            if one != two or reason:
                print(f"        reference {shown(one)}\n        ours      {shown(two)}")
    return passed, failed


def shown(value):
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) < 1500 else f"{text[:700]} … {text[-700:]}"


def measure(theirs, mine):
    """Small cells on both, one of them at a time. A machine that is busy elsewhere gets three tries."""
    for attempt in range(3):
        reference, ours = theirs.p50(), mine.p50()
        fast = ours <= MOST_MS or reference >= LEAST_RATIO * ours
        print(f"        p50 of {CELLS} x `1+1`: reference {reference:.2f} ms, ours {ours:.2f} ms, {reference / ours:.0f} times faster")
        if fast:
            break
    else:
        print(f"FAILED  the bound is {MOST_MS} ms, or on a slow machine {LEAST_RATIO:.0f} times faster")
    for side in (theirs, mine):
        print(f"        {side.name}: alive after {side.started[0]:.2f} s, the first result after {side.started[1]:.2f} s")
    return fast


def main():
    for _ in range(BEGINNINGS):
        try:
            passed, failed = compared(sys.argv[1])
            break
        except LostKernel:
            print("        the reference has lost its kernel; all begins anew", flush=True)
    else:
        passed, failed = 0, 1
        print(f"FAILED  the reference has lost its kernel {BEGINNINGS} times")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


def compared(program):
    """How many cases passed and failed, with servers of their own."""
    own = program != "--reference"
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        one, two, servers = os.path.realpath(one), os.path.realpath(two), []

        def start_reference(home):
            return both_servers.start_reference(home, servers, plugins=both_servers.NOTEBOOK)

        def start_ours(home):
            return both_servers.start_ours(os.path.abspath(program), home, servers, plugins=both_servers.NOTEBOOK)

        try:
            theirs = open_side("reference", start_reference, one)
            mine = open_side("ours", start_ours, two) if own else open_side("reference", start_reference, two)
            passed, failed = run_cases(theirs, mine)
            if own:
                fast = measure(theirs, mine)
                passed, failed = passed + fast, failed + (not fast)
        finally:
            both_servers.stop(servers)
    return passed, failed


if __name__ == "__main__":
    sys.exit(main())
