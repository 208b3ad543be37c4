"""Commands and their events, as plain requests see them."""

import time
import uuid

from .harness import EVENTS, EXECUTE, SEARCH, START, case, shifted, together, took


@case
def what_is_no_request(server):
    found = {}
    bodies = {
        "nothing": {},
        "no command": {"json": {}},
        "null as the command": {"json": {"command": None}},
        "a number as the command": {"json": {"command": 7}},
        "a list": {"json": []},
        "a text": {"json": "echo hi"},
        "null": {"json": None},
        "broken JSON": {"content": "{", "headers": {"Content-Type": "application/json"}},
        "not UTF-8": {"content": b'{"command":"\xff"}', "headers": {"Content-Type": "application/json"}},
        "a number as cwd": {"json": {"command": "true", "cwd": 7}},
        "half a second": {"json": {"command": "true", "timeout": 1.5}},
        "null as the timeout": {"json": {"command": "true", "timeout": None}},
        "a word as the timeout": {"json": {"command": "true", "timeout": "soon"}},
        "several": {"json": {"cwd": 7, "timeout": "soon"}},
    }
    for name, body in bodies.items():
        found[name] = [server.asked("POST", path, **body) for path in (EXECUTE, START)]
    return found


@case
def accepted_requests(server):
    asked = lambda **more: server.asked("POST", EXECUTE, **more)
    return {
        "start": server.asked("POST", START, json={"command": "true"}),
        "start with all": server.asked("POST", START, json={"command": "true", "cwd": "/tmp", "timeout": 7}),
        "execute": asked(json={"command": "echo out; echo err >&2"}),
        "execute without output": asked(json={"command": "true", "cwd": None}),
        "execute with a vendor's type": asked(
            content='{"command":"true"}', headers={"Content-Type": "application/x+json; charset=utf-8"}
        ),
        "text as the timeout": server.asked("POST", START, json={"command": "true", "timeout": "5"}),
        "a whole number as the timeout": server.asked("POST", START, json={"command": "true", "timeout": 5.0}),
        "true as the timeout": server.asked("POST", START, json={"command": "true", "timeout": True}),
        "surrogates": server.executed("printf %s '\U0001f600' | wc -c"),
        "a missing directory": asked(json={"command": "true", "cwd": "/no/such"}),
    }


@case
def limits(server):
    run = server.executed
    place = server.place("limits")
    found = together(
        two_seconds=lambda: took(lambda: run("echo a; echo b >&2; sleep 30; echo later", timeout=2)),
        zero=lambda: run("echo hi", timeout=0),
        below_zero=lambda: run("echo hi", timeout=-1)["exit_code"],
        deaf=lambda: took(lambda: run("trap '' TERM; echo a; sleep 30; sleep 30", timeout=1)),
        trapped=lambda: took(lambda: run("trap 'echo trapped; exit 3' TERM; echo a; sleep 30 & wait", timeout=1)),
        a_job=lambda: took(lambda: run(f"(sleep 2.5; touch {place}/late) & echo a", timeout=1)),
        a_job_with_the_pipe=lambda: took(lambda: run("sleep 2.2 & echo x", timeout=20)),
    )
    time.sleep(1.5)
    return found | {"the job is ended, too": not (place / "late").exists()}


@case
def chunks(server):
    plain = lambda events: [
        [one["order"], len(one["stdout"] or ""), len(one["stderr"] or ""), one["exit_code"]] for one in events
    ]
    zeros = "head -c {} /dev/zero | tr '\\0' {}"
    large = zeros.format(2500000, "a") + ";" + zeros.format(1200000, "b") + " >&2; exit 7"
    limit = 1048576
    place = server.place("chunks")
    (place / "umlauts").write_text("x" + "ü" * 100000)
    body = server.asked("POST", EXECUTE, json={"command": large, "timeout": 60})["body"]
    events = server.outputs(body["command_id"])
    text = server.executed(f"cat {place}/umlauts")["stdout"]
    return {
        "several": plain(server.outputs(server.started(large))),
        "joined": [body["order"], len(body["stdout"]), len(body["stderr"]), body["exit_code"]],
        "joined is the last one": body["id"] == events[-1]["id"] and body["timestamp"] == events[-1]["timestamp"],
        "as large as one": plain(server.outputs(server.started(zeros.format(limit, "a")))),
        "larger by one": plain(server.outputs(server.started(zeros.format(limit + 1, "a")))),
        "characters": plain(server.outputs(server.started(f"yes é | tr -d '\\n' | head -c {2 * limit + 4}"))),
        "none is early": plain(server.outputs(server.started("echo a; sleep 0.3; echo b; sleep 0.3; echo c >&2"))),
        "a character that is read in two parts": text == "x" + "ü" * 100000,
        "grow together": events == sorted(events, key=lambda one: (one["timestamp"], one["order"])),
    }


