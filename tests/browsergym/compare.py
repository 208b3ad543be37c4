"""A server goes through what was recorded of the reference, and what it observes is compared.

    compare.py URL | --binary BINARY [--key KEY] [--json FILE] [--live] [--only WORD] [--all] [--recorded FILE]

URL is a server that has just been started and runs on this machine; it gets `browse` and `browse_interactive` over HTTP.
With `--binary` our server is started from it, in a throw-away root where one can be made.
`--live` compares with a reference that runs beside it, which also happens where the installed Chromium has another major
version than the recorded one; `--only` takes the cases whose name contains the word; `--all` shows each difference whole;
`--json` writes all that was seen.

An observation is identical if the text of its tree, its address, its tabs, its focus and the class of its error are. At
least 97 % must be, and each that is not must be in `expected_differences.json`, a list of
`{"case", "step" (none: all), "fields", "reason"}`. The last line is `N passed, N failed, N skipped`; exit code 1 if
something failed.
"""

import argparse
import difflib
import json
import os
import sys
import time
from collections import Counter

import kept
import steps
import throwaway
from cases import FILES
from server import Ours, Server
from web import Site

HERE = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.expanduser("~/.cache/gloveport/reference/venv/bin/python")
# The part of the observations that must be identical.
LEAST = 0.97
# What makes an observation identical.
FIELDS = ("tree", "url", "tabs", "focus", "error")
# What is counted besides.
BESIDES = ("error line", "last", "page", "words", "bids", "bbox", "visibility", "clickable", "marks", "nodes")
BBOX, VISIBILITY = 0.01, 0.02
# Without --all: lines of a difference, and differences of a case.
LINES, PLACES = 14, 3
CONTEXT = 1


def error_class(line):
    return line.split(":", 1)[0]


def boxes_agree(one, other):
    if one is None or other is None:
        return one is other
    return all(abs(a - b) <= BBOX for a, b in zip(one, other, strict=True))


def properties_agree(ours, theirs):
    """Field: whether it is the same for all bids that both have."""
    both = [(ours[bid], theirs[bid]) for bid in theirs if bid in ours]
    if theirs and not both:
        return dict.fromkeys(("bids", "visibility", "bbox", "clickable", "marks"), False)
    return {
        "bids": set(ours) == set(theirs),
        "visibility": all(abs(a[0] - b[0]) <= VISIBILITY for a, b in both),
        "bbox": all(boxes_agree(a[1], b[1]) for a, b in both),
        "clickable": all(a[2] == b[2] for a, b in both),
        "marks": all(a[3] == b[3] for a, b in both),
    }


def agreement(ours, theirs):
    """Field: whether it is the same. Fields that differ between two runs of the reference are not compared."""
    unstable = set(theirs.get("unstable", ()))
    found = {}

    def put(name, keys, same):
        if not unstable.intersection(keys) and all(key in theirs for key in keys):
            found[name] = same()

    def words(step):
        return (step.get("page") or "").split()

    put("tree", ["tree"], lambda: ours.get("tree") == theirs["tree"])
    put("url", ["url"], lambda: ours.get("url") == theirs["url"])
    put("tabs", ["pages", "index"], lambda: (ours.get("pages"), ours.get("index")) == (theirs["pages"], theirs["index"]))
    put("focus", ["focus"], lambda: (ours.get("focus") or "") == (theirs["focus"] or ""))
    put("error", ["error"], lambda: error_class(ours.get("error", "")) == error_class(theirs["error"]))
    put("error line", ["error"], lambda: ours.get("error") == theirs["error"])
    put("last", ["last"], lambda: ours.get("last") == theirs["last"])
    put("page", ["page"], lambda: ours.get("page") == theirs["page"])
    put("words", ["page"], lambda: words(ours) == words(theirs))
    put("nodes", ["nodes"], lambda: ours.get("nodes") == theirs["nodes"])
    if "properties" in theirs and "properties" not in unstable:
        found.update(properties_agree(ours.get("properties", {}), theirs["properties"]))
    return found


