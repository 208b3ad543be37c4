"""What is left in a stand-in, in the words of the service: fields with their values, of the one sandbox that there is."""

import json
import os
import time
import urllib.request
from datetime import datetime

# States that pass by themselves, and seconds for which that is waited for.
MOVING = ("destroying", "stopping", "suspending")
SETTLED = 10
# Modal's fields have numbers on the wire.
DEFINITION = {"1": "entrypoint", "2": "mounts", "3": "image", "4": "secrets", "5": "resources", "7": "timeout", "8": "workdir",
              "20": "ports", "22": "network", "30": "name", "38": "readiness"}  # fmt: skip


def ask(url, body=None, **headers):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json", **headers})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
        return json.load(answer)


def flat(value, name=""):
    """Fields of fields by their path; what is empty is as if it were not there."""
    if isinstance(value, dict):
        found = {}
        for key, one in value.items():
            found.update(flat(one, f"{name}.{key}" if name else key))
        return found
    return {} if value in (None, [], "") else {name: value}


def e2b(url):
    key = {"X-API-KEY": os.environ["E2B_API_KEY"]}
    found = []
    for listed in ask(f"{url}/v2/sandboxes", **key):
        told = ask(f"{url}/sandboxes/{listed['sandboxID']}", **key)
        began, ends = (datetime.fromisoformat(told[name].replace("Z", "+00:00")) for name in ("startedAt", "endAt"))
        # It is set anew meanwhile, so it is told in steps of five minutes.
        told["limit"] = 300 * round((ends - began).total_seconds() / 300)
        for name in ("sandboxID", "clientID", "startedAt", "endAt", "envdAccessToken", "trafficAccessToken", "envdVersion", "domain"):
            told.pop(name, None)
        found.append(flat(told))
    return {"sandboxes": found, "kept": {}}


def daytona(one):
    more = one["more"]
    wish = {name: value for name, value in more["wish"].items() if name not in ("labels", "name")}
    return {**wish, "name": more["name"], "labels": one["labels"], "sessions": more["sessions"],
            "autoStopInterval": more["autoStop"], "autoDeleteInterval": more["autoDelete"]}  # fmt: skip


def runloop(one):
    more = one["more"]
    wish = {name: value for name, value in more["wish"].items() if name not in ("metadata", "tunnel")}
    tunnel = more["tunnel"] or {}
    return {**wish, "metadata": one["labels"], "tunnel.auth_mode": tunnel.get("auth_mode"),
            "shutdown_reason": more["shutdown_reason"], "failure_reason": more["failure_reason"]}  # fmt: skip


def modal(one, kept):
    more = one["more"]
    names = {app: name for _, name, app in kept["apps"]}
    images = dict(kept["images"])
    told = {DEFINITION.get(number, number): value for number, value in more["definition"].items()}
    ports = told.pop("ports", {}).get("1", [])
    told["ports"] = sorted(port["1"] for port in (ports if isinstance(ports, list) else [ports]))
    told["image"] = images.get(told.get("image"))
    # Their names are new each time.
    for name in ("mounts", "secrets"):
        told[name] = name in told
    return {**told, "app": names.get(more["app"]), "environment": more["environment"], "tags": one["labels"], "result": more["result"]}


def left(service):
    """Fields of each sandbox, and what is kept beside them."""
    url = json.loads(os.environ["STAND_INS"])[service]
    if service == "e2b":
        return e2b(url)
    until = time.monotonic() + SETTLED
    while True:
        told = ask(f"{url}/stand-in/objects", {})
        if time.monotonic() > until or not any(one["state"] in MOVING for one in told["sandboxes"]):
            break
        time.sleep(0.05)
    sandboxes = []
    for one in told["sandboxes"]:
        fields = {"daytona": daytona, "runloop": runloop}.get(service)
        fields = fields(one) if fields else modal(one, told["kept"])
        sandboxes.append(flat({**fields, "state": one["state"]}))
    return {"sandboxes": sandboxes, "kept": told["kept"]}
