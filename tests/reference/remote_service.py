"""An unmodified `RemoteSandboxService`, with which OpenHands V1 has its sandboxes, works at `gloveport gateway`.

    remote_service.py BINARY

Its database is in memory; the gateway has sandboxes of this machine and hosts of their own for them. Sandboxes are started,
listed, paused, resumed and deleted, more of them than the service lets run, and a second user sees none. Prints one line a
check and, last, `N passed, N failed, N skipped`; exit code 1 if a check failed.
"""

import asyncio
import sys
import time
import urllib.request

from gateways import KEY, Checks, ask, gateway, told

EXPECTED = {
    "a sandbox is started": ["STARTING", True],
    "it runs": "RUNNING",
    "what it exposes": ["AGENT_SERVER", "VSCODE", "WORKER_1", "WORKER_2"],
    "its ports have hosts of their own": True,
    "its server answers under its URL": 200,
    "variables of the specification arrive": "from the specification",
    "another user does not see it": [None, 0, False],
    "a page of sandboxes": ["RUNNING"],
    "it is paused": [True, "PAUSED", None],
    "it is resumed": [True, "RUNNING"],
    "the oldest is paused where there would be too many": ["PAUSED", "RUNNING", "RUNNING"],
    "the poller's list has those that run": 2,
    "they are deleted": [True, True, True],
    "nothing is left to list": [0, []],
}
USERS = ("one", "two")


async def drive(url):
    import httpx
    from openhands.app_server.sandbox.preset_sandbox_spec_service import PresetSandboxSpecService
    from openhands.app_server.sandbox.remote_sandbox_service import RemoteSandboxService, StoredRemoteSandbox
    from openhands.app_server.sandbox.sandbox_spec_models import SandboxSpecInfo
    from openhands.app_server.user.user_context import UserContext
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    class User(UserContext):
        def __init__(self, name):
            self.name = name

        async def get_user_id(self):
            return self.name

        async def get_user_info(self):
            raise NotImplementedError

        async def get_authenticated_git_url(self, repository):
            raise NotImplementedError

        async def get_latest_token(self, provider_type):
            return None

        async def get_secrets(self):
            return {}

    engine = create_async_engine("sqlite+aiosqlite://")
    async with engine.begin() as connection:
        await connection.run_sync(StoredRemoteSandbox.__table__.create)
    specification = SandboxSpecInfo(
        id="debian:13", command=None, initial_env={"OF_SPEC": "from the specification"}, working_dir="/workspace",
    )
    seen = {}
    async with httpx.AsyncClient(timeout=60) as http, AsyncSession(engine, expire_on_commit=False) as database:
        def service(user):
            return RemoteSandboxService(
                sandbox_spec_service=PresetSandboxSpecService([specification]), api_url=url, api_key=KEY, web_url=None,
                resource_factor=1, runtime_class=None, start_sandbox_timeout=60, max_num_sandboxes=2,
                user_context=User(user), httpx_client=http, db_session=database,
            )

        async def until(sandbox, status):
            deadline = time.monotonic() + 60
            while True:
                now = await one.get_sandbox(sandbox.id)
                if now.status.name == status or time.monotonic() > deadline:
                    return now
                await asyncio.sleep(0.1)

        one, two = map(service, USERS)
        try:
            first = await one.start_sandbox()
            seen["a sandbox is started"] = [first.status.name, bool(first.session_api_key)]
            first = await until(first, "RUNNING")
            seen["it runs"] = first.status.name
            exposed = {entry.name: entry.url for entry in first.exposed_urls}
            seen["what it exposes"] = sorted(exposed)
            # The names of sandboxes are at hosts that only a resolver knows; the gateway is asked as it would be then.
            def at(url, path, body=None):
                host = url.split("://")[1].split("/")[0]
                headers = {"Host": host, "X-Session-API-Key": first.session_api_key, "Content-Type": "application/json"}
                request = urllib.request.Request(gateway_url + path, data=body, headers=headers)
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return answer.status, answer.read()

            gateway_url = url
            hosts = [entry.split("://")[1].split("/")[0].split(":")[0] for entry in exposed.values()]
            seen["its ports have hosts of their own"] = len(set(hosts)) == 4 and all(
                host.endswith(".sandboxes.localhost") for host in hosts
            )
            server = exposed["AGENT_SERVER"]
            seen["its server answers under its URL"] = at(server, "/alive")[0]
            action = b'{"action": {"action": "run", "args": {"command": "echo \\"$OF_SPEC\\""}}}'
            seen["variables of the specification arrive"] = (
                "from the specification" if b"from the specification" in await asyncio.to_thread(
                    lambda: at(server, "/execute_action", action)[1]
                ) else "nothing"
            )
            seen["another user does not see it"] = [
                await two.get_sandbox(first.id), len((await two.search_sandboxes()).items), await two.delete_sandbox(first.id),
            ]
            seen["a page of sandboxes"] = [entry.status.name for entry in (await one.search_sandboxes()).items]
            done = await one.pause_sandbox(first.id)
            paused = await one.get_sandbox(first.id)
            seen["it is paused"] = [done, paused.status.name, paused.exposed_urls]
            seen["it is resumed"] = [await one.resume_sandbox(first.id), (await until(first, "RUNNING")).status.name]
            second = await until(await one.start_sandbox(), "RUNNING")
            third = await until(await one.start_sandbox(), "RUNNING")
            seen["the oldest is paused where there would be too many"] = [
                (await one.get_sandbox(sandbox.id)).status.name for sandbox in (first, second, third)
            ]
            listed = ask(url, "/list")[1]["runtimes"]
            seen["the poller's list has those that run"] = len([it for it in listed if it["status"] == "running"])
            seen["they are deleted"] = [await one.delete_sandbox(it.id) for it in (first, second, third)]
            seen["nothing is left to list"] = [
                len((await one.search_sandboxes()).items), ask(url, "/list")[1]["runtimes"],
            ]
        except Exception as error:  # the checks that are missing say what was not reached
            seen["the service"] = told(error)
    await engine.dispose()
    return seen


def main():
    checks = Checks()
    words = ("--runtime", "local", "--domain", "sandboxes.localhost")
    with gateway(checks, sys.argv[1], *words) as (url, _):
        checks.check_all(asyncio.run(drive(url)), EXPECTED)
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
