"""Conventions: keys, paths, methods, origins, and what the server tells of itself."""

import uuid

from .harness import EVENTS, EXECUTE, SEARCH, START, case


@case
def without_a_key(server):
    open_ones = ["/alive", "/health", "/ready"]
    found = {path: server.asked("GET", path, "content-type", key=None) for path in open_ones}
    found |= {path: server.asked("GET", path, key=None)["status"] for path in ["/", "/server_info", "/openapi.json"]}
    closed = [
        ("POST", EXECUTE), ("POST", START), ("GET", SEARCH), ("GET", EVENTS + "/x"), ("GET", EVENTS + "/"),
        ("DELETE", EVENTS), ("POST", f"/api/bash/bash_commands/{uuid.UUID(int=7)}/stop"), ("POST", "/api/file/upload"),
        ("GET", "/api/file/download"), ("POST", "/api/file/create_directory"), ("GET", "/api/file/home"),
        ("GET", "/api/file/search_subdirs"), ("GET", "/api/git/changes"), ("GET", "/api/git/diff"),
        ("GET", "/api/git/commits"), ("GET", "/api/git/commits/abcd/changes"), ("GET", "/api/vscode/status"),
        ("GET", "/api/vscode/url"), ("POST", "/api/hooks"), ("GET", "/api/tools/"),
    ]  # fmt: skip
    found |= {f"{method} {path}": server.asked(method, path, key=None) for method, path in closed}
    return found


@case
def keys(server):
    home = lambda **more: server.asked("GET", "/api/file/home", "www-authenticate", **more)["status"]
    return {
        "wrong": server.asked("GET", "/api/file/home", "www-authenticate", key="wrong"),
        "second": home(key=server.token + "-2"),
        "of the older variable": home(key=server.token + "-old"),
        "another case": home(key=server.token.upper()),
        "a part": home(key=server.token[:-1]),
        "with a tab": home(key=f"{server.token}\ttab"),
        "empty": home(key=None, headers={"X-Session-API-Key": ""}),
        "as bearer": home(key=None, headers={"Authorization": f"Bearer {server.token}"}),
        "as the header of others": home(key=None, headers={"X-API-Key": server.token}),
        "in the query": home(key=None, params={"session_api_key": server.token}),
        "wrong one and a bad body": server.asked("POST", EXECUTE, key="wrong", content="{"),
    }


@case
def paths_and_methods(server):
    found = {}
    for key in (True, None):
        for method, path in [
            ("GET", "/no/such"), ("GET", "/api"), ("GET", "/api/no/such"), ("GET", EXECUTE), ("PUT", EXECUTE),
            ("POST", SEARCH), ("GET", EVENTS), ("POST", EVENTS), ("POST", "/health"), ("HEAD", "/health"),
            ("GET", "/api/hooks"), ("POST", "/api/file/download"), ("HEAD", "/api/file/download"),
            ("GET", EXECUTE + "/x"), ("DELETE", EVENTS + "/x"), ("GET", "/api/bash/bash_commands/x/stop"),
        ]:  # fmt: skip
            name = f"{method} {path}" + ("" if key else " without a key")
            found[name] = server.asked(method, path, "allow", "content-type", key=key)
    return found


@case
def slashes(server):
    found = {}
    for method, path in [
        ("POST", EXECUTE + "/"), ("GET", SEARCH + "/?limit=1"), ("GET", "/health/"), ("GET", "/api/tools"),
        ("GET", "/api/vscode/status/"), ("DELETE", EVENTS + "/"), ("POST", "/api/hooks/"),
        ("GET", "/api/file/home/?include_hidden=true"), ("GET", "/api/no/such/"), ("GET", "/api/git/changes/?path=/"),
    ]:  # fmt: skip
        found[f"{method} {path}"] = server.asked(method, path, "location", "allow")
    found["without a key"] = server.asked("GET", "/api/file/home/", "location", key=None)
    return found


@case
def origins(server):
    wanted = "X-Session-API-Key, Content-Type"
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": wanted}
    names = ["origin", "methods", "headers", "credentials", "max-age"]
    listed = [f"access-control-{'' if name == 'max-age' else 'allow-'}{name}" for name in names] + ["vary"]
    found = {}
    for origin in ["http://localhost:3000", "https://127.0.0.1", "http://localhost.example", "https://allowed.example",
                   "https://other.example", "null"]:  # fmt: skip
        headers = {"Origin": origin}
        found[f"preflight of {origin}"] = server.asked("OPTIONS", EXECUTE, *listed, key=None, headers=headers | asks)
        found[f"request of {origin}"] = server.asked("GET", "/alive", *listed, key=None, headers=headers)
    headers = {"Origin": "http://localhost:3000"}
    found["refused"] = server.asked("GET", "/api/file/home", *listed, key="wrong", headers=headers)
    found["unknown path"] = server.asked("GET", "/no/such", *listed, headers=headers)
    found["preflight of an unknown path"] = server.asked("OPTIONS", "/no/such", *listed, headers=headers | asks)
    found["preflight of another method"] = server.asked(
        "OPTIONS", EXECUTE, *listed, headers=headers | {"Access-Control-Request-Method": "PATCH"}
    )
    found["no preflight"] = server.asked("OPTIONS", EXECUTE, "allow", headers=headers)
    found["no origin"] = server.asked("GET", "/alive", *listed)
    return found


@case
def tolerated_headers(server):
    headers = {f"X-OpenHands-Observability-{name}": "x" for name in ("Metadata", "Tags", "Span-Name")}
    headers |= {"traceparent": "00-00000000000000000000000000000001-0000000000000001-01", "baggage": "a=b"}
    return server.asked("POST", EXECUTE, json={"command": "true", "unknown": [1]}, headers=headers)


# Of each route its parameters must be told, by these names.
DESCRIBED = [
    "/alive", "/health", "/ready", "/server_info", EXECUTE, START, SEARCH, EVENTS, EVENTS + "/", EVENTS + "/{event_id}",
    "/api/bash/bash_commands/{command_id}/stop", "/api/file/upload", "/api/file/download", "/api/file/create_directory",
    "/api/file/home", "/api/file/search_subdirs", "/api/git/changes", "/api/git/diff",
    "/api/git/commits", "/api/git/commits/{sha}/changes", "/api/vscode/status", "/api/vscode/url", "/api/hooks",
]  # fmt: skip


@case
def the_description(server):
    document = server.send("GET", "/openapi.json", key=None).json()
    found = {"openapi": document["openapi"]}
    for path in DESCRIBED:
        found[path] = {
            method: sorted(
                [one["in"], one["name"], one.get("required", False)] for one in operation.get("parameters", [])
            )
            for method, operation in sorted(document["paths"].get(path, {}).items())
        }
    found["paths of older clients"] = [path for path in document["paths"] if "{path" in path and "/file/" in path]
    return found
