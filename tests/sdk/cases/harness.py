"""What the cases share: how they are kept, how the server is asked, and what stands in for what differs at each time."""

import datetime
import json
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote, urljoin

import httpx
from openhands.sdk.workspace import RemoteWorkspace

# Seconds after which a case counts as one that hangs, and a request as one without an answer.
CASE, REQUEST = 40, 20
EXECUTE, START = "/api/bash/execute_bash_command", "/api/bash/start_bash_command"
EVENTS, SEARCH = "/api/bash/bash_events", "/api/bash/bash_events/search"
CASES = []


def case(function):
    CASES.append(function)
    return function


class Server:
    def __init__(self, url, token, directory):
        self.url, self.token, self.directory = url, token, Path(directory)
        self.home = self.directory.parent / "home"
        # Each request has a connection of its own: a server may close one that is kept just when it is used again.
        self.http = httpx.Client(base_url=url, timeout=REQUEST, limits=httpx.Limits(max_keepalive_connections=0))
        self.workspace = RemoteWorkspace(host=url, api_key=token, working_dir=directory)

    def place(self, name):
        """A fresh directory for one case."""
        place = self.directory / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        return place

    def send(self, method, path, key=True, headers=None, **more):
        """A response. With `key` another than true, that is sent as the key; nothing if it is none."""
        headers = dict(headers or {})
        if key:
            headers["X-Session-API-Key"] = self.token if key is True else key
        return self.http.request(method, path, headers=headers, **more)

    def asked(self, method, path, *names, **more):
        """The status, the body and these headers of an answer."""
        response = self.send(method, path, **more)
        try:
            body = response.json()
        except ValueError:
            body = response.text
        if response.status_code == 422 and isinstance(body, dict) and isinstance(body.get("detail"), list):
            body = [[one["type"], one["loc"]] for one in body["detail"]]
        found = {"status": response.status_code, "body": body} | {name: response.headers.get(name) for name in names}
        if found.get("location"):
            # It may leave out what it has in common with the request.
            found["location"] = urljoin(str(response.url), found["location"])
        return found

    def executed(self, command, **more):
        """What a command's answer says of its end, without what tells it from others."""
        answer = self.asked("POST", EXECUTE, json={"command": command} | more)
        if answer["status"] != 200:
            return answer
        return {name: answer["body"][name] for name in ("exit_code", "stdout", "stderr")}

    def outputs(self, command):
        """The output events of a command, once it has ended."""
        until = time.monotonic() + REQUEST
        while time.monotonic() < until:
            wanted = {"kind__eq": "BashOutput", "command_id__eq": command}
            found = self.send("GET", SEARCH, params=wanted).json()["items"]
            if found and found[-1]["exit_code"] is not None:
                return found
            time.sleep(0.05)
        raise TimeoutError(f"command {command} does not end")

    def started(self, command, **more):
        return self.send("POST", START, json={"command": command} | more).json()["id"]


def together(**calls):
    """The results of calls that wait and are made at the same time."""
    with ThreadPoolExecutor(len(calls)) as pool:
        running = {name: pool.submit(call) for name, call in calls.items()}
        return {name: one.result() for name, one in running.items()}


def took(call):
    """What a call returns, and the whole seconds that it took."""
    began = time.monotonic()
    found = call()
    return {"found": found, "seconds": int(time.monotonic() - began)}


def shifted(time, hours):
    """The same time as another zone writes it."""
    zone = datetime.timezone(datetime.timedelta(hours=hours))
    return datetime.datetime.fromisoformat(time).astimezone(zone).isoformat()


def raised(call):
    try:
        return call()
    except Exception as error:
        return {"raises": type(error).__name__, "message": str(error)}


def kinds(value):
    """The names of an object's fields, with the types of their values."""
    return {name: "number" if type(one) in (int, float) else type(one).__name__ for name, one in sorted(value.items())}


class Names:
    """Stands in for what is another at each time: ids by the order in which they come, times, places, the key."""

    ID = re.compile(r"(?<![0-9a-f-])(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![0-9a-f-])")
    TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")

    def __init__(self, server):
        self.plain = {
            str(server.directory): "ROOT",
            quote(str(server.directory), safe=""): "ROOT",
            str(server.home): "HOME",
            server.url: "URL",
            server.token: "TOKEN",
        }

    def of(self, value):
        ids = {}

        def name(match):
            key = match[0].replace("-", "")
            return f"ID{ids.setdefault(key, len(ids) + 1)}" + (" with hyphens" if "-" in match[0] else "")

        text = json.dumps(value, sort_keys=True, ensure_ascii=False)
        for plain, stand_in in self.plain.items():
            text = text.replace(plain, stand_in)
        return json.loads(self.TIME.sub("TIME", self.ID.sub(name, text)))

    def found(self, value):
        """Each part has ids of its own, so that one that differs makes no other do."""
        return {name: self.of(one) for name, one in value.items()} if isinstance(value, dict) else self.of(value)
