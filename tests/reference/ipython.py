"""The same cells in the notebook of the reference and in ours: prints where the observations differ.

    ipython.py BINARY | --answers

Starts both servers with the plugins `agent_skills` and `jupyter` over the same Python, sends each step of the list to
both, and compares whole observations but for what must differ (paths, process ids, addresses). What differs on purpose has
its reason beside it. A case that differs is repeated before it is believed: the reference stops reading when a cell
replies, and loses what comes after. Then both run the same small cell many times. With --answers the reference alone is
asked, and its answers are printed.

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

# How often a case that differs is tried again.
REPEATS = 6
# Cells of the measurement, and what it must come to.
CELLS, MOST_MS, LEAST_RATIO = 200, 5.0, 8.0
PLUGINS = ["--plugins", "agent_skills", "jupyter"]


class Side:
    """One of the two servers, by its HTTP interface."""

    def __init__(self, name, port, work, started):
        self.name, self.port, self.work, self.started = name, port, work, started
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def ask(self, action):
        """Status and body of the answer."""
        body = json.dumps({"action": action})
        try:
            self.connection.request("POST", "/execute_action", body, {"content-type": "application/json"})
            answer = self.connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            return 0, {"no answer": repr(error)}

    def step(self, step):
        """What a step of a case gives, without what must differ."""
        kind, text, arguments = step
        arguments = {key: self.placed(value) for key, value in arguments.items()}
        timeout = arguments.pop("timeout", 60)
        word = "command" if kind == "run" else "code"
        action = {"action": kind, "args": {word: self.placed(text), **arguments}}
        if timeout is not None:
            action["timeout"] = timeout
        status, observation = self.ask(action)
        return {"status": status, "observation": self.masked(observation)}

    def placed(self, value):
        return value.replace("{WORK}", self.work) if isinstance(value, str) else value

    def masked(self, observation):
        text = json.dumps(observation, ensure_ascii=False, sort_keys=True).replace(self.work, "WORK")
        text = re.sub(r"ipykernel_\d+/\d+\.py", "ipykernel_PID/NUMBER.py", text)
        text = re.sub(r"\b0x[0-9a-f]{6,16}\b", "0xADDRESS", text)
        text = re.sub(r"(Python interpreter: )[^\]]*\]", r"\1PYTHON]", text)
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


def environment():
    """Variables that make both find the same Python, and not that of whoever runs this."""
    bin = os.path.dirname(sys.executable)
    return {
        "PATH": f"{bin}:{os.environ['PATH']}",
        "VIRTUAL_ENV": os.path.dirname(bin),
        "LOCAL_RUNTIME_MODE": "1",
        "OPENHANDS_REPO_PATH": "/",
        "MPLCONFIGDIR": "",
    }


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


def compare(case, theirs, mine):
    """The last answers of both to a case, tried again until they are the same or it is enough."""
    steps, _ = case
    answers = None
    for _ in range(REPEATS):
        answers = [[side.step(step) for step in steps] for side in (theirs, mine)]
        if answers[0] == answers[1]:
            return answers
        time.sleep(0.2)
    return answers


def run_cases(theirs, mine):
    passed = failed = 0
    for case in CASES:
        steps, reason = case
        reference, ours = compare(case, theirs, mine)
        if (reference == ours) == (reason is None):
            passed += 1
            if reason:
                print(f"listed  {steps[-1][1][:80]!r}: {reason}")
            continue
        failed += 1
        must = f" (must differ: {reason})" if reason else ""
        for step, one, two in zip(steps, reference, ours):
            if one != two or reason:
                print(f"FAILED  {step}{must}\n        reference {short(one)}\n        ours      {short(two)}")
    return passed, failed


def short(value):
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) < 1500 else f"{text[:700]} … {text[-700:]}"


def measure(theirs, mine):
    """Small cells on both, one of them at a time. A machine that is busy elsewhere gets three tries."""
    for attempt in range(3):
        reference, ours = theirs.p50(), mine.p50()
        fast = ours <= MOST_MS and reference >= LEAST_RATIO * ours
        print(f"        p50 of {CELLS} x `1+1`: reference {reference:.2f} ms, ours {ours:.2f} ms, {reference / ours:.0f} times faster")
        if fast:
            break
    else:
        print(f"FAILED  the bound is {MOST_MS} ms and {LEAST_RATIO:.0f} times faster")
    for side in (theirs, mine):
        print(f"        {side.name}: alive after {side.started[0]:.2f} s, the first result after {side.started[1]:.2f} s")
    return fast


def answers(theirs):
    """The reference's answers alone."""
    for steps, reason in CASES:
        for step in steps:
            print(step, f"({reason})" if reason else "")
            print("   ", short(theirs.step(step)))
    print(f"p50 {theirs.p50():.2f} ms, started {theirs.started}")


def main():
    binary = os.path.abspath(sys.argv[1]) if sys.argv[1] != "--answers" else None
    os.environ.update(environment())
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        one, two, servers = os.path.realpath(one), os.path.realpath(two), []
        try:
            theirs = open_side("reference", lambda home: both_servers.start_reference(home, servers, plugins=PLUGINS), one)
            if binary is None:
                answers(theirs)
                return 0
            mine = open_side("ours", lambda home: both_servers.start_ours(binary, home, servers, plugins=PLUGINS), two)
            passed, failed = run_cases(theirs, mine)
            fast = measure(theirs, mine)
        finally:
            both_servers.stop(servers)
    print(f"{passed + fast} passed, {failed + (not fast)} failed, 0 skipped")
    return 1 if failed or not fast else 0


if __name__ == "__main__":
    sys.exit(main())
