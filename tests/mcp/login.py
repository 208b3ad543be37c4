"""A server that wants a login, made of the official SDK for Python; and `gloveport mcp`, which logs in there.

    login.py BINARY

Prints one line a check: `ok NAME` or `FAILED NAME: DETAIL`.
"""

import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from urllib.parse import urlencode

import uvicorn
from mcp.server.auth.provider import AccessToken, AuthorizationCode, RefreshToken
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthToken

BINARY = os.path.abspath(sys.argv[1])
# Seconds that an access token is good for.
LIFE = 3


def check(name, holds, detail=""):
    print(f"ok {name}" if holds else f"FAILED {name}: {detail!r}", flush=True)


class Logins:
    """Lets everybody in, and remembers what it gave."""

    def __init__(self):
        self.clients, self.codes, self.access, self.refresh, self.refreshed = {}, {}, {}, {}, 0

    async def get_client(self, identity):
        return self.clients.get(identity)

    async def register_client(self, client):
        self.clients[client.client_id] = client

    async def authorize(self, client, asked):
        code = AuthorizationCode(
            code=secrets.token_urlsafe(),
            scopes=asked.scopes or ["use"],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=asked.code_challenge,
            redirect_uri=asked.redirect_uri,
            redirect_uri_provided_explicitly=asked.redirect_uri_provided_explicitly,
            resource=asked.resource,
        )
        self.codes[code.code] = code
        return f"{asked.redirect_uri}?{urlencode({'code': code.code, 'state': asked.state})}"

    async def load_authorization_code(self, _client, code):
        return self.codes.get(code)

    async def exchange_authorization_code(self, client, code):
        del self.codes[code.code]
        return self.give(client.client_id, code.scopes, code.resource)

    async def load_refresh_token(self, _client, token):
        return self.refresh.get(token)

    async def exchange_refresh_token(self, client, token, _scopes):
        del self.refresh[token.token]
        self.refreshed += 1
        return self.give(client.client_id, token.scopes, token.resource)

    async def load_access_token(self, token):
        return self.access.get(token)

    async def revoke_token(self, token):
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def give(self, client, scopes, resource):
        access, refresh = secrets.token_urlsafe(), secrets.token_urlsafe()
        end = int(time.time()) + LIFE
        self.access[access] = AccessToken(token=access, client_id=client, scopes=scopes, expires_at=end, resource=resource)
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client, scopes=scopes, resource=resource)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=LIFE, scope=" ".join(scopes))


def main():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    base, logins = f"http://127.0.0.1:{port}", Logins()
    auth = AuthSettings(
        issuer_url=base,
        resource_server_url=f"{base}/mcp",
        validate_token_resource=True,
        client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["use"], default_scopes=["use"]),
        revocation_options=RevocationOptions(enabled=True),
        required_scopes=["use"],
    )
    server = MCPServer("locked", auth_server_provider=logins, auth=auth)
    server.tool(name="greet")(lambda: "you are in")
    web = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), host="127.0.0.1", port=port, log_level="error"))
    threading.Thread(target=web.run, daemon=True).start()
    while not web.started:
        time.sleep(0.02)
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "HOME": home, "XDG_DATA_HOME": os.path.join(home, "data")}
        url = f"{base}/mcp"

        def gloveport(*words):
            return subprocess.run([BINARY, "mcp", *words], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

        call = ("call", "greet", "--server", url)
        without = gloveport(*call)
        check("without a login the way to it is told", f"gloveport mcp login {url}" in without.stderr and without.returncode == 1, without)
        words = [BINARY, "mcp", "login", url, "--json"]
        login = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        page = None
        for line in login.stderr:
            if found := re.search(r"http://\S+", line):
                page = found.group()
                break
        # The browser, which follows the redirect back to the command.
        with urllib.request.urlopen(page, timeout=30) as answer:
            check("the browser comes back", "close this window" in answer.read().decode().lower(), page)
        printed, _ = login.communicate(timeout=30)
        check("the login is told", '"can_refresh": true' in printed and login.returncode == 0, printed)
        store = os.path.join(home, "data/gloveport/mcp-tokens.json")
        check("the tokens are their owner's alone", os.stat(store).st_mode & 0o777 == 0o600, oct(os.stat(store).st_mode))
        within = gloveport(*call)
        check("a call with the login", within.stdout == "you are in\n", within)
        time.sleep(LIFE + 1)
        later = gloveport(*call)
        check("a login that has expired is renewed", later.stdout == "you are in\n" and logins.refreshed >= 1, later)
        at_once = [subprocess.Popen([BINARY, "mcp", *call], env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)]
        said = [one.communicate(timeout=60)[0] for one in at_once]
        check("processes at once share it", said == ["you are in\n"] * 4, said)
        out = gloveport("logout", url)
        check("a logout", out.stdout == "logged out\n" and not logins.refresh, out)
        after = gloveport(*call)
        check("nothing is left of the login", f"gloveport mcp login {url}" in after.stderr, after)


main()
