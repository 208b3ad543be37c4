"""What the drives of all services share: a stand-in that runs, checks that are counted, requests that are recorded."""

import json
import os
import subprocess
import sys
import traceback
import urllib.request


class StandIn:
    """The program with one face. It ends with this process."""

    def __init__(self, program, service):
        self.process = subprocess.Popen([program, service], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.variables = {}
        for line in self.process.stdout:
            if not line.strip():
                break
            name, value = line.rstrip("\n").split("=", 1)
            self.variables[name] = value
        # The SDKs read what is theirs.
        os.environ.update(self.variables)
        base = next(value for name, value in self.variables.items() if value.startswith("http") and "{" not in value)
        self.url = base.split("/api")[0]

    def ask(self, what, **body):
        """Requests that came (`requests`), a fault that is to come (`fail`), time that goes by (`advance`)."""
        request = urllib.request.Request(
            f"{self.url}/stand-in/{what}", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
            return json.load(answer)

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)


class Checks:
    """Checks by name, a line each. One that fails does not stop the others."""

    def __init__(self, name):
        self.name = name
        self.passed = self.failed = 0

    def __call__(self, what, work):
        try:
            result = work()
            assert result is not False, "it is not so"
        except Exception:  # noqa: BLE001
            self.failed += 1
            print(f"FAILED  {self.name}: {what}\n{traceback.format_exc(limit=4)}", flush=True)
            return None
        self.passed += 1
        print(f"ok      {self.name}: {what}", flush=True)
        return result

    def end(self):
        print(f"{self.name}: {self.passed} passed, {self.failed} failed, 0 skipped", flush=True)
        sys.exit(1 if self.failed else 0)


def recorded(file, found, record):
    """Whether requests are those of a file; with `record` they are written there."""
    if record:
        with open(file, "w", encoding="utf-8") as out:
            json.dump(found, out, indent=2)
            out.write("\n")
        return True
    with open(file, encoding="utf-8") as read:
        expected = json.load(read)
    for one, other in zip(expected, found):
        assert one == other, f"recorded {one}\nnow      {other}"
    assert len(expected) == len(found), f"recorded {len(expected)} requests, and there are {len(found)}"
    return True


def arguments():
    """The program, the file of recorded requests, and whether that is written."""
    words = sys.argv[1:]
    record = "--record" in words
    program, file = [word for word in words if word != "--record"]
    return program, file, record
