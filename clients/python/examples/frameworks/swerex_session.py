"""SWE-ReX: a session in a sandbox."""

import asyncio

from swerex.runtime.abstract import BashAction, CreateBashSessionRequest

from gloveport.swerex import GloveportDeployment


async def main() -> None:
    deployment = GloveportDeployment()
    await deployment.start()
    try:
        await deployment.runtime.create_session(CreateBashSessionRequest(startup_timeout=10))
        seen = await deployment.runtime.run_in_session(BashAction(command="cd /tmp && pwd"))
        print(seen.output)
    finally:
        await deployment.stop()


if __name__ == "__main__":
    asyncio.run(main())
