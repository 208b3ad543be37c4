"""The reference reads the histories that we write, and we read those that it writes.

    history.py PROGRAM

PROGRAM is the example `history` of the crate `gloveport-event-stream`. Both work on the same directories, which hold
every kind of event: what one has written, the other must read as the same dicts, find with the same searches, list,
save as a trajectory and play again. Prints one line a check and, last, `N passed, N failed, N skipped`; exit code 1 if
a check failed.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = os.path.abspath(sys.argv[1])
GOLDEN = Path(__file__).resolve().parents[2] / "crates/base/protocol/tests/golden"
HOME = tempfile.mkdtemp(prefix="reference-history-")
os.environ.update(HOME=HOME, LOG_LEVEL="ERROR")

from openhands.controller.replay import ReplayManager  # noqa: E402
from openhands.events import EventSource, EventStream  # noqa: E402
from openhands.events.event_filter import EventFilter  # noqa: E402
from openhands.events.event_store import EventStore  # noqa: E402
from openhands.events.serialization import event_from_dict, event_to_dict, event_to_trajectory  # noqa: E402
from openhands.events.serialization.action import ACTION_TYPE_TO_CLASS  # noqa: E402
from openhands.events.serialization.observation import OBSERVATION_TYPE_TO_CLASS  # noqa: E402
from openhands.io import json as openhands_json  # noqa: E402
from openhands.storage.local import LocalFileStore  # noqa: E402

passed = failed = 0


def check(name, found, expected):
    global passed, failed
    if found == expected:
        passed += 1
        print(f"ok      {name}")
    else:
        failed += 1
        print(f"FAILED  {name}\n        expected {expected!r}\n        found    {found!r}"[:4000])


def first_difference(found, expected):
    """Nothing, or the first place where two lists differ; whole lists are too long to be read."""
    for at, pair in enumerate(zip(found, expected)):
        if pair[0] != pair[1]:
            return at, *pair
    return None if len(found) == len(expected) else (len(found), len(expected))


def same(name, found, expected):
    check(f"{name} ({len(expected)})", first_difference(list(found), list(expected)), None)


def ours(*arguments, lines=()):
    """What our program prints, as JSON."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([PROGRAM, *map(str, arguments)], input=text, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def golden_events():
    """Every kind of event, in the reference's own form."""
    events = []
    for name in ("actions", "observations"):
        events += [case["output"] for case in json.loads((GOLDEN / f"{name}.json").read_text())]
    # What is not ASCII, and what the masks and the pages must not touch.
    text = "Grüße, 漢字 😀 \u007f \"quoted\" \\ \n\t"
    events.append({"action": "message", "args": {"content": text, "image_urls": ["x"]}})
    return events


def additions(events):
    """The events without what a stream gives them, with a source each."""
    sources = ["agent", "user", "environment"]
    given = ("id", "timestamp", "source")
    bare = [{key: value for key, value in event.items() if key not in given} for event in events]
    return [{"source": sources[at % 3], "event": event} for at, event in enumerate(bare)]


def reference_store(root, user=None):
    return EventStore("s", LocalFileStore(str(root)), user)


def event_files(root, directory="sessions/s"):
    files = sorted((Path(root) / directory / "events").iterdir(), key=lambda path: int(path.stem))
    return [path.read_text() for path in files]


def reference_adds(root, events):
    stream = EventStream("s", LocalFileStore(str(root)))
    for addition in additions(events):
        stream.add_event(event_from_dict(dict(addition["event"])), EventSource(addition["source"]))
    stream.close()


def kinds(events):
    return {("action", e["action"]) if "action" in e else ("observation", e["observation"]) for e in events}


