"""OpenAI Agents SDK: an agent with a scripted model edits a file and runs a command in a sandbox."""

import asyncio

from agents import Agent, ApplyPatchTool, RunConfig, Runner, ShellTool
from agents.testing import ScriptedModel, assistant_message
from openai.types.responses import ResponseApplyPatchToolCall, ResponseFunctionShellToolCall

from gloveport import AsyncSandbox
from gloveport.openai_agents import GloveportEditor, GloveportShell

PATCH = ResponseApplyPatchToolCall.model_validate(
    {
        "type": "apply_patch_call",
        "id": "1",
        "call_id": "1",
        "status": "completed",
        "operation": {"type": "create_file", "path": "answer.py", "diff": "+print(6 * 7)\n"},
    }
)
COMMAND = ResponseFunctionShellToolCall.model_validate(
    {
        "type": "shell_call",
        "id": "2",
        "call_id": "2",
        "status": "completed",
        "action": {"commands": ["python3 answer.py"], "timeout_ms": 30_000},
    }
)


async def main() -> None:
    model = ScriptedModel([[PATCH], [COMMAND], [assistant_message("It is done.")]])
    async with AsyncSandbox() as box:
        tools = [ApplyPatchTool(editor=GloveportEditor(box)), ShellTool(executor=GloveportShell(box))]
        agent = Agent(name="worker", model=model, tools=tools)
        done = await Runner.run(agent, "What is the answer?", run_config=RunConfig(tracing_disabled=True))
    for item in done.new_items:
        print(getattr(item, "output", ""), end="")
    print(done.final_output)


if __name__ == "__main__":
    asyncio.run(main())