@case
def stops(server):
    stop = lambda command: server.asked("POST", f"/api/bash/bash_commands/{command}/stop")
    found = {}
    running = server.started("echo a; sleep 30")
    deaf = server.started("trap '' TERM; echo a; sleep 30; sleep 30")
    tidy = server.started("trap 'echo tidied; exit 6' TERM; sleep 30 & wait")
    time.sleep(0.5)
    for name, command in [("running", running), ("deaf", deaf), ("tidy", tidy)]:
        found[name] = stop(command)
    at_once = server.started("sleep 30; echo later")
    found["at once"] = stop(at_once)
    for name, command in [("running", running), ("deaf", deaf), ("tidy", tidy), ("at once", at_once)]:
        found[name + ", its end"] = [
            [one[field] for field in ("order", "exit_code", "stdout", "stderr")] for one in server.outputs(command)
        ]
    found["ended"] = stop(running)
    found["with hyphens"] = stop(uuid.UUID(running))
    found["its output event"] = stop(server.outputs(running)[-1]["id"])
    found["unknown"] = stop(uuid.uuid4())
    found["no id"] = stop("no-id")
    found["with a wrong key"] = server.asked("POST", f"/api/bash/bash_commands/{running}/stop", key="wrong")
    return found


@case
def searches(server):
    server.send("DELETE", EVENTS)
    first = server.send("POST", EXECUTE, json={"command": "echo one"}).json()
    second = server.send("POST", EXECUTE, json={"command": "echo two >&2; exit 2"}).json()
    large = server.send("POST", EXECUTE, json={"command": "head -c 2200000 /dev/zero | tr '\\0' a"}).json()
    everything = server.send("GET", SEARCH).json()["items"]

    def plain(answer):
        if answer["status"] != 200:
            return answer
        return [
            [[one["kind"], one.get("order"), one.get("exit_code"), len(one.get("stdout") or "")] for one in items]
            if (items := answer["body"].pop("items")) is not None else None,
            answer["body"]["next_page_id"] is not None,
            sorted(answer["body"]),
        ]

    asked = lambda **more: plain(server.asked("GET", SEARCH, params=more))

    def pages(**more):
        found, page = [], None
        for _ in range(20):
            body = server.send("GET", SEARCH, params=more | ({"page_id": page} if page else {})).json()
            found.append([everything.index(one) for one in body["items"]])
            page = body["next_page_id"]
            if page is None:
                return found
        return "no end"

    command, output = everything[2]["timestamp"], everything[1]["timestamp"]
    found = {
        "all": server.asked("GET", SEARCH),
        "in order": pages(),
        "backwards": pages(sort_order="TIMESTAMP_DESC"),
        "pages of two": pages(limit=2),
        "pages of one, backwards": pages(limit=1, sort_order="TIMESTAMP_DESC"),
        "pages of outputs": pages(limit=1, kind__eq="BashOutput"),
        "pages of a command": pages(limit=2, command_id__eq=large["command_id"]),
        "pages of later outputs": pages(limit=2, order__gt=0),
        "outputs": asked(kind__eq="BashOutput"),
        "commands": asked(kind__eq="BashCommand"),
        "of a command": asked(command_id__eq=first["command_id"]),
        "of a command, with hyphens": asked(command_id__eq=str(uuid.UUID(first["command_id"]))),
        "of a command, commands": asked(command_id__eq=first["command_id"], kind__eq="BashCommand"),
        "of an output": asked(command_id__eq=second["id"]),
        "of an unknown command": asked(command_id__eq=str(uuid.uuid4())),
        "later outputs": asked(command_id__eq=large["command_id"], order__gt=0),
        "later outputs, backwards": asked(command_id__eq=large["command_id"], order__gt=0, sort_order="TIMESTAMP_DESC"),
        "no later outputs": asked(command_id__eq=large["command_id"], order__gt=99),
        "all orders": asked(command_id__eq=large["command_id"], order__gt=-1),
        "from a time": asked(timestamp__gte=command),
        "before a time": asked(timestamp__lt=command),
        "between": asked(timestamp__gte=output, timestamp__lt=command),
        "a time without a zone": asked(timestamp__gte=command.removesuffix("Z")),
        "a time of another zone": asked(
            timestamp__gte=shifted(command, 2), timestamp__lt=shifted(everything[4]["timestamp"], -5)
        ),
        "a day": asked(timestamp__gte="2001-01-01"),
        "seconds": asked(timestamp__gte="1000000000"),
        "an unknown page": asked(page_id="no-such-page", limit=2),
        "an empty page": asked(page_id="", limit=2),
        "an unknown parameter": asked(unknown="x", limit=1),
    }
    for name, value in [
        ("limit", "0"), ("limit", "101"), ("limit", "-1"), ("limit", "x"), ("limit", "1.5"), ("limit", ""),
        ("kind__eq", "BashError"), ("kind__eq", ""), ("command_id__eq", "x"), ("command_id__eq", ""),
        ("timestamp__gte", "x"), ("timestamp__lt", ""), ("order__gt", "x"), ("order__gt", "1.5"), ("sort_order", "UP"),
        ("sort_order", ""), ("limit", "100"), ("limit", " 5 "), ("limit", "1.0"),
    ]:  # fmt: skip
        found[f"{name}={value!r}"] = asked(**{name: value})
    found["several"] = server.asked("GET", SEARCH, params={"limit": 0, "kind__eq": "x"})
    found["twice"] = plain(server.asked("GET", SEARCH + "?limit=1&limit=2"))
    return found