def we_write(events):
    root = Path(HOME) / "ours"
    tasks = root / "sessions/s/TASKS.md"
    tasks.parent.mkdir(parents=True)
    tasks.write_text("# Tasks\n")
    before = tasks.stat()
    stored = ours("add", root, "s", lines=additions(events))
    same("no event was refused", [event for event in stored if "error" in event], [])
    texts = event_files(root)
    store = reference_store(root)
    check("the reference knows the next number", store.cur_id, len(events))
    read = [store.get_event(at) for at in range(len(events))]
    same("the reference reads our events as we do", [event_to_dict(event) for event in read], stored)
    same("our files are the texts that the reference writes", texts, [openhands_json.dumps(e) for e in stored])
    again = [openhands_json.dumps(event_to_dict(event)) for event in read]
    same("the reference makes the same text of what it read", texts, again)
    same("the reference finds our events", [event_to_dict(event) for event in store.search_events()], stored)
    pages = sorted(path.name for path in (root / "sessions/s/event_cache").iterdir())
    starts = range(0, len(events) - len(events) % 25, 25)
    check("our pages have names that the reference looks for", pages, sorted(f"{at}-{at + 25}.json" for at in starts))
    page = (root / "sessions/s/event_cache/0-25.json").read_text()
    check("our page is the text that the reference writes", page, openhands_json.dumps(stored[:25]))
    # Without its file, an event can only come from its page.
    (root / "sessions/s/events/3.json").rename(root / "3.json")
    found = [event.id for event in reference_store(root).search_events(end_id=5)]
    check("the reference uses our pages", found, [0, 1, 2, 3, 4, 5])
    (root / "3.json").rename(root / "sessions/s/events/3.json")
    check("TASKS.md is as it was", (tasks.read_text(), tasks.stat().st_mtime_ns), ("# Tasks\n", before.st_mtime_ns))
    names = sorted(path.name for path in (root / "sessions/s").iterdir())
    check("nothing else is there", names, ["TASKS.md", "event_cache", "events"])
    ours("add", root, "s", "u", lines=additions(events[:3]))
    found = [event.id for event in reference_store(root, "u").search_events()]
    same("a user's events are where the reference looks", found, [0, 1, 2])
    return root


def the_reference_writes(events):
    root = Path(HOME) / "theirs"
    reference_adds(root, events)
    texts = event_files(root)
    same("we read the reference's events", ours("search", root, "s", "{}"), [json.loads(text) for text in texts])
    check("it has written pages", (root / "sessions/s/event_cache/0-25.json").is_file(), True)
    return root


def both_write(events):
    root = Path(HOME) / "both"
    for _ in range(3):
        ours("add", root, "s", lines=additions(events[:7]))
        reference_adds(root, events[7:14])
    texts = [json.loads(text) for text in event_files(root)]
    check("numbers go on from one to the other", [event["id"] for event in texts], list(range(42)))
    same("we read what both have written", ours("search", root, "s", "{}"), texts)
    found = [event_to_dict(event) for event in reference_store(root).search_events()]
    same("the reference reads what both have written", found, texts)


def searches(root, events):
    stamps = [event["timestamp"] for event in ours("search", root, "s", "{}")]
    last = len(events) - 1
    cases = [
        {"start_id": 10, "end_id": 40}, {"start_id": 10, "end_id": 40, "reverse": True}, {"reverse": True, "limit": 7},
        {"limit": 3}, {"limit": 0}, {"start_id": last}, {"start_id": last + 5}, {"start_id": 9, "end_id": 3},
        {"end_id": last + 50}, {"end_id": last + 50, "reverse": True},
        {"source": "agent"}, {"source": "user", "reverse": True}, {"source": "environment", "limit": 5},
        {"query": "LS"}, {"query": "\"run\""}, {"query": "no such text anywhere"}, {"query": "\\ud83d"},
        {"exclude_hidden": True}, {"start_date": stamps[12]}, {"end_date": stamps[12]},
        {"start_date": stamps[5], "end_date": stamps[9]}, {"start_date": "2999"}, {"end_date": "1999"},
    ]  # fmt: skip
    types = [f"{side} {kind}" for side, kind in sorted(kinds(events))]
    cases += [{"include_types": [name]} for name in types] + [{"exclude_types": [name]} for name in types]
    cases += [{"include_types": types[:4], "exclude_types": types[2:3], "source": "agent", "limit": 2}]
    store = reference_store(root)
    differing = []
    for case in cases:
        options = dict(case)
        place = {key: options.pop(key) for key in ("start_id", "end_id", "reverse", "limit") if key in options}
        for key in ("include_types", "exclude_types"):
            if key in options:
                options[key] = tuple(class_of(*name.split(" ")) for name in options[key])
        expected = [event.id for event in store.search_events(**place, filter=EventFilter(**options))]
        found = [event["id"] for event in ours("search", root, "s", json.dumps(case))]
        if found != expected:
            differing.append((case, found, expected))
    same(f"searches of {root.name} find the same", differing or cases, cases)


