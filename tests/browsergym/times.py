"""Prints how long a click, a navigation and a start take, and how much memory that needs: through the reference, through
our server, and what Chromium alone needs for the navigation.

    times.py [BINARY] [--count N] [--slowly] [--json]

`--json` measures the reference alone, and prints its numbers as one line. Without BINARY only the reference and Chromium. Runs in the reference's environment. `--slowly` keeps the reference's
pause of a second before each message to the browser, as it really has it.
"""

import argparse
import json
import os
import sys
import time

import reference
import throwaway
from server import Ours
from web import Site
from steps import between, BEGIN, END


def median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def tree_of(pid):
    """A process and all that it has started."""
    parents = {}
    for one in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{one}/stat", encoding="ascii", errors="replace") as file:
                parents[int(one)] = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {pid}
    while True:
        more = {one for one, parent in parents.items() if parent in found} - found
        if not more:
            return found
        found |= more


def memory(pids):
    """Proportional set size of the processes, in MB: of browsers, and of the others."""
    browsers = others = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
                size = next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                browser = b"chrom" in file.read().split(b"\0")[0]
        except (OSError, StopIteration):
            continue
        if browser:
            browsers += size
        else:
            others += size
    return browsers / 1024, others / 1024


def measured(browser, site, count):
    """Seconds of a click and of a navigation, each the median."""
    address = f"http://localhost:{site.ports['A']}"

    def timed(actions):
        began = time.monotonic()
        seen = browser.perform("browse_interactive", {"browser_actions": actions})
        if seen["extras"].get("last_browser_action_error") or between(seen["content"], BEGIN, END) is None:
            raise SystemExit(f"{actions} fails: {seen['content'][:500]}")
        return time.monotonic() - began

    gotos = [(page, timed(f'goto("{address}/{page}.html")')) for _ in range(count) for page in ("plain", "buttons")]
    clicks = [timed("click('5')") for _ in range(2 * count)]
    plain = [took for page, took in gotos if page == "plain"]
    return {"click": median(clicks), "goto": median([took for _, took in gotos]), "plain": median(plain)}


def of_reference(site, count):
    began = time.monotonic()
    with reference.Reference() as browser:
        start = time.monotonic() - began
        found = measured(browser, site, count)
        found["start"] = start
        found["browsers"], found["others"] = memory(tree_of(browser.pid))
    return found


def of_ours(binary, site, count):
    began = time.monotonic()
    with Ours(binary) as browser:
        # The browser may become ready after the server.
        browser.perform("browse_interactive", {"browser_actions": "noop(0)"})
        start = time.monotonic() - began
        found = measured(browser, site, count)
        found["start"] = start
        found["browsers"], found["others"] = memory(tree_of(browser.process.pid))
    return found


def of_chromium(site, count):
    """Seconds from the start of a navigation to the end of `load`, as Chromium says, and of its own start."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        began = time.monotonic()
        browser = playwright.chromium.launch(headless=True)
        page = browser.new_page()
        start = time.monotonic() - began
        session = page.context.new_cdp_session(page)
        loads = []
        for number in range(2 * count):
            name = ("plain", "buttons")[number % 2]
            page.goto(f"http://localhost:{site.ports['A']}/{name}.html")
            said = session.send("Runtime.evaluate", {
                "expression": "performance.timing.loadEventEnd - performance.timing.navigationStart", "returnByValue": True
            })
            loads.append(said["result"]["value"] / 1000)
        browser.close()
    return {"goto": median(loads), "start": start}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("binary", nargs="?")
    options.add_argument("--count", type=int, default=10)
    options.add_argument("--slowly", action="store_true")
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    if given.binary:
        throwaway.enter(__file__)
    if given.slowly:
        os.environ[reference.SLOWLY] = "1"
    if given.json:
        with Site() as site:
            print(json.dumps(of_reference(site, given.count)))
        return 0
    with Site() as site:
        rows = {"Chromium alone": of_chromium(site, given.count), "reference": of_reference(site, given.count)}
        if given.binary:
            rows["ours"] = of_ours(os.path.abspath(given.binary), site, given.count)
    print(f"{'':16} {'start s':>8} {'click ms':>9} {'goto ms':>8} {'browsers MB':>12} {'others MB':>10}")
    for name, row in rows.items():
        print(f"{name:16} {cell(row, 'start', 8, 1, 2)} {cell(row, 'click', 9, 1000)} {cell(row, 'goto', 8, 1000)} "
              f"{cell(row, 'browsers', 12, 1)} {cell(row, 'others', 10, 1)}")
    return 0


def cell(row, key, width, factor, digits=0):
    return f"{row[key] * factor:{width}.{digits}f}" if key in row else " " * (width - 1) + "-"


if __name__ == "__main__":
    sys.exit(main())
