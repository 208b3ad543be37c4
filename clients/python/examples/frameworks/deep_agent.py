"""LangChain's deep agents: an agent with a scripted model writes a program and runs it in a sandbox."""

from typing import Any

from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from gloveport import Sandbox
from gloveport.deepagents import GloveportBackend


class Scripted(GenericFakeChatModel):
    def bind_tools(self, *arguments: Any, **named: Any) -> "Scripted":
        return self


def call(number: int, name: str, **arguments: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"id": str(number), "name": name, "args": arguments}])


def main() -> None:
    with Sandbox() as box:
        # Nothing can be written beneath `/` there.
        backend = CompositeBackend(GloveportBackend(box), routes={}, artifacts_root=f"{box.workspace}/.deepagents")
        steps = [
            call(1, "write_file", file_path=f"{box.workspace}/answer.py", content="print(6 * 7)\n"),
            call(2, "execute", command="python3 answer.py"),
            AIMessage("It is done."),
        ]
        agent = create_deep_agent(Scripted(messages=iter(steps)), backend=backend)
        done = agent.invoke({"messages": [("user", "What is the answer?")]})
    for message in done["messages"]:
        if message.content:
            print(f"{message.type}: {message.content}")


if __name__ == "__main__":
    main()