def difference(field, ours, theirs, whole):
    """Lines that show how a field differs."""
    if field in ("tree", "page"):
        one, other = ((step.get(field) or "").split("\n") for step in (theirs, ours))
        lines = list(difflib.unified_diff(one, other, "reference", "server", lineterm="", n=CONTEXT))[2:]
        if ours.get(field) is None:
            lines = ["there is none"]
    elif field in ("bids", "bbox", "visibility", "clickable", "marks"):
        mine, them = ours.get("properties", {}), theirs["properties"]
        place = {"bids": None, "visibility": 0, "bbox": 1, "clickable": 2, "marks": 3}[field]
        if place is None:
            lines = [f"only the reference has {sorted(set(them) - set(mine))}, only the server {sorted(set(mine) - set(them))}"]
        else:
            lines = [f"{bid}: {them[bid][place]} {mine[bid][place]}" for bid in them if bid in mine and them[bid][place] != mine[bid][place]]
    else:
        keys = {"tabs": ["pages", "index"], "error line": ["error"], "words": []}.get(field, [field])
        lines = [f"{key}: {theirs.get(key)!r}, and the server {ours.get(key)!r}" for key in keys if theirs.get(key) != ours.get(key)]
    if not whole and len(lines) > LINES:
        lines = [*lines[:LINES], f"... and {len(lines) - LINES} lines more"]
    return [line if whole else line[:240] for line in lines]


class Live:
    """Goes through the cases with a reference that runs now, instead of one that ran then."""

    def __enter__(self):
        import reference

        self.site = Site().__enter__()
        self.reference = reference.Reference().__enter__()
        self.pages = 1
        return self

    def __exit__(self, *_):
        self.reference.__exit__()
        self.site.__exit__()

    def case(self, recorded):
        seen, self.pages = walked(self.site, self.reference, recorded, self.pages)
        done = []
        for step, now in zip(recorded["steps"], seen):
            unstable = {"unstable": step["unstable"]} if "unstable" in step else {}
            done.append({"action": step["action"], "text": step["text"], **now, **unstable})
        return {"name": recorded["name"], "steps": done}


def walked(site, browser, case, pages):
    """What a browser observes at each step of a case, and how many tabs it has then."""
    seen = []
    steps.fresh(browser, pages)
    pages = 1
    for step in case["steps"]:
        if "died" in step:
            break
        sent = site.with_ports(step["text"]).replace("{F}", FILES)
        began = time.monotonic()
        try:
            observation = browser.perform(*steps.request((step["action"], sent)))
        except steps.Died as died:
            seen.append({"died": str(died)})
            break
        now = steps.normal(site, observation, step["action"], FILES)
        if observation.get("observation") == "error":
            now["error"] = f"error observation: {steps.first_line(observation['content'])}"
        pages = len(now.get("pages") or []) or pages
        seen.append({**now, "seconds": round(time.monotonic() - began, 3)})
    return seen, pages


class Report:
    def __init__(self, expected, whole):
        self.expected, self.whole = expected, whole
        self.same, self.compared, self.skipped, self.seen = Counter(), Counter(), Counter(), []
        self.identical = self.named = self.unnamed = 0
        self.met = set()

    def case(self, theirs, ours):
        lines, places, good, bad = [], 0, 0, 0
        for number, step in enumerate(theirs["steps"]):
            now = ours[number] if number < len(ours) else {"died": "the case has ended before"}
            if "died" in step:
                self.skipped["the reference ends at this step"] += 1
                continue
            if "download" in now:
                self.skipped["answered by a download"] += 1
                continue
            agree = agreement(now, step)
            differing = [field for field in FIELDS if not agree.get(field, True)]
            besides = [field for field in BESIDES if not agree.get(field, True)]
            for field, same in agree.items():
                self.compared[field] += 1
                self.same[field] += same
            reason = self.reason(theirs["name"], number, differing)
            if not differing:
                self.identical += 1
                good += 1
            elif reason is not None:
                self.named += 1
                bad += 1
            else:
                self.unnamed += 1
                bad += 1
            self.seen.append({
                "case": theirs["name"], "step": number, "text": step["text"], "differing": differing, "besides": besides,
                "expected": reason, "died": now.get("died"),
            })
            shown = [*differing, *(besides if self.whole else [])]
            if not shown:
                continue
            places += 1
            if places <= PLACES or self.whole:
                lines.append(f"    step {number} {step['text'][:100]!r} differs in {', '.join(shown)}{f': {reason}' if reason else ''}")
                lines += [f"      ended: {now['died']}"] if "died" in now else [
                    f"      {field}: {line}" for field in shown for line in difference(field, now, step, self.whole)
                ]
        if places > PLACES and not self.whole:
            lines.append(f"    and {places - PLACES} steps more")
        seconds = sum(step.get("seconds", 0) for step in ours)
        print("\n".join([f"{'ok     ' if not bad else 'differs'} {good:3}/{good + bad:<3} {seconds:6.1f} s  {theirs['name']}", *lines]), flush=True)

    def reason(self, case, number, differing):
        """Why these fields may differ here, if one says so of each of them."""
        found = []
        for field in differing:
            for place, entry in enumerate(self.expected):
                if entry["case"] == case and entry.get("step") in (None, number) and field in entry["fields"]:
                    self.met.add(place)
                    found.append(entry["reason"])
                    break
            else:
                return None
        return "; ".join(dict.fromkeys(found))

    def close(self, whole_set):
        print("\nfield           identical / compared")
        for field in FIELDS + BESIDES:
            if self.compared[field]:
                print(f"  {field:12} {self.same[field]:6} / {self.compared[field]}")
        all_of = self.identical + self.named + self.unnamed
        part = self.identical / all_of if all_of else 0
        print(f"  observations {self.identical:6} / {all_of}  ({part:.2%}, at least {LEAST:.0%})")
        for reason, count in self.skipped.items():
            print(f"skipped {count}: {reason}")
        for place, entry in enumerate(self.expected):
            if whole_set and place not in self.met:
                print(f"        expected and not seen: {entry['case']} {entry.get('step')}")
        failed = self.unnamed
        if part < LEAST and not failed:
            print(f"FAILED  {part:.2%} are identical")
            failed = 1
        print(f"{self.identical + self.named} passed, {failed} failed, {sum(self.skipped.values())} skipped")
        return failed


