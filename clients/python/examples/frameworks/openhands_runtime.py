"""OpenHands 0.62: a runtime runs a command, as OpenHands makes it of its configuration."""

import asyncio
import tempfile

from openhands import agenthub  # noqa: F401  registers the agents
from openhands.core.config import OpenHandsConfig
from openhands.events import EventStream
from openhands.events.action import CmdRunAction
from openhands.llm.llm_registry import LLMRegistry
from openhands.runtime import get_runtime_cls
from openhands.storage import get_file_store


async def main() -> None:
    config = OpenHandsConfig(runtime="gloveport.openhands.GloveportRuntime", enable_browser=False)
    with tempfile.TemporaryDirectory() as store:
        events = EventStream("example", get_file_store("local", store))
        runtime = get_runtime_cls(config.runtime)(config, events, LLMRegistry(config), sid="example")
        try:
            await runtime.connect()
            action = CmdRunAction("uname -s")
            action.set_hard_timeout(30)
            print((await asyncio.to_thread(runtime.run_action, action)).content)
        finally:
            runtime.close()


if __name__ == "__main__":
    asyncio.run(main())