def class_of(side, kind):
    return ACTION_TYPE_TO_CLASS[kind] if side == "action" else OBSERVATION_TYPE_TO_CLASS[kind]


def killed():
    root = Path(HOME) / "killed"
    child = subprocess.Popen([PROGRAM, "append", root, "s", "4"], stdout=subprocess.PIPE, text=True)
    lines = [child.stdout.readline() for _ in range(200)]
    child.send_signal(signal.SIGKILL)
    lines += child.stdout.read().splitlines(keepends=True)
    child.wait()
    acknowledged = dict(line.rstrip("\n").split(" ", 1) for line in lines[1:] if line.endswith("\n"))
    check("the journal of a killed writer is there", (root / "sessions/s/events.journal").stat().st_size > 0, True)
    store = reference_store(root)
    found = {str(event.id): event.message for event in store.search_events()}
    lost = [number for number, text in acknowledged.items() if found.get(number) != text]
    check(f"the reference finds what a killed writer acknowledged ({len(acknowledged)})", lost, [])
    reference_adds(root, [{"action": "null", "args": {}}])
    latest = reference_store(root).get_latest_event()
    check("it goes on where the writer was killed", latest.message, "No action")
    (answer,) = ours("add", root, "s", lines=additions([{"action": "null", "args": {}}]))
    # Events that the journal has and nobody was told of may come in between.
    check("and we go on after it", answer["id"] > latest.id, True)
    store = reference_store(root)
    check("its event is as it was", event_to_dict(store.get_event(latest.id)), event_to_dict(latest))
    check("no number is without an event", [event.id for event in store.search_events()], list(range(answer["id"] + 1)))


def trajectories(events):
    # The reference cannot play what does not begin with a message.
    conversation = [{"action": "message", "args": {"content": "the task", "wait_for_response": True}}, *events]
    root = Path(HOME) / "played"
    ours("add", root, "s", lines=[{**addition, "source": "user"} if at == 0 else addition
                                  for at, addition in enumerate(additions(conversation))])
    path = Path(HOME) / "deep/er/trajectory.json"
    path.parent.mkdir(parents=True)
    ours_saved = subprocess.run([PROGRAM, "save", root, "s", path], capture_output=True, text=True, check=True)
    check("the place of a trajectory is told", ours_saved.stdout, f"{path}\n")
    histories = [event_to_trajectory(event) for event in reference_store(root).search_events()]
    text = path.read_text()
    check("we save it as the reference does", first_difference(text, json.dumps(histories, indent=4)), None)
    played = ReplayManager.get_replay_events(json.loads(path.read_text()))
    manager = ReplayManager(played[1:])
    expected = [event_to_dict(played[0])]
    while manager.should_replay():
        expected.append(event_to_dict(manager.step()))
    same("we play it again as the reference does", ours("load", path), expected)
    subprocess.run([PROGRAM, "save", root, "s", Path(HOME) / "deep"], capture_output=True, check=True)
    check("in a directory it has the conversation's name", (Path(HOME) / "deep/s.json").read_text(), text)


def main():
    events = golden_events()
    known = {("action", kind) for kind in ACTION_TYPE_TO_CLASS}
    known |= {("observation", str(getattr(kind, "value", kind))) for kind in OBSERVATION_TYPE_TO_CLASS}
    check(f"there is every kind of event ({len(known)})", sorted(known - kinds(events)), [])
    # Enough for pages.
    events = events * (-(-110 // len(events)))
    ours_root = we_write(events)
    theirs_root = the_reference_writes(events)
    both_write(events)
    searches(ours_root, events)
    searches(theirs_root, events)
    killed()
    trajectories(golden_events())


began = time.monotonic()
main()
print(f"        took {time.monotonic() - began:.1f} s")
print(f"{passed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed else 0)