@case
def events_by_id(server):
    output = server.send("POST", EXECUTE, json={"command": "echo one"}).json()
    both = [output["command_id"], output["id"]]
    get = lambda one: server.asked("GET", f"{EVENTS}/{one}")
    several = lambda **more: server.asked("GET", EVENTS + "/", **more)
    return {
        "command": get(both[0]),
        "output": get(both[1]),
        "with hyphens": get(uuid.UUID(both[1])),
        "in upper case": get(both[1].upper())["status"],
        "unknown": get(uuid.uuid4().hex),
        "no id": get("no-id"),
        "several": several(json=[both[1], uuid.uuid4().hex, both[0], both[1]]),
        "several, one no id": several(json=["no-id", both[0]]),
        "several with hyphens": several(json=[str(uuid.UUID(both[1]))]),
        "none": several(json=[]),
        "no list": several(json={"ids": both}),
        "not of texts": several(json=[1, None]),
        "no body": several(),
        "broken JSON": several(content="[", headers={"Content-Type": "application/json"}),
    }


@case
def deletion(server):
    server.send("DELETE", EVENTS)
    server.executed("true")
    running = server.started("sleep 0.7; echo after")
    found = {"deleted": server.asked("DELETE", EVENTS), "again": server.asked("DELETE", EVENTS)}
    found["nothing is left"] = server.asked("GET", SEARCH)
    found["stop of a forgotten one"] = server.asked("POST", f"/api/bash/bash_commands/{uuid.uuid4()}/stop")
    outputs = server.outputs(running)
    found["a running one goes on"] = [[one["order"], one["exit_code"], one["stdout"]] for one in outputs]
    found["its command is gone"] = server.asked("GET", f"{EVENTS}/{running}")
    found["with a wrong key"] = server.asked("DELETE", EVENTS, key="wrong")
    return found
