"""Drives a session of a gateway, with nothing but the standard library: python3 session.py URL KEY_FILE"""

import json
import sys
import urllib.request


class Gateway:
    def __init__(self, url, key):
        self.url, self.key = url.rstrip("/"), key

    def ask(self, method, path, body=None, accept="application/json"):
        request = urllib.request.Request(f"{self.url}/v1/sessions{path}", method=method)
        request.add_header("X-API-Key", self.key)
        request.add_header("Accept", accept)
        data = None if body is None else json.dumps(body).encode()
        return urllib.request.urlopen(request, data=data, timeout=330)

    def json(self, method, path, body=None):
        with self.ask(method, path, body) as answer:
            return json.load(answer)

    def follow(self, session, start=0):
        """Each event from a number on, until the session is over."""
        with self.ask("GET", f"/{session}/events?from={start}", accept="text/event-stream") as lines:
            name = None
            for line in lines:
                field, _, value = line.decode().rstrip("\n").partition(": ")
                if field == "event":
                    name = value
                elif field == "data" and name != "end":
                    yield json.loads(value)


def run(command):
    return {"action": "run", "args": {"command": command}}


gateway = Gateway(sys.argv[1], open(sys.argv[2]).read().strip())
session = gateway.json("POST", "?wait=120", {"secrets": {"TOKEN": "a secret of the user"}})["id"]
for command in ["uname -s", "echo $TOKEN", "false"]:
    done = gateway.json("POST", f"/{session}/actions?wait=60", run(command))
    observation = done["observation"]
    print(f"{command}: {observation['content']!r}, exit code {observation['extras']['metadata']['exit_code']}")
gateway.json("DELETE", f"/{session}")
for event in gateway.follow(session):
    print(event["id"], event.get("action") or event.get("observation"), event["message"])
