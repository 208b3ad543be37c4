"""Records what the reference observes on the pages of the site, twice, and keeps it with what differs between the two.

    record.py [--only WORD] [--slowly] [FILE]     default: recorded.json beside this file

Runs in the reference's environment. `--only` (several are fine) takes the cases whose name contains the word and leaves
the others in FILE as they are; `--slowly` keeps the reference's pause of a second before each message to the browser.
Both runs go at once, each with a browser and a site of its own. What is in `unstable` of a step differs between them.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import kept
import reference
import steps
from cases import CASES, FILES, loads
from web import Site

HERE = os.path.dirname(os.path.abspath(__file__))
# An id of an element in an action.
NAMED = re.compile(r"""(?<=['"])@(\w+)(?:#(\d+))?(?=['"])""")
TWO_RUNS = ("one", "two")


def bids(snapshot):
    """Id, or id#2 and so on: bid, of the elements of a DOM snapshot."""
    strings, found = snapshot["strings"], {}
    for document in snapshot["documents"]:
        for attributes in document["nodes"]["attributes"]:
            pairs = {strings[name]: strings[value] for name, value in zip(attributes[::2], attributes[1::2])}
            if "id" not in pairs or "bid" not in pairs:
                continue
            number = sum(name.split("#")[0] == pairs["id"] for name in found) + 1
            found[pairs["id"] if number == 1 else f"{pairs['id']}#{number}"] = pairs["bid"]
    return found


class Recorder:
    def __init__(self, site, browser):
        self.site, self.browser = site, browser
        self.pages = 1

    def case(self, name, start, actions):
        known, done = {}, []
        steps.fresh(self.browser, self.pages)
        self.pages = 1
        if start is not None:
            actions = [f'goto("{start}")', *actions]
        for step in actions:
            action, text = steps.typed(step)
            text = NAMED.sub(lambda match: self.named(name, known, match), text)
            sent = self.site.with_ports(text).replace("{F}", FILES)
            began = time.monotonic()
            try:
                observation = self.browser.perform(*steps.request((action, sent)))
            except steps.Died as died:
                done.append({"action": action, "text": text, "died": str(died)})
                print(f"        {name}: {text!r} ends the reference", flush=True)
                self.pages = 1
                break
            if time.monotonic() - began > 10:
                print(f"        {name}: {text!r} took {time.monotonic() - began:.0f} s", flush=True)
            seen = steps.normal(self.site, observation, action, FILES)
            self.pages = len(seen["pages"]) or self.pages
            known.update(bids(self.browser.last["dom_object"]) if self.browser.last else {})
            done.append({"action": action, "text": text, **seen})
        return {"name": name, "steps": done}

    def named(self, case, known, match):
        key = match.group(1) + (f"#{match.group(2)}" if match.group(2) else "")
        if key not in known:
            print(f"        {case}: there is no @{key}", flush=True)
        return known.get(key, match.group(0))


def run(chosen, path):
    """One of the two runs."""
    done = []
    with Site() as site, reference.Reference() as browser:
        recorder = Recorder(site, browser)
        for case in chosen:
            began = time.monotonic()
            done.append(recorder.case(*case))
            print(f"{case[0]}: {len(done[-1]['steps'])} steps, {time.monotonic() - began:.1f} s", flush=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(done, file)


def merged(first, second):
    """The first run, with the names of what was different in the second."""
    for case, other in zip(first, second, strict=True):
        for number, step in enumerate(case["steps"]):
            twin = other["steps"][number] if number < len(other["steps"]) else {}
            unstable = sorted(key for key in step if step[key] != twin.get(key))
            if unstable:
                step["unstable"] = unstable
    return first


def main():
    options = argparse.ArgumentParser()
    options.add_argument("file", nargs="?", default=os.path.join(HERE, "recorded.json"))
    options.add_argument("--only", action="append", default=[])
    options.add_argument("--slowly", action="store_true")
    options.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    chosen = [case for case in loads() + CASES if not given.only or any(word in case[0] for word in given.only)]
    if given.run:
        run(chosen, given.file)
        return 0
    if given.slowly:
        os.environ[reference.SLOWLY] = "1"
    with tempfile.TemporaryDirectory() as directory:
        words = [sys.executable, os.path.abspath(__file__), *(f"--only={word}" for word in given.only), "--run"]
        # The first one's log is shown.
        running = []
        for name in TWO_RUNS:
            log = open(os.path.join(directory, f"{name}.log"), "w", encoding="utf-8") if name != TWO_RUNS[0] else None
            running.append(subprocess.Popen([*words, os.path.join(directory, name)], stdout=log, stdin=subprocess.DEVNULL))
        if any([one.wait() for one in running]):
            print("a run has failed")
            return 1
        runs = []
        for name in TWO_RUNS:
            with open(os.path.join(directory, name), encoding="utf-8") as file:
                runs.append(json.load(file))
    cases = merged(*runs)
    unstable = {}
    for case in cases:
        for number, step in enumerate(case["steps"]):
            for key in step.get("unstable", []):
                unstable.setdefault(key, []).append(f"{case['name']} {number}")
    if given.only and os.path.exists(given.file):
        replaced = {case["name"]: case for case in cases}
        cases = [replaced.pop(case["name"], case) for case in kept.read(given.file)[1]] + list(replaced.values())
    kept.write(given.file, reference.versions(), cases)
    count = sum(len(case["steps"]) for case in cases)
    print(f"{len(cases)} cases, {count} observations")
    for key, places in unstable.items():
        print(f"unstable {key}: {len(places)}: {', '.join(places[:20])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
