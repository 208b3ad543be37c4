"""OpenHands' own runtimes of hosted services, at a stand-in of each: what they leave there. Run by compare.py.

    reference.py NAME...    with the variables of the services, and what `left` asks in STAND_INS

The classes of `third_party/runtime/impl` are as they are. What is repaired around them, as nothing starts without:

* Modal's, Runloop's and Daytona's do not take `llm_registry`, and give their arguments to a class that does, one place off. A class
  between the two puts them into their places.
* Modal's waits for 20 seconds whether the server answers or not. Here it waits for one.
* Modal's SDK says `https` to every port. The stand-in's ports are those of this machine, without TLS.

Prints a JSON object for each service: what was left after each step, what a command said, and how it went wrong if it did.
"""

import asyncio
import faulthandler
import json
import os
import sys
import tempfile
import time
import traceback

from left import left
from wish import COMMAND, IMAGES, SID

# Seconds after which it tells where it hangs, before it is ended.
TELL_AFTER = 100
faulthandler.dump_traceback_later(TELL_AFTER, exit=True)
HOME = tempfile.mkdtemp(prefix="third-party-")
os.environ.update(HOME=HOME, LOG_LEVEL="CRITICAL", MODAL_CONFIG_PATH=os.path.join(HOME, "modal.toml"))

from openhands.core.config import OpenHandsConfig  # noqa: E402
from openhands.events import EventStream  # noqa: E402
from openhands.events.action import CmdRunAction  # noqa: E402
from openhands.llm.llm_registry import LLMRegistry  # noqa: E402
from openhands.runtime.impl.action_execution.action_execution_client import ActionExecutionClient  # noqa: E402
from openhands.storage import get_file_store  # noqa: E402


def config_of(service):
    config = OpenHandsConfig()
    config.enable_browser = False
    config.run_as_openhands = False
    config.sandbox.runtime_container_image = IMAGES.get(service)
    return config


class InPlace(ActionExecutionClient):
    """Puts the registry among the arguments, where the class above expects it."""

    registry = None

    def __init__(self, config, event_stream, *rest):
        super().__init__(config, event_stream, self.registry, *rest)


def repaired(kind):
    return type(kind.__name__, (kind, InPlace), {})


def kind_of(service):
    if service == "e2b":
        from third_party.runtime.impl.e2b.e2b_runtime import E2BRuntime
        return E2BRuntime
    if service == "daytona":
        from third_party.runtime.impl.daytona.daytona_runtime import DaytonaRuntime

        return repaired(DaytonaRuntime)
    if service == "runloop":
        from third_party.runtime.impl.runloop.runloop_runtime import RunloopRuntime

        return repaired(RunloopRuntime)
    import modal.sandbox
    from third_party.runtime.impl.modal import modal_runtime

    modal_runtime.sleep = lambda _: time.sleep(1)
    modal.sandbox.Tunnel.url = property(lambda tunnel: f"http://{tunnel.host}:{tunnel.port}")
    return repaired(modal_runtime.ModalRuntime)


def made(service, attach):
    config = config_of(service)
    stream = EventStream(SID, get_file_store("local", HOME))
    registry, kind = LLMRegistry(config), kind_of(service)
    if service == "e2b":
        return kind(config, stream, registry, sid=SID, attach_to_existing=attach)
    kind.registry = registry
    return kind(config, stream, sid=SID, attach_to_existing=attach)


def without_adaptor(service):
    """How a class ends that is made as OpenHands makes it."""
    kind = kind_of(service)
    kind = kind if service == "e2b" else kind.__mro__[1]
    config = config_of(service)
    try:
        kind(config=config, event_stream=EventStream(SID, get_file_store("local", HOME)), llm_registry=LLMRegistry(config), sid=SID)
    except TypeError as error:
        return str(error)
    return None


def said(runtime):
    observation = runtime.run(CmdRunAction(command=COMMAND))
    return [observation.content.strip(), getattr(observation, "exit_code", None)]


def life(service, told):
    """Made, used, used by another one that attaches, closed; with a rest before the end where it has one."""
    told["constructor"] = without_adaptor(service)
    first = made(service, attach=False)
    asyncio.run(first.connect())
    told["command"] = said(first)
    told["made"] = left(service)
    second = made(service, attach=True)
    asyncio.run(second.connect())
    told["command again"] = said(second)
    second.close()
    told["kept"] = left(service)
    # As those do it who call it: none of them waits for what it may give.
    closing = first.close()
    told["closed"] = left(service)
    if service == "daytona":
        told["rests"] = told.pop("closed")
        third = made(service, attach=True)
        asyncio.run(third.connect())
        told["command at last"] = said(third)
        third.close()
        told["resumed"] = left(service)
        os.environ["DAYTONA_DELETE_ON_CLOSE"] = "true"
        try:
            first.close()
        except Exception as error:  # noqa: BLE001 - its SDK looks for what it has just deleted
            told["delete"] = f"{type(error).__name__}: {error}"
        told["closed"] = left(service)
    if closing is not None:
        asyncio.run(closing)
        told["closed and awaited"] = left(service)


def main():
    for service in sys.argv[1:]:
        told = {"service": service}
        began = time.monotonic()
        try:
            life(service, told)
        except Exception:  # noqa: BLE001 - it is told
            told["error"] = traceback.format_exc(limit=-6)
        told["seconds"] = round(time.monotonic() - began, 1)
        print(json.dumps(told), flush=True)
    # What it has left running in threads is not waited for.
    os._exit(0)


main()