def major(version):
    return (version or "").split(".")[0]


def arguments():
    options = argparse.ArgumentParser()
    options.add_argument("url", nargs="?")
    options.add_argument("--binary")
    options.add_argument("--key", default=os.environ.get("SESSION_API_KEY"))
    options.add_argument("--json")
    options.add_argument("--live", action="store_true")
    options.add_argument("--only", default="")
    options.add_argument("--all", action="store_true")
    options.add_argument("--recorded", default=os.path.join(HERE, "recorded.json"))
    given = options.parse_args()
    if (given.url is None) == (given.binary is None):
        options.error("either URL or --binary")
    return given


def installed_chromium():
    import subprocess

    try:
        words = [os.environ.get("CHROMIUM", "/usr/bin/chromium"), "--version"]
        said = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    except OSError:
        return None
    return next((word for word in said.split() if word[0].isdigit()), None)


def compared(server, cases, report, live, other):
    beside = Live().__enter__() if live else None
    pages = 1
    try:
        with Site() as site:
            for case in cases:
                theirs = beside.case(case) if beside else case
                if other and not live:
                    for step in theirs["steps"]:
                        report.skipped["the tree of another Chromium"] += "tree" in step
                        step.pop("tree", None)
                try:
                    ours, pages = walked(site, server, case, pages)
                except steps.Died as died:
                    ours = [{"died": str(died)}]
                report.case(theirs, ours)
    finally:
        if beside:
            beside.__exit__()


def main():
    given = arguments()
    versions, cases = kept.read(given.recorded)
    with open(os.path.join(HERE, "expected_differences.json"), encoding="utf-8") as file:
        expected = json.load(file)
    mine, then = installed_chromium(), versions["chromium"]
    other = major(mine) != major(then)
    live = given.live or (other and os.path.exists(VENV))
    if live and os.path.realpath(sys.prefix) != os.path.realpath(os.path.dirname(os.path.dirname(VENV))):
        os.execv(VENV, [VENV, os.path.abspath(__file__), *sys.argv[1:]])
    if given.binary and not throwaway.enter(__file__):
        print("        there is no throw-away root here; downloads go to /workspace of this machine")
    report = Report(expected, given.all)
    chosen = [case for case in cases if given.only in case["name"]]
    if other and not live:
        print(f"trees are not compared: Chromium is {mine}, the recorded one {then}, and the reference is not installed")
    if given.binary:
        with Ours(given.binary) as server:
            compared(server, chosen, report, live, other)
    else:
        compared(Server(given.url, given.key), chosen, report, live, other)
    failed = report.close(not given.only)
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            fields = {name: [report.same[name], report.compared[name]] for name in report.compared}
            json.dump({"fields": fields, "steps": report.seen}, file, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
